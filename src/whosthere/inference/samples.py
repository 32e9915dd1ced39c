"""Checks of what metrics are computed from: scores, labels and targets of releases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from whosthere.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

TAIL = (1 - 0.95) / 2
"""The chance of error on each side of the intervals that are shown, which are 95 % ones."""


def in_and_out(scores: ArrayLike, labels: ArrayLike) -> tuple[Floats, Floats]:
    """Return the scores of the IN and of the OUT releases; there must be some of both."""
    score, label = same_length(finite_numbers(scores, "scores"), flags(labels, "labels"))
    if label.all() or not label.any():
        raise InputError("there must be releases both with and without the target")
    return score[label], score[~label]


def finite_numbers(values: ArrayLike, name: str) -> Floats:
    """Return finite numbers of the shape (n,), with n at least 1."""
    (array,) = same_length(np.asarray(values, np.float64))
    if not np.isfinite(array).all():
        fix = "Give releases that are ruled out a score of -1e9"
        raise InputError(f"{name} must be finite", fix=fix)
    return array


def flags(values: ArrayLike, name: str) -> NDArray[np.bool_]:
    """Return values that must be True or False, shape (n,)."""
    array = np.asarray(values)
    if array.dtype != np.bool_:
        raise InputError(f"{name} must be True or False, not {array.dtype}")
    return array


def same_length(*arrays: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Return arrays of the same shape (n,), with n at least 1."""
    shapes = [one.shape for one in arrays]
    if len(set(shapes)) > 1 or len(shapes[0]) != 1 or shapes[0] == (0,):
        raise InputError(f"arrays must have one axis and the same size, not the shapes {shapes}")
    return arrays
