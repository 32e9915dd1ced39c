"""Where and when people are found: what regions and hours add to the scores of an attacker.

The score of the likelihood ratio is a sum over the cells that are known of a person. What a cell
leaks is how much larger its part of the sum is on average with the person than without. These
parts tell where one person was, and are kept in memory alone.
What is written are sums over many people, and none over too few of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from whosthere.adversary.scorer import Asked, table_for
from whosthere.data.cells import region_and_epoch
from whosthere.data.floor import LEAST_PEOPLE, hidden_places
from whosthere.data.regions import MOST_OUTLINES
from whosthere.game.everybody import EverybodyGame, EverybodyRounds
from whosthere.game.rounds import Population, Task
from whosthere.game.target import TARGET_GAME, TargetRounds
from whosthere.seeds import generator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from whosthere.adversary.counting import Rows
    from whosthere.adversary.suspects import Known
    from whosthere.arrays import Bools, Floats, Ints32, Ints64
    from whosthere.data.regions import Regions
    from whosthere.data.traces import Traces
    from whosthere.game.plan import Plan
    from whosthere.privacy.facts import Facts
    from whosthere.privacy.release import Release


PEOPLE_TO_LOOK_AT = 400
"""How many people are looked at, at most: the targets and, as a map needs more, others."""
MOST_OF_EVERYBODY = 20_000
"""Where everybody is asked, that many people are looked at in the same releases, drawn at random
from all of them if they are more."""
FEWEST_TO_LOOK_AT = 100
"""Where the audit is small, at least so many: no place is told of where too few of them were."""
# The closer look may take this share of the time that the scores take.
_SHARE_OF_SCORES = 0.2
RELEASES_TO_LOOK_AT = 2
"""How many test releases are looked at for each person and scheme, half of them with the person."""
LEAST_TERM = math.log(1e-3)
"""A cell that rules a person out is as good as proof, which would drown all other cells."""
_PLACE = {"setting": pl.String(), "axis": pl.String(), "index": pl.Int32()}
MARGINALS = _PLACE | {"truth": pl.Float64(), "estimated": pl.Float64()}
"""Columns of `marginals.parquet`: which share of all visits is in a region or an hour of the week,
in truth and as the likelihood ratio estimates it from a release, mean over releases. Both are null
where too few people were, or where the truth would follow from the others.
"""
LEAKS = _PLACE | {"targets": pl.Int32(), "leak": pl.Float64()}
"""Columns of `leaks.parquet`: how much a region (its row) or an hour of the week (0 is Monday
00:00, local time) adds to the distance between scores with and without a person.

`leak` is a sum over the people who were there as far as the attacker knows, in natural logarithms
of odds; `targets` is how many they are, rounded down to a multiple of five. Both are null where
these are fewer than `LEAST_PEOPLE`, or where the sum would tell that of so few.
"""
REGIONS = {
    "index": pl.Int32(),
    "id": pl.String(),
    "lon": pl.Float64(),
    "lat": pl.Float64(),
    "outline": pl.List(pl.List(pl.Float64())),
}
"""Columns of `regions.parquet`: the regions that the others name by their rows.

