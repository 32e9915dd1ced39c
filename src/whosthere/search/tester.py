"""Trying one protection: by the searcher, by all attacks, and again on fresh releases."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from whosthere.auditing.guaranteed import guaranteed
from whosthere.auditing.judging import judge_scores
from whosthere.auditing.options import merged
from whosthere.auditing.planning import make_plan
from whosthere.errors import InputError
from whosthere.game.rounds import Population
from whosthere.game.together import Together, together
from whosthere.inference.vocabulary import CEILING
from whosthere.search.recommendation import SEARCHER, Candidate
from whosthere.seeds import derived_seed

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from whosthere.adversary.attacks import Attack
    from whosthere.auditing.options import AuditOptions
    from whosthere.auditing.policy import Policy
    from whosthere.auditing.verdict import Verdict
    from whosthere.data.traces import Traces
    from whosthere.game.plan import Plan
    from whosthere.inference.finding import Finding
    from whosthere.inference.looks import Look
    from whosthere.privacy.mechanism import Family, Mechanism, Member
    from whosthere.search.trials import Trials

MOST_CONFIRMATIONS = 3
"""How many members of a family are confirmed until one of them passes: who tries often enough finds
one that passes by chance."""
# The searcher is cheap, so that it can look at more releases than the others.
_LEAST_RELEASES_TO_SEARCH = 60


@dataclass(frozen=True, eq=False)
class Terms:
    """What all trials of a search have in common.

    Parameters
    ----------
    families
        What is searched.
    everybody
        The traces.
    options
        As for an audit, of one group size and one knowledge; its mechanisms are not used.
    """

    families: tuple[Family, ...]
    everybody: Traces
    options: AuditOptions

    @cached_property
    def attacks(self) -> tuple[Attack, ...]:
        """Who attacks at last: those that were chosen, and the searcher in any case."""
        chosen = (one for block in self.options.blocks for one in block.attacks)
        return tuple(dict.fromkeys((SEARCHER, *chosen)))

    @cached_property
    def most_controls(self) -> int:
        """How many controls there can be in all trials, to share the chance of a false alarm."""
        # Each attack has two, and each protection that of its law besides.
        controls = 2 * len(self.attacks) + 1
        members = sum(len(family.members()) for family in self.families)
        return controls * (members + self.most_confirmations)

    @cached_property
    def most_confirmations(self) -> int:
        """How many confirmations there can be."""
        return MOST_CONFIRMATIONS * len(self.families)

    @cached_property
    def seen(self) -> dict[str, Any]:
        """What tells what is confirmed from what another search confirms."""
        families = [family.template for family in self.families]
        return {"families": families, **self.any_plan.to_json()}

    @cached_property
    def confirmation_seed(self) -> int:
        """The seed of fresh releases, short enough to be typed."""
        return derived_seed(self.options.seed, "confirmation") % 2**32

    @cached_property
    def any_plan(self) -> Plan:
        """The plan of some trial by all attacks; all have the same people, groups and times."""
        return self.plan(self.families[0].members()[0].mechanism)

    @cached_property
    def tested(self) -> Traces:
        """Everybody in the tested time."""
        return Population.of(self.everybody, self.any_plan.first_epoch).tested

    @cached_property
    def together(self) -> Together:
        """How many people share most of their visits with somebody else."""
        return together(self.tested, seed=self.options.seed)

    def check(self) -> None:
        """Refuse what no trial could do, before the first one."""
        if not self.families:
            raise InputError("no family is given", fix="Give some, such as 'suppress(k=?)'")
        for family in self.families:
            if len(self.plan(family.members()[0].mechanism).settings) > 1:
                raise InputError(
                    "a search is for one group size and one knowledge of the targets",
                    fix="Give one of each, and search again for others",
                )

    def plan(self, mechanism: Mechanism | str, *, seed: int | None = None) -> Plan:
        """Return the plan to try a mechanism by all attacks; with another seed if one is given."""
        given = {"mechanisms": mechanism, "attacks": self.attacks, "seed": seed}
        plan = make_plan(merged(self.options, given), self.everybody)
        releases = max(_LEAST_RELEASES_TO_SEARCH, plan.releases_by(SEARCHER))
        return plan.with_releases_of(SEARCHER, releases)


@dataclass(frozen=True, eq=False)
class Tried:
    """A candidate, with the scores that it was judged by."""

    candidate: Candidate
    tests: pl.DataFrame
    controls: pl.DataFrame


@dataclass(frozen=True, eq=False)
class Tester:
    """Tries protections.

    Parameters
    ----------
    terms
        What all trials have in common.
    policy
        The limits to judge by.
    trials
        Who does them.
    look
        Which search it is, whose error the confirmations share. Other trials are judged alike, so
        that what passes is likely to be confirmed.
    """

    terms: Terms
    policy: Policy
    trials: Trials
    look: Look

    def searched(self, family: Family, member: Member) -> Tried:
        """Try a member of a family with the searcher alone."""
        spec = str(member.mechanism)
        plan = by_only(self.terms.plan(member.mechanism), (SEARCHER,))
        tests, controls = self.trials.scores(plan, f"{spec} with {SEARCHER}")
        verdict, findings = self._judged(tests, controls, plan)
        candidate = Candidate(
            family.template, member.choice, spec, verdict, findings, checked=False
        )
        return Tried(candidate, tests, controls)

    def checked(self, tried: Tried) -> Tried:
        """Try a protection with the other attacks too."""
        candidate = tried.candidate
        plan = by_only(self.terms.plan(candidate.mechanism), self.terms.attacks[1:])
        if not plan.contests:
            return replace(tried, candidate=replace(candidate, checked=True))
        now = self.trials.scores(plan, f"{candidate.mechanism} with {_listed(plan.attacks)}")
        # The ceiling is known from the search already, on more releases.
        tests, controls = (
            pl.concat([old, new.filter(pl.col("attack") != CEILING)])
            for old, new in zip((tried.tests, tried.controls), now, strict=True)
        )
        verdict, findings = self._judged(tests, controls, plan)
        judged = replace(candidate, verdict=verdict, findings=findings, checked=True)
        return Tried(judged, tests, controls)

    def confirmed(self, tried: Tried) -> Tried:
        """Try a protection with all attacks on fresh releases, which did not choose it."""
        candidate = tried.candidate
        plan = self.terms.plan(candidate.mechanism, seed=self.terms.confirmation_seed)
        trial = f"{candidate.mechanism} with {_listed(plan.attacks)} on fresh releases"
        scores = self.trials.scores(plan, trial)
        self.trials.note_look(self.terms.seen)
        verdict, findings = self._judged(*scores, plan)
        judged = replace(candidate, confirmation=verdict, confirmation_findings=findings)
        return replace(tried, candidate=judged)

    def _judged(
        self, tests: pl.DataFrame, controls: pl.DataFrame, plan: Plan
    ) -> tuple[Verdict, tuple[Finding, ...]]:
        findings, _, [verdict] = judge_scores(
            replace(plan, together=self.terms.together),
            tests,
            controls,
            self.policy,
            guaranteed(plan, self.terms.tested),
            look=self.look,
            n_attacks=len(self.terms.attacks),
            n_controls=self.terms.most_controls,
        )
        return verdict, findings


def by_only(plan: Plan, attacks: Collection[Attack]) -> Plan:
    """Return a plan without the other attacks."""
    return replace(plan, contests=tuple(one for one in plan.contests if one.attack in attacks))


def _listed(attacks: Sequence[Attack]) -> str:
    return ", ".join(map(str, attacks))
