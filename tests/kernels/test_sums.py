"""Laws of sums: what is left of a count of which a share is kept."""

import numpy as np
import pytest
from scipy.stats import binom, poisson

from whosthere import kernels


@pytest.mark.parametrize("kept", [0.01, 0.4, 0.99])
def test_a_share_of_a_poisson_count_is_a_poisson_count(kept):
    """A short law is kept whole, a long one is cut where it no longer matters."""
    for rate, ends in ((3.0, (0, 60)), (2000.0, (1500, 2600))):
        counts = np.arange(*ends)
        least, chances, whole = kernels.thinned(ends[0], poisson.pmf(counts, rate), kept)
        expected = poisson.pmf(least + np.arange(chances.size), kept * rate)
        assert chances == pytest.approx(expected, rel=1e-6, abs=1e-12)
        assert chances.sum() == pytest.approx(1)
        assert whole == (rate < 100)


def test_a_known_count_becomes_a_binomial_one():
    least, chances, whole = kernels.thinned(7, np.array([1.0]), 0.3)
    assert (least, whole) == (0, True)
    assert chances == pytest.approx(binom.pmf(np.arange(8), 7, 0.3), rel=1e-12)


def test_where_all_are_kept_nothing_changes():
    law = np.random.default_rng(0).random(9)
    least, chances, whole = kernels.thinned(4, law, 1.0)
    assert (least, whole) == (4, True)
    assert (chances == law).all()
    assert kernels.thinned(4, np.empty(0), 0.5)[1].size == 0
