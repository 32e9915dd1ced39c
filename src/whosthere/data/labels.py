"""Numbering distinct labels while they stream by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Labels:
    """Numbers labels from 0, in order of first appearance.

    Parameters
    ----------
    dtype
        Int64 for labels that are all whole numbers, else String.
    """

    def __init__(self, dtype: type[pl.Int64 | pl.String]) -> None:
        self._dtype = dtype
        self._known = pl.DataFrame(schema={"label": dtype, "code": pl.Int32})

    def __len__(self) -> int:
        return self._known.height

    def encode(self, column: pl.Series) -> NDArray[np.int32]:
        """Return the number of each label; the column must hold no nulls."""
        wanted = column.cast(self._dtype).alias("label").to_frame()
        codes = self._look_up(wanted)
        if codes.null_count():
            unseen = wanted.filter(codes.is_null()).unique(maintain_order=True)
            numbers = pl.int_range(len(self), len(self) + unseen.height, dtype=pl.Int32, eager=True)
            self._known = self._known.vstack(unseen.with_columns(code=numbers)).rechunk()
            codes = self._look_up(wanted)
        return codes.to_numpy()

    def texts(self) -> list[str]:
        """Return the labels as text, in the order of their numbers."""
        return self._known["label"].cast(pl.String).to_list()

    def _look_up(self, wanted: pl.DataFrame) -> pl.Series:
        return wanted.join(self._known, on="label", how="left", maintain_order="left")["code"]


def sorted_order(texts: list[str]) -> NDArray[np.int64]:
    """Return the order that sorts texts, so that numbering does not depend on who came first."""
    return np.array(sorted(range(len(texts)), key=texts.__getitem__), dtype=np.int64)
