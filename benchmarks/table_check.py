"""What `whosthere check` estimates from one table, beside what attacks on real people reach.

For each data set and protection, groups of M people are published several times, and the likelihood
ratio scores everybody in each release, in and out. The AUC over everybody with so many visits is
the truth. The estimate is that of the first of these releases, from the release alone. Bands with
fewer than 60 people in the releases are left out. Prints a Markdown table, and writes a CSV file.

    python benchmarks/table_check.py milan-like=milan-like.parquet mibici=mibici.parquet \\
        --releases 8 --out benchmarks/results/table_check.csv
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np

import whosthere as wt
from whosthere.adversary.attacks import LikelihoodRatio
from whosthere.game.table_check import BANDS
from whosthere.inference.metrics import auc

PROTECTIONS = (
    "raw",
    "suppress(k=1)",
    "suppress(k=2)",
    "suppress(k=4)",
    "laplace(eps=0.5, unit=event)",
    "sdctools-d2",
)
FEWEST = 60


def main() -> None:
    """Compare, print and write."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("data", nargs="+", help="NAME=TRACES")
    options.add_argument("-m", type=int, default=1000)
    options.add_argument("--releases", type=int, default=8)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--protection", action="append", help="instead of all")
    options.add_argument("--out", type=Path)
    given = options.parse_args()
    rows = []
    print("| data, protection |", " | ".join(f"{one} visits" for one in BANDS), "|")
    print("|---" * (len(BANDS) + 1) + "|")
    for one in given.data:
        name, path = one.split("=", 1)
        traces = wt.Traces.load(path)
        for protection in given.protection or PROTECTIONS:
            found = compare(traces, protection, given.m, given.releases, given.seed)
            rows += [(name, protection, str(band), *values) for band, *values in found]
            said = {band: f"{truth:.3f} / {estimate:.3f}" for band, truth, estimate, _ in found}
            shown = " | ".join(said.get(band, "") for band in BANDS)
            print(f"| {name}, `{protection}` | {shown} |", flush=True)
            if given.out:
                with given.out.open("w", newline="") as file:
                    table = csv.writer(file)
                    heads = ("data", "protection", "visits", "truth", "estimate", "people_in")
                    table.writerows([heads, *rows])
    off = np.array([estimate - truth for *_, truth, estimate, _ in rows])
    print(f"\n{off.size} numbers: off by {off.min():+.3f} to {off.max():+.3f}, ", end="")
    print(f"mean {off.mean():+.3f}, {np.mean(np.abs(off) <= 0.03):.0%} within 0.03")


def compare(
    traces: wt.Traces, protection: str, m: int, releases: int, seed: int
) -> list[tuple[tuple[int, int], float, float, int]]:
    """Return truth, estimate and people who were in, for each band with enough of them."""
    rng = np.random.default_rng(seed)
    visits, scores, labels, first = traces.visits_per_user(), [], [], None
    for number in range(releases):
        group = np.sort(rng.choice(traces.n_users, m, replace=False))
        release = wt.publish(traces, protection, group=group, seed=seed + number).release
        first = first or release
        scores.append(LikelihoodRatio().score_everybody(release, traces))
        labels.append(np.isin(np.arange(traces.n_users), group))
    assert first is not None
    score, label = np.array(scores), np.array(labels)
    checked = wt.check(first, seed=seed)
    estimates = {one.setting: one.estimate for one in checked.findings if "auc" in one.metric}
    found = []
    for band in BANDS:
        chosen = (visits >= band.least) & (visits <= band.most)
        inside = int(label[:, chosen].sum())
        estimate = estimates.get(str(band))
        if inside >= FEWEST and estimate is not None:
            truth = auc(score[:, chosen].ravel(), label[:, chosen].ravel())
            found.append((band, truth, estimate, inside))
    return found


if __name__ == "__main__":
    main()
