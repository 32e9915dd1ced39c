"""What the paper says, beyond its tables, each put to a test on what was measured.

A claim may be about several means over targets. It is held if each of them lies where it should, at
95 % for each: as all must, the chance of a wrong "held" does not grow with their number. It is not
held if any of them lies elsewhere, by intervals that hold for all of them together at 95 %
(Bonferroni). Otherwise the data cannot tell. A number that was measured has an error in the paper,
too: two of its standard errors are allowed for.
"""

from __future__ import annotations

import math
from enum import Enum
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from scipy.special import stdtrit

from whosthere.inference.vocabulary import CEILING
from whosthere.paper.experiments import BUDGETS, KK, LR, MADE_UP, NOISY_GROUP_SIZES, ZK
from whosthere.paper.results import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from whosthere.paper.datasets import Dataset
    from whosthere.paper.description import Description
    from whosthere.paper.results import Numbers

_LEVEL = 0.05
FEWEST = 10
"""Fewer targets than this decide nothing, however alike they are."""
# A change by less than this is not taken for one: near 0.5 all curves are flat.
_SLACK = 0.01
_BOTH = (KK, ZK)
_ZK_APART, _KK_APART = (f"{attack}(sampling=independent)" for attack in (ZK, KK))
_TOPS = ("top-1", "top-2", "top-3", "all")
# The scale of noise up to which the paper calls it weak.
_WEAK = {"cdr": 2, "milan": 1}
# The usual standard error of an AUC in the paper's tables, for those that it gives without one;
# and of a difference of two.
_ERROR, _ERROR_OF_TWO = 0.02, 0.03


class Status(Enum):
    """What became of a claim."""

    HELD = "held"
    NOT_HELD = "not held"
    CANNOT_TELL = "cannot tell"


class Asked(NamedTuple):
    """What a claim is about: a number of every target, whose mean counts."""

    of: str
    values: NDArray[np.float64]


class Bound(NamedTuple):
    """A mean, and where it should lie: between `least` and `most`.

    Its intervals hold at 95 % on each side (`alone`), and at 95 % for all means of the claim
    (`together`). Their ends are infinite where there are too few targets.
    """

    of: str
    value: float
    alone: tuple[float, float]
    together: tuple[float, float]
    least: float = -math.inf
    most: float = math.inf

    @property
    def status(self) -> Status:
        """Whether it lies where it should, elsewhere, or one cannot tell."""
        # Strictly: what makes no difference at all is no gain.
        if self.least < self.alone[0] and self.alone[1] < self.most:
            return Status.HELD
        if self.together[1] < self.least or self.together[0] > self.most:
            return Status.NOT_HELD
        return Status.CANNOT_TELL

    def __str__(self) -> str:
        low, high = self.alone if self.status is Status.HELD else self.together
        few = "too few targets for an interval"
        interval = few if math.isinf(low) else f"{low:.3f} to {high:.3f}"
        where = f"lie within {self.least:g} and {self.most:g}"
        if math.isinf(self.most):
            where = f"be at least {self.least:g}"
        elif math.isinf(self.least):
            where = f"be at most {self.most:g}"
        return f"{self.of}: {self.value:.3f} ({interval}), should {where}"


class Judgement(NamedTuple):
    """A claim in our words, what became of it, and the numbers that decided.

    `explained_by` names experiments on what the authors' code does, where these bear on it.
    """

    claim: str
    status: Status
    test: str
    explained_by: tuple[str, ...] = ()


def judge(text: str, bounds: Sequence[Bound]) -> Judgement:
    """Judge a claim by all of its bounds: one that is broken breaks it."""
    found = {bound.status for bound in bounds}
    order = (Status.NOT_HELD, Status.CANNOT_TELL, Status.HELD)
    status = next(one for one in order if one in found)
    # The one that comes closest to breaking it, or breaks it most.
    alike = [one for one in bounds if one.status is status]
    worst = max(alike, key=lambda one: max(one.least - one.value, one.value - one.most))
    more = f"; {len(alike)} of {len(bounds)} {status.value}"
    return Judgement(text, status, f"{worst}{more if len(bounds) > 1 else ''}")


