"""Limits on how well attackers may do, which anyone can set."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from importlib.resources import as_file, files
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from whosthere.auditing.toml import TomlTable, read_toml
from whosthere.auditing.vocabulary import METRICS
from whosthere.errors import InputError, suggestion

if TYPE_CHECKING:
    import os

_ALWAYS_SHOWN = ("tpr_at_fpr_1pct", "share_auc_90")
_LIMITABLE = tuple(name for name, metric in METRICS.items() if metric.can_be_limited)
DEFAULT_PRIOR = 0.5
"""Chance of being in that is supposed before the release is seen: as likely in as out."""


@dataclass(frozen=True)
class Limit:
    """The largest value that a metric may have."""

    metric: str
    most: float

    def __post_init__(self) -> None:
        if self.metric not in METRICS:
            fix = suggestion(str(self.metric), _LIMITABLE)
            raise InputError(f"there is no metric {self.metric!r} to limit", fix=fix)
        metric = METRICS[self.metric]
        if not metric.can_be_limited:
            fix = f"These can be: {', '.join(_LIMITABLE)}"
            raise InputError(f"{self.metric} cannot be limited", fix=fix)
        most = _number_or_nan(self.most)
        largest = math.inf if metric.largest is None else metric.largest
        if not (math.isfinite(most) and 0 <= most <= largest):
            span = "of 0 or more" if metric.largest is None else f"from 0 to {largest:g}"
            problem = f"the limit of {self.metric} cannot be {self.most!r}"
            raise InputError(problem, fix=f"Give a number {span}")
        object.__setattr__(self, "most", most)

    def __str__(self) -> str:
        return f"{self.metric} <= {self.most:g}"


def _number_or_nan(value: object) -> float:
    # To Python, True is a number.
    return math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)


@dataclass(frozen=True, init=False, repr=False)
class Policy:
    """How well attackers may do before a setting is rejected.

    Parameters
    ----------
    name
        What results call the policy.
    limits
        The largest value that each metric may have, such as ``{"auc": 0.6}``.
    prior
        Chance that a person in question is in the release, before it is seen. It decides nothing,
        but what an attack's success would mean.
    """

    name: str
    limits: tuple[Limit, ...]
    prior: float

    def __init__(
        self,
        name: str,
        limits: Mapping[str, float] | Iterable[Limit],
        prior: float = DEFAULT_PRIOR,
    ) -> None:
        checked = _limits(limits)
        if not checked:
            fix = "Limit at least one metric, such as auc to 0.6"
            raise InputError("the policy has no limits", fix=fix)
        metric, times = Counter(limit.metric for limit in checked).most_common(1)[0]
        if times > 1:
            raise InputError(f"{metric} is limited twice", fix="Keep one of the limits")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "limits", checked)
        if not 0 < _number_or_nan(prior) < 1:
            raise InputError(f"a prior of {prior!r}", fix="Give a chance between 0 and 1")
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
            return cls(table.name or Path(path).stem, table.limits, table.prior)
        except InputError as error:
            raise InputError(error.problem, where=path, fix=error.fix) from None

    @classmethod
    def of(
        cls, policy: Policy | str | os.PathLike[str] | Mapping[str, float] | None = None
    ) -> Policy:
        """Return a policy from whatever a caller may give for one.

        Parameters
        ----------
        policy
            A policy, the path of a policy file, or limits such as ``{"auc": 0.6}``; None for the
            default policy.
        """
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
        }

    def __repr__(self) -> str:
        return f"<Policy {self.name!r}: {', '.join(map(str, self.limits))}>"

    def _repr_html_(self) -> str:
        """Return a small table of the limits, for notebooks."""
        rows = "".join(
            f"<tr><td>{escape(METRICS[limit.metric].words)}</td><td>{limit.most:g}</td></tr>"
            for limit in self.limits
        )
        return (
            f"<table><caption>Policy: {escape(self.name)}</caption>"
            f"<thead><tr><th>metric</th><th>at most</th></tr></thead><tbody>{rows}</tbody></table>"
        )


def _limits(limits: Mapping[str, float] | Iterable[Limit]) -> tuple[Limit, ...]:
    if isinstance(limits, Mapping):
        return tuple(Limit(metric, most) for metric, most in limits.items())
    given = tuple(limits) if isinstance(limits, Iterable) else (limits,)
    if not all(isinstance(limit, Limit) for limit in given):
        fix = "Give the metrics with their largest values, such as {'auc': 0.6}"
        raise InputError(f"{limits!r} cannot be the limits of a policy", fix=fix)
    return given


class _PolicyFile(TomlTable):
    """What a policy file may hold."""

    name: str = ""
    limits: dict[str, float] = Field(default_factory=dict)
    prior: float = DEFAULT_PRIOR
