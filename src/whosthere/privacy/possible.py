"""Whether published counts can come from the mechanism that is claimed for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whosthere.errors import InputError
from whosthere.privacy.catalogue import PRESETS, RAW
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.rounding import BASES
from whosthere.privacy.step import WITHHELD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whosthere.arrays import Ints32, Ints64
    from whosthere.privacy.release import Release

# A published count comes from a true one near it, if from any: maps and roundings move counts by
# less than this, and noise leaves any count where it is with some chance.
_REACH, _AT_ONCE = 150, 64
_MOST_FITTING = 4


def impossible(values: Ints32, mechanism: Mechanism, m: int) -> Ints64:
    """Return the distinct published values that no true count in 0..m can give, sorted.

    `WITHHELD` may be among them. Numbers beyond the mechanism's range are left to `Release`. None
    where no law is known.
    """
    return np.array(list(_strange(values, mechanism, m)), np.int64)


def withholds(mechanism: Mechanism, count: int, m: int) -> bool:
    """Tell whether a true count can be withheld."""
    if mechanism.withheld is None:
        return False
    return bool(np.isfinite(mechanism.log_pmf(WITHHELD, min(count, m), m)))


def fitting(values: Ints32, m: int, *, hidden: int = 0) -> list[str]:
    """Name a few mechanisms that could have made published values, the plainest first.

    `hidden` is a true count that they must be able to withhold, if anything is withheld.
    """
    marked = bool((values == WITHHELD).any())
    found = (
        spec
        for spec in dict.fromkeys(_candidates(values, hidden))
        if next(_strange(values, mechanism := Mechanism.parse(spec), m), None) is None
        and (not marked or withholds(mechanism, hidden, m))
    )
    return [spec for spec, _ in zip(found, range(_MOST_FITTING), strict=False)]


def refuse_impossible(release: Release) -> None:
    """Refuse a release that its mechanism cannot have made, before an attacker trusts it."""
    m = release.group_size
    strange = impossible(release.values, release.mechanism, m)
    if strange.size:
        raise InputError(
            f"{said(int(strange[-1]))} cannot come from {release.mechanism}",
            fix="Import the table with the mechanism that was used; possible: "
            + ", ".join(fitting(release.values, m)),
        )


def said(value: int) -> str:
    """Say what was published."""
    return "a withheld count" if value == WITHHELD else f"a count of {value}"


def _strange(values: Ints32, mechanism: Mechanism, m: int) -> Iterator[int]:
    """Yield what `impossible` returns, a few at a time, so that the first is found soon."""
    if not mechanism.has_law:
        return
    distinct = np.unique(values).astype(np.int64)
    if WITHHELD in distinct and mechanism.withheld is None:
        yield WITHHELD
    lowest, highest, _ = mechanism.alphabet(m)
    asked = distinct[(distinct != WITHHELD) & (lowest <= distinct) & (distinct <= highest)]
    if asked.size:
        # Nearly always a value comes from the count itself.
        same = np.clip(asked, 0, m)
        asked = asked[~np.isfinite(mechanism.log_pmf(asked, same, m))]
    for first in range(0, asked.size, _AT_ONCE):
        some = asked[first : first + _AT_ONCE]
        near = np.rint(some / mechanism.slope).astype(np.int64)
        true = np.clip(near[:, None] + np.arange(-_REACH, _REACH + 1), 0, m)
        can_be = np.isfinite(mechanism.log_pmf(some[:, None], true, m)).any(axis=1)
        yield from some[~can_be].tolist()


def _candidates(values: Ints32, hidden: int) -> Iterator[str]:
    positive = values[values > 0]
    least = int(positive.min()) if positive.size else 1
    thresholds = [k for k in (hidden, least - 1) if k > 0]
    if (values == WITHHELD).any():
        # Where nothing is published as 0, empty cells may be withheld as well.
        empty = ("",) if (values == 0).any() else (", zeros=mark", "")
        marks = [f"suppress(k={k}, shown=mark{zeros})" for k in thresholds for zeros in empty]
        yield from marks
        yield from (f"{mark} | round(to={base})" for base in reversed(BASES) for mark in marks)
        return
    yield RAW
    yield from (f"suppress(k={k})" for k in thresholds)
    yield from (f"round(to={base})" for base in reversed(BASES))
    yield from PRESETS
    yield "discrete-laplace(eps=1, unit=event)"