def bounded(
    asked: Iterable[Asked], *, least: float = -math.inf, most: float = math.inf
) -> list[Bound]:
    """Ask that the means of all of these lie within the same bounds."""
    means = [one for one in asked if one.values.size]
    return [
        Bound(
            one.of,
            float(one.values.mean()),
            alone=_interval(one.values, 2 * _LEVEL),
            together=_interval(one.values, _LEVEL / len(means)),
            least=least,
            most=most,
        )
        for one in means
    ]


def _interval(values: NDArray[np.float64], level: float) -> tuple[float, float]:
    """Return the t interval of a mean, which misses it with this chance on both sides together.

    All that is asked about is a share or a difference of two, so that nothing lies beyond 1. The
    interval is everything where there are too few targets for one.
    """
    n, value = values.size, float(values.mean())
    if n < FEWEST:
        return -math.inf, math.inf
    error = float(values.std(ddof=1)) / math.sqrt(n)
    reach = float(stdtrit(n - 1, 1 - level / 2)) * error
    return max(value - reach, -1.0), min(value + reach, 1.0)


Measured: TypeAlias = "Asked | tuple[Place] | tuple[Place, Place]"
"""The AUCs at a place, how much larger they are at one place than at another, or other numbers."""
Asks: TypeAlias = "Callable[[Numbers, str, Dataset], Iterable[Measured]]"
"""Given what was measured, a series and the data set: what a claim is about."""
_WAYS: Mapping[str, Callable[[float], tuple[float, float]]] = {
    "least": lambda number: (number, math.inf),
    "most": lambda number: (-math.inf, number),
    "within": lambda number: (-number, number),
    "no worse": lambda number: (0.0 - number, math.inf),
}
"""Where the means of a claim should lie, by its number."""


class Claim(NamedTuple):
    """A statement about one series, which is judged where this was measured.

    `text` is what is claimed, with ``{}`` for the number that decides; `asks` and `way` say which
    means should lie where. If there is a number for some of the paper's data sets, nothing is
    claimed of others. `error` is the standard error of a number that was measured.
    """

    series: str
    text: str
    way: str
    asks: Asks
    number: float | Mapping[str, float]
    error: float = 0.0
    explained_by: tuple[str, ...] = ()

    def judged(self, numbers: Numbers, dataset: Dataset) -> Judgement | None:
        """Return what became of the claim; None where it was not made or not measured."""
        number = self.number if isinstance(self.number, float) else self.number.get(dataset.like)
        if number is None:
            return None
        least, most = _WAYS[self.way](number)
        asked = [self._asked(numbers, one) for one in self.asks(numbers, self.series, dataset)]
        margin = 2 * self.error
        bounds = bounded(asked, least=least - margin, most=most + margin)
        if not bounds:
            return None
        found = judge(self.text.format(f"{number:g}"), bounds)
        return found._replace(explained_by=self.explained_by)

    def _asked(self, numbers: Numbers, one: Measured) -> Asked:
        if isinstance(one, Asked):
            return one
        names = (str(at) if at.series == self.series else f"{at}, {at.series}" for at in one)
        first, *others = numbers.aucs(*one)
        return Asked(" less ".join(names), first - others[0] if others else first)


def _at(*values: str, attacks: Iterable[str] = _BOTH) -> Asks:
    return lambda _numbers, series, _dataset: (
        (Place(series, value, attack),) for value in values for attack in attacks
    )


def _weak_noise(scale: float, sensitivity: Callable[[Dataset], int]) -> Asks:
    """Ask for all budgets at which the scale of the noise is small."""
    return lambda _numbers, series, dataset: (
        (Place(series, str(eps), attack),)
        for eps in BUDGETS
        if sensitivity(dataset) / eps <= scale + 1e-9
        for attack in _BOTH
    )


