"""Rates: how many others to expect in each cell, from the release alone.

Rates are logarithms by cell. A model of them is a list of parts. Each is given the release and the
rates so far, and returns better ones: factors of regions and epochs (or of the two ends of trips),
components that stand out of the noise, factors of the hours of the week, what is counted around.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from scipy.special import log_ndtr

from whosthere import kernels
from whosthere.adversary.components import Completion, completion, find_components
from whosthere.adversary.count_tables import CountTables, count_tables, filled
from whosthere.adversary.levels import likeliest_spread, posterior, some
from whosthere.adversary.marginals import LEAST_MEAN, Marginals
from whosthere.adversary.near import near
from whosthere.adversary.places import Expected, components_of_places, fit_places
from whosthere.data.flows import Pairs

if TYPE_CHECKING:
    from whosthere.arrays import Floats, Ints32, Ints64
    from whosthere.data.epochs import Epochs
    from whosthere.privacy.release import Release

_ROUNDS = 12
# Hidden counts are completed so often, each time by better rates.
_COMPLETIONS = 4
# A row or column is never taken for emptier than this many people in all of its cells.
_LEAST_EXCESS = 0.05
# Sums that vary no more than noise does are still taken for different by this share of it.
_LEAST_SHARE = 0.01
_DAY, _WEEK = timedelta(days=1), timedelta(weeks=1)
_FEWEST_WEEKS, _WORKING_DAYS = 2, 5
# Spreads of factors of hours that are tried, on so many cells.
_SPREADS = np.array((0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.4))
_ABOUT_AS_WELL, _CELLS_TO_FIT = 2.0, 2**16


@dataclass(frozen=True, eq=False)
class Seen:
    """What the parts of a model see of a release."""

    release: Release

    @property
    def symbols(self) -> Ints32:
        """What was published, as numbers from 0, shape (n_regions, n_epochs)."""
        return self.release.symbols

    @cached_property
    def tables(self) -> CountTables:
        """What the mechanism makes of cells of known rates."""
        return count_tables(self.release.mechanism, self.release.facts.most_count)

    @cached_property
    def completion(self) -> Completion:
        """What hidden counts are completed to."""
        return completion(self.release.mechanism, self.release.facts.most_count)

    def excess(self, sums: Floats, n_cells: int) -> Floats:
        """Return sums less what empty cells give, as likely as they can be told from noise.

        The noise in a sum is known: that of empty cells, and about normal. What the sums vary by
        beyond it is taken for real. Each sum is then replaced by its mean given what was published,
        under a normal law of sums that are not negative.
        """
        excess = sums - n_cells * self.tables.empty_mean
        noise = n_cells * self.tables.empty_variance
        if noise > 0:
            real = max(float(excess.var()) - noise, _LEAST_SHARE * noise)
            kept = real / (real + noise)
            centre = max(float(excess.mean()), 0.0)
            likely = np.asarray(centre + kept * (excess - centre), np.float64)
            deviation = float(np.sqrt(kept * noise))
            z = likely / deviation
            log_density = -0.5 * z**2 - 0.5 * np.log(2 * np.pi)
            excess = likely + deviation * np.exp(log_density - log_ndtr(z))
        return np.asarray(np.maximum(excess, _LEAST_EXCESS))


class Rates(NamedTuple):
    """Logarithms of rates by cell, shape (n_regions, n_epochs) each."""

    base: Floats
    """As fitted to all counts: by these, levels of lines are told."""
    at_cells: Floats
    """As seen by whoever asks about one cell, whose own count some parts then leave out."""

    def moved(self, by: Floats) -> Rates:
        """Return rates that are larger by so much on a logarithmic scale."""
        return Rates(self.base + by, self.at_cells + by)


Part: TypeAlias = Callable[[Seen, Rates], Rates]


def factors(seen: Seen, so_far: Rates) -> Rates:
    """Multiply by a factor of the region and one of the epoch; of trips, by those of both ends.

    The factors are those at which the mechanism is expected to publish the sums that it did
    publish. Where the sums are mostly noise they are drawn together first.
    """
    regions, counts = seen.release.regions, filled(seen.release)
    expected = Expected(
        seen.tables.mean - seen.tables.empty_mean, seen.tables.first, seen.tables.step
    )
    if isinstance(regions, Pairs):
        return so_far.moved(np.add.outer(*fit_places(regions, _of_ends(seen, regions), expected)))
    rows, columns = (seen.excess(counts.sum(axis=1 - i), counts.shape[1 - i]) for i in (0, 1))
    # Both must add up to the same, or the fit would wander.
    columns *= rows.sum() / columns.sum()
    return so_far.moved(np.add.outer(*kernels.fit_rank_one(rows, columns, *expected, _ROUNDS)))


def _of_ends(seen: Seen, pairs: Pairs) -> tuple[Floats, Floats, Floats]:
    """Return the sums of what was published by origin, destination and epoch, less empty cells."""
    counts, n = filled(seen.release), len(pairs.places)
    by_pair, n_epochs = counts.sum(axis=1), counts.shape[1]
    sums = []
    for end in (pairs.origins, pairs.destinations):
        # Pairs that are not published count as empty.
        absent = (n - np.bincount(end, minlength=n)) * n_epochs * seen.tables.empty_mean
        sums.append(seen.excess(np.bincount(end, by_pair, n) + absent, n * n_epochs))
    sums.append(seen.excess(counts.sum(axis=0), len(pairs)))
    by_origin, by_destination, by_epoch = (one * (sums[0].sum() / one.sum()) for one in sums)
    return by_origin, by_destination, by_epoch


def low_rank(seen: Seen, so_far: Rates) -> Rates:
    """Add components that stand out of the noise of single cells, or of sums over epochs."""
    regions = seen.release.regions
    rounds = _COMPLETIONS if seen.release.mechanism.changes_counts else 1
    given = seen.symbols, so_far.base, seen.completion, rounds
    if isinstance(regions, Pairs):
        return so_far.moved(components_of_places(regions, *given)[:, None])
    found = find_components(*given)
    return so_far if found is None else so_far.moved(found.astype(np.float64))


def hours_of_week(seen: Seen, so_far: Rates) -> Rates:
    """Multiply by factors of hours of a kind of day, then of the week, from two weeks on.

    Each region was counted several times at the same hour then. What these counts have in common is
    a factor of their rates. Before they are seen its logarithm is normal, its mean is 1, and its
    spread is the one that makes all counts most likely. The counts of an hour then narrow it down.
    A cell's own count is not looked at: it would hide whoever makes it a habit to be there. Trips
    have none: most counts of two places are those of few people, and their level is not known yet.
    """
    if isinstance(seen.release.regions, Pairs):
        return so_far
    for kind in _kinds_of_hours(seen.release.epochs):
        so_far = Rates(so_far.base, so_far.at_cells + _alike(seen, so_far.at_cells, kind))
    return so_far


def _kinds_of_hours(epochs: Epochs) -> list[Ints64]:
    """Return the kind of each epoch: its hour of a working day or a day off, and of the week."""
    if epochs.n_whole(_WEEK) < _FEWEST_WEEKS or epochs.length >= _WEEK:
        return []
    starts = epochs.local_starts
    weekday = np.array([start.weekday() for start in starts])
    into_day = np.array([start.hour * 3600 + start.minute * 60 + start.second for start in starts])
    slot = into_day // min(int(epochs.length.total_seconds()), int(_DAY.total_seconds()))
    n_slots = slot.max() + 1
    return [slot + (weekday >= _WORKING_DAYS) * n_slots, slot + weekday * n_slots]


def _alike(seen: Seen, log_rates: Floats, kind: Ints64) -> Floats:
    """Return the log factor of each cell by the others of its region at a time of its kind."""
    _, time, sizes = np.unique(kind, return_inverse=True, return_counts=True)
    place, order = np.empty_like(time), np.argsort(time, kind="stable")
    place[order] = np.arange(time.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    shape = len(log_rates), sizes.size, int(sizes.max())
    symbols, rates = np.full(shape, -1, np.int32), np.zeros(shape)
    symbols[:, time, place], rates[:, time, place] = seen.symbols, log_rates
    lines = symbols.reshape(-1, shape[2]), rates.reshape(-1, shape[2])
    used = some(len(lines[0]), max(_CELLS_TO_FIT // shape[2], 1))
    tried = lines[0][used], lines[1][used], seen.tables
    spread = likeliest_spread(*tried, _SPREADS, _ABOUT_AS_WELL)
    # People are found where people go, which adds the squared spread to the expected logarithm.
    expected = np.full(len(lines[0]), spread**2 / 2)
    found = posterior(*lines, expected, spread, seen.tables)
    without = found.means_without_each(*lines, seen.tables)
    return np.asarray(without.reshape(shape)[:, time, place])


RANK_ONE: tuple[Part, ...] = (factors,)
"""A factor of the region times one of the epoch, as earlier versions did."""
LOW_RANK: tuple[Part, ...] = (*RANK_ONE, low_rank)
"""What whole regions and epochs have in common as well."""
USUAL: tuple[Part, ...] = (*LOW_RANK, hours_of_week, near)
"""All structure that stands out of a release's noise."""


def fit_rates(release: Release, parts: Sequence[Part] = USUAL) -> Rates:
    """Fit rates to a release, through its mechanism, part by part."""
    seen, found = Seen(release), Rates(*[np.zeros(release.symbols.shape)] * 2)
    for part in parts:
        found = part(seen, found)
    return found


def mechanism_marginals(release: Release) -> Marginals:
    """Estimate where, when and how often people are seen from rates fitted to a release."""
    rates = np.exp(fit_rates(release, LOW_RANK).base)
    by_region, by_epoch, total = rates.sum(axis=1), rates.sum(axis=0), float(rates.sum())
    mean = max(total / release.group_size, LEAST_MEAN)
    return Marginals(by_region / total, by_epoch / total, mean)
