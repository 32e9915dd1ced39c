"""The likelihood ratio against its plainest form, on the same releases: where numbers differ, why.

    whosthere simulate milan-like --users 10000 --seed 1 --out city
    whosthere ingest city/records.parquet --regions city/regions.csv --out milan.parquet
    python benchmarks/plainest.py milan.parquet --visits 5 --spec 'suppress(k=5)'
    python benchmarks/plainest.py milan.parquet --visits 5 --spec 'suppress(k=5)' --joined 24
    python benchmarks/plainest.py mibici.parquet --weeks 17 --draws 8 --spec 'suppress(k=2)'

The plainest form takes rates of region times epoch as values, without a law of their level. Over
two weeks or more it multiplies them by a factor of region and hour of the week: on a grid of
logarithms, normal around 0 with the likeliest spread, by the posterior mean of the logarithm, from
all counts. Rates are fitted as in the product (`kernels.fit_rank_one`). Scores are cut at 50 and
are those of everybody with enough visits. AUC and TPR at 1 % FPR are pooled over all draws, in
brackets their means over draws with standard errors; differences are over draws.
"""

import argparse
from collections.abc import Iterator

import numpy as np
from sklearn.metrics import roc_auc_score, roc_curve

import whosthere as wt
from whosthere import kernels
from whosthere.adversary.count_tables import CountTables, count_tables
from whosthere.adversary.rates import RANK_ONE, fit_rates
from whosthere.adversary.scorer import Asked, Table
from whosthere.data.cells import region_and_epoch
from whosthere.data.epochs import Epochs
from whosthere.data.traces import Group, Traces
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.publish import publish_table
from whosthere.privacy.release import Release
from whosthere.privacy.scheme import Layout

CUT, FPR = 50.0, 0.01
GRID = np.linspace(np.log(0.05), np.log(20), 61)
SPREADS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.2, 1.4)


def log_factors(
    symbols: np.ndarray, log_rates: np.ndarray, tables: CountTables, epochs: Epochs
) -> np.ndarray:
    """Return plain factors of region and hour of the week at each cell, as logarithms."""
    hours = [start.weekday() * 24 + start.hour for start in epochs.local_starts]
    hour = np.unique(hours, return_inverse=True)[1]
    by_hour = np.stack([
        kernels.sum_log_chances(
            np.ascontiguousarray(symbols[:, hour == one], np.int32),
            np.ascontiguousarray(log_rates[:, hour == one]),
            np.tile(GRID, (len(symbols), 1)),
            *tables.of_chances,
        )
        for one in range(hour.max() + 1)
    ])  # fmt: skip
    chance = np.exp(by_hour - by_hour.max(axis=2, keepdims=True))
    laws = [np.exp(-((GRID / spread) ** 2) / 2) for spread in SPREADS]
    law = max(laws, key=lambda one: np.log(chance @ (one / one.sum())).sum())
    weight = chance * law
    return ((weight @ GRID) / weight.sum(axis=2)).T[:, hour]


def scores(release: Release, people: Traces) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the scores of everybody, by what is left of the likelihood ratio."""
    table, base = Table.of(release), fit_rates(release, RANK_ONE).base
    tables = count_tables(release.mechanism, release.facts.most_count)
    yield "product", table.score(Asked.of(table.rows(people), table.lines))
    person = np.repeat(np.arange(people.n_users), np.diff(people.indptr))

    def of_values(log_rates: np.ndarray) -> np.ndarray:
        terms = tables.log_ratio_of(release.symbols.reshape(-1)[people.cells], log_rates)
        return np.bincount(person, np.maximum(terms, -1e6), people.n_users)

    yield "without levels", of_values(table.at(people.cells)[1])
    at = region_and_epoch(people.cells, people.epochs.n)
    yield "plain, without factors of hours", of_values(base[at])
    if (table.rates.at_cells != table.rates.base).any():
        by_hour = log_factors(release.symbols, base, tables, release.epochs)
        yield "plain", of_values((base + by_hour)[at])


def measures(labels: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """Return AUC and TPR at 1 % FPR over everybody."""
    false, true, _ = roc_curve(labels, values)
    return roc_auc_score(labels, values), true[false <= FPR].max()


def main() -> None:
    """Print a table for each protection."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("traces")
    parser.add_argument("--weeks", type=int, help="the first so many weeks; all of the time")
    usual = (("joined", 1), ("group", 1000), ("draws", 4), ("visits", 20))
    for name, value in usual:
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--spec", action="append", required=True)
    options = parser.parse_args()
    traces = wt.Traces.load(options.traces)
    asked = np.flatnonzero(traces.visits_per_user() >= options.visits)
    traces = Layout(times=options.weeks, epochs=options.joined)(traces)
    people = traces.select(asked)
    for spec in options.spec:
        drawn: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
        for draw in range(options.draws):
            rng = np.random.default_rng(draw)
            rows = np.sort(rng.choice(traces.n_users, options.group, replace=False))
            group, mechanism = Group(traces, rows), Mechanism.parse(spec)
            release = publish_table(group, mechanism, bounding=rng, noise=rng).release
            for name, values in scores(release, people):
                one = np.isin(asked, rows), values.clip(-CUT, CUT)
                drawn.setdefault(name, []).append(one)
        print(f"\n| `{spec}` | AUC / TPR | by draw | difference |\n|---|---|---|---|")
        first = np.array([measures(*one) for one in drawn["product"]])
        for name, each in drawn.items():
            auc, tpr = measures(*map(np.concatenate, zip(*each, strict=True)))
            by_draw = np.array([measures(*one) for one in each])
            shown = []
            for values, sign in ((by_draw, ""), (by_draw - first, "+")):
                error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
                mean = values.mean(axis=0)
                shown.append(
                    f"{mean[0]:{sign}.4f} ± {error[0]:.4f} / {mean[1]:{sign}.3f} ± {error[1]:.3f}"
                )
            print(f"| {name} | {auc:.3f} / {tpr:.3f} | {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    main()