def _attacks(*pairs: tuple[str, str], values: Sequence[str] = ()) -> Asks:
    """Compare attacks at the same values, at all of them where none is given."""
    return lambda numbers, series, _dataset: (
        (Place(series, value, first), Place(series, value, second))
        for first, second in pairs
        for value in values or numbers.values(series)
    )


def _steps(*values: str) -> Asks:
    """Compare each value of a series with the next one, for both attacks."""
    return lambda numbers, series, _dataset: (
        (Place(series, before, attack), Place(series, after, attack))
        for attack in _BOTH
        for before, after in pairwise(values or numbers.values(series))
    )


def _every_two(numbers: Numbers, series: str, _: Dataset) -> Iterable[Measured]:
    places = [Place(series, value, attack) for value in numbers.values(series) for attack in _BOTH]
    return combinations(places, 2)


def _group_sizes(numbers: Numbers, series: str, _: Dataset) -> Iterable[Measured]:
    """Compare each size of groups with the next larger one."""
    measured = [f"{series}-m{m}" for m in NOISY_GROUP_SIZES if numbers.values(f"{series}-m{m}")]
    return (
        (Place(small, eps, ZK), Place(large, eps, ZK))
        for small, large in pairwise(measured)
        for eps in numbers.values(small)
    )


def _suppressed_after_noise(_: Numbers, series: str, dataset: Dataset) -> Iterable[Measured]:
    """Ask how much suppression takes away after noise of eps 1; on Milan, KK did fall."""
    attacks = _BOTH if dataset.like == "cdr" else (ZK,)
    return ((Place("dp-event", "1.0", one), Place(series, "1.0", one)) for one in attacks)


def _single_visit(numbers: Numbers, series: str, _: Dataset) -> Iterable[Measured]:
    """Take the targets of whom a single visit is known at a share of 0.1."""
    rows = numbers.rows(Place(series, "0.1", ZK))
    few = rows.filter(rows["visits"] <= 10)["auc"].to_numpy()
    yield Asked(f"{ZK}, {few.size} targets of whom one visit is known", few)


def _pairs_help_zk_more(numbers: Numbers, series: str, _: Dataset) -> Iterable[Measured]:
    """Compare what pairs gain both attacks, as a mean over all budgets."""
    attacks, values = (ZK, _ZK_APART, KK, _KK_APART), numbers.values(series)
    if values:
        places = (Place(series, value, attack) for attack in attacks for value in values)
        found = numbers.aucs(*places)
        zk, zk_apart, kk, kk_apart = found.reshape(4, len(values), found.shape[1]).mean(axis=1)
        gain = zk - zk_apart - (kk - kk_apart)
        yield Asked("gain of zero-knowledge less that of knock-knock", gain)


def _most_in_the_middle(numbers: Numbers, series: str, _: Dataset) -> Iterable[Measured]:
    """Compare what pairs gain zero-knowledge at eps 4 with both ends."""
    places = (Place(series, eps, one) for one in (ZK, _ZK_APART) for eps in ("1", "4", "10"))
    found = numbers.aucs(*places)
    low, middle, high = found[:3] - found[3:]
    yield Asked("gain at eps 4 less that at eps 1", middle - low)
    yield Asked("gain at eps 4 less that at eps 10", middle - high)


def _made_up(series: str, n: int) -> Place:
    return Place(series, "event eps 1, then k = 1", f"{ZK}(reference={n})")


def _more_people(_numbers: Numbers, series: str, _: Dataset) -> Iterable[Measured]:
    yield _made_up(series, MADE_UP[-1]), _made_up(series, MADE_UP[0])


def _diminishing(numbers: Numbers, series: str, _: Dataset) -> Iterable[Measured]:
    found = numbers.aucs(*(_made_up(series, n) for n in MADE_UP))
    first, last = found[1] - found[0], found[-1] - found[-2]
    yield Asked("first doubling's gain less the last's", first - last)


