"""Rates of origin-destination tables: factors of origins, destinations and epochs, and levels."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from whosthere.adversary.attacks import Auxiliary, LikelihoodRatio
from whosthere.adversary.attacks.likelihood_ratio import _lines
from whosthere.adversary.count_tables import count_tables
from whosthere.adversary.flow_rates import FlowLines
from whosthere.adversary.knowledge import All
from whosthere.adversary.rates import fit_rates
from whosthere.data.epochs import Epochs
from whosthere.data.flows import Pairs
from whosthere.data.regions import Regions
from whosthere.data.traces import Group, Traces
from whosthere.kernels.rows import group_by_row
from whosthere.privacy.facts import Facts
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.publish import publish_table
from whosthere.privacy.release import Release

N, T = 20, 3
START = datetime(2024, 1, 1, tzinfo=UTC)


def factors(rng):
    """Return factors of origins, destinations and epochs, shape (N * N, T)."""
    a, b = rng.lognormal(0, 0.8, (2, N))
    return np.multiply.outer(np.outer(a, b).ravel(), np.array([0.5, 1.0, 2.0]))


def release_of(counts, spec="raw", pairs=None, m=4000):
    pairs = pairs or Pairs(Regions([f"p{i}" for i in range(N)]))
    epochs = Epochs(START, timedelta(days=1), counts.shape[1])
    mechanism = Mechanism.parse(spec)
    published = mechanism.apply(counts.astype(np.int32), m, np.random.default_rng(1))
    return Release(published, Facts(pairs, epochs, m, mechanism))


@pytest.mark.parametrize(
    ("spec", "off"),
    [("raw", 0.12), ("suppress(k=2)", 0.15), ("laplace(eps=0.5, unit=event)", 0.25)],
)
def test_factors_of_places_and_epochs_are_found(spec, off, rng):
    rates = 3 * factors(rng)
    found = fit_rates(release_of(rng.poisson(rates), spec), low_rank=False).dense()
    large = rates > 1
    assert np.abs(np.log(found / rates)[large]).mean() < off


def test_pairs_that_are_not_published_are_left_out(rng):
    rates = 3 * factors(rng)
    kept = np.sort(rng.choice(N * N, 150, replace=False))
    everything = Pairs(Regions([f"p{i}" for i in range(N)]))
    release = release_of(rng.poisson(rates)[kept], pairs=everything.select(kept))
    found = fit_rates(release, low_rank=False).dense()
    large = rates[kept] > 1
    assert np.abs(np.log(found / rates[kept])[large]).mean() < 0.2


def test_structure_of_origins_by_destinations_is_found(rng):
    """Two parts of a town with few trips between them."""
    part = np.arange(N) % 2
    apart = np.where(part[:, None] == part, 1.8, 0.2).ravel()
    rates = 8 * factors(rng) * apart[:, None]
    release = release_of(rng.poisson(rates), "suppress(k=1)")
    errors = [
        np.abs(np.log(fit_rates(release, low_rank=low).dense() / rates))[rates > 1].mean()
        for low in (False, True)
    ]
    assert errors[1] < 0.5 * errors[0]


def test_both_directions_are_one_line():
    pairs = Pairs(Regions(list("abc"))).select([1, 3, 4, 6])
    release = release_of(np.arange(8).reshape(4, 2), pairs=pairs)
    rates = fit_rates(release)
    lines = FlowLines.of_pairs(pairs, release.symbols, rates, count_tables(release.mechanism, 4000))
    # a > b and b > a; b > b; c > a.
    line, within = lines.place(np.arange(8))
    assert line.tolist() == [0, 0, 0, 0, 2, 2, 1, 1]
    assert within.tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
    assert lines._symbols_of(np.arange(3)).tolist() == [
        [0, 1, 2, 3],
        [-1, -1, 6, 7],
        [4, 5, -1, -1],
    ]


def flow_traces(rng, n=400, n_epochs=1):
    """Return people with a few trips of their own, which they make both ways."""
    rates = factors(rng).sum(axis=1)
    weight = rates * rng.lognormal(0, 0.3, rates.size)
    both = rng.choice(N * N, (n, 6), p=weight / weight.sum())
    back = both % N * N + both // N
    pair = np.hstack([both, back])
    cells = pair * n_epochs + rng.integers(0, n_epochs, pair.shape)
    person = np.repeat(np.arange(n), pair.shape[1]).astype(np.int32)
    indptr, visited = group_by_row(person, cells.ravel().astype(np.int32), n)
    places = Pairs(Regions([f"p{i}" for i in range(N)]))
    epochs = Epochs(START, timedelta(days=1), n_epochs)
    return Traces(tuple(f"u{i:03d}" for i in range(n)), indptr, visited, places, epochs)


@pytest.mark.parametrize("spec", ["suppress(k=1)", "laplace(eps=1, unit=event)"])
def test_flows_are_attacked_better_by_their_ends(spec, rng):
    """Than pairs that are regions like any others, on the same releases."""
    traces, aucs = flow_traces(rng), []
    plain = Regions(traces.regions.ids)
    mechanism = Mechanism.parse(spec)
    for _ in range(4):
        rows = rng.choice(400, 150, replace=False)
        release = publish_table(Group(traces, rows), mechanism, bounding=rng, noise=rng).release
        facts = Facts(plain, release.epochs, 150, mechanism)
        inside = np.isin(np.arange(400), rows)
        for one in (Release(release.values, facts), release):
            people = Traces(traces.users, traces.indptr, traces.cells, one.regions, one.epochs)
            scores = LikelihoodRatio().score_everybody(one, people)
            better = scores[inside][:, None] - scores[~inside]
            aucs.append(((better > 0) + 0.5 * (better == 0)).mean())
    by_pair, by_ends = np.array(aucs).reshape(-1, 2).mean(axis=0)
    assert by_ends > by_pair + 0.03


def test_everybody_at_once_is_one_after_the_other(rng):
    traces = flow_traces(rng, 40, T)
    mechanism = Mechanism.parse("suppress(k=1)")
    everybody = Group.all_of(traces)
    release = publish_table(everybody, mechanism, bounding=rng, noise=rng).release
    scores = LikelihoodRatio().score_everybody(release, traces)
    for row in (0, 17):
        known = All().of(traces.trace(row), release.facts, rng)
        fitted = LikelihoodRatio().fit(release.facts, known, Auxiliary(), seed=0)
        answer = fitted.score(release)
        assert answer.score == pytest.approx(scores[row])
        assert 0 <= answer.p_value <= 1


def test_lines_of_regions_stay_what_they_are(rng):
    """Where only regions are known, and where rates have the shape of a reference."""
    release = release_of(rng.poisson(3 * factors(rng)))
    rates = fit_rates(release)
    assert isinstance(_lines(release, rates), FlowLines)
    assert not isinstance(_lines(release, rates, 0), FlowLines)