Positions and outlines are null where they are not known; an outline is an `Outline` of regions.
"""
_OF_ONE = {"person": pl.Int32()} | _PLACE | {"leak": pl.Float64()}


def leak_tasks(plan: Plan) -> tuple[Task, ...]:
    """Return the tasks that find leaks: one for each target, or for everybody, and scheme."""
    if isinstance(plan.game, EverybodyGame):
        return tuple(Task(0, scheme, "leaks") for scheme in plan.schemes)
    return TARGET_GAME.tasks(plan)


def others_to_look_at(plan: Plan, tested: Traces) -> tuple[tuple[int, ...], ...]:
    """Return whom to look at besides each target: people drawn at random, everybody once.

    They made at least as many visits as the target who made the fewest. The larger the audit, the
    more they are.
    """
    visits = tested.visits_per_user()
    enough = np.flatnonzero(visits >= visits[list(plan.targets)].min())
    others = np.setdiff1d(enough, plan.targets)
    n = len(plan.targets)
    scores = n * max(plan.releases_by(contest.attack) for contest in plan.contests)
    worth = int(_SHARE_OF_SCORES * scores / RELEASES_TO_LOOK_AT)
    wanted = min(max(worth, FEWEST_TO_LOOK_AT), PEOPLE_TO_LOOK_AT)
    drawn = generator(plan.seed, "closer look").permutation(others)[: max(wanted - n, 0)]
    return tuple(tuple(drawn[i::n].tolist()) for i in range(n))


@dataclass(frozen=True, eq=False)
class _Axis:
    """A way to group cells into places: by their region (dimension 0), or by their hour (1).

    `index` is what each place is called in tables, shape (n_places,), and `place` the place of each
    region, or of each epoch.
    """

    name: str
    index: Ints64
    place: Ints64
    dimension: int
    n_epochs: int

    @classmethod
    def both(cls, traces: Traces | Facts) -> tuple[_Axis, _Axis]:
        """Return regions and hours of the week; of these only those in which epochs begin."""
        n_regions, n_epochs = traces.shape
        regions = np.arange(n_regions)
        hours, hour_of_epoch = np.unique(traces.epochs.hours_of_week, return_inverse=True)
        return (
            cls("region", regions, regions, 0, n_epochs),
            cls("hour", hours.astype(np.int64), hour_of_epoch, 1, n_epochs),
        )

    def shares(self, counts: Ints32 | Floats) -> Floats:
        """Return which share of counts, shape (n_regions, n_epochs), is in each place."""
        sums = counts.sum(axis=1 - self.dimension, dtype=np.float64)
        by_place = np.bincount(self.place, sums, self.index.size)
        return np.asarray(by_place / max(float(by_place.sum()), 1e-300))

    def places(self, cells: Ints32) -> Ints64:
        """Return the place of each of some cells."""
        return self.place[region_and_epoch(cells, self.n_epochs)[self.dimension]]

    def visited(self, people: Traces | Rows) -> tuple[Ints64, Ints64, int]:
        """Return who was where, each person once a place: places, people, how many places."""
        n = self.index.size
        rows = np.repeat(np.arange(people.indptr.size - 1), np.diff(people.indptr))
        person, place = np.divmod(np.unique(rows * n + self.places(people.cells)), n)
        return place, person, n

    def sums(self, cells: Ints32, terms: Floats) -> Floats:
        """Add up the terms of some cells in each place; NaN where there are none."""
        place = self.places(cells)
        added = np.bincount(place, terms, self.index.size)
        return np.where(np.bincount(place, minlength=self.index.size) > 0, added, np.nan)


def leaks_of(population: Population, plan: Plan, task: Task, others: Sequence[int]) -> pl.DataFrame:
    """Return what leaks of a target of the plan and of some others, by the likelihood ratio.

    For each person and setting of the scheme a row for each place, with `person`, `setting`,
    `axis`, `index` and `leak`, which is NaN where the person is not known to have been. Others than
    the target have rows only where they were. The rows of the target have the columns of
    `MARGINALS` as well, which are null in all others.
    """
    if isinstance(plan.game, EverybodyGame):
        return _leaks_of_everybody(plan.game.rounds(population, plan, task))
    tasks = [task, *(Task(row, task.scheme) for row in others)]
    rounds = (TargetRounds(population, plan, one) for one in tasks)
    return pl.concat([_leaks_of_one(one, whole=one.task is task) for one in rounds], how="diagonal")


def _leaks_of_one(rounds: TargetRounds, *, whole: bool) -> pl.DataFrame:
    """Return what leaks of one person in the finest table of the scheme, which must have one.

    With all rows and the marginals only if `whole`.
    """
    attacked = rounds.tables[rounds.task.scheme.finest or 0]
    axes = _Axis.both(attacked.traces)
    known = {
        setting: rounds.known(setting.knowledge)[attacked.place]
        for setting in rounds.plan.settings
        if setting.scheme == rounds.task.scheme
    }
    estimated = [np.zeros(axis.index.size) for axis in axes]
    leaks = {(setting, axis): np.zeros(axis.index.size) for setting in known for axis in axes}
    for i in range(RELEASES_TO_LOOK_AT):
        drawn = rounds.test(i)
        release = drawn.publication.releases[attacked.place]
        # Releases take turns with and without the person, so that each kind is half of them.
        weight = (1 if drawn.labels[rounds.target] else -1) / (RELEASES_TO_LOOK_AT / 2)
        for setting, knowledge in known.items():
            rows, terms, dense = terms_of(release, knowledge)
            for axis in axes:
                leaks[setting, axis] += weight * axis.sums(rows.cells, terms)
        for place, axis in enumerate(axes):
            estimated[place] += axis.shares(dense) / RELEASES_TO_LOOK_AT
    there = {place: np.flatnonzero(whole | ~np.isnan(leak)) for place, leak in leaks.items()}
    sizes = [rows.size for rows in there.values()]
    table = pl.DataFrame(
        {
            "person": rounds.target,
            "setting": np.repeat([str(setting) for setting, _ in there], sizes),
            "axis": np.repeat([axis.name for _, axis in there], sizes),
            "index": np.concatenate([axis.index[rows] for (_, axis), rows in there.items()]),
            "leak": np.concatenate([leaks[place][rows] for place, rows in there.items()]),
        },
        schema=_OF_ONE,
    )
    if not whole:
        return table
    counts, times = attacked.traces.counts(), len(known)
    return table.with_columns(
        truth=np.tile(np.concatenate([axis.shares(counts) for axis in axes]), times),
        estimated=np.tile(np.concatenate(estimated), times),
    )


def _leaks_of_everybody(rounds: EverybodyRounds) -> pl.DataFrame:
    """Return what leaks of all who are asked: a row for each place, as in both tables."""
    attacked = rounds.tables[rounds.task.scheme.finest or 0]
    axes, chance = _Axis.both(attacked.traces), rounds.game.include
    drawn = [rounds.test(i) for i in range(RELEASES_TO_LOOK_AT)]
    n = min(rounds.everybody.size, MOST_OF_EVERYBODY)
    which = np.sort(rounds.rng("closer look").permutation(rounds.everybody.size)[:n])
    truth = np.concatenate([axis.shares(attacked.traces.counts()) for axis in axes])
    found = []
    for setting in (one for one in rounds.plan.settings if one.scheme == rounds.task.scheme):
        people = rounds.known(setting.knowledge)[attacked.place].select(which)
        estimated, leak = np.zeros(truth.size), np.zeros(0)
        for one in drawn:
            rows, terms, dense = terms_of(one.publication.releases[attacked.place], people)
            inside = one.labels_of(rounds.everybody[which])[rows.person]
            weight = np.where(inside, 1 / chance, -1 / (1 - chance)) / RELEASES_TO_LOOK_AT
            leak = weight * terms + (leak if leak.size else 0.0)
            by_place = np.concatenate([axis.shares(dense) for axis in axes])
            estimated += by_place / RELEASES_TO_LOOK_AT
        of_setting = leaks_of_people(rows, leak, str(setting), attacked.facts)
        found.append(
            of_setting.with_columns(truth=pl.Series(truth), estimated=pl.Series(estimated))
        )
    return pl.concat(found)


def terms_of(release: Release, known: Known) -> tuple[Rows, Floats, Floats]:
    """Return where people may have been, what each visit adds to their scores, and the rates.

    The shapes are those of the rows, (n_visits,) and (n_regions, n_epochs).
    """
    table = table_for(known, release)
    rows = table.rows(known)
    terms = np.maximum(table.by_visit(Asked.of(rows, table.lines)), LEAST_TERM)
    return rows, terms, np.exp(table.rates.base)


def rarely_visited(traces: Traces) -> dict[str, Bools]:
    """Tell which places of each axis are hidden, given where everybody was."""
    return {axis.name: hidden_places(*axis.visited(traces)) for axis in _Axis.both(traces)}


def leaks_of_people(people: Rows, leak: Floats, setting: str, facts: Facts) -> pl.DataFrame:
    """Add up what leaks by each visited cell of each of some people; columns `LEAKS`."""
    found = []
    for axis in _Axis.both(facts):
        place, person, n = axis.visited(people)
        places = pl.DataFrame(
            {"setting": setting, "axis": axis.name, "index": axis.index}, schema_overrides=_PLACE
        )
        sums = np.bincount(axis.places(people.cells), leak, n)
        found.append(_with_sums(places, place, person, sums))
    return pl.concat(found)


def table_of_regions(regions: Regions) -> pl.DataFrame:
    """Return regions with the columns `REGIONS`."""
    n = len(regions)
    return pl.DataFrame(
        {
            "index": range(n),
            "id": regions.ids,
            "lon": [None] * n if regions.lon is None else regions.lon,
            "lat": [None] * n if regions.lat is None else regions.lat,
            "outline": [regions.outline(row) if n <= MOST_OUTLINES else None for row in range(n)],
        },
        schema=REGIONS,
    )


def add_up(
    plan: Plan, found: Mapping[Task, pl.DataFrame], hidden: Mapping[str, Bools]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Add up what leaks of each target under each scheme, as by `leaks_of`, over all people.

    No share of visits is told of `hidden` places, as by `rarely_visited`. Returns leaks with the
    columns `LEAKS`, and marginals with the columns `MARGINALS`.
    """
    rows = pl.concat([found[task] for task in leak_tasks(plan)])
    if isinstance(plan.game, EverybodyGame):
        held = pl.concat([pl.Series(hidden[axis]) for axis in ("region", "hour")])
        times = rows.height // max(held.len(), 1)
        secret = pl.Series(np.tile(held.to_numpy(), times))
        shown = [pl.when(~secret).then(pl.col(one)).alias(one) for one in ("truth", "estimated")]
        return rows.select(list(LEAKS)), rows.with_columns(shown).select(list(MARGINALS))
    parts = rows.partition_by("setting", "axis", as_dict=True, maintain_order=True)
    leaks, marginals = [], []
    for setting in plan.settings:
        for axis in ("region", "hour"):
            part = parts[str(setting), axis]
            of_targets = part.filter(pl.col("person").is_in(plan.targets))
            places = of_targets.filter(person=plan.targets[0]).select(list(_PLACE))
            known = part.drop_nans("leak")
            place = _place_of(known, places)
            # Not by groups of polars, whose order of adding up is its own.
            sums = np.bincount(place, known["leak"].to_numpy(), places.height)
            leaks.append(_with_sums(places, place, known["person"].to_numpy(), sums))
            marginals.append(_averaged(places, of_targets, hidden[axis]))
    return pl.concat(leaks), pl.concat(marginals)


