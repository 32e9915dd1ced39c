"""Variants of the likelihood ratio that were tried, as attacks of our own in an ordinary audit.

    python benchmarks/likelihood_variants.py milan-like.parquet benchmarks/plans/milan-like.toml
    python benchmarks/likelihood_variants.py tdrive.parquet PLAN --crowd

Prints mean AUCs over targets; with --crowd, AUCs and TPRs over all targets together as well.
  likelihood-ratio   as it is: Poisson, rates fitted to the release
  ...(rates=rank-one)  rates that are region times epoch and nothing more
  no-shrink          sums taken as they are, however noisy
  ...-reference      rates shaped by reference traces
  true-rates         the population's own mean of every cell: what no attacker has
  overdispersed      negative binomial counts of dispersion 16 and 4 instead of Poisson ones
  covariance         a linear test with the population's own covariance between the target's cells
                     (noise only): what no attacker has either
With --crowd, all with low rank on top, and on raw counts only:
  profile            cells drawn towards their region's mean at the same hour of the day or week
  smooth             cells drawn towards the hour before and after
  neighbours         cells drawn towards the regions around
  tempered           scores divided by how much more than chance the counts at the target's visits,
                     shifted in time, vary
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np
from scipy.ndimage import uniform_filter1d
from scipy.spatial import cKDTree
from scipy.special import gammaln

import whosthere as wt
from tables import markdown
from whosthere import kernels
from whosthere.adversary import count_tables as law
from whosthere.adversary import rates
from whosthere.attacks import Answer, Attack, FittedAttack, LikelihoodRatio, NotApplicableError

Score = Callable[[wt.Release, np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Sum(FittedAttack):
    """Adds up what a test says about each of the target's cells."""

    cells: np.ndarray
    by_cell: Score

    def score(self, release: wt.Release) -> Answer:
        counts = release.counts.reshape(-1)[self.cells]
        return Answer(float(np.maximum(self.by_cell(release, counts), -1e6).sum()), 0.0)


@dataclass(frozen=True)
class NoShrink(Attack):
    """Rates are fitted to the sums as they are."""

    name: ClassVar[str] = "no-shrink"
    summary: ClassVar[str] = "the likelihood ratio without drawing noisy sums together"

    def fit(self, facts, knowledge, auxiliary, *, seed) -> FittedAttack:
        cells = knowledge.cells
        tables = law.count_tables(facts.mechanism, facts.group_size)
        quiet = replace(tables, empty_variance=0.0)

        def by_cell(release: wt.Release, counts: np.ndarray) -> np.ndarray:
            usual = rates.count_tables
            try:
                rates.count_tables = lambda *_: quiet
                fitted = rates.fit_rates(release)
            finally:
                rates.count_tables = usual
            return tables.log_ratio_of(counts, fitted.at_cells.reshape(-1)[cells])

        return Sum(cells, by_cell)


@dataclass(frozen=True)
class Overdispersed(Attack):
    """Counts are negative binomial with variance rate + rate^2 / dispersion."""

    dispersion: float

    name: ClassVar[str] = "overdispersed"
    summary: ClassVar[str] = "the likelihood ratio with negative binomial counts"

    def fit(self, facts, knowledge, auxiliary, *, seed) -> FittedAttack:
        cells = knowledge.cells
        tables = wide_tables(facts.mechanism, facts.group_size, self.dispersion)

        def by_cell(release: wt.Release, counts: np.ndarray) -> np.ndarray:
            fitted = rates.fit_rates(release).at_cells.reshape(-1)[cells]
            return tables.log_ratio_of(counts, np.minimum(fitted, np.log(250)))

        return Sum(cells, by_cell)


@dataclass(frozen=True)
class TrueRates(Attack):
    """The rates are the population's own, which no attacker has."""

    path: str

    name: ClassVar[str] = "true-rates"
    summary: ClassVar[str] = "the likelihood ratio with the population's own rates"

    def fit(self, facts, knowledge, auxiliary, *, seed) -> FittedAttack:
        cells, everybody = knowledge.cells, population(self.path)
        tables = law.count_tables(facts.mechanism, facts.group_size)
        mean = (everybody.counts().reshape(-1)[cells] - 1.0) / (everybody.n_users - 1)
        log_rates = np.log(np.maximum(mean * (facts.group_size - 1), 1e-3))
        return Sum(cells, lambda _, counts: tables.log_ratio_of(counts, log_rates))


