"""The numbers of a study: ours in the columns of the paper's, and the paper's own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from whosthere.paper.experiments import EXPERIMENTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from whosthere.arrays import Floats
    from whosthere.paper.datasets import Dataset


@lru_cache(maxsize=1)
def published() -> pl.DataFrame:
    """Return every number of the paper's tables, one row each."""
    text = files("whosthere.paper").joinpath("published.csv").read_bytes()
    return pl.read_csv(text, schema_overrides={"value": pl.String})


def by_target(
    measured: Mapping[str, tuple[pl.DataFrame, Sequence[int]]], dataset: Dataset, n_users: int
) -> pl.DataFrame:
    """Return AUC and accuracy of every attack on every target, in every series.

    `measured` is what audits found of each target, and who the targets are, by experiment.
    """
    parts = []
    for name, (found, targets) in measured.items():
        # Targets get numbers of their own: rows of the traces are for nobody else. They are drawn
        # one after the other, so that those of a small experiment are the first of a large one.
        numbers = {row: i for i, row in enumerate(targets, start=1)}
        for series, point, setting in EXPERIMENTS[name].places(dataset, n_users):
            rows = found.filter(pl.col("setting") == str(setting))
            parts.append(
                rows.select(
                    pl.lit(series.name).alias("experiment"),
                    pl.lit(dataset.name).alias("dataset"),
                    pl.lit(series.parameter).alias("parameter"),
                    pl.lit(point.value).alias("value"),
                    "attack",
                    pl.col("target").replace_strict(numbers, return_dtype=pl.Int32),
                    pl.col("visits").cast(pl.Int32),
                    pl.col("releases").cast(pl.Int32),
                    "auc",
                    "accuracy",
                )
            )
    return pl.concat(parts)


def summarised(targets: pl.DataFrame) -> pl.DataFrame:
    """Return means and standard errors over targets, in the columns of the paper's numbers."""
    parts = [
        targets.drop_nulls(metric)
        .group_by("experiment", "dataset", "parameter", "value", "attack", maintain_order=True)
        .agg(
            pl.lit(metric).alias("metric"),
            pl.col(metric).mean().alias("mean"),
            (pl.col(metric).std() / pl.len().sqrt()).fill_null(0.0).alias("standard_error"),
            pl.len().alias("targets"),
            pl.col("releases").first(),
        )
        for metric in ("auc", "accuracy")
    ]
    return pl.concat(parts)


def beside_published(results: pl.DataFrame, like: str) -> pl.DataFrame:
    """Return the paper's numbers with ours, and their difference in standard errors of it.

    Without errors on either side there is no such difference.
    """
    theirs = published().filter(pl.col("dataset") == like).drop("dataset")
    keys = ["experiment", "parameter", "value", "attack", "metric"]
    ours = results.drop("dataset")
    both = theirs.join(ours, on=keys, how="inner", suffix="_ours", maintain_order="left")
    error = (pl.col("standard_error") ** 2 + pl.col("standard_error_ours") ** 2).sqrt()
    difference = pl.col("mean_ours") - pl.col("mean")
    return both.with_columns(
        difference.alias("difference"),
        pl.when(error > 0).then(difference / error).alias("in_standard_errors"),
    )


class Place(NamedTuple):
    """Where something was measured: an attack at one value of a series."""

    series: str
    value: str
    attack: str

    def __str__(self) -> str:
        return f"{self.attack} at {self.value}"


@dataclass(frozen=True, eq=False)
class Numbers:
    """What was measured, to look it up by place."""

    targets: pl.DataFrame

    @cached_property
    def _rows(self) -> dict[tuple[object, ...], pl.DataFrame]:
        return self.targets.partition_by("experiment", "value", "attack", as_dict=True)

    @property
    def n_targets(self) -> int:
        """Of how many targets something was measured."""
        return self.targets["target"].n_unique()

    def values(self, series: str, of: str = "value") -> list[str]:
        """Return the values that were measured of a series, or its attacks, in order."""
        own = self.targets.filter(pl.col("experiment") == series)
        return own[of].unique(maintain_order=True).to_list()

    def rows(self, place: Place) -> pl.DataFrame:
        """Return what was found of each target, by number; nothing where nothing was measured."""
        return self._rows.get(tuple(place), self.targets.clear()).sort("target")

    def aucs(self, *places: Place) -> Floats:
        """Return the AUCs of the targets that were measured at all places, by their number.

        The shape is (n_places, n_targets). A task that failed leaves out a target at some places.
        """
        rows = [self.rows(place) for place in places]
        shared = set.intersection(*(set(one["target"]) for one in rows))
        return np.array([one.filter(pl.col("target").is_in(shared))["auc"] for one in rows])
