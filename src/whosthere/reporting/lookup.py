"""Findings by what they are about."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from whosthere.inference.vocabulary import CEILING, GUARANTEE, NOT_ATTACKS, UTILITY

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from whosthere.inference.finding import Finding

FOUND = "tpr_at_fpr_1pct"
"""The measure of how many people are found."""
KEPT = "pattern_correlation"
"""The measure of utility that risk is drawn against: 1 keeps all, 0 nothing."""


@dataclass(frozen=True, eq=False)
class Lookup:
    """The findings of an audit by setting, attack and metric."""

    findings: Sequence[Finding]

    @cached_property
    def _by_place(self) -> dict[tuple[str, str, str], Finding]:
        return {(one.setting, one.attack, one.metric): one for one in self.findings}

    @cached_property
    def attacks(self) -> tuple[str, ...]:
        """All real attacks, each once."""
        names = (one.attack for one in self.findings)
        return tuple(dict.fromkeys(n for n in names if n not in NOT_ATTACKS))

    def find(self, setting: str, attack: str, metric: str) -> Finding | None:
        """Return a finding, None where it was not measured."""
        return self._by_place.get((setting, attack, metric))

    def attacks_in(self, setting: str) -> tuple[str, ...]:
        """Return the real attacks of a setting."""
        there = {one.attack for one in self.findings if one.setting == setting}
        return tuple(attack for attack in self.attacks if attack in there)

    def largest(self, setting: str, metric: str) -> Finding | None:
        """Return the largest value that a real attack reached, None where none has one."""
        found = (self.find(setting, attack, metric) for attack in self.attacks_in(setting))
        known = [one for one in found if one is not None and one.estimate is not None]
        return max(known, key=lambda one: one.estimate or 0.0, default=None)

    def riskiest(self, settings: Iterable[str], most: int) -> frozenset[str]:
        """Return the settings in which attacks do best: at most so many, but at least one."""
        aucs = {setting: self.largest(setting, "auc") for setting in settings}
        risk = {setting: (auc and auc.estimate) or 0.0 for setting, auc in aucs.items()}
        return frozenset(sorted(risk, key=lambda name: -risk[name])[: max(most, 1)])

    def ceiling(self, setting: str, metric: str) -> float | None:
        """Return the value of the ceiling."""
        return self._estimate(setting, CEILING, metric)

    def guarantee(self, setting: str, metric: str) -> float | None:
        """Return the guaranteed value."""
        return self._estimate(setting, GUARANTEE, metric)

    def _estimate(self, setting: str, line: str, metric: str) -> float | None:
        found = self.find(setting, line, metric)
        return None if found is None else found.estimate

    def kept(self, setting: str) -> float | None:
        """Return what a setting keeps, from 0 to 1; None where that is not known."""
        value = self._estimate(setting, UTILITY, KEPT)
        return None if value is None else min(max(value, 0.0), 1.0)
