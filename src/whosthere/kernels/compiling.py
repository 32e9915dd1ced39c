"""How loops are compiled: for Python to call, or as parts of other loops.

Whoever waits for the compiler sees nothing of the product, so kernels leave out what it takes long
for: whole arrays that are added, chosen from or assigned, most functions of numpy, and whole
numbers written out where another kernel takes them, for each of which that one is compiled anew.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import numba
from numba.core import event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_Loop = TypeVar("_Loop", bound="Callable[..., Any]")
_njit: Callable[..., Callable[[_Loop], _Loop]] = numba.njit


def kernel(*, fastmath: bool | set[str] = False) -> Callable[[_Loop], _Loop]:
    """Compile what Python calls: once, kept on the disk, and without the interpreter's lock."""
    return _njit(cache=True, nogil=True, no_cfunc_wrapper=True, fastmath=fastmath)


@contextmanager
def said_once(say: Callable[[str], None]) -> Iterator[None]:
    """Say what is going on as soon as a kernel is compiled, as none is on the disk yet."""
    with event.install_listener("numba:compile", _Teller(say)):
        yield


class _Teller(event.Listener):
    def __init__(self, say: Callable[[str], None]) -> None:
        self._say: Callable[[str], None] | None = say

    def on_start(self, event: object) -> None:  # noqa: ARG002
        say, self._say = self._say, None
        if say:
            say("Compiling for this machine, once: about 10 s ...")

    def on_end(self, event: object) -> None:
        pass


def part(*, once: bool = False, fastmath: bool | set[str] = False) -> Callable[[_Loop], _Loop]:
    """Compile what only kernels call; it is kept with them.

    What is called `once` is written into its caller, which saves compiling it twice. Only there
    would `fastmath` get lost.
    """
    inline = "always" if once else "never"
    return _njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, inline=inline, fastmath=fastmath)
