"""Tables that add up: the law of all of them together, against enumeration."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom, poisson

from whosthere.adversary.attacks import RULED_OUT, Auxiliary, LikelihoodRatio
from whosthere.adversary.attacks.base import View
from whosthere.adversary.nested import Chain, Null, Tree, chains
from whosthere.adversary.scorer import Scorer
from whosthere.adversary.suspects import Places, visits_of_one
from whosthere.data.epochs import Epochs
from whosthere.data.regions import Regions
from whosthere.privacy.facts import Facts
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.release import Release
from whosthere.privacy.scheme import ORDINARY, Layout

M = 400
START = datetime(2021, 6, 1, tzinfo=UTC)
SPECS = ["raw", "suppress(k=2)", "suppress(k=2, shown=mark)", "round(to=3)", "random-round(to=3)"]
NOISY = ["laplace(eps=1, unit=event)", "discrete-laplace(eps=0.7, unit=event)"]


def _view(layout, spec, n_hours, visits, n_regions=1, m=M):
    regions = Regions([f"r{i}" for i in range(n_regions)])
    if layout.regions is not None:
        regions = regions.merged(layout.regions)
    epochs = Epochs(START, timedelta(hours=1), n_hours).joined(layout.epochs)
    added = layout.epochs if layout.counts == "visits" else 1
    facts = Facts(regions, epochs, m, Mechanism.parse(spec), added)
    if isinstance(visits, tuple):
        cells, weights = visits
        visits = replace(visits_of_one(cells, regions, epochs), weights=weights)
    return View(facts, visits, Auxiliary(), layout)


def _publish(views, counts, rng):
    """Return the releases of true hourly counts of one region, in chain order."""
    made = []
    for view in views:
        k = view.layout.epochs
        true = np.add.reduceat(counts, np.arange(0, counts.size, k))[None].astype(np.int32)
        values = view.facts.mechanism.apply(true, view.facts.most_count, rng)
        made.append(Release(values, view.facts))
    return tuple(made)


def _by_hand(releases, joined, rates, added, most):
    """Add up the chance of all that was published over all counts of others."""
    laws = [
        [
            release.mechanism.pmf(
                value, np.arange(most * rates.size + 99), release.facts.most_count
            )
            for value in release.values[0]
        ]
        for release in releases
    ]
    total = 0.0
    for others in product(range(most + 1), repeat=rates.size):
        chance = float(np.prod(poisson.pmf(others, rates)))
        there = np.array(others) + added
        for law, k in zip(laws, joined, strict=True):
            sums = np.add.reduceat(there, np.arange(0, there.size, k))
            chance *= float(np.prod([law[i][n] for i, n in enumerate(sums)]))
        total += chance
    return total


def _hours_and_total(fine, coarse, counts):
    visits = ([0], None)
    total = Layout(epochs=2, counts=counts)
    return [_view(ORDINARY, fine, 2, visits), _view(total, coarse, 2, visits)]


PAIRS = [*product(SPECS, SPECS), *zip(NOISY, SPECS, strict=False), *zip(SPECS, NOISY, strict=False)]


@pytest.mark.parametrize(("fine", "coarse"), PAIRS)
def test_two_hours_and_their_total_are_those_of_enumeration(rng, fine, coarse):
    """Whatever is published of either, with one visit of the target and with two."""
    rates, most = np.array([0.8, 1.7]), 14
    views = _hours_and_total(fine, coarse, "visits")
    (chain,) = chains(views)
    for added in ([1, 0], [1, 1]):
        releases = _publish(views, rng.poisson(rates) + added, rng)
        expected = [
            _by_hand(releases, (1, 2), rates, np.array(own), most) for own in ([0, 0], added)
        ]
        where = [dict(enumerate(added)), {0: sum(added)}]
        logs = dict(enumerate(np.log(rates).tolist()))
        found = Tree(releases, chain.nestings).log_ratio(0, logs, where)
        assert found == pytest.approx(np.log(expected[1] / expected[0]), abs=1e-6)


@pytest.mark.parametrize(("fine", "coarse"), PAIRS)
@pytest.mark.parametrize("added", [[1, 0], [1, 1]])
def test_two_hours_and_their_people_are_those_of_enumeration(rng, fine, coarse, added):
    """Each of the others' visits counts with the same chance, and the target once."""
    rates, most, chance = np.array([0.8, 1.7]), 14, 0.6
    views = _hours_and_total(fine, coarse, "people")
    (chain,) = chains(views)
    hours = rng.poisson(rates)
    total = rng.binomial(hours.sum(), chance) + 1
    releases = tuple(
        Release(view.facts.mechanism.apply(true.astype(np.int32), M, rng), view.facts)
        for view, true in zip(views, (hours[None] + added, np.array([[total]])), strict=True)
    )
    laws = [
        [one.mechanism.pmf(value, np.arange(2 * most + 2), M) for value in one.values[0]]
        for one in releases
    ]

    def by_hand(own, once):
        kept = np.array(
            [
                binom.pmf(np.arange(n + 1), n, chance) @ laws[1][0][once : n + once + 1]
                for n in range(2 * most + 1)
            ]
        )
        first, second = np.arange(most + 1)[:, None], np.arange(most + 1)
        law = poisson.pmf(first, rates[0]) * poisson.pmf(second, rates[1])
        shown = laws[0][0][first + own[0]] * laws[0][1][second + own[1]]
        return float((law * shown * kept[first + second]).sum())

    where = [dict(enumerate(added)), {0: 1}]
    logs = dict(enumerate(np.log(rates).tolist()))
    found = Tree(releases, chain.nestings, ({0: chance},)).log_ratio(0, logs, where)
    assert found == pytest.approx(math.log(by_hand(added, 1) / by_hand([0, 0], 0)), abs=1e-6)


