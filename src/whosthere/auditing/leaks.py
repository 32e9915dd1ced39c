"""Where and when people are found: what regions and hours add to the scores of an attacker.

The score of the likelihood ratio is a sum over the cells that are known of a person. What a cell
leaks is how much larger its part of the sum is on average with the person than without. A closer
look takes these parts for one person, and holds where that one was: it is kept in memory alone.
What is written are sums over many people, and none over too few of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from whosthere.adversary.attacks.likelihood_ratio import terms_by_cell
from whosthere.adversary.rates import fit_rates
from whosthere.auditing.plan import Task
from whosthere.auditing.scene import Scene
from whosthere.seeds import generator

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from whosthere.auditing.plan import Plan
    from whosthere.auditing.population import Population
    from whosthere.data.traces import Traces

    Floats = NDArray[np.float64]

LEAST_TARGETS = 5
"""Sums over fewer people are not shown: they would say where single people were."""
PEOPLE_TO_LOOK_AT = 200
"""How many people are looked at: the targets of the audit and, as a map needs more, others."""
RELEASES_TO_LOOK_AT = 2
"""How many test releases are looked at for each person and scheme, half of them with the person."""
# A cell that rules a person out is as good as proof, which would drown all other cells.
_LEAST_TERM = math.log(1e-3)
_PLACE = {"setting": pl.String(), "axis": pl.String(), "index": pl.Int32()}
MARGINALS = _PLACE | {"truth": pl.Float64(), "estimated": pl.Float64()}
"""Columns of `marginals.parquet`: which share of all visits is in a region or an hour of the week,
in truth and as the likelihood ratio estimates it from a release, mean over releases.
"""
LEAKS = _PLACE | {"targets": pl.Int32(), "leak": pl.Float64()}
"""Columns of `leaks.parquet`: how much a region (its row) or an hour of the week (0 is Monday
00:00, local time) adds to the distance between scores with and without a person.

