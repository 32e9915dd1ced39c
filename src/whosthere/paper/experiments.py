"""The experiments: the paper's, and those that it leaves open. Each is a plan, and nothing else.

An experiment is one or more series, as the paper has tables and curves. A series has points, each
of which is a setting, and attacks that are made in all of them. The likelihood ratio stands beside
the paper's two attacks, except in series that compare variants of these.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from whosthere.adversary.knowledge import knowledge_rule
from whosthere.auditing.options import AuditOptions, Block
from whosthere.errors import InputError, suggestion
from whosthere.game.plan import Setting
from whosthere.paper import study_attacks as own
from whosthere.paper.study_noise import EightBitLaplace, UnlimitedLaplace
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.rounding import Suppress
from whosthere.privacy.scheme import Scheme

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from whosthere.adversary.attacks import Attack
    from whosthere.adversary.knowledge import KnowledgeRule
    from whosthere.paper.datasets import Dataset

KK, ZK, LR = "knock-knock", "zero-knowledge", "likelihood-ratio"
_THREE = (KK, ZK, LR)
_PAIRED_AND_APART = (KK, f"{KK}(sampling=independent)", ZK, f"{ZK}(sampling=independent)", LR)
_INFORMED = (own.InformedTest(1), own.InformedTest(2), LR)
_ONCE = ", fit=per-target"
_KNOWING_THE_NOISE = (KK, f"{ZK}(marginals=mechanism)", LR)
BUDGETS = (0.1, 0.5, 1.0, 5.0, 10.0)
_GROUP_SIZES = (100, 500, 1000, 2000, 3000)
_SOME = (0.5, 1.0, 3.0)
NOISY_GROUP_SIZES = (100, 250, 500, 1000)
MADE_UP = (1_250, 2_500, 5_000, 10_000, 20_000)
_NOISE_AND_SUPPRESSION = "laplace(eps=1, unit=event) | suppress(k=1)"
_MAX_VISITS = "{max_visits}"
"""Stands for the visits of a user's day that the data set counts, in a mechanism's spec."""


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
    mechanism: str | Mechanism
    group_size: int | None = None
    knowledge: str | KnowledgeRule = "all"

    def setting(self, dataset: Dataset) -> Setting:
        """Return what is published and known."""
        mechanism = self.mechanism
        if isinstance(mechanism, str):
            spec = mechanism.replace(_MAX_VISITS, str(dataset.max_visits))
            mechanism = Mechanism.parse(spec)
        scheme = Scheme.of(mechanism, self.group_size or dataset.group_size)
        return Setting(scheme, knowledge_rule(self.knowledge))


class Series(NamedTuple):
    """Points that differ in one parameter, and the attacks that are made in all of them."""

    name: str
    parameter: str
    points: tuple[Point, ...]
    attacks: tuple[str | Attack, ...] = _THREE


class Experiment(NamedTuple):
    """The tables and curves that answer a question; `in_paper` tells whether the paper has it."""

    name: str
    question: str
    series: tuple[Series, ...]
    in_paper: bool = True

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
                group_sizes=setting.scheme.group_size,
                knowledge=setting.knowledge,
                attacks=series.attacks,
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


def _event(eps: float) -> str:
    """Return noise for one visit, as the paper adds it."""
    return f"laplace(eps={eps:g}, unit=event)"


def _bounded(unit: str, eps: float) -> str:
    """Return noise for all visits of a unit, as the paper adds it for a user's day."""
    return f"laplace(eps={eps:g}, unit={unit}, max_visits={_MAX_VISITS})"


_user_day = partial(_bounded, "user-day")


def _in_8_bits(eps: float) -> Mechanism:
    """Return noise for one visit, as the authors' code adds it."""
    return Mechanism((EightBitLaplace(eps),))


def _suppression(k: int) -> str:
    return f"suppress(k={k})" if k else "raw"


def _by_eps(
    mechanism: Callable[[float], str | Mechanism],
    budgets: Iterable[float] = BUDGETS,
    attacks: tuple[str | Attack, ...] = _THREE,
    *,
    group_size: int | None = None,
    name: str = "",
) -> Series:
    points = (Point(str(eps), mechanism(eps), group_size) for eps in budgets)
    return Series(name, "epsilon", tuple(points), attacks)


def _compared(*attacks: str | Attack, at: Mapping[str, str | Mechanism], name: str = "") -> Series:
    """Return a series in which attacks are compared under some protections."""
    points = (Point(value, mechanism) for value, mechanism in at.items())
    return Series(name, "mechanism", tuple(points), attacks)


