"""Rates that learn from what is counted around each cell: before and after, on the same releases.

The likelihood ratio with `rates=low-rank` and with `rates=near`, over everybody, m a quarter of all
people. Taxis (4,000 of them, on which near was tuned, and all others on another grid), bikes, New
York, simulated cities (one of a seed that nothing was tuned on), and trips by bike.

    python benchmarks/near.py DATA --out benchmarks/results/near.csv
    python benchmarks/near.py DATA --out benchmarks/results/near.csv --again
    python benchmarks/near.py DATA --out benchmarks/results/near.csv --summary
    python benchmarks/near.py DATA --out benchmarks/results/near_posteriors.csv --posteriors

DATA is the folder of tdrive_beijing_thinned.parquet, mibici_2016_jan_apr.parquet and
foursquare_nyc.parquet. A row is one release with one kind of rates; rows that are there are not
measured again, so whoever stops it can go on. `--again` repeats the cells that lost by more than
two errors, with another seed. `--posteriors` asks instead whether posteriors mean what they say:
for bikes as they are, without people who share visits, and with visits dealt to people anew.
`--summary` prints the tables. Errors are standard errors over releases.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import numpy as np
import polars as pl
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.stats import ttest_1samp

import whosthere as wt
from few_epochs import auc_and_tpr
from whosthere.adversary import near
from whosthere.adversary.rates import LOW_RANK, USUAL, hours_of_week
from whosthere.adversary.scorer import Scorer
from whosthere.arrays import own
from whosthere.data.flows import Pairs
from whosthere.data.traces import Group, Traces
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.publish import publish_table
from whosthere.privacy.scheme import Layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SEED, AGAIN = 1, 2
TWICE = "near, told twice"
"""As it was tried first: with slopes at rates that know neither the levels of trips nor hours of
the week, so that neighbours tell them again. Measured where it makes a difference."""
RATES = {
    "low-rank": (*LOW_RANK, hours_of_week),
    "near": USUAL,
    TWICE: (*LOW_RANK, near.near, hours_of_week),
}
PROTECTIONS = (
    "raw",
    "suppress(k=1)",
    "suppress(k=2)",
    "suppress(k=4)",
    "laplace(eps=0.5, unit=event)",
    "random-round(to=3)",
)
KEY = ["table", "protection", "seed", "round", "rates"]
MEXICO = "America/Mexico_City"
HOURS = 24 * 7 * 17
TRIPS = {
    "trips, in total": (0, 121 * 24, 121 * 24),
    "trips, 17 weeks": (0, HOURS, 168),
    "trips, 119 days": (0, HOURS, 24),
    "trips, 168 hours": (24 * 60, 168, 1),
}
"""The first hour, how many hours, and how many of them make an epoch (as in `flows.py`)."""


def taxis(data: Path, grid: str, users: slice) -> Traces:
    path = data / "tdrive_beijing_thinned.parquet"
    traces = wt.read_records(path, grid=grid, timezone="Asia/Shanghai")
    return traces.select(np.arange(traces.n_users)[users])


def bikes(data: Path, **options: str) -> Traces:
    """Return visits to stations, which lie where most records of them do."""
    path = data / "mibici_2016_jan_apr.parquet"
    with tempfile.TemporaryDirectory() as folder:
        stations = Path(folder) / "stations.csv"
        at = pl.read_parquet(path).group_by("station").agg(pl.col("lat", "lon").median())
        at.sort("station").rename({"station": "region"}).write_csv(stations)
        given = {"region_column": "station", "regions": stations, "timezone": MEXICO}
        return wt.read_records(path, **given, **options)


def trips(data: Path, first: int, n: int, joined: int) -> Traces:
    until = {"start": "2016-01-01", "end": "2016-05-01T01:00"}
    hours = bikes(data, flows="ends(counts=people)", **until)
    return Layout(epochs=joined)(hours.between(first, n))


def new_york(data: Path) -> Traces:
    path = data / "foursquare_nyc.parquet"
    window = {"start": "2012-04-09", "end": "2012-06-18"}
    return wt.read_records(path, grid="10x10", timezone="America/New_York", **window)


def city(preset: str, seed: int, **options: int) -> Traces:
    return wt.simulate(preset, seed=seed, users=5000, **options).traces()


MARCH = {"start": "2016-03-01", "end": "2016-04-01"}
WEEKS = {"start": "2016-01-01", "end": "2016-04-29"}
TABLES: dict[str, Callable[[Path], Traces]] = {
    "taxis, tuned on": partial(taxis, grid="22x23", users=slice(4000)),
    "other taxis and grid": partial(taxis, grid="15x15", users=slice(4000, None)),
    "bikes": partial(bikes, **MARCH),
    "New York": new_york,
    "milan-like": lambda _: city("milan-like", 1),
    "cdr-like": lambda _: city("cdr-like", 1),
    "milan-like, new seed": lambda _: city("milan-like", 20_391),
    "cdr-like, new seed": lambda _: city("cdr-like", 20_391),
    "bikes, 17 weeks": partial(bikes, **WEEKS),
    "milan-like, 28 days": lambda _: city("milan-like", 1, days=28),
    **{name: partial(trips, first=a, n=b, joined=c) for name, (a, b, c) in TRIPS.items()},
}


def without_sharers(traces: Traces) -> Traces:
    """Return those who share half of their visits with nobody."""
    shape = traces.n_users, traces.n_cells
    visited = csr_array((np.ones(traces.cells.size), traces.cells, traces.indptr), shape)
    both = (visited @ visited.T).tocoo()
    shared, others = np.zeros(traces.n_users), both.row != both.col
    np.maximum.at(shared, both.row[others], both.data[others])
    return traces.select(np.flatnonzero(shared < 0.5 * traces.visits_per_user()))


def dealt_anew(traces: Traces) -> Traces:
    """Return traces of as many visits, which no longer hang together in any way."""
    rng, visits = np.random.default_rng(SEED), traces.visits_per_user()
    person = np.repeat(np.arange(traces.n_users), visits)
    key = np.unique(person * traces.n_cells + rng.permutation(traces.cells).astype(np.int64))
    person, cells = np.divmod(key, traces.n_cells)
    indptr = np.append(0, np.cumsum(np.bincount(person, minlength=traces.n_users)))
    at = traces.regions, traces.epochs
    return Traces(traces.users, own(indptr, np.int64), own(cells, np.int32), *at)


POSTERIORS: dict[str, Callable[[Path], Traces]] = {
    "bikes": partial(bikes, **MARCH),
    "bikes, nobody shares half": lambda data: without_sharers(bikes(data, **MARCH)),
    "bikes, dealt anew": lambda data: dealt_anew(bikes(data, **MARCH)),
}


def measured(traces: Traces, who: np.ndarray, spec: str, rng: np.random.Generator) -> Iterator:
    """Yield what each kind of rates reaches on one release."""
    m, people = traces.n_users // 4, traces.select(who)
    rows = np.sort(rng.choice(traces.n_users, m, replace=False)).astype(np.int64)
    made = publish_table(Group(traces, rows), Mechanism.parse(spec), bounding=rng, noise=rng)
    inside = np.isin(who, rows)
    weeks = traces.epochs.n * traces.epochs.length >= timedelta(weeks=2)
    for rates, parts in RATES.items():
        if rates == TWICE and not (weeks or isinstance(traces.regions, Pairs)):
            continue
        levels = (lambda pairs, *_: np.zeros(len(pairs))) if rates == TWICE else near._levels
        with patch.object(near, "_levels", levels):
            scores = Scorer([people], parts)([made.release])
        auc, tpr = auc_and_tpr(scores, inside)
        yield {"rates": rates, "m": m, "people": who.size, "auc": auc, "tpr": tpr} | posteriors(
            scores, inside, m / traces.n_users
        )


def posteriors(scores: np.ndarray, inside: np.ndarray, prior: float) -> dict[str, float]:
    """Return how well posteriors hold.

    The slope is that of a logistic regression of who is in on the score, 1 where scores are right,
    among those who are not ruled out and whose score is within 50.
    """
    odds = np.clip(scores + np.log(prior / (1 - prior)), -50, 50)
    possible = inside | (scores > -50)
    some = possible & (np.abs(scores) < 50)
    sign, at = np.where(inside[some], 1.0, -1.0), scores[some]

    def loss(line: np.ndarray) -> float:
        return float(np.logaddexp(0, -sign * (line[0] * at + line[1])).mean())

    sure = odds > np.log(9)
    return {
        "log_loss": float(np.logaddexp(0, np.where(inside, -odds, odds))[possible].mean()),
        "slope": float(minimize(loss, np.array([0.5, 0.0])).x[0]),
        "over_90": int(sure.sum()),
        "said": float((1 / (1 + np.exp(-odds[sure]))).sum()),
        "in": int(inside[sure].sum()),
    }


def run(given: argparse.Namespace, cells: list[tuple[str, str]], seed: int) -> None:
    """Measure the releases of these cells that are not in the file yet."""
    tables = TABLES | POSTERIORS
    for name in dict.fromkeys(table for table, _ in cells):
        todo = [
            (spec, i)
            for table, spec in cells
            for i in range(rounds_of(given, name))
            if table == name and (name, spec, seed, i) not in done(given.out)
        ]
        if not todo:
            continue
        traces = tables[name](given.data)
        asked = traces.visits_per_user() >= (20 if name in TRIPS and "168" not in name else 1)
        for spec, i in todo:
            rng = np.random.default_rng([seed, i])
            at = {"table": name, "protection": spec, "seed": seed, "round": i}
            rows = pl.DataFrame(
                [at | row for row in measured(traces, np.flatnonzero(asked), spec, rng)]
            )
            with given.out.open("a") as file:
                first = file.tell() == 0
                file.write(rows.write_csv(include_header=first, float_precision=5))
            print(name, spec, i, *rows["tpr"].round(3), file=sys.stderr, flush=True)


def rounds_of(given: argparse.Namespace, name: str) -> int:
    """Return how many releases are measured: half as many of the largest tables."""
    large = name.startswith(("trips", "cdr-like", "bikes, 17 weeks"))
    return max(given.rounds // 2, 2) if large else given.rounds


def done(path: Path) -> set[tuple]:
    if not path.exists() or not path.stat().st_size:
        return set()
    return set(pl.read_csv(path).select(KEY[:-1]).unique().iter_rows())


def gains(path: Path, way: str = "near") -> pl.DataFrame:
    """Return a row for each cell and seed: TPR before, what is gained, errors, corrected p."""
    by = ["table", "protection", "seed"]
    wide = pl.read_csv(path).pivot("rates", index=[*by, "round"], values=["tpr", "auc"])
    rows = []
    for key, part in wide.drop_nulls(f"tpr_{way}").group_by(by, maintain_order=True):
        more = (part[f"tpr_{way}"] - part["tpr_low-rank"]).to_numpy()
        of_auc = (part[f"auc_{way}"] - part["auc_low-rank"]).to_numpy()
        p = 1.0 if np.ptp(more) == 0 else float(ttest_1samp(more, 0).pvalue)
        root = np.sqrt(more.size)
        rows.append(
            dict(zip(by, key, strict=True))
            | {"before": part["tpr_low-rank"].mean(), "gain": more.mean(), "p": p}
            | {"error": more.std(ddof=1) / root, "releases": more.size}
            | {"auc": part["auc_low-rank"].mean(), "auc_gain": of_auc.mean()}
            | {"auc_error": of_auc.std(ddof=1) / root}
        )
    found, each = pl.DataFrame(rows), []
    for _, part in found.group_by("seed", maintain_order=True):
        ordered = part.sort("p")
        left = np.arange(ordered.height, 0, -1)
        holm = np.minimum(np.maximum.accumulate(ordered["p"].to_numpy() * left), 1.0)
        each.append(ordered.with_columns(pl.Series("holm", holm)))
    return pl.concat(each)


def lost(found: pl.DataFrame) -> pl.DataFrame:
    """Return the cells of the first seed that lost by more than two errors."""
    return found.filter((pl.col("seed") == SEED) & (pl.col("gain") < -2 * pl.col("error")))


def summary(path: Path) -> None:
    """Print what was gained, as tables."""
    measured_ways = pl.read_csv(path)["rates"].unique()
    for way in (one for one in (TWICE, "near") if one in measured_ways):
        print(f"\n{way}\n")
        found = gains(path, way)
        print_gains(found)
    print("\nLost by more than two errors, and again with another seed:")
    again = lost(found).select("table", "protection")
    for row in found.join(again, on=["table", "protection"]).iter_rows(named=True):
        print(*(f"{v:.4f}" if isinstance(v, float) else v for v in row.values()))
    summary_of_posteriors(path)


def print_gains(found: pl.DataFrame) -> None:
    order = list(TABLES)
    shown = {row["table"]: {} for row in found.iter_rows(named=True)}
    for row in found.filter(pl.col("seed") == SEED).iter_rows(named=True):
        bold = "**" if row["holm"] < 0.05 else ""
        gain = f"{bold}{row['gain']:+.3f} ± {row['error']:.3f}{bold}"
        shown[row["table"]][row["protection"]] = f"{row['before']:.3f} {gain}"
    print("| table |", " | ".join(f"`{spec}`" for spec in PROTECTIONS), "|")
    print("|---" * (len(PROTECTIONS) + 1), "|", sep="")
    for name in sorted(shown, key=order.index):
        print(f"| {name} |", " | ".join(shown[name].get(one, "") for one in PROTECTIONS), "|")


def summary_of_posteriors(path: Path) -> None:
    sums = pl.col("over_90", "said", "in").sum()
    means = pl.col("tpr", "log_loss", "slope").mean()
    found = pl.read_csv(path).filter(pl.col("seed") == SEED)
    grouped = found.group_by("table", "protection", "rates", maintain_order=True)
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=160, fmt_str_lengths=40):
        print(grouped.agg(means, sums).with_columns(pl.col("said", "in") / pl.col("over_90")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of the three files")
    parser.add_argument("--out", type=Path, required=True, help="CSV to write to, or to go on with")
    parser.add_argument("--rounds", type=int, default=16, help="releases a cell")
    parser.add_argument("--only", default="", help="tables whose names hold this")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--posteriors", action="store_true")
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    if given.summary:
        (summary_of_posteriors if given.posteriors else summary)(given.out)
        return
    if given.again:
        run(given, lost(gains(given.out)).select("table", "protection").rows(), AGAIN)
        return
    tables, specs = (POSTERIORS, PROTECTIONS[:2]) if given.posteriors else (TABLES, PROTECTIONS)
    run(given, [(t, spec) for t in tables if given.only in t for spec in specs], SEED)


if __name__ == "__main__":
    main()
