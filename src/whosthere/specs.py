"""Text for everything that can be chosen: ``name(key=value, ...)``.

Mechanisms, attacks, knowledge and families are all written in one grammar, which stands in
`whosthere.spec_text`. What a class takes is declared at its fields with `parameter`; a `Catalogue`
lists the classes of one kind.
"""

from __future__ import annotations

import dataclasses
import math
import re
from abc import ABC, abstractmethod
from dataclasses import MISSING, dataclass, replace
from functools import cache, partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from whosthere.errors import InputError, SpecError, quote, suggestion
from whosthere.spec_text import UnreadableError, Written, located

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

OPEN = "?"
"""Stands for a value that is to be found, in the spec of a family."""
_METADATA = "whosthere.specs"
# Counts, group sizes and noise all stay below this, so that their sums fit 32-bit integers.
MOST_COUNT = 2**30
_MOST_SHOWN = 10**20


class Value(ABC):
    """A kind of value that a parameter can take."""

    words: str
    """What such a value is called, such as ``a whole number``."""

    @abstractmethod
    def read(self, written: Written, key: str) -> Any:  # noqa: ANN401 - any kind of value
        """Return the value that was written for a key, or raise `UnreadableError`."""

    def write(self, value: Any) -> str:  # noqa: ANN401
        """Write a value so that `read` gives it back."""
        return str(value)

    def check(self, value: object, key: str) -> object:  # noqa: ARG002
        """Return a value that was given for a key, in Python or in a spec, or refuse it."""
        return value


@dataclass(frozen=True)
class Text(Value):
    """A word that `make` understands, which raises a built-in error for any other."""

    words: str
    make: Callable[[str], Any]
    write: Callable[[Any], str] = str  # type: ignore[assignment]  # a function as a field
    check: Callable[[Any, str], Any] = lambda value, _key: value  # type: ignore[assignment]

    def read(self, written: Written, key: str) -> Any:  # noqa: ANN401
        word = written.word()
        try:
            return self.make(word)
        except InputError as error:
            raise UnreadableError(error.problem, place=written.place, fix=error.fix) from None
        except (ValueError, ArithmeticError):
            problem = f"{key} must be {self.words}, not {quote(word)}"
            raise UnreadableError(problem, place=written.place) from None


class Spelled(Text):
    """A word whose letter case counts, such as the name of a file."""

    def read(self, written: Written, key: str) -> Any:  # noqa: ANN401
        return super().read(replace(written, name=written.spelled), key)


@dataclass(frozen=True)
class OneOf(Value):
    """One of a few words, the `choices`."""

    choices: tuple[str, ...]

    @property
    def words(self) -> str:  # type: ignore[override]
        """The choices."""
        return " or ".join(self.choices)

    def read(self, written: Written, key: str) -> str:
        word = written.word()
        if word not in self.choices:
            raise UnreadableError(
                f"there is no {key} {quote(word)}",
                place=written.place,
                fix=suggestion(word, self.choices),
            )
        return word

    def check(self, value: object, key: str) -> object:
        if value not in self.choices:
            fix = suggestion(str(value), self.choices)
            raise SpecError(f"there is no {key} {value!r}", fix=fix)
        return value


@dataclass(frozen=True)
class Nested(Value):
    """A spec of another catalogue, such as a classifier within an attack."""

    catalogue: Callable[[], Catalogue]

    @property
    def words(self) -> str:  # type: ignore[override]
        """What the catalogue holds."""
        return " or ".join(self.catalogue().kinds)

    def read(self, written: Written, key: str) -> Any:  # noqa: ANN401, ARG002
        return self.catalogue().make(written)


def format_number(value: float) -> str:
    """Write a number as shortly as it can be read back exactly: 1, 0.5, 1e-6."""
    return re.sub(r"e([+-])0", r"e\1", repr(value).removesuffix(".0"))


def whole(value: object, name: str) -> int:
    """Return a whole number of any kind as an int, or refuse what is none."""
    # Python counts True as an integer; here it is a slip.
    if isinstance(value, bool) or not isinstance(value, Integral):
        shown = value if isinstance(value, str | float) else type(value).__name__
        raise SpecError(f"{name} must be a whole number, not {quote(str(shown))}")
    return int(value)


def check_integer(value: object, name: str, *, least: int) -> int:
    """Return a parameter as an int, or refuse it."""
    found = whole(value, name)
    if not least <= found <= MOST_COUNT:
        shown = found if abs(found) < _MOST_SHOWN else "a number that large"
        raise SpecError(
            f"{name} must lie between {least} and {MOST_COUNT}, not {shown}",
            fix=f"Use {least} or more",
        )
    return found


