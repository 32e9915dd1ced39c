"""How values show themselves: in one line, or as pieces of HTML in a notebook.

Everything that comes in is escaped. Nothing here ever shows a user id or a whole array: what is
handed in must not hold one.
"""

from __future__ import annotations

import re
import tomllib
from functools import singledispatch
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LEFT = 'style="text-align:left"'
# What changes how a terminal shows the text around it: controls, and marks of direction. And what
# cannot be written: names of files that are no text.
_UNSAFE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def told(package: str, name: str) -> dict[str, Any]:
    """Return what a TOML file beside the code says: words and numbers that are no code."""
    return tomllib.loads((files(package) / f"{name}.toml").read_text(encoding="utf-8"))


@singledispatch
def first_screen(value: object) -> str:
    """Return what a report begins with, as a piece of HTML; empty for what has no report.

    Reports are made in a room above the results that they are about, so the room of reports
    registers here how a result is shown.
    """
    del value
    return ""


def in_one_line(name: str, *parts: str) -> str:
    """Return a value's `repr`, such as ``<Regions: 100, with positions>``."""
    return f"<{name}: {', '.join(parts)}>"


class Shown:
    """A value that shows itself by a few facts: in one line, and as a table in a notebook."""

    def _facts(self) -> dict[str, object]:
        """Return what is shown, numbers under the word for what they count."""
        raise NotImplementedError

    def __repr__(self) -> str:
        parts = (
            f"{fact:,} {what}" if isinstance(fact, int) else str(fact)
            for what, fact in self._facts().items()
        )
        return in_one_line(type(self).__name__, *parts)

    def _repr_html_(self) -> str:
        return facts_table(type(self).__name__, self._facts())


def counted(n: int, what: str, several: str = "") -> str:
    """Write a number with what it counts: ``1 target``, ``1,200 targets``."""
    return f"{n:,} {what}" if n == 1 else f"{n:,} {several or what + 's'}"


def duration(seconds: float) -> str:
    """Write a time in the unit that suits it."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def inert(text: str) -> str:
    """Return text from anywhere so that a terminal only shows it; the rest is seen as escapes."""
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def facts_table(name: str, facts: Mapping[str, object]) -> str:
    """Return a value as an HTML table with one row for each fact."""
    rows = "".join(
        f"<tr><th {_LEFT}>{escape(what)}</th><td>{escape(_shown(value))}</td></tr>"
        for what, value in facts.items()
    )
    return f"<table><caption>{escape(name)}</caption><tbody>{rows}</tbody></table>"


def table(
    header: Sequence[str], rows: Sequence[Sequence[object]], *, titles: Sequence[str] = ()
) -> str:
    """Return an HTML table; titles explain columns where the pointer rests on their heads."""
    heads = "".join(
        f'<th {_LEFT} title="{escape(title)}">{escape(name)}</th>'
        for name, title in zip(header, titles or [""] * len(header), strict=True)
    )
    body = "".join(
        f"<tr>{''.join(f'<td {_LEFT}>{escape(str(cell))}</td>' for cell in row)}</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def paragraph(text: str, *, strong: str = "") -> str:
    """Return a paragraph, with words in bold before it."""
    bold = f"<strong>{escape(strong)}</strong> " if strong else ""
    return f"<p>{bold}{escape(text)}</p>"


def stacked(*parts: str) -> str:
    """Return parts that are HTML already, one below the other."""
    return f"<div>{''.join(parts)}</div>"


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