_CLOSE = _attacks((ZK, KK))
_PAIRED_OR_NOT = _attacks((KK, _KK_APART), (ZK, _ZK_APART))
_OF_PAPER: Mapping[str, tuple[tuple[Any, ...], ...]] = {
    "ssc": (
        ("Raw counts: both attacks reach an AUC of 0.99 (from {}).", "least", _at("0"), 0.985),
        ("AUCs fall as k grows (no rise by more than {}).", "no worse", _steps(), _SLACK),
        ("At k = 5 both are below {}.", "most", _at("5"), 0.55),
        ("ZK is within {} of KK for every k.", "within", _CLOSE, {"cdr": 0.02}),
        ("ZK is within {} of KK for every k (printed as 0.9).", "within", _CLOSE, {"milan": 0.09}),
    ),
    "dp-event": (
        ("Event-level noise: ZK is within {} of KK for every budget.", "within", _CLOSE, 0.06),
        *(
            (
                f"Event-level noise of scale {scale} or less leaves both at {{}} or more.",
                *("least", _weak_noise(scale, lambda _: 1), {like: 0.9}),
            )
            for like, scale in _WEAK.items()
        ),
    ),
    "dp-user-day": (
        ("User-day noise: ZK is within {} of KK for every budget.", "within", _CLOSE, 0.06),
        *(
            (
                f"User-day noise of scale {scale} or less leaves both at {{}} or more.",
                *("least", _weak_noise(scale, lambda dataset: dataset.max_visits), {like: 0.9}),
            )
            for like, scale in _WEAK.items()
        ),
        (
            "User-day noise with eps of 1 or less brings both below {}.",
            *("most", _at("0.1", "0.5", "1.0"), 0.55),
        ),
        (
            "At eps 0.5 neither beats guessing (is above {}; the paper has accuracies of 0.526).",
            *("most", _at("0.5"), 0.53),
        ),
    ),
    "partial-trace": (
        (
            "With all visits known, both are above {} under noise and suppression.",
            *("least", _at("1.0"), {"cdr": 0.97, "milan": 0.9}, 0.0, ("eight-bit",)),
        ),
        ("Suppression after noise hardly matters (by {}).", "most", _suppressed_after_noise, 0.03),
        (
            "From a tenth of the visits to all of them, all AUCs lie within {} of one another.",
            *("within", _every_two, {"cdr": 0.13, "milan": 0.22}, _ERROR_OF_TWO),
        ),
        (
            "ZK reaches {} when a tenth of the visits is known.",
            *("least", _at("0.1", attacks=[ZK]), {"cdr": 0.84}, _ERROR),
        ),
        ("A single known visit is better than guessing.", "least", _single_visit, 0.5),
    ),
    "paired-sampling": (
        (
            "Pairs always do better than independent groups.",
            *("least", _PAIRED_OR_NOT, 0.0),
        ),
        (
            "At eps 4, pairs raise ZK by {} (from 0.54 to 0.83).",
            *("least", _attacks((ZK, _ZK_APART), values=["4"]), {"milan": 0.29}),
            *(_ERROR_OF_TWO, ("eight-bit", "reused-noise")),
        ),
        (
            "Pairs help ZK most where it is hard, but not hopeless (eps 4, not 1 or 10).",
            *("least", _most_in_the_middle, 0.0),
        ),
        (
            "Pairs approach the worst case (both are within {} of the ceiling).",
            *("most", _attacks((CEILING, KK), (CEILING, ZK)), 0.05),
        ),
        ("Pairs help ZK more than KK.", "least", _pairs_help_zk_more, 0.0),
        ("With pairs, ZK is within {} of KK for every budget.", "within", _CLOSE, 0.02),
    ),
    "group-size-k0": (
        (
            "Raw counts: AUCs fall as groups grow (no rise by more than {}).",
            *("no worse", _steps(), _SLACK),
        ),
    ),
    "group-size-k1": (
        (
            "With k = 1, groups of 100 are harder than groups of 1000.",
            *("no worse", _steps("1000", "100"), 0.0),
        ),
        (
            "With k = 1, AUCs rise beyond groups of 1000, too (no fall by more than {}).",
            *("no worse", _steps("3000", "2000", "1000"), {"milan": _SLACK}),
        ),
        (
            "With k = 1, AUCs fall again beyond groups of 1000 (no rise by more than {}).",
            *("no worse", _steps("1000", "2000", "3000"), {"cdr": _SLACK}),
        ),
    ),
    "group-size-dp": (
        (
            "Under event-level noise, ZK's AUCs fall as groups grow (no rise by more than {}).",
            *("no worse", _group_sizes, _SLACK),
        ),
    ),
    "synthetic-size": (
        ("More synthetic people raise the AUC.", "least", _more_people, 0.0),
        ("Their returns diminish.", "least", _diminishing, 0.0),
    ),
    "regions-only-random": (
        (
            "Places alone, visits guessed at random: both stay below {}.",
            *("most", _at(*_TOPS), 0.63),
        ),
    ),
    "regions-only-greedy": (
        (
            "Places alone, guessed greedily: KK reaches {} with three places or more.",
            *("least", _at("top-3", "all", attacks=[KK]), 0.6, 0.0, ("greedy-leak",)),
        ),
        (
            "Places alone, guessed greedily: ZK stays below {}.",
            *("most", _at(*_TOPS, attacks=[ZK]), 0.6),
        ),
    ),
    "corrections": (
        (
            "Corrected marginals do better than those of the counts as they are.",
            *("least", _attacks((ZK, f"{ZK}(marginals=empirical)")), 0.0),
        ),
    ),
    "activity": (
        (
            "An exponential law of visits does as well as a lognormal one (within {}).",
            *("within", _attacks((ZK, f"{ZK}(activity=lognormal:1)")), 0.02),
        ),
    ),
}
CLAIMS = tuple(Claim(series, *said) for series, all_said in _OF_PAPER.items() for said in all_said)
"""What the paper says."""
OURS = tuple(
    Claim(
        series,
        "The likelihood ratio never does worse than KK or ZK (by more than {}).",
        *("no worse", _attacks((LR, KK), (LR, ZK)), _SLACK),
    )
    for series in ("ssc", "dp-event", "dp-user-day", "partial-trace", "paired-sampling")
)
"""What is new, and claimed by us: put to the same test."""


