"""Whom an attacker asks about: visits, some of them, or places alone, for one person as for all."""

import ast
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import whosthere
from whosthere.adversary.counting import (
    chance_of_being_counted,
    may_be_dropped,
    rows_of_places,
    rows_of_visits,
)
from whosthere.adversary.knowledge import Knowledge
from whosthere.adversary.suspects import Habits, Places, lies_within, over, visits_of_one
from whosthere.adversary.targets import read_target
from whosthere.data.epochs import Epochs
from whosthere.data.regions import Regions
from whosthere.data.traces import Traces
from whosthere.errors import InputError
from whosthere.privacy.catalogue import STEPS
from whosthere.privacy.facts import Facts
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.scheme import ORDINARY, Layout
from whosthere.privacy.units import UNITS

N_EPOCHS = 72
TRACES = st.lists(
    st.lists(st.integers(0, 7 * N_EPOCHS - 1), max_size=40, unique=True).map(sorted),
    min_size=1,
    max_size=5,
)


REGIONS = Regions([f"r{i}" for i in range(7)])
START = datetime(2021, 6, 1, tzinfo=UTC)
EPOCHS, HOURS = (Epochs(START, timedelta(hours=1), n) for n in (N_EPOCHS, 24))


def people_of(traces, weights=None):
    indptr = np.cumsum([0, *map(len, traces)])
    cells = np.array([cell for trace in traces for cell in trace], np.int32)
    users = tuple(f"u{i:03}" for i in range(len(traces)))
    return Traces(users, indptr, cells, REGIONS, EPOCHS, weights=weights)


def _each(known, of):
    return [of[known.indptr[i] : known.indptr[i + 1]].tolist() for i in range(known.n_users)]


# What is known by rule


@given(TRACES, st.floats(0.001, 1), st.floats(0.001, 1), st.integers(0, 100))
def test_shares_are_rounded_up_and_nest(traces, one, other, seed):
    less, more = sorted((one, other))
    people, found = people_of(traces), []
    for share in (less, more):
        rule = Knowledge.parse(f"share({share})")
        known = rule.of(people, np.random.default_rng(seed))
        found.append(_each(known, known.cells))
    for part, whole, trace in zip(*found, traces, strict=True):
        assert set(part) <= set(whole) <= set(trace)
        assert part == sorted(part)
        assert less * len(trace) - 1e-6 <= len(part) < less * len(trace) + 1
    assert Knowledge.parse("all").of(people, None) is people


@pytest.mark.parametrize(("visits", "share", "known"), [(4, 0.1, 1), (30, 0.1, 3), (9, 1.0, 9)])
def test_a_share_as_in_the_paper(visits, share, known, rng):
    rule = Knowledge.parse(f"share({share})")
    assert rule.of(people_of([range(visits)]), rng).cells.size == known


def test_every_visit_is_equally_likely_to_be_known_and_adds_what_it_adds(rng):
    """400 people of whom 5 in 10 visits are known; false alarm rate below 1e-4 (4.5 sigma)."""
    weights = np.tile(np.arange(1, 11, dtype=np.int32), 400)
    people = people_of([range(10)] * 400, weights)
    known = Knowledge.parse("share(0.5)").of(people, rng)
    assert np.abs(np.bincount(known.cells, minlength=10) - 200).max() < 4.5 * 10
    assert (known.weights == known.cells + 1).all()


