"""People who go together: the tables of that section in benchmarks/audits.md.

    python benchmarks/together.py shared milan-like.parquet cdr-like.parquet mibici.parquet \\
        tdrive.parquet --csv benchmarks/results/together_shared.csv
    python benchmarks/together.py example --csv benchmarks/results/together_example.csv
    python benchmarks/together.py speed

`shared` measures how many people share most of their visits with somebody else, in files of traces
and in a city of households of four. `example` audits such a city, in which everybody is drawn
alone, and plays the same game with whole households in the same city: the truth for a publisher
who counts households. `speed` measures a million people with 30 visits each, at home or anywhere.
"""

from __future__ import annotations

import argparse
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

import whosthere as wt
from whosthere import kernels
from whosthere.attacks import Auxiliary, LikelihoodRatio
from whosthere.data.traces import Group, Traces
from whosthere.game.together import together
from whosthere.inference.metrics import auc_by_target, mean_over_targets, tpr_at_fpr
from whosthere.privacy.publish import publish_table
from whosthere.seeds import generator

SIZE = 4
"""People in a household."""
PEOPLE, SEED = 2000, 7
MECHANISM, M = "laplace(eps=0.2, unit=event)", 500
METRICS = ("auc", "tpr_at_fpr_1pct")


def households(traces: Traces) -> Traces:
    """Return as many people, of whom each four have the trace of the first of them.

    Nobody who goes together is more alike than this.
    """
    heads = np.arange(0, traces.n_users - traces.n_users % SIZE, SIZE)
    made = traces.select(np.repeat(heads, SIZE))
    return replace(made, users=tuple(f"{i:06d}" for i in range(made.n_users)), ledger=None)


def city_of_households() -> Traces:
    """Return the city of the example."""
    return households(wt.simulate("milan-like", users=PEOPLE, seed=SEED).traces())


def shared(paths: list[Path]) -> pl.DataFrame:
    """Measure files of traces, and the city of households."""
    made = {path.stem: Traces.load(path) for path in paths}
    made["milan-like, households of four"] = city_of_households()
    rows = []
    for name, traces in made.items():
        found = together(traces)
        rows += [{"data": name, **band.to_json()} for band in found.bands]
        print(f"| {name} | {found.people:,} | {' | '.join(_cells(found))} |")
    return pl.DataFrame(rows, infer_schema_length=None)


def _cells(found: object) -> list[str]:
    bands = {band.least: band for band in found.bands}
    cells = [f"{found.share:.1%}", f"{found.by_chance:.1%}"]
    for least in (5, 10, 20, 50, 100):
        band = bands.get(least)
        hidden = "" if band is None else f"fewer than 5 of {band.people:,}"
        known = band is not None and band.sharing is not None
        cells.append(f"{band.sharing:,} of {band.people:,}" if known else hidden)
    return cells


def example(n_targets: int, n_releases: int, workers: int) -> pl.DataFrame:
    """Return what an audit says of a city of households, and what is true of whole ones."""
    city = city_of_households()
    audit = wt.audit(
        city,
        mechanisms=MECHANISM,
        group_size=M,
        attacks="likelihood-ratio",
        targets=n_targets,
        releases=n_releases,
        seed=SEED,
        what_if=False,
        workers=workers,
    )
    said = [
        {"drawn": "one by one", "metric": one.metric}
        | {"estimate": one.estimate, "low": one.low, "high": one.high}
        for one in audit.findings
        if one.attack == "likelihood-ratio" and one.metric in METRICS
    ]
    score = partial(by_household, city, n_releases=n_releases)
    with ProcessPoolExecutor(workers) as pool:
        found = [row for rows in pool.map(score, audit.plan["targets"]) for row in rows]
    targets, labels, scores, calibrated = (np.array(column) for column in zip(*found, strict=True))
    _, aucs = auc_by_target(scores, labels, targets)
    truth = {
        "auc": mean_over_targets(aucs, unseen=(0.5, 1.0)),
        "tpr_at_fpr_1pct": tpr_at_fpr(calibrated, labels, targets, 0.01, seed=SEED),
    }
    said += [
        {"drawn": "by household", "metric": metric}
        | {"estimate": one.value, "low": one.low, "high": one.high}
        for metric, one in truth.items()
    ]
    table = pl.DataFrame(said)
    with pl.Config(tbl_rows=-1, float_precision=3):
        print(table)
    return table


def by_household(
    city: Traces, target: int, *, n_releases: int
) -> list[tuple[int, bool, float, float]]:
    """Score releases of whole households, of which every other holds that of the target."""
    attack, mechanism = LikelihoodRatio(), wt.mechanisms.Mechanism.parse(MECHANISM)
    rows = np.arange(city.n_users).reshape(-1, SIZE)
    own = target // SIZE
    others = np.delete(np.arange(len(rows)), own)
    found = []
    for i in range(n_releases):
        rng, is_in = generator(SEED, "households", target, i), i % 2 == 0
        drawn = rng.choice(others, M // SIZE - is_in, replace=False)
        group = Group(city, rows[np.append(drawn, own) if is_in else drawn].ravel())
        release = publish_table(group, mechanism, bounding=rng, noise=rng).release
        known = city.select([target])
        answer = attack.fit(release.facts, known, Auxiliary(), seed=SEED).score(release)
        found.append((target, is_in, answer.score, answer.calibrated))
    return found


def speed() -> None:
    """Print what it takes to measure a million people."""
    n, n_visits, n_regions = 1_000_000, 30, 1000
    rng, epochs = np.random.default_rng(SEED), city_of_households().epochs
    home = rng.integers(0, n_regions, (n, 1))
    anywhere = rng.integers(0, n_regions, (n, n_visits))
    region = np.where(rng.random((n, n_visits)) < 0.6, home, anywhere)
    cells = (region * epochs.n + rng.integers(0, epochs.n, region.shape)).astype(np.int32)
    person = np.repeat(np.arange(n, dtype=np.int32), n_visits)
    indptr, distinct = kernels.group_by_row(person, cells.ravel(), n)
    regions = wt.Regions(tuple(f"{i:04d}" for i in range(n_regions)))
    crowd = Traces(tuple(f"{i:07d}" for i in range(n)), indptr, distinct, regions, epochs)
    del home, anywhere, region, cells, person
    memory, begun = _peak_memory(), time.process_time()
    together(crowd)
    print(f"{crowd}: {time.process_time() - begun:.1f} s of processor time")
    print(f"peak memory {memory:.2f} GB before, {_peak_memory():.2f} GB after")


def _peak_memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> None:
    """Make what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("shared", "example", "speed"))
    parser.add_argument("traces", nargs="*", type=Path)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--targets", type=int, default=100)
    parser.add_argument("--releases", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    if chosen.what == "speed":
        speed()
        return
    if chosen.what == "shared":
        table = shared(chosen.traces)
    else:
        table = example(chosen.targets, chosen.releases, chosen.workers)
    if chosen.csv:
        table.write_csv(chosen.csv, float_precision=6)


if __name__ == "__main__":
    main()
