"""Arrays that are values, made once and never written to again; and short names of their types."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

_Scalar = TypeVar("_Scalar", bound=np.generic)
Floats: TypeAlias = "NDArray[np.float64]"
Floats32: TypeAlias = "NDArray[np.float32]"
Complexes: TypeAlias = "NDArray[np.complex128]"
Ints32: TypeAlias = "NDArray[np.int32]"
Ints64: TypeAlias = "NDArray[np.int64]"
Words: TypeAlias = "NDArray[np.uint64]"
Bools: TypeAlias = "NDArray[np.bool_]"


def frozen(array: ArrayLike, dtype: type[_Scalar]) -> NDArray[_Scalar]:
    """Return the content of `array` as a contiguous read-only array that nobody else can change.

    An array of that type which is read-only, and views nothing that can be written to, is
    returned itself; anything else is copied. See `own` for arrays that need no copy.
    """
    if isinstance(array, np.ndarray) and not any(one.flags.writeable for one in _bases(array)):
        fits: NDArray[_Scalar] = np.ascontiguousarray(array, dtype=dtype)
        return fits if fits is array else own(fits, dtype)
    return own(np.array(array, dtype=dtype, order="C"), dtype)


def own(array: NDArray[np.generic], dtype: type[_Scalar]) -> NDArray[_Scalar]:
    """Make an array read-only that the caller has just made and gives away.

    Nothing is copied where the array is contiguous and of the right type. The array itself and
    those that it views can no longer be written to.
    """
    given: NDArray[_Scalar] = np.ascontiguousarray(array, dtype=dtype)
    for one in _bases(given):
        one.setflags(write=False)
    return given


def _bases(array: object) -> Iterator[NDArray[np.generic]]:
    """Return an array and those that it is a view of."""
    while isinstance(array, np.ndarray):
        yield array
        array = array.base
