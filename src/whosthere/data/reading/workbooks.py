"""How far the cells of a workbook reach, found before it is read.

What reads workbooks makes room for all rows and columns up to the last cell that holds something,
so that one stray cell may ask for more memory than there is, which ends the process.
"""

from __future__ import annotations

import io
import re
import zipfile
from contextlib import suppress
from xml.parsers import expat

from whosthere.errors import RecordsError

_MOST_CELLS = 20_000_000
_SHEETS = re.compile(r"content\.xml|xl/worksheets/[^/]+\.xml", re.IGNORECASE)
_PLACE = re.compile(r"([A-Z]+)(\d+)")


def refuse_stray_cells(workbook: bytes) -> None:
    """Refuse an XLSX or ODS workbook whose table would hold too many cells, most of them empty."""
    with zipfile.ZipFile(io.BytesIO(workbook)) as archive:
        for member in filter(_SHEETS.fullmatch, archive.namelist()):
            reach = _Reach()
            parser = expat.ParserCreate()
            parser.StartElementHandler = reach.begin
            with suppress(expat.ExpatError), archive.open(member) as sheet:
                parser.ParseFile(sheet)
            if reach.rows * reach.columns > _MOST_CELLS:
                raise RecordsError(
                    f"its cells reach to row {reach.rows:,} and column {reach.columns:,}",
                    fix="Delete the cells that are far from the table, or save it as CSV",
                )


class _Reach:
    """The last row and column that hold something, counted from 1, while a sheet is parsed."""

    rows = columns = 0
    _row = _column = 0

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        match name.rpartition(":")[2]:
            case "row":
                self._row, self._column = int(attributes.get("r", self._row + 1)), 0
            case "c":
                self._column += 1
                if place := _PLACE.fullmatch(attributes.get("r", "")):
                    self._row, self._column = int(place[2]), _number(place[1])
            case "table":
                self._row = 0
            case "table-row":
                self._row += int(attributes.get("table:number-rows-repeated", 1))
                self._column = 0
            case "table-cell" | "covered-table-cell":
                self._column += int(attributes.get("table:number-columns-repeated", 1))
            # The content of a cell, which begins within it.
            case "v" | "is" | "p":
                self.rows = max(self.rows, self._row)
                self.columns = max(self.columns, self._column)


def _number(letters: str) -> int:
    """Return the number of a column, 1 for A and 27 for AA."""
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number