@dataclass(frozen=True)
class Covariance(Attack):
    """The best linear test, with the population's own covariance, which no attacker has."""

    path: str

    name: ClassVar[str] = "covariance"
    summary: ClassVar[str] = "a linear test with the population's own covariance"

    def check(self, facts, knowledge, auxiliary) -> None:
        super().check(facts, knowledge, auxiliary)
        if len(facts.mechanism.steps) != 1 or not facts.mechanism.units:
            raise NotApplicableError("the linear test is for noise alone")

    def fit(self, facts, knowledge, auxiliary, *, seed) -> FittedAttack:
        cells, everybody = knowledge.cells, population(self.path)
        noise = 2 * facts.mechanism.steps[0].scale ** 2
        at = np.full(everybody.n_cells, -1)
        at[cells] = np.arange(cells.size)
        row = np.repeat(np.arange(everybody.n_users), everybody.visits_per_user())
        column = at[everybody.cells]
        visits = np.zeros((everybody.n_users, cells.size), np.float32)
        visits[row[column >= 0], column[column >= 0]] = 1
        m = facts.group_size
        covariance = np.cov(visits.T).reshape(cells.size, -1) * m + noise * np.eye(cells.size)
        weights = np.linalg.solve(covariance, np.ones(cells.size))
        centre = visits.mean(axis=0) * m
        return Sum(cells, lambda _, counts: weights * (counts - centre))


class RawOnly(Attack):
    """What was tried on raw counts only."""

    def check(self, facts, knowledge, auxiliary) -> None:
        super().check(facts, knowledge, auxiliary)
        if facts.mechanism.changes_counts:
            raise NotApplicableError("tried on raw counts only")


@dataclass(frozen=True)
class Pooled(RawOnly):
    """Rates are drawn towards those of cells that may be alike, as far as these vary alike."""

    def fit(self, facts, knowledge, auxiliary, *, seed) -> FittedAttack:
        cells = knowledge.cells
        tables = law.count_tables(facts.mechanism, facts.group_size)

        def by_cell(release: wt.Release, counts: np.ndarray) -> np.ndarray:
            plain = np.exp(rates.fit_rates(release, rates.RANK_ONE).base)
            found, expected = (
                self.pooled(values, facts) for values in (release.counts.astype(float), plain)
            )
            beyond_chance = ((found - expected) ** 2 - expected).sum()
            weight = (expected**2).sum() / max(beyond_chance, 1e-9)
            shape = np.log((found + weight) / (expected + weight))
            fitted = rates.fit_rates(release, [shaped(shape), rates.low_rank]).base
            return tables.log_ratio_of(counts, fitted.reshape(-1)[cells])

        return Sum(cells, by_cell)


@dataclass(frozen=True)
class Profile(Pooled):
    """Over the same hour of all days, or of all weeks."""

    hours: int

    name: ClassVar[str] = "profile"
    summary: ClassVar[str] = "rates drawn towards the same hour of other days"

    def pooled(self, values: np.ndarray, facts: wt.Facts) -> np.ndarray:
        period = np.arange(facts.epochs.n) % self.hours
        sums = np.zeros((len(values), self.hours))
        np.add.at(sums.T, period, values.T)
        return sums[:, period]


@dataclass(frozen=True)
class Smooth(Pooled):
    """Over the hour before and after."""

    name: ClassVar[str] = "smooth"
    summary: ClassVar[str] = "rates drawn towards the hours around"

    def pooled(self, values: np.ndarray, facts: wt.Facts) -> np.ndarray:
        return 3 * uniform_filter1d(values, 3, axis=1, mode="nearest")


@dataclass(frozen=True)
class Neighbours(Pooled):
    """Over the four nearest regions."""

    name: ClassVar[str] = "neighbours"
    summary: ClassVar[str] = "rates drawn towards the regions around"

    def pooled(self, values: np.ndarray, facts: wt.Facts) -> np.ndarray:
        positions = facts.regions.positions_km
        return values[cKDTree(positions).query(positions, 5)[1]].sum(axis=1)


