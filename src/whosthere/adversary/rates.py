"""Background rates: how many others to expect in each cell, from the release alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_ndtr

from whosthere import kernels
from whosthere.adversary.components import Completion, completion, find_components, log_share
from whosthere.adversary.count_tables import CountTables, count_tables, filled
from whosthere.adversary.flow_rates import Expected, fit_places, with_components
from whosthere.adversary.marginals import LEAST_MEAN, Marginals
from whosthere.adversary.weekly import Alike, fit_weekly
from whosthere.arrays import Floats, Floats32, Ints64, frozen
from whosthere.data.cells import region_and_epoch
from whosthere.data.flows import Pairs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.data.traces import Traces
    from whosthere.privacy.release import Release

_ROUNDS, _SHAPED_ROUNDS = 12, 4
# Hidden counts are completed so often, each time by better rates.
_COMPLETIONS = 4
# A row or column is never taken for emptier than this many people in all of its cells.
_LEAST_EXCESS = 0.05
# Sums that vary no more than noise does are still taken for different by this share of it.
_LEAST_SHARE = 0.01
_CELLS_AT_A_TIME = 2**18
FLAT = frozen(np.zeros((1, 1)), np.float64)


@dataclass(frozen=True, eq=False)
class Rates:
    """Rates of people to expect in each cell.

    A cell's base rate is exp(row + column + shape). The rate is that plus `left` times `right`, in
    units of the deviation that a count has at the base rate, and a small share of it at least.

    `rows` and `columns` are logarithms by region and by epoch, `shape` by cell, shape (n_regions,
    n_epochs), or (1, 1) where there are none. `left` and `right` are components beyond the base,
    shapes (n_regions, k) and (n_epochs, k), and `completion` is where the deviations come from.
    `weekly` are factors of hours of the week, which single cells are multiplied by where two weeks
    or more are published. `by_cell` are the logarithms of rates, shape (n_cells,), where they were
    looked up beforehand.
    """

    rows: Floats
    columns: Floats
    shape: Floats
    left: Floats32
    right: Floats32
    completion: Completion
    weekly: tuple[Alike, ...] = ()
    by_cell: Floats | None = None

    def looked_up(self) -> Rates:
        """Return the same rates for who asks for more cells than there are."""
        cells = np.arange(self.rows.size * self.columns.size)
        parts = np.array_split(cells, cells.size // _CELLS_AT_A_TIME + 1)
        return replace(self, by_cell=np.concatenate([self.log_rates(some) for some in parts]))

    @property
    def n_components(self) -> int:
        """How many components there are beyond the base rates."""
        return int(self.left.shape[1])

    def log_rates(self, cells: NDArray[np.integer]) -> Floats:
        """Return the logarithm of the rate of each given cell."""
        if self.by_cell is not None:
            return np.asarray(self.by_cell[cells])
        region, epoch = region_and_epoch(cells, self.columns.size)
        base = self.rows[region] + self.columns[epoch]
        if self.shape.size > 1:
            base = base + self.shape[region, epoch]
        if not self.n_components:
            return np.asarray(base)
        extra = (self.left[region] * self.right[epoch]).sum(axis=1)
        return self._with_components(base, extra)

    def log_rates_by_hour(self, cells: NDArray[np.integer]) -> Floats:
        """Return logarithms of rates with the factors of hours of the week."""
        region, epoch = region_and_epoch(cells, self.columns.size)
        by_hour = (alike.log_factors[region, alike.time[epoch]] for alike in self.weekly)
        return np.asarray(sum(by_hour, start=self.log_rates(cells)))

    def log_rates_for(self, cells: NDArray[np.integer], person: Ints64 | int = 0) -> Floats:
        """Return the same with factors that do not know the counts at a person's own cells.

        `person` says whose each cell is, numbered from 0.
        """
        found = self.log_rates(cells)
        for alike in self.weekly:
            found = found + alike.log_factors_for(cells, person)
        return found

    def factors(self, axis: int) -> Floats:
        """Return the logarithms of the factors of regions (0) or of epochs (1)."""
        return self.rows if axis == 0 else self.columns

    def log_rates_of_lines(self, lines: Ints64 | slice, axis: int) -> Floats:
        """Return logarithms of the rates of all cells of regions (0) or epochs (1), a row each."""
        sides = (self.rows, self.left, self.shape), (self.columns, self.right, self.shape.T)
        (own, left, shape), (along, right, _) = sides if axis == 0 else sides[::-1]
        base = own[lines, None] + along
        if shape.size > 1:
            base = base + shape[lines]
        if not self.n_components:
            return np.asarray(base)
        return self._with_components(base, left[lines] @ right.T)

    def dense(self) -> Floats:
        """Return the rate of every cell, shape (n_regions, n_epochs)."""
        return np.asarray(np.exp(self.log_rates_of_lines(slice(None), 0)))

    def _with_components(self, base: Floats, extra: Floats32) -> Floats:
        """Return logarithms of rates, given those of base rates and what components add."""
        return np.asarray(base + log_share(extra, self.completion.deviations(base) / np.exp(base)))

    @property
    def _is_plain(self) -> bool:
        return self.shape.size == 1 and not self.n_components

    def total(self) -> float:
        """Return how many visits to expect in all."""
        if self._is_plain:
            return float(np.exp(self.rows).sum() * np.exp(self.columns).sum())
        return float(self.dense().sum())

    def time_marginal(self) -> Floats:
        """Return the probability that a visit is in each epoch, shape (n_epochs,)."""
        by_epoch = np.exp(self.columns) if self._is_plain else self.dense().sum(axis=0)
        return np.asarray(by_epoch / by_epoch.sum())


def fit_rates(release: Release, shape: Floats = FLAT, *, low_rank: bool = True) -> Rates:
    """Fit rates to a release, through its mechanism.

    A cell's base rate is a factor of its region times one of its epoch (times `shape`, given as
    logarithms). The factors are those at which the mechanism is expected to publish the sums
    that it did publish. Where the sums are mostly noise they are drawn together first. With
    `low_rank`, as many components are added as stand out of the noise of single cells, and factors
    of hours of the week where two weeks or more are published. Flows have factors of origins,
    destinations and epochs, and components of origins by destinations.
    """
    tables = count_tables(release.mechanism, release.facts.most_count)
    completed = completion(release.mechanism, release.facts.most_count)
    rounds = (_COMPLETIONS if release.mechanism.changes_counts else 1) if low_rank else 0
    if isinstance(release.regions, Pairs) and shape.size == 1:
        return _fit_flows(release, release.regions, tables, completed, rounds)
    symbols, counts = release.symbols, filled(release)
    by_row, by_column = (
        _excess(counts.sum(axis=axis), symbols.shape[axis], tables) for axis in (1, 0)
    )
    # Both must add up to the same, or the fit would wander.
    by_column *= by_row.sum() / by_column.sum()
    expected, first, step = tables.mean - tables.empty_mean, tables.first, tables.step
    if shape.size > 1:
        factors = kernels.fit_shaped(
            by_row, by_column, shape, expected, first, step, _SHAPED_ROUNDS
        )
    else:
        factors = kernels.fit_rank_one(by_row, by_column, expected, first, step, _ROUNDS)
    base = (*factors, shape)
    found = Rates(*base, *find_components(symbols, base, completed, rounds), completed)
    if not low_rank:
        return found
    log_rates = found.log_rates_of_lines(slice(None), 0)
    return replace(found, weekly=fit_weekly(symbols, log_rates, tables, release.epochs))


def _fit_flows(
    release: Release, pairs: Pairs, tables: CountTables, completed: Completion, rounds: int
) -> Rates:
    counts, n, n_epochs = filled(release), len(pairs.places), release.epochs.n
    by_pair = counts.sum(axis=1)
    sums = []
    for end in (pairs.origins, pairs.destinations):
        # Pairs that are not published count as empty.
        absent = (n - np.bincount(end, minlength=n)) * n_epochs * tables.empty_mean
        sums.append(_excess(np.bincount(end, by_pair, n) + absent, n * n_epochs, tables))
    sums.append(_excess(counts.sum(axis=0), len(pairs), tables))
    by_origin, by_destination, by_epoch = (one * (sums[0].sum() / one.sum()) for one in sums)
    expected = Expected(tables.first, tables.step, tables.mean - tables.empty_mean)
    rows, columns = fit_places(pairs, (by_origin, by_destination, by_epoch), expected)
    rows = with_components(pairs, release.symbols, (rows, columns), completed, rounds)
    left, right = (np.zeros((size, 0), np.float32) for size in counts.shape)
    return Rates(rows, columns, FLAT, left, right, completed)


def _excess(sums: NDArray[np.number], n_cells: int, tables: CountTables) -> Floats:
    """Return sums less what empty cells give, as likely as they can be told from noise.

    The noise in a sum is known: that of empty cells, and about normal. What the sums vary by
    beyond it is taken for real. Each sum is then replaced by its mean given what was published,
    under a normal law of sums that are not negative.
    """
    excess = sums - n_cells * tables.empty_mean
    noise = n_cells * tables.empty_variance
    if noise > 0:
        real = max(float(excess.var()) - noise, _LEAST_SHARE * noise)
        kept = real / (real + noise)
        centre = max(float(excess.mean()), 0.0)
        likely = np.asarray(centre + kept * (excess - centre), dtype=np.float64)
        deviation = float(np.sqrt(kept * noise))
        z = likely / deviation
        log_density = -0.5 * z**2 - 0.5 * np.log(2 * np.pi)
        excess = likely + deviation * np.exp(log_density - log_ndtr(z))
    return np.asarray(np.maximum(excess, _LEAST_EXCESS))


def reference_shape(reference: Traces) -> Floats:
    """Return how far cells differ from region times epoch among real people, as logarithms.

    A cell's own count is trusted as far as the counts vary beyond chance: it is drawn towards
    what its region and epoch let expect (the mean of a gamma law after a Poisson count).
    Shape (n_regions, n_epochs).
    """
    counts = reference.counts().astype(np.float64)
    total = max(counts.sum(), 1.0)
    expected = np.outer(counts.sum(axis=1) + 0.5, counts.sum(axis=0) + 0.5) / total
    beyond_chance = ((counts - expected) ** 2 - expected).sum()
    weight = float((expected**2).sum() / max(beyond_chance, 1e-9))
    return frozen(np.log((counts + weight) / (expected + weight)), np.float64)


def mechanism_marginals(release: Release) -> Marginals:
    """Estimate where, when and how often people are seen from rates fitted to a release."""
    rates = fit_rates(release)
    by_region = rates.dense().sum(axis=1)
    return Marginals(
        by_region / by_region.sum(),
        rates.time_marginal(),
        max(rates.total() / release.group_size, LEAST_MEAN),
    )
