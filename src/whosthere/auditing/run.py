"""An audit from its plan to its verdicts, kept in a folder, and continued where it stopped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from whosthere.auditing.findings import control_holds, findings_from, per_target
from whosthere.auditing.policy import Policy, Verdict, judge
from whosthere.auditing.store import RunFolder, identity_of, write_json
from whosthere.auditing.work import Job, LocalProcesses, ThisProcess, Workers

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from whosthere.auditing.finding import Finding
    from whosthere.auditing.plan import Plan, Unit
    from whosthere.auditing.work import Outcome


@dataclass(frozen=True)
class Audited:
    """What an audit found.

    Attributes
    ----------
    findings
        Every metric of every attack in every setting.
    verdicts
        One for each setting, by the policy.
    trusted
        Whether the control shows no signal, as it must.
    failed
        Units that could not be done; the findings rest on the others.
    """

    findings: tuple[Finding, ...]
    verdicts: tuple[Verdict, ...]
    trusted: bool
    failed: tuple[Unit, ...]


class InterruptedAudit(KeyboardInterrupt):
    """The user stopped an audit; what was done is kept."""


def run_audit(
    plan: Plan,
    traces: Path,
    out: Path,
    *,
    policy: Policy | None = None,
    workers: Workers | None = None,
    on_progress: Callable[[int, int], None] = lambda _done, _total: None,
    on_failure: Callable[[Unit, str], None] = lambda _unit, _why: None,
) -> Audited:
    """Do all units that are not done yet, and measure.

    Parameters
    ----------
    plan
        From `make_plan`.
    traces
        File of the traces that the plan was made for.
    out
        Folder of the audit. If an audit by the same plan on the same traces has begun there, it
        is continued; any other content is refused.
    policy
        What is acceptable; the default policy where none is given.
    workers
        Who does the work; this process where nobody is given.
    on_progress
        Called with the number of units done and of all units, first before any work.
    on_failure
        Called with a unit that failed and why; the others go on.
    """
    folder = RunFolder(out)
    with workers or ThisProcess() as at_work:
        job = Job.on(plan, traces)
        identity = identity_of(plan, job.traces_fingerprint)
        folder.check(identity)
        with folder.alone():
            folder.begin(identity)
            failed = _do_what_is_left(job, folder, at_work, on_progress, on_failure)
            return _measure(plan, folder, policy or Policy.default(), failed)


def local_workers(n: int) -> Workers:
    """Return that many processes of this machine; one is this process itself."""
    return ThisProcess() if n == 1 else LocalProcesses(n)


def _do_what_is_left(
    job: Job,
    folder: RunFolder,
    workers: Workers,
    on_progress: Callable[[int, int], None],
    on_failure: Callable[[Unit, str], None],
) -> tuple[Unit, ...]:
    """Do the missing units, keep each at once, and return those that failed."""
    done = folder.finished(job.plan)
    units = job.plan.units
    left = [unit for unit in units if unit not in done]
    folder.log(f"{len(left)} of {len(units)} units to do")
    n_done, failed = len(done), []
    on_progress(n_done, len(units))

    def keep(outcome: Outcome) -> None:
        if outcome.scores is not None:
            folder.write_unit(job.plan, outcome.unit, outcome.scores)
            folder.log(f"done: {outcome.unit}")
            return
        failed.append(outcome.unit)
        why = outcome.failure or "no reason is known"
        folder.log(f"failed: {outcome.unit}\n{why}")
        on_failure(outcome.unit, why)

    try:
        for outcome in workers.do(job, left):
            keep(outcome)
            n_done += outcome.scores is not None
            on_progress(n_done, len(units))
    except KeyboardInterrupt:
        folder.log("interrupted")
        raise InterruptedAudit(
            f"interrupted; {n_done} of {len(units)} units are done and kept. "
            "The same command goes on from there"
        ) from None
    return tuple(failed)


def _measure(plan: Plan, folder: RunFolder, policy: Policy, failed: tuple[Unit, ...]) -> Audited:
    """Turn the kept scores into findings and verdicts, and write all of it."""
    tests, controls = folder.collect(plan)
    results = {"scores": tests, "control": controls, "targets": per_target(tests)}
    for name, table in results.items():
        folder.write_results(name, table)
    findings = findings_from(tests, controls, seed=plan.seed)
    trusted = control_holds(findings)
    verdicts = judge(findings, policy, trusted=trusted)
    write_json(folder.path / "findings.json", [finding.to_json() for finding in findings])
    write_json(
        folder.path / "verdicts.json",
        {
            "trusted": trusted,
            "failed_units": len(failed),
            "policy": policy.to_json(),
            "verdicts": [verdict.to_json() for verdict in verdicts],
        },
    )
    folder.log(f"measured: {len(findings)} findings")
    return Audited(tuple(findings), tuple(verdicts), trusted, failed)
