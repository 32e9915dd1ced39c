"""How much of the truth a release keeps: known answers, limits and invariances."""

import math
from dataclasses import FrozenInstanceError, astuple, fields, replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from whosthere.data.epochs import Epochs
from whosthere.data.regions import Regions
from whosthere.errors import InputError
from whosthere.privacy.facts import Facts
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.release import Release
from whosthere.privacy.utility import UTILITY_WORDS, Utility, utility


def pairs(most=40):
    shapes = st.tuples(st.integers(1, 15), st.integers(1, 6))
    return shapes.flatmap(
        lambda shape: st.tuples(
            *(hnp.arrays(np.int32, shape, elements=st.integers(0, most)) for _ in range(2))
        )
    )


def jensen_shannon(p, q):
    """Return the distance in bits as the textbook has it: entropy of the middle, less the mean."""

    def entropy(shares):
        return -math.fsum(s * math.log2(s) for s in shares if s)

    p, q = ([float(x) / float(sum(axis)) for x in axis] for axis in (p, q))
    middle = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
    return math.sqrt(max(0.0, entropy(middle) - (entropy(p) + entropy(q)) / 2))


def test_a_known_answer():
    truth = np.array([[4, 0], [1, 3], [0, 0]], dtype=np.int32)
    published = np.array([[2, 1], [0, 3], [0, 2]], dtype=np.int32)
    found = utility(published, truth, top=1)
    assert found.mean_absolute_error == pytest.approx((2 + 1 + 1 + 0 + 0 + 2) / 6)
    assert found.mean_relative_error == pytest.approx((2 / 4 + 1 / 1 + 0 / 3) / 3)
    assert found.nonzero_lost == pytest.approx(1 / 3)
    # Over regions 3, 3, 2 of 8 against 4, 4, 0; over epochs 2, 6 of 8 against 5, 3.
    assert found.space_distance == pytest.approx(
        math.sqrt(
            (2 * 3 / 8 * math.log2((3 / 8) / (7 / 16)) + 2 / 8 * math.log2((2 / 8) / (1 / 8))) / 2
            + (2 * 1 / 2 * math.log2((1 / 2) / (7 / 16))) / 2
        )
    )
    assert found.time_distance == pytest.approx(jensen_shannon([2, 6], [5, 3]))
    assert found.top_regions_kept == 1.0
    # 2 of 4 visits, none of 1, 3 of 3; what noise adds elsewhere does not count.
    assert found.visits_kept == pytest.approx(5 / 8)
    assert found.cells_kept == pytest.approx(2 / 3)
    assert found.pattern_correlation == pytest.approx(
        np.corrcoef([2, 1, 0, 3, 0, 2], [4, 0, 1, 3, 0, 0])[0, 1]
    )


@settings(max_examples=60, deadline=None)
@given(pairs())
def test_what_is_kept_is_a_share(pair):
    found = utility(*pair)
    for share in (found.visits_kept, found.cells_kept):
        assert share is None or 0 <= share <= 1
    assert found.pattern_correlation is None or -1 <= found.pattern_correlation <= 1
    same = utility(pair[1], pair[1])
    assert same.visits_kept in {1.0, None}
    assert same.pattern_correlation is None or same.pattern_correlation == pytest.approx(1)


def test_nothing_published_keeps_nothing():
    truth = np.array([[4, 0], [1, 3]], dtype=np.int32)
    found = utility(np.zeros_like(truth), truth)
    assert found.visits_kept == found.cells_kept == 0
    assert found.pattern_correlation is None
    assert utility(truth, np.zeros_like(truth)).visits_kept is None


def test_disjoint_places_and_times_are_one_apart():
    published = np.array([[0, 0], [0, 5]], dtype=np.int32)
    truth = np.array([[7, 0], [0, 0]], dtype=np.int32)
    found = utility(published, truth, top=1)
    assert found.space_distance == found.time_distance == 1.0
    assert found.nonzero_lost == 1.0
    assert found.mean_relative_error == 1.0
    assert found.top_regions_kept == 0.0


@settings(max_examples=150, deadline=None)
@given(pairs())
def test_distances_match_the_textbook(pair):
    published, truth = pair
    found = utility(published, truth)
    for axis, distance in ((1, found.space_distance), (0, found.time_distance)):
        if not published.any() or not truth.any():
            assert distance is None
        else:
            expected = jensen_shannon(published.sum(axis=axis), truth.sum(axis=axis))
            assert distance == pytest.approx(expected, abs=1e-7)
            assert 0 <= distance <= 1


@settings(max_examples=100, deadline=None)
@given(pairs())
def test_errors_match_a_loop_over_cells(pair):
    published, truth = pair
    cells = [(int(p), int(t)) for p, t in zip(published.flat, truth.flat, strict=True)]
    visited = [(p, t) for p, t in cells if t]
    found = utility(published, truth)
    assert found.mean_absolute_error == pytest.approx(
        math.fsum(abs(p - t) for p, t in cells) / len(cells)
    )
    if visited:
        relative = math.fsum(abs(p - t) / t for p, t in visited) / len(visited)
        assert found.mean_relative_error == pytest.approx(relative)
        assert found.nonzero_lost == pytest.approx(sum(p == 0 for p, _ in visited) / len(visited))
    else:
        assert found.mean_relative_error is None
        assert found.nonzero_lost is None


