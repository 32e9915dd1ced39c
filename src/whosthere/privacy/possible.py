"""Whether published counts can come from the mechanism that is claimed for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whosthere.errors import InputError
from whosthere.privacy.catalogue import RAW
from whosthere.privacy.maps import BASES
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.presets import PRESETS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from whosthere.privacy.release import Release

# A published count comes from a true one near it, if from any: maps and roundings move counts by
# less than this, and noise leaves any count where it is with some chance.
_REACH = 150
_MOST_FITTING = 4


def impossible(counts: NDArray[np.integer], mechanism: Mechanism, m: int) -> NDArray[np.int64]:
    """Return the distinct published counts that no true count in 0..m can give, sorted."""
    values = np.unique(counts).astype(np.int64)
    return values[[not _can_be(int(value), mechanism, m) for value in values]]


def hides(mechanism: Mechanism, count: int, m: int) -> bool:
    """Tell whether a true count can be published as 0."""
    true = np.array([min(count, m)])
    return bool(np.isfinite(mechanism.log_pmf(np.zeros(1, int), true, m)).any())


def fitting(counts: NDArray[np.integer], m: int, *, hidden: int = 0) -> list[str]:
    """Name a few mechanisms that could have made the counts, the plainest first.

    `hidden` is a true count that they must be able to publish as 0.
    """
    found = (
        spec
        for spec in dict.fromkeys(_candidates(counts, hidden))
        if not impossible(counts, Mechanism.parse(spec), m).size
        and hides(Mechanism.parse(spec), hidden, m)
    )
    return [spec for spec, _ in zip(found, range(_MOST_FITTING), strict=False)]


def refuse_impossible(release: Release) -> None:
    """Refuse a release that its mechanism cannot have made, before an attacker trusts it."""
    strange = impossible(release.counts, release.mechanism, release.group_size)
    if strange.size:
        fits = fitting(release.counts, release.group_size)
        raise InputError(
            f"a count of {strange[0]} cannot come from {release.mechanism}",
            fix=f"Import the table with the mechanism that was used; possible: {', '.join(fits)}",
        )


def _can_be(value: int, mechanism: Mechanism, m: int) -> bool:
    true = np.arange(max(0, value - _REACH), min(m, value + _REACH) + 1)
    # Nearly always the count itself.
    at = np.array([value])
    if np.isfinite(mechanism.log_pmf(at, at, m))[0]:
        return True
    return bool(np.isfinite(mechanism.log_pmf(at, true, m)).any())


def _candidates(counts: NDArray[np.integer], hidden: int) -> Iterator[str]:
    positive = counts[counts > 0]
    least = int(positive.min()) if positive.size else 1
    yield RAW
    if hidden:
        yield f"suppress(k={hidden})"
    if least > 1:
        yield f"suppress(k={least - 1})"
    for base in reversed(BASES):
        yield f"round(to={base})"
    yield from PRESETS
    yield "discrete-laplace(eps=1, unit=event)"
