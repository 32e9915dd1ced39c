"""The experiments: the paper's, and those that it leaves open. Each is a plan, and nothing else.

What they are stands in ``experiments.toml``. An experiment is one or more series, as the paper has
tables and curves. A series has points, each of which is a setting, and attacks that are made in all
of them. The likelihood ratio stands beside the paper's two attacks, except in series that compare
variants of these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from whosthere.adversary.attacks import ATTACKS
from whosthere.adversary.knowledge import KNOWLEDGE
from whosthere.auditing.options import AuditOptions, Block
from whosthere.display import told
from whosthere.errors import InputError, suggestion
from whosthere.game.plan import Setting
from whosthere.inference.vocabulary import STUDY_ONLY
from whosthere.paper.study_attacks import InformedTest, KnockKnock, RegionsAndTruth, ZeroKnowledge
from whosthere.paper.study_noise import EightBitLaplace, UnlimitedLaplace
from whosthere.privacy.catalogue import RAW, STEPS
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.scheme import Scheme
from whosthere.specs import Catalogue

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from whosthere.paper.datasets import Dataset

KK, ZK, LR = "knock-knock", "zero-knowledge", "likelihood-ratio"
# What the usual specs name, and what only a study does.
_STEPS = Catalogue.of("step", *STEPS, EightBitLaplace, UnlimitedLaplace)
_ATTACKS = ATTACKS.with_kinds(KnockKnock, ZeroKnowledge, InformedTest)
_KNOWLEDGE = KNOWLEDGE.with_kinds(RegionsAndTruth)
_MAX_VISITS = "{max_visits}"


def named(attack: str, names: Mapping[str, str]) -> str:
    """Return what to call an attack, with its parameters."""
    name, _, rest = attack.partition("(")
    return f"{names.get(name, name)}{f' ({rest}' if rest else ''}"


class Size(NamedTuple):
    """How many targets, test releases of each and releases for control there are.

    `leaks` tells whether to find out where and when people are found, for the reports.
    """

    targets: int
    releases: int
    control_releases: int
    leaks: bool = True


SCALES = {
    "smoke": Size(2, 2, 0, leaks=False),
    "quick": Size(50, 20, 2),
    "paper": Size(50, 100, 10),
}
"""A look at whether all of it runs; a first answer; the sizes of the paper's Table 2."""


def size_of(
    scale: str | None = None, targets: int | None = None, releases: int | None = None
) -> Size:
    """Return the size of a scale, quick by default, with other numbers where they are given."""
    usual = SCALES.get(scale or "quick")
    if usual is None:
        raise InputError(f"there is no scale {scale!r}", fix=suggestion(str(scale), SCALES))
    for what, n, fewest in (("target", targets, 1), ("releases of each target", releases, 2)):
        if n is not None and n < fewest:
            raise InputError(f"there must be at least {fewest} {what}, not {n}")
    return usual._replace(
        targets=usual.targets if targets is None else targets,
        releases=usual.releases if releases is None else releases,
    )


class Point(NamedTuple):
    """One setting of a series; `value` is that of its parameter, as tables write it.

    Where no group size is given, it is the data set's own.
    """

    value: str
    mechanism: str
    group_size: int | None
    knowledge: str

    def setting(self, dataset: Dataset) -> Setting:
        """Return what is published and known."""
        spec = self.mechanism.replace(_MAX_VISITS, str(dataset.max_visits))
        mechanism = Mechanism(() if spec == RAW else tuple(_STEPS.parse_chain(spec)))
        scheme = Scheme.of(mechanism, self.group_size or dataset.group_size)
        return Setting(scheme, _KNOWLEDGE.parse(self.knowledge))


class Series(NamedTuple):
    """Points that differ in one parameter, and the attacks that are made in all of them."""

    name: str
    parameter: str
    points: tuple[Point, ...]
    attacks: tuple[str, ...]


