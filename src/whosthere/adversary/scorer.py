"""The likelihood ratio: tables of a release, and what they say of people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from whosthere.adversary.count_tables import CountTables, count_tables
from whosthere.adversary.levels import Levels, Lines
from whosthere.adversary.rates import USUAL, Part, Rates, fit_rates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whosthere.arrays import Floats
    from whosthere.privacy.release import Release


@dataclass(frozen=True, eq=False)
class Table:
    """One table of a release, as whoever scores it sees it: rates, lines, levels."""

    release: Release
    rates: Rates
    lines: Lines
    levels: Levels

    @classmethod
    def of(
        cls,
        release: Release,
        parts: Sequence[Part] = USUAL,
        *,
        rates: Rates | None = None,
        by_region: bool = False,
    ) -> Table:
        """Fit rates, if they are not given, and levels."""
        rates = fit_rates(release, parts) if rates is None else rates
        lines = Lines.of(release.regions, release.symbols.shape, by_region=by_region)
        tables = count_tables(release.mechanism, release.facts.most_count)
        at = lines.take(release.symbols, -1), lines.take(rates.base), tables
        return cls(release, rates, lines, Levels.of(*at, relative=lines.are_relative))

    @property
    def tables(self) -> CountTables:
        """What the mechanism makes of cells where one person more is."""
        return count_tables(self.release.mechanism, self.release.facts.most_count)

    def log_levels_without_each(self) -> Floats:
        """Return the mean log level at each cell, whose count is not looked at, by cell."""
        symbols, log_rates = (
            self.lines.take(self.release.symbols, -1),
            self.lines.take(self.rates.base),
        )
        means = self.levels.means_without_each(symbols, log_rates, self.tables)
        return self.lines.put(means, self.release.symbols.shape)
