"""What the paper says beyond its tables, each put to a test on what was measured.

How a claim is judged stands in `whosthere.paper.judging`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from whosthere.paper.experiments import BUDGETS, KK, LR, MADE_UP, ZK
from whosthere.paper.judging import Bound, Judgement, judge, mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from whosthere.paper.datasets import Published
    from whosthere.paper.results import Numbers

# A rise by less than this is not taken for one: near 0.5 all curves are flat.
_SLACK = 0.01
_INDEPENDENT = "(sampling=independent)"


@dataclass(frozen=True)
class Claim:
    """A statement of the paper about one series.

    Attributes
    ----------
    series
        What it is about; it is judged where this was measured.
    text
        What is claimed, given the data set of the paper.
    bounds
        What it means: means and where they should lie; nothing where it cannot be judged.
    only
        The paper's data set that it is about, if not both.
    """

    series: str
    text: Callable[[Published], str]
    bounds: Callable[[Numbers, Published], list[Bound]]
    only: Published | None = None

    def judged(self, numbers: Numbers, like: Published) -> Judgement | None:
        """Return what became of the claim; None where it was not measured."""
        if self.only not in (None, like) or not numbers.values(self.series):
            return None
        bounds = self.bounds(numbers, like)
        return judge(self.text(like), bounds) if bounds else None


class _Asked(NamedTuple):
    """One mean that a claim is about: of one attack, or of the difference of two."""

    of: str
    values: NDArray[np.float64]


def bounded(of: str, values: NDArray[np.float64], *, least: float) -> list[Bound]:
    """Bound one mean from below."""
    return _bounds([_Asked(of, values)], least=least)


def _bounds(
    asked: Iterable[_Asked], *, least: float = -math.inf, most: float = math.inf
) -> list[Bound]:
    """Bound several means alike, by intervals that hold for all of them."""
    means = list(asked)
    return [
        Bound(mean(one.of, one.values, together=len(means)), least=least, most=most)
        for one in means
    ]


def _aucs(
    numbers: Numbers, series: str, values: Iterable[str], attacks: Iterable[str]
) -> list[_Asked]:
    return [
        _Asked(f"{attack} at {value}", numbers.aucs(series, value, attack))
        for value in values
        for attack in attacks
        if numbers.has(series, [value], [attack])
    ]


def _differences(
    numbers: Numbers, series: str, first: str, second: str, values: Iterable[str] | None = None
) -> list[_Asked]:
    """Return how much more one attack finds of each target than another."""
    return [
        _Asked(
            f"{first} less {second} at {value}",
            numbers.aucs(series, value, first) - numbers.aucs(series, value, second),
        )
        for value in (numbers.values(series) if values is None else values)
        if numbers.has(series, [value], [first, second])
    ]


def _falls(numbers: Numbers, series: str, attacks: Iterable[str]) -> list[Bound]:
    """Ask that AUCs never rise along a series."""
    steps = [
        _Asked(
            f"{attack} at {before} less at {after}",
            numbers.aucs(series, before, attack) - numbers.aucs(series, after, attack),
        )
        for attack in attacks
        for before, after in pairwise(numbers.values(series))
    ]
    return _bounds(steps, least=-_SLACK)


def _close(
    series: str, margin: dict[Published, float]
) -> Callable[[Numbers, Published], list[Bound]]:
    def bounds(numbers: Numbers, like: Published) -> list[Bound]:
        far = margin[like]
        return _bounds(_differences(numbers, series, ZK, KK), least=-far, most=far)

    return bounds


def _strong_noise(
    series: str, scale_of: Callable[[float, Published], float]
) -> Callable[[Numbers, Published], list[Bound]]:
    """Ask for an AUC of at least 0.9 wherever the noise is small."""
    most = {"cdr": 2.0, "milan": 1.0}

    def bounds(numbers: Numbers, like: Published) -> list[Bound]:
        values = [repr(eps) for eps in BUDGETS if scale_of(eps, like) <= most[like] + 1e-9]
        return _bounds(_aucs(numbers, series, values, (KK, ZK)), least=0.9)

    return bounds


def _range(numbers: Numbers, like: Published) -> list[Bound]:
    """Ask that all means of a series lie close together: the largest less the smallest."""
    series = "partial-trace"
    asked = _aucs(numbers, series, numbers.values(series), (KK, ZK))
    if len(asked) < 2:
        return []
    top, bottom = (pick(asked, key=lambda one: float(one.values.mean())) for pick in (max, min))
    spread = _Asked(f"{top.of} less {bottom.of}", top.values - bottom.values)
    # Chosen out of all pairs.
    pairs = len(asked) * (len(asked) - 1) // 2
    found = mean(spread.of, spread.values, together=pairs)
    return [Bound(found, most={"cdr": 0.13, "milan": 0.22}[like])]


def _single_visit(numbers: Numbers, _: Published) -> list[Bound]:
    """Take the targets of whom a single visit is known at a share of 0.1."""
    if not numbers.has("partial-trace", ["0.1"], [ZK]):
        return []
    rows = numbers.rows("partial-trace", "0.1", ZK)
    few = rows.filter(rows["visits"] <= 10)["auc"].to_numpy()
    if not few.size:
        return []
    return _bounds([_Asked(f"{ZK}, {few.size} targets of whom one visit is known", few)], least=0.5)


def _gain_at_four(numbers: Numbers, _: Published) -> list[Bound]:
    gain = _differences(numbers, "paired-sampling", ZK, ZK + _INDEPENDENT, ["4"])
    return _bounds(gain, least=0.29)


def _pairs_help(numbers: Numbers, _: Published) -> list[Bound]:
    series = "paired-sampling"
    asked = [
        one
        for attack in (KK, ZK)
        for one in _differences(numbers, series, attack, attack + _INDEPENDENT)
    ]
    return _bounds(asked, least=-_SLACK)


def _smaller_is_easier(numbers: Numbers, _: Published) -> list[Bound]:
    series = [f"group-size-dp-m{m}" for m in (100, 250, 500, 1000)]
    measured = [one for one in series if numbers.values(one)]
    steps = [
        _Asked(
            f"{ZK} at eps {eps}, {small.rpartition('-')[2]} less {large.rpartition('-')[2]}",
            numbers.aucs(small, eps, ZK) - numbers.aucs(large, eps, ZK),
        )
        for small, large in pairwise(measured)
        for eps in numbers.values(small)
    ]
    return _bounds(steps, least=-_SLACK)


def _small_suppressed(numbers: Numbers, _: Published) -> list[Bound]:
    series = "group-size-k1"
    asked = [
        _Asked(
            f"{attack} at m = 1000 less at m = 100",
            numbers.aucs(series, "1000", attack) - numbers.aucs(series, "100", attack),
        )
        for attack in (KK, ZK)
        if numbers.has(series, ["100", "1000"], [attack])
    ]
    return _bounds(asked, least=0.0)


def _more_people_help(numbers: Numbers, _: Published) -> list[Bound]:
    series = "synthetic-size"
    value = numbers.values(series)[0]
    fewest, most = (f"{ZK}(reference={n})" for n in (MADE_UP[0], MADE_UP[-1]))
    return _bounds(_differences(numbers, series, most, fewest, [value]), least=0.0)


def _diminishing(numbers: Numbers, _: Published) -> list[Bound]:
    series = "synthetic-size"
    value = numbers.values(series)[0]
    names = [f"{ZK}(reference={n})" for n in MADE_UP]
    if not numbers.has(series, [value], names):
        return []
    found = [numbers.aucs(series, value, name) for name in names]
    first, last = found[1] - found[0], found[-1] - found[-2]
    gain = _Asked("first doubling's gain less the last's", first - last)
    return _bounds([gain], least=0.0)


def _places(numbers: Numbers, series: str, values: Sequence[str], attack: str) -> list[_Asked]:
    return _aucs(numbers, series, values, (attack,))


def _same(text: str) -> Callable[[Published], str]:
    return lambda _: text


CLAIMS = (
    Claim(
        "ssc",
        _same("Raw counts: both attacks reach an AUC of at least 0.99."),
        lambda numbers, _: _bounds(_aucs(numbers, "ssc", ["0"], (KK, ZK)), least=0.99),
    ),
    Claim(
        "ssc",
        _same("AUCs fall as k grows (no rise by more than 0.01)."),
        lambda numbers, _: _falls(numbers, "ssc", (KK, ZK)),
    ),
    Claim(
        "ssc",
        _same("At k = 5 both are below 0.55."),
        lambda numbers, _: _bounds(_aucs(numbers, "ssc", ["5"], (KK, ZK)), most=0.55),
    ),
    Claim(
        "ssc",
        lambda like: f"ZK is within {'0.02' if like == 'cdr' else '0.09'} of KK for every k.",
        _close("ssc", {"cdr": 0.02, "milan": 0.09}),
    ),
    Claim(
        "dp-event",
        _same("Event-level noise: ZK is within 0.06 of KK for every budget."),
        _close("dp-event", {"cdr": 0.06, "milan": 0.06}),
    ),
    Claim(
        "dp-event",
        lambda like: (
            f"Event-level noise of scale {2 if like == 'cdr' else 1} or less leaves both at 0.9 "
            "or more."
        ),
        _strong_noise("dp-event", lambda eps, _: 1 / eps),
    ),
    Claim(
        "dp-user-day",
        _same("User-day noise: ZK is within 0.06 of KK for every budget."),
        _close("dp-user-day", {"cdr": 0.06, "milan": 0.06}),
    ),
    Claim(
        "dp-user-day",
        lambda like: (
            f"User-day noise of scale {2 if like == 'cdr' else 1} (eps 10) leaves both at 0.9 or "
            "more."
        ),
        _strong_noise("dp-user-day", lambda eps, like: {"cdr": 20, "milan": 10}[like] / eps),
    ),
    Claim(
        "dp-user-day",
        _same("User-day noise with eps of 1 or less brings both below 0.55."),
        lambda numbers, _: _bounds(
            _aucs(numbers, "dp-user-day", ["0.1", "0.5", "1.0"], (KK, ZK)), most=0.55
        ),
    ),
    Claim(
        "dp-user-day",
        _same("At eps 0.5 neither beats guessing (is above 0.51)."),
        lambda numbers, _: _bounds(_aucs(numbers, "dp-user-day", ["0.5"], (KK, ZK)), most=0.51),
    ),
    Claim(
        "partial-trace",
        lambda like: (
            f"With all visits known, both are above {'0.97' if like == 'cdr' else '0.9'} under "
            "noise and suppression."
        ),
        lambda numbers, like: _bounds(
            _aucs(numbers, "partial-trace", ["1.0"], (KK, ZK)),
            least={"cdr": 0.97, "milan": 0.9}[like],
        ),
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
        lambda numbers, _: _bounds(_aucs(numbers, "partial-trace", ["0.1"], (ZK,)), least=0.84),
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
        _same("With pairs, ZK is within 0.02 of KK for every budget."),
        _close("paired-sampling", {"cdr": 0.02, "milan": 0.02}),
    ),
    Claim(
        "group-size-k0",
        _same("Raw counts: AUCs fall as groups grow (no rise by more than 0.01)."),
        lambda numbers, _: _falls(numbers, "group-size-k0", (KK, ZK)),
    ),
    Claim(
        "group-size-k1",
        _same("With k = 1, groups of 100 are harder than groups of 1000."),
        _small_suppressed,
    ),
    Claim(
        "group-size-dp-m100",
        _same("Under event-level noise smaller groups are easier for ZK (by -0.01 or more)."),
        _smaller_is_easier,
    ),
    Claim("synthetic-size", _same("More synthetic people raise the AUC."), _more_people_help),
    Claim("synthetic-size", _same("Their returns diminish."), _diminishing),
    Claim(
        "regions-only-random",
        _same("Places alone, visits guessed at random: both stay below 0.63."),
        lambda numbers, _: _bounds(
            _aucs(numbers, "regions-only-random", ["top-1", "top-2", "top-3", "all"], (KK, ZK)),
            most=0.63,
        ),
    ),
    Claim(
        "regions-only-greedy",
        _same("Places alone, guessed greedily: KK beats guessing with three places or more."),
        lambda numbers, _: _bounds(
            _places(numbers, "regions-only-greedy", ["top-3", "all"], KK), least=0.5
        ),
    ),
    Claim(
        "regions-only-greedy",
        _same("Places alone, guessed greedily: ZK stays below 0.6."),
        lambda numbers, _: _bounds(
            _places(numbers, "regions-only-greedy", ["top-1", "top-2", "top-3", "all"], ZK),
            most=0.6,
        ),
    ),
)

_EVERYWHERE = ("ssc", "dp-event", "dp-user-day", "partial-trace", "paired-sampling")


def _beats(series: str) -> Claim:
    """Ask that the likelihood ratio is at least level with both attacks in every setting."""

    def bounds(numbers: Numbers, _: Published) -> list[Bound]:
        asked = [one for other in (KK, ZK) for one in _differences(numbers, series, LR, other)]
        return _bounds(asked, least=-_SLACK)

    return Claim(
        series,
        _same("The likelihood ratio never does worse than KK or ZK (by more than 0.01)."),
        bounds,
    )


OURS = tuple(_beats(series) for series in _EVERYWHERE)
"""What is new, and claimed by us: put to the same test."""


def judged(numbers: Numbers, like: Published) -> list[tuple[str, Judgement]]:
    """Return every claim that was measured, with its series: the paper's, then ours."""
    found = [(claim.series, claim.judged(numbers, like)) for claim in (*CLAIMS, *OURS)]
    return [(series, one) for series, one in found if one is not None]
