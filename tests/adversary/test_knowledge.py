"""What is known of a target."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whosthere.adversary.knowledge import KnownRegions, KnownVisits, parse_guess
from whosthere.errors import InputError

TRACES = st.lists(st.integers(0, 500), min_size=1, unique=True)


@given(TRACES, st.floats(0.001, 1), st.integers(0, 100))
def test_a_fraction_is_a_rounded_up_part_of_the_trace(trace, share, seed):
    known = KnownVisits.fraction(trace, share, np.random.default_rng(seed)).cells
    assert set(known) <= set(trace)
    assert share * len(trace) - 1e-6 <= known.size < share * len(trace) + 1
    assert (np.diff(known) > 0).all()


@pytest.mark.parametrize(("visits", "share", "known"), [(4, 0.1, 1), (30, 0.1, 3), (9, 1.0, 9)])
def test_a_fraction_as_in_the_paper(visits, share, known, rng):
    assert KnownVisits.fraction(np.arange(visits), share, rng).cells.size == known


def test_every_visit_is_equally_likely_to_be_known(rng):
    """400 draws of 5 in 10 visits; false alarm rate below 1e-4 (4.5 sigma, 10 visits)."""
    known = [KnownVisits.fraction(np.arange(10), 0.5, rng).cells for _ in range(400)]
    times = np.bincount(np.concatenate(known), minlength=10)
    assert np.abs(times - 200).max() < 4.5 * 10


def test_the_most_visited_regions_come_first():
    trace = [3 * 24 + 1, 3 * 24 + 2, 3 * 24 + 9, 5 * 24 + 2, 5 * 24 + 3, 7 * 24]
    assert KnownRegions.most_visited(trace, 24).regions == (3, 5, 7)
    assert KnownRegions.most_visited(trace, 24, top=2).regions == (3, 5)


def test_a_greedy_guess_takes_every_epoch(rng):
    marginal = np.full(24, 1 / 24)
    cells = KnownRegions((5, 2)).guessed_trace(time_marginal=marginal, mean_visits=6, rng=rng)
    assert cells.tolist() == [*range(48, 72), *range(120, 144)]


def test_a_random_guess_spreads_the_mean_over_the_regions(rng):
    marginal = np.zeros(24)
    marginal[3:20] = 1 / 17
    known = KnownRegions((5, 2, 0), "random")
    cells = known.guessed_trace(time_marginal=marginal, mean_visits=6, rng=rng)
    assert set(cells // 24) == {0, 2, 5}
    assert ((cells % 24 >= 3) & (cells % 24 < 20)).all()
    assert cells.size <= 6


@pytest.mark.parametrize(
    "make",
    [
        lambda: KnownVisits(np.zeros(0, np.int32)),
        lambda: KnownVisits(np.array([-1])),
        lambda: KnownVisits.fraction([1, 2], 0.0, np.random.default_rng(0)),
        lambda: KnownVisits.fraction([1, 2], 1.1, np.random.default_rng(0)),
        lambda: KnownRegions(()),
        lambda: KnownRegions((1, 1)),
        lambda: parse_guess("greedily"),
    ],
)
def test_bad_knowledge_is_refused(make):
    with pytest.raises(InputError):
        make()
