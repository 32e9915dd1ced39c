"""What an attacker makes of a publisher who drops visits at random."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whosthere.data.cells import epoch_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.privacy.facts import Facts

# No visit that a bound could have dropped is taken for more certainly counted than this, however
# few visits are known: one that is not known may have taken its place.
_SUREST = 0.999


def may_be_dropped(cells: NDArray[np.int32], facts: Facts) -> NDArray[np.bool_]:
    """Tell of each visit whether the publisher may have dropped it, shape (n_visits,).

    It may have wherever a person can make more visits in a period than are counted in it. How
    many the target made does not matter: the attacker may not know all of them.
    """
    found = np.zeros(cells.size, dtype=bool)
    for unit in facts.mechanism.units:
        period = unit.period(facts.epochs)
        if period is not None:
            cells_in_period = len(facts.regions) * np.bincount(period)
            found |= unit.most_visits < cells_in_period[period[epoch_of(cells, facts.epochs.n)]]
    return found


def chance_of_being_counted(
    cells: NDArray[np.int32], facts: Facts, person: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """Chance that each known visit was among those that the publisher's bound let through.

    The publisher draws them anew for each publication, so that no release tells which they were.
    The chance is that of somebody who made the known visits and no others, but it is below 1
    wherever other visits, if there were some, could have displaced a known one.

    Parameters
    ----------
    cells
        Visited, shape (n_visits,).
    person
        Whose visits they are, numbered from 0, shape (n_visits,); one person's by default.
    """
    chance = np.ones(cells.size)
    if not facts.mechanism.bounds_visits:
        return chance
    for unit in facts.mechanism.units:
        period = unit.period(facts.epochs)
        if period is not None:
            of_visit = period[epoch_of(cells, facts.epochs.n)].astype(np.int64)
            if person is not None:
                of_visit += person * (int(period.max()) + 1)
            together = np.bincount(of_visit)[of_visit]
            chance = np.minimum(chance, unit.most_visits / together)
    return np.where(may_be_dropped(cells, facts), np.minimum(chance, _SUREST), chance)
