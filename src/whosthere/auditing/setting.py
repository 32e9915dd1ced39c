"""One point of a study: what is published, and what the attacker knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from whosthere.adversary.knowledge import Knowledge, KnownRegions, KnownVisits
from whosthere.errors import InputError, SpecError
from whosthere.privacy.parameters import format_number

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from whosthere.adversary.groups import Sampling
    from whosthere.privacy.mechanism import Mechanism

_FORMS = "Use all, share=0.1 (a tenth of the visits), regions, or regions=5 (the five most visited)"


@dataclass(frozen=True)
class Known:
    """How much an attacker knows of each target.

    Parameters
    ----------
    share
        Share of the visits that is known, chosen at random.
    places_only
        Whether the times are unknown.
    most_places
        How many regions are known at most, the most visited ones.
    """

    share: float = 1.0
    places_only: bool = False
    most_places: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1 or (self.most_places is not None and self.most_places < 1):
            raise SpecError(f"an attacker cannot know {self}", fix=_FORMS)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``all``, ``share=0.1``, ``regions`` or ``regions=5``."""
        word, _, value = (part.strip() for part in text.lower().partition("="))
        try:
            match word, value:
                case "all", "":
                    return cls()
                case "share", _:
                    return cls(share=float(value))
                case "regions", "":
                    return cls(places_only=True)
                case "regions", _:
                    return cls(places_only=True, most_places=int(value))
        except ValueError as error:
            if isinstance(error, InputError):
                raise
        raise SpecError(f"{text!r} does not say what the attacker knows", fix=_FORMS)

    def __str__(self) -> str:
        if self.places_only:
            return "regions" if self.most_places is None else f"regions={self.most_places}"
        return "all" if self.share == 1 else f"share={format_number(self.share)}"

    def of(self, trace: NDArray[np.int32], n_epochs: int, rng: np.random.Generator) -> Knowledge:
        """Return what is known of the person with this trace."""
        if self.places_only:
            return KnownRegions.most_visited(trace, n_epochs, top=self.most_places)
        return KnownVisits.fraction(trace, self.share, rng)


@dataclass(frozen=True)
class Setting:
    """What is published, and what the attacker knows and does.

    Parameters
    ----------
    mechanism
        What is done to the counts.
    group_size
        People in a release, m.
    known
        What the attacker knows of the target.
    sampling
        How attacks that train draw the groups that they train on.
    """

    mechanism: Mechanism
    group_size: int
    known: Known = Known()
    sampling: Sampling = "paired"

    def __str__(self) -> str:
        """Write the setting as it is named in tables and files; defaults go without saying."""
        parts = [str(self.mechanism), f"m={self.group_size}"]
        if self.known != Known():
            parts.append(f"knows {self.known}")
        if self.sampling != "paired":
            parts.append(f"{self.sampling} groups")
        return ", ".join(parts)
