"""One measured number, with how sure it is and what it rests on."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from whosthere.inference.vocabulary import MUST_BE


@dataclass(frozen=True)
class Finding:
    """A metric of one attack in one setting.

    Attributes
    ----------
    setting, attack, metric
        What was measured; the metrics' names and meanings are in `whosthere.inference.vocabulary`.
    estimate, low, high, standard_error
        The value and its 95 % confidence interval; None where the sample cannot resolve it. Only
        means over targets have a standard error.
    n_targets, n_in, n_out
        How many people, and how many releases with and without them, it rests on.
    note
        Why there is no value, or what else a reader must know.
    low_to_decide, high_to_decide
        The ends that a verdict looks at, at the error that a look may spend
        (`whosthere.inference.looks`). The lower one holds for all attacks and limits of a setting
        together. None for what no policy can limit, and where the sample cannot resolve it.
    """

    setting: str
    attack: str
    metric: str
    estimate: float | None
    low: float | None
    high: float | None
    n_targets: int
    n_in: int
    n_out: int
    note: str | None = None
    standard_error: float | None = None
    low_to_decide: float | None = None
    high_to_decide: float | None = None

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
