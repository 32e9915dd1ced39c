"""Scores: one row for each release that an attack scored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import polars as pl

from whosthere.inference.vocabulary import CEILING, STUDY_ONLY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from whosthere.arrays import Floats
    from whosthere.inference.panel import Panel

SCHEMA = {
    "setting": pl.String(),
    "attack": pl.String(),
    "target": pl.Int32(),
    "release": pl.Int32(),
    "label": pl.Boolean(),
    "score": pl.Float64(),
    "threshold": pl.Float64(),
    "calibrated": pl.Float64(),
    "seconds": pl.Float64(),
    "visits": pl.Int32(),
    "uniqueness": pl.Float64(),
    "visits_kept": pl.Float64(),
    "cells_kept": pl.Float64(),
    "relative_error": pl.Float64(),
    "pattern_correlation": pl.Float64(),
    "fault": pl.String(),
    "noise": pl.Int64(),
    "others": pl.Int64(),
    "law": pl.List(pl.Float64()),
    "control": pl.Boolean(),
}
"""One row for each release that an attack scored.

`setting` and `attack` are specs, `target` is a row of the traces, `label` whether the target is in
the release, `calibrated` the score on the scale of the attacker's own null, which can be compared
between targets, `seconds` what the score cost (with its share of the fit), `visits` how many visits
the target made, rounded up so far that at least 5 people share the number, `uniqueness` the mean
chance that the target is alone in a visited cell, in tenths.
`visits_kept`, `cells_kept`, `relative_error` and `pattern_correlation` are what the protection
leaves of the true counts, mean over the first `RELEASES_FOR_UTILITY` test releases of the target; a
release without any pattern counts as a correlation of 0. The attack "ceiling" is none: its score is
the best test of the game (`whosthere.game.optimum`).

Where `control` is true, the target is in no release, and `label` tells whether a stand-in took its
place.

The rows of the ceiling also hold what the checks of the audit itself saw
(`whosthere.game.checks`): `fault`, what is wrong with a release; `noise` and `others`, numbers
for its random numbers and for its people besides the target; and in one row for all releases that
were scored together `law`, where their values lie in their laws. `fault` is in the rows of controls
too.
"""
RULED_OUT = -1e9
"""The score of a release that cannot hold the target: below any other, and still finite."""
OF_CHECKS = ("fault", "noise", "others", "law")
"""The columns that are about the audit itself."""
RELEASES_FOR_UTILITY = 2
"""How many test releases of each target and scheme are compared with the truth."""


class AskedOfEverybody(Protocol):
    """The scores of all people by one attack in one setting, read when they are needed."""

    def tests(self) -> Panel:
        """Return those of test rounds."""

    def controls(self) -> Panel:
        """Return those of control rounds, whose labels are coins."""

    def people(self) -> pl.Series:
        """Return whose they are: rows of the traces."""


@dataclass(frozen=True, eq=False)
class Scores:
    """What attacks said.

    `tests` and `controls` are about targets, and have the columns of `SCHEMA`. `everybody` has, by
    setting and attack, what was said of all who are asked, where these are more than targets.
    """

    tests: pl.DataFrame
    controls: pl.DataFrame
    everybody: Mapping[tuple[str, str], AskedOfEverybody] = field(default_factory=dict)

    def and_of(self, others: Scores) -> Scores:
        """Add other attacks on the same releases; the ceiling is known already."""
        tests, controls = (
            pl.concat([old, new.filter(pl.col("attack") != CEILING)])
            for old, new in ((self.tests, others.tests), (self.controls, others.controls))
        )
        return Scores(tests, controls, {**others.everybody, **self.everybody})


def shared_releases(tests: pl.DataFrame) -> pl.DataFrame:
    """Return the scores of those releases that all attacks of a setting scored.

    Attacks are compared on these: a difference between them is then not one between releases. What
    is for study only does not count, so that nothing else changes by it.
    """
    counted = tests.filter(~pl.col("attack").str.ends_with(STUDY_ONLY))
    lasts = counted.group_by("setting", "attack").agg(pl.col("release").max())
    shared = lasts.group_by("setting").agg(pl.col("release").min().alias("last"))
    joined = tests.join(shared, on="setting", how="left", maintain_order="left")
    return joined.filter(pl.col("release") <= pl.col("last")).drop("last")


def comparable_scores(rows: pl.DataFrame) -> Floats:
    """Return scores on the scale of the attacker's own null, which makes targets comparable.

    Where an attack has none, its scores are counted from its threshold.
    """
    own = rows["calibrated"].fill_nan(None)
    return own.fill_null(rows["score"] - rows["threshold"]).to_numpy()
