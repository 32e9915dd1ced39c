"""A mechanism of a user's own: any function of a whole table of counts.

Controlled rounding, swapping and smoothing change a count by what the cells around it hold. So a
cell by itself has no law P(published | true), and whoever asks for one is refused: such a mechanism
can be published by, imitated and attacked by whoever learns from examples, but not computed with.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeAlias

import numpy as np

from whosthere.errors import InputError, SpecError, quote
from whosthere.privacy.catalogue import MECHANISMS, RAW
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.shapes import AtRandom

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from whosthere.privacy.step import Counts, Draw, Span

Function: TypeAlias = "Callable[[NDArray[np.int32], int, np.random.Generator], NDArray[Any]]"
_NAME = re.compile(r"[A-Za-z][\w-]{0,39}")
# Words of 64 bits that the function's random numbers start from.
_WORDS = 4


@dataclass(frozen=True)
class OwnStep(AtRandom):
    """A function of all counts at once. Two are equal if they have the same name.

    An audit keeps its scores by that name, and a fingerprint of the code beside it.
    """

    name: str  # type: ignore[misc]  # of each step, and not of the class
    function: Function = field(compare=False, repr=False)

    has_law: ClassVar[bool] = False

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Draw:  # noqa: ARG002
        return rng.integers(2**64, size=_WORDS, dtype=np.uint64)

    def publish(self, values: Counts, draw: Draw, within: Span) -> Counts:
        rng = np.random.default_rng(draw)
        found = self.function(values.copy(), within.highest, rng)
        if np.ma.isMaskedArray(found):  # whose mask would be lost
            fix = "Return 0 for what is masked, or have it withheld by a mechanism (`then`)"
            self._refuse("a masked table", fix)
        made = np.asarray(found)
        if made.shape != values.shape:
            problem = f"counts of shape {made.shape} of a table of shape {values.shape}"
            self._refuse(problem, "Return a table of the same shape")
        if made.dtype.kind not in "iu":
            fix = "Round its result, as with np.rint(counts).astype(int)"
            self._refuse(f"counts that are no whole numbers, but {made.dtype}", fix)
        if made.size and not within.holds(made).all():
            problem = f"counts from {made.min()} to {made.max()}"
            self._refuse(problem, f"Keep them from {within.lowest} to {within.highest}")
        return made.astype(np.int32)

    def _refuse(self, problem: str, fix: str) -> NoReturn:
        raise InputError(f"the function {self.name} returned {problem}", fix=fix)

    def describe(self) -> str:
        return f"The publisher's own function {self.name} changes the table as a whole."

    def log_landing(self, *_: object, **__: object) -> NoReturn:
        raise InputError(
            f"{self.name} is a function of a whole table, so the chance of a published count is "
            "not known",
            fix="Use what needs no law of the mechanism",
        )

    lands = log_landing

    def __str__(self) -> str:
        return self.name


def refuse_two_of_a_name(mechanisms: Iterable[Mechanism]) -> None:
    """Refuse different functions of one name, whose results could not be told apart."""
    known: dict[str, Function] = {}
    for step in (step for mechanism in mechanisms for step in mechanism.steps):
        if (
            isinstance(step, OwnStep)
            and known.setdefault(step.name, step.function) != step.function
        ):
            problem = f"two functions that differ are both called {step.name}"
            raise SpecError(problem, fix="Give each a name of its own")


def own(function: Function, *, name: str | None = None, then: Mechanism | str = RAW) -> Mechanism:
    """Return a mechanism of your own: a function from true counts to published ones.

    It can be audited by attacks that need no law of it, such as knock-knock and zero-knowledge.
    As the strongest attack cannot be tried on it, an audit can reject but never accept it.

    Parameters
    ----------
    function
        Called with the counts of a whole table, int32 of shape (regions, epochs), the largest
        count that there can be (mostly the size of the group), and a generator to draw all random
        numbers from. It returns a table of the same shape, of whole numbers from 0 to that largest
        count. It must not look at anything else that is secret.
    name
        What results call it; the name of the function by default.
    then
        What is done afterwards, such as ``"suppress(k=1)"``.
    """
    called = getattr(function, "__name__", "") if name is None else name
    if not callable(function):
        raise SpecError(f"{function!r} is no function", fix="Give function(counts, m, rng)")
    try:
        inspect.signature(function).bind("counts", "m", "rng")
    except (TypeError, ValueError) as error:  # the latter of some functions in C
        raise SpecError(
            f"{called or 'the function'} cannot be called with three arguments ({error})",
            fix="Declare it as function(counts, m, rng), even if it uses only the counts",
        ) from None
    if not _NAME.fullmatch(called):
        raise SpecError(
            f"{quote(called)} cannot be the name of a mechanism",
            fix="Give a name of letters, digits, - and _, such as name='smooth'",
        )
    if called.lower() in MECHANISMS.kinds:
        raise SpecError(f"there is a mechanism {called} already", fix="Give another name")
    after = Mechanism.parse(then)
    return Mechanism((OwnStep(called, function), *after.steps))
