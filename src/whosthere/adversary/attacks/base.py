"""The one shape of every attack: fit on what it may see, then score releases."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import numpy as np

from whosthere import specs
from whosthere.adversary.suspects import lies_within
from whosthere.errors import InputError, suggestion
from whosthere.inference.scores import RULED_OUT
from whosthere.inference.vocabulary import NOT_ATTACKS, STUDY_ONLY
from whosthere.privacy.scheme import ORDINARY, Layout

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from whosthere.adversary.suspects import Known
    from whosthere.arrays import Floats
    from whosthere.data.traces import Traces
    from whosthere.privacy.facts import Facts
    from whosthere.privacy.release import Release

_T = TypeVar("_T")
# Below this many times the group's size, groups made of a reference overlap too much.
_PLENTY = 2


class NotApplicableError(InputError):
    """An attack was given something that it cannot work on."""


@dataclass(frozen=True, eq=False)
class PastRelease:
    """A past release of which the attacker knows whether the target was in it (`target_in`)."""

    release: Release
    target_in: bool


@dataclass(frozen=True, eq=False)
class Auxiliary:
    """What an attacker may have besides the release and knowledge of the target.

    Parameters
    ----------
    reference
        Real traces of other people over the same regions and epochs, without the target.
    friends
        Real traces of the target's friends over the same regions and epochs.
    past
        Releases with known membership.
    example
        A release that was made like the attacked ones; it may be one of them.
    example_in, others, everybody, older
        What no attacker has: these are for studies of what it would be worth. An attack that uses
        one of them is marked, and no setting is judged by it. `example_in` is an example that holds
        the target. `others` are the other m - 1 people of the attacked release, with those of their
        visits that were counted. `everybody` are all who may be in it besides the target. `older`
        is a release of the same people as the attacked one, of the time before it; of the same time
        once more if the audit has no `test_from`.
    """

    reference: Traces | None = None
    friends: Traces | None = None
    past: Sequence[PastRelease] = ()
    example: Release | None = None
    example_in: Release | None = None
    others: Traces | None = None
    everybody: Traces | None = None
    older: Release | None = None

    def has(self, part: str) -> bool:
        """Tell whether a part, named as the fields are, is there."""
        found = getattr(self, part)
        return found is not None and (part != "past" or len(found) > 0)

    @property
    def real_traces(self) -> Traces:
        """The reference, for attacks that need one."""
        if self.reference is None:
            raise NotApplicableError("there are no reference traces", fix="Give some")
        return self.reference


@dataclass(frozen=True, eq=False)
class View:
    """What an attacker has of one table, before it is published: `facts`, `knowledge`, `auxiliary`.

    All of it lies over the cells of the table. `layout` says how these come from the smallest cells
    that the publisher counts.
    """

    facts: Facts
    knowledge: Known
    auxiliary: Auxiliary
    layout: Layout = ORDINARY


@dataclass(frozen=True)
class Answer:
    """What an attack says about one release.

    Attributes
    ----------
    score
        Higher means more likely in; `RULED_OUT` where it is certain that the target is not.
    threshold
        Scores above it are called in; tuned by the attacker beforehand.
    calibrated
        How far the score lies above what the attacker expects without the target, in standard
        deviations of the scores that it expects then. Scores of different targets can only be
        compared by this. Where nothing is given, it is the score less the threshold, which is
        right for scores that mean the same for everybody; it is `RULED_OUT` where the score is.
    """

    score: float
    threshold: float
    calibrated: float = math.nan

    def __post_init__(self) -> None:
        for name in ("score", "threshold", "calibrated"):
            found = getattr(self, name)
            given = found.item() if isinstance(found, np.ndarray) and not found.ndim else found
            is_number = isinstance(given, Real)
            is_missing = name == "calibrated" and is_number and math.isnan(given)
            if not (is_number and math.isfinite(given)) and not is_missing:
                # An array would show counts.
                shown = given if is_number else f"of type {type(given).__name__}"
                problem = f"the {name} of an answer is {shown}, no finite number"
                raise InputError(problem, fix="Use RULED_OUT where the target cannot be in")
            object.__setattr__(self, name, float(given))
        if self.is_certain:
            object.__setattr__(self, "calibrated", RULED_OUT)
        elif math.isnan(self.calibrated):
            object.__setattr__(self, "calibrated", self.score - self.threshold)

    @property
    def says_in(self) -> bool:
        """The decision."""
        return self.score > self.threshold

    @property
    def is_certain(self) -> bool:
        """Whether the target cannot be in."""
        return self.score == RULED_OUT

    @property
    def p_value(self) -> float | None:
        """Chance of at least this score if the target is out; None if none is claimed."""
        return None

    def posterior(self, prior: float = 0.5) -> float | None:  # noqa: ARG002
        """Return the chance of being in, given one before; None if none is claimed."""
        return None

    def explain(self, *, prior: float) -> list[str]:  # noqa: ARG002 - no probability is claimed
        """Return sentences on what the score means, given a probability of being in before."""
        return [
            "The score ranks releases against one another; it is no probability. The decision is "
            "the attacker's best guess and may be wrong: how often it is, is what an audit over "
            "many people measures."
        ]

    def to_json(self, *, prior: float = 0.5) -> dict[str, Any]:  # noqa: ARG002
        """Return the answer as a JSON object."""
        return {
            "score": self.score,
            "threshold": self.threshold,
            "decision": "in" if self.says_in else "out",
            "certain": self.is_certain,
        }


class FittedAttack(ABC):
    """An attack on one target, ready to score releases that share its facts."""

    @abstractmethod
    def score(self, release: Release) -> Answer:
        """Score a release; the same release always gets the same answer."""

    def score_tables(self, releases: Sequence[Release]) -> Answer:
        """Score all tables of a publication; more than one needs `Attack.fit_tables`."""
        [release] = releases
        return _returned(Answer, self.score(release), f"{type(self).__name__}.score")


class _SaysNothing(FittedAttack):
    """What is left of any attack on somebody who made no visit in the time that is published."""

    def score(self, release: Release) -> Answer:
        return self.score_tables((release,))

    def score_tables(self, releases: Sequence[Release]) -> Answer:  # noqa: ARG002
        return Answer(0.0, 0.0)


SAYS_NOTHING = _SaysNothing()


class Attack(ABC):
    """A way to find out whether a target is in a release.

    To write one: a frozen dataclass with a `name`, a `summary`, and `fit`. What it `uses` besides
    the release and the knowledge of the target, it says. Fields that are declared with
    `whosthere.specs.parameter` can be set in specs.

    Attributes
    ----------
    name
        What it is called in specs.
    summary
        One sentence: what it does and what it needs.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    groups_from_reference: ClassVar[bool] = False
    """Whether it makes groups of the reference, which then must hold more people than a group."""

    @property
    def uses(self) -> frozenset[str]:
        """Which parts of `Auxiliary` it reads; all others are never touched."""
        return frozenset()

    @property
    def is_study_only(self) -> bool:
        """Whether it uses what no attacker has, so that nothing is judged by it."""
        return bool(self.uses & FOR_STUDIES)

    @property
    def needs_law(self) -> bool:
        """Whether it computes with the chances of published counts, given the true ones."""
        return False

    def __post_init__(self) -> None:
        """Check the parameters."""
        specs.check_parameters(self)

    @classmethod
    def parse(cls, given: Attack | str) -> Attack:
        """Return what a spec such as ``knock-knock`` describes; an attack is returned as it is."""
        from whosthere.adversary.attacks import ATTACKS  # noqa: PLC0415 - they derive from this

        if not isinstance(given, Attack):
            text = given.removesuffix(STUDY_ONLY) if isinstance(given, str) else given
            return cast("Attack", ATTACKS.parse(text))
        given._refuse_slips()
        return given

    def _refuse_slips(self) -> None:
        """Refuse a name that results could not be known by, and parts that do not exist."""
        from whosthere.adversary.attacks import ATTACKS  # noqa: PLC0415 - they derive from this

        name: object = getattr(self, "name", None)
        if not isinstance(name, str) or not re.fullmatch(r"[\w.-]+", name):
            problem = f"{type(self).__name__} has no name that is one word"
            raise InputError(problem, fix='Write it like name: ClassVar[str] = "my-attack"')
        ours, is_ours = ATTACKS.kinds.get(name), type(self).__module__.startswith("whosthere.")
        if name in NOT_ATTACKS or (ours and ours.make is not type(self) and not is_ours):
            raise InputError(f"results already call something else {name}", fix="Name it otherwise")
        uses: object = self.uses
        if not isinstance(uses, set | frozenset):
            problem = f"what {self.name} uses is no set, but {uses!r}"
            raise InputError(problem, fix='Write it like uses = frozenset({"reference"})')
        for part in sorted(uses - WORDS.keys(), key=str):
            fix = suggestion(str(part), WORDS)
            raise InputError(f"{self.name} uses {part!r}, which no attacker has", fix=fix)

    def __str__(self) -> str:
        """Write the attack as its canonical spec, with defaults left out, and a mark if it has one.

        Results know an attack by this text alone.
        """
        return specs.write(self) + (STUDY_ONLY if self.is_study_only else "")

    def check(self, facts: Facts, knowledge: Known, auxiliary: Auxiliary) -> None:
        """Raise `NotApplicableError` if the attack does not apply, before any work is done."""
        if not lies_within(knowledge, facts):
            raise NotApplicableError(
                "the target's visits or places lie outside the release's regions and epochs"
            )
        if self.needs_law and not facts.mechanism.has_law:
            raise NotApplicableError(
                f"{self} needs to know the chance of each published count, given the true one; of "
                f"{facts.mechanism}, a function of a whole table, nobody knows it",
                fix="Use an attack that learns from examples, such as zero-knowledge",
            )
        for part in sorted(self.uses):
            if not auxiliary.has(part):
                raise NotApplicableError(
                    f"{self.name} needs {WORDS[part]}",
                    fix=f"Give them (`{part}`), or use another attack",
                )
        for part in sorted(self.uses & {"reference", "friends"}):
            traces = getattr(auxiliary, part)
            if traces.regions.ids != facts.regions.ids or traces.epochs != facts.epochs:
                raise NotApplicableError(
                    f"the {WORDS[part]} lie over other regions or epochs than the release",
                    fix="Read them with the release's own regions, epochs and time zone",
                )
        if "reference" in self.uses:
            self._check_reference(facts.group_size, auxiliary.real_traces.n_users)

    def cautions(self, facts: Facts, auxiliary: Auxiliary) -> list[str]:
        """Return sentences on what will make the attack weaker than it could be; mostly none."""
        m, found = facts.group_size, self._people_of_groups(facts, auxiliary)
        if found is None or found >= _PLENTY * m:
            return []
        return [
            f"{self} has a reference of {found:,} people for groups of {m:,}: the groups that "
            "it makes of them overlap so much that it finds less than it could. Give at least "
            f"{_PLENTY * m:,}."
        ]

    def _people_of_groups(self, facts: Facts, auxiliary: Auxiliary) -> int | None:  # noqa: ARG002
        """Return how many people groups are made of; None where none are made."""
        if not self.groups_from_reference or not auxiliary.has("reference"):
            return None
        return auxiliary.real_traces.n_users

    def _check_reference(self, m: int, found: int, *, of: str = "reference") -> None:
        """Refuse a reference that holds too few people for groups of m."""
        least = m + 1 if self.groups_from_reference or of == "synthetic" else m
        if found < least:
            why = ": groups of all of them would be the same" if found == m else ""
            other = "use zero-knowledge, which needs none"
            raise NotApplicableError(
                f"{self.name} needs at least {least} {of} traces for groups of {m}, "
                f"not {found}{why}",
                fix=f"Give more, or {'leave the number out' if of == 'synthetic' else other}",
            )

    @abstractmethod
    def fit(
        self, facts: Facts, knowledge: Known, auxiliary: Auxiliary, *, seed: int
    ) -> FittedAttack:
        """Prepare for one target and for releases with these facts, which `check` has passed."""

    def check_tables(self, views: Sequence[View]) -> None:
        """Raise `NotApplicableError` if the attack does not apply to a publication.

        An attack that can add up what several tables say overrides this, `fit_tables` and
        `FittedAttack.score_tables`. All others know one table.
        """
        if len(views) > 1:
            raise NotApplicableError(
                f"{self.name} attacks one table, not {len(views)} together",
                fix="Publish one table, or use another attack",
            )
        self.check(views[0].facts, views[0].knowledge, views[0].auxiliary)

    def fit_tables(self, views: Sequence[View], *, seed: int) -> FittedAttack:
        """Check, and prepare for one target and for publications of these tables.

        Whoever makes an attack calls this, and nothing else.
        """
        self.check_tables(views)
        fitted = self.fit(views[0].facts, views[0].knowledge, views[0].auxiliary, seed=seed)
        return _returned(FittedAttack, fitted, f"{type(self).__name__}.fit")


