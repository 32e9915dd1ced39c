"""Which tables nest: the cells of one are made of cells of another."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from whosthere.data.cells import cell_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whosthere.adversary.attacks.base import View
    from whosthere.arrays import Ints64


@dataclass(frozen=True, eq=False)
class Nesting:
    """How the cells of a table make up those of a coarser one.

    `region` is the coarser region of each region, shape (n_regions,), and `epoch` the longer epoch
    of each epoch, of which there are `n_coarse`. Their counts may not add up if somebody in several
    of the cells is one person of the coarser one.
    """

    region: Ints64
    epoch: Ints64
    n_coarse: int
    adds_up: bool

    @classmethod
    def of(cls, fine: View, coarse: View) -> Nesting | None:
        """Return how one table nests in another; None where it does not."""
        same = fine.layout == coarse.layout
        adds_up = same or (_adds_up(fine) and coarse.layout.counts == "visits")
        distinct = coarse.layout.counts == "people" and coarse.facts.most_added == 1
        of, into = fine.facts.epochs, coarse.facts.epochs
        epoch = of.places_in(into)
        covered = of.covered_by(into.length) == into and (epoch >= 0).all()
        if not covered or not (adds_up or distinct):
            return None
        n_finest = len(fine.layout.regions or coarse.layout.regions or fine.facts.regions.ids)
        finest = np.arange(n_finest)
        own, others = (
            finest if one.layout.regions is None else np.array(one.layout.regions)
            for one in (fine, coarse)
        )
        region = np.empty(len(fine.facts.regions), np.int64)
        region[own] = others
        if not (region[own] == others).all():
            return None
        return cls(region, epoch.astype(np.int64), into.n, adds_up)

    @cached_property
    def parent(self) -> Ints64:
        """The coarser cell that each cell lies in, shape (n_cells,)."""
        cells = cell_at(self.region[:, None], self.epoch, self.n_coarse)
        return np.asarray(cells.reshape(-1))

    @cached_property
    def parts(self) -> tuple[Ints64, Ints64]:
        """The cells in the order of those that they lie in, and the latter, shape (n_cells,)."""
        cells = np.argsort(self.parent, kind="stable")
        return cells, self.parent[cells]


class Chain(NamedTuple):
    """Tables by their places in a publication, finest first, and how each nests in the next."""

    places: tuple[int, ...]
    nestings: tuple[Nesting, ...]


def chains(views: Sequence[View]) -> tuple[Chain, ...]:
    """Put tables into chains, each of which nests in the next.

    All tables are in one chain, some of them alone. The finest table of a chain comes first, and
    tables that add up come before those that do not.
    """
    found: list[Chain] = []
    order = sorted(
        range(len(views)), key=lambda i: (not _adds_up(views[i]), -views[i].facts.n_cells)
    )
    for place in order:
        for i, chain in enumerate(found):
            last, this = views[chain.places[-1]], views[place]
            nesting = Nesting.of(last, this)
            if nesting is not None and _can_be_joined(last) and _can_be_joined(this):
                found[i] = Chain((*chain.places, place), (*chain.nestings, nesting))
                break
        else:
            found.append(Chain((place,), ()))
    return tuple(found)


def _adds_up(view: View) -> bool:
    layout = view.layout
    return layout.counts == "visits" or (layout.regions is None and layout.epochs == 1)


def _can_be_joined(view: View) -> bool:
    """Tell whether counts are those of the visits that are known, and cells draw independently."""
    mechanism, most = view.facts.mechanism, view.facts.most_count
    bounded, by_people = mechanism.bounds_visits, mechanism.law(most).own_draws()
    return bool(view.knowledge.cells.size) and not bounded and not by_people