`leak` is a sum over the people who were there as far as the attacker knows, in natural logarithms
of odds; `targets` is how many they are. Both are null where these are fewer than `LEAST_TARGETS`,
or where the sum would tell that of so few.
"""
_LOOK = MARGINALS | {"leak": pl.Float64()}


def tasks_to_look_at(plan: Plan, tested: Traces) -> tuple[Task, ...]:
    """Return whom to look at, under which schemes: the targets, and others drawn at random.

    The others made at least as many visits as the target who made the fewest.
    """
    visits = tested.visits_per_user()
    enough = np.flatnonzero(visits >= visits[list(plan.targets)].min())
    others = np.setdiff1d(enough, plan.targets)
    drawn = generator(plan.seed, "closer look").permutation(others)
    more = max(PEOPLE_TO_LOOK_AT - len(plan.targets), 0)
    people = (*plan.targets, *drawn[:more].tolist())
    return tuple(Task(person, scheme) for person in people for scheme in plan.schemes)


@dataclass(frozen=True, eq=False)
class _Axis:
    """A way to group cells into places.

    Attributes
    ----------
    name
        Of the axis.
    index
        What each place is called in tables, shape (n_places,).
    place
        The place of each cell, shape (n_cells,).
    """

    name: str
    index: NDArray[np.int64]
    place: NDArray[np.int64]

    @classmethod
    def both(cls, traces: Traces) -> tuple[_Axis, _Axis]:
        """Return regions and hours of the week; of these only those in which epochs begin."""
        n_regions, n_epochs = traces.shape
        regions = np.arange(n_regions)
        hours, hour_of_epoch = np.unique(traces.epochs.hours_of_week, return_inverse=True)
        return (
            cls("region", regions, np.repeat(regions, n_epochs)),
            cls("hour", hours.astype(np.int64), np.tile(hour_of_epoch, n_regions)),
        )

    def shares(self, counts: NDArray[np.int32] | Floats) -> Floats:
        """Return which share of counts, shape (n_regions, n_epochs), is in each place."""
        by_place = np.bincount(self.place, counts.reshape(-1), self.index.size)
        return np.asarray(by_place / max(float(by_place.sum()), 1e-300))

    def sums(self, cells: NDArray[np.int32], terms: Floats) -> Floats:
        """Add up the terms of some cells in each place; NaN where there are none."""
        place = self.place[cells]
        added = np.bincount(place, terms, self.index.size)
        return np.where(np.bincount(place, minlength=self.index.size) > 0, added, np.nan)


def look_closer(population: Population, plan: Plan, task: Task) -> pl.DataFrame:
    """Look at a few releases of a task, with the likelihood ratio in all settings of the scheme.

    Returns
    -------
    pl.DataFrame
        A row for each setting, axis and place. `leak` is null where the person is not known to
        have been. Of people who are no targets of the plan, only the others are returned.
    """
    scene = Scene(population, plan, task)
    axes = _Axis.both(scene.traces)
    known = {
        setting: scene.knowledge(setting.knowledge)
        for setting in plan.settings
        if setting.scheme == task.scheme
    }
    estimated = [np.zeros(axis.index.size) for axis in axes]
    leaks = {setting: [np.zeros(axis.index.size) for axis in axes] for setting in known}
    for i in range(RELEASES_TO_LOOK_AT):
        trial = scene.test(i)
        rates = fit_rates(trial.release)
        dense = rates.dense()
        # Releases take turns with and without the person, so that each kind is half of them.
        weight = (1 if trial.put_in else -1) / (RELEASES_TO_LOOK_AT / 2)
        for place, axis in enumerate(axes):
            estimated[place] += axis.shares(dense) / RELEASES_TO_LOOK_AT
        for setting, knowledge in known.items():
            cells, terms = terms_by_cell(trial.release, knowledge, rates)
            for place, axis in enumerate(axes):
                added = axis.sums(cells, np.maximum(terms, _LEAST_TERM))
                leaks[setting][place] += weight * added
    counts = scene.traces.counts()
    table = pl.concat(
        pl.DataFrame(
            {
                "setting": [str(setting)] * axis.index.size,
                "axis": [axis.name] * axis.index.size,
                "index": axis.index,
                "truth": axis.shares(counts),
                "estimated": found,
                "leak": leak,
            },
            schema=_LOOK,
        ).with_columns(pl.col("leak").fill_nan(None))
        for setting in known
        for axis, found, leak in zip(axes, estimated, leaks[setting], strict=True)
    )
    return table if task.target in plan.targets else table.drop_nulls("leak")


def add_up(plan: Plan, looks: Mapping[Task, pl.DataFrame]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Add up closer looks over all people, in their order; the plan's targets must be among them.

    Returns
    -------
    tuple[pl.DataFrame, pl.DataFrame]
        The leaks with the columns `LEAKS`, and the marginals with the columns `MARGINALS`.
    """
    rows = pl.concat(
        table.with_columns(person=pl.lit(task.target)) for task, table in looks.items()
    )
    parts = rows.partition_by("setting", "axis", as_dict=True, maintain_order=True)
    leaks, marginals = [], []
    for setting in plan.settings:
        for axis in ("region", "hour"):
            part = parts[str(setting), axis]
            of_targets = part.filter(pl.col("person").is_in(plan.targets))
            places = of_targets.filter(person=plan.targets[0]).select(list(_PLACE))
            leaks.append(_summed(places, part.drop_nulls("leak")))
            marginals.append(_averaged(places, of_targets))
    return pl.concat(leaks), pl.concat(marginals)


def _summed(places: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    place, person = _place_of(rows, places), rows["person"].to_numpy()
    # Not by groups of polars, whose order of adding up is its own.
    leak = np.bincount(place, rows["leak"].to_numpy(), places.height)
    targets = np.bincount(place, minlength=places.height)
    shown = pl.Series(~_hidden(place, person, targets))
    return places.with_columns(
        targets=pl.when(shown).then(pl.Series(targets, dtype=pl.Int32)),
        leak=pl.when(shown).then(pl.Series(leak, dtype=pl.Float64)),
    )


def _averaged(places: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    place, n = _place_of(rows, places), rows["person"].n_unique()
    return places.with_columns(
        pl.Series(name, np.bincount(place, rows[name].to_numpy(), places.height) / n)
        for name in ("truth", "estimated")
    )


def _place_of(rows: pl.DataFrame, places: pl.DataFrame) -> NDArray[np.int64]:
    """Return where rows stand among the places, which are in order."""
    return np.searchsorted(places["index"].to_numpy(), rows["index"].to_numpy())


def _hidden(
    place: NDArray[np.int64], person: NDArray[np.int32], targets: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Tell which places are hidden, given who was where, and how many were in each place.

    The sum over all regions is that over all hours. So what is hidden of one axis follows from the
    other one, and must belong to enough people as a whole: where it does not, the places with the
    fewest people are hidden too.
    """
    hidden = np.asarray(targets < LEAST_TARGETS)
    for next_place in np.argsort(targets, kind="stable"):
        together = np.unique(person[hidden[place]]).size
        if together == 0 or together >= LEAST_TARGETS:
            break
        hidden[next_place] = True
    return hidden
