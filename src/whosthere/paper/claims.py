"""What the paper says, beyond its tables, each put to a test on what was measured.

``claims.toml`` has the words and the numbers.

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
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from scipy.special import stdtrit

from whosthere.display import told
from whosthere.paper.experiments import EXPERIMENTS, KK, MADE_UP, ZK
from whosthere.paper.results import Numbers, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from whosthere.arrays import Floats
    from whosthere.paper.datasets import Dataset
    from whosthere.paper.description import Description

_LEVEL = 0.05
FEWEST = 10
"""Fewer targets than this decide nothing, however alike they are."""
_BOTH = (KK, ZK)


class Status(Enum):
    """What became of a claim."""

    HELD = "held"
    NOT_HELD = "not held"
    CANNOT_TELL = "cannot tell"


class Asked(NamedTuple):
    """What a claim is about: a number of every target, whose mean counts."""

    of: str
    values: Floats


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
    explained_by: Sequence[str] = ()


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


def _interval(values: Floats, level: float) -> tuple[float, float]:
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
_WAYS: Mapping[str, Callable[[float], tuple[float, float]]] = {
    "least": lambda number: (number, math.inf),
    "most": lambda number: (-math.inf, number),
    "within": lambda number: (-number, number),
    "no_worse": lambda number: (0.0 - number, math.inf),
}
"""Where the means of a claim should lie, by its number."""


class Claim(NamedTuple):
    """A statement about one series, which is judged where this was measured.

    `text` is what is claimed, with ``{}`` for the number that decides; `asks` and `way` say which
    means should lie where. If there is a number for some of the paper's data sets, nothing is
    claimed of others. `error` is the standard error of a number that was measured. All else is for
    what is asked.
    """

    series: str
    text: str
    asks: str
    way: str
    number: float | Mapping[str, float]
    error: float = 0.0
    explained_by: Sequence[str] = ()
    values: Sequence[str] = ()
    attacks: Sequence[str] = _BOTH
    pairs: Sequence[Sequence[str]] = ()
    scale: float = math.inf
    of_a_day: bool = False

    def judged(self, numbers: Numbers, dataset: Dataset) -> Judgement | None:
        """Return what became of the claim; None where it was not made or not measured."""
        number = self.number if isinstance(self.number, float) else self.number.get(dataset.like)
        if number is None:
            return None
        least, most = _WAYS[self.way](number)
        asked = [self._asked(numbers, one) for one in _ASKS[self.asks](numbers, self, dataset)]
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


def _levels(_: Numbers, claim: Claim, __: Dataset) -> Iterable[Measured]:
    return (
        (Place(claim.series, value, attack),) for value in claim.values for attack in claim.attacks
    )


def _weak_noise(numbers: Numbers, claim: Claim, dataset: Dataset) -> Iterable[Measured]:
    """Ask for all budgets at which the scale of the noise is small."""
    visits, most = dataset.max_visits if claim.of_a_day else 1, claim.scale + 1e-9
    weak = [eps for eps in numbers.values(claim.series) if visits / float(eps) <= most]
    return _levels(numbers, claim._replace(values=weak), dataset)


def _attacks(numbers: Numbers, claim: Claim, _: Dataset) -> Iterable[Measured]:
    """Compare attacks at the same values, at all of them where none is given."""
    return (
        (Place(claim.series, value, first), Place(claim.series, value, second))
        for first, second in claim.pairs
        for value in claim.values or numbers.values(claim.series)
    )


def _steps(numbers: Numbers, claim: Claim, _: Dataset) -> Iterable[Measured]:
    """Compare each value of a series with the next one, for each attack."""
    return (
        (Place(claim.series, before, attack), Place(claim.series, after, attack))
        for attack in claim.attacks
        for before, after in pairwise(claim.values or numbers.values(claim.series))
    )


def _every_two(numbers: Numbers, claim: Claim, _: Dataset) -> Iterable[Measured]:
    values = numbers.values(claim.series)
    places = [Place(claim.series, value, attack) for value in values for attack in claim.attacks]
    return combinations(places, 2)


def _larger_groups(numbers: Numbers, claim: Claim, _: Dataset) -> Iterable[Measured]:
    """Compare each size of groups with the next larger one."""
    sizes = [one.name for one in EXPERIMENTS[claim.series].series if numbers.values(one.name)]
    return (
        (Place(small, eps, ZK), Place(large, eps, ZK))
        for small, large in pairwise(sizes)
        for eps in numbers.values(small)
    )


def _suppressed_after_noise(_: Numbers, claim: Claim, __: Dataset) -> Iterable[Measured]:
    """Compare noise of eps 1 alone with noise and suppression, all visits known."""
    return (
        (Place("dp-event", "1.0", attack), Place(claim.series, "1.0", attack))
        for attack in claim.attacks
    )


def _single_visit(numbers: Numbers, claim: Claim, _: Dataset) -> Iterable[Measured]:
    """Take the targets of whom a single visit is known at a share of 0.1."""
    rows = numbers.rows(Place(claim.series, "0.1", ZK))
    few = rows.filter(rows["visits"] <= 10)["auc"].to_numpy()
    yield Asked(f"{ZK}, {few.size} targets of whom one visit is known", few)


def _pairs_gain(numbers: Numbers, claim: Claim, _: Dataset) -> Iterable[Measured]:
    """Compare what pairs gain both attacks, as a mean over all budgets."""
    attacks = [one + how for one in (ZK, KK) for how in ("", "(sampling=independent)")]
    values = numbers.values(claim.series)
    if values:
        places = (Place(claim.series, value, attack) for attack in attacks for value in values)
        found = numbers.aucs(*places)
        zk, zk_apart, kk, kk_apart = found.reshape(4, len(values), found.shape[1]).mean(axis=1)
        gain = zk - zk_apart - (kk - kk_apart)
        yield Asked("gain of zero-knowledge less that of knock-knock", gain)


def _most_in_the_middle(numbers: Numbers, claim: Claim, _: Dataset) -> Iterable[Measured]:
    """Compare how much better the first of two attacks is in the middle with both ends."""
    low, middle, high = claim.values
    for end in (low, high):
        at = (Place(claim.series, eps, a) for eps in (middle, end) for a in claim.pairs[0])
        one, other, one_there, other_there = numbers.aucs(*at)
        yield Asked(f"gain at {middle} less that at {end}", one - other - one_there + other_there)


def _made_up(claim: Claim) -> list[Place]:
    [point] = EXPERIMENTS[claim.series].series[0].points
    return [Place(claim.series, point.value, attack) for attack in MADE_UP.values()]


def _more_people(_: Numbers, claim: Claim, __: Dataset) -> Iterable[Measured]:
    fewest, *_others, most = _made_up(claim)
    yield most, fewest


def _diminishing(numbers: Numbers, claim: Claim, _: Dataset) -> Iterable[Measured]:
    found = numbers.aucs(*_made_up(claim))
    first, last = found[1] - found[0], found[-1] - found[-2]
    yield Asked("first doubling's gain less the last's", first - last)


_ASKS: Mapping[str, Callable[[Numbers, Claim, Dataset], Iterable[Measured]]] = {
    "levels": _levels,
    "weak noise": _weak_noise,
    "attacks": _attacks,
    "steps": _steps,
    "every two": _every_two,
    "larger groups": _larger_groups,
    "a single visit": _single_visit,
    "what pairs gain": _pairs_gain,
    "most in the middle": _most_in_the_middle,
    "suppressed after noise": _suppressed_after_noise,
    "more synthetic people": _more_people,
    "returns of synthetic people": _diminishing,
}
"""Given what was measured, a claim and the data set: what the claim is about."""


def _claims(whose: str) -> Iterator[Claim]:
    for about in told("whosthere.paper", "claims")[whose]:
        [way] = _WAYS.keys() & about.keys()
        number = about.pop(way)
        for series in about.pop("series"):
            yield Claim(series, way=way, number=number, **about)


CLAIMS = tuple(_claims("paper"))
"""What the paper says."""
OURS = tuple(_claims("ours"))
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
