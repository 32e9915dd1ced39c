"""What a policy says about one setting, as a value to look at."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from whosthere.inference.vocabulary import METRICS

if TYPE_CHECKING:
    from collections.abc import Mapping

Decision: TypeAlias = Literal["accept", "reject", "cannot tell"]
_IN_SHORT = ("pattern_correlation", "relative_error")


@dataclass(frozen=True, repr=False)
class Verdict:
    """What a policy says about one setting."""

    setting: str
    decision: Decision
    reasons: tuple[str, ...]
    """What was measured, and how the decision follows from it, in sentences that a reader
    understands without the numbers at hand."""
    guaranteed: tuple[str, ...] = ()
    """What the mechanism promises by itself."""
    meaning: tuple[str, ...] = ()
    """What the strongest attack would mean for people."""
    strongest: str | None = None
    """The attack with the largest mean AUC on the releases that all attacks scored."""
    left: Mapping[str, float] = field(default_factory=dict, hash=False)
    """What the protection leaves of the true counts: the estimates of `OF_UTILITY`, by name."""
    useless: bool = False
    """Whether it leaves less than a floor of the policy. It does not change the decision: what is
    accepted is then safe, but useless."""
    alone: str | None = None
    """The attack that the verdict rests on, if it is the only one."""
    who: str | None = None
    """Whom it is about, such as ``people with 20 or more visits``; None if about everybody."""
    knows: str | None = None
    """What the attacker knows of people, such as ``all their visits``; None if nobody says."""
    group_size: int | None = None
    """How many people a release holds."""
    look: int = 1
    """Which look at the audit it is, from 1."""
    own_mechanism: bool = False
    """Whether the mechanism is a function of a user's own: only weaker attacks were tried then."""
    protection: str = ""
    """What is done to the counts in one short sentence, such as ``counts of 1 are published as 0``;
    empty if nobody says."""

    @property
    def headline(self) -> str:
        """What it is about, with what must not be overlooked: the first line after the decision."""
        left = (self.left_in_words,) if self.left_in_words else ()
        said = (*self.remark, *left, *self._how_far)
        return "  ".join((self.setting, *(f"({one})" for one in said)))

    @property
    def qualifiers(self) -> tuple[str, ...]:
        """What must not be overlooked wherever the decision is shown."""
        return (*self.remark, *self._how_far)

    @property
    def _how_far(self) -> tuple[str, ...]:
        """By whom and about whom, if not by several attacks about everybody; which look it is."""
        by = () if self.alone is None else (f"by {self.alone} alone",)
        weak = ("own mechanism: only weaker attacks tried",) if self.own_mechanism else ()
        about = () if self.who is None else (f"about {self.who}",)
        again = (f"look {self.look}",) if self.look > 1 else ()
        return by + weak + about + again

    @property
    def remark(self) -> tuple[str, ...]:
        """What keeps a reader from taking the decision for advice to publish; mostly nothing."""
        said = "safe, but useless" if self.decision == "accept" else "useless"
        return (said,) if self.useless else ()

    @property
    def left_in_words(self) -> str:
        """What is left in short, such as ``pattern correlation 0.84, relative error 0.45``."""
        known = (name for name in _IN_SHORT if name in self.left)
        return ", ".join(f"{METRICS[name].words} {self.left[name]:.2f}" for name in known)

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as a JSON object."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    def __repr__(self) -> str:
        return f"<Verdict {self.decision!r} on {self.setting!r}>"

    def _repr_html_(self) -> str:
        """Return the decision with what was measured, is guaranteed, and means; for notebooks."""
        parts = {"": self.reasons, "Guaranteed": self.guaranteed, "Meaning": self.meaning}
        lists = "".join(
            f"{escape(title)}<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>"
            for title, texts in parts.items()
            if texts
        )
        return (
            f"<div><strong>{escape(self.decision.upper())}</strong> "
            f"{escape(self.headline)}{lists}</div>"
        )
