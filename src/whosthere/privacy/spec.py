"""Reading a mechanism from text such as ``laplace(eps=1, unit=event) | suppress(k=1)``.

::

    mechanism = step {"|" step}
    step      = name ["(" [key "=" value {"," key "=" value}] ")"]

``raw`` and the presets are names without parameters. ``raw`` stands for no step at all, so it
changes nothing within a longer mechanism. Letter case and white space are free.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from whosthere.errors import SpecError, suggestion
from whosthere.privacy.presets import PRESETS
from whosthere.privacy.steps import DiscreteLaplace, Gaussian, Laplace, Round, Step, Suppress
from whosthere.privacy.units import UNITS, Event, Unit, User, UserDay

if TYPE_CHECKING:
    from collections.abc import Callable

RAW = "raw"
_MARKS = frozenset("|(),=")
_TOKEN = re.compile(r"[|(),=]|[^\s|(),=]+")
_SHOWN = 60


class _Token(NamedTuple):
    """A word or mark of the text, and the number of its first character, from 1."""

    text: str
    place: int


def parse_steps(text: str) -> tuple[Step, ...]:
    """Read the steps of a mechanism, none for ``raw``."""
    return _Reader(text).mechanism()


class _Reader:
    """Goes through the words and marks of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        end = _Token("", len(text) + 1)
        self._tokens = [_Token(t[0].lower(), t.start() + 1) for t in _TOKEN.finditer(text)] + [end]
        self._next = 0

    def mechanism(self) -> tuple[Step, ...]:
        steps = self._step()
        while self._peek().text:
            self._expect("|")
            steps += self._step()
        return steps

    def _step(self) -> tuple[Step, ...]:
        name = self._word("a mechanism", fix=f"Known: {', '.join(_KINDS)}")
        kind = _KINDS.get(name.text)
        if kind is None:
            fix = suggestion(name.text, _KINDS)
            raise self._error(f"there is no mechanism {_quoted(name.text)}", name, fix=fix)
        values = self._arguments(name)
        for key, _ in values.values():
            if key.text not in kind.keys:
                fix = suggestion(key.text, kind.keys) if kind.keys else f"Write {kind.example}"
                raise self._error(f"{name.text} has no parameter {_quoted(key.text)}", key, fix=fix)
        try:
            return kind.make({key: value.text for key, (_, value) in values.items()})
        except _ParameterError as error:
            place = values[error.key][0] if error.key in values else name
            fix = error.fix or f"Write it like {kind.example}"
            raise self._error(error.problem, place, fix=fix) from None
        except SpecError as error:
            raise self._error(error.problem, name, fix=error.fix) from None

    def _arguments(self, name: _Token) -> dict[str, tuple[_Token, _Token]]:
        """Read what is between parentheses, if any: the key and the value, by key."""
        values: dict[str, tuple[_Token, _Token]] = {}
        if self._peek().text in {"", "|"}:
            return values
        self._expect("(", "or '|'")
        while self._peek().text != ")":
            if values:
                self._expect(",", "or ')'")
            key = self._word(f"a parameter of {name.text}")
            self._expect("=")
            value = self._word(f"a value for {_quoted(key.text)}")
            if key.text in values:
                raise self._error(
                    f"{_quoted(key.text)} is given twice", key, fix="Keep one of them"
                )
            values[key.text] = key, value
        self._expect(")")
        return values

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _word(self, wanted: str, *, fix: str | None = None) -> _Token:
        token = self._peek()
        if not token.text or token.text in _MARKS:
            raise self._error(f"expected {wanted}, found {_found(token)}", token, fix=fix)
        self._next += 1
        return token

    def _expect(self, mark: str, alternative: str = "") -> None:
        token = self._peek()
        if token.text != mark:
            wanted = f"{mark!r} {alternative}".rstrip()
            raise self._error(f"expected {wanted}, found {_found(token)}", token)
        self._next += 1

    def _error(self, problem: str, token: _Token, *, fix: str | None = None) -> SpecError:
        where = f"mechanism {_quoted(self._text)}, character {token.place}"
        return SpecError(problem, where=where, fix=fix)


