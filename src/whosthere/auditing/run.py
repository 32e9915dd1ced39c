"""An audit from its options to its verdicts, kept in a folder, and resumed where it stopped."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from whosthere.auditing.estimate import FOLLOWED_BY, SECONDS_TO_TRY, Cost, estimate_cost
from whosthere.auditing.follow_up import FollowUp
from whosthere.auditing.interruption import resumable
from whosthere.auditing.judging import guaranteed, judge_scores
from whosthere.auditing.manifest import only_one, write_json
from whosthere.auditing.planning import make_plan
from whosthere.auditing.policy import Policy
from whosthere.auditing.result import AuditResult, with_settings
from whosthere.auditing.risk import EverybodysRisk, everybodys_risk, groupings_of
from whosthere.auditing.series import series_of_setting
from whosthere.auditing.store import KEPT, RunFolder, identity_of
from whosthere.auditing.work import Job, ThisProcess, Workers
from whosthere.data.reading.tables import Attributes, read_attributes
from whosthere.data.traces import Traces
from whosthere.display import counted
from whosthere.errors import AuditFailedError, InputError
from whosthere.game.everybody import EverybodyGame
from whosthere.game.rounds import Population, Task
from whosthere.game.together import Together, together
from whosthere.inference.measure import per_target
from whosthere.inference.scores import OF_CHECKS

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from whosthere.auditing.options import AuditOptions
    from whosthere.auditing.work import Outcome
    from whosthere.data.frames import AnyPath, Frame
    from whosthere.game.plan import Plan
    from whosthere.game.scoring import Scored, TaskScores
    from whosthere.inference.looks import Look
    from whosthere.privacy.guarantees import GuaranteeForAll
    from whosthere.progress import Move


@dataclass(frozen=True, eq=False)
class PreparedAudit:
    """An audit that was checked against its data and its folder, and can be run.

    `left` are the tasks that are not done yet, `cost` what they are expected to cost (None if it
    was not asked for), `look` which look at the audit its verdicts will be, if no task fails.
    """

    plan: Plan
    left: tuple[Task, ...]
    cost: Cost | None
    look: Look
    _job: Job
    _folder: RunFolder
    _follow_up: FollowUp
    _guaranteed: Mapping[str, GuaranteeForAll]
    _data: dict[str, Any]
    _extend: bool = False
    _keep_traces: bool = False
    _groupings: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def run(
        self,
        *,
        policy: Policy | None = None,
        workers: Workers | None = None,
        leaks: bool = True,
        what_if: bool = True,
        on_progress: Move = lambda _what, _done, _total: None,
        on_failure: Callable[[Task, str], None] = lambda _task, _why: None,
    ) -> AuditResult:
        """Do all tasks that are not done yet, and measure.

        By default, this process works, and the default policy judges. Where and when people are
        found (`leaks`), and what larger regions and longer epochs would change for the riskiest
        settings that are not accepted (`what_if`), follows the scores. `on_progress` is called with
        "tasks", the number of tasks done and of all tasks, first before any work; then with what
        follows, in the same way. `on_failure` is called with a task that failed and why; the others
        continue.
        """
        folder, follow_up = self._folder, self._follow_up
        with workers or ThisProcess() as at_work:
            identity = identity_of(self.plan, self._job.traces_fingerprint)
            folder.check(identity, extend=self._extend)
            with only_one(folder.path):
                first = try_own_code(self._job, folder, at_work)
                folder.begin(identity, self._known(), extend=self._extend)
                for task, scores in first:
                    folder.write_task(self.plan, task, scores)
                job = self._job_on_kept_traces() if self._keep_traces else self._job
                tasks_moved = partial(on_progress, "tasks")
                failed = do_what_is_left(job, folder, at_work, tasks_moved, on_failure)
                total = len(self.plan.tasks)
                with resumable(folder, lambda: total - len(failed), total) as stop_if_asked:
                    found: dict[str, Any] = {}
                    if leaks:
                        found = follow_up.leaks(job, folder, at_work, on_progress)
                    stop_if_asked()
                    result = replace(self._measured(policy or Policy.default(), failed), **found)
                    if leaks and what_if:
                        tried = follow_up.what_if(result, job, folder, at_work, on_progress)
                        result = replace(result, what_if=tried)
                    return result

    def _job_on_kept_traces(self) -> Job:
        kept = (self._folder.path / KEPT).absolute()
        shutil.move(self._job.traces, kept)
        return replace(self._job, traces=str(kept))

    def _known(self) -> dict[str, Any]:
        """Return what readers of the results must know and scores do not depend on."""
        settings = [
            {
                "setting": str(one),
                "mechanism": one.scheme.how,
                "group_size": one.scheme.group_size,
                "knowledge": str(one.knowledge),
                **series_of_setting(one, self._follow_up.epochs),
            }
            for one in self.plan.settings
        ]
        looked_at = self._follow_up.n_people(self.plan)
        about = {"data": self._data, "settings": settings, "people_looked_at": looked_at}
        game = self.plan.game
        chance = {"include": game.include} if isinstance(game, EverybodyGame) else {}
        return self.plan.about_json() | about | {"tasks": len(self.plan.tasks)} | chance

    def _measured(self, policy: Policy, failed: tuple[Task, ...]) -> AuditResult:
        """Turn the kept scores into findings and verdicts, and write all of it."""
        plan, folder = self.plan, self._folder
        scores = folder.collect(plan)
        look = folder.look_at(plan, failed, note=True)
        judged = judge_scores(plan, scores, policy, self._guaranteed, look=look, failed=failed)
        targets = per_target(scores.tests)
        tests = scores.tests.drop(OF_CHECKS).drop_nulls("score")
        controls = scores.controls.drop(OF_CHECKS)
        tests, controls, targets = (
            with_settings(table, folder.manifest) for table in (tests, controls, targets)
        )
        everybody = EverybodysRisk()
        if isinstance(plan.game, EverybodyGame):
            everybody = everybodys_risk(scores, self._groupings)
        results = {"scores": tests, "control": controls, "targets": targets, **everybody.tables()}
        for name, table in results.items():
            folder.write_results(name, table)
        result = AuditResult(
            folder.manifest,
            judged.findings,
            policy,
            judged.verdicts,
            judged.trusted,
            len(failed),
            tests,
            targets,
            folder.path,
            everybody=everybody,
        )
        as_json = result.to_json()
        write_json(folder.path / "findings.json", as_json.pop("findings"))
        write_json(folder.path / "verdicts.json", as_json)
        folder.log(f"measured: {len(judged.findings)} findings")
        return result


def prepare_audit(
    traces: str | os.PathLike[str],
    options: AuditOptions,
    out: str | os.PathLike[str],
    *,
    extend: bool = False,
    keep_traces: bool = False,
    estimate: bool = False,
    seconds_to_try: float = SECONDS_TO_TRY,
    by: AnyPath | Frame | None = None,
) -> PreparedAudit:
    """Check everything that can be checked before any work is done.

    If an audit by the same plan on the same traces has begun in the folder `out`, it is resumed;
    any other content is refused. To `extend` one, the folder may hold the same audit with fewer
    targets, releases or attacks. With `keep_traces`, the file of traces is moved there when the
    audit begins. To `estimate` time and memory, each attack is tried. `by` says to which groups
    people belong, for numbers about these, where everybody is asked.
    """
    path, folder = Path(traces), RunFolder(Path(out))
    everybody = Traces.load(path)
    plan = make_plan(options, everybody)
    job = Job.on(plan, path)
    folder.check(identity_of(plan, job.traces_fingerprint), extend=extend)
    people = Population.of(everybody, plan.first_epoch)
    known = Together.read(folder.known("together"))
    if plan.game.households is None:
        plan = replace(plan, together=known or together(people.tested, seed=plan.seed))
    done = folder.finished(plan)
    left = tuple(task for task in plan.tasks if task not in done)
    cost = None
    if estimate:
        tasks = estimate_cost(plan, people, left, seconds_to_try=seconds_to_try)
        cost = replace(tasks, seconds=FOLLOWED_BY * tasks.seconds)
    given = _given(plan, by, everybody.users)
    if given is not None:
        plan = replace(plan, cautions=(*plan.cautions, *given.cautions))
    groupings = _groupings(plan, people, given)
    follow_up = FollowUp.of(plan, people.tested)
    promised = guaranteed(plan, people.tested)
    look, data = folder.look_at(plan), everybody.about_json()
    return PreparedAudit(
        *(plan, left, cost, look, job, folder, follow_up, promised, data, extend, keep_traces),
        _groupings=groupings,
    )


def _given(plan: Plan, by: AnyPath | Frame | None, users: Sequence[str]) -> Attributes | None:
    """Read to which groups people belong, where everybody is asked."""
    if by is None:
        return None
    if not isinstance(plan.game, EverybodyGame):
        problem = "groups of people (`by`) are compared only where everybody is asked"
        raise InputError(problem, fix="Ask for everybody (`everybody`), or leave it out")
    return read_attributes(by, users)


def _groupings(plan: Plan, people: Population, given: Attributes | None) -> dict[str, list[str]]:
    """Return the groups of all who are asked; none where only targets are."""
    if not isinstance(plan.game, EverybodyGame):
        return {}
    asked = plan.game.rounds(people, plan, plan.tasks[0]).everybody
    m = max(one.group_size for one in plan.schemes)
    return groupings_of(people.tested, asked, m, None if given is None else given.groups)


def try_own_code(job: Job, folder: RunFolder, workers: Workers) -> list[tuple[Task, TaskScores]]:
    """Do one task under each scheme before all others, if code of a user's own takes part.

    Nothing is kept before all of them are done: a slip ends the audit at once, and leaves the
    folder as it was. One of them is done twice: code that draws random numbers of its own would
    give other scores each time.
    """
    plan = job.plan
    if not plan.code or folder.finished(plan):
        return []
    first = [*{task.scheme: task for task in reversed(plan.tasks)}.values()]
    tried: dict[Task, TaskScores] = {}
    for outcome in chain.from_iterable(
        _outcomes(job, folder, workers, tasks) for tasks in (first, first[:1])
    ):
        scores = outcome.of_task
        if scores is None:
            raise AuditFailedError(
                "code of your own failed in the first task, so no other was begun: "
                f"{outcome.failure.splitlines()[-1]}\n{outcome.task}: {outcome.failure}"
            )
        before = tried.setdefault(outcome.task, scores)
        once, twice = (np.array(one.targets["score"], float) for one in (before, scores))
        if not np.allclose(once, twice, equal_nan=True):
            raise InputError(
                "code of your own gave other scores when the first task was done again",
                fix="Draw all random numbers from the `seed` or `rng` that it is given, and keep "
                "nothing from one release to the next",
            )
    return [*tried.items()]


def _outcomes(
    job: Job, folder: RunFolder, workers: Workers, tasks: Sequence[Task]
) -> Iterator[Outcome]:
    """Do what is left of tasks; mostly all of each, where an audit is extended, a part."""
    left: dict[Scored, list[Task]] = {}
    for task in tasks:
        left.setdefault(folder.scored(job.plan, task), []).append(task)
    for scored, some in left.items():
        yield from workers.do(replace(job, done=scored), some)


def do_what_is_left(
    job: Job,
    folder: RunFolder,
    workers: Workers,
    on_progress: Callable[[int, int], None],
    on_failure: Callable[[Task, str], None],
) -> tuple[Task, ...]:
    """Do the missing tasks, keep each at once, and return those that failed, if not all did."""
    done = folder.finished(job.plan)
    tasks = job.plan.tasks
    left = [task for task in tasks if task not in done]
    folder.log(f"{len(left)} of {len(tasks)} tasks to do")
    n_done = len(done)
    failed: dict[Task, str] = {}
    on_progress(n_done, len(tasks))
    with resumable(folder, lambda: n_done, len(tasks)) as stop_if_asked:
        for outcome in _outcomes(job, folder, workers, left):
            stop_if_asked()
            scores = outcome.of_task
            if scores is None:
                failed[outcome.task] = outcome.failure
                folder.log(f"failed: {outcome.task}\n{outcome.failure}")
                on_failure(outcome.task, outcome.failure)
            else:
                folder.write_task(job.plan, outcome.task, scores)
                n_done += 1
            on_progress(n_done, len(tasks))
    if len(failed) == len(tasks):
        reasons = Counter(why.strip().splitlines()[-1] for why in failed.values())
        [(reason, n)] = reasons.most_common(1)
        of_them = "" if n == len(failed) else f", {n} of them"
        error = AuditFailedError(f"all {counted(len(tasks), 'task')} failed{of_them} with {reason}")
        error.add_note(next(why for why in failed.values() if why.strip().endswith(reason)))
        raise error
    return tuple(failed)