def test_people_of_whom_all_visits_count_are_sums(rng):
    views = _hours_and_total("suppress(k=2)", "round(to=3)", "people")
    (chain,) = chains(views)
    releases = _publish(views, np.array([3, 1]), rng)
    logs, where = {0: 0.3, 1: -0.2}, [{0: 1}, {0: 1}]
    sums, people = (
        Tree(releases, chain.nestings, kept).log_ratio(0, logs, where) for kept in ((), ({0: 1.0},))
    )
    assert sums == people


def test_three_levels_are_those_of_enumeration(rng):
    """Four quarters of an hour, two halves, and the hour."""
    rates, added = np.array([0.3, 0.6, 0.2, 0.5]), np.array([1, 0, 0, 2])
    visits = ([0], None)
    layouts = [ORDINARY, *(Layout(epochs=k, counts="visits") for k in (2, 4))]
    specs = ["suppress(k=1)", "laplace(eps=1, unit=event)", "round(to=3)"]
    views = [_view(layout, spec, 4, visits) for layout, spec in zip(layouts, specs, strict=True)]
    (chain,) = chains(views)
    releases = _publish(views, rng.poisson(rates) + added, rng)
    expected = [_by_hand(releases, (1, 2, 4), rates, own, 6) for own in (0 * added, added)]
    where = [dict(enumerate(added.tolist())), {0: 1, 1: 2}, {0: 3}]
    found = Tree(releases, chain.nestings).log_ratio(
        0, dict(enumerate(np.log(rates).tolist())), where
    )
    assert found == pytest.approx(np.log(expected[1] / expected[0]), abs=1e-4)


def _three_hours(hours, total):
    """Attack hours (k=2) and their total (raw), of somebody who was there in the first hour."""
    views = [
        _view(ORDINARY, "suppress(k=2)", 3, ([0], None)),
        _view(Layout(epochs=3, counts="visits"), "raw", 3, ([0], None)),
    ]
    attack = LikelihoodRatio().fit_tables(views, seed=0)
    values = [np.array([hours], np.int32), np.array([[total]], np.int32)]
    made = [Release(one, view.facts) for one, view in zip(values, views, strict=True)]
    return attack.score_tables(made).score


def test_a_total_equal_to_its_shown_parts_rules_out_who_was_in_a_hidden_part():
    """Neither table does so alone: the hidden hour may hold two, and the total is not 0."""
    assert _three_hours([0, 3, 4], 7) == RULED_OUT
    assert _three_hours([0, 3, 4], 8) > -5


