"""Where people were or may have been counted, as rows of cells with chances.

A publisher that bounds visits counts each of them with a chance. Of whoever is known by places,
every epoch of these is a visit that may have been made. So all knowledge is rows of one kind, for
one person as for everybody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from whosthere.adversary.suspects import owners
from whosthere.arrays import own
from whosthere.data.cells import cell_at, epoch_of, region_of

if TYPE_CHECKING:
    from whosthere.adversary.suspects import Habits, Places
    from whosthere.arrays import Bools, Floats, Floats32, Ints32, Ints64
    from whosthere.data.traces import Traces
    from whosthere.privacy.facts import Facts

# No visit that a bound could have dropped is taken for more certainly counted than this, however
# few visits are known: one that is not known may have taken its place.
_SUREST = 0.999
# However often a place is visited, no single visit there is taken for more certain than this.
_MOST_LIKELY_VISIT = 0.9


class Rows(NamedTuple):
    """Cells where each person was or may have been, what each adds there, and the chance of it."""

    indptr: Ints64
    cells: Ints32
    added: Ints32
    chance: Floats32
    """Empty where all visits were surely made and counted."""

    @property
    def person(self) -> Ints64:
        """Whose each cell is."""
        return owners(self.indptr)


def rows_of_visits(known: Traces, facts: Facts) -> Rows:
    """Return the rows of people whose visits are known, all or some of them."""
    weights = known.weights
    added = np.ones(known.cells.size, np.int32) if weights is None else weights
    rows = Rows(known.indptr, known.cells, added, np.empty(0, np.float32))
    if not facts.mechanism.bounds_visits:
        return rows
    chance = chance_of_being_counted(known.cells, facts, rows.person, added=weights)
    return rows._replace(chance=own(chance, np.float32))


def rows_of_places(known: Places, habits: Habits) -> Rows:
    """Return every epoch of the places of people, visited as often as people are seen."""
    n_epochs, person = habits.time.size, owners(known.indptr)
    regions = known.regions[np.lexsort((known.regions, person))]
    cells = cell_at(regions[:, None], np.arange(n_epochs), n_epochs).reshape(-1)
    expected = habits.time * habits.mean_visits
    chance = np.minimum(expected / np.diff(known.indptr)[person, None], _MOST_LIKELY_VISIT)
    added = np.ones(cells.size, np.int32)
    ends = known.indptr * n_epochs
    return Rows(ends, own(cells, np.int32), added, own(chance.reshape(-1), np.float32))


def may_be_dropped(cells: Ints32, facts: Facts) -> Bools:
    """Tell of each visit whether the publisher may have dropped it, shape (n_visits,).

    It may have wherever a person can make more visits in a period than are counted in it. How
    many the target made does not matter: the attacker may not know all of them.
    """
    found = np.zeros(cells.size, dtype=bool)
    for unit in facts.mechanism.units:
        period = unit.period(facts.epochs)
        if period is not None:
            most_made = len(facts.regions) * np.bincount(period) * facts.most_added
            found |= unit.most_visits < most_made[period[epoch_of(cells, facts.epochs.n)]]
            found |= unit.max_regions is not None and unit.max_regions < len(facts.regions)
    return found


def chance_of_being_counted(
    cells: Ints32,
    facts: Facts,
    person: Ints64 | int = 0,
    *,
    added: Ints32 | None = None,
) -> Floats:
    """Chance that each known visit was among those that the publisher's bound let through.

    The publisher draws them anew for each publication, so that no release tells which they were.
    The chance is that of somebody who made the known visits and no others, but it is below 1
    wherever other visits, if there were some, could have displaced a known one. `person` says
    whose visits they are, numbered from 0, shape (n_visits,); one person's by default. `added` is
    how many visits there are to each cell, one by default.
    """
    chance = np.ones(cells.size)
    if not facts.mechanism.bounds_visits:
        return chance
    for unit in facts.mechanism.units:
        period = unit.period(facts.epochs)
        if period is not None:
            of_visit = period[epoch_of(cells, facts.epochs.n)].astype(np.int64)
            of_visit += person * (int(period.max()) + 1)
            together = np.bincount(of_visit, added)[of_visit]
            if unit.max_regions is None:
                chance = np.minimum(chance, unit.most_visits / together)
                continue
            # Regions are chosen first, and then visits to those, of which so many are left.
            region = of_visit * len(facts.regions) + region_of(cells, facts.epochs.n)
            pairs, pair = np.unique(region, return_inverse=True)
            regions = np.bincount(pairs // len(facts.regions))[of_visit]
            kept = np.minimum(1.0, unit.max_regions / regions)
            left = np.maximum(together * kept, np.bincount(pair, added)[pair])
            chance = np.minimum(chance, kept * np.minimum(1.0, unit.most_visits / left))
    return np.where(may_be_dropped(cells, facts), np.minimum(chance, _SUREST), chance)
