"""Risk of single people in the game of everybody, and how it is spread over them.

What is measured of a person rests on few rounds, and is noisy. How the true risks are spread, and
what to expect of each person, comes from all people together, by the mixtures of
`whosthere.inference.exposed`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import polars as pl

from whosthere.inference.exposed import Mixture, risk_percentile, share_exposed
from whosthere.inference.intervals import of_share
from whosthere.inference.looks import FIRST_ERRORS, Errors
from whosthere.inference.metrics import Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from whosthere.arrays import Bools, Floats, Ints32, Ints64
    from whosthere.inference.panel import Panel, People

Risk: TypeAlias = Literal["auc", "tpr"]
"""A person's AUC, or how often they are found by the threshold of 1 % false alarms for all."""
PERCENTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
OTHERS = "others"
# The law of the noise is not known exactly, so more people than these do not narrow an interval.
_MOST_EFFECTIVE = 2000
NOBODY = Estimate(None, None, None, "nobody was both in and not in a round")


def risk_of_people(panel: Panel) -> pl.DataFrame:
    """Return a row for each person, in the order of the panel.

    `auc` and `tpr` are measured, over `rounds_in` and `rounds_out`; null where there are none.
    `expected_auc` and `expected_tpr` are what to expect of the person, given all others too.
    """
    people = panel.people
    n_in, has_auc, was_in = people.n_in, people.has_auc, people.n_in > 0
    auc, tpr = np.full((2, panel.n_people), np.nan)
    if has_auc.any():
        auc[has_auc] = Mixture.of_aucs(*_aucs(people, has_auc)).expected
    tpr[was_in] = Mixture.of_rates(people.found[was_in], n_in[was_in]).expected
    measured = np.where(was_in, people.found / np.maximum(n_in, 1), np.nan)
    columns = {
        "person": np.arange(panel.n_people, dtype=np.int32),
        "rounds_in": n_in.astype(np.int32),
        "rounds_out": (people.n_rounds - n_in).astype(np.int32),
        "auc": people.measured[:, 0],
        "tpr": measured,
        "expected_auc": auc,
        "expected_tpr": tpr,
    }
    return pl.DataFrame(columns).fill_nan(None)


def share_above(
    people: People,
    limit: float,
    *,
    risk: Risk = "auc",
    of: Bools | None = None,
    errors: Errors = FIRST_ERRORS,
) -> Estimate:
    """Return the share of people, of all or some, whose true risk is `limit` or more."""
    some, effective = _who(people, risk, of)
    if not some.any():
        return NOBODY
    if risk == "auc":
        aucs = _aucs(people, some)
        return share_exposed(*aucs, limit, effective=effective, errors=errors)
    rates = people.found[some], people.n_in[some]
    return Mixture.of_rates(*rates, limit, effective=effective).share(errors)


def percentile(
    people: People, q: float, *, risk: Risk = "auc", errors: Errors = FIRST_ERRORS
) -> Estimate:
    """Return the true risk that a share `q` of people do not exceed."""
    some, effective = _who(people, risk, None)
    if not some.any():
        return NOBODY
    if risk == "auc":
        aucs = _aucs(people, some)
        return risk_percentile(*aucs, q, effective=effective, errors=errors)
    rates = people.found[some], people.n_in[some]
    return Mixture.of_rates(*rates, effective=effective).percentile(q, errors)


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


def spread(panel: Panel, risk: Risk = "auc") -> pl.DataFrame:
    """Return percentiles of the true risk of people, with 95 % intervals."""
    found = [(q, percentile(panel.people, q, risk=risk)) for q in PERCENTILES]
    rows = [{"percentile": q, "value": one.value, "low": one.low, "high": one.high}
            for q, one in found]  # fmt: skip
    return pl.DataFrame(rows)


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
            "tpr": of_share(*people.share_found(number), int(people.n_in[own].sum())),
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
    by_size = np.argsort(people, kind="stable")
    n_small = int(np.count_nonzero(people < least))
    while 0 < n_small < people.size and people[by_size[:n_small]].sum() < least:
        n_small += 1
    kept = np.sort(by_size[n_small:])
    number = np.full(people.size, kept.size, np.int32)
    number[kept] = np.arange(kept.size)
    shown = [str(name) for name in names[kept]]
    if n_small and people[by_size[:n_small]].sum() >= least:
        shown.append(OTHERS)
    return shown, number[group]


def _who(people: People, risk: Risk, of: Bools | None) -> tuple[Bools, float]:
    """Return who of some people has a measured risk, and how many independent ones they are."""
    some = people.has_auc if risk == "auc" else people.n_in > 0
    some = some if of is None else some & of
    return some, min(some.sum() * people.independence, _MOST_EFFECTIVE)


def _aucs(people: People, some: Bools) -> tuple[Floats, Ints64, Ints64]:
    n_in = people.n_in[some]
    return people.measured[some, 0], n_in, people.n_rounds - n_in
