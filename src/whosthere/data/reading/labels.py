"""Numbering distinct labels while they stream by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from whosthere import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Labels:
    """Numbers labels from 0, in order of first appearance.

    A text is known by two hashes of 64 bits. Among a billion texts two have the same with a
    chance of 1e-21; comparing the texts themselves takes several times as long. Whole numbers
    are compared exactly.

    Parameters
    ----------
    dtype
        Int64 for labels that are all whole numbers, else String.
    """

    def __init__(self, dtype: type[pl.Int64 | pl.String]) -> None:
        self._dtype = dtype
        self._table = kernels.empty_key_table()
        self._texts: list[str] = []

    def __len__(self) -> int:
        return len(self._texts)

    def encode(self, column: pl.Series) -> NDArray[np.int32]:
        """Return the number of each label, shape (n,); the column must hold no nulls."""
        labels = column.cast(self._dtype)
        first, second = self._keys(labels)
        numbers: NDArray[np.int32] = kernels.look_up_keys(self._table, first, second)
        unknown = np.flatnonzero(numbers < 0)
        if unknown.size:
            self._table, numbers[unknown], new = kernels.number_keys(
                self._table, len(self), first[unknown], second[unknown]
            )
            # As a list: a series would keep the whole batch that its texts are parts of.
            self._texts += labels.gather(unknown[new]).cast(pl.String).to_list()
        return numbers

    def texts(self) -> list[str]:
        """Return the labels as text, in the order of their numbers."""
        return list(self._texts)

    def _keys(self, labels: pl.Series) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        if self._dtype == pl.String:
            both = labels.to_frame("label").select(
                pl.col("label").hash(0).alias("first"), pl.col("label").hash(1).alias("second")
            )
            return both["first"].to_numpy(), both["second"].to_numpy()
        return labels.to_numpy().view(np.uint64), np.zeros(labels.len(), np.uint64)


def sorted_order(texts: list[str]) -> NDArray[np.int64]:
    """Return the order that sorts texts, so that numbering does not depend on who came first."""
    return pl.Series(texts, dtype=pl.String).arg_sort().to_numpy().astype(np.int64)
