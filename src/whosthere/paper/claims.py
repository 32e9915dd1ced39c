"""What the paper says beyond its tables, each put to a test on what was measured.

How a claim is judged stands in `whosthere.paper.judging`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

from whosthere.paper.experiments import BUDGETS, KK, LR, MADE_UP, NOISY_GROUP_SIZES, ZK
from whosthere.paper.judging import Asked, Bound, Judgement, bounded, judge
from whosthere.paper.results import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from whosthere.paper.datasets import Dataset, Published
    from whosthere.paper.results import Numbers

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
        What is claimed, given the paper's data set.
    bounds
        What it means: means and where they should lie; nothing where it cannot be judged.
    only
        The paper's data set that it is about, if not both.
    """

    series: str
    text: Callable[[Published], str]
    bounds: Callable[[Numbers, Dataset], list[Bound]]
    only: Published | None = None

    def judged(self, numbers: Numbers, dataset: Dataset) -> Judgement | None:
        """Return what became of the claim; None where it was not measured."""
        if self.only not in (None, dataset.like):
            return None
        bounds = self.bounds(numbers, dataset)
        return judge(self.text(dataset.like), bounds) if bounds else None


def _same(text: str) -> Callable[[Published], str]:
    return lambda _: text


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
) -> list[Asked]:
    """Return how much more one attack finds of each target than another."""
    return [
        _less(
            numbers,
            f"{first} less {second} at {value}",
            Place(series, value, first),
            Place(series, value, second),
        )
        for value in (numbers.values(series) if values is None else values)
    ]


def _falls(series: str) -> Callable[[Numbers, Dataset], list[Bound]]:
    """Ask that AUCs never rise along a series."""

    def bounds(numbers: Numbers, _: Dataset) -> list[Bound]:
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
        return bounded(steps, least=-_SLACK)

    return bounds


def _within(
    series: str, values: Iterable[str], attacks: Iterable[str], **where: float
) -> Callable[[Numbers, Dataset], list[Bound]]:
    """Ask that AUCs lie within bounds."""
    return lambda numbers, _: bounded(_aucs(numbers, series, values, attacks), **where)


def _close(series: str, **margin: float) -> Callable[[Numbers, Dataset], list[Bound]]:
    """Ask that the two attacks lie close together, given how close for each data set."""

    def bounds(numbers: Numbers, dataset: Dataset) -> list[Bound]:
        far = margin[dataset.like]
        return bounded(_differences(numbers, series, ZK, KK), least=-far, most=far)

    return bounds


def _weak_noise(
    series: str, scale_of: Callable[[float, Dataset], float]
) -> Callable[[Numbers, Dataset], list[Bound]]:
    """Ask for an AUC of at least 0.9 wherever the noise is small."""

    def bounds(numbers: Numbers, dataset: Dataset) -> list[Bound]:
        most = _small_scale(dataset.like) + 1e-9
        values = [repr(eps) for eps in BUDGETS if scale_of(eps, dataset) <= most]
        return bounded(_aucs(numbers, series, values, _BOTH), least=0.9)

    return bounds


def _small_scale(like: Published) -> int:
    return {"cdr": 2, "milan": 1}[like]


def _full_trace(numbers: Numbers, dataset: Dataset) -> list[Bound]:
    least = {"cdr": 0.97, "milan": 0.9}[dataset.like]
    return bounded(_aucs(numbers, "partial-trace", ["1.0"], _BOTH), least=least)


def _range(numbers: Numbers, dataset: Dataset) -> list[Bound]:
    """Ask that all means of a series lie close together, each two of them."""
    series = "partial-trace"
    places = [Place(series, value, attack) for value in numbers.values(series) for attack in _BOTH]
    pairs = [
        _less(numbers, f"{a.attack} at {a.value} less {b.attack} at {b.value}", a, b)
        for a, b in combinations(places, 2)
    ]
    far = {"cdr": 0.13, "milan": 0.22}[dataset.like]
    return bounded(pairs, least=-far, most=far)


def _single_visit(numbers: Numbers, _: Dataset) -> list[Bound]:
    """Take the targets of whom a single visit is known at a share of 0.1."""
    rows = numbers.rows(Place("partial-trace", "0.1", ZK))
    few = rows.filter(rows["visits"] <= 10)["auc"].to_numpy()
    return bounded([Asked(f"{ZK}, {few.size} targets of whom one visit is known", few)], least=0.5)


def _independent(attack: str) -> str:
    return f"{attack}(sampling=independent)"


def _gain_at_four(numbers: Numbers, _: Dataset) -> list[Bound]:
    gain = _differences(numbers, "paired-sampling", ZK, _independent(ZK), ["4"])
    return bounded(gain, least=0.29)


