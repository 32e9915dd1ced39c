"""Labelled aggregates that an attacker makes up to learn from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from whosthere.errors import GroupError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.data.traces import Traces
    from whosthere.privacy.mechanism import Mechanism

Sampling: TypeAlias = Literal["paired", "independent"]
SAMPLINGS: tuple[str, ...] = get_args(Sampling)


@dataclass(frozen=True, eq=False)
class Aggregates:
    """Published counts of groups with and without the target.

    Attributes
    ----------
    counts
        Shape (n_groups, n_cells), the smallest unsigned type that holds m.
    labels
        Whether the target is in each group, shape (n_groups,), bool. Of pairs, the group with
        the target comes first and the one without follows it.
    """

    counts: NDArray[np.unsignedinteger]
    labels: NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class GroupSampler:
    """Makes aggregates of m people out of reference traces, as the publisher would.

    Parameters
    ----------
    reference
        Traces to choose others from; the target must not be among them. They are taken as
        they are: bound them first where the mechanism does.
    target
        The cells that the target is thought to have visited.
    group_size
        People in a group, m; the reference needs at least as many.
    mechanism
        What is done to the counts.
    """

    reference: Traces
    target: NDArray[np.int32]
    group_size: int
    mechanism: Mechanism

    def __post_init__(self) -> None:
        if self.group_size > self.reference.n_users:
            raise GroupError(
                f"groups of {self.group_size} cannot be made from "
                f"{self.reference.n_users} reference traces",
                fix=f"Give at least {self.group_size} reference traces, or a smaller group",
            )

    def sample(
        self,
        n: int,
        sampling: Sampling,
        rng: np.random.Generator,
        *,
        cells: NDArray[np.int64] | None = None,
    ) -> Aggregates:
        """Make `n` aggregates, half of them with the target, of some cells or (default) all.

        Pairs share m - 1 people and the same noise draw: they differ in the target and one
        other person alone. Independent aggregates share nothing.
        """
        if n < 2 or n % 2:
            raise GroupError(f"{n} aggregates cannot be balanced", fix="Give an even number")
        width = self.reference.n_cells if cells is None else cells.size
        counts = np.empty((n, width), dtype=np.min_scalar_type(self.group_size))
        chosen = slice(None) if cells is None else cells
        for i in range(0, n, 2):
            group = self._choose(rng)
            others = self._count(group[:-1])
            noise = self.mechanism.draw((width,), rng)
            counts[i] = self._publish(self._with_target(others)[chosen], noise)
            if sampling == "paired":
                without = others + self._count(group[-1:])
            else:
                without = self._count(self._choose(rng))
                noise = self.mechanism.draw((width,), rng)
            counts[i + 1] = self._publish(without[chosen], noise)
        return Aggregates(counts, np.arange(n) % 2 == 0)

    def _choose(self, rng: np.random.Generator) -> NDArray[np.int64]:
        return rng.choice(self.reference.n_users, size=self.group_size, replace=False)

    def _count(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        return self.reference.counts(rows).reshape(-1)

    def _with_target(self, counts: NDArray[np.int32]) -> NDArray[np.int32]:
        joined = counts.copy()
        joined[self.target] += 1
        return joined

    def _publish(
        self, counts: NDArray[np.int32], noise: tuple[NDArray[np.int32], ...]
    ) -> NDArray[np.int32]:
        return self.mechanism.publish(counts, noise, self.group_size)