@dataclass(frozen=True)
class Tempered(RawOnly):
    """Scores are divided by the dispersion of what the target's visits, shifted in time, say."""

    shifts: int = 100

    name: ClassVar[str] = "tempered"
    summary: ClassVar[str] = "scores divided by the dispersion of shifted visits"

    def fit(self, facts, knowledge, auxiliary, *, seed) -> FittedAttack:
        cells, n = knowledge.cells, facts.epochs.n
        tables = law.count_tables(facts.mechanism, facts.group_size)
        region, epoch = np.divmod(cells, n)
        shifts = np.random.default_rng(seed).integers(1, n, self.shifts)
        elsewhere = region[:, None] * n + (epoch[:, None] + shifts) % n

        def by_cell(release: wt.Release, counts: np.ndarray) -> np.ndarray:
            fitted = rates.fit_rates(release)
            expected = np.exp(fitted.base.reshape(-1)[elsewhere])
            off = release.counts.reshape(-1)[elsewhere] / expected - 1
            dispersion = (off.sum(axis=0) ** 2 / (1 / expected).sum(axis=0)).mean()
            ratios = tables.log_ratio_of(counts, fitted.at_cells.reshape(-1)[cells])
            return ratios / max(dispersion, 1.0)

        return Sum(cells, by_cell)


def shaped(shape: np.ndarray) -> rates.Part:
    """Take factors of cells that differ from region times epoch by a known shape."""

    def part(seen: rates.Seen, so_far: rates.Rates) -> rates.Rates:
        counts, tables = law.filled(seen.release), seen.tables
        rows, columns = (seen.excess(counts.sum(axis=1 - i), counts.shape[1 - i]) for i in (0, 1))
        columns *= rows.sum() / columns.sum()
        expected = tables.mean - tables.empty_mean, tables.first, tables.step
        x, y = kernels.fit_shaped(rows, columns, shape, *expected, 4)
        return so_far.moved(np.add.outer(x, y) + shape)

    return part


@lru_cache
def population(path: str) -> wt.Traces:
    """Load everybody, once for each process."""
    return wt.Traces.load(path)


@lru_cache
def wide_tables(mechanism: wt.mechanisms.Mechanism, m: int, dispersion: float) -> law.CountTables:
    """Make the tables of negative binomial counts."""

    def chances(n: np.ndarray, by_rate: np.ndarray) -> np.ndarray:
        r, mean = dispersion, by_rate[:, None]
        log_chance = gammaln(n + r) - gammaln(r) - gammaln(n + 1.0)
        return np.exp(log_chance + r * np.log(r / (r + mean)) + n * np.log(mean / (r + mean)))

    usual = law._poisson
    try:
        law._poisson = chances
        return law.count_tables.__wrapped__(mechanism, m)
    finally:
        law._poisson = usual


def main() -> None:
    """Audit the variants in the settings of a plan, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("traces")
    parser.add_argument("plan")
    parser.add_argument("--releases", type=int, default=20)
    parser.add_argument("--out", help="folder to keep the audit in")
    parser.add_argument("--crowd", action="store_true", help="what was tried for large groups")
    options = parser.parse_args()
    crowd = [Profile(24), Profile(168), Smooth(), Neighbours(), Tempered()]
    usual = [
        NoShrink(),
        TrueRates(options.traces),
        Overdispersed(16.0),
        Overdispersed(4.0),
        Covariance(options.traces),
    ]
    variants = crowd if options.crowd else usual
    result = wt.audit(
        options.traces,
        plan=options.plan,
        attacks=[LikelihoodRatio(), LikelihoodRatio(rates="rank-one"), *variants],
        releases=options.releases,
        control_releases=0,
        out=options.out,
        # What the variants keep in memory between tasks cannot be sent to other processes.
        workers=1,
    )
    print(markdown(result.scores))
    for metric in ("pooled_auc", "tpr_at_fpr_1pct") if options.crowd else ():
        print(f"\n**{metric}**\n")
        for one in result.findings:
            if one.metric == metric and one.estimate is not None:
                print(f"- {one.setting}, {one.attack}: {one.estimate:.3f}")


if __name__ == "__main__":
    main()