def _with_sums(
    places: pl.DataFrame, place: Ints64, person: Ints64, leak: NDArray[np.number]
) -> pl.DataFrame:
    """Return places with what leaks there and of how many people, in fives; hidden if too few."""
    shown = pl.Series(~hidden_places(place, person, places.height))
    # Beside how many people there are, exact ones would tell how few were not there.
    targets = np.bincount(place, minlength=places.height) // LEAST_PEOPLE * LEAST_PEOPLE
    return places.with_columns(
        targets=pl.when(shown).then(pl.Series(targets, dtype=pl.Int32)),
        leak=pl.when(shown).then(pl.Series(leak, dtype=pl.Float64)),
    )


def _averaged(places: pl.DataFrame, rows: pl.DataFrame, hidden: Bools) -> pl.DataFrame:
    place, n = _place_of(rows, places), rows["person"].n_unique()
    # Estimates as well: from raw counts they are the truth, or close to it.
    shown = pl.Series(~hidden)
    for name in ("truth", "estimated"):
        mean = pl.Series(np.bincount(place, rows[name].to_numpy(), places.height) / n)
        places = places.with_columns(pl.when(shown).then(mean).alias(name))
    return places


def _place_of(rows: pl.DataFrame, places: pl.DataFrame) -> Ints64:
    """Return where rows stand among the places, which are in order."""
    return np.searchsorted(places["index"].to_numpy(), rows["index"].to_numpy())
