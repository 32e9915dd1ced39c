"""Tables with few epochs or few regions: what a law of rates is worth, on the same releases.

Bike trips, pairs of stations as regions, over one to 2,904 epochs; stations over hours; all
stations as one region; and milan-like. Each release is scored for everybody by

- plain: rates fitted to the release, without a law;
- law: the likelihood ratio as it is;
- counts: a law of all counts alone, two negative binomials fitted to the published ones;
- known: rates counted from the whole population, which no attacker of the kind has.

    python benchmarks/few_epochs.py TRIPS.parquet > benchmarks/results/few_epochs.csv

TRIPS has the columns user, timestamp (Unix seconds) and station, two rows for each trip. AUC and
TPR at 1 % FPR are over everybody, mean over releases; errors are standard errors over releases.
"""

from __future__ import annotations

import argparse
import sys
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from scipy.optimize import minimize
from scipy.stats import nbinom

import whosthere as wt
from whosthere.adversary.attacks import LikelihoodRatio
from whosthere.adversary.count_tables import count_tables
from whosthere.adversary.rates import fit_rates
from whosthere.data.epochs import Epochs
from whosthere.data.regions import Regions
from whosthere.data.traces import Group, Traces
from whosthere.inference.scores import RULED_OUT
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.publish import publish_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

M, SEED = 1000, 5
START = datetime(2016, 1, 1, 6, tzinfo=UTC)
DAYS = 121
EPOCHS = {1: DAYS * 24, 4: DAYS * 6, 18: 7 * 24, DAYS: 24, DAYS * 24: 1}
"""Hours that an epoch lasts, by the number of epochs."""
EVENT = "laplace(eps=0.5, unit=event)"
# A person is not told from another one by more than this.
MOST = 50.0


