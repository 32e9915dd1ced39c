"""One measured number, with how sure it is and what it rests on."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from whosthere.inference.vocabulary import MUST_BE


@dataclass(frozen=True)
class Finding:
    """A metric of one attack in one setting."""

    setting: str
    attack: str
    metric: str
    """What was measured; `whosthere.inference.vocabulary` has the names and meanings of metrics."""
    estimate: float | None
    low: float | None
    high: float | None
    """The value and its 95 % confidence interval; None where the sample cannot resolve it."""
    n_targets: int
    n_in: int
    n_out: int
    """How many people, and how many releases with and without them, it rests on."""
    note: str | None = None
    """Why there is no value, or what else a reader must know."""
    standard_error: float | None = None
    """Only means over targets have one."""
    low_to_decide: float | None = None
    high_to_decide: float | None = None
    """The ends that a verdict looks at, at the error that a look may spend
    (`whosthere.inference.looks`). The lower one holds for all attacks and limits of a setting
    together. None for what no policy can limit, and where the sample cannot resolve it."""

    @property
    def at_least(self) -> float:
        """What it surely reaches, by the end that decides; minus infinity without a lower end."""
        low = self.low if self.low_to_decide is None else self.low_to_decide
        return -math.inf if low is None else low

    @property
    def at_most(self) -> float:
        """What it surely does not exceed, by the end that decides; infinity without such an end."""
        high = self.high if self.high_to_decide is None else self.high_to_decide
        return math.inf if high is None else high

    @property
    def holds(self) -> bool | None:
        """Whether a control found what it must in a sound audit; None for what is no control."""
        if self.metric not in MUST_BE:
            return None
        if self.low is None or self.high is None:
            return False
        return self.low <= MUST_BE[self.metric] <= self.high

    def to_json(self) -> dict[str, Any]:
        """Return the finding as a JSON object."""
        return asdict(self)
