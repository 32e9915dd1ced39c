"""Risk of single people in the game of everybody, and how it is spread over them.

What is measured of a person rests on few rounds, and is noisy. How the true risks are spread, and
what to expect of each person, comes from all people together, by the mixtures of
`whosthere.inference.exposed`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import polars as pl

from whosthere.inference.exposed import Mixture
from whosthere.inference.intervals import of_share
from whosthere.inference.looks import FIRST_ERRORS, Errors
from whosthere.inference.metrics import Estimate
from whosthere.inference.panel import BY

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from whosthere.arrays import Bools, Ints32
    from whosthere.inference.panel import Panel, People

Risk: TypeAlias = Literal["auc", "tpr"]
"""A person's AUC, or how often they are found by the threshold of 1 % false alarms for all."""
RISKS: tuple[Risk, ...] = ("auc", "tpr")
PERCENTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
OTHERS = "others"
# The law of the noise is not known exactly, so more people than these do not narrow an interval.
_MOST_EFFECTIVE = 2000
NOBODY = Estimate(None, None, None, "nobody was both in and not in a round")
UNRESOLVED = Estimate(None, None, None, "too few false alarms to say who is found")


def risk_of_people(panel: Panel) -> pl.DataFrame:
    """Return a row for each person, in the order of the panel.

    `auc` and `tpr` are measured, over `rounds_in` and `rounds_out`; null where there are none.
    `expected_auc` and `expected_tpr` are what to expect of the person, given all others too.
    """
    people = panel.people
    n_in, was_found = people.n_in, has_risk(people, "tpr")
    expected = {risk: np.full(panel.n_people, np.nan) for risk in RISKS}
    for risk, values in expected.items():
        known = has_risk(people, risk)
        if known.any():
            values[known] = mixture(people, risk).expected
    measured = np.where(was_found, people.found() / np.maximum(n_in, 1), np.nan)
    columns = {
        "person": np.arange(panel.n_people, dtype=np.int32),
        "rounds_in": n_in.astype(np.int32),
        "rounds_out": (people.n_rounds - n_in).astype(np.int32),
        "auc": people.measured[:, 0],
        "tpr": measured,
    } | {f"expected_{risk}": values for risk, values in expected.items()}
    return pl.DataFrame(columns).fill_nan(None)


def has_risk(people: People, risk: Risk) -> Bools:
    """Tell whose risk was measured: who was in a round, and for an AUC also out of one.

    Nobody is found at a rate of false alarms that the scores cannot resolve.
    """
    return people.has_auc if risk == "auc" else (people.n_in > 0) & people.resolved


def mixture(
    people: People,
    risk: Risk = "auc",
    limit: float | None = None,
    of: Bools | None = None,
    by: int = 0,
) -> Mixture:
    """Return people, all or some, by what was measured of them; none may be without it.

    They are found `by` the threshold, or by one of the ends of its interval.
    """
    some = has_risk(people, risk) if of is None else of
    n_in, n_out = people.n_in[some], people.n_rounds - people.n_in[some]
    effective = min(people.n_units(some) * people.independence, _MOST_EFFECTIVE)
    if risk == "auc":
        aucs = people.measured[some, 0]
        return Mixture.of_aucs(aucs, n_in, n_out, limit, effective=effective)
    return Mixture.of_rates(people.found(by)[some], n_in, limit, effective=effective)


def _mixtures(
    people: People, risk: Risk, limit: float | None = None, of: Bools | None = None
) -> list[Mixture]:
    """Return people as a `mixture`, of TPRs by every threshold that is possible."""
    return [mixture(people, risk, limit, of, by) for by in (BY if risk == "tpr" else (0,))]


def _widest(found: Sequence[Estimate]) -> Estimate:
    """Return the first estimate with an interval that reaches over those of all.

    Where the errors of the threshold and of the rest are normal, an end is beyond the truth no more
    often than claimed, whether or not they depend on one another.
    """

    def ends(name: str) -> list[float]:
        return [end for one in found if (end := getattr(one, name)) is not None]

    return replace(
        found[0],
        low=min(ends("low"), default=None),
        high=max(ends("high"), default=None),
        low_to_decide=min(ends("low_to_decide"), default=None),
        high_to_decide=max(ends("high_to_decide"), default=None),
    )


