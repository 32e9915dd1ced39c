"""What is public about a release before its counts are looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from whosthere.errors import InputError
from whosthere.specs import whole

if TYPE_CHECKING:
    from whosthere.data.epochs import Epochs
    from whosthere.data.regions import Regions
    from whosthere.data.traces import Traces
    from whosthere.privacy.mechanism import Mechanism


@dataclass(frozen=True)
class Facts:
    """What is public about counts without the counts themselves."""

    regions: Regions
    """What the rows of the counts mean."""
    epochs: Epochs
    """What the columns mean."""
    group_size: int
    """How many people were counted, m."""
    mechanism: Mechanism
    """What was done to the true counts."""
    most_added: int = 1
    """What one person adds to a cell at most."""

    @classmethod
    def of(cls, traces: Traces, group_size: int, mechanism: Mechanism) -> Self:
        """Return what is public about counts of some of the people in traces."""
        return cls(traces.regions, traces.epochs, group_size, mechanism, traces.most_added)

    def __post_init__(self) -> None:
        object.__setattr__(self, "group_size", whole(self.group_size, "the group size"))
        if self.group_size < 1:
            raise InputError(f"a group of {self.group_size} people", fix="Give at least 1")
        if self.most_added < 1:
            raise InputError(f"a person adds {self.most_added} at most", fix="Give at least 1")
        for unit in self.mechanism.units:
            unit.period(self.epochs)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the counts: (regions, epochs)."""
        return len(self.regions), self.epochs.n

    @property
    def most_count(self) -> int:
        """The largest true count that a cell can have."""
        return self.group_size * self.most_added

    @property
    def n_cells(self) -> int:
        """Regions times epochs."""
        return len(self.regions) * self.epochs.n