def judged(
    claims: Iterable[Claim], numbers: Numbers, dataset: Dataset
) -> tuple[tuple[str, Judgement], ...]:
    """Return those claims that enough targets were measured for, each with its series."""
    enough = numbers.n_targets >= FEWEST
    found = [(one.series, one.judged(numbers, dataset)) for one in claims if enough]
    return tuple((series, one) for series, one in found if one is not None)


def judged_data(found: Description) -> tuple[tuple[str, Judgement], ...]:
    """Put what the paper says of its data to the test."""
    nearer = "nearer by (total variation)"
    lognormal = found.exponential_distance - found.lognormal_distance
    claims = (
        (
            "99 % of the non-zero entries are suppressed by k = 5.",
            *(Asked("share suppressed", found.suppressed[5]), 0.985),
        ),
        (
            "Log compression brings the suppressed time marginal closer to the truth.",
            *(Asked(nearer, found.gain_of_compression), 0.0),
        ),
        (
            "The power transform brings the noisy space marginal closer to the truth.",
            *(Asked(nearer, found.gain_of_stretching), 0.0),
        ),
        (
            "A lognormal fits activity better than an exponential.",
            *(Asked("Kolmogorov-Smirnov distance less", lognormal), 0.0),
        ),
    )
    return tuple(("data", judge(text, bounded([of], least=n))) for text, of, n in claims)
