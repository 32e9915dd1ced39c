"""Trying one protection: by the searcher, by all attacks, and again on fresh releases.

Trials are small audits, each in a folder of its own, resumed where they stopped.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NoReturn

from whosthere.auditing.judging import guaranteed, judge_scores
from whosthere.auditing.manifest import check_manifest, number_of_look, only_one, write_json
from whosthere.auditing.options import AuditOptions, merged
from whosthere.auditing.planning import make_plan
from whosthere.auditing.run import do_what_is_left
from whosthere.auditing.store import MANIFEST, RunFolder, identity_of
from whosthere.errors import AuditFailedError, InputError
from whosthere.game.rounds import Population, Task
from whosthere.game.together import Together, together
from whosthere.search.coarsening import AS_ASKED, Coarsening, coarsenings
from whosthere.search.recommendation import SEARCHER, Candidate
from whosthere.seeds import derived_seed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from whosthere.adversary.attacks import Attack
    from whosthere.auditing.policy import Policy
    from whosthere.auditing.verdict import Verdict
    from whosthere.auditing.work import Job, Workers
    from whosthere.data.traces import Traces
    from whosthere.game.plan import Plan
    from whosthere.inference.finding import Finding
    from whosthere.inference.looks import Look
    from whosthere.inference.scores import Scores
    from whosthere.privacy.mechanism import Family, Mechanism, Member
    from whosthere.progress import Move

FORMAT_VERSION = 3
SEARCH_MANIFEST = "search.json"
MOST_CONFIRMATIONS = 3
"""How many members of a family are confirmed until one of them passes: who tries often enough finds
one that passes by chance."""
_MOST_CONFIRMATIONS_IN_ALL = 9
# The searcher is cheap, so that it can look at more releases than the others.
_LEAST_RELEASES_TO_SEARCH = 60


class TrialFailedError(AuditFailedError):
    """A part of a trial could not be done, so that nothing can be said of the protection."""


@dataclass(frozen=True)
class TrialsFolder:
    """Where a search keeps its trials: a run folder for each, by its plan, on the traces of a job.

    Other searches on the same traces can use it too: what they share is done once.
    """

    path: Path
    job: Job

    @property
    def manifest(self) -> Path:
        """The file that says on which traces the search is, by which software, and its looks."""
        return self.path / SEARCH_MANIFEST

    @property
    def _identity(self) -> dict[str, Any]:
        traces, versions = self.job.traces_fingerprint, self.job.versions
        return {"format": FORMAT_VERSION, "traces": traces, "versions": versions}

    def check(self) -> None:
        """Refuse a folder that holds anything but trials on the same traces."""
        check_manifest(self.manifest, self._identity, "a search")

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Keep other processes out of the folder, and begin it if it is new."""
        with only_one(self.path, "search"):
            self.check()
            if not self.manifest.exists():
                write_json(self.manifest, self._identity | {"looks": []})
            yield

    def begun(self) -> int:
        """Return how many trials were begun."""
        return len(list(self.path.glob(f"trials/*/{MANIFEST}")))

    def of(self, plan: Plan) -> RunFolder:
        """Return the folder of a trial."""
        text = json.dumps(plan.to_json(), sort_keys=True)
        name = hashlib.sha256(text.encode()).hexdigest()[:16]
        return RunFolder(self.path / "trials" / name)


@dataclass(frozen=True, eq=False)
class Terms:
    """What all trials of a search have in common.

    The options are as for an audit of one group size and one knowledge; its mechanisms are not
    used.
    """

    families: tuple[Family, ...]
    everybody: Traces
    options: AuditOptions
    coarsen: tuple[str, ...] = ()

    @cached_property
    def coarsenings(self) -> tuple[Coarsening, ...]:
        """Every combination of what may be larger; where nothing is comes first."""
        sizes = (size for block in self.options.blocks for size in block.group_size)
        return coarsenings(self.coarsen, self.everybody, max(sizes, default=0))

    @cached_property
    def attacks(self) -> tuple[Attack, ...]:
        """Who attacks at last: those that were chosen, and the searcher in any case."""
        return tuple(dict.fromkeys((SEARCHER, *self.options.attacks)))

    @cached_property
    def most_controls(self) -> int:
        """How many controls there can be in all trials, to share the chance of a false alarm."""
        # Each attack has two, and each protection that of its law besides.
        controls = 2 * len(self.attacks) + 1
        members = sum(len(family.members()) for family in self.families)
        return controls * (members * len(self.coarsenings) + self.most_confirmations)

    @cached_property
    def most_confirmations(self) -> int:
        """How many confirmations there can be, however much is tried: they share the error."""
        return min(MOST_CONFIRMATIONS * len(self.families), _MOST_CONFIRMATIONS_IN_ALL)

    @cached_property
    def seen(self) -> dict[str, Any]:
        """What tells what is confirmed from what another search confirms."""
        families = [family.template for family in self.families]
        coarsen = {"coarsen": list(self.coarsen)} if self.coarsen else {}
        return {"families": families, **coarsen, **self.any_plan.to_json()}

    @cached_property
    def confirmation_seed(self) -> int:
        """The seed of fresh releases, short enough to be typed."""
        return derived_seed(self.options.seed, "confirmation") % 2**32

    @cached_property
    def any_plan(self) -> Plan:
        """The plan of some trial by all attacks; all have the same people, groups and times."""
        return self.plan(self.families[0].members()[0].mechanism)

    @property
    def published_for(self) -> str:
        """For how long a table is published again and again, in words; empty if it is not."""
        return self.any_plan.schemes[0].tables[0].layout.in_time

    @cached_property
    def tested(self) -> Traces:
        """Everybody in the tested time."""
        return Population.of(self.everybody, self.any_plan.first_epoch).tested

    @cached_property
    def together(self) -> Together:
        """How many people share most of their visits with somebody else, unless that is given."""
        if self.options.together is not None:
            return Together()
        return together(self.tested, seed=self.options.seed)

    def check(self) -> None:
        """Refuse what no trial could do, before the first one."""
        if not self.families:
            raise InputError("no family is given", fix="Give some, such as 'suppress(k=?)'")
        for family in self.families:
            if len(self.plan(family.members()[0].mechanism).settings) > 1:
                raise InputError(
                    "a search is for one group size, one knowledge of the targets and one number "
                    "of weeks",
                    fix="Give one of each, and search again for others",
                )
        for one in self.coarsenings:
            self.plan(self.families[0].members()[0].mechanism, one)

    def plan(
        self,
        mechanism: Mechanism | str,
        coarsening: Coarsening = AS_ASKED,
        *,
        seed: int | None = None,
    ) -> Plan:
        """Return the plan to try a mechanism by all attacks; with another seed if one is given."""
        given = {"mechanisms": mechanism, "attacks": self.attacks, "seed": seed}
        given |= {"group_size": coarsening.group_size}
        plan = make_plan(merged(self.options, given), self.everybody)
        plan = replace(
            plan,
            contests=tuple(
                replace(one, setting=one.setting.over(coarsening.layout)) for one in plan.contests
            ),
        )
        releases = max(_LEAST_RELEASES_TO_SEARCH, plan.releases_by(SEARCHER))
        return plan.with_releases_of(SEARCHER, releases)


