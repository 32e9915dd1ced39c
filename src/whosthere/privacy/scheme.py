"""What a publisher does: which tables of the same people are published, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from whosthere.privacy.layout import ORDINARY, Layout

if TYPE_CHECKING:
    from whosthere.privacy.mechanism import Mechanism


@dataclass(frozen=True)
class TableScheme:
    """How one table is made.

    Parameters
    ----------
    mechanism
        What is done to its counts.
    layout
        Which cells it has.
    """

    mechanism: Mechanism
    layout: Layout = ORDINARY

    def __str__(self) -> str:
        return f"{self.mechanism}" + ("" if self.layout == ORDINARY else f" over {self.layout}")


@dataclass(frozen=True)
class Scheme:
    """What is published: one or several tables of the same people.

    Parameters
    ----------
    tables
        How each table is made.
    group_size
        People in a publication, m.
    """

    tables: tuple[TableScheme, ...]
    group_size: int

    @classmethod
    def of(cls, mechanism: Mechanism, group_size: int) -> Self:
        """Return the ordinary case: one table over the regions and epochs of the traces."""
        return cls((TableScheme(mechanism),), group_size)

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """What is done to the counts of each table."""
        return tuple(table.mechanism for table in self.tables)

    @property
    def key(self) -> tuple[str | int, ...]:
        """What random numbers belong to: what is done, however it is written, and to how many.

        Not the layout: the same random numbers meet the same people in coarser tables.
        """
        return *(mechanism.content for mechanism in self.mechanisms), self.group_size

    @property
    def how(self) -> str:
        """How the tables are made, without the number of people."""
        return " + ".join(map(str, self.tables))

    def __str__(self) -> str:
        return f"{self.how}, m={self.group_size}"
