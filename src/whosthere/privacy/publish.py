"""From traces to a release, as a publisher makes it: the one way to publish a group."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from whosthere.data.arrays import own
from whosthere.display import in_one_line
from whosthere.errors import GroupError
from whosthere.privacy.facts import Facts
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.release import Release
from whosthere.seeds import generator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.data.traces import Traces


@dataclass(frozen=True, eq=False)
class Publication:
    """A release with what only its publisher knows.

    Attributes
    ----------
    release
        What is published.
    group
        The traces of the people who were counted, as they are.
    counted
        The same people's visits that were counted, after bounding.
    counts
        True counts of these visits, before anything was done to them, shape
        (n_regions, n_epochs).
    """

    release: Release
    group: Traces
    counted: Traces
    counts: NDArray[np.int32]

    @cached_property
    def truth(self) -> NDArray[np.int32]:
        """The true counts of all visits of the group, shape (n_regions, n_epochs)."""
        return self.counts if self.counted is self.group else self.group.counts()

    @property
    def share_dropped(self) -> float:
        """Share of the group's visits that contribution bounding left out."""
        dropped = self.group.n_visits - self.counted.n_visits
        return dropped / max(self.group.n_visits, 1)

    def __repr__(self) -> str:
        return in_one_line("Publication", repr(self.release))

    def _repr_html_(self) -> str:
        return self.release._repr_html_()


def publish_group(
    group: Traces,
    mechanism: Mechanism,
    *,
    bounding: np.random.Generator,
    noise: np.random.Generator,
) -> Publication:
    """Bound what each person contributes, count, and protect.

    Which visits are dropped is drawn once for each publication.

    Parameters
    ----------
    group
        The people to count.
    bounding, noise
        Random numbers for what is dropped, and for the mechanism.
    """
    counted = mechanism.bound(group, bounding).traces
    counts = counted.counts()
    facts = Facts(group.regions, group.epochs, group.n_users, mechanism)
    release = Release(own(mechanism.apply(counts, group.n_users, noise), np.int32), facts)
    return Publication(release, group, counted, counts)


def publish(
    traces: Traces,
    *,
    mechanism: Mechanism | str,
    group_size: int | None = None,
    seed: int | None = None,
) -> Publication:
    """Choose a group at random and publish it.

    Parameters
    ----------
    traces
        Everybody who might be chosen.
    mechanism
        What is done to the counts, or its spec.
    group_size
        How many people to choose; all of them by default.
    seed
        The same seed gives the same release. Without one the draws cannot be repeated, which
        is right for anything that is really published: whoever knows the seed can take the
        noise away again.
    """
    m = traces.n_users if group_size is None else group_size
    if not 1 <= m <= traces.n_users:
        raise GroupError(
            f"a group of {m} cannot be chosen from {traces.n_users} users",
            fix=f"Give a group size from 1 to {traces.n_users}",
        )
    rows = generator(seed, "publish", "group").choice(traces.n_users, size=m, replace=False)
    return publish_group(
        # Who of them are friends matters to nobody here, and takes time to find.
        replace(traces, friends=None).select(np.sort(rows)),
        Mechanism.parse(mechanism) if isinstance(mechanism, str) else mechanism,
        bounding=generator(seed, "publish", "bounding"),
        noise=generator(seed, "publish", "noise"),
    )
