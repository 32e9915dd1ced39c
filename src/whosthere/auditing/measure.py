"""From scores to findings: every metric of every attack in every setting."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from whosthere.auditing import metrics
from whosthere.auditing.control import control_auc
from whosthere.auditing.finding import Finding
from whosthere.auditing.vocabulary import CEILING, CONTROL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from whosthere.auditing.metrics import Estimate

_RATES = {"tpr_at_fpr_10pct": 0.1, "tpr_at_fpr_1pct": 0.01, "tpr_at_fpr_01pct": 0.001}


def measure(
    tests: pl.DataFrame, controls: pl.DataFrame, *, seed: int, n_controls: int | None = None
) -> list[Finding]:
    """Measure everything.

    Parameters
    ----------
    tests, controls
        Scores as `tests_and_controls` returns them.
    seed
        Of the bootstrap.
    n_controls
        How many controls share the chance of a false alarm; by default those given here.
    """
    parts = _by_setting_and_attack(tests)
    control_parts = _by_setting_and_attack(controls)
    n_controls = n_controls or len(control_parts)
    found: list[Finding] = []
    for (setting, attack), rows in parts.items():
        measured = _Measured(rows, seed)
        if not any(finding.setting == setting for finding in found):
            ceiling = measured.mean(measured.per_target("ceiling"))
            found.append(replace(measured.finding("auc", ceiling), attack=CEILING))
        found += measured.findings()
        if (setting, attack) in control_parts:
            found.append(_control(rows, control_parts[setting, attack], n_controls))
    return found


def per_target(tests: pl.DataFrame) -> pl.DataFrame:
    """Return the AUC of every attack on every target, beside what is known of the target."""
    parts = [
        measured.rows.group_by("setting", "attack", "target", "visits", "uniqueness", "ceiling")
        .len("releases")
        .sort("target")
        .with_columns(auc=measured.aucs)
        for measured in (_Measured(rows, 0) for rows in _by_setting_and_attack(tests).values())
    ]
    return pl.concat(parts) if parts else pl.DataFrame()


def control_holds(findings: Sequence[Finding]) -> bool | None:
    """Tell whether the control found nothing, as it must in a sound audit; None without one."""
    controls = [finding for finding in findings if finding.metric == CONTROL]
    if not controls:
        return None
    return all(
        finding.low is not None and finding.high is not None and finding.low <= 0.5 <= finding.high
        for finding in controls
    )


def _by_setting_and_attack(frame: pl.DataFrame) -> dict[tuple[str, str], pl.DataFrame]:
    parts = frame.partition_by("setting", "attack", as_dict=True, maintain_order=True)
    return {(str(setting), str(attack)): rows for (setting, attack), rows in parts.items()}


def _control(tests: pl.DataFrame, controls: pl.DataFrame, n_controls: int) -> Finding:
    """Compare releases with a stand-in to those without the target, of one attack and setting."""
    rows = pl.concat([controls, tests.filter(~pl.col("label"))])
    scores, stand_in, targets = (rows[name].to_numpy() for name in ("score", "label", "target"))
    estimate = control_auc(scores, stand_in, targets, n_controls=n_controls)
    note = f"99 % interval for all {n_controls} controls together"
    return _Measured(rows, 0).finding(CONTROL, replace(estimate, note=note))


@dataclass(frozen=True, eq=False)
class _Measured:
    """The test scores of one attack in one setting."""

    rows: pl.DataFrame
    seed: int

    @cached_property
    def labels(self) -> NDArray[np.bool_]:
        return self.rows["label"].to_numpy()

    @cached_property
    def margins(self) -> NDArray[np.float64]:
        """Scores from the attacker's own threshold, which makes those of targets comparable."""
        return (self.rows["score"] - self.rows["threshold"]).to_numpy()

    @cached_property
    def aucs(self) -> NDArray[np.float64]:
        """AUC of each target, by ascending row."""
        scores, targets = self.rows["score"].to_numpy(), self.rows["target"].to_numpy()
        return metrics.auc_by_target(scores, self.labels, targets)[1]

    def per_target(self, column: str) -> NDArray[np.float64]:
        """Return what is the same for all releases of a target, by ascending row."""
        firsts = self.rows.group_by("target").agg(pl.col(column).first()).sort("target")
        return firsts[column].cast(pl.Float64).to_numpy()

    def findings(self) -> Iterator[Finding]:
        says_in = self.margins > 0
        yield self.finding("auc", self.mean(self.aucs))
        yield self.finding("accuracy", metrics.accuracy(says_in, self.labels))
        yield self.finding("advantage", metrics.advantage(says_in, self.labels))
        for name, fpr in _RATES.items():
            yield self.finding(name, metrics.tpr_at_fpr(self.margins, self.labels, fpr))
        yield from self._empirical_eps()
        yield self.finding("share_auc_90", metrics.share_at_least(self.aucs, 0.9))
        yield from self._risk("visits", ("auc_fewest_visits", "auc_most_visits"))
        yield from self._risk("uniqueness", ("auc_least_unique", "auc_most_unique"))

    def _empirical_eps(self) -> Iterator[Finding]:
        # Releases take turns with and without the target: pairs of them go to either half.
        held_out = (self.rows["release"].to_numpy() // 2) % 2 == 0
        judged = _Measured(self.rows.filter(~held_out), self.seed)
        n_in, n_out = int(judged.labels.sum()), int((~judged.labels).sum())
        if not min(n_in, n_out):
            nothing = metrics.Estimate(None, None, None, "not resolvable with n = 1 a target")
            yield self.finding("empirical_eps", nothing)
            return
        bound = metrics.empirical_eps(self.margins, self.labels, held_out=held_out)
        yield judged.finding("empirical_eps", bound)
        most = metrics.eps_ceiling(n_in, n_out)
        yield judged.finding("empirical_eps_ceiling", metrics.Estimate(most, most, most))

    def _risk(self, column: str, halves: tuple[str, str]) -> Iterator[Finding]:
        """Relate the risk of targets to what is special about them."""
        values, targets = self.per_target(column), self.rows["target"].unique().sort()
        correlation = metrics.rank_correlation(values, self.aucs, seed=self.seed)
        yield self.finding(f"risk_{column}_correlation", correlation)
        order = np.argsort(values, kind="stable")
        for name, places in zip(halves, np.array_split(order, 2), strict=True):
            if places.size:
                own = self.rows.filter(pl.col("target").is_in(targets[places].implode()))
                half = _Measured(own, self.seed)
                yield half.finding(name, half.mean(half.aucs))

    def mean(self, values: NDArray[np.float64]) -> Estimate:
        return metrics.mean_over_targets(values, bounds=(0.0, 1.0), seed=self.seed)

    def finding(self, metric: str, estimate: Estimate) -> Finding:
        n_in = int(self.labels.sum())
        return Finding(
            self.rows["setting"][0],
            self.rows["attack"][0],
            metric,
            estimate.value,
            estimate.low,
            estimate.high,
            self.rows["target"].n_unique(),
            n_in,
            self.labels.size - n_in,
            estimate.note,
            estimate.standard_error,
        )
