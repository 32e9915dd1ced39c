"""What is known of a target."""

import ast
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import whosthere
from whosthere.adversary.knowledge import Habits, KnownRegions, KnownVisits
from whosthere.adversary.targets import read_target
from whosthere.data.regions import Regions
from whosthere.errors import InputError
from whosthere.privacy.catalogue import STEPS
from whosthere.privacy.facts import Facts
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.units import UNITS

TRACES = st.lists(st.integers(0, 500), min_size=1, unique=True)


def _habits(time, mean_visits=6.0):
    """Everybody is seen at the same hours, and as often."""
    return lambda: Habits(np.asarray(time) / np.sum(time), mean_visits)


EVEN = _habits(np.ones(24))


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
    cells = KnownRegions((5, 2)).believed_trace(EVEN, rng)
    assert cells.tolist() == [*range(48, 72), *range(120, 144)]
    assert cells.dtype == np.int32


def test_a_random_guess_spreads_the_mean_over_the_regions(rng):
    marginal = np.zeros(24)
    marginal[3:20] = 1 / 17
    known = KnownRegions((5, 2, 0), "random")
    cells = known.believed_trace(_habits(marginal), rng)
    assert set(cells // 24) == {0, 2, 5}
    assert ((cells % 24 >= 3) & (cells % 24 < 20)).all()
    assert cells.size <= 6
    assert (np.diff(cells) > 0).all()


# What is certain, likely and believed agree


@given(TRACES, st.integers(0, 100))
def test_known_visits_are_certain_likely_and_all_that_is_believed(trace, seed):
    known = KnownVisits(trace)
    likely, chance = known.likely_visits(EVEN)
    believed = known.believed_trace(EVEN, np.random.default_rng(seed))
    assert known.certain.tolist() == likely.tolist() == believed.tolist() == sorted(trace)
    assert (chance == 1).all()
    assert set(known.places(24)) == {cell // 24 for cell in trace}


@given(
    st.lists(st.integers(0, 20), min_size=1, max_size=6, unique=True).map(tuple),
    st.sampled_from(["greedy", "random"]),
    st.lists(st.floats(0, 1), min_size=24, max_size=24).filter(lambda time: sum(time) > 0.1),
    st.floats(0.01, 400),
    st.integers(0, 100),
)
def test_what_is_believed_of_places_is_likely_there(regions, guess, time, mean_visits, seed):
    """A trace is made of likely cells alone; the chances add up to the usual number of visits,
    unless a cell would have to be more certain than 0.9."""
    known, habits = KnownRegions(regions, guess), _habits(time, mean_visits)
    likely, chance = known.likely_visits(habits)
    assert known.certain.size == 0
    assert known.places(24) == regions
    assert set(likely // 24) == set(regions)
    assert likely.size == np.unique(likely).size == 24 * len(regions)
    assert ((chance >= 0) & (chance <= 0.9)).all()
    if chance.max() < 0.9:
        assert chance.sum() == pytest.approx(mean_visits)
    believed = known.believed_trace(habits, np.random.default_rng(seed))
    assert (np.diff(believed) > 0).all()
    assert set(believed // 24) == set(regions)
    assert np.isin(believed, likely).all()
    if guess == "random":
        assert set(believed) <= set(likely[chance > 0])


def test_only_what_lies_in_the_release_lies_within(regions, epochs):
    facts = Facts(regions, epochs, 10, Mechanism())
    assert KnownVisits([0, 7 * 72 - 1]).lies_within(facts)
    assert not KnownVisits([0, 7 * 72]).lies_within(facts)
    assert KnownRegions((0, 6)).lies_within(facts)
    assert not KnownRegions((7, 0)).lies_within(facts)


def test_known_visits_add_what_the_target_adds_there(rng):
    trace, added = np.array([2, 3, 5, 8]), np.array([1, 4, 2, 7], np.int32)
    known = KnownVisits.fraction(trace, 0.5, rng)
    assert known.weighed(trace, 1) is known
    there = dict(zip(trace.tolist(), added.tolist(), strict=True))
    assert known.weighed(trace, added).added.tolist() == [there[cell] for cell in known.cells]


def test_known_cells_are_a_value():
    given = np.array([5, 3, 3])
    known = KnownVisits(given)
    given[:] = 0
    assert known.cells.tolist() == [3, 5]
    assert not known.cells.flags.writeable
    assert not KnownRegions((1,)).certain.flags.writeable


@pytest.mark.parametrize(
    "make",
    [
        lambda: KnownVisits(np.zeros(0, np.int32)),
        lambda: KnownVisits(np.array([-1])),
        lambda: KnownVisits([2**32 + 5]),
        lambda: KnownVisits([1.5]),
        lambda: KnownVisits(["r1"]),
        lambda: KnownVisits(None),
        lambda: KnownVisits.fraction([1, 2], 0.0, np.random.default_rng(0)),
        lambda: KnownVisits.fraction([1, 2], 1.1, np.random.default_rng(0)),
        lambda: KnownRegions(()),
        lambda: KnownRegions((1, 1)),
        lambda: KnownRegions((-1,)),
        lambda: KnownRegions((1,), "greedily"),
        lambda: read_target("none.csv", None, None, guess="greedily"),
    ],
)
def test_bad_knowledge_is_refused(make):
    with pytest.raises(InputError):
        make()


def test_a_target_file_may_name_regions_in_two_columns(tmp_path):
    (tmp_path / "target.csv").write_text("LAC,CI\n101,7\n101,9\n")
    known = read_target(tmp_path / "target.csv", Regions(["101-9", "101-7"]), None)
    assert known.regions == (1, 0)


# Nobody asks what kind of knowledge, step or unit it is given


CLOSED = {
    *("Known", "KnownVisits", "KnownRegions", "Step", "Unit"),
    *(step.__name__ for step in STEPS),
    *(unit.__name__ for unit in UNITS.values()),
}


def _kinds_asked_for(source):
    """Yield the names that some code tells kinds apart by: isinstance, type() is, match."""
    for node in ast.walk(ast.parse(source)):
        asked = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in {"isinstance", "issubclass"}:
                asked = node.args[1:]
        elif isinstance(node, ast.MatchClass):
            asked = [node.cls]
        elif isinstance(node, ast.Compare) and "type(" in ast.unparse(node):
            asked = [node]
        for part in asked:
            for name in ast.walk(part):
                if isinstance(name, ast.Name):
                    yield name.id
                elif isinstance(name, ast.Attribute):
                    yield name.attr


def test_the_search_for_kinds_finds_some():
    source = "isinstance(x, (int, knowledge.KnownVisits)); type(y) is Laplace"
    assert {"KnownVisits", "Laplace"} <= set(_kinds_asked_for(source))


@pytest.mark.parametrize("room", ["adversary", "auditing"])
def test_no_attack_asks_what_kind_of_knowledge_or_step_it_has(room):
    files = sorted((Path(whosthere.__file__).parent / room).rglob("*.py"))
    assert len(files) > 10
    asked = {
        f"{path.name}: {name}"
        for path in files
        for name in _kinds_asked_for(path.read_text(encoding="utf-8"))
        if name in CLOSED
    }
    assert not asked
