"""How loops are compiled: for Python to call, or as parts of other loops.

Whoever waits for the compiler sees nothing of the product, so kernels leave out what it takes long
for: whole arrays that are added, chosen from or assigned, most functions of numpy, and whole
numbers written out where another kernel takes them, for each of which that one is compiled anew.
"""

from __future__ import annotations

import atexit
import os
from contextlib import contextmanager
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, TypeVar

import numba
from numba.core import event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_Loop = TypeVar("_Loop", bound="Callable[..., Any]")
_njit: Callable[..., Callable[[_Loop], _Loop]] = numba.njit
_config: Any = numba.config


def kernel(*, fastmath: bool | set[str] = False) -> Callable[[_Loop], _Loop]:
    """Compile what Python calls: once, kept on the disk, and without the interpreter's lock."""
    kept = _njit(cache=True, nogil=True, no_cfunc_wrapper=True, fastmath=fastmath)

    def compiled(loop: _Loop) -> _Loop:
        try:
            return kept(loop)
        except RuntimeError:  # there is no folder to keep it in
            _keep_for_now()
            return kept(loop)

    return compiled


def _keep_for_now() -> None:
    """Keep what is compiled in a private folder for as long as this process lives.

    Whoever installed the package, as in a container, may have left nothing that can be written to.
    Processes that this one starts use the folder, too.
    """
    folder = mkdtemp(prefix="whosthere-")
    atexit.register(rmtree, folder, ignore_errors=True)
    os.environ["NUMBA_CACHE_DIR"] = _config.CACHE_DIR = folder
    _Teller.said = _FOR_NOW


@contextmanager
def said_once(say: Callable[[str], None]) -> Iterator[None]:
    """Say what is going on as soon as a kernel is compiled, as none is on the disk yet."""
    with event.install_listener("numba:compile", _Teller(say)):
        yield


_FOR_NOW = (
    "Compiling for this run alone: about 10 s ... Nothing that is compiled can be kept; set "
    "NUMBA_CACHE_DIR to a folder that can be written to."
)


class _Teller(event.Listener):
    said = "Compiling for this machine, once: about 10 s ..."

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say: Callable[[str], None] | None = say

    def on_start(self, event: object) -> None:  # noqa: ARG002
        say, self._say = self._say, None
        if say:
            say(self.said)

    def on_end(self, event: object) -> None:
        pass


def part(*, once: bool = False, fastmath: bool | set[str] = False) -> Callable[[_Loop], _Loop]:
    """Compile what only kernels call; it is kept with them.

    What is called `once` is written into its caller, which saves compiling it twice. Only there
    would `fastmath` get lost.
    """
    inline = "always" if once else "never"
    return _njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, inline=inline, fastmath=fastmath)
