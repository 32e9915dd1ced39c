"""Steps that choose between a few results, with known chances for each count."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from whosthere.privacy.step import Draw, Outcomes, Step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

# No draw reaches this.
_NEVER = 2.0


class Choices(NamedTuple):
    """Results of counts, ascending along the last axis, and their chances, shape (..., j).

    Where a count has fewer results than others, some of the chances are 0.
    """

    results: NDArray[np.int32]
    chances: NDArray[np.float64]


class ChanceTable(Step):
    """A step that is a small table: a few results for each count, and their chances.

    A subclass gives `choices` and `window`. A cell draws one number between 0 and 1 and takes the
    result at which the chances so far exceed it. So two groups that share the draw differ as little
    as they can.
    """

    is_random: ClassVar[bool] = True

    @abstractmethod
    def choices(self, values: NDArray[np.int32], m: int) -> Choices:
        """Return what counts in 0..m may become, and with what chances."""

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Draw:
        return rng.random(shape)

    def publish(self, values: NDArray[np.int32], draw: Draw, m: int) -> NDArray[np.int32]:
        # There are mostly far fewer counts than cells.
        most = int(values.max(initial=0))
        if most < values.size:
            given, row = np.arange(most + 1, dtype=np.int32), values.astype(np.intp)
        else:
            given, row = values.reshape(-1), np.arange(values.size).reshape(values.shape)
        results, chances = self.choices(given, m)
        limits = np.cumsum(chances, axis=-1)
        # Rounding must not let a draw slip past the last result that is possible.
        left = np.cumsum(chances[..., ::-1], axis=-1)[..., ::-1]
        limits[..., :-1][left[..., 1:] <= 0] = _NEVER
        place = row * results.shape[-1] + np.zeros(draw.shape, np.int8)
        for limit in limits.T[:-1]:
            place += draw >= np.take(limit, row)
        chosen: NDArray[np.int32] = np.take(results, place)
        return chosen

    def log_landing(
        self,
        values: NDArray[np.integer],
        lo: NDArray[np.integer],
        hi: NDArray[np.integer],
        m: int,
    ) -> NDArray[np.float64]:
        results, chances = self.choices(values.astype(np.int32, copy=False), m)
        shape = np.broadcast_shapes(values.shape, lo.shape, hi.shape)
        total = np.zeros(shape)
        for i in range(results.shape[-1]):
            inside = (lo <= results[..., i]) & (results[..., i] <= hi)
            total += inside * chances[..., i]
        with np.errstate(divide="ignore"):
            return np.log(total)

    def split(self, values: NDArray[np.int32], m: int, *, block: int) -> Iterator[Outcomes]:
        results, chances = self.choices(values, m)
        with np.errstate(divide="ignore"):
            logs = np.log(chances)
        for start in range(0, results.shape[-1], block):
            part = slice(start, start + block)
            yield Outcomes(results[..., part], logs[..., part])