def _pairs_help(numbers: Numbers, _: Dataset) -> list[Bound]:
    gains = (
        _differences(numbers, "paired-sampling", attack, _independent(attack)) for attack in _BOTH
    )
    return bounded([one for some in gains for one in some], least=-_SLACK)


def _pairs_help_zk_more(numbers: Numbers, _: Dataset) -> list[Bound]:
    """Compare what pairs gain both attacks, as a mean over all budgets."""
    series, attacks = "paired-sampling", (ZK, _independent(ZK), KK, _independent(KK))
    values = numbers.values(series)
    if not values:
        return []
    found = numbers.aucs(*(Place(series, value, attack) for attack in attacks for value in values))
    zk, zk_apart, kk, kk_apart = found.reshape(4, len(values), found.shape[1]).mean(axis=1)
    more = Asked("gain of zero-knowledge less that of knock-knock", zk - zk_apart - (kk - kk_apart))
    return bounded([more], least=0.0)


def _smaller_is_easier(numbers: Numbers, _: Dataset) -> list[Bound]:
    measured = [m for m in NOISY_GROUP_SIZES if numbers.values(f"group-size-dp-m{m}")]
    steps = [
        _less(
            numbers,
            f"{ZK} at eps {eps}, m = {small} less m = {large}",
            Place(f"group-size-dp-m{small}", eps, ZK),
            Place(f"group-size-dp-m{large}", eps, ZK),
        )
        for small, large in pairwise(measured)
        for eps in numbers.values(f"group-size-dp-m{small}")
    ]
    return bounded(steps, least=-_SLACK)


def _larger_is_easier(
    *pairs: tuple[str, str], least: float
) -> Callable[[Numbers, Dataset], list[Bound]]:
    """Ask that small counts hide less in larger groups where they are suppressed."""
    series = "group-size-k1"

    def bounds(numbers: Numbers, _: Dataset) -> list[Bound]:
        asked = [
            _less(
                numbers,
                f"{attack} at m = {large} less at m = {small}",
                Place(series, large, attack),
                Place(series, small, attack),
            )
            for attack in _BOTH
            for small, large in pairs
        ]
        return bounded(asked, least=least)

    return bounds


def _made_up(n: int) -> Place:
    return Place("synthetic-size", "event eps 1, then k = 1", f"{ZK}(reference={n})")


def _more_people_help(numbers: Numbers, _: Dataset) -> list[Bound]:
    fewest, most = MADE_UP[0], MADE_UP[-1]
    gain = _less(numbers, f"{most:,} people less {fewest:,}", _made_up(most), _made_up(fewest))
    return bounded([gain], least=0.0)


def _diminishing(numbers: Numbers, _: Dataset) -> list[Bound]:
    found = numbers.aucs(*(_made_up(n) for n in MADE_UP))
    first, last = found[1] - found[0], found[-1] - found[-2]
    return bounded([Asked("first doubling's gain less the last's", first - last)], least=0.0)