class _ParameterError(Exception):
    """A parameter that is missing or cannot be read; `key` says which."""

    def __init__(self, problem: str, key: str, fix: str | None = None) -> None:
        super().__init__(problem)
        self.problem, self.key, self.fix = problem, key, fix


@dataclass(frozen=True)
class _Kind:
    """What a name stands for: the parameters it takes, and how they make steps."""

    make: Callable[[dict[str, str]], tuple[Step, ...]]
    keys: tuple[str, ...]
    example: str


def _integer(values: dict[str, str], key: str) -> int:
    try:
        return int(_given(values, key))
    except ValueError:
        raise _ParameterError(
            f"{key} must be a whole number, not {_quoted(values[key])}", key
        ) from None


def _number(values: dict[str, str], key: str) -> float:
    try:
        return float(_given(values, key))
    except ValueError:
        raise _ParameterError(f"{key} must be a number, not {_quoted(values[key])}", key) from None


def _given(values: dict[str, str], key: str) -> str:
    if key not in values:
        raise _ParameterError(f"the parameter {key} is missing", key)
    return values[key]


def _unit(values: dict[str, str]) -> Unit:
    name = values.get("unit", Event.name)
    if name not in UNITS:
        raise _ParameterError(f"there is no unit {_quoted(name)}", "unit", suggestion(name, UNITS))
    if name != Event.name:
        bounded = UserDay if name == UserDay.name else User
        return bounded(_integer(values, "max_visits"))
    if "max_visits" in values:
        fix = f"Leave it out, or use unit={UserDay.name} or unit={User.name}"
        raise _ParameterError(f"unit={name} takes no max_visits", "max_visits", fix)
    return Event()


def _suppress(values: dict[str, str]) -> tuple[Step, ...]:
    return (Suppress(_integer(values, "k")),)


def _round(values: dict[str, str]) -> tuple[Step, ...]:
    return (Round(_integer(values, "to")),)


def _laplace(values: dict[str, str]) -> tuple[Step, ...]:
    return (Laplace(_number(values, "eps"), _unit(values)),)


def _discrete_laplace(values: dict[str, str]) -> tuple[Step, ...]:
    return (DiscreteLaplace(_number(values, "eps"), _unit(values)),)


def _gaussian(values: dict[str, str]) -> tuple[Step, ...]:
    delta = _number(values, "delta") if "delta" in values else Gaussian.delta
    return (Gaussian(_number(values, "eps"), delta, _unit(values)),)


def _fixed(name: str, steps: tuple[Step, ...]) -> _Kind:
    return _Kind(lambda _: steps, (), name)


_BOUND = "unit=user-day, max_visits=10"
_NOISE_KEYS = ("eps", "unit", "max_visits")
_KINDS = {
    RAW: _fixed(RAW, ()),
    Suppress.name: _Kind(_suppress, ("k",), "suppress(k=1)"),
    Round.name: _Kind(_round, ("to",), "round(to=5)"),
    Laplace.name: _Kind(_laplace, _NOISE_KEYS, f"laplace(eps=1, {_BOUND})"),
    DiscreteLaplace.name: _Kind(
        _discrete_laplace, _NOISE_KEYS, f"discrete-laplace(eps=1, {_BOUND})"
    ),
    Gaussian.name: _Kind(
        _gaussian, ("eps", "delta", "unit", "max_visits"), f"gaussian(eps=1, delta=1e-6, {_BOUND})"
    ),
    **{name: _fixed(name, preset.steps) for name, preset in PRESETS.items()},
}


def _found(token: _Token) -> str:
    return _quoted(token.text) if token.text else "the end"


def _quoted(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")
