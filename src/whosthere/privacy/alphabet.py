"""What can be published for a cell: whole numbers in a range, or "withheld"."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

WITHHELD = int(np.iinfo(np.int32).min)
"""Stands among published values for a count that is withheld; less than every number."""


class Span(NamedTuple):
    """All whole numbers from the lowest to the highest, both included."""

    lowest: int
    highest: int

    def holds(self, values: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Tell which values lie in it."""
        return (self.lowest <= values) & (values <= self.highest)


class Alphabet(NamedTuple):
    """The symbols that a mechanism can publish for a group, numbered from 0 in their order.

    "Withheld" comes first, where it is possible. So compiled code, tables and tallies see plain
    numbers from 0 on, which are as small as the published values.
    """

    lowest: int
    highest: int
    withholds: bool

    @property
    def size(self) -> int:
        """How many symbols there are."""
        return self.highest - self.base + 1

    @property
    def base(self) -> int:
        """The published value of symbol 0, unless that is "withheld"."""
        return self.lowest - self.withholds

    def symbols(self, values: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the symbols of published values, `WITHHELD` among them; no copy if the same."""
        if not self.withholds:
            return values if self.base == 0 else values - np.int32(self.base)
        return np.where(values == WITHHELD, np.int32(0), values - np.int32(self.base))

    def values(self, symbols: NDArray[np.integer]) -> NDArray[np.int32]:
        """Return the published values that symbols stand for."""
        values = symbols.astype(np.int32) + np.int32(self.base)
        return np.where(symbols == 0, np.int32(WITHHELD), values) if self.withholds else values
