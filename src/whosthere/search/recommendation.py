"""What a search for a protection found, as values to look at."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from whosthere.adversary.attacks import LikelihoodRatio
from whosthere.auditing.result import shown
from whosthere.display import paragraph, stacked, table
from whosthere.game.together import Together
from whosthere.inference.vocabulary import METRICS, UTILITY, is_judged
from whosthere.search.coarsening import AS_ASKED, Coarsening

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from whosthere.auditing.policy import Policy
    from whosthere.auditing.verdict import Verdict
    from whosthere.inference.finding import Finding

RECOMMENDATION = "recommendation.json"
"""The name of the file that has what the last search in a folder found."""
SEARCHER = LikelihoodRatio()
"""The attack that is searched with: the strongest of all in our measurements, and the cheapest."""
CHOSEN_BECAUSE_IT_PASSED = (
    "It was chosen because it passed, which makes the numbers of the search look too good: quote "
    "those of the confirmation."
)


@dataclass(frozen=True)
class Candidate:
    """A protection that was tried."""

    family: str
    choice: str
    mechanism: str
    """The family's template, what was chosen, such as ``k=3``, and the spec of it."""
    verdict: Verdict
    findings: tuple[Finding, ...]
    checked: bool
    """Whether verdict and findings rest on all attacks, and not on the searcher alone."""
    coarsening: Coarsening = AS_ASKED
    """What was larger than it was asked for, if anything."""
    confirmation: Verdict | None = None
    """The verdict on fresh releases, by all attacks; None where that was not tried."""
    confirmation_findings: tuple[Finding, ...] = ()

    @property
    def name(self) -> str:
        """The mechanism, with what is larger than it was asked for."""
        return self.coarsening.of(self.mechanism)

    @property
    def ladder(self) -> str:
        """The family, with what is larger than it was asked for."""
        return self.coarsening.of(self.family)

    @property
    def auc(self) -> Finding | None:
        """The largest mean AUC of an attack, in the confirmation if there was one, else before."""
        own = (one for one in self.last_findings if is_judged(one.attack) and one.metric == "auc")
        known = (one for one in own if one.estimate is not None)
        return max(known, key=lambda one: one.estimate or 0.0, default=None)

    @property
    def risk(self) -> float:
        """The estimate of `auc`; 1 where there is none."""
        return 1.0 if self.auc is None or self.auc.estimate is None else self.auc.estimate

    @property
    def kept(self) -> float:
        """The pattern that is kept, in the confirmation if there was one, else before."""
        return max(self.last_verdict.left.get("pattern_correlation") or 0.0, 0.0)

    @property
    def passes(self) -> bool:
        """Whether the policy accepts it, as often as it was tried."""
        return self.verdict.decision == "accept" and self.last_verdict.decision == "accept"

    @property
    def confirmed(self) -> bool:
        """Whether the policy accepted it again, on fresh releases."""
        return self.confirmation is not None and self.passes

    @property
    def last_verdict(self) -> Verdict:
        """The confirmation if there was one, else the verdict of the search."""
        return self.confirmation or self.verdict

    @property
    def last_findings(self) -> tuple[Finding, ...]:
        """What the last verdict rests on."""
        return self.confirmation_findings if self.confirmation else self.findings

    @property
    def useless(self) -> bool:
        """Whether it leaves less than a floor of the policy, in the search or its confirmation."""
        return self.verdict.useless or self.last_verdict.useless

    def strongest(self, metric: str, *, confirmed: bool = False) -> Finding | None:
        """Return a metric of the strongest attack, of the search or of its confirmation."""
        verdict = self.last_verdict if confirmed else self.verdict
        findings = self.last_findings if confirmed else self.findings
        own = (one for one in findings if one.attack == verdict.strongest)
        return next((one for one in own if one.metric == metric), None)

    @property
    def utility(self) -> dict[str, float | None]:
        """What is left to publish by each measure, as the search found it."""
        return {one.metric: one.estimate for one in self.findings if one.attack == UTILITY}

    @property
    def pattern_kept(self) -> float:
        """Correlation of published and true counts over cells; 0 if nobody knows."""
        return self.utility.get("pattern_correlation") or 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the candidate as a JSON object."""
        return {
            "family": self.family,
            "mechanism": self.mechanism,
            "coarsened": self.coarsening.words,
            "checked_by_all_attacks": self.checked,
            "confirmed": self.confirmed,
            "verdict": self.verdict.to_json(),
            "utility": self.utility,
            "findings": [finding.to_json() for finding in self.findings],
            "confirmation": self.confirmation
            and {
                "verdict": self.confirmation.to_json(),
                "findings": [finding.to_json() for finding in self.confirmation_findings],
            },
        }


@dataclass(frozen=True)
class Recommendation:
    """What a search found."""

    candidates: tuple[Candidate, ...]
    """All protections that were tried, by what is larger and by family, from weak to strong."""
    best: tuple[Candidate, ...]
    """The weakest of each family that passes the policy, as far as it was tried; of each
    combination of what is larger where the search was to coarsen."""
    policy: Policy
    confirmation_seed: int
    """Of the fresh releases: an audit with this seed repeats the confirmation."""
    about: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """On which data, when and by which software, under the names that a manifest has for it."""

    @property
    def cautions(self) -> tuple[str, ...]:
        """What a reader of the results must know beforehand, a sentence each."""
        together = Together.read(self.about.get("together"))
        return () if together is None else together.in_words()

    @property
    def published_for(self) -> str:
        """For how long the table can be published again and again, such as ``4 weeks``.

        Empty if the search was not for that.
        """
        return str(self.about.get("published_for", ""))

    @property
    def recommended(self) -> Candidate | None:
        """Of the best that were confirmed, the one that keeps most of the pattern.

        None where nothing passes twice, or only what is safe, but useless.
        """
        fit = [one for one in self.best if one.confirmed and not one.useless]
        return max(fit, key=lambda candidate: candidate.pattern_kept, default=None)

    @property
    def front(self) -> tuple[Candidate, ...]:
        """The candidates that no other one beats, from the least risk and pattern to the most.

        Another one beats a candidate if it has no more `risk`, has `kept` no less of the pattern,
        and differs. Only what was tried is compared.
        """
        tried = self.candidates
        return tuple(tried[i] for i in undominated([(one.risk, one.kept) for one in tried]))

    @property
    def why_nothing(self) -> str:
        """Why nothing is recommended, as the beginning of a sentence."""
        if any(one.useless for one in self.best):
            return "Only what is useless, by the floors of the policy,"
        if any(one.confirmation is not None for one in self.candidates):
            return "Nothing that was tried again on fresh releases"
        return "Nothing that was tried"

    def to_json(self) -> dict[str, Any]:
        """Return the recommendation as a JSON object."""
        chosen = self.recommended
        return {
            "recommended": None if chosen is None else chosen.mechanism,
            "coarsened": None if chosen is None else chosen.coarsening.words,
            **({"published_for": self.published_for} if self.published_for else {}),
            "best_of_each_family": [candidate.name for candidate in self.best],
            "front": [
                {
                    "mechanism": one.mechanism,
                    "coarsened": one.coarsening.words,
                    "decision": one.last_verdict.decision,
                    "auc": one.auc and one.auc.to_json(),
                    "pattern_correlation": one.kept,
                }
                for one in self.front
            ],
            "confirmation_seed": self.confirmation_seed,
            "policy": self.policy.to_json(),
            "candidates": [candidate.to_json() for candidate in self.candidates],
        }

    def __repr__(self) -> str:
        chosen = self.recommended
        what = "nothing passes" if chosen is None else chosen.name
        return f"<Recommendation: {what}, of {len(self.candidates)} tried>"

    def _repr_html_(self) -> str:
        """Show what is recommended, and all that was tried."""
        chosen = self.recommended
        said = [paragraph(f"{self.why_nothing} passes the policy.", strong="Recommended: nothing.")]
        if chosen is not None:
            said = [
                paragraph(chosen.last_verdict.headline, strong="Recommended:"),
                paragraph(CHOSEN_BECAUSE_IT_PASSED),
                *map(paragraph, chosen.last_verdict.reasons),
            ]
        metrics = self.policy.metrics_to_show
        rows = [row for one in self.candidates for row in _rows(one, metrics)]
        words = (METRICS[metric].words for metric in metrics)
        header = ("mechanism", "verdict", *words, "pattern kept")
        front = [(one.name, shown(one.auc), f"{one.kept:.2f}") for one in self.front]
        not_beaten = table(("front: not beaten in both", "mean AUC", "pattern kept"), front)
        return stacked(*said, not_beaten, table(header, rows))


def lasts_in_words(time: str) -> str:
    """Say for how long what is recommended can be published, table after table."""
    return (
        f"It lasts for {time}: all tables of this time, of the same people, were accepted "
        "together. Whoever has fewer of them knows less. Nothing is known about more."
    )


def undominated(points: Sequence[tuple[float, float]]) -> list[int]:
    """Return which points of risk and use no other one beats, from the least of both to the most.

    Of equal points the first one is taken.
    """
    front: list[int] = []
    for i in sorted(range(len(points)), key=lambda i: (points[i][0], -points[i][1])):
        if not front or points[i][1] > points[front[-1]][1]:
            front.append(i)
    return front


def _rows(one: Candidate, metrics: Sequence[str]) -> Iterator[list[str]]:
    """Return a row of what the search found, and one of the confirmation."""
    alone = "" if one.checked else f" ({SEARCHER} alone)"
    numbers = (shown(one.strongest(metric)) for metric in metrics)
    yield [one.name, one.verdict.decision + alone, *numbers, f"{one.pattern_kept:.2f}"]
    if one.confirmation is not None:
        numbers = (shown(one.strongest(metric, confirmed=True)) for metric in metrics)
        yield [f"{one.name}, confirmation", one.confirmation.decision, *numbers, ""]
