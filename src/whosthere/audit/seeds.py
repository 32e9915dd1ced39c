"""Random numbers that depend on what they are for, and on nothing else.

Every draw of an audit comes from a seed and a key such as (target, setting, role). So the same
plan gives the same scores, whatever the number of workers, the order, or an interruption.
"""

from __future__ import annotations

import hashlib

import numpy as np


def generator(seed: int, *key: int | str) -> np.random.Generator:
    """Return the random numbers of a key."""
    return np.random.default_rng(_sequence(seed, key))


def whole_number(seed: int, *key: int | str) -> int:
    """Return a seed of 32 bits that belongs to a key, for parts that take a plain number."""
    return int(_sequence(seed, key).generate_state(1)[0])


def _sequence(seed: int, key: tuple[int | str, ...]) -> np.random.SeedSequence:
    digest = hashlib.blake2b(repr(key).encode(), digest_size=16).digest()
    return np.random.SeedSequence([seed, *np.frombuffer(digest, dtype="<u4").tolist()])
