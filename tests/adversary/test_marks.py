"""Withheld counts: what a mark tells an attacker, and that every attack listens."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from whosthere import kernels
from whosthere.adversary.attacks import Attack, Auxiliary, PastRelease
from whosthere.adversary.count_tables import count_tables, filled
from whosthere.adversary.features import Features
from whosthere.adversary.groups import GroupSampler
from whosthere.adversary.marginals import estimate_marginals
from whosthere.adversary.rates import fit_rates
from whosthere.adversary.suspects import Places, visits_of_one
from whosthere.data.epochs import Epochs
from whosthere.data.regions import Regions
from whosthere.data.traces import Traces
from whosthere.kernels import CountMatrix
from whosthere.privacy.facts import Facts
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.release import Release
from whosthere.privacy.step import WITHHELD

M = 200
REGIONS = Regions([f"r{i:02}" for i in range(30)])
EPOCHS = Epochs(datetime(2024, 1, 1, tzinfo=UTC), timedelta(hours=1), 24)
SHAPE = len(REGIONS), EPOCHS.n
N_CELLS = len(REGIONS) * EPOCHS.n
AS_MARK = Mechanism.parse("suppress(k=4, shown=mark)")
ALL_MARKED = Mechanism.parse("suppress(k=4, shown=mark, zeros=mark)")


def release_of(true, mechanism, rng, m=M):
    published = mechanism.apply(true.reshape(SHAPE), m, rng)
    return Release(published, Facts(REGIONS, EPOCHS, m, mechanism))


def trials(mechanism, rng, n=120, visits=30, others=0.3):
    """Yield releases, whether the target is in, and its visits; others are Poisson."""
    for i in range(n):
        cells = np.sort(rng.choice(N_CELLS, visits, replace=False)).astype(np.int32)
        true = rng.poisson(others, N_CELLS)
        true[cells] += i % 2
        yield release_of(true, mechanism, rng), i % 2 == 1, cells


def auc(mechanism, rng):
    test = Attack.parse("likelihood-ratio")
    scores, labels = [], []
    for release, inside, cells in trials(mechanism, rng):
        fitted = test.fit(release.facts, visits_of_one(cells, REGIONS, EPOCHS), Auxiliary(), seed=0)
        scores.append(round(fitted.score(release).score, 4))
        labels.append(inside)
    return roc_auc_score(labels, scores)


def test_a_mark_gives_away_what_a_zero_hides(rng):
    """30 visits, 0.3 others in a cell: nothing is found if 1 to 14 are 0, everybody by marks."""
    found = {
        shown: auc(Mechanism.parse(f"suppress(k=14{shown})"), rng)
        for shown in ("", ", shown=mark", ", shown=mark, zeros=mark")
    }
    assert found == {"": 0.5, ", shown=mark": 1.0, ", shown=mark, zeros=mark": 0.5}


def test_tables_hold_the_law_of_marks():
    """f_1(withheld) / f_0(withheld), with Poisson others."""
    tables, rate = count_tables(AS_MARK, M), np.exp(-1.2)
    law = stats.poisson(rate)
    within, without = law.cdf(3), law.cdf(4) - law.pmf(0)
    found = tables.log_ratio_of(np.zeros(1, np.int32), np.array([-1.2]))
    assert found == pytest.approx(np.log(within / without), abs=1e-3)
    # A cell that is published as 0 rules out; symbol 1 stands for it.
    assert np.isneginf(tables.log_ratio_of(np.ones(1, np.int32), np.array([-1.2])))


@pytest.mark.parametrize("mechanism", [AS_MARK, ALL_MARKED], ids=str)
def test_rates_are_found_through_marks(rng, mechanism):
    true = rng.poisson(np.outer(rng.lognormal(0, 0.4, 30), rng.lognormal(0, 0.4, 24)) * 5)
    release = release_of(true, mechanism, rng)
    assert release.withheld.any()
    assert np.exp(fit_rates(release).base).sum() == pytest.approx(true.sum(), rel=0.1)
    expected = (
        release.counts.sum() + (0 if mechanism is ALL_MARKED else 2.5) * release.withheld.sum()
    )
    assert filled(release).sum() == pytest.approx(expected)
    mean = estimate_marginals(release, rng=rng).mean_visits
    assert mean == pytest.approx(true.sum() / M, rel=0.2)


def test_features_tell_counts_from_marks(rng):
    """Of pairs and of single groups, the same as of the dense symbols."""
    symbols = rng.integers(0, 5, (6, 9)).astype(np.uint8)
    features = Features(9, withholds=True)
    found = features.matrix(CountMatrix.single(symbols.T.copy())).dense()
    assert found[:, :9].tolist() == np.maximum(symbols.astype(int) - 1, 0).tolist()
    assert found[:, 9:].tolist() == (symbols == 0).astype(int).tolist()
    chosen = np.array([2, 3, 11, 17])
    assert features.cells(chosen).tolist() == [2, 3, 8]
    some = features.of(symbols[:, features.cells(chosen)], chosen)
    assert some.tolist() == found[:, chosen].tolist()


@pytest.fixture(scope="module")
def reference():
    rng = np.random.default_rng(5)
    rows = [np.sort(rng.choice(N_CELLS, 12, replace=False)) for _ in range(90)]
    indptr = np.arange(91) * 12
    users = tuple(f"u{i:02}" for i in range(90))
    return Traces(users, indptr, np.concatenate(rows).astype(np.int32), REGIONS, EPOCHS)


@pytest.mark.parametrize(
    "spec", ["suppress(k=2, shown=mark)", "suppress(k=1, shown=mark) | laplace(eps=9)"]
)
def test_pairs_of_groups_keep_their_marks(reference, spec):
    """By tables, and by the general way: changes of pairs lead to what single groups are."""
    target = np.arange(0, 60, 3, dtype=np.int32)
    sampler = GroupSampler(reference, target, 40, Mechanism.parse(spec))
    made = sampler.sample(8, "paired", np.random.default_rng(1))
    symbols = made.counts.dense()
    assert (symbols == 0).any()
    found = sampler.features.matrix(made.counts).dense()
    plain = sampler.features.matrix(CountMatrix.single(symbols.T.copy())).dense()
    assert np.array_equal(found, plain)


@pytest.mark.parametrize(
    "spec", ["knock-knock(groups=60)", "log-likelihood", "zero-knowledge(reference=200, groups=60)"]
)
def test_other_attacks_find_marked_people(reference, spec):
    """A target with 25 visits to cells where hardly anybody else goes."""
    rng = np.random.default_rng(3)
    mechanism = Mechanism.parse("suppress(k=9, shown=mark)")
    cells = np.sort(rng.choice(N_CELLS, 25, replace=False)).astype(np.int32)
    facts = Facts(REGIONS, EPOCHS, 40, mechanism)
    auxiliary = Auxiliary(reference=reference)
    fitted = Attack.parse(spec).fit(facts, visits_of_one(cells, REGIONS, EPOCHS), auxiliary, seed=2)
    scores = []
    for inside in (True, False):
        true = reference.counts(rng.choice(90, 40 - inside, replace=False)).reshape(-1)
        true[cells] += inside
        scores.append(fitted.score(release_of(true, mechanism, rng, 40)).score)
    assert scores[0] > scores[1]


def test_past_releases_with_marks(reference):
    rng = np.random.default_rng(4)
    mechanism = Mechanism.parse("suppress(k=9, shown=mark)")
    cells = np.sort(rng.choice(N_CELLS, 25, replace=False)).astype(np.int32)

    def publish(inside):
        true = reference.counts(rng.choice(90, 40 - inside, replace=False)).reshape(-1)
        true[cells] += inside
        return release_of(true, mechanism, rng, 40)

    past = [PastRelease(publish(inside), inside) for inside in [True, False] * 20]
    facts = past[0].release.facts
    fitted = Attack.parse("knock-knock-past-groups").fit(
        facts, Places.of_one((0,)), Auxiliary(past=past), seed=1
    )
    chosen = fitted.decision.cells
    assert (chosen >= N_CELLS).any(), "it looks at marks"
    inside, outside = (np.mean([fitted.score(publish(i)).score for _ in range(10)]) for i in (1, 0))
    assert inside > outside


def test_marks_do_not_rule_out_and_zeros_do(rng):
    true = np.zeros(N_CELLS, np.int64)
    true[:3] = (0, 2, 9)
    release = release_of(true, AS_MARK, rng)
    assert release.values.reshape(-1)[:3].tolist() == [0, WITHHELD, 9]
    rule = Attack.parse("contradiction-rule")
    for cells, certain in (([0, 1], True), ([1, 2], False)):
        knowledge = visits_of_one(cells, REGIONS, EPOCHS)
        fitted = rule.fit(release.facts, knowledge, Auxiliary(), seed=0)
        assert fitted.score(release).is_certain == certain


def test_a_mark_beyond_the_tables_is_as_likely_as_at_their_end():
    """A mark is no count, so that the normal law of large counts says nothing about it."""
    tables = count_tables(Mechanism.parse("suppress(k=4, shown=mark)"), 1000)
    mark, end = np.zeros(2, np.int32), np.log(tables.rates[-1])
    near, far = tables.log_ratio_of(mark, np.array([end - 1e-9, end + 2.0]))
    assert far == pytest.approx(near, abs=1e-6)
    chances = kernels.sum_log_chances(
        mark[:, None], np.array([[end - 1e-9], [end + 2.0]]), np.zeros((2, 1)), *tables.of_chances
    )
    assert chances[1, 0] == pytest.approx(chances[0, 0], abs=1e-4)
    assert chances[0, 0] < -50
