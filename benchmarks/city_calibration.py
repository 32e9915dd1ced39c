"""Compare the simulated cities with what the paper says of its data, as Markdown tables.

    python benchmarks/city_calibration.py --seeds 1 2 3 4 5

Numbers are means over the seeds, with the standard deviation over the seeds. Parquet files of
real records (columns user, timestamp in Unix seconds, lat, lon) can stand beside the cities.
Each is given with the number of whole days and the side of the square grid that it is cut to,
and the hours by which its local time is ahead of UTC:

    python benchmarks/city_calibration.py --real check_ins.parquet,70,10,-5
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from whosthere.data.cities import simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

GROUP_SIZE = 1000
GROUPS_PER_SEED = 10
TARGET_VISITS = 10
DAILY_BOUND = {"milan-like": 10, "cdr-like": 20}
THRESHOLDS = range(1, 6)
HOUR = 3600
DAY = 24 * HOUR


@dataclass(frozen=True)
class Facts:
    """What is compared, one number each."""

    users: float
    visits: float
    records: float
    targets: float
    target_visits: float
    smallest_trace: float
    days_within_bound: float
    exponential_misfit: float
    lognormal_misfit: float
    suppressed: tuple[float, ...]
    top_region: float
    top_tenth: float
    night: float
    working_hours: float
    evening: float
    peak_to_trough: float
    distinct_regions: float
    first_place: float
    three_places: float
    burstiness: float
    records_a_visit: float

    @property
    def suppressed_by_5(self) -> float:
        """Share of the non-zero counts that the largest threshold suppresses."""
        return self.suppressed[-1]


def facts(records: pl.DataFrame, n_regions: int, bound: int, rng: np.random.Generator) -> Facts:
    """Measure records with columns user, second (since a local midnight) and region."""
    records = records.with_columns(epoch=pl.col.second // HOUR)
    visits = records.select("user", "region", "epoch").unique(maintain_order=True)
    users = visits.group_by("user", maintain_order=True).agg(n=pl.len(), regions="region")
    n = users["n"].to_numpy()
    targets = users.filter(pl.col.n >= TARGET_VISITS).with_columns(
        counts=pl.col.regions.list.eval(pl.element().value_counts(sort=True).struct[1])
    )
    shares = targets.select(
        distinct=pl.col.counts.list.len(),
        first=pl.col.counts.list.first() / pl.col.n,
        three=pl.col.counts.list.head(3).list.sum() / pl.col.n,
    )
    popularity = np.sort(np.bincount(visits["region"].to_numpy(), minlength=n_regions))[::-1]
    clock = np.bincount(visits["epoch"].to_numpy() % 24, minlength=24)
    daily = visits.group_by("user", pl.col.epoch // 24).len()["len"]
    return Facts(
        users=n.size,
        visits=float(n.mean()),
        records=records.height / n.size,
        targets=targets.height,
        target_visits=float(targets["n"].mean()),
        smallest_trace=float(n.min()),
        days_within_bound=float((daily <= bound).mean()),
        exponential_misfit=_misfit(n, lambda x: 1 - np.exp(-x / n.mean())),
        lognormal_misfit=_misfit(n, _lognormal(n)),
        suppressed=_suppressed(visits, users["user"], rng),
        top_region=float(popularity[0] / popularity.sum()),
        top_tenth=float(popularity[: n_regions // 10].sum() / popularity.sum()),
        night=float(clock[1:6].sum() / clock.sum()),
        working_hours=float(clock[9:18].sum() / clock.sum()),
        evening=float(clock[18:].sum() / clock.sum()),
        peak_to_trough=float(clock.max() / max(1, clock.min())),
        distinct_regions=_median(shares["distinct"]),
        first_place=_median(shares["first"]),
        three_places=_median(shares["three"]),
        burstiness=_burstiness(records),
        records_a_visit=records.height / visits.height,
    )


def _suppressed(
    visits: pl.DataFrame, users: pl.Series, rng: np.random.Generator
) -> tuple[float, ...]:
    """Share of the non-zero counts of a random group that are at most k, for each k."""
    shares = []
    for _ in range(GROUPS_PER_SEED):
        group = users.gather(rng.choice(len(users), min(GROUP_SIZE, len(users)), replace=False))
        chosen = visits.filter(pl.col.user.is_in(group.implode()))
        counts = chosen.group_by("region", "epoch").len()["len"].to_numpy()
        shares.append([float((counts <= k).mean()) for k in THRESHOLDS])
    return tuple(np.mean(shares, axis=0).tolist())


def _burstiness(records: pl.DataFrame) -> float:
    """Median over people of (s - m) / (s + m) of the times between records; Poisson gives 0."""
    gaps = (
        records.sort("user", "second")
        .with_columns(gap=pl.col.second.diff().over("user"))
        .drop_nulls("gap")
        .group_by("user")
        .agg(m=pl.col.gap.mean(), s=pl.col.gap.std(), n=pl.len())
        .filter(pl.col.n >= TARGET_VISITS)
    )
    return _median((gaps["s"] - gaps["m"]) / (gaps["s"] + gaps["m"]))


def _misfit(
    n: NDArray[np.int64], cdf: Callable[[NDArray[np.float64]], NDArray[np.float64]]
) -> float:
    """Largest distance between the distribution of visits per user and a fitted one."""
    whole = np.arange(1, n.max() + 1)
    empirical = np.searchsorted(np.sort(n), whole, side="right") / n.size
    return float(np.abs(empirical - cdf(whole + 0.5)).max())


def _lognormal(n: NDArray[np.int64]) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    middle, spread = np.log(n).mean(), np.log(n).std()
    erf = np.vectorize(math.erf)
    return lambda x: 0.5 * (1 + erf((np.log(x) - middle) / (spread * math.sqrt(2))))


def _median(column: pl.Series) -> float:
    return float(column.median())


def city_facts(name: str, seed: int) -> Facts:
    """Simulate a city and measure it."""
    city = simulate(name, seed=seed)
    start = int(city.epochs.starts[0].astype(np.int64))
    records = pl.DataFrame(
        {"user": city.user, "second": (city.micros - start) // 1_000_000, "region": city.region}
    )
    rng = np.random.default_rng(seed)
    return facts(records, len(city.regions), DAILY_BOUND[name], rng)


def real_facts(given: str) -> Facts:
    """Measure a file of real records, cut to its first whole days and to a grid."""
    name, days, side, hours_east = given.split(",")
    table = pl.read_parquet(name).with_columns(local=pl.col.timestamp + int(hours_east) * HOUR)
    first = (table["local"].min() // DAY + 1) * DAY
    table = table.with_columns(second=pl.col.local - first).filter(
        pl.col.second.is_between(0, int(days) * DAY, closed="left")
    )
    row, column = (_strip(table[axis].to_numpy(), int(side)) for axis in ("lat", "lon"))
    region = pl.Series(row * int(side) + column)
    records = table.select("user", "second").with_columns(region=region)
    return facts(records, int(side) ** 2, min(DAILY_BOUND.values()), np.random.default_rng(0))


def _strip(degrees: NDArray[np.float32], side: int) -> NDArray[np.int64]:
    """Number the equal strips of the range that holds 99 % of the records."""
    low, high = np.quantile(degrees, [0.005, 0.995])
    strip: NDArray[np.int64] = np.floor((degrees - low) / (high - low) * side).astype(np.int64)
    return np.clip(strip, 0, side - 1)


@dataclass(frozen=True)
class Row:
    """A row of a table: what it says, which fact it shows, and how."""

    label: str
    fact: str
    digits: int = 1
    percent: bool = False
    said: str = "-"

    def shown(self, measured: list[Facts]) -> str:
        """Write the mean over the seeds, and the standard deviation if there are several."""
        return shown([getattr(f, self.fact) for f in measured], self.digits, percent=self.percent)


def shown(values: Sequence[float], digits: int, *, percent: bool = False) -> str:
    scaled = np.array(values) * (100 if percent else 1)
    if scaled.size == 1:
        return f"{scaled[0]:,.{digits}f}"
    return f"{scaled.mean():,.{digits}f} ± {scaled.std(ddof=1):,.{digits}f}"


PAPER_ROWS = (
    Row("users", "users", 0, said="4,840; ~11,000"),
    Row("mean visits per user", "visits", 2),
    Row("mean records per user", "records", 2, said="~6.4 tweets (1); -"),
    Row("users with >= 10 visits", "targets", 0, said="at least 50; -"),
    Row("mean visits of users with >= 10 visits", "target_visits"),
    Row("fewest visits of a user", "smallest_trace", said="-; one a week, a target has 9"),
    Row(
        "user-days within the bound (10; 20 visits), %",
        "days_within_bound",
        percent=True,
        said="bound set from daily activity",
    ),
    Row("misfit of an exponential to visits per user", "exponential_misfit", 3, said="acceptable"),
    Row("misfit of a log-normal", "lognormal_misfit", 3, said="smaller"),
)
HABIT_ROWS = (
    Row("users", "users", 0),
    Row("mean visits per user", "visits"),
    Row("non-zero counts <= 5 in groups of up to 1,000, %", "suppressed_by_5", percent=True),
    Row("visits in the busiest region, %", "top_region", percent=True),
    Row("visits in the busiest tenth of the regions, %", "top_tenth", percent=True),
    Row("visits from 1 to 6 h, %", "night", percent=True),
    Row("visits from 9 to 18 h, %", "working_hours", percent=True),
    Row("visits from 18 to 24 h, %", "evening", percent=True),
    Row("busiest / quietest hour of the day", "peak_to_trough"),
    Row("distinct regions per person (2)", "distinct_regions"),
    Row("visits in a person's first region, % (2)", "first_place", percent=True),
    Row("visits in a person's first three regions, % (2)", "three_places", percent=True),
    Row("burstiness of a person's records, Poisson: 0 (2)", "burstiness", 2),
    Row("records per visit", "records_a_visit", 2),
)


def paper_table(milan: list[Facts], cdr: list[Facts]) -> list[str]:
    """Return the table that compares the cities with statements of the paper."""
    lines = ["| fact | the paper: Milan; CDR | milan-like | cdr-like |", "|---|---|---|---|"]
    lines += [f"| {r.label} | {r.said} | {r.shown(milan)} | {r.shown(cdr)} |" for r in PAPER_ROWS]
    ratios = [b.visits / a.target_visits for a, b in zip(milan, cdr, strict=True)]
    label = "visits of a random cdr-like user / of a milan-like one with >= 10"
    lines.append(f"| {label} | ~6 | - | {shown(ratios, 2)} |")
    for i, k in enumerate(THRESHOLDS):
        said = "99 on both" if k == max(THRESHOLDS) else "-"
        shares = [shown([f.suppressed[i] for f in city], 1, percent=True) for city in (milan, cdr)]
        label = f"non-zero counts <= {k} in groups of {GROUP_SIZE:,}, %"
        lines.append(f"| {label} | {said} | {shares[0]} | {shares[1]} |")
    return [
        *lines,
        "",
        "(1) the data set's own: about 269,000 tweets in two months by 4,840 users",
    ]


def habits_table(columns: dict[str, list[Facts]]) -> list[str]:
    """Return the table of how people and places behave, real records beside the cities."""
    lines = ["| fact | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for row in HABIT_ROWS:
        lines.append(f"| {row.label} | " + " | ".join(map(row.shown, columns.values())) + " |")
    return [*lines, "", f"(2) median over people with at least {TARGET_VISITS} visits"]


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare the simulated cities with the paper.")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--real", nargs="*", default=[], metavar="FILE,DAYS,SIDE,HOURS_EAST")
    given = parser.parse_args()
    columns = {name: [city_facts(name, seed) for seed in given.seeds] for name in DAILY_BOUND}
    print("\n".join(paper_table(*columns.values())))
    for real in given.real:
        name, days, side, _ = real.split(",")
        columns[f"{Path(name).stem}, {days} days, {side} x {side}"] = [real_facts(real)]
    print()
    print("\n".join(habits_table(columns)))


if __name__ == "__main__":
    main()