@dataclass(frozen=True, eq=False)
class Tried:
    """A candidate, with the scores that it was judged by."""

    candidate: Candidate
    scores: Scores


@dataclass(eq=False)
class Tester:
    """Tries protections, one after the other, and counts the trials.

    The confirmations share the error of the look. Other trials are judged alike, so that what
    passes is likely to be confirmed. `number` trials were begun, of at most `most` as far as is
    known, and `confirmations` of them.
    """

    terms: Terms
    policy: Policy
    look: Look
    folder: TrialsFolder
    workers: Workers
    most: int
    on_progress: Move
    number: int = 0
    confirmations: int = 0

    def searched(self, family: Family, member: Member, coarsening: Coarsening) -> Tried:
        """Try a member of a family with the searcher alone."""
        spec = str(member.mechanism)
        plan = by_only(self.terms.plan(member.mechanism, coarsening), (SEARCHER,))
        scores = self._scores(plan, f"{coarsening.of(spec)} with {SEARCHER}")
        judged = self._judged(scores, plan)
        candidate = Candidate(
            family.template, member.choice, spec, *judged, checked=False, coarsening=coarsening
        )
        return Tried(candidate, scores)

    def checked(self, tried: Tried) -> Tried:
        """Try a protection with the other attacks too."""
        candidate = tried.candidate
        plan = self.terms.plan(candidate.mechanism, candidate.coarsening)
        plan = by_only(plan, self.terms.attacks[1:])
        if not plan.contests:
            return replace(tried, candidate=replace(candidate, checked=True))
        now = self._scores(plan, f"{candidate.name} with {', '.join(map(str, plan.attacks))}")
        # The ceiling is known from the search already, on more releases.
        scores = tried.scores.and_of(now)
        verdict, findings = self._judged(scores, plan)
        judged = replace(candidate, verdict=verdict, findings=findings, checked=True)
        return Tried(judged, scores)

    def confirmed(self, tried: Tried) -> Tried:
        """Try a protection with all attacks on fresh releases, which did not choose it."""
        candidate = tried.candidate
        self.confirmations += 1
        seed = self.terms.confirmation_seed
        plan = self.terms.plan(candidate.mechanism, candidate.coarsening, seed=seed)
        trial = f"{candidate.name} with {', '.join(map(str, plan.attacks))} on fresh releases"
        scores = self._scores(plan, trial)
        number_of_look(self.folder.manifest, self.terms.seen, note=True)
        verdict, findings = self._judged(scores, plan)
        judged = replace(candidate, confirmation=verdict, confirmation_findings=findings)
        return replace(tried, candidate=judged)

    def _scores(self, plan: Plan, trial: str) -> Scores:
        """Do what is left of a trial; return the scores of test releases, and of the control."""
        self.number += 1
        self.most = max(self.most, self.number)
        folder, job = self.folder.of(plan), replace(self.folder.job, plan=plan)
        folder.begin(identity_of(plan, job.traces_fingerprint), plan.about_json())
        title = f"trial {self.number} of at most {self.most}: {trial}"
        moved = partial(self.on_progress, title)
        do_what_is_left(job, folder, self.workers, moved, _fail)
        return folder.collect(plan)

    def _judged(self, scores: Scores, plan: Plan) -> tuple[Verdict, tuple[Finding, ...]]:
        findings, _, [verdict] = judge_scores(
            plan,
            scores,
            self.policy,
            guaranteed(plan, self.terms.tested),
            look=self.look,
            n_attacks=sum(not one.is_study_only for one in self.terms.attacks),
            n_controls=self.terms.most_controls,
        )
        return verdict, findings


def by_only(plan: Plan, attacks: Collection[Attack]) -> Plan:
    """Return a plan without the other attacks."""
    return replace(plan, contests=tuple(one for one in plan.contests if one.attack in attacks))


def _fail(task: Task, why: str) -> NoReturn:
    error = TrialFailedError(f"{task} failed: {why.strip().splitlines()[-1]}")
    error.add_note(why)
    raise error