def _experiment(name: str, question: str, *series: Series, in_paper: bool = True) -> Experiment:
    """Return an experiment, whose name comes before those of its series."""
    named = tuple(one._replace(name=f"{name}{one.name}") for one in series)
    return Experiment(name, question, named, in_paper)


# One protection of each kind, where attacks are neither hopeless nor perfect.
_FOUR: Mapping[str, str | Mechanism] = {
    "k = 1": "suppress(k=1)",
    "k = 2": "suppress(k=2)",
    "event eps 1": _event(1),
    "user-day eps 5": _user_day(5),
}
_UNIFORM = own.ZeroKnowledge(marginals="uniform")
_TOPS = {"top-1": "top=1, ", "top-2": "top=2, ", "top-3": "top=3, ", "all": ""}
_KNOWN = {"0.1": "share(0.1)", "0.25": "share(0.25)", "0.5": "share(0.5)", "0.75": "share(0.75)",
          "1.0": "all"}  # fmt: skip
_IN_PAPER = (
    _experiment(
        "ssc",
        "How far does suppressing small counts help?",
        Series("", "k", tuple(Point(str(k), _suppression(k)) for k in range(6))),
    ),
    _experiment("dp-event", "How far does noise for single visits help?", _by_eps(_event)),
    _experiment("dp-user-day", "How far does noise for a user's day help?", _by_eps(_user_day)),
    _experiment(
        "partial-trace",
        "What if only some visits are known?",
        Series(
            "",
            "share",
            tuple(
                Point(share, _NOISE_AND_SUPPRESSION, knowledge=known)
                for share, known in _KNOWN.items()
            ),
        ),
    ),
    _experiment(
        "paired-sampling",
        "Does training on pairs of groups help?",
        _by_eps(_user_day, range(1, 11), _PAIRED_AND_APART),
    ),
    _experiment(
        "group-size",
        "How much do larger groups hide?",
        *(
            Series(
                f"-k{k}",
                "group_size",
                tuple(Point(str(m), _suppression(k), m) for m in _GROUP_SIZES),
            )
            for k in (0, 1)
        ),
    ),
    _experiment(
        "group-size-dp",
        "How much do larger groups hide under noise?",
        *(_by_eps(_event, group_size=m, name=f"-m{m}") for m in NOISY_GROUP_SIZES),
    ),
    _experiment(
        "synthetic-size",
        "How many people should be made up?",
        _compared(
            *(f"{ZK}(reference={n})" for n in MADE_UP),
            LR,
            at={"event eps 1, then k = 1": _NOISE_AND_SUPPRESSION},
        ),
    ),
    _experiment(
        "regions-only",
        "What if only places are known, and no times?",
        *(
            Series(
                f"-{guess}",
                "known_regions",
                tuple(
                    Point(value, "raw", knowledge=f"regions({top}guess={guess})")
                    for value, top in _TOPS.items()
                ),
            )
            for guess in ("greedy", "random")
        ),
    ),
)
_left_open = partial(_experiment, in_paper=False)
_ALL = (
    *_IN_PAPER,
    _left_open(
        "dp-user", "How far does noise for a whole user help?", _by_eps(partial(_bounded, "user"))
    ),
    _left_open(
        "no-positions",
        "Does zero-knowledge need the positions of regions?",
        _compared(ZK, f"{ZK}(positions=no)", at=_FOUR),
    ),
    _left_open(
        "discrete-laplace",
        "Does it matter whether noise is rounded down or whole from the start?",
        _by_eps(_event, (0.5, 1.0, 5.0), name="-floored"),
        _by_eps(lambda eps: f"discrete-{_event(eps)}", (0.5, 1.0, 5.0), name="-discrete"),
    ),
    _left_open(
        "fit",
        "What does it change to train once for a target instead of once for a release?",
        _compared(ZK, f"{ZK}(fit=per-target)", f"{ZK}(fit=per-target-in)", at=_FOUR),
    ),
    _left_open(
        "solver",
        "Does it matter that liblinear stops before its optimum?",
        _compared(
            *(KK, f"{KK}(classifier=l1-paper)", ZK, f"{ZK}(classifier=l1-paper)"),
            # liblinear takes a second or two for each classifier, hence few settings.
            at={"k = 1": "suppress(k=1)", "event eps 1": _event(1)},
        ),
    ),
    _left_open(
        "plain-counts",
        "Does it matter that counts are standardised?",
        _compared(
            *(KK, f"{KK}(classifier=l1(standardise=no))"),
            *(ZK, f"{ZK}(classifier=l1(standardise=no))"),
            at=_FOUR,
        ),
    ),
    # As no visits are dropped for the authors' user-day noise, that is event-level noise, too: of
    # a tenth of its budget on Milan, where a day has 10 visits. 0.4 is eps 4 of a day, for which
    # the paper compares pairs with independent groups.
    _left_open(
        "eight-bit",
        "Does it matter that the authors' noise has 8 bits?",
        _by_eps(_event, name="-stated"),
        _by_eps(_in_8_bits, name="-noise"),
        _compared(
            *_PAIRED_AND_APART,
            at={"event eps 0.4 in 8 bits": _in_8_bits(0.4)},
            name="-pairs",
        ),
        _compared(
            *_THREE,
            at={
                "event eps 1, then k = 1": _NOISE_AND_SUPPRESSION,
                "the same in 8 bits": Mechanism((EightBitLaplace(1.0), Suppress(1))),
            },
            name="-suppressed",
        ),
    ),
    _left_open(
        "limits",
        "Does it matter that noisy counts are limited to 0?",
        _by_eps(_event, (0.1, 0.5, 1.0), _KNOWING_THE_NOISE, name="-clipped"),
        _by_eps(
            lambda eps: Mechanism((UnlimitedLaplace(eps),)),
            (0.1, 0.5, 1.0),
            _KNOWING_THE_NOISE,
            name="-unlimited",
        ),
    ),
    _left_open(
        "threshold",
        "Which threshold is better: in the middle of the gap, or at the lowest accepted score?",
        _compared(
            *(KK, f"{KK}(threshold=roc)", ZK, f"{ZK}(threshold=roc)"),
            at={"raw": "raw", **_FOUR, "event eps 10": _event(10)},
        ),
    ),
    _left_open(
        "corrections",
        "Do the corrections of the marginals make zero-knowledge work?",
        _compared(
            *(ZK, f"{ZK}(marginals=empirical)", f"{ZK}(marginals=mechanism)", _UNIFORM), at=_FOUR
        ),
    ),
    _left_open(
        "activity",
        "Does it matter how visits are spread over people?",
        _compared(*(ZK, f"{ZK}(activity=lognormal:1)", f"{ZK}(activity=constant)"), at=_FOUR),
    ),
    _left_open(
        "other-attackers",
        "How far do past groups and friends get, instead of the target's visits?",
        _compared(KK, f"{KK}-past-groups", "loc-mia", LR, at={"raw": "raw", **_FOUR}),
    ),
    _left_open(
        "informed",
        "How far do tests with one and two thresholds get, knowing everybody else?",
        *(
            _by_eps(f"{law}, unit=event)".format, _SOME, _INFORMED, name=f"-{law.split('(')[0]}")
            for law in ("laplace(eps={:g}", "gaussian(eps={:g}, delta=1e-6")
        ),
    ),
    # What the authors' code does and the text does not say, each by itself.
    _left_open(
        "greedy-leak",
        "What if the true visits reach the standardisation by way of the validation groups?",
        Series(
            "",
            "known_regions",
            tuple(
                Point(value, "raw", knowledge=own.RegionsAndTruth(top))
                for value, top in zip(_TOPS, (1, 2, 3, None), strict=True)
            ),
            (KK, own.KnockKnock(leak=True)),
        ),
    ),
    _left_open(
        "reused-noise",
        "What if four groups to learn from share each draw of noise?",
        _compared(
            *(ZK, own.ZeroKnowledge(noise="reused"), f"{ZK}(sampling=independent)"),
            own.ZeroKnowledge(sampling="independent", noise="reused"),
            at={"event eps 0.4 in 8 bits": _in_8_bits(0.4), "event eps 1": _event(1)},
        ),
    ),
    _left_open(
        "as-coded",
        "How far does each of these, and all together, explain the accuracies under noise?",
        _by_eps(
            _in_8_bits,
            BUDGETS[1:],
            (
                *(KK, f"{KK}(threshold=roc)", ZK, f"{ZK}(threshold=roc)", _UNIFORM),
                *(own.ZeroKnowledge(noise="reused"), f"{ZK}(fit=per-target-in)"),
                replace(_UNIFORM, threshold="roc", noise="reused", fit_on="per-target-in"),
            ),
        ),
    ),
    _left_open(
        "fit-large",
        "What if there is one classifier for a target, and 5,000 people are made up for 2,000?",
        Series(
            "",
            "mechanism",
            (Point("raw", "raw"), Point("raw, m = 2000", "raw", 2000)),
            (KK, ZK, *(f"{ZK}(reference=5000{fit})" for fit in ("", _ONCE, f"{_ONCE}-in"))),
        ),
    ),
)
EXPERIMENTS = {one.name: one for one in _ALL}
"""All experiments, by name."""
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
    return tuple(one for one in _ALL if ALL in asked or one.name in asked)
