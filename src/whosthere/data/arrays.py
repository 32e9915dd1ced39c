"""Arrays that are values: made once, never written to again."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_Scalar = TypeVar("_Scalar", bound=np.generic)


def frozen(array: ArrayLike, dtype: type[_Scalar]) -> NDArray[_Scalar]:
    """Return `array` as a contiguous read-only array of the given type.

    An array that is fitting and read-only already is returned itself; any other is viewed or
    copied, so that the caller's own array never changes its flags.
    """
    fixed: NDArray[_Scalar] = np.ascontiguousarray(array, dtype=dtype).view()
    fixed.setflags(write=False)
    return fixed
