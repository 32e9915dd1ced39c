"""One measured number, with how sure it is and what it rests on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from whosthere.auditing.vocabulary import MUST_BE


@dataclass(frozen=True)
class Finding:
    """A metric of one attack in one setting.

    Attributes
    ----------
    setting, attack, metric
        What was measured; the metrics' names and meanings are in `whosthere.auditing.vocabulary`.
    estimate, low, high
        The value and its 95 % confidence interval; None where the sample cannot resolve it.
    n_targets, n_in, n_out
        How many people, and how many releases with and without them, it rests on.
    note
        Why there is no value, or what else a reader must know.
    standard_error
        Of a mean over targets.
    low_in_family
        The lower end at a level that holds for all attacks and limits of a setting together;
        None where there is none.
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
    low_in_family: float | None = None

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
