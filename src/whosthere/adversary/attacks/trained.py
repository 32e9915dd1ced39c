"""What the attacks that train a classifier have in common."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, cast, get_args

import numpy as np

from whosthere import specs
from whosthere.adversary.attacks.base import Answer, AttackOnTables, FittedAttack
from whosthere.adversary.classifiers import L1, Classifier, Decision
from whosthere.adversary.features import FeaturesOfTables
from whosthere.adversary.groups import SAMPLINGS, GroupSampler, Sampling, sample_tables
from whosthere.adversary.models import CLASSIFIERS, Model, classifier
from whosthere.adversary.suspects import Habits, Places
from whosthere.data.traces import Traces
from whosthere.errors import InputError
from whosthere.seeds import generator
from whosthere.specs import check_integer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from whosthere.adversary.attacks.base import View
    from whosthere.adversary.suspects import Known
    from whosthere.privacy.facts import Facts
    from whosthere.privacy.release import Release
    from whosthere.privacy.scheme import Layout

ThresholdRule: TypeAlias = Literal["roc", "middle"]
THRESHOLD_RULES: tuple[str, ...] = get_args(ThresholdRule)
# Variances are nothing if they are smaller than others by this factor.
_SAME = 1e-6


def threshold_parameter() -> ThresholdRule:
    """Declare the rule by which an attack chooses its threshold."""
    meaning = "where the threshold lies: at the lowest accepted score, or in the middle of the gap"
    found: ThresholdRule = specs.parameter(specs.OneOf(THRESHOLD_RULES), meaning, default="roc")
    return found


def checked_groups(given: int, key: str) -> int:
    """Return a number of groups, or refuse one that cannot be half with the target."""
    n = check_integer(given, key, least=2)
    if n % 2:
        raise InputError(f"{n} groups cannot be balanced", fix="Use an even number")
    return n


EVEN = replace(specs.WHOLE, check=checked_groups)


@dataclass(frozen=True, kw_only=True)
class TrainedAttack(AttackOnTables):
    """An attack that learns from groups of its own; the defaults are the paper's.

    The classifier is a name such as ``"l1-paper"``, or a `Model`, such as one of scikit-learn.
    Half of the groups hold the target; those that tune the threshold are always independent. See
    `youden_threshold` for where that lies.
    """

    sampling: Sampling = specs.parameter(
        specs.OneOf(SAMPLINGS),
        "how the groups to learn from are drawn: in pairs, or independently",
        default="paired",
    )
    classifier: Classifier | Model | str = specs.parameter(
        specs.Nested(lambda: CLASSIFIERS), "what learns", default_factory=L1
    )
    groups: int = specs.parameter(EVEN, "groups to learn from, an even number", default=400)
    validation_groups: int = specs.parameter(
        EVEN, "groups to tune the threshold on", default=100, key="validation"
    )
    threshold: ThresholdRule = threshold_parameter()  # noqa: RUF009 - a field

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "classifier", classifier(self.classifier))

    def train(self, seen: Sequence[Traces | Release], tables: Tables, seed: int) -> Trained:
        """Learn from what is seen of other people in each table, and choose the threshold.

        Attacks that differ in their threshold alone learn once for all of them.
        """
        usual = replace(self, threshold="roc")
        return _learned(usual, tuple(seen), tables, seed).tuned(self.threshold)

    def learn_from(self, seen: Sequence[Traces | Release], tables: Tables, seed: int) -> Untuned:
        """Learn from what is seen: here, real traces."""
        return self.learn(cast("Sequence[Traces]", seen), tables, generator(seed, self.name))

    def learn(
        self, references: Sequence[Traces], tables: Tables, rng: np.random.Generator
    ) -> Untuned:
        """Learn from groups of a reference, and score further ones to tune the threshold on.

        The reference are the same people over the cells of each table.
        """
        samplers = [
            sampler_over(reference, table.facts, table.knowledge, rng)
            for reference, table in zip(references, tables, strict=True)
        ]
        features = FeaturesOfTables(tuple(one.features for one in samplers))
        lessons = sample_tables(samplers, self.groups, self.sampling, rng)
        # Not from what is drawn for groups, which are the same for every classifier.
        own = int(rng.spawn(1)[0].integers(2**32))
        learner, labels = classifier(self.classifier), lessons[0].labels
        decision = learner.fit(features.matrix([one.counts for one in lessons]), labels, own)
        del lessons  # the largest thing in memory, and done with
        cells = features.cells(decision.cells)
        trial = sample_tables(samplers, self.validation_groups, "independent", rng, cells=cells)
        symbols = [one.counts.dense() for one in trial]
        return Untuned.of(decision, features, symbols, trial[0].labels)


class Table(NamedTuple):
    """What a trained attack looks at of one table besides what is seen of other people."""

    facts: Facts
    knowledge: Known
    layout: Layout

    @classmethod
    def each(cls, views: Sequence[View]) -> Tables:
        """Return it of each of several tables."""
        return tuple(cls(view.facts, view.knowledge, view.layout) for view in views)


Tables: TypeAlias = tuple[Table, ...]


@lru_cache(maxsize=1)
def _learned(
    attack: TrainedAttack, seen: tuple[Traces | Release, ...], tables: Tables, seed: int
) -> Untuned:
    """Return what an attack learns; the last one is kept, as rules for a threshold share it."""
    return attack.learn_from(seen, tables, seed)


class Untuned(NamedTuple):
    """A classifier, what it sees, and its scores of labelled groups that it did not learn from."""

    decision: Decision
    features: FeaturesOfTables
    scores: NDArray[np.float64]
    labels: NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        decision: Decision,
        features: FeaturesOfTables,
        symbols: Sequence[NDArray[np.integer]],
        labels: NDArray[np.bool_],
    ) -> Untuned:
        """Score labelled groups, given the symbols of the cells that the classifier looks at.

        There is an array of them for each table.
        """
        return cls(decision, features, decision(features.of(symbols, decision.cells)), labels)

    def tuned(self, rule: ThresholdRule) -> Trained:
        """Choose the threshold."""
        return Trained(self.decision, self.features, Tuning.of(self.scores, self.labels, rule))


@dataclass(frozen=True, eq=False, repr=False)
class Trained(FittedAttack):
    """A classifier, what it sees, and what its scores mean."""

    decision: Decision
    features: FeaturesOfTables
    tuning: Tuning

    def score(self, release: Release) -> Answer:
        return self.score_tables((release,))

    def score_tables(self, releases: Sequence[Release]) -> Answer:
        chosen = self.decision.cells
        parts = zip(releases, self.features.cells(chosen), strict=True)
        symbols = [release.symbols.reshape(-1)[None, cells] for release, cells in parts]
        return self.tuning.answer(float(self.decision(self.features.of(symbols, chosen))[0]))


@dataclass(frozen=True)
class Tuning:
    """A threshold, and mean and deviation (above 0) of scores without the target."""

    threshold: float
    mean: float
    deviation: float

    @classmethod
    def of(
        cls,
        scores: NDArray[np.float64],
        labels: NDArray[np.bool_],
        rule: ThresholdRule = "roc",
    ) -> Tuning:
        """Learn from the scores of groups of which the attacker knows whether the target is in.

        Both have the shape (n_groups,); at least one group is without the target. The deviation is
        that of the groups without the target, with the usual deviation within either kind as one
        observation more. So it is not 0 where the few groups without the target happen to score
        alike. Where scores are alike within both kinds, it is that of all scores; where all are
        alike, 1.
        """
        out, rest = scores[~labels], scores[labels]
        squares = float(((out - out.mean()) ** 2).sum())
        within = squares + (float(((rest - rest.mean()) ** 2).sum()) if rest.size else 0.0)
        usual = within / max(scores.size - 2, 1)
        mean, variance, total = float(out.mean()), (squares + usual) / out.size, float(scores.var())
        if variance <= _SAME * total:
            variance = total
        if variance <= _SAME**2 * (1 + mean**2):
            variance = 1.0
        return cls(youden_threshold(scores, labels, rule), mean, math.sqrt(variance))

    def answer(self, score: float) -> Answer:
        """Return what a score means: the decision, and how many deviations it is above the mean."""
        return Answer(score, self.threshold, (score - self.mean) / self.deviation)


def youden_threshold(
    scores: NDArray[np.float64], labels: NDArray[np.bool_], rule: ThresholdRule = "roc"
) -> float:
    """Return the threshold with the largest share of true less share of false alarms.

    Scores above it are called in. By the rule "roc" it lies just below the lowest score that is
    called in, and of several equally good ones it is the highest: so does who takes it from the
    list of scikit-learn's `roc_curve`. By "middle" it lies in the middle between two scores that
    occur, or beyond all of them; of several equally good ones it is the middle one.
    """
    values = np.unique(scores)
    padded = np.concatenate([[values[0] - 1.0], values, [values[-1] + 1.0]])
    candidates = (padded[:-1] + padded[1:]) / 2
    missed = np.searchsorted(np.sort(scores[labels]), candidates, side="right")
    passed = np.searchsorted(np.sort(scores[~labels]), candidates, side="right")
    j = passed / max((~labels).sum(), 1) - missed / max(labels.sum(), 1)
    best = np.flatnonzero(j >= j.max() - 1e-12)
    if rule == "roc":
        lowest = best[-1]
        return float(np.nextafter(values[lowest], -np.inf) if lowest < values.size else values[-1])
    return float(candidates[best[(best.size - 1) // 2]])


def sampler_over(
    reference: Traces, facts: Facts, knowledge: Known, rng: np.random.Generator
) -> GroupSampler:
    """Make groups out of reference traces and the target, contributions bounded as published.

    Which visits the publisher drops is drawn anew for each publication. The attacker draws it once
    for all of its groups, as the paper does: the reference then holds as many visits as the
    publisher's people do, though always the same ones of each person. What the attacker does not
    know of the target is guessed from the reference.
    """
    bounded = facts.mechanism.bound(reference, rng)
    target = facts.mechanism.bound(believed(knowledge, reference, rng), rng)
    return GroupSampler(bounded, target.cells, facts.group_size, facts.mechanism, target.added(0))


def believed(knowledge: Known, reference: Traces, rng: np.random.Generator) -> Traces:
    """Return the trace to put in the target's place, guessed where only places are known."""
    if not isinstance(knowledge, Places):
        return knowledge
    habits = Habits.of(reference.counts(), reference.n_users)
    cells = knowledge.trace(habits, rng)
    ones = None if reference.weights is None else np.ones(cells.size, np.int32)
    alone = ("",), np.array([0, cells.size]), cells, reference.regions, reference.epochs
    return Traces(*alone, weights=ones)
