"""Counting pairs of whole numbers."""

import numpy as np
import pytest

from whosthere import kernels


@pytest.mark.parametrize("n", [0, 1, 3, 5, 1000])
def test_are_counted_as_one_by_one(n):
    rng = np.random.default_rng(n)
    first, second = rng.integers(0, 4, n, np.int32), rng.integers(0, 3, n, np.int32)
    times = kernels.count_pairs(first, second, 3, 12)
    assert times.tolist() == np.bincount(first * 3 + second, minlength=12).tolist()
