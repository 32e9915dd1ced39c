"""Limits on how well attackers may do, and floors of what must be left, which anyone can set."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import Field

from whosthere.auditing.toml import TomlTable, read_toml
from whosthere.display import facts_table
from whosthere.errors import InputError, suggestion
from whosthere.inference.vocabulary import METRICS

if TYPE_CHECKING:
    import os

_Bound = TypeVar("_Bound", "Limit", "Floor")
_ALWAYS_SHOWN = ("tpr_at_fpr_1pct", "share_auc_90")
_LIMITABLE = tuple(name for name, metric in METRICS.items() if metric.can_be_limited)
_WITH_FLOOR = tuple(name for name, metric in METRICS.items() if metric.can_have_floor)
DEFAULT_PRIOR = 0.5
"""Chance of being in that is supposed before the release is seen: as likely in as out."""


@dataclass(frozen=True)
class Limit:
    """The largest value that a metric may have."""

    metric: str
    most: float

    def __post_init__(self) -> None:
        fix = f"These can be: {', '.join(_LIMITABLE)}"
        if self.metric in _WITH_FLOOR:
            fix = "Larger is better: set a floor for it under [keep]"
        _refuse_metric(self.metric, _LIMITABLE, "be limited", fix)
        object.__setattr__(self, "most", _checked(self.most, "limit", self.metric))

    def __str__(self) -> str:
        return f"{self.metric} <= {self.most:g}"


@dataclass(frozen=True)
class Floor:
    """The smallest value of what is left that makes a table worth publishing."""

    metric: str
    least: float

    def __post_init__(self) -> None:
        fix = f"Floors are for what is better the larger it is: {', '.join(_WITH_FLOOR)}"
        _refuse_metric(self.metric, _WITH_FLOOR, "have a floor", fix)
        object.__setattr__(self, "least", _checked(self.least, "floor", self.metric))

    def __str__(self) -> str:
        return f"{self.metric} >= {self.least:g}"


def _refuse_metric(metric: str, known: tuple[str, ...], what: str, fix: str) -> None:
    if metric not in METRICS:
        raise InputError(f"there is no metric {metric!r}", fix=suggestion(str(metric), known))
    if metric not in known:
        raise InputError(f"{metric} cannot {what}", fix=fix)


def _checked(value: object, what: str, metric: str) -> float:
    """Return a limit or a floor as a number, if the metric can have this value."""
    number, largest = _number_or_nan(value), METRICS[metric].largest
    if not (math.isfinite(number) and 0 <= number <= largest):
        span = "of 0 or more" if largest == math.inf else f"from 0 to {largest:g}"
        raise InputError(f"the {what} of {metric} cannot be {value!r}", fix=f"Give a number {span}")
    return number


def _number_or_nan(value: object) -> float:
    # To Python, True is a number.
    return math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)


@dataclass(frozen=True, init=False, repr=False)
class Policy:
    """How well attackers may do before a setting is rejected, and what must be left to publish.

    Parameters
    ----------
    name
        What results call the policy.
    limits
        The largest value that each metric may have, such as ``{"auc": 0.6}``.
    prior
        Chance that a person in question is in the release, before it is seen. It decides nothing,
        but what an attack's success would mean.
    keep
        The smallest value of what is left that makes a table worth publishing, such as
        ``{"pattern_correlation": 0.5}``. It decides nothing about safety: what keeps less is safe,
        but useless. By default as in the default policy; ``{}`` for no floors.
    """

    name: str
    limits: tuple[Limit, ...]
    prior: float
    keep: tuple[Floor, ...]

    def __init__(
        self,
        name: str,
        limits: Mapping[str, float],
        prior: float = DEFAULT_PRIOR,
        keep: Mapping[str, float] | None = None,
    ) -> None:
        checked = _bounds(Limit, limits, "limits")
        if not checked:
            fix = "Limit at least one metric, such as auc to 0.6"
            raise InputError("the policy has no limits", fix=fix)
        floors = _default_floors() if keep is None else _bounds(Floor, keep, "floors")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "limits", checked)
        object.__setattr__(self, "keep", floors)
        if not 0 < _number_or_nan(prior) < 1:
            raise InputError(f"the prior must be between 0 and 1, got {prior!r}")
        object.__setattr__(self, "prior", float(prior))

    @classmethod
    def default(cls) -> Policy:
        """Return the policy that comes with whosthere."""
        with as_file(files("whosthere.auditing") / "default_policy.toml") as path:
            return cls.read(path)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Policy:
        """Read a policy from a TOML file; it is named after the file if it gives no name."""
        table = read_toml(path, _PolicyFile)
        try:
            return cls(table.name or Path(path).stem, table.limits, table.prior, table.keep)
        except InputError as error:
            raise InputError(error.problem, where=path, fix=error.fix) from None

    @classmethod
    def of(
        cls, policy: Policy | str | os.PathLike[str] | Mapping[str, float] | None = None
    ) -> Policy:
        """Return a policy from the path of its file, or limits; None for the default policy."""
        if policy is None:
            return cls.default()
        if isinstance(policy, Policy):
            return policy
        if isinstance(policy, Mapping):
            return cls("custom", policy)
        return cls.read(policy)

    @property
    def metrics_to_show(self) -> tuple[str, ...]:
        """The metrics that stand beside a verdict: every limited one, and the usual ones."""
        limited = (limit.metric for limit in self.limits)
        return tuple(dict.fromkeys(("auc", *limited, *_ALWAYS_SHOWN)))

    def to_json(self) -> dict[str, Any]:
        """Return the policy as a JSON object."""
        return {
            "name": self.name,
            "limits": {limit.metric: limit.most for limit in self.limits},
            "prior": self.prior,
            "keep": {floor.metric: floor.least for floor in self.keep},
        }

    def in_words(self) -> list[tuple[str, str]]:
        """Return the metrics of limits and floors, and what the policy asks of each."""
        most = [(limit.metric, f"at most {limit.most:g}") for limit in self.limits]
        return most + [(floor.metric, f"at least {floor.least:g}") for floor in self.keep]

    def __repr__(self) -> str:
        return f"<Policy {self.name!r}: {', '.join(map(str, (*self.limits, *self.keep)))}>"

    def _repr_html_(self) -> str:
        facts = {METRICS[metric].words: asked for metric, asked in self.in_words()}
        return facts_table(f"Policy: {self.name}", facts)


@cache
def _default_floors() -> tuple[Floor, ...]:
    return Policy.default().keep


def _bounds(
    kind: type[_Bound], bounds: Mapping[str, float] | tuple[_Bound, ...], what: str
) -> tuple[_Bound, ...]:
    # `dataclasses.replace` gives those of another policy.
    if isinstance(bounds, tuple) and all(isinstance(one, kind) for one in bounds):
        return bounds
    if not isinstance(bounds, Mapping):
        fix = "Give metrics with their values, such as {'auc': 0.6}"
        raise InputError(f"{bounds!r} cannot be the {what} of a policy", fix=fix)
    return tuple(kind(metric, value) for metric, value in bounds.items())


class _PolicyFile(TomlTable):
    """What a policy file may hold."""

    name: str = ""
    limits: dict[str, float] = Field(default_factory=dict)
    prior: float = DEFAULT_PRIOR
    keep: dict[str, float] | None = None
