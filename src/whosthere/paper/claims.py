"""What the paper says beyond its tables, each put to a test on what was measured.

How a claim is judged stands in `whosthere.paper.judging`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, TypeAlias

from whosthere.paper.experiments import BUDGETS, KK, LR, MADE_UP, NOISY_GROUP_SIZES, ZK
from whosthere.paper.judging import Asked, Bound, Judgement, bounded, judge
from whosthere.paper.results import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from whosthere.paper.datasets import Dataset, Published
    from whosthere.paper.results import Numbers

Test: TypeAlias = "Callable[[Numbers, str, float, Dataset], list[Bound]]"
"""Given what was measured, a series, the claim's number and the data set: what the claim means.

Nothing where it cannot be judged.
"""
# A change by less than this is not taken for one: near 0.5 all curves are flat.
_SLACK = 0.01
_BOTH = (KK, ZK)
_TOPS = ("top-1", "top-2", "top-3", "all")


@dataclass(frozen=True)
class Claim:
    """A statement about one series.

    Attributes
    ----------
    series
        What it is about; it is judged where this was measured.
    text
        What is claimed, with ``{}`` for the number.
    test
        What it means: means and where they should lie.
    number
        What decides; where it differs, by the paper's data set, and nothing is claimed of others.
    """

    series: str
    text: str
    test: Test
    number: float | Mapping[Published, float]

    def judged(self, numbers: Numbers, dataset: Dataset) -> Judgement | None:
        """Return what became of the claim; None where it was not made or not measured."""
        number = self.number if isinstance(self.number, float) else self.number.get(dataset.like)
        if number is None:
            return None
        bounds = self.test(numbers, self.series, number, dataset)
        return judge(self.text.format(f"{number:g}"), bounds) if bounds else None


def _aucs(
    numbers: Numbers, series: str, values: Iterable[str], attacks: Iterable[str]
) -> list[Asked]:
    return [
        Asked(f"{attack} at {value}", numbers.aucs(Place(series, value, attack))[0])
        for value in values
        for attack in attacks
    ]


def _less(numbers: Numbers, of: str, first: Place, second: Place) -> Asked:
    """Return how much more was found of each target at one place than at another."""
    more, less = numbers.aucs(first, second)
    return Asked(of, more - less)


def _differences(
    numbers: Numbers, series: str, first: str, second: str, values: Iterable[str] | None = None
) -> Iterator[Asked]:
    """Return how much more one attack finds of each target than another."""
    for value in numbers.values(series) if values is None else values:
        places = (Place(series, value, attack) for attack in (first, second))
        yield _less(numbers, f"{first} less {second} at {value}", *places)


def _least(values: Iterable[str], attacks: Iterable[str] = _BOTH) -> Test:
    return lambda numbers, series, number, _: bounded(
        _aucs(numbers, series, values, attacks), least=number
    )


def _most(values: Iterable[str], attacks: Iterable[str] = _BOTH) -> Test:
    return lambda numbers, series, number, _: bounded(
        _aucs(numbers, series, values, attacks), most=number
    )


def _falls(numbers: Numbers, series: str, slack: float, _: Dataset) -> list[Bound]:
    """Ask that AUCs never rise along a series."""
    steps = [
        _less(
            numbers,
            f"{attack} at {before} less at {after}",
            Place(series, before, attack),
            Place(series, after, attack),
        )
        for attack in _BOTH
        for before, after in pairwise(numbers.values(series))
    ]
    return bounded(steps, least=-slack)


def _close(numbers: Numbers, series: str, far: float, _: Dataset) -> list[Bound]:
    """Ask that the two attacks lie close together."""
    return bounded(_differences(numbers, series, ZK, KK), least=-far, most=far)


def _weak_noise(sensitivity: Callable[[Dataset], int]) -> Test:
    """Ask for an AUC of at least 0.9 wherever the scale of the noise is small."""

    def test(numbers: Numbers, series: str, scale: float, dataset: Dataset) -> list[Bound]:
        small = [str(eps) for eps in BUDGETS if sensitivity(dataset) / eps <= scale + 1e-9]
        return bounded(_aucs(numbers, series, small, _BOTH), least=0.9)

    return test


def _range(numbers: Numbers, series: str, far: float, _: Dataset) -> list[Bound]:
    """Ask that all means of a series lie close together, each two of them."""
    places = [Place(series, value, attack) for value in numbers.values(series) for attack in _BOTH]
    pairs = [
        _less(numbers, f"{a.attack} at {a.value} less {b.attack} at {b.value}", a, b)
        for a, b in combinations(places, 2)
    ]
    return bounded(pairs, least=-far, most=far)


def _single_visit(numbers: Numbers, series: str, least: float, _: Dataset) -> list[Bound]:
    """Take the targets of whom a single visit is known at a share of 0.1."""
    rows = numbers.rows(Place(series, "0.1", ZK))
    few = rows.filter(rows["visits"] <= 10)["auc"].to_numpy()
    asked = Asked(f"{ZK}, {few.size} targets of whom one visit is known", few)
    return bounded([asked], least=least)


def _independent(attack: str) -> str:
    return f"{attack}(sampling=independent)"


def _gain_at_four(numbers: Numbers, series: str, least: float, _: Dataset) -> list[Bound]:
    return bounded(_differences(numbers, series, ZK, _independent(ZK), ["4"]), least=least)


def _pairs_help(numbers: Numbers, series: str, slack: float, _: Dataset) -> list[Bound]:
    gains = (_differences(numbers, series, attack, _independent(attack)) for attack in _BOTH)
    return bounded([one for some in gains for one in some], least=-slack)


def _pairs_help_zk_more(numbers: Numbers, series: str, least: float, _: Dataset) -> list[Bound]:
    """Compare what pairs gain both attacks, as a mean over all budgets."""
    attacks, values = (ZK, _independent(ZK), KK, _independent(KK)), numbers.values(series)
    if not values:
        return []
    found = numbers.aucs(*(Place(series, value, attack) for attack in attacks for value in values))
    zk, zk_apart, kk, kk_apart = found.reshape(4, len(values), found.shape[1]).mean(axis=1)
    more = Asked("gain of zero-knowledge less that of knock-knock", zk - zk_apart - (kk - kk_apart))
    return bounded([more], least=least)


def _smaller_is_easier(numbers: Numbers, series: str, slack: float, _: Dataset) -> list[Bound]:
    measured = [m for m in NOISY_GROUP_SIZES if numbers.values(f"{series}-m{m}")]
    steps = [
        _less(
            numbers,
            f"{ZK} at eps {eps}, m = {small} less m = {large}",
            Place(f"{series}-m{small}", eps, ZK),
            Place(f"{series}-m{large}", eps, ZK),
        )
        for small, large in pairwise(measured)
        for eps in numbers.values(f"{series}-m{small}")
    ]
    return bounded(steps, least=-slack)


def _larger_is_easier(*sizes: str) -> Test:
    """Ask that small counts hide less in larger groups where they are suppressed."""

    def test(numbers: Numbers, series: str, slack: float, _: Dataset) -> list[Bound]:
        asked = [
            _less(
                numbers,
                f"{attack} at m = {large} less at m = {small}",
                Place(series, large, attack),
                Place(series, small, attack),
            )
            for attack in _BOTH
            for small, large in pairwise(sizes)
        ]
        return bounded(asked, least=0.0 - slack)

    return test


def _made_up(series: str, n: int) -> Place:
    return Place(series, "event eps 1, then k = 1", f"{ZK}(reference={n})")


def _more_people_help(numbers: Numbers, series: str, least: float, _: Dataset) -> list[Bound]:
    few, many = MADE_UP[0], MADE_UP[-1]
    places = (_made_up(series, n) for n in (many, few))
    return bounded([_less(numbers, f"{many:,} people less {few:,}", *places)], least=least)


def _diminishing(numbers: Numbers, series: str, least: float, _: Dataset) -> list[Bound]:
    found = numbers.aucs(*(_made_up(series, n) for n in MADE_UP))
    first, last = found[1] - found[0], found[-1] - found[-2]
    return bounded([Asked("first doubling's gain less the last's", first - last)], least=least)


_OF_PAPER: dict[str, tuple[tuple[str, Test, float | Mapping[Published, float]], ...]] = {
    "ssc": (
        ("Raw counts: both attacks reach an AUC of at least {}.", _least(["0"]), 0.99),
        ("AUCs fall as k grows (no rise by more than {}).", _falls, _SLACK),
        ("At k = 5 both are below {}.", _most(["5"]), 0.55),
        ("ZK is within {} of KK for every k.", _close, {"cdr": 0.02}),
        ("ZK is within {} of KK for every k (printed as 0.9).", _close, {"milan": 0.09}),
    ),
    "dp-event": (
        ("Event-level noise: ZK is within {} of KK for every budget.", _close, 0.06),
        (
            "Event-level noise of scale {} or less leaves both at 0.9 or more.",
            _weak_noise(lambda _: 1),
            {"cdr": 2, "milan": 1},
        ),
    ),
    "dp-user-day": (
        ("User-day noise: ZK is within {} of KK for every budget.", _close, 0.06),
        (
            "User-day noise of scale {} or less leaves both at 0.9 or more.",
            _weak_noise(lambda dataset: dataset.max_visits),
            {"cdr": 2, "milan": 1},
        ),
        (
            "User-day noise with eps of 1 or less brings both below {}.",
            _most(["0.1", "0.5", "1.0"]),
            0.55,
        ),
        ("At eps 0.5 neither beats guessing (is above {}).", _most(["0.5"]), 0.51),
    ),
    "partial-trace": (
        (
            "With all visits known, both are above {} under noise and suppression.",
            _least(["1.0"]),
            {"cdr": 0.97, "milan": 0.9},
        ),
        (
            "From a tenth of the visits to all of them, all AUCs lie within {} of one another.",
            _range,
            {"cdr": 0.13, "milan": 0.22},
        ),
        (
            "ZK reaches {} when a tenth of the visits is known.",
            _least(["0.1"], (ZK,)),
            {"cdr": 0.84},
        ),
        ("A single known visit is better than guessing.", _single_visit, 0.5),
    ),
    "paired-sampling": (
        ("Pairs never do worse than independent groups (by more than {}).", _pairs_help, _SLACK),
        ("At eps 4, pairs raise ZK by {} (from 0.54 to 0.83).", _gain_at_four, {"milan": 0.29}),
        ("Pairs help ZK more than KK.", _pairs_help_zk_more, 0.0),
        ("With pairs, ZK is within {} of KK for every budget.", _close, 0.02),
    ),
    "group-size-k0": (
        ("Raw counts: AUCs fall as groups grow (no rise by more than {}).", _falls, _SLACK),
    ),
    "group-size-k1": (
        (
            "With k = 1, groups of 100 are harder than groups of 1000.",
            _larger_is_easier("100", "1000"),
            0.0,
        ),
        (
            "With k = 1, AUCs rise beyond groups of 1000, too (no fall by more than {}).",
            _larger_is_easier("1000", "2000", "3000"),
            {"milan": _SLACK},
        ),
    ),
    "group-size-dp": (
        (
            "Under event-level noise, ZK's AUCs fall as groups grow (no rise by more than {}).",
            _smaller_is_easier,
            _SLACK,
        ),
    ),
    "synthetic-size": (
        ("More synthetic people raise the AUC.", _more_people_help, 0.0),
        ("Their returns diminish.", _diminishing, 0.0),
    ),
    "regions-only-random": (
        ("Places alone, visits guessed at random: both stay below {}.", _most(_TOPS), 0.63),
    ),
    "regions-only-greedy": (
        (
            "Places alone, guessed greedily: KK reaches {} with three places or more.",
            _least(["top-3", "all"], (KK,)),
            0.6,
        ),
        ("Places alone, guessed greedily: ZK stays below {}.", _most(_TOPS, (ZK,)), 0.6),
    ),
}
CLAIMS = tuple(Claim(series, *said) for series, all_said in _OF_PAPER.items() for said in all_said)
"""What the paper says."""


def _level(numbers: Numbers, series: str, slack: float, _: Dataset) -> list[Bound]:
    """Ask that the likelihood ratio is at least level with both attacks in every setting."""
    asked = [one for other in _BOTH for one in _differences(numbers, series, LR, other)]
    return bounded(asked, least=-slack)


_LEVEL = "The likelihood ratio never does worse than KK or ZK (by more than {})."
OURS = tuple(
    Claim(series, _LEVEL, _level, _SLACK)
    for series in ("ssc", "dp-event", "dp-user-day", "partial-trace", "paired-sampling")
)
"""What is new, and claimed by us: put to the same test."""


def judged(
    claims: Iterable[Claim], numbers: Numbers, dataset: Dataset
) -> tuple[tuple[str, Judgement], ...]:
    """Return those claims that were measured, each with its series."""
    found = [(claim.series, claim.judged(numbers, dataset)) for claim in claims]
    return tuple((series, one) for series, one in found if one is not None)