def check_positive(value: object, name: str, *, below: float = math.inf) -> float:
    """Return a parameter that lies strictly between 0 and `below` as a float, or refuse it."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise SpecError(f"{name} must be a number, not {value!r}")
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    if not 0 < found < below:
        right = "positive and finite" if below == math.inf else f"between 0 and {below}"
        raise SpecError(
            f"{name} must be {right}, not {format_number(found)}",
            fix="Use a number such as 1" if below == math.inf else "Use a number such as 1e-6",
        )
    return found


WHOLE = Text("a whole number", int)
NUMBER = Text("a number", float, format_number)
YES_NO: Value = Text(
    "yes or no",
    lambda word: bool(("no", "yes").index(word)),
    lambda value: "yes" if value else "no",
)
POSITIVE: Value = replace(NUMBER, check=check_positive)
CHANCE: Value = replace(NUMBER, check=partial(check_positive, below=1))


def at_least(least: int) -> Value:
    """Return the kind of whole numbers from the least on."""
    return replace(WHOLE, check=partial(check_integer, least=least))


@dataclass(frozen=True)
class Parameter:
    """What a spec may say about one field of a class; see `parameter`.

    `field` is the name of the field, and `default` its default, `MISSING` where it must be given.
    """

    value: Value
    meaning: str
    key: str = ""
    always: bool = False
    bare: bool = False
    ladder: tuple[float, ...] = ()
    field: str = ""
    default: Any = dataclasses.field(default_factory=lambda: MISSING)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that it reads; more than one where they make sense only together."""
        return (self.key,)

    def read(self, given: Mapping[str, Written]) -> Any:  # noqa: ANN401
        """Return the value that was given, of which there is at least one key."""
        return self.value.read(given[self.key], self.key)

    def write(self, value: Any) -> str:  # noqa: ANN401
        """Write the value with its key or keys."""
        text = self.value.write(value)
        return text if self.bare else f"{self.key}={text}"

    @property
    def usual(self) -> str | None:
        """Its default as it is written, None where there is nothing to write."""
        none = self.default is MISSING or self.default is None
        return None if none else self.value.write(self.default)