@pytest.mark.parametrize("with_visits", [False, True])
def test_nobody_is_ruled_out_because_others_were_there_for_both_hours(with_visits):
    """Two people in two hours are four visits and two people, however many that was expected."""
    both = ([0, 1], None)
    day = _view(Layout(epochs=2), "raw", 2, ([0], None))
    views = [_view(ORDINARY, "raw", 2, both), day]
    values = [np.array([[2, 2]], np.int32), np.array([[2]], np.int32)]
    if with_visits:
        layout = Layout(epochs=2, counts="visits")
        views.append(_view(layout, "raw", 2, ([0], [2])))
        values.append(np.array([[4]], np.int32))
    made = [Release(one, view.facts) for one, view in zip(values, views, strict=True)]
    score = LikelihoodRatio().fit_tables(views, seed=0).score_tables(made).score
    assert score > -5


def test_the_chance_to_count_is_that_of_the_rates_within_what_can_be():
    """Some visits may always be of one person, and nobody makes more than there are parts."""

    def kept(layouts, expected):
        views = [_view(one, "raw", 2, ([0], None)) for one in layouts]
        (chain,) = chains(views)
        rates = [SimpleNamespace(at_cells=np.log(one)) for one in expected]
        nulls = [
            SimpleNamespace(table=SimpleNamespace(rates=of), release=SimpleNamespace(facts=v.facts))
            for of, v in zip(rates, views, strict=True)
        ]
        levels = chain._levels_of(np.arange(2))
        return [np.exp(one) for one in chain._log_kept(nulls, levels)]

    hours, day = np.array([1.0, 3.0]), Layout(epochs=2)
    for people, chance in ((3.0, 0.75), (5.0, 0.99), (0.1, 0.5)):
        found = kept([ORDINARY, day], [hours, np.array([people])])
        assert found[1] == pytest.approx([chance] * 2)
    # A sum counts all visits, and its people are still not as many.
    visits = Layout(epochs=2, counts="visits")
    found = kept([ORDINARY, visits, day], [hours, np.array([4.0]), np.array([5.0])])
    assert found[1:] == [pytest.approx([1.0] * 2), pytest.approx([0.99] * 2)]


@pytest.mark.parametrize(("hours", "day", "first"), [([2, 2], 3, 0), ([40, 40], 3, 1)])
def test_the_table_that_says_most_about_the_target_keeps_its_score(monkeypatch, hours, day, first):
    """A visit among few says more than two among many."""
    views = [
        _view(ORDINARY, "raw", 2, ([0, 1], None)),
        _view(Layout(epochs=2), "raw", 2, ([0], None)),
    ]
    (chain,) = chains(views)
    nulls = []
    for view, values in zip(views, ([hours], [[day]]), strict=True):
        release = Release(np.array(values, np.int32), view.facts)
        nulls.append(Null(*Scorer([view.knowledge]).looked_up(0, release)))
    monkeypatch.setattr(Chain, "_added_by_others", lambda *_: 0.0)
    assert chain.score(nulls) == nulls[first].table.score(nulls[first].asked)[0]


def test_which_tables_are_judged_together():
    visits = ([0], None)
    day, week = (Layout(epochs=k, counts="visits") for k in (2, 4))
    people, district = Layout(epochs=2), Layout(regions=(0, 0), counts="visits")

    def places(*layouts, spec="raw", known=visits):
        views = [_view(one, spec, 4, known, n_regions=2) for one in layouts]
        return [chain.places for chain in chains(views)]

    assert places(ORDINARY, week, day) == [(0, 2, 1)]
    assert places(ORDINARY, people, week) == [(0, 2), (1,)]
    assert places(ORDINARY, people) == [(0, 1)]
    assert places(people, people) == [(0, 1)]
    # People who make several trips count again, so these are not thinned.
    trips = _view(people, "raw", 4, visits, n_regions=2)
    trips = replace(trips, facts=replace(trips.facts, most_added=2))
    assert len(chains([_view(ORDINARY, "raw", 4, visits, n_regions=2), trips])) == 2
    # What adds up comes first, whatever else is published.
    assert places(people, ORDINARY, day) == [(1, 2, 0)]
    # Hours of a district and days of its regions are no parts of one another.
    assert places(ORDINARY, day, district) in ([(0, 1), (2,)], [(0, 2), (1,)])
    assert places(ORDINARY, day, spec="laplace(eps=1, unit=user-day, max_visits=2)") == [(0,), (1,)]
    assert places(ORDINARY, day, known=Places.of_one((0,))) == [(0,), (1,)]
