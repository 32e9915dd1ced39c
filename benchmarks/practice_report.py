"""Put the audits of practice_study.sh into tables and a figure, risk beside usefulness.

    python benchmarks/practice_report.py OUT --figure docs/images/practice.svg > tables.md

OUT is the folder of the study; data sets that are not finished are left out. Needs matplotlib.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import matplotlib as mpl

import whosthere as wt
from whosthere.privacy.mechanism import PRESETS

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "whosthere"
mpl.rcParams["svg.fonttype"] = "none"
mpl.rcParams["font.family"] = "sans-serif"

from matplotlib import pyplot as plt

if TYPE_CHECKING:
    import polars as pl

DATA = {
    "milan-like": "milan-like, simulated",
    "cdr-like": "cdr-like, simulated",
    "mibici": "MiBici, bike share",
    "tdrive": "T-Drive, taxis",
}
EPOCHS = {"1h": "hours", "1d": "days"}
NAMES = {str(wt.mechanisms.Mechanism.parse(name)): name for name in ("raw", *PRESETS)}


class Rule(NamedTuple):
    """What one rule leaves to attackers and to readers, with intervals where there are some."""

    name: str
    auc: tuple[float, float, float]
    tpr: tuple[float, float, float]
    ceiling: float
    cells_kept: float
    correlation: float | None


def main() -> None:
    """Print the tables and draw the figure."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("out", type=Path)
    options.add_argument("--figure", type=Path)
    given = options.parse_args()
    panels = []
    for data, words in DATA.items():
        for epoch, plural in EPOCHS.items():
            folder = given.out / f"{data}-{epoch}"
            if not (folder / "verdicts.json").exists():
                continue
            found = wt.load(folder).to_frame()
            for m in sorted(found["group_size"].drop_nulls().unique()):
                rules = by_rule(found.filter(group_size=m))
                panels.append((f"{words}, {plural}, m = {m:,}", rules))
    for title, rules in panels:
        print(f"\n### {title}\n")
        print("| rule | AUC | found at 1 % false alarms | ceiling | cells kept | pattern |")
        print("|---|---|---|---|---|---|")
        for one in rules:
            pattern = "none" if one.correlation is None else f"{one.correlation:.2f}"
            print(
                f"| `{one.name}` | {ranged(*one.auc)} | {ranged(*one.tpr)} | {one.ceiling:.2f} "
                f"| {100 * one.cells_kept:.0f} % | {pattern} |"
            )
    if given.figure is not None:
        draw(panels, given.figure)


def by_rule(found: pl.DataFrame) -> list[Rule]:
    """Return the rules of one audit and group size, the riskiest first."""
    rules = []
    for (mechanism,), rows in found.group_by("mechanism", maintain_order=True):
        values = {
            (row["attack"], row["metric"]): (row["estimate"], row["low"], row["high"])
            for row in rows.iter_rows(named=True)
        }
        kept = {metric: value[0] for (_, metric), value in values.items()}
        rules.append(
            Rule(
                NAMES[str(mechanism)],
                values["likelihood-ratio", "auc"],
                values["likelihood-ratio", "tpr_at_fpr_0.01"],
                values["ceiling", "auc"][0],
                kept["cells_kept"],
                kept.get("pattern_correlation"),
            )
        )
    return sorted(rules, key=lambda one: -one.auc[0])


def ranged(estimate: float, low: float | None, high: float | None) -> str:
    """Write a number with its interval."""
    return f"{estimate:.2f}" if low is None else f"{estimate:.2f} ({low:.2f} to {high:.2f})"


def draw(panels: list[tuple[str, list[Rule]]], path: Path) -> None:
    """Draw the AUC of each rule over what is left of the pattern, a panel for each audit."""
    columns = 2
    figure, axes = plt.subplots(
        -(-len(panels) // columns),
        columns,
        figsize=(11, 3.6 * -(-len(panels) // columns)),
        sharex=True,
        sharey=True,
        squeeze=False,
    )
    for axis, (title, rules) in zip(axes.ravel(), panels, strict=False):
        for one in rules:
            x = one.correlation or 0.0
            axis.plot([x, x], one.auc[1:], color="#c2410c", linewidth=1)
            axis.plot(x, one.auc[0], "o", color="#c2410c", markersize=4)
            axis.annotate(
                one.name, (x, one.auc[0]), fontsize=6, xytext=(3, 2), textcoords="offset points"
            )
        axis.axhline(0.6, color="#8a8f98", linewidth=0.8, linestyle="--")
        axis.set_title(title, fontsize=9)
        axis.set_xlim(-0.05, 1.15)
        axis.set_ylim(0.45, 1.02)
    for axis in axes[-1]:
        axis.set_xlabel("correlation of published and true counts")
    for axis in axes[:, 0]:
        axis.set_ylabel("AUC, likelihood ratio")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