def parameter(
    value: Value,
    meaning: str = "",
    *,
    key: str = "",
    always: bool = False,
    bare: bool = False,
    ladder: Sequence[float] = (),
    kind: type[Parameter] = Parameter,
    **default: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401 - stands where a field's default stands
    """Declare a field of a dataclass that specs can set.

    Parameters
    ----------
    value
        What can be written.
    meaning
        A few words for lists and help texts.
    key
        How it is called in a spec; the field's own name where empty.
    always
        Whether it is written even where it has its default.
    bare
        Whether it is written without its key, as in ``share(0.1)``.
    ladder
        Values that a search tries, from the weakest protection to the strongest.
    kind
        What reads and writes it, for parameters of several keys.
    default
        A `default` or a `default_factory`, as fields have.
    """
    metadata = {_METADATA: kind(value, meaning, key, always, bare, tuple(ladder))}
    return dataclasses.field(metadata=metadata, **default)


def _unreadable(word: str) -> Any:  # noqa: ANN401
    raise InputError(f"{quote(word)} can only be set from Python")


_UNDECLARED = Parameter(Text("a Python value", _unreadable), "")


@cache
def parameters_of(kind: type) -> tuple[Parameter, ...]:
    """Return the parameters that set the fields of a dataclass, in their order."""
    if not dataclasses.is_dataclass(kind):
        return ()
    found = []
    for field in dataclasses.fields(kind):
        # What two equal values may differ in does not say what they are.
        if not (field.init and field.compare):
            continue
        declared = field.metadata.get(_METADATA, _UNDECLARED)
        # By type: a class that was sent to another process has another MISSING than we do.
        default = MISSING if isinstance(field.default, type(MISSING)) else field.default
        if not isinstance(field.default_factory, type(MISSING)):
            default = field.default_factory()  # type: ignore[operator]
        key = declared.key or field.name
        found.append(replace(declared, key=key, field=field.name, default=default))
    return tuple(found)


def check_parameters(thing: object) -> None:
    """Check what a frozen dataclass was made with; what can be left out may be None."""
    kind: type = type(thing)
    for one in parameters_of(kind):
        given = getattr(thing, one.field)
        if given is not None or one.default is not None:
            object.__setattr__(thing, one.field, one.value.check(given, one.key))


class Named(Protocol):
    """Something with a name that specs call it by."""

    name: ClassVar[str]


def write(thing: Named) -> str:
    """Write a value as its canonical spec: defaults left out, except where always written."""
    inside = ", ".join(
        parameter.write(value)
        for parameter, value in _values(thing)
        if parameter.always or value != parameter.default
    )
    return f"{thing.name}({inside})" if inside else thing.name


def content(thing: Named) -> str:
    """Return a text that is the same exactly for equal values, for keys of random numbers.

    It says what the value is and not how it is shown: rewording a spec leaves it as it is, and so
    does a new parameter at its default.
    """
    return repr((thing.name, *sorted(_content(thing))))


def _content(thing: Named) -> Iterator[tuple[str, str]]:
    for parameter, value in _values(thing):
        if value != parameter.default:
            inner = hasattr(value, "name") and dataclasses.is_dataclass(value)
            yield parameter.field, content(value) if inner else repr(value)


def _values(thing: Named) -> Iterator[tuple[Parameter, Any]]:
    for parameter in parameters_of(type(thing)):
        value = getattr(thing, parameter.field)
        # Numbers of numpy write themselves in another way than Python's own.
        yield parameter, value.item() if type(value).__module__ == "numpy" else value


@dataclass(frozen=True)
class Kind:
    """What a name stands for: what makes it, of which parameters, an example and one line of it.

    `make` is called with what was given, by the names of fields.
    """

    make: Callable[..., Any]
    parameters: tuple[Parameter, ...] = ()
    example: str = ""
    summary: str = ""

    @classmethod
    def of(cls, kind: Any) -> Kind:  # noqa: ANN401 - a class with a name
        """Return the kind of a class; it may have an `example` and a `summary`."""
        example = getattr(kind, "example", kind.name)
        return cls(kind, parameters_of(kind), example, getattr(kind, "summary", ""))

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that may be given."""
        return tuple(key for parameter in self.parameters for key in parameter.keys)


@dataclass(frozen=True)
class Catalogue:
    """All that can be named in one place, by name; `noun` is what one is called: ``mechanism``."""

    noun: str
    kinds: Mapping[str, Kind]

    @classmethod
    def of(cls, noun: str, *classes: Any) -> Catalogue:  # noqa: ANN401
        """Return a catalogue of classes, each under its own name."""
        return cls(noun, {kind.name: Kind.of(kind) for kind in classes})

    def with_kinds(self, *classes: Any) -> Catalogue:  # noqa: ANN401
        """Return a catalogue with further classes, which replace others of their names."""
        return Catalogue(self.noun, {**self.kinds, **Catalogue.of("", *classes).kinds})

    def parse(self, text: str) -> Any:  # noqa: ANN401
        """Return what a text describes."""
        with located(self.noun, self.kinds, text) as reader:
            return self.make(*reader.chain(single=True))

    def parse_chain(self, text: str) -> list[Any]:
        """Return what each part of a text describes, in order."""
        with located(self.noun, self.kinds, text) as reader:
            return [self.make(part) for part in reader.chain()]

    def read_chain(self, text: str) -> list[Written]:
        """Return the parts of a text without making anything of them."""
        with located(self.noun, self.kinds, text) as reader:
            return reader.chain()

    def make(self, written: Written) -> Any:  # noqa: ANN401
        """Return what a spec describes."""
        kind = self.kinds.get(written.name)
        if kind is None:
            raise UnreadableError(
                f"there is no {self.noun} {quote(written.name)}",
                place=written.place,
                fix=suggestion(written.name, self.kinds),
            )
        try:
            return kind.make(**dict(_read(kind, _by_key(written, kind))))
        except UnreadableError as error:
            raise UnreadableError(
                error.problem,
                place=error.place or written.place,
                fix=error.fix or f"Write it like {kind.example}",
            ) from None
        except InputError as error:
            raise UnreadableError(error.problem, place=written.place, fix=error.fix) from None


def _by_key(written: Written, kind: Kind) -> dict[str, Written]:
    """Return the values of a spec by key, or refuse keys that the kind does not have."""
    given: dict[str, Written] = {}
    for key, value in written.arguments or ():
        bare = [parameter.key for parameter in kind.parameters[:1] if parameter.bare]
        name = key or "".join(bare)
        if not name:
            raise UnreadableError(f"{quote(str(value))} stands without a key", place=value.place)
        if name not in kind.keys:
            fix = suggestion(name, kind.keys) if kind.keys else f"Write {kind.example}"
            problem = f"{written.name} has no parameter {quote(name)}"
            raise UnreadableError(problem, place=value.place, fix=fix)
        if name in given:
            problem = f"{quote(name)} is given twice"
            raise UnreadableError(problem, place=value.place, fix="Keep one of them")
        given[name] = value
    return given


def _read(kind: Kind, given: Mapping[str, Written]) -> Iterator[tuple[str, Any]]:
    for parameter in kind.parameters:
        if any(key in given for key in parameter.keys):
            yield parameter.field, parameter.read(given)
        elif parameter.default is MISSING:
            raise UnreadableError(f"the parameter {parameter.key} is missing")
