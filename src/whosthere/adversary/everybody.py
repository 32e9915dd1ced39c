"""What an attack says of everybody who may be in a release, and how many it finds by that."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import polars as pl
from scipy.special import expit

from whosthere.adversary.attacks.base import AttackOnEverybody
from whosthere.data.files import for_sheets, new_file, refuse_existing, write_table
from whosthere.data.floor import LEAST_PEOPLE
from whosthere.display import Shown
from whosthere.errors import FileError, InputError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    from whosthere.adversary.attacks.base import Attack, View
    from whosthere.arrays import Floats
    from whosthere.data.traces import Traces
    from whosthere.privacy.release import Release

KIND = "scores of everybody"
_ENDINGS = {".parquet", ".csv"}
FALSE_ALARMS = (0.01, 0.001)
"""The shares of false alarms at which people are counted who are found."""


class FoundAt(NamedTuple):
    """How many are called in at a share of false alarms among those who are out.

    `right` is the share of them who are in, and `share` that of all who are in who are called so.
    Both are what the attacker expects by its own chances; None if too few people are called in.
    """

    false_alarms: float
    people: int | None
    right: float | None
    share: float | None


@dataclass(frozen=True, eq=False, repr=False)
class ScoresOfEverybody(Shown):
    """What an attack says of everybody who may be in a release: the logs of likelihood ratios.

    Parameters
    ----------
    attack
        The spec of the attack.
    group_size
        How many people are in the release.
    prior
        The chance of being in before the release is seen, the same for all.
    users
        Their ids, in the order of the traces.
    scores
        Higher means more likely in, shape (n_users,).
    """

    attack: str
    group_size: int
    prior: float
    users: tuple[str, ...]
    scores: Floats

    def _facts(self) -> dict[str, object]:
        return {"users": len(self.users), "attack": self.attack, "in the release": self.group_size}

    @property
    def chances(self) -> Floats:
        """The chance that each is in, as the attacker sees it, shape (n_users,)."""
        return np.asarray(expit(self.scores + math.log(self.prior / (1 - self.prior))))

    def to_frame(self, *, with_ids: bool = False) -> pl.DataFrame:
        """Return a row for each person: row of the traces, score and chance of being in."""
        frame = pl.DataFrame({"row": np.arange(len(self.users)), "score": self.scores})
        frame = frame.with_columns(chance=self.chances)
        ids = pl.Series("user", self.users, dtype=pl.String)
        return frame.insert_column(1, ids) if with_ids else frame

    def found(self, false_alarms: Iterable[float] = FALSE_ALARMS) -> list[FoundAt]:
        """Return how many are found at some shares of false alarms."""
        order = np.argsort(-self.scores, kind="stable")
        chances, scores = self.chances[order], self.scores[order]
        # People with the same score are called in together.
        ends = np.append(np.flatnonzero(np.diff(scores)) + 1, scores.size)
        false, right = (np.append(0.0, np.cumsum(one))[ends] for one in (1 - chances, chances))
        each = []
        for most in false_alarms:
            i = int(np.searchsorted(false, most * false[-1], side="right")) - 1
            if i < 0 or ends[i] < LEAST_PEOPLE:
                each.append(FoundAt(most, None, None, None))
                continue
            n = int(ends[i])
            each.append(FoundAt(most, n, float(right[i] / n), float(right[i] / right[-1])))
        return each

    def save(
        self, path: str | os.PathLike[str], *, with_ids: bool = False, force: bool = False
    ) -> None:
        """Write the rows of `to_frame` to a private file that ends in ``.parquet`` or ``.csv``."""
        path, frame = Path(path), self.to_frame(with_ids=with_ids)
        refuse_scores(path, force=force)
        if path.suffix == ".csv":
            if with_ids:
                frame = frame.with_columns(for_sheets(frame["user"]))
            with new_file(path, force=force) as temporary:
                frame.write_csv(temporary)
            return
        about = {"attack": self.attack, "group_size": self.group_size, "prior": self.prior}
        write_table(frame, path, kind=KIND, metadata=about, force=force)

    def to_json(self) -> dict[str, Any]:
        """Return how many are found as a JSON object that names nobody."""
        numbers = {"people": len(self.users), "group_size": self.group_size, "prior": self.prior}
        return {"attack": self.attack, **numbers, "found": [one._asdict() for one in self.found()]}


def score_everybody(
    attack: Attack, releases: Sequence[Release], views: Sequence[View], prior: float | None = None
) -> ScoresOfEverybody:
    """Score a publication for everybody whose visits are known to the views of its tables.

    The chance of being in before is m among all by default.
    """
    if not isinstance(attack, AttackOnEverybody):
        fix = "Use likelihood-ratio, or name a target"
        raise InputError(f"{attack} attacks one person after the other", fix=fix)
    attack.check_tables(views)
    people = cast("Traces", views[0].knowledge)
    m, n = releases[0].group_size, people.n_users
    if m >= n and ("everybody" in attack.uses or prior is None):
        raise InputError(
            f"the release counts {m:,} people, and there are traces of {n:,}",
            fix="Give traces of everybody who may be in it; or, where the attack does not need "
            "them, the chance of being in (`prior`)",
        )
    before = m / n if prior is None else prior
    if not 0 < before < 1:
        raise InputError(f"a prior of {before:g} is not between 0 and 1", fix="Leave it out")
    scores = attack.scorer(views)(releases)
    return ScoresOfEverybody(str(attack), m, before, people.users, scores)


def refuse_scores(path: Path, *, force: bool, inputs: Iterable[Path | None] = ()) -> None:
    """Refuse a file that scores cannot be written to, before any work is done."""
    if path.suffix not in _ENDINGS:
        raise FileError("has an unknown extension", where=path, fix="Use .parquet or .csv")
    refuse_existing(path, force=force, inputs=inputs)