CLAIMS = (
    Claim(
        "ssc",
        _same("Raw counts: both attacks reach an AUC of at least 0.99."),
        _within("ssc", ["0"], _BOTH, least=0.99),
    ),
    Claim("ssc", _same("AUCs fall as k grows (no rise by more than 0.01)."), _falls("ssc")),
    Claim(
        "ssc",
        _same("At k = 5 both are below 0.55."),
        _within("ssc", ["5"], _BOTH, most=0.55),
    ),
    Claim(
        "ssc",
        lambda like: (
            "ZK is within 0.02 of KK for every k."
            if like == "cdr"
            else "ZK is within 0.09 of KK for every k (printed as 0.9)."
        ),
        _close("ssc", cdr=0.02, milan=0.09),
    ),
    Claim(
        "dp-event",
        _same("Event-level noise: ZK is within 0.06 of KK for every budget."),
        _close("dp-event", cdr=0.06, milan=0.06),
    ),
    Claim(
        "dp-event",
        lambda like: (
            f"Event-level noise of scale {_small_scale(like)} or less leaves both at 0.9 or more."
        ),
        _weak_noise("dp-event", lambda eps, _: 1 / eps),
    ),
    Claim(
        "dp-user-day",
        _same("User-day noise: ZK is within 0.06 of KK for every budget."),
        _close("dp-user-day", cdr=0.06, milan=0.06),
    ),
    Claim(
        "dp-user-day",
        lambda like: (
            f"User-day noise of scale {_small_scale(like)} or less leaves both at 0.9 or more."
        ),
        _weak_noise("dp-user-day", lambda eps, dataset: dataset.max_visits / eps),
    ),
    Claim(
        "dp-user-day",
        _same("User-day noise with eps of 1 or less brings both below 0.55."),
        _within("dp-user-day", ["0.1", "0.5", "1.0"], _BOTH, most=0.55),
    ),
    Claim(
        "dp-user-day",
        _same("At eps 0.5 neither beats guessing (is above 0.51)."),
        _within("dp-user-day", ["0.5"], _BOTH, most=0.51),
    ),
    Claim(
        "partial-trace",
        lambda like: (
            f"With all visits known, both are above {'0.97' if like == 'cdr' else '0.9'} under "
            "noise and suppression."
        ),
        _full_trace,
    ),
    Claim(
        "partial-trace",
        lambda like: (
            "From a tenth of the visits to all of them, all AUCs lie within "
            f"{'0.13' if like == 'cdr' else '0.22'} of one another."
        ),
        _range,
    ),
    Claim(
        "partial-trace",
        _same("ZK reaches 0.84 when a tenth of the visits is known."),
        _within("partial-trace", ["0.1"], (ZK,), least=0.84),
        only="cdr",
    ),
    Claim("partial-trace", _same("A single known visit is better than guessing."), _single_visit),
    Claim(
        "paired-sampling",
        _same("Pairs never do worse than independent groups (by more than 0.01)."),
        _pairs_help,
    ),
    Claim(
        "paired-sampling",
        _same("At eps 4, pairs raise ZK by 0.29 (from 0.54 to 0.83)."),
        _gain_at_four,
        only="milan",
    ),
    Claim(
        "paired-sampling",
        _same("Pairs help ZK more than KK."),
        _pairs_help_zk_more,
    ),
    Claim(
        "paired-sampling",
        _same("With pairs, ZK is within 0.02 of KK for every budget."),
        _close("paired-sampling", cdr=0.02, milan=0.02),
    ),
    Claim(
        "group-size-k0",
        _same("Raw counts: AUCs fall as groups grow (no rise by more than 0.01)."),
        _falls("group-size-k0"),
    ),
    Claim(
        "group-size-k1",
        _same("With k = 1, groups of 100 are harder than groups of 1000."),
        _larger_is_easier(("100", "1000"), least=0.0),
    ),
    Claim(
        "group-size-k1",
        _same("With k = 1, AUCs rise beyond groups of 1000, too (no fall by more than 0.01)."),
        _larger_is_easier(("1000", "2000"), ("2000", "3000"), least=-_SLACK),
        only="milan",
    ),
    Claim(
        "group-size-dp",
        _same(
            "Under event-level noise, ZK's AUCs fall as groups grow (no rise by more than 0.01)."
        ),
        _smaller_is_easier,
    ),
    Claim("synthetic-size", _same("More synthetic people raise the AUC."), _more_people_help),
    Claim("synthetic-size", _same("Their returns diminish."), _diminishing),
    Claim(
        "regions-only-random",
        _same("Places alone, visits guessed at random: both stay below 0.63."),
        _within("regions-only-random", _TOPS, _BOTH, most=0.63),
    ),
    Claim(
        "regions-only-greedy",
        _same("Places alone, guessed greedily: KK reaches 0.6 with three places or more."),
        _within("regions-only-greedy", ["top-3", "all"], (KK,), least=0.6),
    ),
    Claim(
        "regions-only-greedy",
        _same("Places alone, guessed greedily: ZK stays below 0.6."),
        _within("regions-only-greedy", _TOPS, (ZK,), most=0.6),
    ),
)
"""What the paper says."""


def _level(series: str) -> Claim:
    """Ask that the likelihood ratio is at least level with both attacks in every setting."""

    def bounds(numbers: Numbers, _: Dataset) -> list[Bound]:
        asked = [one for other in _BOTH for one in _differences(numbers, series, LR, other)]
        return bounded(asked, least=-_SLACK)

    return Claim(
        series,
        _same("The likelihood ratio never does worse than KK or ZK (by more than 0.01)."),
        bounds,
    )


OURS = tuple(
    _level(series)
    for series in ("ssc", "dp-event", "dp-user-day", "partial-trace", "paired-sampling")
)
"""What is new, and claimed by us: put to the same test."""


def judged(
    claims: Iterable[Claim], numbers: Numbers, dataset: Dataset
) -> tuple[tuple[str, Judgement], ...]:
    """Return those claims that were measured, each with its series."""
    found = [(claim.series, claim.judged(numbers, dataset)) for claim in claims]
    return tuple((series, one) for series, one in found if one is not None)