def traces_of(user, region, hour, names, *, hours: int, n_epochs: int) -> Traces:
    """Return traces of visits that are given by user, region and hour from the start."""
    epoch = np.minimum(hour // hours, n_epochs - 1)
    users, who = np.unique(user, return_inverse=True)
    n_cells = len(names) * n_epochs
    person, cell = np.divmod(
        np.unique(who.astype(np.int64) * n_cells + region * n_epochs + epoch), n_cells
    )
    return Traces(
        tuple(f"{one:06d}" for one in users),
        np.append(0, np.cumsum(np.bincount(person, minlength=users.size))),
        cell.astype(np.int32),
        Regions([str(name) for name in names]),
        Epochs(START, timedelta(hours=hours), n_epochs, "UTC"),
    )


def pairs(path, n_epochs) -> tuple[Traces, NDArray[np.int64]]:
    """Return traces over pairs of stations, and who made 20 trips or more."""
    rows = pl.read_parquet(path).with_columns(k=pl.int_range(pl.len()).over("user"))
    rows = rows.with_columns(trip=pl.col("k") // 2)
    first, last = (rows.filter(pl.col("k") % 2 == end) for end in (0, 1))
    trips = first.join(last, on=["user", "trip"], suffix="_last", maintain_order="left")
    pair = trips["station"].to_numpy() * 1000 + trips["station_last"].to_numpy()
    names, region = np.unique(pair, return_inverse=True)
    user, hour = trips["user"].to_numpy(), _hours(trips)
    traces = traces_of(user, region, hour, names, hours=EPOCHS[n_epochs], n_epochs=n_epochs)
    return traces, np.flatnonzero(np.unique_counts(user).counts >= 20)


def stations(path, n_epochs, hours, *, n_regions=None) -> tuple[Traces, NDArray[np.int64]]:
    """Return traces over stations, or so many neighbourhoods of them, and who made 10 visits."""
    rows = pl.read_parquet(path)
    hour = _hours(rows)
    used = (hour >= 72) & (hour < 72 + n_epochs * hours)
    names, region = np.unique(rows["station"].to_numpy()[used], return_inverse=True)
    if n_regions is not None:
        region, names = region * n_regions // names.size, np.arange(n_regions)
    user = rows["user"].to_numpy()[used]
    traces = traces_of(user, region, hour[used] - 72, names, hours=hours, n_epochs=n_epochs)
    return traces, np.flatnonzero(traces.visits_per_user() >= 10)


def city() -> tuple[Traces, NDArray[np.int64]]:
    """Return a simulated city, and who made 10 visits or more."""
    traces = wt.simulate("milan-like", seed=7, users=5000).traces()
    return traces, np.flatnonzero(traces.visits_per_user() >= 10)


def _hours(rows):
    return np.maximum(rows["timestamp"].to_numpy() - int(START.timestamp()), 0) // 3600


def added_up(by_cell, people) -> NDArray[np.float64]:
    """Return the sum over the cells of each person."""
    person = np.repeat(np.arange(people.n_users), np.diff(people.indptr))
    return np.bincount(person, by_cell[people.cells], people.n_users)


def plain(release, people) -> NDArray[np.float64]:
    tables = count_tables(release.mechanism, release.group_size)
    log_rates = fit_rates(release).base.reshape(-1)
    return added_up(tables.log_ratio_of(release.counts.reshape(-1), log_rates), people)


def law(release, people) -> NDArray[np.float64]:
    return LikelihoodRatio().score_everybody(release, people)


def known(everybody, release, people) -> NDArray[np.float64]:
    tables = count_tables(release.mechanism, release.group_size)
    counts = release.counts.reshape(-1)
    others = np.maximum(everybody.counts().reshape(-1) - 1, 0.02) * M / everybody.n_users
    return added_up(tables.log_ratio_of(counts, np.log(others)), people)


def counts_alone(release, people) -> NDArray[np.float64]:
    """Score by two negative binomials that are fitted to all published counts."""
    most = int(release.counts.max()) + 200
    n = np.arange(most)
    values, times = np.unique(release.counts, return_counts=True)
    mechanism = release.mechanism
    laws = [mechanism.pmf(values, np.minimum(n + more, M)[:, None], M) for more in (0, 1)]

    def mixture(x):
        share = 1 / (1 + np.exp(-x[0]))
        parts = [
            nbinom.pmf(n, np.exp(size), 1 / (1 + np.exp(mean - size)))
            for size, mean in (x[1:3], x[3:5])
        ]
        return share * parts[0] + (1 - share) * parts[1]

    def unlikely(x):
        return -times @ np.log(np.maximum(mixture(x) @ laws[0], 1e-300))

    begin = np.array([0.0, 0.0, np.log(0.3), 0.0, np.log(3.0)])
    found = mixture(minimize(unlikely, begin, method="Nelder-Mead", options={"maxiter": 600}).x)
    with np.errstate(divide="ignore"):
        ratio = np.log(found @ laws[1]) - np.log(found @ laws[0])
    return added_up(ratio[np.searchsorted(values, release.counts.reshape(-1))], people)


def auc_and_tpr(scores, label) -> tuple[float, float]:
    inside, outside = np.sort(scores[label]), np.sort(scores[~label])
    below = [np.searchsorted(outside, inside, side) for side in ("left", "right")]
    threshold = outside[int(np.ceil(outside.size * 0.99)) - 1]
    return np.mean(below) / outside.size, (inside > threshold).mean()


def mean_auc(scores, labels) -> float:
    """Return the mean over people of the AUC of their releases, where they are in some of them."""
    both = labels.any(axis=0) & ~labels.all(axis=0)
    each = zip(scores[:, both].T, labels[:, both].T, strict=True)
    return float(np.mean([auc_and_tpr(own, label)[0] for own, label in each]))


def share_in(scores, labels, prior) -> float:
    """Return which share of those with a posterior of 0.7 to 0.9 are in."""
    posterior = 1 / (1 + np.exp(-scores) * (1 - prior) / prior)
    return float(labels[(posterior > 0.7) & (posterior < 0.9)].mean())


def measured(name, people_of, spec, scorers, n_releases) -> Iterator[dict[str, object]]:
    """Return a row for each way to score, with differences to `plain` on the same releases."""
    traces, who = people_of
    mechanism, people = Mechanism.parse(spec), traces.select(who)
    found, kept, labels = {one: [] for one in scorers}, {one: [] for one in scorers}, []
    seconds = dict.fromkeys(scorers, 0.0)
    for i in range(n_releases):
        rng = np.random.default_rng([SEED, i])
        rows = rng.choice(traces.n_users, M, replace=False).astype(np.int64)
        release = publish_table(Group(traces, rows), mechanism, bounding=rng, noise=rng).release
        label = np.isin(who, rows)
        labels.append(label)
        for one, score in scorers.items():
            begun = time.process_time()
            scores = np.clip(np.maximum(score(release, people), RULED_OUT), -MOST, MOST)
            seconds[one] += time.process_time() - begun
            found[one].append(auc_and_tpr(scores, label))
            kept[one].append(scores)
    base = np.array(found["plain"])
    for one, each in found.items():
        values, more = np.array(each), np.array(each) - base
        errors = more.std(axis=0, ddof=1) / np.sqrt(n_releases)
        yield {
            "table": name,
            "protection": spec,
            "rates": one,
            "auc": values[:, 0].mean(),
            "tpr_at_fpr_1pct": values[:, 1].mean(),
            "mean_auc": mean_auc(np.array(kept[one]), np.array(labels)),
            "share_in_of_posteriors_near_80pct": share_in(
                np.array(kept[one]), np.array(labels), M / traces.n_users
            ),
            "auc_more_than_plain": more[:, 0].mean(),
            "auc_error": errors[0],
            "tpr_more_than_plain": more[:, 1].mean(),
            "tpr_error": errors[1],
            "releases": n_releases,
            "people": who.size,
            "seconds": seconds[one] / n_releases,
        }


def cases(path, n_releases) -> Iterator[tuple]:
    """Yield the name, traces, people, protections and releases of each table."""
    every = ("suppress(k=1)", "suppress(k=2)", "suppress(k=5)", EVENT)
    for n_epochs in EPOCHS:
        n = n_releases if n_epochs < DAYS else max(n_releases // (2 if n_epochs == DAYS else 5), 2)
        yield f"pairs, {n_epochs} epochs", *pairs(path, n_epochs), every, n
    few = ("suppress(k=2)", EVENT)
    yield "1 region, 1,344 hours", *stations(path, 1344, 1, n_regions=1), few, n_releases
    yield "4 regions, 1,344 hours", *stations(path, 1344, 1, n_regions=4), few, n_releases
    yield (
        "115 stations, 1,344 hours",
        *stations(path, 1344, 1),
        ("suppress(k=2)", EVENT),
        n_releases,
    )
    yield "milan-like, 168 hours", *city(), ("suppress(k=2)", EVENT), n_releases


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trips", help="Parquet file of bike trips")
    parser.add_argument("--releases", type=int, default=20)
    parser.add_argument("--only", default="", help="tables whose names hold this")
    given = parser.parse_args()
    rows = []
    for name, traces, who, specs, n_releases in cases(given.trips, given.releases):
        if given.only not in name:
            continue
        scorers = {"plain": plain, "law": law, "known": partial(known, traces)}
        if traces.n_cells < 200_000:
            scorers["counts"] = counts_alone
        for spec in specs:
            new = list(measured(name, (traces, who), spec, scorers, n_releases))
            rows += new
            for row in new:
                shown = {key: round(v, 3) if isinstance(v, float) else v for key, v in row.items()}
                print(*shown.values(), file=sys.stderr, flush=True)
    pl.DataFrame(rows).write_csv(sys.stdout, float_precision=4)


if __name__ == "__main__":
    main()
