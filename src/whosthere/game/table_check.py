"""How well people would be found in a published table, from nothing but the table.

Rates are fitted to the table through its mechanism. From them come people with a given number of
visits, and all others' counts; both are published as the table was, with and without these people,
and the likelihood ratio looks for them. It fits rates of its own to what it sees, as it must in an
audit: somebody who knew the rates would find more.

Real people meet more often than rates let expect, because they have homes and work in common. So
the rates of cells vary at random around the fit in every trial.

The people are not real, so this is an estimate and gives no verdict. What is left out: real people
go to the same few places again and again, and together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from whosthere.adversary.attacks import LikelihoodRatio
from whosthere.adversary.counting import rows_of_visits
from whosthere.adversary.rates import fit_rates
from whosthere.adversary.scorer import Asked, Table
from whosthere.data.flows import Pairs
from whosthere.data.traces import Group, Traces
from whosthere.display import counted
from whosthere.errors import InputError
from whosthere.game.leaks import LEAST_TERM, leaks_of_people
from whosthere.inference.finding import Finding
from whosthere.inference.metrics import pooled_auc, tpr_at_fpr
from whosthere.inference.scores import RULED_OUT
from whosthere.privacy.step import WITHHELD
from whosthere.seeds import check_seed, generator

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from whosthere.arrays import Floats, Ints64
    from whosthere.privacy.release import Release

# How many people of each band are looked for, at least, and in how many pairs of trials.
_PEOPLE, _FEWEST_PAIRS, _MOST_PAIRS = 800, 2, 24
# They may make this share of all visits, and one of them this share.
_SHARE_OF_VISITS, _SHARE_OF_ONE = 0.5, 0.05
# Cells drawn for each visit, as one may be drawn twice.
_ROOM = 4
# The variance of what the fitted rate of a cell is multiplied by: people have homes and work in
# common. Chosen by milan-like and MiBici under suppression.
_SPREAD = 0.2
_RESAMPLES = 2000
# What the error of estimates was measured on, see docs/how-to/check-a-table.md: epochs of so long,
# and 1,000 people. Numbers of people that are similar are within these.
_MEASURED_LENGTH, _MEASURED_SIZES = timedelta(hours=1), (500, 2000)


class Visits(NamedTuple):
    """How many visits the people of a band make."""

    least: int
    most: int

    @classmethod
    def parse(cls, given: str | int) -> Visits:
        """Read a number of visits, or two such as ``"8-12"``."""
        ends = str(given).split("-")
        try:
            least, most = map(int, ends * 2 if len(ends) == 1 else ends)
        except ValueError:
            raise InputError(f"{given!r} is no number of visits", fix="Write 10 or 8-12") from None
        if not 1 <= least <= most:
            raise InputError(f"there is nobody with {given} visits", fix="Write 10 or 8-12")
        return cls(least, most)

    def __str__(self) -> str:
        return f"{self.least}" if self.least == self.most else f"{self.least} to {self.most}"


BANDS = (Visits(3, 5), Visits(8, 12), Visits(18, 24), Visits(35, 50))


@dataclass(frozen=True, eq=False)
class TableCheck:
    """How well people would be found in a table, as an estimate without a verdict."""

    release: Release
    """The table, with what is public about it."""
    findings: tuple[Finding, ...]
    """The AUC over everybody and the TPR at 1 % FPR for each number of visits, which stands in
    `setting`. Intervals are those of the simulation alone."""
    leaks: pl.DataFrame
    """Where and when people are found, with the columns `whosthere.game.leaks.LEAKS`."""
    notes: tuple[str, ...] = ()
    """What a reader must know of how the table was read, in sentences."""
    warnings: tuple[str, ...] = ()
    """What makes wrong whatever is found, in sentences."""
    size_is_known: bool = True
    """Whether somebody said how many people were counted."""

    @property
    def error_is_known(self) -> bool:
        """Whether the error of such estimates was measured for such tables."""
        release, (least, most) = self.release, _MEASURED_SIZES
        of_that_kind = release.epochs.length == _MEASURED_LENGTH
        of_that_kind &= self.size_is_known and least <= release.group_size <= most
        return of_that_kind and not isinstance(release.regions, Pairs)

    def to_json(self) -> dict[str, Any]:
        """Return everything but the leaks as a JSON object."""
        return {
            "estimate": True,
            "mechanism": str(self.release.mechanism),
            "group_size": self.release.group_size,
            "regions": len(self.release.regions),
            "epochs": self.release.epochs.to_json(),
            "warnings": list(self.warnings),
            "notes": list(self.notes),
            "findings": [
                {"visits": one.setting, "metric": one.metric, "people": one.n_targets}
                | {"estimate": one.estimate, "low": one.low, "high": one.high, "note": one.note}
                for one in self.findings
            ],
        }


def check_table(release: Release, visits: Sequence[Visits] = (), *, seed: int = 0) -> TableCheck:
    """Estimate how well people with so many visits would be found in a table.

    By default those of `BANDS` who can be in a single region in each epoch. A bound on the visits
    that are counted of a person is none on those that are made: it is applied to who is drawn.
    """
    rng = generator(check_seed(seed), "check")
    if not release.mechanism.has_law:
        raise InputError("no law is known of a mechanism of your own", fix="Audit it instead")
    held = release.mechanism.withheld
    told = held is not None and held.lowest > 0 and (release.values == WITHHELD).any()
    if not told and not (release.values > 0).any():
        raise InputError(
            "no count is shown, so nothing tells how many people there are",
            fix="Give a table with counts above 0",
        )
    visits, notes = _looked_for(visits, release.epochs.n)
    rates = np.exp(fit_rates(release).base)
    total = float(rates.sum())
    chosen = [one for one in visits if _can_be_made(one.most, rates)]
    if not chosen:
        raise InputError(
            f"the table holds about {total:,.0f} visits, too few, or in too few of its "
            f"{rates.size:,} cells, to say anything about people with {visits[0]} of them",
            fix="Give smaller numbers of visits (`visits`), or a table of more people",
        )
    notes += tuple(
        f"Nothing is said about people with {one} visits: the table holds about {total:,.0f} in "
        "all, or in too few cells"
        for one in visits
        if one not in chosen
    )
    n = int(_SHARE_OF_VISITS * total / sum((one.least + one.most) / 2 for one in chosen))
    n = min(max(n, 1), _PEOPLE // 4)
    n_pairs = min(max(math.ceil(_PEOPLE / (2 * n)), _FEWEST_PAIRS), _MOST_PAIRS)
    trials = [_pair(release, rates, chosen, n, rng) for _ in range(n_pairs)]
    band = np.tile(np.repeat(np.arange(len(chosen)), n), 2 * n_pairs)
    inside, outside = (np.concatenate([one[i] for one in trials]) for i in (0, 1))
    findings = [
        found
        for i, one in enumerate(chosen)
        for found in _findings(str(one), inside[band == i], outside[band == i])
    ]
    rows = rows_of_visits(_joined(release, [one[2] for one in trials]), release.facts)
    leak = np.concatenate([one[3] for one in trials])
    leaks = leaks_of_people(rows, leak, "check", release.facts)
    return TableCheck(release, tuple(findings), leaks, notes)


def _looked_for(visits: Sequence[Visits], n_epochs: int) -> tuple[list[Visits], tuple[str, ...]]:
    """Return whom to look for, and a note on those who would be in several regions an epoch."""
    beyond = [one for one in visits or BANDS if one.most > n_epochs]
    so_many = f"{', '.join(map(str, beyond))} visits"
    has = f"the table has {counted(n_epochs, 'epoch')}"
    if visits:
        note = f"Somebody with {so_many} must be in several regions in an epoch: {has}"
        return list(dict.fromkeys(visits)), (note,) if beyond else ()
    note = (
        f"Nothing is said about people with {so_many}: a person is taken to be in one region in an "
        f"epoch, and {has}. If people can be in several, say how many visits they make (`visits`)"
    )
    within = [one for one in BANDS if one not in beyond]
    return within or [Visits(1, n_epochs)], (note,) if beyond else ()


def _can_be_made(n: int, rates: Floats) -> bool:
    """Tell whether people can make n visits to different cells, and are few of all there."""
    share = rates / rates.sum()
    distinct = -np.expm1(_ROOM * n * np.log1p(-np.minimum(share, 1 - 1e-9))).sum()
    return bool(n <= _SHARE_OF_ONE * rates.sum() and distinct >= _ROOM / 2 * n)


def _pair(
    release: Release,
    rates: Floats,
    visits: Sequence[Visits],
    n: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats, Traces, Floats]:
    """Publish two tables of different people, and look for all of them in both.

    Returns the scores of everybody in their own table and in the other one, the people, and how
    much more each of their visits adds to the former.
    """
    rates = rates * rng.gamma(1 / _SPREAD, _SPREAD, rates.shape)
    n_visits = [
        np.concatenate([rng.integers(*band, n, endpoint=True) for band in visits]) for _ in range(2)
    ]
    both = [_draw_people(release, rates, one, rng) for one in n_visits]
    scores = np.empty((2, 2, both[0].n_users))
    terms: list[list[Floats]] = [[], []]
    for i, inside in enumerate(both):
        table = Table.of(_publish(release, rates, inside, rng))
        for j, people in enumerate(both):
            asked = Asked.of(table.rows(people), table.lines)
            scores[i, j] = np.maximum(table.score(asked), RULED_OUT)
            by_visit = np.maximum(table.by_visit(asked), LEAST_TERM)
            terms[j].append(by_visit * (1 if i == j else -1))
    leak = np.concatenate([sum(of_one, np.zeros(1)) for of_one in terms])
    within, without = (np.concatenate([scores[i, 0], scores[1 - i, 1]]) for i in (0, 1))
    return within, without, _joined(release, both), leak


def _publish(release: Release, rates: Floats, people: Traces, rng: np.random.Generator) -> Release:
    """Publish some people among others who make all other visits, as a table was published."""
    mechanism, most = release.mechanism, release.facts.most_count
    counted = mechanism.bound(people, rng) if mechanism.bounds_visits else people
    others = rng.poisson(rates * max(1 - counted.n_visits / rates.sum(), 0.0))
    counts = np.minimum(others + counted.counts(), most).astype(np.int32)
    # Where noise belongs to people, those of a cell who are not drawn have a key of their own.
    alone = np.flatnonzero(others).astype(np.int32)
    crowd = _joined(release, [counted, _traces(release, np.ones(alone.size, np.int64), alone)])
    noise = mechanism.draw_for(Group.all_of(crowd), counts.shape, rng)
    return replace(release, values=mechanism.publish(counts, noise, most))


def _draw_people(
    release: Release, rates: Floats, n_visits: Ints64, rng: np.random.Generator
) -> Traces:
    """Draw people who make so many visits, each where and when people are."""
    reached = np.cumsum(rates)
    drawn = rng.random((n_visits.size, _ROOM * int(n_visits.max()))) * reached[-1]
    traces = []
    for n, cells in zip(n_visits, np.searchsorted(reached, drawn, side="right"), strict=True):
        _, first = np.unique(cells, return_index=True)
        traces.append(np.sort(cells[np.sort(first)[:n]]))
    lengths = np.array([one.size for one in traces])
    return _traces(release, lengths, np.minimum(np.concatenate(traces), rates.size - 1))


def _traces(release: Release, lengths: Ints64, cells: Any) -> Traces:  # noqa: ANN401
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    return Traces(("",) * lengths.size, indptr, cells, release.regions, release.epochs)


def _joined(release: Release, several: Sequence[Traces]) -> Traces:
    lengths = np.concatenate([np.diff(one.indptr) for one in several])
    return _traces(release, lengths, np.concatenate([one.cells for one in several]))


def _findings(visits: str, inside: Floats, outside: Floats) -> tuple[Finding, Finding]:
    n = inside.size
    scores = np.concatenate([inside, outside])
    labels, person = np.arange(2 * n) < n, np.tile(np.arange(n), 2)
    found = {
        "pooled_auc": pooled_auc(scores, labels, person),
        "tpr_at_fpr_1pct": tpr_at_fpr(scores, labels, person, 0.01, n_resamples=_RESAMPLES),
    }
    first, second = (
        Finding(
            visits, LikelihoodRatio.name, metric, one.value, one.low, one.high, n, n, n, one.note
        )
        for metric, one in found.items()
    )
    return first, second
