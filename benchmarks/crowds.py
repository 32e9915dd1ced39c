"""The tables and pictures of benchmarks/crowds.md, from runs of the crowd plans.

    python benchmarks/crowds.py RUN... --csv benchmarks/results/crowds.csv \\
        --figure docs/images/crowds.svg --reliability docs/images/reliability.svg

Prints Markdown: what each attack reaches by target and over all targets together, and how often
people are in when the attack says how likely they are. The pictures are drawn from the first run.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "whosthere"
mpl.rcParams["svg.fonttype"] = "none"
mpl.rcParams["font.family"] = "sans-serif"

import matplotlib.pyplot as plt
import numpy as np
import polars as pl

LOW_RANK, RANK_ONE = "likelihood-ratio", "likelihood-ratio(rates=rank-one)"
METRICS = ("auc", "pooled_auc", "tpr_at_fpr_1pct", "accuracy")
KEPT = ("attack", "metric", "estimate", "low", "high", "n_targets")
HEADS = ("mean AUC", "AUC over everybody", "TPR at 1 % FPR", "accuracy")
NAMES = {LOW_RANK: "low rank", RANK_ONE: "rank one"}
EDGES = (0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0)
PICTURED = {
    "raw": ("raw", "#0072B2"),
    "suppress(k=15)": ("suppress(k=15)", "#D55E00"),
    "laplace(eps=1, unit=event)": ("eps 1 for each visit", "#009E73"),
    "laplace(eps=1, unit=user-day, max_visits=20)": ("eps 1 for each user and day", "#666666"),
}


def findings(runs: list[Path]) -> pl.DataFrame:
    """Return one row for each setting, attack and metric of the runs."""
    rows = [
        {
            "data": run.name.removeprefix("run-"),
            "mechanism": one["setting"].rsplit(", m=", 1)[0],
            "m": int(one["setting"].rsplit(", m=", 1)[1].replace(",", "")),
        }
        | {name: one[name] for name in KEPT}
        for run in runs
        for one in json.loads((run / "findings.json").read_text())
        if one["metric"] in METRICS and one["attack"] != "guarantee"
    ]
    return pl.DataFrame(rows)


def table(found: pl.DataFrame) -> str:
    """Write all metrics of all settings, the two kinds of rates side by side."""
    lines = [f"| data, m, protection | rates | {' | '.join(HEADS)} |", "|---" * 6 + "|"]
    for (data, m, mechanism), own in found.group_by("data", "m", "mechanism", maintain_order=True):
        for attack, name in NAMES.items():
            cells = [_cell(own.filter(attack=attack, metric=metric)) for metric in METRICS]
            shown = mechanism.replace("|", "\\|")
            lines.append(f"| {data}, {m:,}, `{shown}` | {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(row: pl.DataFrame) -> str:
    if row.is_empty() or row["estimate"][0] is None:
        return ""
    value, low, high = (row[name][0] for name in ("estimate", "low", "high"))
    return f"{value:.3f}" if low is None else f"{value:.3f} ({low:.3f} to {high:.3f})"


def reliability(scores: pl.DataFrame, attack: str) -> pl.DataFrame:
    """Return by setting and bin of the posterior: its mean, and the share of people who are in.

    The standard error is that of the difference of the two, over targets.
    """
    own = scores.filter(pl.col("attack") == attack, pl.col("score") > -1e8).with_columns(
        posterior=1 / (1 + (-pl.col("score").clip(-500, 500)).exp()),
        m=pl.col("setting").str.extract(r"m=([\d,]+)$").str.replace_all(",", "").cast(pl.Int64),
        mechanism=pl.col("setting").str.replace(r", m=[\d,]+$", ""),
    )
    own = own.with_columns(bin=np.digitize(own["posterior"], EDGES[1:-1]))
    by_target = own.group_by("mechanism", "m", "bin", "target").agg(
        n=pl.len(), said=pl.col("posterior").sum(), inside=pl.col("label").sum()
    )
    return (
        by_target.group_by("mechanism", "m", "bin")
        .agg(
            releases=pl.col("n").sum(),
            said=pl.col("said").sum() / pl.col("n").sum(),
            inside=pl.col("inside").sum() / pl.col("n").sum(),
            error=((pl.col("inside") - pl.col("said")) ** 2).sum().sqrt() / pl.col("n").sum(),
        )
        .sort("mechanism", "m", "bin")
    )


def draw_sizes(found: pl.DataFrame, path: Path) -> None:
    """Draw the TPR against the size of the group."""
    figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
    rates = found.filter(metric="tpr_at_fpr_1pct").sort("m")
    for mechanism, (name, colour) in PICTURED.items():
        for attack, line in ((LOW_RANK, "-"), (RANK_ONE, ":")):
            own = rates.filter(mechanism=mechanism, attack=attack).drop_nulls("estimate")
            label = name if attack == LOW_RANK else None
            axes.plot(own["m"], own["estimate"], line, color=colour, label=label, marker="o", ms=3)
            if attack == LOW_RANK:
                axes.fill_between(own["m"], own["low"], own["high"], color=colour, alpha=0.12, lw=0)
    axes.plot([], [], ":", color="black", label="region times epoch alone")
    axes.axhline(0.01, color="black", lw=0.8, label="guessing")
    axes.set(xscale="log", xlabel="people in the release", ylabel="TPR at 1 % FPR", ylim=(0, 1.02))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.legend(frameon=False, fontsize=8, loc="upper right")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})


def draw_reliability(curves: dict[str, pl.DataFrame], path: Path) -> None:
    """Draw how often people are in against how likely the attack says they are."""
    sizes = (1000, 20_000, 140_000)
    figure, panels = plt.subplots(
        1, len(sizes), figsize=(8.4, 3.7), layout="constrained", sharey=True
    )
    for axes, m in zip(panels, sizes, strict=True):
        axes.plot([0, 1], [0, 1], color="black", lw=0.8)
        for mechanism, (name, colour) in PICTURED.items():
            for attack, line in ((LOW_RANK, "-"), (RANK_ONE, ":")):
                own = curves[attack].filter(mechanism=mechanism, m=m).filter(pl.col("releases") > 9)
                label = name if attack == LOW_RANK else None
                axes.plot(own["said"], own["inside"], line, color=colour, label=label, lw=1.2)
                if attack == LOW_RANK:
                    error = 2 * own["error"].to_numpy()
                    axes.errorbar(own["said"], own["inside"], error, fmt="o", ms=3, color=colour)
        axes.set(title=f"m = {m:,}", xlabel="posterior", aspect="equal", ylim=(-0.03, 1.03))
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("share of people who are in")
    lines, labels = panels[0].get_legend_handles_labels()
    figure.legend(lines, labels, frameon=False, fontsize=8, loc="outside lower center", ncols=4)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Print the tables, and draw the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--reliability", type=Path)
    options = parser.parse_args()
    found = findings(options.runs)
    print(table(found))
    scores = pl.read_parquet(options.runs[0] / "scores.parquet")
    curves = {attack: reliability(scores, attack) for attack in NAMES}
    for attack, curve in curves.items():
        print(f"\n{NAMES[attack]}\n")
        with pl.Config(tbl_formatting="MARKDOWN", tbl_hide_column_data_types=True, tbl_rows=-1):
            print(curve.with_columns(pl.col(pl.Float64).round(3)))
        wrong = np.average(np.abs(curve["said"] - curve["inside"]), weights=curve["releases"])
        print(f"\nmean distance of the two: {wrong:.3f}")
    if options.csv:
        found.write_csv(options.csv, float_precision=6)
    if options.figure:
        draw_sizes(found.filter(data=options.runs[0].name.removeprefix("run-")), options.figure)
    if options.reliability:
        draw_reliability(curves, options.reliability)


if __name__ == "__main__":
    main()
