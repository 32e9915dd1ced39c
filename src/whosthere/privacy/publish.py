"""From traces to a release, as a publisher makes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from whosthere.errors import GroupError
from whosthere.privacy.facts import Facts
from whosthere.privacy.release import Release

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.data.traces import Traces
    from whosthere.privacy.mechanism import Mechanism


@dataclass(frozen=True, eq=False)
class Publication:
    """A release beside what only its publisher knows.

    Attributes
    ----------
    release
        What is published.
    truth
        The true counts of the group before any bounding, shape (n_regions, n_epochs).
    share_dropped
        Share of the group's visits that contribution bounding left out.
    """

    release: Release
    truth: NDArray[np.int32]
    share_dropped: float


def publish(
    traces: Traces, *, mechanism: Mechanism, group_size: int | None = None, seed: int | None = None
) -> Publication:
    """Choose a group at random, bound what each of them contributes, count, and protect.

    Parameters
    ----------
    traces
        Everybody who might be chosen.
    mechanism
        What is done to the counts.
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
    for_group, for_bounding, for_noise = (
        np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(3)
    )
    group = traces.select(np.sort(for_group.choice(traces.n_users, size=m, replace=False)))
    bounded = mechanism.bound(group, for_bounding)
    published = mechanism.apply(bounded.traces.counts(), m, for_noise)
    release = Release(published, Facts(traces.regions, traces.epochs, m, mechanism))
    return Publication(release, group.counts(), bounded.share_dropped)