@settings(max_examples=100, deadline=None)
@given(pairs(), st.randoms(use_true_random=False))
def test_the_order_of_regions_and_epochs_does_not_matter(pair, random):
    """But for the busiest regions, where regions with the same total stand in their order."""
    published, truth = pair
    rows, columns = (list(range(n)) for n in truth.shape)
    random.shuffle(rows)
    random.shuffle(columns)
    before = utility(published, truth)
    columns_moved = utility(published[:, columns], truth[:, columns])
    assert astuple(columns_moved) == pytest.approx(astuple(before), nan_ok=False, abs=1e-7)
    both = utility(published[rows][:, columns], truth[rows][:, columns])
    untied = all(len(set(c.sum(axis=1).tolist())) == len(c) for c in pair)
    if not untied:
        both, before = (replace(u, top_regions_kept=None) for u in (both, before))
    assert astuple(both) == pytest.approx(astuple(before), nan_ok=False, abs=1e-7)


@settings(max_examples=60, deadline=None)
@given(pairs())
def test_swapping_the_two_leaves_the_symmetric_measures(pair):
    one, other = utility(*pair), utility(*reversed(pair))
    assert one.mean_absolute_error == pytest.approx(other.mean_absolute_error)
    assert one.top_regions_kept == other.top_regions_kept
    for axis in ("space_distance", "time_distance"):
        assert getattr(one, axis) == pytest.approx(getattr(other, axis), abs=1e-7)


@settings(max_examples=60, deadline=None)
@given(pairs().map(lambda pair: pair[0]), st.integers(2, 50))
def test_a_perfect_release_loses_nothing(truth, factor):
    found = utility(truth, truth)
    assert found.mean_absolute_error == 0
    undefined = None if not truth.any() else 0
    assert found.mean_relative_error == found.nonzero_lost == undefined
    assert found.space_distance == found.time_distance == undefined
    assert found.top_regions_kept == (1 if truth.any() else None)
    scaled = utility(truth * np.int32(factor), truth)
    assert scaled.space_distance == pytest.approx(undefined, abs=1e-7)
    assert scaled.top_regions_kept == found.top_regions_kept


def test_nothing_published_or_nothing_true():
    nothing = np.zeros((12, 3), dtype=np.int32)
    something = np.arange(36, dtype=np.int32).reshape(12, 3)
    silent = utility(nothing, something)
    assert silent.mean_absolute_error == something.mean()
    assert silent.mean_relative_error == silent.nonzero_lost == 1
    assert (silent.space_distance, silent.time_distance) == (None, None)
    assert silent.top_regions_kept is None
    invented = utility(something, nothing)
    assert invented.mean_absolute_error == something.mean()
    assert (invented.mean_relative_error, invented.nonzero_lost) == (None, None)
    assert (invented.space_distance, invented.time_distance) == (None, None)
    assert invented.top_regions_kept is None


def test_the_busiest_regions():
    truth = np.arange(20, 0, -1, dtype=np.int32)[:, None]
    published = truth.copy()
    published[[0, 1, 2]] = 0
    assert utility(published, truth).top_regions_kept == 0.7
    assert utility(published, truth, top=3).top_regions_kept == 0
    assert utility(published, truth, top=100).top_regions_kept == 1


def test_quiet_regions_are_not_among_the_busiest():
    truth = np.arange(20, 0, -1, dtype=np.int32)[:, None]
    published = truth.copy()
    published[[9, 18, 19]] = truth[[10, 19, 18]]
    assert utility(published, truth, top=1).top_regions_kept == 1
    assert utility(published, truth).top_regions_kept == 1


def test_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        utility(np.ones((1, 1), np.int32), np.ones((1, 1), np.int32)).nonzero_lost = 0


def test_large_counts_do_not_overflow():
    most = np.int32(2**30)
    truth = np.full((50, 50), most)
    published = truth.copy()
    published[0, 0] = 0
    found = utility(published, truth)
    assert found.mean_absolute_error == pytest.approx(2**30 / 2500)
    assert 0 < found.space_distance < 0.1


@pytest.mark.parametrize("seed", range(20))
def test_totals_that_are_almost_the_same(seed):
    """The distance is below what floating point resolves; rounding must not make it undefined."""
    truth = np.random.default_rng(seed).integers(0, 10**9, (60, 1)).astype(np.int32)
    published = truth.copy()
    published[0] += 1
    assert 0 <= utility(published, truth).space_distance < 1e-7


def test_shown_in_notebooks_with_words_for_each_measure():
    assert list(UTILITY_WORDS) == [field.name for field in fields(Utility)]
    html = Utility(1.23456, 0.5, None, 0.25, 0.125, 1, 0.5, None)._repr_html_()
    assert all(f">{words}</td>" in html for words in UTILITY_WORDS.values())
    assert ">1.235</td>" in html
    assert ">not defined</td>" in html
    assert html.count("<tr>") == 1 + len(UTILITY_WORDS)


def test_other_shapes_are_refused():
    with pytest.raises(InputError, match=r"counts of shape \(2, 3\) against truth of \(3, 2\)"):
        utility(np.zeros((2, 3), dtype=np.int32), np.zeros((3, 2), dtype=np.int32))


def test_a_withheld_cell_is_not_kept(rng):
    """A release of marks keeps what the same release of zeros keeps."""
    true = rng.poisson(4, (10, 12)).astype(np.int32)
    found = []
    for spec in ("suppress(k=3)", "suppress(k=3, shown=mark)"):
        mechanism = Mechanism.parse(spec)
        regions = Regions([f"r{i}" for i in range(10)])
        epochs = Epochs(datetime(2024, 1, 1, tzinfo=UTC), timedelta(hours=1), 12)
        published = mechanism.apply(true, 50, rng)
        release = Release(published, Facts(regions, epochs, 50, mechanism))
        found.append(utility(release.counts, true))
    assert found[0] == found[1]
    assert found[0].cells_kept < 1
