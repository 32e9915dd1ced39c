"""Each number that differs from the published one by over two standard errors has a reason."""

import re
from pathlib import Path

import polars as pl
import pytest

from whosthere.paper.results import beside_published

PAGES = Path(__file__).parents[2] / "docs" / "reproduction"
DATA = {"milan-like": "milan", "cdr-like": "cdr", "mibici": "milan", "tdrive": "cdr"}
COLUMNS = ["series", "attack", "at", "published", "ours", "SE", "why"]


def discussed(data):
    """Return the rows of all tables of differences of a data set, which a heading or page names."""
    for page in ("differences", "other-data"):
        about, inside = "milan-like", False
        for line in (PAGES / f"{page}.md").read_text(encoding="utf-8").splitlines():
            heading, cells = re.match(r"## (\S+)$", line), line.strip("| ").split(" | ")
            if heading and heading[1] in DATA:
                about = heading[1]
            inside = line.startswith("|") and (inside or cells == COLUMNS)
            if inside and about == data and cells != COLUMNS and not line.startswith("|---"):
                yield cells


@pytest.mark.parametrize("data", DATA)
def test_every_difference_has_its_row_and_a_reason(data):
    results = pl.read_csv(PAGES / data / "results.csv", schema_overrides={"value": pl.String})
    off = beside_published(results, DATA[data]).filter(pl.col("in_standard_errors").abs() > 2)
    rows = off.group_by("experiment", "attack", "metric", maintain_order=True).agg(
        pl.col("value", "mean", "mean_ours", "in_standard_errors")
    )
    short = {"knock-knock": "KK", "zero-knowledge": "ZK"}
    expected = [
        [
            row["experiment"],
            short[row["attack"]],
            ", ".join(row["value"]),
            *(", ".join(f"{n:.3f}" for n in row[name]) for name in ("mean", "mean_ours")),
            ", ".join(f"{n:+.1f}" for n in row["in_standard_errors"]),
        ]
        for row in rows.to_dicts()
    ]
    found = list(discussed(data))
    assert sorted(row[:6] for row in found) == sorted(expected)
    for *_, why in found:
        assert re.search(r"\]\(\S*#\S+\)|not explained", why, re.IGNORECASE)
