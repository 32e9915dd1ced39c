"""Reading the text of specs: words, marks and places, before anybody knows what they mean.

::

    chain    = spec {"|" spec}
    spec     = name ["(" [argument {"," argument}] ")"]
    argument = [key "="] value
    value    = spec

A number or a plain word is a spec without arguments. Letter case and white space are free.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from whosthere.errors import SpecError, quote, shown, suggestion

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_MARKS = frozenset("|(),=")
_TOKEN = re.compile(r"[|(),=]|[^\s|(),=]+")
_MOST_DEPTH = 20


class UnreadableError(Exception):
    """Something wrong in a text, at one place of it where that is known."""

    def __init__(self, problem: str, *, place: int | None = None, fix: str | None = None) -> None:
        super().__init__(problem)
        self.problem, self.place, self.fix = problem, place, fix


@dataclass(frozen=True)
class Written:
    """A word or mark of a text, or a spec as it stands there."""

    name: str
    """The word or mark, in lower case; "" at the end of the text."""
    place: int
    """Number of its first character in the text, from 1."""
    arguments: tuple[tuple[str, Written], ...] | None = None
    """Keys and values in order; a value without a key has the key "". None without parentheses."""
    spelled: str = ""
    """The word as it stands there, for names of files."""

    def __str__(self) -> str:
        if self.arguments is None:
            return self.name
        inside = (f"{key}={value}" if key else str(value) for key, value in self.arguments)
        return f"{self.name}({', '.join(inside)})"

    def word(self) -> str:
        """Return the word, for values that take no arguments."""
        if self.arguments is not None:
            raise UnreadableError(f"{quote(str(self))} is not a plain value", place=self.place)
        return self.name


@contextmanager
def located(noun: str, known: Collection[str], text: str) -> Iterator[Reader]:
    """Give a reader of a text, and turn what is wrong at a place of it into a `SpecError`.

    `noun` is what the text should describe, such as ``mechanism``, and `known` the names there are.
    """
    if not isinstance(text, str):
        raise SpecError(f"{quote(repr(text))} is no {noun}", fix="Give a spec, or an object")
    try:
        yield Reader(noun, known, text)
    except UnreadableError as error:
        where = f"{noun} {quote(text)}, character {error.place}"
        raise SpecError(error.problem, where=where, fix=error.fix) from None


class Reader:
    """Goes through the words and marks of one text."""

    def __init__(self, noun: str, known: Collection[str], text: str) -> None:
        self._noun = f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
        self._fix = suggestion("", known)
        self._tokens = [
            Written(t[0].lower(), t.start() + 1, spelled=t[0]) for t in _TOKEN.finditer(text)
        ]
        self._tokens.append(Written("", len(text) + 1))
        self._next = 0

    def chain(self, *, single: bool = False) -> list[Written]:
        """Read the whole text as specs joined by ``|``, or as a single one."""
        parts = [self._spec(self._noun, fix=self._fix)]
        mark, wanted = ("", "the end") if single else ("|", "'|'")
        while self._peek():
            self._take(mark, wanted if parts[-1].arguments is not None else f"'(' or {wanted}")
            parts.append(self._spec(self._noun, fix=self._fix))
        return parts

    def _spec(self, wanted: str, *, fix: str | None = None, depth: int = 0) -> Written:
        word = self._tokens[self._next]
        if not word.name or word.name in _MARKS:
            raise self._unexpected(wanted, fix=fix)
        self._next += 1
        if self._peek() != "(":
            return word
        if depth == _MOST_DEPTH:
            problem = "has too many parentheses within one another"
            raise UnreadableError(problem, place=word.place)
        self._next += 1
        arguments: list[tuple[str, Written]] = []
        while self._peek() != ")":
            if arguments:
                self._take(",", "',' or ')'")
            arguments.append(self._argument(word.name, depth + 1))
        self._next += 1
        return replace(word, arguments=tuple(arguments))

    def _argument(self, name: str, depth: int) -> tuple[str, Written]:
        first = self._spec(f"a parameter of {shown(name)}", depth=depth)
        if first.arguments is not None or self._peek() in {",", ")"}:
            return "", first
        self._take("=", "'='")
        value = self._spec(f"a value for {quote(first.name)}", depth=depth)
        return first.name, replace(value, place=first.place)

    def _peek(self) -> str:
        return self._tokens[self._next].name

    def _take(self, mark: str, wanted: str) -> None:
        if self._peek() != mark:
            raise self._unexpected(wanted)
        self._next += 1

    def _unexpected(self, wanted: str, *, fix: str | None = None) -> UnreadableError:
        token = self._tokens[self._next]
        found = quote(token.name) if token.name else "the end"
        return UnreadableError(f"expected {wanted}, found {found}", place=token.place, fix=fix)
