"""From scores to findings: every metric of every attack in every setting."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from whosthere.audit import metrics
from whosthere.audit.control import control_auc
from whosthere.audit.finding import Finding
from whosthere.audit.vocabulary import CEILING, CONTROL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from whosthere.audit.metrics import Estimate

_RATES = {"tpr_at_fpr_10pct": 0.1, "tpr_at_fpr_1pct": 0.01, "tpr_at_fpr_01pct": 0.001}


def findings_from(tests: pa.Table, controls: pa.Table, *, seed: int) -> list[Finding]:
    """Measure everything; the tables are those of `RunFolder.collect`."""
    parts = _by_setting_and_attack(tests)
    control_parts = _by_setting_and_attack(controls)
    found: list[Finding] = []
    for (setting, attack), rows in parts.items():
        measured = _Measured(rows, seed)
        if not any(finding.setting == setting for finding in found):
            found.append(measured.finding(setting, CEILING, "auc", measured.ceiling()))
        for metric, estimate in measured.estimates():
            found.append(measured.finding(setting, attack, metric, estimate))
        if (setting, attack) in control_parts:
            found.append(
                _control(setting, attack, rows, control_parts[setting, attack], len(control_parts))
            )
    return found


def control_holds(findings: Sequence[Finding]) -> bool:
    """Tell whether the control found nothing, as it must in a sound audit."""
    return all(
        finding.low <= 0.5 <= finding.high
        for finding in findings
        if finding.metric == CONTROL and finding.low is not None and finding.high is not None
    )


def _by_setting_and_attack(table: pa.Table) -> dict[tuple[str, str], pl.DataFrame]:
    frame = pl.DataFrame(table)
    parts = frame.partition_by("setting", "attack", as_dict=True, maintain_order=True)
    return {(str(setting), str(attack)): rows for (setting, attack), rows in parts.items()}


def _control(
    setting: str, attack: str, tests: pl.DataFrame, controls: pl.DataFrame, n_controls: int
) -> Finding:
    """Compare releases with a stand-in to those without the target."""
    rows = pl.concat([controls, tests.filter(~pl.col("label"))])
    stand_in = rows["label"].to_numpy()
    estimate = control_auc(
        stand_in, rows["score"].to_numpy(), rows["target"].to_numpy(), n_controls=n_controls
    )
    return Finding(
        setting,
        attack,
        CONTROL,
        estimate.value,
        estimate.low,
        estimate.high,
        rows["target"].n_unique(),
        int(stand_in.sum()),
        int((~stand_in).sum()),
        f"99 % interval for all {n_controls} controls together",
    )


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

    def ceiling(self) -> Estimate:
        return self._mean(self.per_target("ceiling"))

    def estimates(self) -> Iterator[tuple[str, Estimate]]:
        says_in = self.margins > 0
        yield "auc", self._mean(self.aucs)
        yield "accuracy", metrics.accuracy(says_in, self.labels)
        yield "advantage", metrics.advantage(says_in, self.labels)
        for name, fpr in _RATES.items():
            yield name, metrics.tpr_at_fpr(self.margins, self.labels, fpr)
        yield from self._empirical_eps()
        yield "share_auc_90", metrics.share_at_least(self.aucs, 0.9)
        yield from self._risk("visits", ("auc_fewest_visits", "auc_most_visits"))
        yield from self._risk("uniqueness", ("auc_least_unique", "auc_most_unique"))

    def _empirical_eps(self) -> Iterator[tuple[str, Estimate]]:
        # Releases take turns with and without the target: pairs of them go to either half.
        held_out = (self.rows["release"].to_numpy() // 2) % 2 == 0
        judged = self.labels[~held_out]
        n_in, n_out = int(judged.sum()), int((~judged).sum())
        if not min(n_in, n_out):
            nothing = metrics.Estimate(None, None, None, "not resolvable with n = 0 in one half")
            yield "empirical_eps", nothing
            return
        yield "empirical_eps", metrics.empirical_eps(self.margins, self.labels, held_out=held_out)
        most = metrics.eps_ceiling(n_in, n_out)
        yield "empirical_eps_ceiling", metrics.Estimate(most, most, most)

    def _risk(self, column: str, halves: tuple[str, str]) -> Iterator[tuple[str, Estimate]]:
        """Relate the risk of targets to what is special about them."""
        values = self.per_target(column)
        yield (
            f"risk_{column}_correlation",
            metrics.rank_correlation(values, self.aucs, seed=self.seed),
        )
        order = np.argsort(values, kind="stable")
        for name, half in zip(halves, np.array_split(order, 2), strict=True):
            if half.size:
                yield name, self._mean(self.aucs[half])

    def _mean(self, values: NDArray[np.float64]) -> Estimate:
        return metrics.mean_over_targets(values, bounds=(0.0, 1.0), seed=self.seed)

    def finding(self, setting: str, attack: str, metric: str, estimate: Estimate) -> Finding:
        n_in = int(self.labels.sum())
        return Finding(
            setting,
            attack,
            metric,
            estimate.value,
            estimate.low,
            estimate.high,
            self.rows["target"].n_unique(),
            n_in,
            self.labels.size - n_in,
            estimate.note,
        )
