"""Random numbers that depend on what they are for, and on nothing else."""

import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from whosthere.seeds import derived_seed, digest, generator

KEYS = st.lists(st.text(max_size=5) | st.integers(-(2**70), 2**70), max_size=4).map(tuple)
SEEDS = st.integers(0, 2**70)
KNOWN_SEED = 12344973344047676336
KNOWN_DRAW = 588300736
KNOWN_DIGEST = "35cbdbc42e7b5dfd3ea794c304e2dca0"


@given(SEEDS, KEYS, SEEDS, KEYS)
def test_equal_keys_and_no_others_share_their_numbers(seed, key, other_seed, other_key):
    same = (seed, key) == (other_seed, other_key)
    one, two = derived_seed(seed, *key), derived_seed(other_seed, *other_key)
    assert (one == two) == same
    assert 0 <= one < 2**64
    drawn = [g.integers(2**63) for g in (generator(seed, *key), generator(other_seed, *other_key))]
    assert (drawn[0] == drawn[1]) == same


def test_parts_of_a_key_do_not_run_together():
    keys = [("ab", "c"), ("a", "bc"), ("abc",), ("a", "b", "c"), ("1", 2), (1, "2"), (1, 2), (12,)]
    assert len({derived_seed(0, *key) for key in keys}) == len(keys)


def test_numpys_numbers_are_numbers():
    for kind in (np.int32, np.int64, np.uint8):
        assert derived_seed(kind(3), "x", kind(7)) == derived_seed(3, "x", 7)


def test_a_seed_means_the_same_for_ever_and_in_every_process():
    """Known answers: a change here changes every result that somebody keeps."""
    assert derived_seed(0, "test noise", 3, 5) == KNOWN_SEED
    assert generator(0, "test noise", 3, 5).integers(10**9) == KNOWN_DRAW
    assert digest(np.arange(5, dtype=np.int32)) == KNOWN_DIGEST
    code = "from whosthere.seeds import derived_seed; print(derived_seed(0, 'test noise', 3, 5))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(said.stdout) == KNOWN_SEED


def test_without_a_seed_nothing_repeats():
    assert generator(None, "x").integers(2**63) != generator(None, "x").integers(2**63)


def test_numbers_of_neighbouring_keys_look_independent():
    """First draws of 2000 keys and seeds: uniform, and not correlated; false alarm rate 2e-4."""
    first = np.array([generator(0, "release", i).random() for i in range(2000)])
    other = np.array([generator(i, "release", 0).random() for i in range(2000)])
    for drawn in (first, other):
        assert kstest(drawn, "uniform").pvalue > 5e-5
        assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 4.1 / np.sqrt(1999)


def test_a_digest_is_of_values_and_not_of_how_they_lie_in_memory():
    values = np.arange(12, dtype=np.int32).reshape(3, 4)
    assert digest(values) == digest(values.T.copy().T)
    assert digest(values) == digest(np.asfortranarray(values))
    assert digest(values) == digest(values[:, ::-1][:, ::-1])
    changed = values.copy()
    changed[2, 3] += 1
    assert digest(values) != digest(changed)
