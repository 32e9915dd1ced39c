"""What a release states of its guarantee, in words and in files. All of it is public."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from whosthere.privacy.exact_noise import Randomness
from whosthere.privacy.guarantees import GameGuarantee, Spent, best_test, odds_factor
from whosthere.specs import format_number

if TYPE_CHECKING:
    from whosthere.privacy.mechanism import Mechanism
    from whosthere.privacy.units import Guarantee, Unit

REPLACEMENT = "replacement of one person by another, because the group's size is public"
"""How the data sets of the membership game differ."""
ADD_OR_REMOVE = "adding or removing one unit, which leaves the group's size as it is"
"""How data sets differ by a visit or by a person's day."""

WEAK, HARDLY_ANY = 10.0, 1000.0
"""From these odds factors on, a guarantee is called weak, or hardly any."""


class Stated(NamedTuple):
    """How data sets differ, eps and delta for that, and the chance of a larger factor, at most."""

    relation: str
    eps: float
    delta: float
    chance_of_more: float

    @classmethod
    def of(cls, mechanism: Mechanism, given: Guarantee) -> Self:
        """Return what a mechanism states, with the delta that it is meant for."""
        if given.unit.is_person:
            found = GameGuarantee(best_test(mechanism, Spent(1), Spent(1)), given.delta)
            return cls(REPLACEMENT, found.eps, found.delta, found.chance_of_more)
        curve = best_test(mechanism, Spent(1), Spent(0))
        more = curve.chance_of_more(given.eps) if given.delta else 0.0
        return cls(ADD_OR_REMOVE, given.eps, given.delta, more)


def describe_guarantee(mechanism: Mechanism, given: Guarantee) -> str:
    """Say in public words how much a mechanism guarantees."""
    size = f"eps {format_number(float(f'{given.eps:.4g}'))}"
    if given.delta:
        size += f" and delta {format_number(given.delta)}"
    if given.rho is not None:
        size += f" (zero-concentrated with rho {format_number(given.rho)})"
    _, eps, _, more = Stated.of(mechanism, given)
    sentences = (
        f"This is differential privacy with {size} for adding or removing one {given.unit.name}.",
        _odds_sentence(given.unit, eps, more),
        given.unit.describe_person(),
    )
    return " ".join(filter(None, sentences))


@dataclass(frozen=True)
class GuaranteeLedger:
    """What a release guarantees, and on what that rests. All of it is public."""

    randomness: Randomness
    """Where the noise comes from. All else is None if nothing is guaranteed."""
    relation: str | None = None
    """How the data sets differ that cannot be told apart; eps and delta are for that."""
    unit: str | None = None
    """Name of what is protected."""
    eps: float | None = None
    delta: float | None = None
    chance_of_more: float | None = None
    """The odds rise by more than `odds_factor` with at most this chance."""

    @classmethod
    def of(cls, mechanism: Mechanism, *, seeded: bool) -> Self:
        """Return the ledger of a release that was just made with a mechanism."""
        if seeded:
            return cls(Randomness.SEEDED)
        if not mechanism.random_steps:
            return cls(Randomness.NONE)
        given = mechanism.guarantee
        # What comes after the noise may be drawn in any way: it only processes private counts.
        randomness = mechanism.random_steps[0].randomness
        if given is None or randomness is not Randomness.EXACT:
            return cls(randomness)
        relation, eps, delta, more = Stated.of(mechanism, given)
        return cls(randomness, relation, given.unit.name, eps, delta, chance_of_more=more)

    @property
    def seeded(self) -> bool:
        """Whether the release was made with a seed."""
        return self.randomness is Randomness.SEEDED

    @property
    def states_guarantee(self) -> bool:
        """Whether anything is guaranteed."""
        return self.eps is not None

    @property
    def odds_factor(self) -> float | None:
        """Most that the odds rise, except with a chance of `chance_of_more`."""
        return None if self.eps is None else odds_factor(self.eps)

    def rows(self) -> list[tuple[str, object]]:
        """Return what the ledger says as pairs of words and values, for tables."""
        found: list[tuple[str, object]] = [
            ("randomness", self.randomness.value),
            ("seeded", "yes" if self.seeded else "no"),
            ("size of the group", "public"),
        ]
        more = self.chance_of_more
        if self.eps is None:
            return [("guarantee", "none"), *found]
        return [
            ("guarantee", "differential privacy"),
            ("neighbours differ by", self.relation),
            ("unit", self.unit),
            ("eps for that", format_number(float(f"{self.eps:.4g}"))),
            ("delta for that", format_number(self.delta or 0.0)),
            ("odds rise at most by a factor of", format_factor(self.eps)),
            *([("chance of more, at most", f"{more:.2g}")] if more else []),
            *found,
        ]

    def to_json(self) -> dict[str, Any]:
        """Return plain values that `from_json` reads back."""
        factor = self.odds_factor
        return {
            **asdict(self),
            "odds_factor": None if factor is None or math.isinf(factor) else factor,
            "group_size_public": True,
            "randomness": self.randomness.name.lower(),
            "seeded": self.seeded,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Read what `to_json` gave."""
        kinds: dict[str, type] = {"relation": str, "unit": str}
        kinds |= dict.fromkeys(("eps", "delta", "chance_of_more"), float)
        stated = {name: kind(data[name]) for name, kind in kinds.items() if data[name] is not None}
        return cls(Randomness[str(data["randomness"]).upper()], **stated)


def format_factor(eps: float) -> str:
    """Write an odds factor, such as ``e^2 = 7.4``."""
    power = format_number(float(f"{eps:.4g}"))
    factor = odds_factor(eps)
    if math.isinf(factor):
        return f"e^{power}"
    if factor < 1e6:
        return f"e^{power} = {factor:,.0f}" if factor >= 10 else f"e^{power} = {factor:.2g}"
    return f"e^{power} = {factor:.1e}"


def _odds_sentence(unit: Unit, eps: float, more: float) -> str:
    why = "The group's size is public, so somebody else is counted instead of a person left out. "
    text = (
        f"{why if unit.is_person else ''}Whoever knows everything else can raise the odds "
        f"{unit.question} by a factor of at most {format_factor(eps)}"
    )
    if more:
        text += f", except with a chance of at most {more:.2g}"
    factor = odds_factor(eps)
    if factor >= HARDLY_ANY:
        return f"{text}. That is hardly any protection."
    return f"{text}. That is weak protection." if factor >= WEAK else f"{text}."
