"""Put the audits of practice_study.sh into the tables and the figure of docs/practice.md.

    python benchmarks/practice_report.py OUT --page docs/practice.md \\
        --page benchmarks/practice.md --figure docs/images/practice.svg \\
        --csv benchmarks/results/practice.csv

OUT is the folder of the study; audits that are not finished are left out. In the pages, what stands
between `<!-- NAME -->` and `<!-- end -->` is replaced; without pages, all tables are printed. Needs
matplotlib.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import polars as pl

import whosthere as wt
from whosthere.privacy.catalogue import PRESETS

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "whosthere"
mpl.rcParams["svg.fonttype"] = "none"
mpl.rcParams["font.family"] = "sans-serif"

from matplotlib import pyplot as plt
from matplotlib.lines import Line2D

if TYPE_CHECKING:
    from collections.abc import Iterable

DATA = {
    "milan-like": ("milan-like", "#2b6cb0"),
    "cdr-like": ("cdr-like", "#0f766e"),
    "mibici": ("MiBici", "#c2410c"),
    "tdrive": ("T-Drive", "#7c3aed"),
}
EPOCHS = {"1h": ("hours", "o"), "1d": ("days", "s")}
WORDS = {
    "raw": "true counts",
    "flowkit": "up to 15 become 0",
    "mds": "1 to 9 marked as small",
    "opensafely": "up to 7 become 0, others to the nearest 5",
    "stats-nz": "rounded at random to 3s",
    "statcan": "rounded at random to 5s",
    "ons-10-5": "up to 9 become 0, others to the nearest 5",
    "sdctools-d2": "cell keys, up to 2 off",
    "sdctools-d5": "cell keys, up to 5 off",
    "multimno": "times 5.13, then 1 to 4 marked as small",
    "census-drb": "up to 14 marked as small, others rounded",
    "safegraph": "noise of eps 1 a visit, small ones to 0 or 4",
    "google-county": "noise of eps 0.88 a person and day, up to 99 become 0",
    "google-state": "noise of eps 0.44 a person and day, up to 99 become 0",
    "google-flows": "noise of eps 0.66 a visit, up to 99 become 0",
    "google-environment": "noise of eps 2 a person and week",
    "wikimedia": "Gaussian noise of 18, up to 89 become 0",
    "wikimedia-2017": "noise of eps 1 a person and day, up to 449 become 0",
    "spectus-harris": "noise of eps 10 a person",
    "meta-movement": "noise of eps 2 a person and day",
}
NAMES = {str(wt.mechanisms.Mechanism.parse(name)): name for name in ("raw", *PRESETS)}
METRICS = {
    ("likelihood-ratio", "auc"): "auc",
    ("likelihood-ratio", "tpr_at_fpr_1pct"): "found",
    ("ceiling", "auc"): "ceiling",
    ("utility", "pattern_correlation"): "pattern",
    ("utility", "cells_kept"): "cells_kept",
}
SMALL = 1000


def main() -> None:
    """Read the audits, and write what is asked for."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("out", type=Path)
    options.add_argument("--page", type=Path, action="append", default=[])
    options.add_argument("--figure", type=Path)
    options.add_argument("--csv", type=Path)
    given = options.parse_args()
    found = study(given.out)
    tables = {"rules": rules(found), "trained": trained(given.out / "milan-like-trained")}
    for size in ("small", "large"):
        for what in ("auc", "found"):
            tables[f"{what}, {size} groups"] = single(found.filter(large=size == "large"), what)
    if not given.page:
        print("\n\n".join(tables.values()))
    for path in given.page:
        page = path.read_text(encoding="utf-8")
        for name, table in tables.items():
            start, end = f"<!-- {name} -->\n", "<!-- end -->"
            block = re.compile(f"{start}.*?{end}", re.DOTALL)
            page = block.sub(lambda _, new=f"{start}\n{table}\n\n{end}": new, page)
        path.write_text(page, encoding="utf-8")
    if given.csv is not None:
        found.drop("large").write_csv(given.csv, float_precision=4)
    if given.figure is not None:
        draw(found, given.figure)


def study(out: Path) -> pl.DataFrame:
    """Return a row for each data set, epoch, group size and rule, with intervals."""
    rows = []
    for data, epoch in ((data, epoch) for data in DATA for epoch in EPOCHS):
        if (out / f"{data}-{epoch}" / "verdicts.json").exists():
            measured = wt.load(out / f"{data}-{epoch}").to_frame()
            for (mechanism, m), of_rule in measured.filter(pl.col("group_size") > 0).group_by(
                "mechanism", "group_size", maintain_order=True
            ):
                row = {"data": data, "epoch": epoch, "m": m, "rule": NAMES[str(mechanism)]}
                for one in of_rule.iter_rows(named=True):
                    name = METRICS.get((one["attack"], one["metric"]))
                    if name is not None:
                        row |= {name: one["estimate"]}
                        row |= {f"{name}_{end}": one[end] for end in ("low", "high")}
                rows.append(row)
    found = pl.DataFrame(rows, infer_schema_length=None)
    # Where nothing is left, nothing is left of the pattern.
    return found.with_columns(pl.col("pattern").fill_null(0.0), large=pl.col("m") > SMALL)


def worst_first(found: pl.DataFrame) -> list[str]:
    """Return the rules by their median AUC."""
    median = found.group_by("rule").agg(pl.col("auc").median(), pl.col("auc").max().alias("most"))
    return median.sort("auc", "most", "rule", descending=[True, True, False])["rule"].to_list()


