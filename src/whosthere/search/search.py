"""The weakest protection that passes a policy, and what it costs.

Each family is bisected with a cheap attack. The most useful of what passes is checked by all
attacks, and then confirmed: it was chosen because it passed, so that only fresh releases tell
whether it passes by more than luck.
"""

from __future__ import annotations

from bisect import bisect_left
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from whosthere.auditing.estimate import Cost, estimate_cost
from whosthere.auditing.manifest import number_of_look, write_json
from whosthere.auditing.policy import Policy
from whosthere.auditing.work import Job, ThisProcess, Workers
from whosthere.data.traces import Traces
from whosthere.errors import LostWorkersError
from whosthere.game.rounds import Population
from whosthere.inference.looks import Look
from whosthere.privacy.mechanism import Family
from whosthere.search.recommendation import RECOMMENDATION, SEARCHER, Candidate, Recommendation
from whosthere.search.tester import MOST_CONFIRMATIONS, Terms, Tester, TrialsFolder, Tried, by_only

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from whosthere.auditing.options import AuditOptions
    from whosthere.progress import Move
    from whosthere.search.coarsening import Coarsening

DEFAULT_FAMILIES = (
    "suppress(k=?)",
    "random-round(to=?)",
    "laplace(eps=?, unit=event)",
    "laplace(eps=?, unit=user-day, max_visits=10)",
)


class InterruptedSearch(KeyboardInterrupt):
    """The user stopped a search."""


@dataclass(frozen=True, eq=False)
class PreparedSearch:
    """A search that was checked against its data and its folder, and can be run."""

    terms: Terms
    trials_to_search: int
    """How many trials the bisections take at most."""
    trials_at_last: int
    """How many checks and confirmations follow if none of them fails."""
    cost: Cost | None
    """What all these are expected to cost; None if it was not asked for."""
    look: Look
    """Which search in its folder it is; its confirmations share the error."""
    _job: Job
    _folder: TrialsFolder | None
    _check_all: bool

    @property
    def kept(self) -> int:
        """How many trials in the folder were begun before."""
        return 0 if self._folder is None else self._folder.begun()

    def to_json(self) -> dict[str, Any]:
        """Return what would be tried, and what it is expected to cost, as a JSON object."""
        return {
            "families": {
                family.template: [choice for choice, _ in family.members()]
                for family in self.terms.families
            },
            "coarsened": [one.words for one in self.terms.coarsenings],
            "attacks": [str(attack) for attack in self.terms.attacks],
            "targets": len(self.terms.any_plan.targets),
            "most_trials_to_search": self.trials_to_search,
            "trials_to_check_and_confirm": self.trials_at_last,
            "trials_begun_before": self.kept,
            "seconds_of_one_processor": None if self.cost is None else self.cost.seconds,
        }

    def run(
        self,
        *,
        policy: Policy | None = None,
        workers: Workers | None = None,
        on_progress: Move = lambda _what, _done, _total: None,
    ) -> Recommendation:
        """Search, check and confirm; policy and workers are as for an audit.

        `on_progress` is called before each trial, and after each of its tasks, with the trial, how
        many of its tasks are done, and how many it has.
        """
        with ExitStack() as stack:
            at_work = stack.enter_context(workers or ThisProcess())
            folder = self._folder
            if folder is None:
                # The one engine keeps all it does; here for as long as the search goes on.
                temporary = stack.enter_context(TemporaryDirectory())
                folder = TrialsFolder(Path(temporary) / "search", self._job)
            stack.enter_context(folder.opened())
            most = self.trials_to_search + self.trials_at_last
            done_by = folder, at_work, most, on_progress
            tester = Tester(self.terms, policy or Policy.default(), self.look, *done_by)
            stack.enter_context(_explained(tester, kept=self._folder is not None))
            found = self._found(tester)
            write_json(folder.path / RECOMMENDATION, found.to_json())
            return found

    def _found(self, tester: Tester) -> Recommendation:
        cells, families = self.terms.coarsenings, self.terms.families
        ladders = [_Ladder(tester, family, one) for one in cells for family in families]
        waiting = [ladder for ladder in ladders if ladder.is_useful]
        chosen = False
        most_confirmations = self.terms.most_confirmations
        while waiting and (chosen or tester.confirmations < most_confirmations):
            most_useful = max(waiting, key=_Ladder.pattern_kept)
            if most_useful.check() and (chosen or most_useful.confirm()):
                # What is checked after this one loses more, and is not recommended.
                chosen = True
                waiting = [one for one in waiting if self._check_all and one != most_useful]
            elif not most_useful.is_useful:
                waiting.remove(most_useful)
        return Recommendation(
            tuple(candidate for ladder in ladders for candidate in ladder.candidates),
            tuple(ladder.best for ladder in ladders if ladder.best is not None),
            tester.policy,
            self.terms.confirmation_seed,
            {
                "data": self.terms.everybody.about_json(),
                "traces": self._job.traces_fingerprint,
                "versions": self._job.versions,
                "together": self.terms.together.to_json(),
                "published_for": self.terms.published_for,
                "begun": datetime.now(UTC).isoformat(timespec="seconds"),
            },
        )


