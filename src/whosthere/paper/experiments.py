"""The experiments: the paper's, and those that it leaves open. Each is a plan, and nothing else.

An experiment is one or more series, as the paper has tables and curves. A series has points, each
of which is a setting, and attacks that are made in all of them. The likelihood ratio stands beside
the paper's two attacks, but for series that compare variants of these.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from whosthere.adversary.attacks import attack
from whosthere.adversary.knowledge_rules import familiarity
from whosthere.auditing.options import AuditOptions, Block
from whosthere.errors import InputError, suggestion
from whosthere.game.plan import Setting
from whosthere.paper.steps import EightBitLaplace, UnlimitedLaplace
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.rounding import Suppress
from whosthere.privacy.scheme import Scheme

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from whosthere.paper.datasets import Dataset

KK, ZK, LR = "knock-knock", "zero-knowledge", "likelihood-ratio"
THREE = (KK, ZK, LR)
PAIRED_AND_APART = (KK, f"{KK}(sampling=independent)", ZK, f"{ZK}(sampling=independent)", LR)
BUDGETS = (0.1, 0.5, 1.0, 5.0, 10.0)
SHARES = (0.1, 0.25, 0.5, 0.75)
GROUP_SIZES = (100, 500, 1000, 2000, 3000)
NOISY_GROUP_SIZES = (100, 250, 500, 1000)
MADE_UP = (1_250, 2_500, 5_000, 10_000, 20_000)
NOISE_AND_SUPPRESSION = "laplace(eps=1, unit=event) | suppress(k=1)"


def named(attack: str, names: Mapping[str, str]) -> str:
    """Return what to call an attack, with its parameters."""
    name, _, rest = attack.partition("(")
    return f"{names.get(name, name)}{f' ({rest}' if rest else ''}"


@dataclass(frozen=True)
class Point:
    """One setting of a series.

    Attributes
    ----------
    value
        Of the series' parameter, as tables write it.
    mechanism
        What is done to the counts.
    group_size
        People in a release; the data set's own where it is None.
    knowledge
        What is known of a target.
    """

    value: str
    mechanism: str | Mechanism
    group_size: int | None = None
    knowledge: str = "all"

    def setting(self, usual_size: int) -> Setting:
        """Return what is published and known."""
        given = self.mechanism
        mechanism = given if isinstance(given, Mechanism) else Mechanism.parse(given)
        return Setting(
            Scheme.of(mechanism, self.group_size or usual_size), familiarity(self.knowledge)
        )


@dataclass(frozen=True)
class Series:
    """Points that differ in one parameter, and the attacks that are made in all of them."""

    name: str
    parameter: str
    points: tuple[Point, ...]
    attacks: tuple[str, ...] = THREE


@dataclass(frozen=True)
class Experiment:
    """What is measured, and what for.

    Attributes
    ----------
    name
        What commands and results call it.
    question
        What it is to answer, in one sentence.
    series
        Its tables and curves, given the data set.
    in_paper
        Whether the paper has it.
    """

    name: str
    question: str
    series: Callable[[Dataset], tuple[Series, ...]] = field(repr=False)
    in_paper: bool = True

    def fitting(self, dataset: Dataset, n_users: int) -> tuple[Series, ...]:
        """Return the series with those points whose groups the data can provide."""
        most = dataset.largest_group(n_users)
        found = []
        for series in self.series(dataset):
            points = tuple(p for p in series.points if (p.group_size or dataset.group_size) <= most)
            if points:
                found.append(Series(series.name, series.parameter, points, series.attacks))
        return tuple(found)

    def options(
        self,
        dataset: Dataset,
        n_users: int,
        *,
        targets: int,
        releases: int,
        control_releases: int,
        seed: int,
    ) -> AuditOptions:
        """Return the experiment as the options of one audit."""
        blocks = [
            Block(
                mechanisms=setting.scheme.mechanisms,
                group_sizes=setting.scheme.group_size,
                knowledge=setting.knowledge,
                attacks=tuple(attack(one) for one in series.attacks),
            )
            for series in self.fitting(dataset, n_users)
            for setting in (point.setting(dataset.group_size) for point in series.points)
        ]
        if not blocks:
            sizes = [p.group_size for series in self.series(dataset) for p in series.points]
            smallest = min(size or dataset.group_size for size in sizes)
            raise InputError(
                f"{self.name} needs groups of {smallest:,}: of {n_users:,} people, "
                f"{dataset.reference_among(n_users):,} are the reference, which leaves groups of "
                f"{max(dataset.largest_group(n_users), 0):,} at most",
                fix="Leave it out"
                if all(sizes)
                else "Give a smaller group size, or another reference size",
            )
        return AuditOptions(
            tuple(blocks),
            targets=targets,
            min_visits=dataset.min_visits,
            releases=releases,
            control_releases=control_releases,
            reference_size=dataset.reference_among(n_users),
            seed=seed,
        )


def user_day(eps: float, dataset: Dataset) -> str:
    """Return noise for a user's day, as the paper adds it."""
    return f"laplace(eps={eps:g}, unit=user-day, max_visits={dataset.max_visits})"


