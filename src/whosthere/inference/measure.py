"""From scores to findings: every metric of every attack in every setting."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from whosthere.inference import control, exposed, metrics
from whosthere.inference.finding import Finding
from whosthere.inference.looks import FIRST_ERRORS, FIRST_LOOK, Errors, Look
from whosthere.inference.scores import (
    RELEASES_FOR_UTILITY,
    RULED_OUT,
    comparable_scores,
    shared_releases,
)
from whosthere.inference.vocabulary import (
    CEILING,
    CONTROL,
    EXCESS,
    FAULTS,
    LAW_CONTROL,
    OF_UTILITY,
    RATES,
    SHARED_AUC,
    STUDY_ONLY,
    UTILITY,
    is_judged,
)
from whosthere.kernels.threads import one_thread
from whosthere.seeds import generator

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from whosthere.arrays import Bools, Floats, Ints32
    from whosthere.inference.metrics import Estimate


@one_thread()
def measure(
    tests: pl.DataFrame,
    controls: pl.DataFrame,
    *,
    seed: int,
    n_limits: int = 1,
    n_attacks: int | None = None,
    look: Look = FIRST_LOOK,
    n_controls: int | None = None,
) -> list[Finding]:
    """Measure everything, of scores as in `whosthere.inference.scores.SCHEMA`.

    The limits and attacks that a verdict will look at (by default the attacks of each setting)
    share the chance of a wrong rejection at this look. All controls (by default those given here)
    share the chance of a false alarm.
    """
    parts = by_setting_and_attack(tests)
    shared_parts = by_setting_and_attack(shared_releases(tests))
    uneven = {
        setting
        for (setting, attack), rows in parts.items()
        if rows.height > shared_parts[setting, attack].height and not attack.endswith(STUDY_ONLY)
    }
    control_parts = by_setting_and_attack(controls)
    # Of a mechanism without a law, no ceiling is known: its rows only hold checks and utility.
    ceilings = {
        setting: rows
        for (setting, name), rows in parts.items()
        if name == CEILING and not rows["score"].null_count()
    }
    # Each attack has a control and is compared with the ceiling, which has that of the law. Who
    # knows more than the ceiling is taken to know may exceed it.
    compared = [one for one in parts if one[0] in ceilings and not one[1].endswith(STUDY_ONLY)]
    n_controls = n_controls or len(control_parts) + len(compared)
    found: list[Finding] = []
    for (setting, attack), rows in parts.items():
        here = sum(one == setting and is_judged(name) for one, name in parts)
        n_judged = max((n_attacks or here) * n_limits, 1)
        measured = Measured(rows, seed, Errors.at(look, n_judged=n_judged))
        if attack == CEILING:
            found += measured.findings() if setting in ceilings else ()
            found += left_to_publish(measured)
            own = pl.col("setting") == setting
            found += checked(measured, tests.filter(own), controls.filter(own), n_controls)
            if setting not in ceilings:
                continue
        else:
            found += measured.findings()
        if setting in uneven:
            shared = replace(measured, rows=shared_parts[setting, attack])
            found.append(shared.finding(SHARED_AUC, shared.mean(shared.aucs)))
        if (setting, attack) in control_parts:
            found.append(_control(rows, control_parts[setting, attack], n_controls))
        if (setting, attack) in compared and attack != CEILING:
            found.append(_excess(measured, ceilings[setting], n_controls))
    return found


def per_target(tests: pl.DataFrame) -> pl.DataFrame:
    """Return AUC and accuracy of every attack on every target, with what is known of the target.

    Targets who were in all releases that an attack scored, or in none, have no row.
    """
    contest = ("setting", "attack", "target")
    both = pl.col("label").any().over(contest) & ~pl.col("label").all().over(contest)
    tests = tests.drop_nulls("score").filter(both)
    parts = [
        measured.rows.group_by("setting", "attack", "target", "visits", "uniqueness")
        .len("releases")
        .sort("target")
        .with_columns(auc=measured.aucs, accuracy=measured.accuracies)
        for measured in (
            Measured(rows, 0) for rows in by_setting_and_attack(tests.drop_nulls("score")).values()
        )
    ]
    return pl.concat(parts) if parts else pl.DataFrame()


def control_holds(findings: Sequence[Finding]) -> bool | None:
    """Tell whether the controls found what they must in a sound audit; None without any.

    The checks of releases are no substitute for control releases, but a fault is one in any case.
    """
    controls = [finding for finding in findings if finding.holds is not None]
    if not all(finding.holds for finding in controls):
        return False
    return True if any(finding.metric == CONTROL for finding in controls) else None


def by_setting_and_attack(frame: pl.DataFrame) -> dict[tuple[str, str], pl.DataFrame]:
    """Return the rows of each attack in each setting."""
    parts = frame.partition_by("setting", "attack", as_dict=True, maintain_order=True)
    return {(str(setting), str(attack)): rows for (setting, attack), rows in parts.items()}


def _control(tests: pl.DataFrame, controls: pl.DataFrame, n_controls: int) -> Finding:
    """Compare releases with a stand-in to those without the target, of one attack and setting."""
    rows = pl.concat([controls, tests.filter(~pl.col("label"))])
    scores, stand_in, targets = (rows[name].to_numpy() for name in ("score", "label", "target"))
    estimate = control.control_auc(scores, stand_in, targets, n_controls=n_controls)
    note = f"99 % interval for all {n_controls} controls together"
    return Measured(rows, 0).finding(CONTROL, replace(estimate, note=note))


def _excess(measured: Measured, ceiling: pl.DataFrame, n_controls: int) -> Finding:
    """Compare an attack with the best test, on pairs of releases that both scored."""
    best = ceiling.select("target", "release", best="score")
    rows = measured.rows.join(best, on=("target", "release"), maintain_order="left")
    # Releases take turns with and without the target.
    pairs = rows.with_columns(pair=pl.col("release") // 2)
    both = pairs.filter("label").join(
        pairs.filter(~pl.col("label")), on=("target", "pair"), maintain_order="left"
    )
    attack, optimum = (both[name, f"{name}_right"].to_numpy() for name in ("score", "best"))
    rng = generator(measured.seed, "ties", str(rows["setting"][0]), str(rows["attack"][0]))
    estimate = control.above_ceiling(attack, optimum, rng, n_controls=n_controls)
    note = f"lower bound at 99 % for all {n_controls} controls together"
    return replace(measured, rows=rows).finding(EXCESS, replace(estimate, note=note))


def checked(
    ceiling: Measured,
    tests: pl.DataFrame,
    controls: pl.DataFrame,
    n_controls: int,
    *,
    ruled_out: int = 0,
) -> Iterator[Finding]:
    """Say whether the releases of a setting are what they claim to be.

    `ruled_out` are people besides the targets who are in and were ruled out, over all releases.
    """
    rows = ceiling.rows
    if "law" not in rows.columns:
        return
    laws, impossible = rows["law"].drop_nulls().to_list(), 0
    if laws:
        sums = np.sum(laws, axis=0)
        impossible = int(control.impossible_values(sums) > 0)
        yield ceiling.finding(LAW_CONTROL, control.law_control(sums, n_controls=n_controls))
    elif not rows["score"].null_count():
        return
    # Each attack has a row of its own for a control release.
    of_controls = controls.unique(["target", "release"])["fault"].drop_nulls()
    faults = Counter([*rows["fault"].drop_nulls(), *of_controls])
    faults["a published value is impossible"] = impossible
    repeated = {"noise": "noise was used before", "others": "the same people were counted before"}
    for name, what in repeated.items():
        faults[what] = int(rows[name].drop_nulls().is_duplicated().sum())
    wrong = pl.col("label") & (pl.col("score") <= RULED_OUT)
    faults["a target who is in was ruled out"] = tests.filter(wrong).height + ruled_out
    n = sum(faults.values())
    note = ", ".join(f"{what} ({times:,} times)" for what, times in faults.items() if times)
    found = ceiling.finding(FAULTS, metrics.Estimate(float(n), float(n), float(n), note or None))
    # Without a ceiling, it stands with what else is said of the releases themselves.
    yield found if laws else replace(found, attack=UTILITY)


def left_to_publish(measured: Measured) -> Iterator[Finding]:
    """Return what the protection leaves of the true counts, mean over the targets."""
    compared = replace(
        measured, rows=measured.rows.filter(pl.col("release") < RELEASES_FOR_UTILITY)
    )
    for metric in OF_UTILITY:
        values = compared.per_target(metric)
        known = values[~np.isnan(values)]
        if known.size:
            mean = metrics.mean_over_groups(known)
            yield replace(compared.finding(metric, mean), attack=UTILITY)


@dataclass(frozen=True, eq=False)
class Measured:
    """The test scores of one attack in one setting."""

    rows: pl.DataFrame
    seed: int
    errors: Errors = FIRST_ERRORS

    @cached_property
    def labels(self) -> Bools:
        """Whether each release holds its target."""
        return self.rows["label"].to_numpy()

    @cached_property
    def targets(self) -> Ints32:
        """The target of each release."""
        return self.rows["target"].to_numpy()

    @cached_property
    def calibrated(self) -> Floats:
        """The scores, so that they can be compared between targets."""
        return comparable_scores(self.rows)

    @cached_property
    def aucs(self) -> Floats:
        """AUC of each target, by ascending row."""
        return metrics.auc_by_target(self.rows["score"].to_numpy(), self.labels, self.targets)[1]

    @cached_property
    def accuracies(self) -> Floats:
        """Share of right decisions at the attacker's threshold, by target in ascending order."""
        says_in = (self.rows["score"] > self.rows["threshold"]).to_numpy()
        return metrics.accuracy_by_target(says_in, self.labels, self.targets)[1]

    @property
    def n_each(self) -> tuple[int, int]:
        """How many releases with and without the target an AUC rests on, at least."""
        n_in = np.unique_counts(self.targets[self.labels]).counts
        n_out = np.unique_counts(self.targets[~self.labels]).counts
        return int(n_in.min()), int(n_out.min())

    def per_target(self, column: str) -> Floats:
        """Return what is the same for all releases of a target, by ascending row."""
        firsts = self.rows.group_by("target").agg(pl.col(column).first()).sort("target")
        return firsts[column].cast(pl.Float64).fill_null(np.nan).to_numpy()

    def findings(self) -> Iterator[Finding]:
        """Return all metrics of an attack; of the ceiling, those that it can be compared by."""
        is_attack = self.rows["attack"][0] != CEILING
        pooled = self.calibrated, self.labels, self.targets
        yield self.finding("auc", self.mean(self.aucs))
        yield self.finding("pooled_auc", metrics.pooled_auc(*pooled, errors=self.errors))
        if is_attack:
            yield self.finding("accuracy", self.mean(self.accuracies))
        for name, fpr in RATES.items():
            tpr = metrics.tpr_at_fpr(*pooled, fpr, seed=self.seed, errors=self.errors)
            yield self.finding(name, tpr)
        if is_attack:
            yield from self._empirical_eps()
        share = exposed.share_exposed(self.aucs, *self.n_each, 0.9, errors=self.errors)
        yield self.finding("share_auc_90", share)
        if is_attack:
            risk = exposed.risk_percentile(self.aucs, *self.n_each, 0.9, errors=self.errors)
            yield self.finding("auc_p90", risk)

    def _empirical_eps(self) -> Iterator[Finding]:
        # Releases take turns with and without the target: pairs of them go to either half.
        held_out = (self.rows["release"].to_numpy() // 2) % 2 == 0
        judged = Measured(self.rows.filter(~held_out), self.seed)
        n_in, n_out = int(judged.labels.sum()), int((~judged.labels).sum())
        if not min(n_in, n_out):
            nothing = metrics.Estimate(None, None, None, "not resolvable with n = 1 a target")
            yield self.finding("empirical_eps", nothing)
            return
        bound = metrics.empirical_eps(
            self.calibrated, self.labels, held_out=held_out, errors=self.errors
        )
        yield judged.finding("empirical_eps", bound)
        most = metrics.eps_ceiling(n_in, n_out)
        yield judged.finding("empirical_eps_ceiling", metrics.Estimate(most, most, most))

    def mean(self, values: Floats) -> Estimate:
        """Return the mean of a value of each target."""
        return metrics.mean_over_targets(values, unseen=(0.5, 1.0), errors=self.errors)

    def finding(self, metric: str, estimate: Estimate) -> Finding:
        """Return an estimate with what it is about and rests on."""
        n_in, measured = int(self.labels.sum()), asdict(estimate)
        return Finding(
            self.rows["setting"][0],
            self.rows["attack"][0],
            metric,
            measured.pop("value"),
            n_targets=self.rows["target"].n_unique(),
            n_in=n_in,
            n_out=self.labels.size - n_in,
            **measured,
        )
