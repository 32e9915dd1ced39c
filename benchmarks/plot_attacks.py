"""Draw what tables.py wrote: mean AUC by protection, a panel for each data set.

    python benchmarks/plot_attacks.py "a simulated city=milan.csv" --out docs/images/attacks.svg

Needs matplotlib.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import matplotlib as mpl
import numpy as np
import polars as pl

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "whosthere"
mpl.rcParams["svg.fonttype"] = "none"
mpl.rcParams["font.family"] = "sans-serif"

from matplotlib import pyplot as plt

ATTACKS = {
    "knock-knock": ("Knock-Knock (needs real traces)", "#8a8f98", "s"),
    "zero-knowledge": ("Zero Knowledge (the paper)", "#2b6cb0", "o"),
    "likelihood-ratio": ("likelihood ratio (whosthere)", "#c2410c", "D"),
    "ceiling": ("the best that anybody can who knows all others", "#111827", "|"),
}
WORDS = {
    "raw": "true counts",
    "suppress(k=1)": "counts up to 1 hidden",
    "suppress(k=2)": "counts up to 2 hidden",
    "suppress(k=3)": "counts up to 3 hidden",
    "laplace(eps=5, unit=event)": "noise per visit, eps 5",
    "laplace(eps=1, unit=event)": "noise per visit, eps 1",
    "laplace(eps=1, unit=event) | suppress(k=1)": "... and up to 1 hidden",
    "laplace(eps=0.5, unit=event)": "noise per visit, eps 0.5",
    "laplace(eps=0.1, unit=event)": "noise per visit, eps 0.1",
    "user-day 10": "noise per person and day, eps 10",
    "user-day 5": "noise per person and day, eps 5",
    "user-day 1": "noise per person and day, eps 1",
}


def short(setting: str) -> str:
    """Return the key of a setting's words."""
    mechanism = setting.rsplit(", m=", 1)[0]
    if "user-day" not in mechanism:
        return mechanism
    return f"user-day {mechanism.split('eps=')[1].split(',', maxsplit=1)[0]}"


def aucs(path: Path) -> dict[tuple[str, str], list[float]]:
    """Read AUCs by setting and attack."""
    found = defaultdict(list)
    for row in pl.read_csv(path).iter_rows(named=True):
        found[short(row["setting"]), row["attack"]].append(row["auc"])
    return found


def draw(panels: dict[str, Path], out: Path) -> None:
    """Draw the panels side by side."""
    figure, axes = plt.subplots(
        1, len(panels), figsize=(4.2 + 3.4 * len(panels), 4.6), sharey=True, squeeze=False
    )
    for axis, (title, path) in zip(axes[0], panels.items(), strict=True):
        found = aucs(path)
        for row, setting in enumerate(WORDS):
            for offset, (attack, (label, colour, marker)) in enumerate(ATTACKS.items()):
                values = found.get((setting, attack))
                if values:
                    error = np.std(values, ddof=1) / np.sqrt(len(values))
                    axis.errorbar(
                        np.mean(values), row + 0.2 * (offset - 1.5), xerr=error, fmt=marker,
                        color=colour, markersize=4.5, elinewidth=1,
                        label=label if row == 0 else None,
                    )  # fmt: skip
        axis.axvline(0.5, color="#c9cdd3", linewidth=1, zorder=0)
        axis.set_xlim(0.45, 1.02)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("AUC: 0.5 is guessing, 1 is certainty", fontsize=9)
        axis.tick_params(labelsize=9)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_yticks(range(len(WORDS)), WORDS.values())
    axes[0, 0].invert_yaxis()
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=2, frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0.1, 1, 1))
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, metadata={"Date": None})


def main() -> None:
    """Read the panels from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("panels", nargs="+", metavar="TITLE=FILE")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    panels = dict(panel.rsplit("=", 1) for panel in options.panels)
    draw({title: Path(path) for title, path in panels.items()}, options.out)


if __name__ == "__main__":
    main()
