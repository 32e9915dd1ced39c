"""The tables of benchmarks/attacks.md from the scores of an audit: mean AUC and accuracy by target.

    python benchmarks/tables.py RUN
    python benchmarks/tables.py RUN --csv benchmarks/results/attacks_milan-like.csv

Prints Markdown, mean and standard error over targets. With --csv it also writes one row for each
setting, attack and target, which is what the repository keeps. Where some attacks scored more
releases than others, the tables rest on those that all attacks of a setting scored.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import polars as pl

from whosthere.inference.metrics import accuracy_by_target, auc_by_target
from whosthere.inference.scores import shared_releases
from whosthere.inference.vocabulary import CEILING


def by_target(scores: pl.DataFrame) -> pl.DataFrame:
    """Return AUC and accuracy of every attack, and the AUC of the ceiling, on every target."""
    parts = []
    keys = ("setting", "attack")
    groups = scores.partition_by(*keys, as_dict=True, maintain_order=True)
    for (setting, attack), rows in groups.items():
        score, label, target, threshold = (
            rows[name].to_numpy() for name in ("score", "label", "target", "threshold")
        )
        targets, aucs = auc_by_target(score, label, target)
        right = accuracy_by_target(score > threshold, label, target)[1]
        parts.append(
            pl.DataFrame(
                {
                    "setting": setting,
                    "attack": attack,
                    "target": targets,
                    "auc": aucs,
                    "accuracy": [None] * len(aucs) if attack == CEILING else right,
                },
                schema_overrides={"accuracy": pl.Float64},
            )
        )
    return pl.concat(parts)


def markdown(scores: pl.DataFrame, metric: str = "auc") -> str:
    """Write a metric as a table, a row for each setting and a column for each attack."""
    values = by_target(scores).drop_nulls(metric)
    means = values.group_by("setting", "attack", maintain_order=True).agg(
        pl.col(metric).mean().alias("mean"),
        (pl.col(metric).std() / pl.len().sqrt()).alias("error"),
    )
    found = {(row["setting"], row["attack"]): row for row in means.to_dicts()}
    attacks = sorted(means["attack"].unique(maintain_order=True), key=lambda name: name == CEILING)
    lines = [f"| setting | {' | '.join(attacks)} |", "|---" * (len(attacks) + 1) + "|"]
    for setting in means["setting"].unique(maintain_order=True):
        cells = [_shown(found.get((setting, attack))) for attack in attacks]
        mechanism = setting.rsplit(", m=", 1)[0].replace("|", "\\|")
        lines.append(f"| `{mechanism}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def _shown(row: dict | None) -> str:
    return "" if row is None else f"{row['mean']:.3f} ± {row['error'] or 0:.3f}"


def main() -> None:
    """Print the tables of a run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    scores = shared_releases(pl.read_parquet(options.run / "scores.parquet"))
    for metric in ("auc", "accuracy"):
        print(f"**{metric}**\n\n{markdown(scores, metric)}\n")
    if options.csv:
        by_target(scores).write_csv(options.csv, float_precision=6)


if __name__ == "__main__":
    main()