def rules(found: pl.DataFrame) -> str:
    """Return the main table: each rule over all data sets and group sizes."""
    heads = ["rule", "what it does", "AUC, hours", "AUC, days", "found, hours", "found, days"]
    heads += ["ceiling", "pattern, hours", "pattern, days"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for rule in worst_first(found):
        rows = found.filter(rule=rule)
        hours, days = (rows.filter(epoch=epoch) for epoch in EPOCHS)
        cells = [over(hours["auc"]), over(days["auc"])]
        cells += [over(hours["found"], percent=True), over(days["found"], percent=True)]
        cells += [over(rows["ceiling"]), over(hours["pattern"]), over(days["pattern"])]
        lines.append(f"| `{rule}` | {WORDS[rule]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def over(values: pl.Series, *, percent: bool = False) -> str:
    """Write the median of some audits, and the range over them."""
    known = values.drop_nulls()
    if not len(known):
        return ""
    three = known.median(), known.min(), known.max()
    if percent:
        return "{:.0f} % ({:.0f} to {:.0f})".format(*(100 * one for one in three))
    # Not -0.00.
    return "{:.2f} ({:.2f} to {:.2f})".format(*(round(one, 2) + 0.0 for one in three))


def single(found: pl.DataFrame, what: str) -> str:
    """Return a number of each rule in each audit, with intervals."""
    audits = found.select("data", "epoch", "m").unique(maintain_order=True).rows()
    heads = [f"{DATA[data][0]}, {EPOCHS[epoch][0]}, {m:,}" for data, epoch, m in audits]
    known = {
        (row["rule"], row["data"], row["epoch"]): ranged(row, what)
        for row in found.iter_rows(named=True)
    }
    lines = [f"| rule | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for rule in worst_first(found):
        cells = (known[rule, data, epoch] for data, epoch, _ in audits)
        lines.append(f"| `{rule}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def ranged(row: dict[str, float | None], what: str) -> str:
    """Write a number with its interval; of the share that is found its upper end, as lower is 0."""
    value, low, high = row[what], row[f"{what}_low"], row[f"{what}_high"]
    if value is None or low is None or high is None:
        return ""
    return (
        f"{value:.2f} (< {high:.2f})" if what == "found" else f"{value:.2f} ({low:.2f}, {high:.2f})"
    )


def trained(folder: Path) -> str:
    """Return what trained attacks reach beside the likelihood ratio."""
    if not (folder / "verdicts.json").exists():
        return "Not measured yet."
    measured = wt.load(folder).to_frame().filter(metric="auc")
    attacks = ["likelihood-ratio", "zero-knowledge", "knock-knock", "ceiling"]
    lines = [f"| rule | {' | '.join(attacks)} |", "|---" * (len(attacks) + 1) + "|"]
    for mechanism in measured["mechanism"].unique(maintain_order=True):
        rows = measured.filter(mechanism=mechanism)
        by_attack = {one["attack"].split("(")[0]: one for one in rows.iter_rows(named=True)}
        cells = [
            "{estimate:.2f} ({low:.2f} to {high:.2f})".format(**by_attack[one]) for one in attacks
        ]
        lines.append(f"| `{NAMES[mechanism]}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(found: pl.DataFrame, path: Path) -> None:
    """Draw risk beside usefulness: a line for each rule, a mark for each audit."""
    order = worst_first(found)
    audits = [(data, epoch) for data in DATA for epoch in EPOCHS]
    figure, axes = plt.subplots(1, 3, figsize=(12, 0.5 * len(order) + 1.6), sharey=True)
    panels = (
        ("risk: AUC, 1,000 people", "auc", found.filter(~pl.col("large"))),
        ("risk: AUC, the largest groups", "auc", found.filter("large")),
        ("use: correlation of published and true counts", "pattern", found),
    )
    for axis, (title, what, rows) in zip(axes, panels, strict=True):
        for row in rows.iter_rows(named=True):
            data, epoch = row["data"], row["epoch"]
            place = (audits.index((data, epoch)) + 0.5) / len(audits) - 0.5
            y = order.index(row["rule"]) + 0.8 * place
            colour, marker = DATA[data][1], EPOCHS[epoch][1]
            if what == "auc":
                axis.plot([row["auc_low"], row["auc_high"]], [y, y], color=colour, linewidth=0.7)
            fill = colour if row["large"] or what == "auc" else "white"
            axis.plot(row[what], y, marker, color=colour, markerfacecolor=fill, markersize=3.5)
        for between in range(1, len(order)):
            axis.axhline(between - 0.5, color="#e5e7eb", linewidth=0.6)
        axis.set_title(title, fontsize=10)
        axis.set_xlim((0.38, 1.02) if what == "auc" else (-0.05, 1.05))
    for axis in axes[:2]:
        axis.axvline(0.5, color="#8a8f98", linewidth=0.8)
        axis.axvline(0.6, color="#8a8f98", linewidth=0.8, linestyle="--")
    axes[0].set_yticks(range(len(order)), order, fontsize=9)
    axes[0].set_ylim(len(order) - 0.5, -0.5)
    figure.legend(handles=list(legend()), loc="lower center", ncols=8, fontsize=9, frameon=False)
    figure.tight_layout(rect=(0, 0.045, 1, 1))
    figure.savefig(path, metadata={"Date": None})


def legend() -> Iterable[Line2D]:
    """Explain colours and marks."""
    for words, colour in DATA.values():
        yield Line2D([], [], color=colour, linewidth=4, label=words)
    for words, marker in EPOCHS.values():
        yield Line2D([], [], color="#374151", marker=marker, linestyle="", label=words)
    for words, fill in (("1,000 people", "white"), ("largest groups", "#374151")):
        yield Line2D(
            [], [], color="#374151", marker="o", markerfacecolor=fill, linestyle="", label=words
        )


if __name__ == "__main__":
    main()
