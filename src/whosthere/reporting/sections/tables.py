"""Tables to read, sort and filter."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from whosthere.reporting.numbers import interval, number, shortened
from whosthere.reporting.texts import texts

if TYPE_CHECKING:
    from whosthere.auditing.finding import Finding
    from whosthere.auditing.verdict import Decision, Verdict


@dataclass(frozen=True)
class Head:
    """The head of a column; `term` is the entry of the glossary that explains it."""

    words: str
    term: str | None = None
    numeric: bool = True


@dataclass(frozen=True)
class Cell:
    """What stands in a cell.

    Attributes
    ----------
    text, detail
        The value, and below it its interval, or what must not be overlooked.
    sort
        What the column is sorted by; None comes last.
    note
        Why there is no value, or what else to know.
    decision
        The decision that the cell shows, in its colour.
    """

    text: str
    detail: str = ""
    sort: float | str | None = None
    note: str | None = None
    decision: Decision | None = None


@dataclass(frozen=True)
class Table:
    """Rows below heads; each row begins with what it is about."""

    caption: str
    heads: tuple[Head, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """The notes of all cells, each once."""
        cells = (cell for row in self.rows for cell in row)
        return tuple(dict.fromkeys(cell.note for cell in cells if cell.note))


def name_cell(text: str) -> Cell:
    """Return a cell with a name."""
    return Cell(text, sort=text)


def finding_cell(finding: Finding | None) -> Cell:
    """Return a finding with its interval."""
    if finding is None:
        return Cell("\N{EN DASH}")
    if finding.estimate is None:
        return Cell("not resolvable", note=finding.note)
    return Cell(
        number(finding.estimate), interval(finding), sort=finding.estimate, note=finding.note
    )


def verdict_cell(verdict: Verdict) -> Cell:
    """Return a decision with all that qualifies it."""
    return Cell(
        texts()["decisions"][verdict.decision],
        " ".join(f"({shortened(said)})" for said in verdict.qualifiers),
        sort=verdict.decision,
        decision=verdict.decision,
    )


def value_cell(value: float | None) -> Cell:
    """Return a number without an interval."""
    return Cell("\N{EN DASH}") if value is None else Cell(number(value), sort=value)
