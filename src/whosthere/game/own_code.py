"""A fingerprint of code that is a user's own, and may change between two runs.

Our own code belongs to a version of whosthere, and that of other packages to theirs. Whatever else
an attack, a step or a kind of knowledge runs is a user's: its class, the classes that it makes, and
the functions and values of the user's modules that any of these name; and a table that was read
from a file. All of it is found by what
compiled code refers to. So it works in a notebook, where there is no file to read, and neither a
changed comment nor another line of the script that starts an audit changes the fingerprint.
"""

from __future__ import annotations

import dataclasses
import dis
import functools
import hashlib
import importlib
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from whosthere.privacy.change_file import TableFile

if TYPE_CHECKING:
    from collections.abc import Iterator

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...))
_MADE_BY_PYTHON = 1 << 9  # Py_TPFLAGS_HEAPTYPE
_INSTALLED = {"site-packages", "dist-packages"}
# What Python itself adds to a class, and what it holds only once somebody asked for it.
_NOT_OF_A_CLASS = frozenset(
    {"__module__", "__doc__", "__dict__", "__weakref__", "__annotations__", "_abc_impl"}
    | {"__abstractmethods__", "__firstlineno__", "__static_attributes__", "__slotnames__"}
    | {"__dataclass_fields__", "__dataclass_params__", "__annotations_cache__"}
)


def own_code(thing: object) -> str | None:
    """Return a fingerprint of the code of a user's own that a value runs; None if it runs none."""
    walk = _Walk()
    walk.visit(thing)
    return walk.digest.hexdigest()[:16] if walk.found else None


class _Walk:
    """Follows references, and takes down each thing once, in the order in which it is met."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.found = False
        # With the things themselves: an address is used again as soon as its thing is gone.
        self._met: dict[int, tuple[int, object]] = {}

    def visit(self, thing: object) -> None:
        if isinstance(thing, _PLAIN):
            self._note(thing)
        elif id(thing) in self._met:
            self._note("met", self._met[id(thing)][0])
        else:
            self._met[id(thing)] = len(self._met), thing
            self._note(type(thing).__module__, type(thing).__qualname__)
            self.found |= isinstance(thing, TableFile)
            self.found |= isinstance(thing, type | FunctionType) and _is_own_code(thing)
            for part in _parts(thing):
                self.visit(part)

    def _note(self, *words: object) -> None:
        self.digest.update(repr(words).encode())


def _parts(thing: Any) -> Iterator[object]:  # noqa: ANN401 - whatever code can refer to
    """Return what decides what a thing does."""
    match thing:
        case CodeType():
            # Neither where it stands nor its comments.
            yield from (thing.co_code, thing.co_names, thing.co_varnames, *thing.co_consts)
        case type() | FunctionType() | ModuleType():
            yield from (getattr(thing, "__module__", None), thing.__name__)
            if isinstance(thing, FunctionType) and _is_own_code(thing):
                yield from _parts_of_function(thing)
            elif isinstance(thing, type) and _is_own_code(thing):
                yield from _parts_of_class(thing)
        case tuple() | list() | set() | frozenset() | dict() | np.ndarray():
            yield from _content(thing)
        case staticmethod() | classmethod():
            yield thing.__func__
        case MethodType():
            yield from (thing.__func__, thing.__self__)
        case functools.partial():
            yield from (thing.func, thing.args, thing.keywords)
        case property():
            yield from (thing.fget, thing.fset)
        case functools.cached_property():
            yield thing.func
        case _:
            yield from _parts_of_value(thing)


def _content(thing: Any) -> Iterator[object]:  # noqa: ANN401 - any container
    if isinstance(thing, np.ndarray):
        values = thing.tolist() if thing.dtype.hasobject else thing.tobytes()
        yield from (str(thing.dtype), thing.shape, values)
    elif isinstance(thing, set | frozenset):
        # Their order differs between runs.
        yield from sorted(map(repr, thing))
    else:
        yield from thing.items() if isinstance(thing, dict) else thing


def _parts_of_function(function: FunctionType) -> Iterator[object]:
    """Return its code, and what stands behind the names in it."""
    yield from (function.__code__, function.__defaults__, function.__kwdefaults__)
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            yield "empty"
    codes = [*_codes(function.__code__)]
    names = sorted({name for code in codes for name in code.co_names})
    spaces = [function.__globals__, *(vars(one) for code in codes for one in _imported(code))]
    # Modules lead to others, such as `package.module.function`.
    for space in spaces:
        for known in (space[name] for name in names if name in space):
            yield known
            is_own = isinstance(known, ModuleType) and _is_own(known.__name__)
            if is_own and not any(vars(known) is one for one in spaces):
                spaces.append(vars(known))


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Return code, and that of all functions within it."""
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _codes(part)


def _imported(code: CodeType) -> Iterator[ModuleType]:
    """Return the modules of a user's own that code imports when it runs."""
    for step in dis.get_instructions(code):
        if step.opname == "IMPORT_NAME" and _is_own(step.argval):
            with suppress(ImportError, ValueError):
                yield importlib.import_module(step.argval)


def _parts_of_class(kind: type) -> Iterator[object]:
    yield from kind.__mro__[1:]
    for name, part in vars(kind).items():
        if name not in _NOT_OF_A_CLASS:
            yield from (name, part)


def _parts_of_value(thing: object) -> Iterator[object]:
    """Return the class and the fields of a value of ours or a user's; of others what they say."""
    if dataclasses.is_dataclass(thing):
        yield type(thing)
        # Not all that it holds: some is kept only once somebody asked for it.
        yield from (getattr(thing, field.name, None) for field in dataclasses.fields(thing))
    elif _is_own_code(type(thing)):
        yield from (type(thing), getattr(thing, "__dict__", None))
    else:
        # A compiled function, and one whose results are kept.
        held = getattr(thing, "__dict__", {})
        yield from (held.get("py_func"), held.get("__wrapped__"))
        # Parameters of a model, for instance; an address differs between runs.
        said = repr(thing)
        yield None if " at 0x" in said.lower() else said


def _is_own_code(thing: type | FunctionType) -> bool:
    """Tell whether a class or a function is a user's.

    Those that are made while a program runs (`exec`, `type`, `make_dataclass`) may name a module
    of Python's that does not hold them.
    """
    module = thing.__module__
    on_the_fly = (
        module in (None, "builtins", "abc", "types")
        and not hasattr(sys.modules.get(module or ""), thing.__qualname__.partition(".")[0])
        and (isinstance(thing, FunctionType) or bool(thing.__flags__ & _MADE_BY_PYTHON))
    )
    return on_the_fly or _is_own(module)


@functools.cache
def _is_own(name: str | None) -> bool:
    """Tell whether a module is a user's: neither ours, nor Python's, nor installed."""
    top = (name or "builtins").partition(".")[0]
    # A script or a notebook, even if whatever runs it is installed.
    if top == "__main__":
        return True
    if top in sys.stdlib_module_names or top == "whosthere":
        return False
    file = getattr(sys.modules.get(name or ""), "__file__", None)
    if file is None and top not in sys.modules:
        file = getattr(find_spec(top), "origin", None)
    return file is None or _INSTALLED.isdisjoint(Path(file).parts)
