"""People who share most of their visits with somebody else, and what that means for an audit.

An audit draws people one by one. Where those who go together are also counted together, as a
household is, each of them adds to what gives the others away, and the audit says too little.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

from whosthere.data.floor import LEAST_PEOPLE
from whosthere.data.together import LEAST_VISITS, shared_visits

if TYPE_CHECKING:
    from whosthere.data.traces import Traces

MOST = 0.5
"""Somebody who visited more than this share of a person's cells shares most of them."""
RARE = 0.02
"""If a smaller share of people share most of their visits, beyond chance, nothing is said of it.
Even if all of them were found, a true positive rate would be larger by 0.02 at most."""
_EDGES = (LEAST_VISITS, 10, 20, 50, 100)


@dataclass(frozen=True)
class Band:
    """People with `least` visits or more; the next band says how many at most.

    `people` were compared with everybody, and `sharing` of them share most of their visits with one
    other person; None where these are fewer than `LEAST_PEOPLE`, or none. Where fewer do not, that
    many are said not to. `by_chance` is the share of stand-ins who do: they go at the same times
    wherever others go then.
    """

    least: int
    people: int
    sharing: int | None
    by_chance: float


@dataclass(frozen=True)
class Together:
    """How many people share most of their visits with somebody else, by number of visits."""

    bands: tuple[Band, ...] = ()

    @property
    def people(self) -> int:
        """How many people were compared with everybody."""
        return sum(band.people for band in self.bands)

    @property
    def share(self) -> float:
        """Which share of them is known to share most of their visits with one other person."""
        return sum(band.sharing or 0 for band in self.bands) / max(self.people, 1)

    @property
    def by_chance(self) -> float:
        """Which share of stand-ins does."""
        return sum(band.by_chance * band.people for band in self.bands) / max(self.people, 1)

    @property
    def is_rare(self) -> bool:
        """Whether so few do, beyond chance, that nothing needs to be said."""
        return self.share - self.by_chance < RARE

    def in_words(self) -> tuple[str, ...]:
        """Say what it means for who reads an audit; nothing where it is rare."""
        if self.is_rare:
            return ()
        return (
            f"About {self.share:.1%} of the people with {LEAST_VISITS} or more visits share "
            "more than half of them with one other person (expected by chance: "
            f"{self.by_chance:.1%}). An audit draws people one by one. Where such people are "
            "counted together, as a household is, they are easier to find than its numbers say.",
        )

    def by_visits(self) -> tuple[tuple[str, str], ...]:
        """Return how many share most of their visits, in words, by number of visits."""
        ends = [f" to {edge - 1}" for edge in _EDGES[1:]] + [" or more"]
        words = dict(zip(_EDGES, ends, strict=True))
        hidden = f"fewer than {LEAST_PEOPLE}"
        return tuple(
            (
                f"{band.least}{words.get(band.least, ' or more')} visits",
                f"{hidden if band.sharing is None else f'{band.sharing:,}'} of {band.people:,}",
            )
            for band in self.bands
        )

    def to_json(self) -> list[dict[str, Any]]:
        """Return the bands as JSON objects."""
        return [asdict(band) for band in self.bands]

    @classmethod
    def read(cls, described: object) -> Self | None:
        """Read what `to_json` wrote; None where it is anything else."""
        try:
            return cls(tuple(Band(**band) for band in described))  # type: ignore[attr-defined]
        except TypeError:
            return None


def together(traces: Traces, *, seed: int = 0) -> Together:
    """Measure how many people share most of their visits with somebody else.

    No number about fewer than `LEAST_PEOPLE` people is in the result, nor follows from it: bands
    with fewer are left out, and the total counts only those who are in a number of their own.
    """
    shared = shared_visits(traces, seed=seed)
    sharing, by_chance = shared.most > MOST * shared.visits, shared.by_chance > MOST
    bands = []
    for least, end in zip(_EDGES, (*_EDGES[1:], None), strict=True):
        own = (shared.visits >= least) & (end is None or shared.visits < end)
        people, n = int(own.sum()), int(sharing[own].sum())
        if people >= LEAST_PEOPLE:
            # Those who do not share are told to be none, or enough.
            known = n if n == people else min(n, people - LEAST_PEOPLE)
            said = known if known >= LEAST_PEOPLE else None
            bands.append(Band(least, people, said, float(by_chance[own].mean())))
    return Together(tuple(bands))
