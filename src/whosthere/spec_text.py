"""Reading the text of specs: words, marks and places, before anybody knows what they mean.

::

    chain    = spec {"|" spec}
    spec     = name ["(" [argument {"," argument}] ")"]
    argument = [key "="] value
    value    = spec

A number or a plain word is a spec without arguments. Letter case and white space are free.
"""

from __future__ import annotations

import dataclasses
import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

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
    """A spec as it stands in a text, before anybody knows what it means.

    Attributes
    ----------
    name
        The word, in lower case.
    place
        Number of its first character in the text, from 1.
    arguments
        Keys and values in order; a value without a key has the key "". None without parentheses.
    """

    name: str
    place: int
    arguments: tuple[tuple[str, Written], ...] | None = None

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


class _Token(NamedTuple):
    """A word or mark of the text, and the number of its first character, from 1."""

    text: str
    place: int


@contextmanager
def located(noun: str, known: Collection[str], text: str) -> Iterator[Reader]:
    """Give a reader of a text, and turn what is wrong at a place of it into a `SpecError`.

    Parameters
    ----------
    noun
        What the text should describe, such as ``mechanism``.
    known
        The names that there are.
    """
    if not isinstance(text, str):
        raise SpecError(f"{quote(repr(text))} is no {noun}", fix="Give its spec, as a text")
    try:
        yield Reader(noun, known, text)
    except UnreadableError as error:
        where = f"{noun} {quote(text)}, character {error.place}"
        raise SpecError(error.problem, where=where, fix=error.fix) from None


class Reader:
    """Goes through the words and marks of one text."""

    def __init__(self, noun: str, known: Collection[str], text: str) -> None:
        self._noun, self._known = noun, known
        end = _Token("", len(text) + 1)
        self._tokens = [_Token(t[0].lower(), t.start() + 1) for t in _TOKEN.finditer(text)] + [end]
        self._next = 0
        self._depth = 0

    def chain(self) -> list[Written]:
        """Read the whole text as specs joined by ``|``."""
        parts = [self._named()]
        while self._peek().text:
            self._expect("|", after=parts[-1])
            parts.append(self._named())
        return parts

    def single(self) -> Written:
        """Read the whole text as one spec."""
        spec = self._named()
        if self._peek().text:
            raise self._unexpected("the end" if spec.arguments is not None else "'(' or the end")
        return spec

    def _named(self) -> Written:
        """Read a spec of the catalogue."""
        noun = self._noun
        article = "an" if noun[0] in "aeiou" else "a"
        return self._spec(f"{article} {noun}", fix=suggestion("", self._known))

    def _spec(self, wanted: str, *, fix: str | None = None) -> Written:
        name = self._word(wanted, fix=fix)
        if self._peek().text != "(":
            return Written(name.text, name.place)
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            problem = "has too many parentheses within one another"
            raise UnreadableError(problem, place=name.place)
        self._next += 1
        arguments: list[tuple[str, Written]] = []
        while self._peek().text != ")":
            if arguments:
                self._expect(",", "or ')'")
            arguments.append(self._argument(name.text))
        self._next += 1
        self._depth -= 1
        return Written(name.text, name.place, tuple(arguments))

    def _argument(self, name: str) -> tuple[str, Written]:
        first = self._spec(f"a parameter of {shown(name)}")
        if first.arguments is not None or self._peek().text in {",", ")"}:
            return "", first
        self._expect("=")
        value = self._spec(f"a value for {quote(first.name)}")
        return first.name, dataclasses.replace(value, place=first.place)

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _word(self, wanted: str, *, fix: str | None = None) -> _Token:
        token = self._peek()
        if not token.text or token.text in _MARKS:
            raise self._unexpected(wanted, fix=fix)
        self._next += 1
        return token

    def _expect(self, mark: str, alternative: str = "", *, after: Written | None = None) -> None:
        if self._peek().text != mark:
            open_too = after is not None and after.arguments is None
            wanted = f"'(' or {mark!r}" if open_too else f"{mark!r} {alternative}".rstrip()
            raise self._unexpected(wanted)
        self._next += 1

    def _unexpected(self, wanted: str, *, fix: str | None = None) -> UnreadableError:
        token = self._peek()
        found = quote(token.text) if token.text else "the end"
        return UnreadableError(f"expected {wanted}, found {found}", place=token.place, fix=fix)