def share_above(
    people: People,
    limit: float,
    *,
    risk: Risk = "auc",
    of: Bools | None = None,
    errors: Errors = FIRST_ERRORS,
) -> Estimate:
    """Return the share of people, of all or some, whose true risk is `limit` or more."""
    some = has_risk(people, risk) & (True if of is None else of)
    if not some.any():
        return NOBODY
    return _widest([one.share(errors) for one in _mixtures(people, risk, limit, some)])


def percentile(
    people: People, q: float, *, risk: Risk = "auc", errors: Errors = FIRST_ERRORS
) -> Estimate:
    """Return the true risk that a share `q` of people do not exceed."""
    if not has_risk(people, risk).any():
        return NOBODY
    return _widest([one.percentile(q, errors) for one in _mixtures(people, risk)])


def mean_of_people(
    people: People, column: int, number: int = 0, errors: Errors = FIRST_ERRORS
) -> Estimate:
    """Return the mean AUC (column 0) or accuracy (1) of the people of a group who have one."""
    some = people.has_auc & (people.group == number)
    if not some.any():
        return NOBODY
    n_in = int(people.n_in[some].sum())
    n = min(n_in, int(some.sum()) * people.n_rounds - n_in)
    return of_share(*people.mean(column, number), n, errors)


def share_found(people: People, number: int = 0) -> Estimate:
    """Return how often the people of a group were found, at the threshold for all."""
    if not people.resolved:
        return UNRESOLVED
    own = people.group == number
    n_in = int(people.n_in[own].sum())
    return _widest([of_share(*people.share_found(number, by), n_in) for by in BY])


def spread(panel: Panel, risk: Risk = "auc") -> pl.DataFrame:
    """Return percentiles of the true risk of people, with 95 % intervals."""
    found = [NOBODY] * len(PERCENTILES)
    if has_risk(panel.people, risk).any():
        by = _mixtures(panel.people, risk)
        found = [_widest([one.percentile(q, FIRST_ERRORS) for one in by]) for q in PERCENTILES]
    ends = {name: [getattr(one, name) for one in found] for name in ("value", "low", "high")}
    return pl.DataFrame({"percentile": PERCENTILES} | ends)


def by_group(panel: Panel, groups: Sequence[str], *, least: int) -> pl.DataFrame:
    """Return a row for each group of at least so many people, by name.

    `groups` names that of each person. Smaller ones are put together as "others", with the next
    larger ones until they are enough people, so that nothing about fewer follows from the rest.
    """
    names, group = _large_enough(groups, least)
    people = panel.people_in(group)
    rows: list[dict[str, Any]] = []
    for number, name in enumerate(names):
        own = group == number
        each: dict[str, Estimate] = {
            "auc": mean_of_people(people, 0, number),
            "tpr": share_found(people, number),
            "share_auc_90": share_above(people, 0.9, of=own),
        }
        row: dict[str, Any] = {"group": name, "people": int(own.sum())}
        for metric, one in each.items():
            row |= {metric: one.value, f"{metric}_low": one.low, f"{metric}_high": one.high}
        rows.append(row)
    return pl.DataFrame(rows)


def _large_enough(groups: Sequence[str], least: int) -> tuple[list[str], Ints32]:
    """Return names of groups, with small ones put together, and the number of each person's."""
    names, group, people = np.unique(np.asarray(groups), return_inverse=True, return_counts=True)
    small = people < least
    if small.any():
        # Whom somebody else has put together already.
        small |= names == OTHERS
    by_size, n_small = np.lexsort((people, ~small)), int(small.sum())
    while 0 < n_small < people.size and people[by_size[:n_small]].sum() < least:
        n_small += 1
    kept = np.sort(by_size[n_small:])
    number = np.full(people.size, kept.size, np.int32)
    number[kept] = np.arange(kept.size)
    shown = [str(name) for name in names[kept]]
    if n_small and people[by_size[:n_small]].sum() >= least:
        shown.append(OTHERS)
    return shown, number[group]
