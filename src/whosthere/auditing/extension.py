"""Adding targets and releases to an audit without repeating any work.

Targets are the first of all people in a random order, and releases have numbers. So a larger audit
holds a smaller one of the same seed: what was scored stays, and only the rest is done.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import polars as pl

from whosthere.auditing.vocabulary import CEILING

if TYPE_CHECKING:
    from whosthere.adversary.attacks import Attack
    from whosthere.auditing.plan import Plan
    from whosthere.auditing.setting import Scheme

# What may grow, and how a message calls it.
_GROWING = {"releases": "releases", "control_releases": "control releases"}
_GROWS = ("targets", "releases", "control_releases", "releases_of")


@dataclass(frozen=True)
class Scored:
    """How much of a task is done.

    Attributes
    ----------
    releases
        How many test releases each attack, and the ceiling, has scored, by name.
    controls
        How many control releases were scored.
    """

    releases: tuple[tuple[str, int], ...] = ()
    controls: int = 0

    @classmethod
    def wanted(cls, plan: Plan, scheme: Scheme) -> Self:
        """Return what a plan asks of each task under a scheme."""
        attacks = dict.fromkeys(one.attack for one in plan.contests_under(scheme))
        releases = {str(one): plan.releases_by(one) for one in attacks}
        releases[CEILING] = plan.releases_under(scheme)
        return cls(tuple(sorted(releases.items())), plan.control_releases)

    @classmethod
    def of(cls, rows: pl.DataFrame) -> Self:
        """Return what the rows of a task hold."""
        counted = (
            rows.filter(~pl.col("control")).group_by("attack").agg(pl.col("release").n_unique())
        )
        controls = rows.filter("control")["release"].n_unique()
        return cls(tuple(sorted(counted.iter_rows())), controls)

    @classmethod
    def from_json(cls, described: dict[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        releases = tuple(sorted(described["releases"].items()))
        return cls(releases, int(described["controls"]))

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return {"releases": dict(self.releases), "controls": self.controls}

    def by(self, attack: str) -> int:
        """Return how many test releases an attack has scored."""
        return dict(self.releases).get(attack, 0)

    def covers_all_by(self, attack: Attack, plan: Plan) -> bool:
        """Tell whether an attack has scored all that a plan asks of it."""
        tested = self.by(str(attack)) >= plan.releases_by(attack)
        return tested and self.controls >= plan.control_releases

    def covers(self, wanted: Scored) -> bool:
        """Tell whether all is done that is wanted; attacks that do not apply have no rows."""
        tested = all(n >= wanted.by(attack) for attack, n in self.releases)
        return bool(self.releases) and tested and self.controls >= wanted.controls


NOTHING = Scored()


def joined(before: pl.DataFrame, added: pl.DataFrame, plan: Plan, scheme: Scheme) -> pl.DataFrame:
    """Put the rows of a task together, in the order of one that was done at once."""
    contests = plan.contests_under(scheme)
    players = [(str(one.setting), str(one.attack)) for one in contests]
    settings = dict.fromkeys(str(one.setting) for one in contests)
    order = pl.DataFrame(
        [*players, *((setting, CEILING) for setting in settings)],
        schema={"setting": pl.String, "attack": pl.String},
        orient="row",
    ).with_row_index("place")
    # Earlier versions had fewer columns.
    rows = pl.concat([before, added], how="diagonal").join(
        order, on=["setting", "attack"], how="left"
    )
    # Test releases by number, then control releases.
    rows = rows.sort("control", "release", "place", maintain_order=True)
    return rows.select(added.columns)


def obstacle(before: dict[str, Any], now: dict[str, Any]) -> str | None:
    """Return why a plan does not extend another one, both as JSON objects; None if it does."""
    for key in before | now:
        if key not in _GROWS and before.get(key) != now.get(key):
            return (
                f"{key.replace('_', ' ')} would change, and only targets and releases can be added"
            )
    had, have = before.get("targets", []), now["targets"]
    if have[: len(had)] != had:
        return "the targets would be other people; give at least as many, chosen in the same way"
    for key, words in _GROWING.items():
        if now[key] < before.get(key, 0):
            return f"there would be {now[key]} {words} instead of {before[key]}"
    for attack, n in before.get("releases_of", {}).items():
        wanted = now.get("releases_of", {}).get(attack, now["releases"])
        if wanted < n:
            return f"{attack} would score {wanted} releases instead of {n}"
    return None
