"""Adding targets and releases to an audit without repeating any work.

Targets are the first of all people in a random order, and releases have numbers. So a larger audit
holds a smaller one of the same seed: what was scored stays, and only the rest is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from whosthere.inference.vocabulary import CEILING

if TYPE_CHECKING:
    from whosthere.game.plan import Plan
    from whosthere.privacy.scheme import Scheme

# What may grow, and how a message calls it.
_GROWING = {"releases": "releases", "control_releases": "control releases"}
_GROWS = ("targets", "releases", "control_releases", "releases_of")


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
    rows = pl.concat([before, added]).join(order, on=["setting", "attack"], how="left")
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
