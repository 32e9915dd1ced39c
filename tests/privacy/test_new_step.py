"""A step that nobody knew of works everywhere: in specs, releases, attacks and ceilings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import ClassVar

import numpy as np
import pytest
from scipy import stats

from whosthere.adversary.count_tables import count_tables
from whosthere.adversary.marginals import empirical, estimate_marginals
from whosthere.adversary.rates import fit_rates
from whosthere.data.epochs import Epochs
from whosthere.data.regions import Regions
from whosthere.privacy.facts import Facts
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.noise import Gaussian, Laplace
from whosthere.privacy.release import Release
from whosthere.privacy.rounding import RandomRound, Round, Suppress
from whosthere.privacy.shapes import ChanceTable, Choices
from whosthere.specs import NUMBER, Catalogue, content, parameter


@dataclass(frozen=True)
class Jitter(ChanceTable):
    """Counts above 0 move by one, down or up, with a given chance.

    With a chance of 0.8 the likelihood ratios are not monotone, so this is the hard case.
    """

    chance: float = parameter(NUMBER, "chance to move", ladder=(0.1, 0.5, 0.9))
    name: ClassVar[str] = "jitter"
    example: ClassVar[str] = "jitter(chance=0.5)"
    summary: ClassVar[str] = "move counts by one at random"

    def choices(self, values, within):
        around = np.stack([values - 1, values, values + 1], axis=-1)
        half = np.where(values > 0, self.chance / 2, 0.0)
        chances = np.stack([half, 1 - 2 * half, half], axis=-1)
        return Choices(np.clip(around, *within).astype(np.int32), chances)

    def describe(self):
        return f"Counts above 0 move by one with a chance of {self.chance:g}."


M = 9
JITTER = Jitter(0.8)
CHAINS = [
    (JITTER,),
    (Suppress(1), JITTER),
    (JITTER, Suppress(1)),
    (JITTER, Round(3)),
    (JITTER, Jitter(0.3)),
    (RandomRound(2), JITTER),
    (JITTER, Laplace(1)),
    (Laplace(1), JITTER),
    (Gaussian(3), JITTER, Suppress(2)),
    (JITTER, Laplace(2), JITTER),
    (RandomRound(3),),
    (Laplace(1), RandomRound(3)),
]
chains = pytest.mark.parametrize("steps", CHAINS, ids=lambda steps: str(Mechanism(steps)))


def matrix(steps, m=M):
    """P(published | true) as the product of the steps' own matrices."""
    counts = np.arange(m + 1)
    product = np.eye(m + 1)
    for step in steps:
        if isinstance(step, Jitter):
            own = np.zeros((m + 1, m + 1))
            own[0, 0] = 1
            for n in range(1, m + 1):
                own[n, n] += 1 - step.chance
                own[n, n - 1] += step.chance / 2
                own[n, min(n + 1, m)] += step.chance / 2
        else:
            own = Mechanism((step,)).pmf(counts, counts[:, None], m)
        product = product @ own
    return product


def test_specs():
    catalogue = Catalogue.of("mechanism", Jitter)
    assert catalogue.parse("JITTER(chance = .8)") == JITTER
    assert str(JITTER) == "jitter(chance=0.8)"
    assert str(Mechanism((Suppress(1), JITTER))) == "suppress(k=1) | jitter(chance=0.8)"
    assert content(JITTER) != content(Jitter(0.7))
    assert catalogue.kinds["jitter"].parameters[0].ladder == (0.1, 0.5, 0.9)


def test_descriptions():
    mechanism = Mechanism((JITTER,))
    assert mechanism.guarantee is None
    assert mechanism.units == ()
    assert mechanism.changes_counts
    assert "with a chance of 0.8" in mechanism.describe()
    assert "no formal guarantee" in mechanism.describe()
    assert Mechanism((Laplace(1), JITTER)).guarantee.eps == 1


@chains
def test_chances(steps):
    counts = np.arange(M + 1)
    found = Mechanism(steps).pmf(counts, counts[:, None], M)
    np.testing.assert_allclose(found, matrix(steps), atol=1e-12)


@chains
def test_published_counts_follow_the_chances(steps):
    """Chi-square of 40,000 cells for each of four counts; false alarm rate 1e-5."""
    rng, mechanism = np.random.default_rng(8), Mechanism(steps)
    for true in (0, 1, 5, M):
        published = mechanism.apply(np.full((200, 200), true), M, rng)
        observed = np.bincount(published.ravel(), minlength=M + 1)
        expected = published.size * matrix(steps)[true]
        used = expected > 1e-9
        assert not observed[~used].any()
        if used.sum() > 1:
            statistic = ((observed[used] - expected[used]) ** 2 / expected[used]).sum()
            assert stats.chi2.sf(statistic, used.sum() - 1) > 1e-5 / 4


@chains
def test_tables_of_the_likelihood_ratio(steps):
    """f_1(a) / f_0(a) with f_j(a) = sum over n of P(n) P(a | n + j), n below m."""
    tables = count_tables(Mechanism(steps), M)
    law = matrix(steps)
    place = 130
    rate = math.exp(tables.first + place * tables.step)
    others = stats.poisson.pmf(np.arange(M), rate)
    others /= others.sum()
    without, within = others @ law[:-1], others @ law[1:]
    assert tables.mean[place] == pytest.approx(without @ np.arange(M + 1))
    found = tables.log_ratio_of(np.arange(M + 1), np.full(M + 1, math.log(rate)))
    possible = (without > 1e-12) & (within > 1e-12)
    expected = np.log(within[possible] / without[possible])
    np.testing.assert_allclose(found[possible], expected, atol=1e-9)


def test_estimates_from_a_release(rng):
    regions = Regions([f"r{i}" for i in range(12)])
    epochs = Epochs(datetime(2024, 1, 1, tzinfo=UTC), timedelta(hours=1), 24)
    mechanism = Mechanism((JITTER, Suppress(1)))
    true = rng.poisson(np.outer(rng.lognormal(0, 0.5, 12), rng.lognormal(0, 0.5, 24)) * 2)
    facts = Facts(regions, epochs, 100, mechanism)
    release = Release(mechanism.apply(true, 100, rng), facts)
    assert empirical(release).mean_visits < true.sum() / 100
    # The same trip by rates, and by imitation: both see that suppression took visits away.
    assert np.exp(fit_rates(release).base).sum() == pytest.approx(true.sum(), rel=0.15)
    found = estimate_marginals(release, rng=rng)
    assert found.mean_visits > empirical(release).mean_visits
