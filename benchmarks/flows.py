"""Origin-destination tables of bike trips: what rates by origin and destination are worth.

Trips between pairs of stations, in total and by week, day and hour. Each release is scored for
everybody by the likelihood ratio with rates

- by pair: a factor of the pair times one of the epoch, as for any other regions;
- flows: factors of origins, destinations and epochs, as the product has them.

    python benchmarks/flows.py TRIPS.parquet > benchmarks/results/flows.csv
    python benchmarks/flows.py TRIPS.parquet --certainty
    python benchmarks/flows.py TRIPS.parquet --structure

TRIPS has the columns user, timestamp (Unix seconds) and station, two rows for each trip. People are
counted once in a cell. AUC and TPR at 1 % FPR are over everybody with 20 trips or more, with scores
cut at +- 50, mean over releases; errors are standard errors over releases. `--structure` looks for
what the product's rates leave out: components of origins, of destinations and of pairs by epochs.
It prints the largest singular value of each, as a share of what noise alone stays below.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from scipy.linalg import svdvals

import whosthere as wt
from few_epochs import EVENT, MOST, M, auc_and_tpr, mean_auc
from whosthere.adversary.attacks import LikelihoodRatio
from whosthere.adversary.components import edge_of
from whosthere.adversary.rates import Seen, fit_rates
from whosthere.data.traces import Group
from whosthere.game.optimum import log_ratios
from whosthere.privacy.facts import Facts
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.publish import publish_table
from whosthere.privacy.release import Release
from whosthere.privacy.scheme import Layout

if TYPE_CHECKING:
    from collections.abc import Iterator

SEED, HOURS = 5, 24 * 7 * 17
TABLES = {
    "in total": (0, 121 * 24, 121 * 24),
    "17 weeks": (0, HOURS, 168),
    "119 days": (0, HOURS, 24),
    "168 hours in March": (24 * 60, 168, 1),
}
"""The first hour, how many hours, and how many of them make an epoch."""
PROTECTIONS = ("suppress(k=1)", "suppress(k=2)", "suppress(k=5)", "random-round(to=3)", EVENT)


def by_pair(release, people) -> np.ndarray:
    """Score with pairs that are regions like any others."""
    plain = wt.Regions(release.regions.ids)
    facts = Facts(plain, release.epochs, release.group_size, release.mechanism)
    return LikelihoodRatio().score_everybody(
        Release(release.values, facts), replace(people, regions=plain)
    )


def flows(release, people) -> np.ndarray:
    return LikelihoodRatio().score_everybody(release, people)


def measured(table, spec, traces, who, n_releases) -> Iterator[dict[str, object]]:
    """Yield a row for each way to score, with differences on the same releases."""
    people, mechanism = traces.select(who), Mechanism.parse(spec)
    found, kept, labels, seconds = {}, {}, [], {}
    for i in range(n_releases):
        rng = np.random.default_rng([SEED, i])
        rows = rng.choice(traces.n_users, M, replace=False).astype(np.int64)
        release = publish_table(Group(traces, rows), mechanism, bounding=rng, noise=rng).release
        labels.append(np.isin(who, rows))
        for score in (by_pair, flows):
            begun = time.process_time()
            scores = np.clip(score(release, people), -MOST, MOST)
            seconds[score] = seconds.get(score, 0.0) + time.process_time() - begun
            found.setdefault(score, []).append(auc_and_tpr(scores, labels[-1]))
            kept.setdefault(score, []).append(scores)
    for score, each in found.items():
        values, more = np.array(each), np.array(each) - np.array(found[by_pair])
        error, paired = (one.std(axis=0, ddof=1) / np.sqrt(n_releases) for one in (values, more))
        yield {
            "table": table,
            "protection": spec,
            "rates": score.__name__,
            "auc": values[:, 0].mean(),
            "auc_error": error[0],
            "tpr_at_fpr_1pct": values[:, 1].mean(),
            "tpr_error": error[1],
            "mean_auc": mean_auc(np.array(kept[score]), np.array(labels)),
            "auc_more": more[:, 0].mean(),
            "auc_more_error": paired[0],
            "tpr_more": more[:, 1].mean(),
            "tpr_more_error": paired[1],
            "people": who.size,
            "visits": np.median(people.visits_per_user()),
            "releases": n_releases,
            "seconds": seconds[score] / n_releases,
        }


def certainty(hours, n_releases) -> Iterator[dict[str, object]]:
    """Yield how often a test of one week is right that knows only the table, or all others too.

    With Laplace noise of scale 1/0.66 and nothing removed, as Houssiau and others attacked it.
    """
    traces = Layout(epochs=168)(hours.between(24 * 60, 168))
    mechanism, trips = Mechanism.parse("laplace(eps=0.66, unit=event)"), traces.visits_per_user()
    person = np.repeat(np.arange(traces.n_users), trips)
    rows_of = {"5 to 9": (5, 9), "10 to 14": (10, 14), "15 or more": (15, 10**6)}
    found = {(who, of): [] for who in ("the table", "all others") for of in rows_of}
    for i in range(n_releases):
        rng = np.random.default_rng([SEED, i])
        rows = rng.choice(traces.n_users, M, replace=False).astype(np.int64)
        table = publish_table(Group(traces, rows), mechanism, bounding=rng, noise=rng)
        inside = np.isin(np.arange(traces.n_users), rows)
        others = table.counts.reshape(-1)[traces.cells] - inside[person].astype(np.int32)
        symbols = table.release.symbols.reshape(-1)[traces.cells]
        ratios = log_ratios(mechanism, symbols, others.astype(np.int32), M)
        scores = {
            "the table": flows(table.release, traces),
            "all others": np.bincount(person, ratios, traces.n_users),
        }
        for (who, of), each in found.items():
            some = (trips >= rows_of[of][0]) & (trips <= rows_of[of][1])
            right = (scores[who] > 0)[some] == inside[some]
            each.append(np.mean([right[inside[some] == side].mean() for side in (False, True)]))
    for (who, of), each in found.items():
        low, high = rows_of[of]
        yield {
            "trips": of,
            "knows": who,
            "right": np.mean(each),
            "error": np.std(each, ddof=1) / np.sqrt(n_releases),
            "people": int(((trips >= low) & (trips <= high)).sum()),
            "releases": n_releases,
        }


def structure(table, spec, traces, n_releases) -> Iterator[dict[str, object]]:
    """Yield how far what the rates leave out stands out of noise; 1 is the edge."""
    pairs = traces.regions
    ends = {"origins": pairs.origins, "destinations": pairs.destinations,
            "pairs": np.arange(len(pairs))}  # fmt: skip
    found = {name: [] for name in ends}
    for i in range(n_releases):
        rng = np.random.default_rng([SEED, i])
        rows = rng.choice(traces.n_users, M, replace=False).astype(np.int64)
        made = publish_table(Group(traces, rows), Mechanism.parse(spec), bounding=rng, noise=rng)
        seen, base = Seen(made.release), fit_rates(made.release).base
        none_moved = np.zeros((1, 1), np.float32)
        of_cells, *_ = seen.completion.residuals(seen.symbols, base, none_moved)
        deviation = seen.completion.relative_deviations(base) * np.exp(base)
        place = (base - seen.tables.first) / seen.tables.step
        weight = np.interp(place, np.arange(seen.completion.weight.size), seen.completion.weight)
        for name, end in ends.items():
            parts = [_by_end(one, end) for one in
                     (of_cells * deviation, deviation**2, weight * deviation**2)]  # fmt: skip
            varies = parts[2] / parts[1]
            edge = edge_of(varies.sum(axis=1), varies.sum(axis=0))
            found[name].append(svdvals(parts[0] / np.sqrt(parts[1]))[0] / edge)
    yield {"table": table, "protection": spec} | {
        f"{name} by epochs": float(np.max(each)) for name, each in found.items()
    }


def _by_end(values: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Add up rows of pairs with the same end."""
    found = np.zeros((int(end.max()) + 1, values.shape[1]))
    np.add.at(found, end, values)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trips")
    parser.add_argument("--releases", type=int, default=8)
    parser.add_argument("--table", choices=TABLES, action="append")
    parser.add_argument("--certainty", action="store_true", help="only how often tests are right")
    parser.add_argument("--structure", action="store_true", help="only what rates leave out")
    given = parser.parse_args()
    hours = wt.read_records(
        given.trips,
        flows="ends(counts=people)",
        region_column="station",
        timezone="America/Mexico_City",
        start="2016-01-01",
        end="2016-05-01T01:00",
    )
    if given.certainty:
        pl.DataFrame(certainty(hours, given.releases)).write_csv(sys.stdout, float_precision=4)
        return
    who = np.flatnonzero(hours.visits_per_user() >= 20)
    first_one = True
    for table in given.table or TABLES:
        first, n, joined = TABLES[table]
        traces = Layout(epochs=joined)(hours.between(first, n))
        for spec in PROTECTIONS:
            if given.structure:
                found = structure(table, spec, traces, given.releases)
            else:
                found = measured(table, spec, traces, who, given.releases)
            rows = pl.DataFrame(found)
            rows.write_csv(sys.stdout, include_header=first_one, float_precision=4)
            first_one = False
            sys.stdout.flush()


if __name__ == "__main__":
    main()