@given(TRACES, st.none() | st.integers(1, 4))
def test_regions_are_the_most_visited_ones_in_order(traces, top):
    rule = Knowledge.parse("regions" if top is None else f"regions(top={top})")
    known = rule.of(people_of(traces), None)
    for trace, regions in zip(traces, _each(known, known.regions), strict=True):
        visits = np.bincount(np.array(trace, int) // N_EPOCHS, minlength=7)
        order = sorted(np.flatnonzero(visits).tolist(), key=lambda r: (-visits[r], r))
        assert regions == order[:top]
    assert known.cells.size == 0


# Rows


def test_rows_of_visits_are_the_visits_and_what_they_add():
    people = people_of([[3, 80], [], [5]], np.array([1, 2, 4], np.int32))
    bounded = "laplace(eps=1, unit=user-day, max_visits=1)"
    for spec, chances in (("raw", []), (bounded, [1 / 3, 1 / 3, 1 / 4])):
        rows = rows_of_visits(people, Facts.of(people, 9, Mechanism.parse(spec)))
        assert rows.indptr.tolist() == [0, 2, 2, 3]
        assert rows.cells.tolist() == [3, 80, 5]
        assert rows.added.tolist() == [1, 2, 4]
        assert rows.person.tolist() == [0, 0, 2]
        assert rows.chance == pytest.approx(np.minimum(chances, 0.999))


LATER = [N_EPOCHS, N_EPOCHS + 1]
"""The first two hours in the next region."""


@pytest.mark.parametrize("people", [1, 3])
@pytest.mark.parametrize(
    ("unit", "trace"),
    [
        ("user-day, max_visits=3", [0, 1, 2, 30, *LATER]),
        ("user, max_visits=4", [0, 1, 2, 30, *LATER]),
        ("user-day, max_visits=1, max_regions=1", [0, 1, 30, *LATER]),
        ("user-day, max_visits=3, max_regions=2", [0, 1, 30, *LATER, 150, 151]),
        ("user-day, max_visits=200, max_regions=1", [0, 1, *LATER, 150]),
    ],
)
def test_each_visit_counts_with_the_chance_of_a_draw(unit, trace, people, rng):
    """Against the publisher's own drawing, 2,000 times: 5 standard errors. Others do not matter."""
    everybody = people_of([*[[5, 6]] * (people - 1), trace])
    facts = Facts.of(everybody, 50, Mechanism.parse(f"laplace(eps=1, unit={unit})"))
    person = np.repeat(np.arange(people), np.diff(everybody.indptr))
    chance = chance_of_being_counted(everybody.cells, facts, person)[-len(trace) :]
    alone, drawn = everybody.select([people - 1]), np.zeros(len(trace))
    for _ in range(2000):
        drawn += np.isin(trace, facts.mechanism.bound(alone, rng).cells)
    assert (np.abs(drawn / 2000 - chance) < 5 * np.sqrt(0.25 / 2000)).all()
    assert may_be_dropped(everybody.cells, facts).all()
    assert chance.max() <= 0.999


def test_no_visit_is_dropped_without_a_bound():
    facts = Facts.of(people_of([[1]]), 50, Mechanism.parse("laplace(eps=1, unit=event)"))
    cells = np.array([1, 5], np.int32)
    assert not may_be_dropped(cells, facts).any()
    assert chance_of_being_counted(cells, facts).tolist() == [1, 1]


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=6, unique=True),
    st.sampled_from(["greedy", "random"]),
    st.lists(st.floats(0, 1), min_size=24, max_size=24).filter(lambda time: sum(time) > 0.1),
    st.floats(0.01, 400),
)
def test_what_is_believed_of_places_is_likely_there(regions, guess, time, mean_visits):
    """A trace is made of likely cells alone; the chances add up to the usual number of visits,
    unless a cell would have to be more certain than 0.9."""
    known = Places.of_one(regions, guess)
    habits = Habits(np.array(time) / sum(time), mean_visits)
    rows = rows_of_places(known, habits)
    assert rows.indptr.tolist() == [0, 24 * len(regions)]
    assert sorted({*(rows.cells // 24).tolist()}) == sorted(regions)
    assert (np.diff(rows.cells) > 0).all()
    assert (rows.added == 1).all()
    expected = np.minimum(habits.time * mean_visits / len(regions), 0.9)
    assert rows.chance == pytest.approx(np.tile(expected, len(regions)), rel=1e-6)
    believed = known.trace(habits, np.random.default_rng(1))
    assert believed.dtype == np.int32
    assert (np.diff(believed) > 0).all()
    assert np.isin(believed, rows.cells).all()
    if guess == "greedy":
        assert believed.tolist() == rows.cells.tolist()
    else:
        assert set(believed) <= set(rows.cells[rows.chance > 0])
        assert believed.size <= max(1, round(mean_visits / len(regions))) * len(regions)


def test_everybody_is_one_after_the_other():
    people = people_of([[3, 80, 81], [], [5, 6, 400]])
    everybody, habits = Places.most_visited(people), Habits(np.full(24, 1 / 24), 5.0)
    together = rows_of_places(everybody, habits)
    for i in range(3):
        alone = everybody.select([i])
        assert alone.regions.tolist() == _each(everybody, everybody.regions)[i]
        rows, own = rows_of_places(alone, habits), together.person == i
        assert rows.cells.tolist() == together.cells[own].tolist()
        assert rows.chance.tolist() == together.chance[own].tolist()


def test_habits_are_those_of_counts():
    found = Habits.of([[1, 2, 0], [3, 2, 0]], 4)
    assert (found.time.tolist(), found.mean_visits) == ([0.5, 0.5, 0.0], 2.0)
    assert Habits.of(np.zeros((2, 4)), 3).time.tolist() == [0.25] * 4


def test_knowledge_is_laid_over_tables():
    people = people_of([[0, 1, 25], [7 * N_EPOCHS - 1]])
    days = over(people, Layout(epochs=24, counts="visits"))
    assert (days.cells.tolist(), days.weights.tolist()) == ([0, 1, 20], [2, 1, 1])
    assert over(people, ORDINARY) is people
    places = Places(np.array([0, 3, 4]), np.array([6, 4, 1, 0]))
    halves = places.over(Layout(regions=(0, 0, 0, 0, 1, 1, 1)))
    assert _each(halves, halves.regions) == [[1, 0], [0]]
    assert places.over(Layout(epochs=24)) is places


def test_only_what_lies_in_the_release_lies_within():
    people = people_of([[0, 7 * N_EPOCHS - 1]])
    facts = Facts.of(people, 10, Mechanism())
    assert lies_within(people, facts)
    assert not lies_within(people.between(0, 24), facts)
    assert lies_within(Places.of_one([0, 6]), facts)
    assert not lies_within(Places.of_one([7, 0]), facts)


def test_known_visits_are_sorted_and_distinct():
    people = people_of([[0]])
    assert visits_of_one([5, 3, 3], people.regions, people.epochs).cells.tolist() == [3, 5]


@pytest.mark.parametrize(
    "make",
    [
        *(
            lambda cells=cells: visits_of_one(cells, Regions(["a"]), HOURS)
            for cells in ([], [-1], [24], [2**32 + 5], [1.5], ["r1"], None)
        ),
        lambda: Places.of_one([]),
        lambda: Places.of_one([1, 1]),
        lambda: Places.of_one([-1]),
        lambda: Places.of_one([1], "greedily"),
        lambda: read_target("none.csv", None, None, guess="greedily"),
    ],
)
def test_bad_knowledge_is_refused(make):
    with pytest.raises(InputError):
        make()


def test_a_target_file_may_name_regions_in_two_columns(tmp_path):
    (tmp_path / "target.csv").write_text("LAC,CI\n101,7\n101,9\n")
    known = read_target(tmp_path / "target.csv", Regions(["101-9", "101-7"]), None)
    assert known.regions.tolist() == [1, 0]


# Nobody asks what kind of step or unit it is given


CLOSED = {
    *("Step", "Unit"),
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
    source = "isinstance(x, (int, privacy.Rounding)); type(y) is Laplace"
    assert {"Rounding", "Laplace"} <= set(_kinds_asked_for(source))


@pytest.mark.parametrize("room", ["adversary", "auditing"])
def test_no_attack_asks_what_kind_of_step_it_has(room):
    files = sorted((Path(whosthere.__file__).parent / room).rglob("*.py"))
    assert len(files) > 10
    asked = {
        f"{path.name}: {name}"
        for path in files
        for name in _kinds_asked_for(path.read_text(encoding="utf-8"))
        if name in CLOSED
    }
    assert not asked
