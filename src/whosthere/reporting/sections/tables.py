"""Tables to read, sort and filter."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from whosthere.reporting.numbers import interval, number, shortened
from whosthere.reporting.texts import texts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from whosthere.auditing.verdict import Decision, Verdict
    from whosthere.inference.finding import Finding


_FITS_PAPER = 12
"""Columns that can stand side by side on paper."""
_WIDEST = 24
"""Letters that a line of one column is given on paper, at most."""
_BOLD = 1.2
"""How wide bold letters are, in letters."""


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

    @property
    def fits_paper(self) -> bool:
        """Whether the columns can stand side by side on paper, whatever the font."""
        return len(self.heads) <= _FITS_PAPER

    @cached_property
    def shares(self) -> tuple[float, ...]:
        """The share of the width of paper that each column is given, by counting letters."""
        letters = [
            _letters(head.words, [row[column] for row in self.rows])
            for column, head in enumerate(self.heads)
        ]
        return tuple(each / sum(letters) for each in letters)


def _letters(head: str, cells: Iterable[Cell]) -> float:
    """Return how long the lines of a column should be: its longest word, or half of a text."""
    words = [_BOLD * len(word) for word in head.split()]
    for cell in cells:
        text = [f"\N{CHECK MARK} {cell.text}"] if cell.decision else cell.text.split()
        size = _BOLD if cell.decision else 1
        words += [len(cell.detail), len(cell.text) / 2, *(size * len(word) for word in text)]
    return 1 + min(max(words), _WIDEST)


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
