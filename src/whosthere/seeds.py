"""Random numbers that depend on what they are for, and on nothing else.

Every draw comes from a seed and a key that says what it is for, such as ("test noise", target,
release). So the same choices give the same result, whatever the number of workers, the order of
the work, or an interruption; and two things that share a key share their random numbers.
"""

from __future__ import annotations

import hashlib
from numbers import Integral
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from whosthere.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Key: TypeAlias = "int | str"


def check_seed(seed: object) -> int:
    """Return a seed as an int, or refuse what is none, such as a generator."""
    if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:
        found = seed if isinstance(seed, int | float | str) else f"a {type(seed).__name__}"
        raise InputError(
            f"the seed must be a whole number from 0, not {found}",
            fix="Draw one if you have a generator: rng.integers(2**32)",
        )
    return int(seed)


def generator(seed: int | None, *key: Key) -> np.random.Generator:
    """Return the random numbers of a key; without a seed they cannot be repeated."""
    return np.random.default_rng(None if seed is None else _sequence(seed, key))


def derived_seed(seed: int, *key: Key) -> int:
    """Return a seed of 64 bits that belongs to a key, for parts that take a seed of their own."""
    return int(_sequence(seed, key).generate_state(1, np.uint64)[0])


def digest(array: NDArray[np.integer]) -> str:
    """Return a text that stands for the values of an array, as a part of a key."""
    values = np.ascontiguousarray(array)
    return hashlib.blake2b(values.tobytes(), digest_size=16).hexdigest()


def _sequence(seed: int, key: tuple[Key, ...]) -> np.random.SeedSequence:
    # Numbers of numpy write themselves in another way than Python's own.
    plain = tuple(part if isinstance(part, str) else int(part) for part in key)
    of_key = hashlib.blake2b(repr(plain).encode(), digest_size=16).digest()
    # As numpy itself puts numbers into words, which takes it twice as long.
    n = check_seed(seed)
    words = n.to_bytes(4 * max(-(-n.bit_length() // 32), 1), "little") + of_key
    return np.random.SeedSequence(np.frombuffer(words, dtype="<u4"))
