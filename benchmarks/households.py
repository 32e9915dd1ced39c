"""Households of four, in and out as a whole: the product's numbers beside the truth.

    python benchmarks/households.py --csv benchmarks/results/households.csv

The city is that of the example in benchmarks/together.py: each four people have the same trace. The
truth is played there, by code of its own that knows that there are 500 households of four, and over
all of them. The product is told of the households by a table, and attacks a sample of people, once
for each seed; for the first one also without the table.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

import whosthere as wt
from together import MECHANISM, METRICS, SIZE, M, by_household, city_of_households
from whosthere.data.traces import Traces
from whosthere.inference.metrics import auc_by_target, mean_over_targets, tpr_at_fpr

SEEDS = (7, 8)
SAID_BEFORE = {"auc": 0.799, "tpr_at_fpr_1pct": 0.182}
"""What the example said for another sample of 100 targets."""


def product(city: Traces, seed: int, workers: int, **given: object) -> list[dict[str, object]]:
    """Return what an audit finds, and the best that anybody could."""
    audit = wt.audit(
        city,
        mechanisms=MECHANISM,
        group_size=M,
        attacks="likelihood-ratio",
        targets=100,
        releases=20,
        seed=seed,
        what_if=False,
        workers=workers,
        **given,
    )
    if not audit.trusted:
        raise RuntimeError(f"a control failed with seed {seed}")
    how = "by household" if given else "one by one"
    return [
        {"from": f"audit, {how}, seed {seed}", "attack": one.attack, "metric": one.metric}
        | {"estimate": one.estimate, "low": one.low, "high": one.high}
        for one in audit.findings
        if one.attack in ("likelihood-ratio", "ceiling", "guarantee") and one.metric in METRICS
    ]


def truth(city: Traces, n_releases: int, workers: int) -> list[dict[str, object]]:
    """Return what is true of all households with a visit, of which one member is asked about."""
    heads = np.arange(0, city.n_users, SIZE)
    targets = heads[city.visits_per_user()[heads] > 0].tolist()
    score = partial(by_household, city, n_releases=n_releases)
    with ProcessPoolExecutor(workers) as pool:
        found = [row for rows in pool.map(score, targets) for row in rows]
    target, label, scores, calibrated = (np.array(column) for column in zip(*found, strict=True))
    _, aucs = auc_by_target(scores, label, target)
    exact = {
        "auc": mean_over_targets(aucs, unseen=(0.5, 1.0)),
        "tpr_at_fpr_1pct": tpr_at_fpr(calibrated, label, target, 0.01, seed=0),
    }
    return [
        {"from": f"truth, all {len(targets)} households", "attack": "likelihood-ratio"}
        | {"metric": metric, "estimate": one.value, "low": one.low, "high": one.high}
        for metric, one in exact.items()
    ]


def main() -> None:
    """Print the table, and write it if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--releases", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    city = city_of_households()
    homes = pl.DataFrame({"user": city.users, "household": np.arange(city.n_users) // SIZE})
    rows: list[dict[str, object]] = []
    parts = [partial(product, city, seed, chosen.workers, together=homes) for seed in SEEDS]
    parts.insert(1, partial(truth, city, chosen.releases, chosen.workers))
    for part in (*parts, partial(product, city, SEEDS[0], chosen.workers)):
        rows += part()
        print(*rows[-6:], sep="\n", flush=True)
    rows += [
        {"from": "truth, as said before, 100 targets", "attack": "likelihood-ratio"}
        | {"metric": metric, "estimate": value, "low": None, "high": None}
        for metric, value in SAID_BEFORE.items()
    ]
    table = pl.DataFrame(rows, infer_schema_length=None)
    with pl.Config(tbl_rows=-1, float_precision=3, fmt_str_lengths=50):
        print(table)
    if chosen.csv:
        table.write_csv(chosen.csv, float_precision=6)


if __name__ == "__main__":
    main()
