"""What an audit found, as values to look at."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import polars as pl

from whosthere.auditing.risk import EverybodysRisk
from whosthere.auditing.series import Series, series_of
from whosthere.display import first_screen, in_one_line, stacked, table
from whosthere.errors import optional
from whosthere.game.leaks import LEAKS, MARGINALS, REGIONS
from whosthere.game.plan import TargetChoice
from whosthere.game.together import Together
from whosthere.inference.finding import Finding
from whosthere.inference.vocabulary import METRICS, OF_UTILITY, UTILITY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from matplotlib.figure import Figure

    from whosthere.auditing.follow_up import MeanOverTargets, WhatIf
    from whosthere.auditing.policy import Policy
    from whosthere.auditing.verdict import Verdict

SHOWN = ("auc", "pooled_auc", "accuracy", "tpr_at_fpr_1pct", "share_auc_90", "empirical_eps")
"""The metrics that a first look at an audit shows."""


@dataclass(frozen=True, eq=False)
class AuditResult:
    """What an audit found, just now or as its folder holds it.

    Settings and attacks are texts here, so that an audit of somebody's own attacks can be read
    without their code.
    """

    manifest: Mapping[str, Any]
    """What was planned, on which data, and by which software, as a JSON object."""
    findings: tuple[Finding, ...]
    """Every metric of every attack in every setting."""
    policy: Policy
    """The limits that were judged by."""
    verdicts: tuple[Verdict, ...]
    """One for each setting, by the policy."""
    trusted: bool | None
    """Whether the control shows no signal, as it must; None where there was no control."""
    failed_tasks: int
    """How many tasks could not be done; the findings rest on the others."""
    scores: pl.DataFrame
    """One row for each test release that an attack scored; the columns are described in
    `whosthere.inference.scores`. Targets are rows of the traces."""
    targets: pl.DataFrame
    """The AUC of every attack on every target. Here and in `scores`, `mechanism`, `group_size` and
    `knowledge` say what the setting consists of."""
    folder: Path | None = None
    """Where all of it is kept; None if it was kept nowhere."""
    regions: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=REGIONS))
    """The regions that leaks and marginals are about: index, id, and position and outline where
    these are known."""
    leaks: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=LEAKS))
    """Where and when people are found; `whosthere.game.leaks` describes the columns. Empty where it
    was not measured, or a part of it failed."""
    marginals: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=MARGINALS))
    """What an attacker sees of where and when people are, likewise."""
    what_if: tuple[WhatIf, ...] = ()
    """What larger regions and longer epochs would change for the riskiest settings."""
    everybody: EverybodysRisk = field(default_factory=EverybodysRisk)
    """How risk is spread over all people, where all were asked: tables, one of them a row for each
    person."""

    @property
    def name(self) -> str:
        """What to call it: the name of its folder."""
        return "audit" if self.folder is None else self.folder.resolve().name

    @property
    def plan(self) -> Mapping[str, Any]:
        """What was done, as a JSON object."""
        plan: Mapping[str, Any] = self.manifest["plan"]
        return plan

    @property
    def identity(self) -> str:
        """A fingerprint of all that decides the scores: the plan, the traces, the software."""
        deciding = {part: self.manifest[part] for part in ("plan", "traces", "versions")}
        return hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()

    @property
    def series(self) -> tuple[Series, ...]:
        """How risk grows where a table is published again and again, and for how long it may be."""
        return series_of(self.manifest["settings"], self.verdicts, self.findings)

    @property
    def n_targets(self) -> int:
        """How many people were attacked."""
        return len(self.plan["targets"])

    @property
    def include(self) -> float | None:
        """The chance with which each person is in a release; None where there are groups."""
        found = self.manifest.get("include")
        return None if found is None else float(found)

    @property
    def n_tasks(self) -> int:
        """How many tasks the audit has: mostly one for each target and scheme."""
        return n_tasks(self.manifest)

    @property
    def choice(self) -> TargetChoice | None:
        """How the targets were chosen; None where nobody knows."""
        found = self.manifest["targets_chosen"]
        return None if found is None else TargetChoice.from_json(found)

    @property
    def asked(self) -> str:
        """Whose membership was asked, in words."""
        choice = self.choice
        if choice is not None and choice.everybody:
            who = "people" if choice.who is None else choice.who
            aside = " who are not set aside" if self.plan["reference_size"] else ""
            return f"All {choice.eligible:,} {who}{aside}"
        n = self.n_targets
        return f"{n:,} {'person' if n == 1 else 'people'}, {choice or 'chosen in an unknown way'}"

    @property
    def together(self) -> Together | None:
        """How many people share most of their visits; None where nobody has measured it."""
        return Together.read(self.manifest["together"])

    @property
    def people_looked_at(self) -> int:
        """How many people leaks are sums over."""
        return int(self.manifest["people_looked_at"])

    @property
    def cautions(self) -> tuple[str, ...]:
        """What a reader of the results must know beforehand, a sentence each."""
        together = self.together
        sharing = () if together is None else together.in_words()
        return (*self.manifest["cautions"], *sharing)

    def to_frame(self) -> pl.DataFrame:
        """Return the findings as a table, one row each.

        Its `to_pandas` needs the `pandas` extra.
        """
        columns = {one.name: _TYPES[one.type] for one in fields(Finding)}
        found = pl.DataFrame([finding.to_json() for finding in self.findings], columns)
        return with_settings(found, self.manifest)

    def to_json(self) -> dict[str, Any]:
        """Return verdicts and findings as a JSON object."""
        return {
            "trusted": self.trusted,
            "failed_tasks": self.failed_tasks,
            "policy": self.policy.to_json(),
            **{name: self.manifest[name] for name in ("targets_chosen", "cautions", "together")},
            "verdicts": [verdict.to_json() for verdict in self.verdicts],
            **({"series": [one.to_json() for one in self.series]} if self.series else {}),
            "findings": [finding.to_json() for finding in self.findings],
        }

    def plot(self, what: str = "auc") -> Figure:
        """Draw what was found; needs matplotlib.

        Parameters
        ----------
        what
            A metric of every attack in every setting, with intervals; ``"roc"``, how many people
            are found at which rate of false alarms; or ``"people"``, how well each target is found.
        """
        drawn: Figure = optional("whosthere.auditing.plots", "A picture", "plot").draw(self, what)
        return drawn

    def __repr__(self) -> str:
        said = [f"{verdict.setting}: {verdict.decision}" for verdict in self.verdicts]
        return in_one_line("AuditResult", *said, *self._warnings())

    def _repr_html_(self) -> str:
        """Show the first screen of the report, and tables of what was reached and what is left."""
        reached = self._table("setting", SHOWN, of_utility=False)
        left = self._table("left to publish in", OF_UTILITY, of_utility=True)
        return stacked(first_screen(self), reached, left)

    def _warnings(self) -> list[str]:
        """Return what a reader must not overlook."""
        n = self.failed_tasks
        said = [f"{n} of {self.n_tasks} tasks failed"] if n else []
        if self.trusted is None:
            said.append("there was no control")
        if self.choice is not None and self.choice.who is not None:
            said.append(f"about {self.choice.who}")
        return said

    def _table(self, first: str, metrics: Sequence[str], *, of_utility: bool) -> str:
        """Return metrics of attacks, or of what each setting leaves to publish, as HTML."""
        own = [one for one in self.findings if (one.attack == UTILITY) == of_utility]
        found = {(one.setting, one.attack, one.metric): one for one in own}
        rows = [
            [setting, attack, *(shown(found.get((setting, attack, metric))) for metric in metrics)]
            for setting, attack in dict.fromkeys((one.setting, one.attack) for one in own)
        ]
        words = [METRICS[name].words for name in metrics]
        titles = [METRICS[name].explanation for name in metrics]
        if not of_utility:
            return table((first, "attack", *words), rows, titles=("", "", *titles))
        rows = [[setting, *numbers] for setting, _, *numbers in rows]
        return table((first, *words), rows, titles=("", *titles)) if rows else ""


def with_settings(rows: pl.DataFrame, manifest: Mapping[str, Any]) -> pl.DataFrame:
    """Return rows with what their settings consist of beside these, by the manifest."""
    in_series = any("weeks" in one for one in manifest["settings"])
    columns = _SETTING | ({"weeks": pl.Int64} if in_series else {})
    settings = pl.DataFrame(
        [{name: one.get(name) for name in columns} for one in manifest["settings"]], columns
    )
    own = rows.select("setting", pl.exclude(settings.columns))
    joined = settings.join(own, on="setting", how="right", maintain_order="right")
    return joined.select(*settings.columns, pl.exclude(settings.columns))


def n_tasks(manifest: Mapping[str, Any]) -> int:
    """Return how many tasks the audit with a manifest has: by default one a target and scheme."""
    if "tasks" in manifest:
        return int(manifest["tasks"])
    # What is known of a target makes another setting, but no other releases.
    schemes = {(one["mechanism"], one["group_size"]) for one in manifest["settings"]}
    return len(manifest["plan"]["targets"]) * len(schemes)


def shown(finding: Finding | MeanOverTargets | None, *, between: str = " ") -> str:
    """Write a finding for a cell of a table: its value, and its interval after it."""
    if finding is None:
        return ""
    if finding.estimate is None:
        return "not resolvable"
    if finding.low is None or finding.high is None:
        return f"{finding.estimate:.2f}"
    return f"{finding.estimate:.3f}{between}{finding.low:.2f}\N{EN DASH}{finding.high:.2f}"


_SETTING = {
    "setting": pl.String,
    "mechanism": pl.String,
    "group_size": pl.Int64,
    "knowledge": pl.String,
}
# Of the fields of a finding.
_TYPES: dict[Any, Any] = {
    "str": pl.String,
    "str | None": pl.String,
    "int": pl.Int64,
    "float | None": pl.Float64,
}