class Experiment(NamedTuple):
    """The tables and curves that answer a question; `in_paper` tells whether the paper has it."""

    name: str
    question: str
    series: tuple[Series, ...]
    in_paper: bool

    def fitting(self, dataset: Dataset, n_users: int) -> tuple[Series, ...]:
        """Return the series with those points whose groups the data can provide."""
        most, usual = dataset.largest_group(n_users), dataset.group_size
        found = []
        for series in self.series:
            points = tuple(one for one in series.points if (one.group_size or usual) <= most)
            found += [series._replace(points=points)] if points else []
        return tuple(found)

    def places(self, dataset: Dataset, n_users: int) -> Iterator[tuple[Series, Point, Setting]]:
        """Return every point that fits, with its series and its setting."""
        for series in self.fitting(dataset, n_users):
            for point in series.points:
                yield series, point, point.setting(dataset)

    def options(self, dataset: Dataset, n_users: int, size: Size, *, seed: int) -> AuditOptions:
        """Return the experiment as the options of one audit."""
        blocks = tuple(
            Block(
                mechanisms=setting.scheme.mechanisms,
                group_size=setting.scheme.group_size,
                knowledge=setting.knowledge,
                attacks=[_ATTACKS.parse(one.removesuffix(STUDY_ONLY)) for one in series.attacks],
            )
            for series, _, setting in self.places(dataset, n_users)
        )
        reference = dataset.reference_among(n_users)
        if not blocks:
            sizes = [point.group_size for series in self.series for point in series.points]
            smallest = min(size or dataset.group_size for size in sizes)
            raise InputError(
                f"{self.name} needs groups of {smallest:,}: of {n_users:,} people, {reference:,} "
                "are the reference, which leaves groups of "
                f"{max(dataset.largest_group(n_users), 0):,} at most",
                fix="Leave it out"
                if all(sizes)
                else "Give a smaller group size (`group_size`), or another reference size "
                "(`reference_size`)",
            )
        return AuditOptions(
            blocks,
            targets=size.targets,
            min_visits=dataset.min_visits,
            releases=size.releases,
            control_releases=size.control_releases,
            reference_size=reference,
            seed=seed,
        )


def _series(experiment: str, about: Mapping[str, Any]) -> Series:
    """Read a series; what is said of its points has ``{}`` for their value, or differs by it."""

    def at(value: str, what: str, usual: str = "") -> str:
        found = about.get(what, usual)
        return str(found[value] if isinstance(found, dict) else found).replace("{}", value)

    points = tuple(
        Point(
            value,
            at(value, "mechanism"),
            int(at(value, "group_size", "0")) or None,
            at(value, "knowledge", "all"),
        )
        for value in map(str, about["values"])
    )
    attacks = tuple(about.get("attacks", (KK, ZK, LR)))
    return Series(f"{experiment}{about.get('name', '')}", about["parameter"], points, attacks)


EXPERIMENTS = {
    name: Experiment(
        name,
        about["question"],
        tuple(_series(name, one) for one in about.get("series", [about])),
        about.get("in_paper", True),
    )
    for name, about in told("whosthere.paper", "experiments").items()
}
"""All experiments, by name."""
MADE_UP = {
    int(attack.removeprefix(f"{ZK}(reference=").rstrip(")")): attack
    for attack in EXPERIMENTS["synthetic-size"].series[0].attacks
    if attack.startswith(ZK)
}
"""Attacks that differ in how many people they make up, by that number."""
ALL = "all"


def named_experiments(names: Iterable[str]) -> tuple[Experiment, ...]:
    """Return experiments by name, each once and in the usual order; ``all`` stands for all."""
    asked = set(names)
    for name in asked - {ALL}:
        if name not in EXPERIMENTS:
            raise InputError(
                f"there is no experiment {name!r}", fix=suggestion(name, [ALL, *EXPERIMENTS])
            )
    if not asked:
        raise InputError("no experiment is named", fix=f"Name some, or {ALL}")
    return tuple(one for one in EXPERIMENTS.values() if ALL in asked or one.name in asked)