def prepare_search(
    traces: str | os.PathLike[str],
    options: AuditOptions,
    *,
    families: Sequence[str] = DEFAULT_FAMILIES,
    coarsen: Sequence[str] = (),
    check_all: bool = False,
    out: str | os.PathLike[str] | None = None,
    estimate: bool = False,
) -> PreparedSearch:
    """Check everything that can be checked before any work is done.

    Of the options, mechanisms are not used, and attacks are those of the last check. To `estimate`
    time and memory, each attack is tried. `whosthere.recommend` says what else is given.
    """
    path = Path(traces)
    terms = Terms(tuple(map(Family, families)), Traces.load(path), options, tuple(coarsen))
    terms.check()
    plan = terms.any_plan
    job = Job.on(plan, path)
    folder = None if out is None else TrialsFolder(Path(out), job)
    if folder is not None:
        folder.check()
    n_ladders = len(terms.families) * len(terms.coarsenings)
    n_checks = (n_ladders if check_all else 1) if len(plan.attacks) > 1 else 0
    return PreparedSearch(
        terms,
        sum(map(_most_bisections, terms.families)) * len(terms.coarsenings),
        n_checks + 1,
        _cost(terms, n_checks) if estimate else None,
        Look(
            1 if folder is None else number_of_look(folder.manifest, terms.seen),
            shared=terms.most_confirmations,
        ),
        job,
        folder,
        check_all,
    )


def _most_bisections(family: Family) -> int:
    """Return how many members are tried at most to find the weakest that passes, or none."""
    return len(family.members()).bit_length()


def _cost(terms: Terms, n_checks: int) -> Cost:
    """Try one member of each family with the searcher, and one with all others.

    Larger cells and groups are tried with the first family alone, and taken to change the time of
    the others as much.
    """
    people = Population.of(terms.everybody, terms.any_plan.first_epoch)
    # The member in the middle is the first one that the bisection tries.
    plans = [terms.plan(one.members()[len(one.members()) // 2].mechanism) for one in terms.families]
    searches = [
        estimate_cost(one, people, one.tasks)
        for one in (by_only(plan, (SEARCHER,)) for plan in plans)
    ]
    first = plans[0].schemes[0].mechanisms[0]
    coarser = [by_only(terms.plan(first, one), (SEARCHER,)) for one in terms.coarsenings[1:]]
    times = [estimate_cost(one, people, one.tasks).seconds for one in coarser]
    factor = 1 + sum(times) / max(searches[0].seconds, 1e-9)
    by_others = by_only(plans[0], terms.attacks[1:])
    check = Cost(0.0, 0)
    if by_others.contests:
        check = estimate_cost(by_others, people, by_others.tasks)
    in_search = sum(
        _most_bisections(family) * cost.seconds
        for family, cost in zip(terms.families, searches, strict=True)
    )
    in_confirmation = fmean(cost.seconds for cost in searches) + check.seconds
    return Cost(
        factor * in_search + n_checks * check.seconds + in_confirmation,
        max(cost.bytes_per_worker for cost in (*searches, check)),
    )


@contextmanager
def _explained(tester: Tester, *, kept: bool) -> Iterator[None]:
    """Tell a user who stops the search what is kept."""
    try:
        yield
    except (KeyboardInterrupt, LostWorkersError) as error:
        what = (
            "all tasks that were done are kept. The same command resumes there"
            if kept
            else "nothing is kept, because no folder was named"
        )
        where = f"in trial {tester.number} of at most {tester.most}"
        kind = LostWorkersError if isinstance(error, LostWorkersError) else InterruptedSearch
        why = str(error).partition(";")[0] or "interrupted"
        raise kind(f"{why} {where}; {what}") from None


class _Ladder:
    """The members of a family from weak to strong, and the weakest that passes so far.

    All are over the same cells, and of groups of the same size.
    """

    def __init__(self, tester: Tester, family: Family, coarsening: Coarsening) -> None:
        self._tester, self._family, self._coarsening = tester, family, coarsening
        self._members = family.members()
        self._tried: dict[int, Tried] = {}
        self._confirmations_left = MOST_CONFIRMATIONS
        # The first that passes, which is 1 to a search among numbers.
        self._place = bisect_left(range(len(self._members)), 1, key=self._passes)

    @property
    def candidates(self) -> list[Candidate]:
        return [self._tried[place].candidate for place in sorted(self._tried)]

    @property
    def best(self) -> Candidate | None:
        found = self._place < len(self._members)
        return self._tried[self._place].candidate if found else None

    @property
    def is_useful(self) -> bool:
        """Whether some member passes that leaves enough to publish."""
        return self.best is not None and not self.best.useless

    def pattern_kept(self) -> float:
        return 0.0 if self.best is None else self.best.pattern_kept

    def check(self) -> bool:
        """Try all attacks on the best; if it fails, the next one that passes is the best."""
        self._tried[self._place] = self._tester.checked(self._tried[self._place])
        return self._stands()

    def confirm(self) -> bool:
        """Try the best on fresh releases; if it fails, the next one that passes is the best."""
        self._tried[self._place] = self._tester.confirmed(self._tried[self._place])
        self._confirmations_left -= 1
        return self._stands()

    def _stands(self) -> bool:
        """Tell whether the best still passes and leaves enough; if it fails, move on."""
        if self._passes(self._place):
            return self.is_useful
        if not self._confirmations_left:
            self._place = len(self._members)
            return False
        # The next one is searched, checked and confirmed.
        self._tester.most += 3
        while self._place < len(self._members) and not self._passes(self._place):
            self._place += 1
        return False

    def _passes(self, place: int) -> bool:
        if place not in self._tried:
            member = self._members[place]
            self._tried[place] = self._tester.searched(self._family, member, self._coarsening)
        return self._tried[place].candidate.passes