def event(eps: float) -> str:
    """Return noise for one visit, as the paper adds it."""
    return f"laplace(eps={eps:g}, unit=event)"


def _suppression(k: int) -> str:
    return f"suppress(k={k})" if k else "raw"


def _points(
    values: Iterable[float], mechanism: Callable[[float], str | Mechanism]
) -> tuple[Point, ...]:
    return tuple(Point(_written(value), mechanism(value)) for value in values)


def _written(value: float) -> str:
    return str(value) if isinstance(value, int) else repr(float(value))


def _ssc(_: Dataset) -> tuple[Series, ...]:
    return (Series("ssc", "k", tuple(Point(str(k), _suppression(k)) for k in range(6))),)


def _dp_event(_: Dataset) -> tuple[Series, ...]:
    return (Series("dp-event", "epsilon", _points(BUDGETS, event)),)


def _dp_user_day(dataset: Dataset) -> tuple[Series, ...]:
    points = _points(BUDGETS, lambda eps: user_day(eps, dataset))
    return (Series("dp-user-day", "epsilon", points),)


def _partial_trace(_: Dataset) -> tuple[Series, ...]:
    points = [Point(repr(p), NOISE_AND_SUPPRESSION, knowledge=f"share({p:g})") for p in SHARES] + [
        Point("1.0", NOISE_AND_SUPPRESSION)
    ]
    return (Series("partial-trace", "share", tuple(points)),)


def _paired_sampling(dataset: Dataset) -> tuple[Series, ...]:
    points = _points(range(1, 11), lambda eps: user_day(eps, dataset))
    return (Series("paired-sampling", "epsilon", points, PAIRED_AND_APART),)


def _group_size(_: Dataset) -> tuple[Series, ...]:
    return tuple(
        Series(
            f"group-size-k{k}",
            "group_size",
            tuple(Point(str(m), _suppression(k), m) for m in GROUP_SIZES),
        )
        for k in (0, 1)
    )


def _group_size_dp(_: Dataset) -> tuple[Series, ...]:
    return tuple(
        Series(
            f"group-size-dp-m{m}",
            "epsilon",
            tuple(Point(_written(eps), event(eps), m) for eps in BUDGETS),
        )
        for m in NOISY_GROUP_SIZES
    )


def _synthetic_size(_: Dataset) -> tuple[Series, ...]:
    attacks = tuple(f"{ZK}(reference={n})" for n in MADE_UP)
    point = Point("event eps 1, then k = 1", NOISE_AND_SUPPRESSION)
    return (Series("synthetic-size", "mechanism", (point,), (*attacks, LR)),)


def _regions_only(_: Dataset) -> tuple[Series, ...]:
    tops = {"top-1": "top=1, ", "top-2": "top=2, ", "top-3": "top=3, ", "all": ""}
    return tuple(
        Series(
            f"regions-only-{guess}",
            "known_regions",
            tuple(
                Point(value, "raw", knowledge=f"regions({top}guess={guess})")
                for value, top in tops.items()
            ),
        )
        for guess in ("greedy", "random")
    )


def _dp_user(dataset: Dataset) -> tuple[Series, ...]:
    points = _points(
        BUDGETS, lambda eps: f"laplace(eps={eps:g}, unit=user, max_visits={dataset.max_visits})"
    )
    return (Series("dp-user", "epsilon", points),)


def _four(dataset: Dataset) -> tuple[Point, ...]:
    """Return one protection of each kind, where attacks are neither hopeless nor perfect."""
    return (
        Point("k = 1", "suppress(k=1)"),
        Point("k = 2", "suppress(k=2)"),
        Point("event eps 1", event(1)),
        Point("user-day eps 5", user_day(5, dataset)),
    )


def _variants(name: str, *attacks: str) -> Callable[[Dataset], tuple[Series, ...]]:
    """Return a series of four protections in which variants of attacks are compared."""

    def series(dataset: Dataset) -> tuple[Series, ...]:
        return (Series(name, "mechanism", _four(dataset), attacks),)

    return series


def _solver(_: Dataset) -> tuple[Series, ...]:
    # liblinear takes a second or two for each classifier, hence few settings.
    points = (Point("k = 1", "suppress(k=1)"), Point("event eps 1", event(1)))
    attacks = (KK, f"{KK}(classifier=l1-paper)", ZK, f"{ZK}(classifier=l1-paper)")
    return (Series("solver", "mechanism", points, attacks),)


