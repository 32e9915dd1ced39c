"""Zero Auxiliary Knowledge (Guan, Guépin, Cretu and de Montjoye, 2024).

The attack trains on the release that it scores. Its random numbers come from the seed, its name and
a hash of the counts, so an answer does not depend on which releases were scored before, or by which
process.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, cast, get_args

import numpy as np

from whosthere import specs
from whosthere.adversary.attacks.base import Answer, Auxiliary, FittedAttack, check_same_facts
from whosthere.adversary.attacks.contradiction_rule import rule_first
from whosthere.adversary.attacks.trained import Table, Tables, Trained, TrainedAttack, Untuned
from whosthere.adversary.marginals import LEAST_MEAN, Marginals, empirical, estimate_marginals
from whosthere.adversary.rates import mechanism_marginals
from whosthere.adversary.synthetic import UnicityModel, parse_activity
from whosthere.data.regions import Regions
from whosthere.privacy.scheme import ORDINARY
from whosthere.seeds import digest, generator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whosthere.adversary.attacks.base import View
    from whosthere.adversary.suspects import Known
    from whosthere.data.traces import Traces
    from whosthere.privacy.facts import Facts
    from whosthere.privacy.release import Release
    from whosthere.privacy.scheme import Layout

MarginalsFrom: TypeAlias = Literal["paper", "mechanism", "empirical"]
FitOn: TypeAlias = Literal["per-release", "per-target", "per-target-in"]
# Which example each way to train once needs.
_EXAMPLES = {"per-target": "example", "per-target-in": "example_in"}
# How many people to make up: the paper's number, and enough for each one in the group, as groups of
# few people out of many hardly overlap.
_PEOPLE, _PEOPLE_PER_MEMBER = 5_000, 5


def _known_activity(text: str, _key: str = "") -> str:
    name = text.strip().lower()
    parse_activity(name, LEAST_MEAN)
    return name


@dataclass(frozen=True, kw_only=True)
class ZeroKnowledge(TrainedAttack):
    """Make people up from the attacked release alone, and train on groups of them.

    The marginals "paper" are corrected by its rules, "mechanism" ones are fitted through the
    mechanism, "empirical" ones are the counts as they are. With a `fit` "per-release" it trains
    anew on every release, which is the attack. "per-target" trains once, on an example release,
    and scores all others by that: cheaper, and not the same. "per-target-in" does so on an example
    that holds the target, which no attacker can know.
    """

    reference_size: int | None = specs.parameter(
        specs.at_least(2),
        "people to make up; 5000 by default, or five times the group's size if that is more",
        default=None,
        key="reference",
    )
    marginals: MarginalsFrom = specs.parameter(
        specs.OneOf(get_args(MarginalsFrom)),
        "how the release's marginals are estimated",
        default="paper",
    )
    activity: str = specs.parameter(
        specs.Text(
            "exponential or constant or lognormal:SIGMA", _known_activity, check=_known_activity
        ),
        "how visits are spread over people",
        default="exponential",
    )
    positions: bool = specs.parameter(
        specs.YES_NO, "whether a person's regions lie next to one another", default=True
    )
    rule: bool = specs.parameter(
        specs.YES_NO, "whether the contradiction rule goes first, where it is sound", default=True
    )
    fit_on: FitOn = specs.parameter(
        specs.OneOf(get_args(FitOn)),
        "whether it trains anew on every release, or once on an example, or on one with the "
        "target in it",
        default="per-release",
        key="fit",
    )

    name: ClassVar[str] = "zero-knowledge"
    summary: ClassVar[str] = (
        "trains on groups of people made up from the release itself; needs nothing but some "
        "visits of the target"
    )

    @property
    def needs_law(self) -> bool:
        return self.marginals == "mechanism"

    @property
    def uses(self) -> frozenset[str]:
        return frozenset({_EXAMPLES[self.fit_on]}) if self.fit_on in _EXAMPLES else frozenset()

    def check(self, facts: Facts, knowledge: Known, auxiliary: Auxiliary) -> None:
        super().check(facts, knowledge, auxiliary)
        self._check_reference(facts.group_size, self._people(facts.group_size), of="synthetic")

    def _people_of_groups(self, facts: Facts, auxiliary: Auxiliary) -> int:  # noqa: ARG002
        return self._people(facts.group_size)

    def _people(self, m: int) -> int:
        """Return how many people are made up for groups of m."""
        return self.reference_size or max(_PEOPLE, _PEOPLE_PER_MEMBER * m)

    def fit_views(self, views: Sequence[View], *, seed: int) -> FittedAttack:
        on_each = OnEachRelease(self, Table.each(views), seed)
        fitted: FittedAttack = on_each
        if self.fit_on in _EXAMPLES:
            examples = [getattr(view.auxiliary, _EXAMPLES[self.fit_on]) for view in views]
            fitted = on_each.trained_on(examples)
        return rule_first(views, fitted) if self.rule else fitted

    def learn_from(self, seen: Sequence[Traces | Release], tables: Tables, seed: int) -> Untuned:
        """Learn from people who are made up from a release, that of the table with most cells.

        They are made up over the smallest cells, and laid out over those of each table.
        """
        releases = cast("Sequence[Release]", seen)
        rng = generator(seed, self.name, *(digest(one.values.reshape(-1)) for one in releases))
        if len(releases) == 1:
            return self.learn([self.synthetic_reference(releases[0], rng)], tables, rng)
        most = max(range(len(tables)), key=lambda i: tables[i].facts.n_cells)
        people = self._made_up(releases[most], rng, tables[most].layout, tables)
        return self.learn([one.layout.all_at_once(people) for one in tables], tables, rng)

    def synthetic_reference(self, release: Release, rng: np.random.Generator) -> Traces:
        """Make people up whose visits resemble those that the release was counted from."""
        return self._made_up(release, rng, ORDINARY, ())

    def _made_up(
        self, release: Release, rng: np.random.Generator, layout: Layout, tables: Tables
    ) -> Traces:
        """Make them up over the smallest cells, over which a layout lies as others of some tables.

        Visits are spread evenly over the parts of larger cells.
        """
        seen = release
        if not self.positions:
            nowhere = replace(release.facts, regions=Regions(release.regions.ids))
            seen = replace(release, facts=nowhere)
        marginals = self.estimated(seen, rng)
        regions, epochs, space, time = seen.regions, seen.epochs, marginals.space, marginals.time
        if layout.regions is not None:
            number = np.array(layout.regions)
            space = (space / np.bincount(number))[number]
            own = (one.facts.regions for one in tables if one.layout.regions is None)
            regions = next(own, Regions([str(i) for i in range(number.size)]))
        if layout.epochs > 1:
            finer = epochs.covered_by(epochs.length / layout.epochs)
            epochs = next((one.facts.epochs for one in tables if one.layout.epochs == 1), finer)
            time = time[epochs.slots(seen.epochs.length)]
        model = UnicityModel(
            regions=regions,
            epochs=epochs,
            space=space,
            time=time,
            activity=parse_activity(self.activity, marginals.mean_visits),
        )
        return model.generate(self._people(release.group_size), rng)

    def estimated(self, release: Release, rng: np.random.Generator) -> Marginals:
        """Estimate what is known of the people: where, when and how often they are seen."""
        if self.marginals == "paper":
            activity = parse_activity(self.activity, LEAST_MEAN)
            return estimate_marginals(release, activity=activity, rng=rng)
        return empirical(release) if self.marginals == "empirical" else mechanism_marginals(release)


@dataclass(frozen=True, eq=False, repr=False)
class OnEachRelease(FittedAttack):
    """Trains a classifier for every publication that it scores."""

    attack: ZeroKnowledge
    tables: Tables
    seed: int

    def score(self, release: Release) -> Answer:
        return self.score_tables((release,))

    def score_tables(self, releases: Sequence[Release]) -> Answer:
        return self.trained_on(releases).score_tables(releases)

    def trained_on(self, releases: Sequence[Release]) -> Trained:
        """Train on one publication."""
        for release, table in zip(releases, self.tables, strict=True):
            check_same_facts(release, table.facts)
        return self.attack.train(releases, self.tables, self.seed)
