"""Variants of the likelihood ratio that were tried, on the same releases, as a Markdown table.

    python benchmarks/likelihood_variants.py --data milan-like --reference-size 2500
    python benchmarks/likelihood_variants.py --data traces.parquet --group-size 500

The columns are mean AUCs over targets:
  LR           as it is: Poisson, rates fitted to the release, region times epoch
  no shrink    sums taken as they are, however noisy
  reference    rates shaped by reference traces
  true rates   the population's own mean of every cell: what no attacker has
  overdispersed  negative binomial counts of dispersion 16 and 4 instead of Poisson ones
  covariance   a linear test with the population's own covariance between the target's cells
               (noise only): what no attacker has either
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
from scipy.special import gammaln

from compare_attacks import SETTINGS, auc, chosen_targets, population, test_releases
from whosthere.adversary import published, rates
from whosthere.adversary.published import PublishedCounts, published_counts
from whosthere.data.traces import Traces
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.release import Release

DISPERSIONS = (16.0, 4.0)


def overdispersed(mechanism: Mechanism, m: int, dispersion: float) -> PublishedCounts:
    """Make the tables of negative binomial counts with variance rate + rate^2 / dispersion."""

    def chances(n: np.ndarray, by_rate: np.ndarray) -> np.ndarray:
        r, mean = dispersion, by_rate[:, None]
        log_chance = gammaln(n + r) - gammaln(r) - gammaln(n + 1.0)
        return np.exp(log_chance + r * np.log(r / (r + mean)) + n * np.log(mean / (r + mean)))

    usual = published._poisson
    try:
        published._poisson = chances
        return published_counts.__wrapped__(mechanism, m)
    finally:
        published._poisson = usual


def unshrunk_rates(release: Release) -> rates.Rates:
    """Fit rates to the sums as they are."""
    usual = published_counts(release.mechanism, release.group_size)
    quiet = replace(usual, empty_variance=0.0)
    original = rates.published_counts
    try:
        rates.published_counts = lambda *_: quiet
        return rates.fit_rates(release)
    finally:
        rates.published_counts = original


def linear_weights(traces: Traces, target: int, cells: np.ndarray, m: int, noise: float) -> tuple:
    """Return the weights and centre of the best linear test, from everybody's traces."""
    at = np.full(traces.n_cells, -1)
    at[cells] = np.arange(cells.size)
    row = np.repeat(np.arange(traces.n_users), traces.visits_per_user())
    column = at[traces.cells]
    visits = np.zeros((traces.n_users, cells.size), np.float32)
    visits[row[column >= 0], column[column >= 0]] = 1
    visits = np.delete(visits, target, axis=0)
    covariance = np.cov(visits.T).reshape(cells.size, -1) * m + noise * np.eye(cells.size)
    return np.linalg.solve(covariance, np.ones(cells.size)), visits.mean(axis=0) * m


def scores_of_target(
    traces: Traces, target: int, mechanism: Mechanism, options: argparse.Namespace
) -> dict:
    """Return the AUC of every variant for one target."""
    rng = np.random.default_rng([options.seed, 2, target])
    others = np.setdiff1d(rng.permutation(traces.n_users), target, assume_unique=True)
    reference, pool = np.split(others, [options.reference_size or traces.n_users // 2])
    everybody = mechanism.bound(traces.select(np.append(pool, target)), rng).traces
    m = options.group_size
    releases, labels, _ = test_releases(everybody, mechanism, m, options.releases, rng)
    cells = traces.trace(target)
    tables = published_counts(mechanism, m)
    shape = rates.reference_shape(traces.select(reference))
    population_mean = traces.counts().reshape(-1)[cells] - 1.0
    true_rates = np.log(np.maximum(population_mean / (traces.n_users - 1) * (m - 1), 1e-3))
    wide = {f"overdispersed {d:g}": overdispersed(mechanism, m, d) for d in DISPERSIONS}
    scores: dict[str, list[float]] = {}

    def note(name: str, values: np.ndarray) -> None:
        scores.setdefault(name, []).append(float(np.maximum(values, -1e6).sum()))

    for release in releases:
        counts = release.counts.reshape(-1)[cells]
        fitted = rates.fit_rates(release).log_rates(cells)
        note("LR", tables.log_ratio_of(counts, fitted))
        note("no shrink", tables.log_ratio_of(counts, unshrunk_rates(release).log_rates(cells)))
        shaped = rates.fit_rates(release, shape).log_rates(cells)
        note("reference", tables.log_ratio_of(counts, shaped))
        note("true rates", tables.log_ratio_of(counts, true_rates))
        for name, others_tables in wide.items():
            note(name, others_tables.log_ratio_of(counts, np.minimum(fitted, np.log(250))))
        if mechanism.noise_steps and len(mechanism.steps) == 1:
            noise = 2 * mechanism.noise_steps[0].scale ** 2
            weights, centre = linear_weights(traces, target, cells, m, noise)
            note("covariance", weights * (counts - centre))
    return {name: auc(np.array(values), labels) for name, values in scores.items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="milan-like")
    parser.add_argument("--targets", type=int, default=30)
    parser.add_argument("--releases", type=int, default=20)
    parser.add_argument("--group-size", type=int, default=1_000)
    parser.add_argument("--reference-size", type=int)
    parser.add_argument("--min-visits", type=int, default=10)
    parser.add_argument("--bound", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    traces = population(options.data, options.seed)
    names = ["LR", "no shrink", "reference", "true rates"]
    names += [f"overdispersed {d:g}" for d in DISPERSIONS] + ["covariance"]
    print(f"| setting | {' | '.join(names)} |")
    print("|---" * (len(names) + 1) + "|")
    for setting in SETTINGS:
        spec = setting.replace("BOUND", str(options.bound))
        targets = chosen_targets(traces, options.min_visits, options.targets, options.seed)
        found = [scores_of_target(traces, t, Mechanism.parse(spec), options) for t in targets]
        cells = [f"{np.mean([f[n] for f in found]):.3f}" if n in found[0] else "" for n in names]
        shown = spec.replace("|", "\\|")
        print(f"| `{shown}` | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