def _discrete(_: Dataset) -> tuple[Series, ...]:
    kinds = {"floored": "laplace", "discrete": "discrete-laplace"}
    return tuple(
        Series(
            f"discrete-laplace-{kind}",
            "epsilon",
            _points((0.5, 1.0, 5.0), lambda eps, name=name: f"{name}(eps={eps:g}, unit=event)"),  # type: ignore[misc]
        )
        for kind, name in kinds.items()
    )


def _eight_bit(_: Dataset) -> tuple[Series, ...]:
    # As no visits are dropped for the authors' user-day noise, that is event-level noise, too: of
    # a tenth of its budget on Milan, where a day has 10 visits. 0.4 is eps 4 of a day, for which
    # the paper compares pairs with independent groups.
    points = _points(BUDGETS, lambda eps: Mechanism((EightBitLaplace(eps),)))
    pairs = Point("event eps 0.4 in 8 bits", Mechanism((EightBitLaplace(0.4),)))
    return (
        Series("eight-bit-stated", "epsilon", _points(BUDGETS, event)),
        Series("eight-bit-noise", "epsilon", points),
        Series("eight-bit-pairs", "mechanism", (pairs,), PAIRED_AND_APART),
        Series(
            "eight-bit-suppressed",
            "mechanism",
            (
                Point("event eps 1, then k = 1", NOISE_AND_SUPPRESSION),
                Point("the same in 8 bits", Mechanism((EightBitLaplace(1.0), Suppress(1)))),
            ),
        ),
    )


def _limits(_: Dataset) -> tuple[Series, ...]:
    budgets = (0.1, 0.5, 1.0)
    attacks = (KK, f"{ZK}(marginals=mechanism)", LR)
    return (
        Series("limits-clipped", "epsilon", _points(budgets, event), attacks),
        Series(
            "limits-unlimited",
            "epsilon",
            _points(budgets, lambda eps: Mechanism((UnlimitedLaplace(eps),))),
            attacks,
        ),
    )


_ALL = (
    Experiment("ssc", "How far does suppressing small counts help?", _ssc),
    Experiment("dp-event", "How far does noise for single visits help?", _dp_event),
    Experiment("dp-user-day", "How far does noise for a user's day help?", _dp_user_day),
    Experiment("partial-trace", "What if only some visits are known?", _partial_trace),
    Experiment("paired-sampling", "Does training on pairs of groups help?", _paired_sampling),
    Experiment("group-size", "How much do larger groups hide?", _group_size),
    Experiment("group-size-dp", "How much do larger groups hide under noise?", _group_size_dp),
    Experiment("synthetic-size", "How many people should be made up?", _synthetic_size),
    Experiment("regions-only", "What if only places are known, and no times?", _regions_only),
    Experiment("dp-user", "How far does noise for a whole user help?", _dp_user, in_paper=False),
    Experiment(
        "no-positions",
        "Does zero-knowledge need the positions of regions?",
        _variants("no-positions", ZK, f"{ZK}(positions=no)"),
        in_paper=False,
    ),
    Experiment(
        "discrete-laplace",
        "Does it matter whether noise is rounded down or whole from the start?",
        _discrete,
        in_paper=False,
    ),
    Experiment(
        "fit",
        "What does it change to train once for a target instead of once for a release?",
        _variants("fit", ZK, f"{ZK}(fit=per-target)", f"{ZK}(fit=per-target-in)"),
        in_paper=False,
    ),
    Experiment(
        "solver",
        "Does it matter that liblinear stops before its optimum?",
        _solver,
        in_paper=False,
    ),
    Experiment(
        "plain-counts",
        "Does it matter that counts are standardised?",
        _variants(
            "plain-counts",
            KK,
            f"{KK}(classifier=l1(standardise=no))",
            ZK,
            f"{ZK}(classifier=l1(standardise=no))",
        ),
        in_paper=False,
    ),
    Experiment(
        "eight-bit",
        "Does it matter that the authors' noise has 8 bits?",
        _eight_bit,
        in_paper=False,
    ),
    Experiment(
        "limits",
        "Does it matter that noisy counts are limited to 0?",
        _limits,
        in_paper=False,
    ),
)
EXPERIMENTS = {one.name: one for one in _ALL}
"""All experiments, by name."""
ALL = "all"


def chosen(names: Iterable[str]) -> tuple[Experiment, ...]:
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


def places(
    experiment: Experiment, dataset: Dataset, n_users: int
) -> Iterator[tuple[Series, Point, str]]:
    """Return every point with its series, and the setting that scores call it by."""
    for series in experiment.fitting(dataset, n_users):
        for point in series.points:
            yield series, point, str(point.setting(dataset.group_size))
