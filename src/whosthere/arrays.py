"""Arrays that are values: made once, never written to again."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_Scalar = TypeVar("_Scalar", bound=np.generic)


def frozen(array: ArrayLike, dtype: type[_Scalar]) -> NDArray[_Scalar]:
    """Return the content of `array` as a contiguous read-only array that nobody else can change.

    An array of that type which is read-only, and views nothing that can be written to, is
    returned itself; anything else is copied. See `own` for arrays that need no copy.
    """
    if isinstance(array, np.ndarray) and not _can_change(array):
        fits: NDArray[_Scalar] = np.ascontiguousarray(array, dtype=dtype)
        return fits if fits is array else own(fits, dtype)
    return own(np.array(array, dtype=dtype, order="C"), dtype)


def own(array: NDArray[np.generic], dtype: type[_Scalar]) -> NDArray[_Scalar]:
    """Make an array read-only that the caller has just made and gives away.

    Nothing is copied where the array is contiguous and of the right type. The array itself and
    those that it views can no longer be written to.
    """
    given: NDArray[_Scalar] = np.ascontiguousarray(array, dtype=dtype)
    link: object = given
    while isinstance(link, np.ndarray):
        link.setflags(write=False)
        link = link.base
    return given


def _can_change(array: NDArray[np.generic]) -> bool:
    """Tell whether the array, or one that it is a view of, can be written to."""
    link: object = array
    while isinstance(link, np.ndarray):
        if link.flags.writeable:
            return True
        link = link.base
    return False