class AttackOnTables(Attack):
    """An attack that sees all tables of a publication together."""

    @abstractmethod
    def fit_views(self, views: Sequence[View], *, seed: int) -> FittedAttack:
        """Prepare for one target and for publications of tables that `check_tables` has passed."""

    def fit(
        self, facts: Facts, knowledge: Known, auxiliary: Auxiliary, *, seed: int
    ) -> FittedAttack:
        return self.fit_views([View(facts, knowledge, auxiliary)], seed=seed)

    def check_tables(self, views: Sequence[View]) -> None:
        for view in views:
            self.check(view.facts, view.knowledge, view.auxiliary)

    def fit_tables(self, views: Sequence[View], *, seed: int) -> FittedAttack:
        if len(views) == 1:
            # Over its own cells, and by `fit`, which a subclass may have made its own.
            return super().fit_tables(views, seed=seed)
        self.check_tables(views)
        return self.fit_views(views, seed=seed)


class AttackOnEverybody(Attack):
    """An attack that scores many people at once, in far less time than one after the other."""

    @abstractmethod
    def scorer(self, views: Sequence[View]) -> Callable[[Sequence[Release]], Floats]:
        """Prepare to score publications for all people whom the views know, shape (n_people,).

        Scores are `RULED_OUT` where somebody cannot be in.
        """

    def score_everybody(self, release: Release, people: Known) -> Floats:
        """Score a release for all people who are known."""
        view = View(release.facts, people, Auxiliary())
        self.check_tables([view])
        return self.scorer([view])([release])


def _returned(kind: type, found: _T, function: str) -> _T:
    """Return what a function of a user's returned, or refuse it."""
    if not isinstance(found, kind):
        problem = f"{function} returned a {type(found).__name__}, no {kind.__name__}"
        raise InputError(problem, fix=f"Return a `wt.attacks.{kind.__name__}`")
    return found


WORDS = {
    "reference": "reference traces",
    "friends": "traces of the target's friends",
    "past": "past releases with known membership",
    "example": "a release like those that it attacks",
    "example_in": "a release that is known to hold the target",
    "others": "traces of the other people of the release",
    "everybody": "traces of everybody who may be in the release",
    "older": "an older release of the same people",
}
"""What each part of `Auxiliary` is called in a sentence."""
FOR_STUDIES = frozenset({"example_in", "others", "everybody", "older"})
"""The parts of `Auxiliary` that no attacker has."""
OF_ONE_RELEASE = frozenset({"others", "older"})
"""The parts that belong to the attacked release: who uses them is fitted to each release anew."""


def check_same_facts(release: Release, facts: Facts) -> None:
    """Refuse a release that an attack was not prepared for."""
    if release.facts != facts:
        raise InputError("the release has other regions, epochs, group size or mechanism")
