"""Text cut into rows and fields, where a quoted field may go over several lines, or never end."""

from __future__ import annotations

import csv
import io
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# A quoted field may go over a few lines; more are a quote that was never closed.
_MOST_LINES_A_ROW = 20


def unquoted(line: str) -> str:
    """Return a line without its quoted fields."""
    return "".join(line.split('"')[::2])


def rows_of(lines: Iterable[str], separator: str | None = None) -> Iterator[tuple[int, str]]:
    """Put lines together that a quoted field goes over; yield each row and its line, from 1.

    A line whose quote is never closed, or only within another field, is a row by itself. The
    separator of fields is needed to notice the latter.
    """
    waiting = deque[tuple[int, str]]()
    coming = enumerate(lines, start=1)
    while True:
        while len(waiting) < _MOST_LINES_A_ROW and (line := next(coming, None)) is not None:
            waiting.append(line)
        if not waiting:
            return
        number, row = waiting.popleft()
        quotes = row.count('"')
        if quotes % 2:
            n_more = 0
            for _, text in waiting:
                n_more += 1
                quotes += text.count('"')
                if not quotes % 2:
                    break
            joined = row + "".join(text for _, text in islice(waiting, n_more))
            if not quotes % 2 and (separator is None or fields_of(joined, separator) is not None):
                row = joined
                for _ in range(n_more):
                    waiting.popleft()
        yield number, row


def fields_of(row: str, separator: str) -> list[str] | None:
    """Split a row; None where a quoted field is not closed, or goes on after its end."""
    lines = io.StringIO(row.rstrip("\r\n"), newline="\n")
    try:
        return next(csv.reader(lines, delimiter=separator, strict=True), [])
    except csv.Error:
        return None


def cut(text: str) -> tuple[str, str]:
    """Cut after the last line end that no quoted field holds."""
    end = text.rfind("\n") + 1
    for _ in range(_MOST_LINES_A_ROW):
        if not text.count('"', 0, end) % 2:
            break
        end = text.rfind("\n", 0, max(end - 1, 0)) + 1
    else:
        end = text.rfind("\n") + 1
    return text[:end], text[end:]
