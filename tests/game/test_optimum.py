"""The optimum of the game against enumeration: the ratio of the release's chances, exactly."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product

import numpy as np
import polars as pl
import pytest

from whosthere.auditing.options import AuditOptions
from whosthere.auditing.planning import make_plan
from whosthere.data.cities import simulate
from whosthere.data.epochs import Epochs
from whosthere.data.regions import Regions
from whosthere.data.traces import Group, Traces
from whosthere.game.optimum import Candidates, log_ratios, optimal_scores
from whosthere.game.plan import Setting
from whosthere.game.rounds import Population
from whosthere.game.scoring import score_task
from whosthere.inference.metrics import auc
from whosthere.inference.vocabulary import CEILING
from whosthere.privacy.facts import Facts
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.publish import Publication, PublishedTable
from whosthere.privacy.release import Release
from whosthere.privacy.scheme import ORDINARY, Layout, Scheme, TableScheme

REGIONS = Regions(["a", "b"])
EPOCHS = Epochs(datetime(2021, 6, 1, tzinfo=UTC), timedelta(hours=1), 2)
# The last one is the target.
PEOPLE = ([0], [0, 1], [1, 2], [3], [0, 3], [2], [1], [0, 1])
M = 3
SPECS = (
    "raw",
    "suppress(k=1)",
    "round(to=2)",
    "random-round(to=3)",
    "discrete-laplace(eps=1, unit=event)",
    "laplace(eps=1, unit=event) | suppress(k=1)",
)


def traces_of(rows):
    cells = [PEOPLE[row] for row in rows]
    indptr = np.cumsum([0, *map(len, cells)])
    users = tuple(str(i) for i in range(len(rows)))
    return Traces(users, indptr, np.concatenate(cells).astype(np.int32), REGIONS, EPOCHS)


def chance(mechanism, published, rows):
    """The chance of published counts for a group, cell by cell."""
    true = traces_of(rows).counts().reshape(-1)
    return float(np.prod(mechanism.pmf(published, true, M)))


def score(mechanism, published, members, *others):
    """The score of one table, or of several by the same mechanism."""
    people = Group.all_of(traces_of(range(len(PEOPLE))))
    group = Group(people.everybody, np.asarray(members))
    facts = Facts(REGIONS, EPOCHS, M, mechanism)
    tables = tuple(
        PublishedTable(
            Release(np.asarray(one, np.int32).reshape(2, 2), facts), group, group, group.counts()
        )
        for one in (published, *others)
    )
    (found,) = optimal_scores([Publication(tables)], [[Candidates(people, people)] * len(tables)])
    return found


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize(
    "others", [(0, 1), *(pytest.param(some, marks=pytest.mark.full) for some in ((2, 3), (5, 6)))]
)
def test_it_is_the_log_of_the_ratio_of_both_chances(spec, others):
    mechanism = Mechanism.parse(spec)
    target = len(PEOPLE) - 1
    pool = [row for row in range(target) if row not in others]
    seen = 0
    for published in product(range(M + 1), repeat=4):
        with_target = chance(mechanism, published, [*others, target])
        without = np.mean([chance(mechanism, published, [*others, x]) for x in pool])
        for last in (target, *pool):
            if not chance(mechanism, published, [*others, last]):
                continue
            found = score(mechanism, published, [*others, last])
            seen += 1
            if with_target == 0:
                assert found < -1e8
            elif without == 0:
                assert found > 1e8
            else:
                assert found == pytest.approx(np.log(with_target / without), abs=1e-6)
    assert seen > 3


def test_tables_of_the_same_people_add_up():
    mechanism, others, target = Mechanism.parse("laplace(eps=1, unit=event)"), [0, 1], 7
    pool = [row for row in range(target) if row not in others]
    for first, second in product(product((0, 2), repeat=4), repeat=2):
        with_target, *without = (
            chance(mechanism, first, [*others, x]) * chance(mechanism, second, [*others, x])
            for x in (target, *pool)
        )
        found = score(mechanism, first, [*others, target], second)
        assert found == pytest.approx(np.log(with_target / np.mean(without)), abs=1e-6)


@pytest.mark.parametrize("spec", SPECS)
def test_it_does_not_depend_on_who_is_really_there(spec):
    """Only what was published and the others matter: the score is one function of both."""
    mechanism = Mechanism.parse(spec)
    target = len(PEOPLE) - 1
    for published in product(range(M + 1), repeat=4):
        possible = [
            last for last in range(2, target + 1) if chance(mechanism, published, [0, 1, last])
        ]
        scores = {round(score(mechanism, published, [0, 1, last]), 6) for last in possible}
        assert len(scores) <= 1


def test_impossible_counts_are_minus_infinity():
    raw = Mechanism.parse("raw")
    ratios = log_ratios(raw, np.array([0, 1, 2], np.int32), np.array([0, 0, 2], np.int32), M)
    assert np.isneginf(ratios[[0, 2]]).all()
    assert ratios[1] > 1e8


@pytest.mark.parametrize("most", [10, 100_000])
@pytest.mark.parametrize("spec", ["raw", "suppress(k=5)", "laplace(eps=1, unit=event)"])
def test_ratios_are_those_of_each_cell_however_large_its_count(spec, most):
    mechanism, rng = Mechanism.parse(spec), np.random.default_rng(3)
    others = rng.integers(0, most, 200).astype(np.int32)
    published = mechanism.apply(others + rng.integers(0, 2, 200), most, rng)
    with np.errstate(invalid="ignore"):
        expected = mechanism.log_pmf(published, others + 1, most)
        expected = expected - mechanism.log_pmf(published, others, most)
    ratios = log_ratios(mechanism, published, others, most)
    assert np.array_equal(ratios, np.where(np.isposinf(expected), 1e9, expected))


def test_only_what_would_be_counted_matters():
    """Bounded candidates count with what is left of them, and the last member with its own."""
    mechanism = Mechanism.parse("laplace(eps=1, unit=event)")
    people = Group.all_of(traces_of(range(len(PEOPLE))))
    group = Group(people.everybody, np.array([0, 1, 4]))
    release = Release(np.array([[2, 1], [0, 1]], np.int32), Facts(REGIONS, EPOCHS, M, mechanism))
    table = PublishedTable(release, group, group, group.counts())
    nothing = replace(people.everybody, indptr=np.zeros(9, int), cells=np.zeros(0, np.int32))
    candidates = [Candidates(people, Group.all_of(nothing))]
    (found,) = optimal_scores([Publication((table,))], [candidates])
    others = group.counts().reshape(-1) - np.isin(np.arange(4), PEOPLE[4])
    ratios = log_ratios(mechanism, release.counts.reshape(-1), others.astype(np.int32), M)
    # The target and four of the unknown leave no trace.
    expected = -np.log((4 + np.exp(ratios[PEOPLE[4]].sum())) / 5)
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("spec", SPECS)
def test_what_somebody_adds_more_than_once_counts_more_than_once(spec):
    """Region totals, of people who add up to two visits each, against enumeration."""
    mechanism, others, target = Mechanism.parse(spec), [0, 1], len(PEOPLE) - 1
    totals = Layout(epochs=2, counts="visits")(traces_of(range(len(PEOPLE))))
    people, facts = Group.all_of(totals), Facts.of(totals, M, mechanism)
    pool = [row for row in range(target) if row not in others]

    def of(published, last):
        true = totals.counts([*others, last]).reshape(-1)
        return float(np.prod(mechanism.pmf(published, true, facts.most_count)))

    for published in product(range(5), repeat=2):
        if not of(published, target):
            continue
        group = Group(totals, np.array([*others, target]))
        release = Release(np.array(published, np.int32).reshape(2, 1), facts)
        table = PublishedTable(release, group, group, group.counts())
        (found,) = optimal_scores([Publication((table,))], [[Candidates(people, people)]])
        without = np.mean([of(published, x) for x in pool])
        if without:
            expected = np.log(of(published, target) / without)
            assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("spec", ["suppress(k=1)", "laplace(eps=1, unit=event)"])
def test_no_attack_on_tables_that_add_up_is_above_it(spec):
    city = simulate("milan-like", seed=7, users=300, days=2, regions=9).traces()
    options = AuditOptions.of(
        mechanisms=spec, group_size=60, releases=20, targets=3, attacks="likelihood-ratio"
    )
    plan = make_plan(options, city)
    mechanism = Mechanism.parse(spec)
    layouts = ORDINARY, Layout(epochs=24, counts="visits")
    scheme = Scheme(tuple(TableScheme(mechanism, one) for one in layouts), 60)
    contests = [replace(one, setting=Setting(scheme)) for one in plan.contests]
    plan = replace(plan, contests=tuple(contests))
    found = {"likelihood-ratio": [], CEILING: []}
    for task in plan.tasks:
        rows = score_task(Population.of(city), plan, task).targets.filter(~pl.col("control"))
        for attack, scores in found.items():
            mine = rows.filter(pl.col("attack") == attack).sort("release")
            scores.append(auc(mine["score"], mine["label"]))
    attack, ceiling = (float(np.mean(one)) for one in found.values())
    assert 0.5 < attack <= ceiling
