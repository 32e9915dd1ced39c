"""Undirected graphs: regions that lie next to one another, people who know one another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from whosthere.arrays import Floats, Ints32, Ints64, frozen, own
from whosthere.display import in_one_line
from whosthere.errors import InputError

EARTH_RADIUS_KM = 6371.0088
KM_A_DEGREE = np.pi * EARTH_RADIUS_KM / 180.0
"""Along a meridian."""
# Points whose spread across their main direction is below this share of the spread along it
# are on one line as far as a triangulation in double precision can tell.
_COLLINEAR = 1e-9


@dataclass(frozen=True, eq=False)
class Neighbours:
    """An undirected graph: vertex i is next to ``indices[indptr[i]:indptr[i + 1]]``, sorted.

    Shapes (n_vertices + 1,) and (2 * n_edges,): each edge stands with both of its ends.
    """

    indptr: Ints32
    indices: Ints32

    def __post_init__(self) -> None:
        object.__setattr__(self, "indptr", frozen(self.indptr, np.int32))
        object.__setattr__(self, "indices", frozen(self.indices, np.int32))
        if not self.indptr.size or self.indptr[-1] != self.indices.size:
            raise InputError("the rows of a graph do not match its edges")

    def __repr__(self) -> str:
        return in_one_line("Neighbours", f"{len(self):,} vertices", f"{self.n_edges:,} edges")

    def __len__(self) -> int:
        return int(self.indptr.size) - 1

    @property
    def n_edges(self) -> int:
        """How many pairs of vertices are next to one another."""
        return int(self.indices.size) // 2

    def of(self, vertex: int) -> Ints32:
        """Return the neighbours of one vertex."""
        return self.indices[self.indptr[vertex] : self.indptr[vertex + 1]]

    def pairs(self) -> Ints32:
        """Return each edge once, the smaller vertex first, in order; shape (n_edges, 2)."""
        vertex = np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.indptr))
        once = vertex < self.indices
        return np.column_stack([vertex[once], self.indices[once]])

    def select(self, vertices: Ints64) -> Neighbours:
        """Return the graph among the given vertices, numbered in the given order.

        A vertex that is given twice has all its edges twice.
        """
        from scipy.sparse import csr_array  # noqa: PLC0415 - slow to import

        present = np.ones(self.indices.size, dtype=bool)
        whole = csr_array((present, self.indices, self.indptr), shape=(len(self), len(self)))
        part = whole[vertices][:, vertices]
        part.sort_indices()
        return Neighbours(own(part.indptr, np.int32), own(part.indices, np.int32))


def project(lon: Floats, lat: Floats) -> Floats:
    """Place longitudes and latitudes (degrees) on a plane, in km, shape (n, 2).

    Equirectangular around the points' own middle, which is right for cities and countries;
    points on both sides of the 180th meridian stay together.
    """
    turn = np.exp(1j * np.radians(lon))
    middle_lon = np.degrees(np.angle(turn.sum()))
    middle_lat = lat.mean()
    east = (lon - middle_lon + 180.0) % 360.0 - 180.0
    return np.column_stack(
        [east * KM_A_DEGREE * np.cos(np.radians(middle_lat)), (lat - middle_lat) * KM_A_DEGREE]
    )


def delaunay(points: Floats) -> Neighbours:
    """Join points (shape (n, 2)) that share an edge of the Delaunay triangulation.

    Where no triangulation exists the nearest sensible graph is made: points on a line are
    joined to the next ones along it, and points in one place are joined to one another and to
    all neighbours of that place. The graph is always connected.
    """
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow to import

    places, place_of = np.unique(points, axis=0, return_inverse=True)
    n, loops = len(points), np.arange(len(places))
    here, there = np.concatenate([_edges_of_places(places), np.column_stack([loops, loops])]).T
    joined = csr_array((np.ones(here.size, bool), (here, there)), shape=(loops.size, loops.size))
    lies_at = csr_array((np.ones(n, bool), (np.arange(n), place_of.reshape(-1))))
    return as_graph(np.column_stack((lies_at @ joined @ lies_at.T).nonzero()), n)


def nearest(points: Floats, most: int) -> Ints32:
    """Return the points nearest to each (shape (n, 2)) but itself, nearest first.

    Shape (n, most), or (n, n - 1) where there are fewer.
    """
    from scipy.spatial import cKDTree  # noqa: PLC0415 - slow to import

    n = len(points)
    most = min(most, n - 1)
    found = np.asarray(cKDTree(points).query(points, np.arange(1, most + 2))[1])
    # A point in the same place may stand before the point itself, which may even be missing.
    others = found != np.arange(n)[:, None]
    others[others.all(axis=1), -1] = False
    return own(found[others].reshape(n, most), np.int32)


def _edges_of_places(places: Floats) -> Ints64:
    """Edges between distinct points, shape (n_edges, 2)."""
    from scipy.spatial import Delaunay, QhullError  # noqa: PLC0415 - slow to import

    centred = places - places.mean(axis=0)
    _, spread, directions = np.linalg.svd(centred, full_matrices=False)
    # Joins each point to the next along the direction in which they are spread most.
    order = np.argsort(centred @ directions[0], kind="stable")
    path = np.column_stack([order[:-1], order[1:]])
    if len(places) < 3 or spread[1] <= _COLLINEAR * spread[0]:
        return path
    try:
        triangulation = Delaunay(centred)
    except QhullError:
        return path
    corners = triangulation.simplices
    edges = [corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]]
    # Points that Qhull could not tell from a facet are joined to the vertex nearest to them.
    edges.append(triangulation.coplanar[:, [0, 2]])
    return np.concatenate(edges).astype(np.int64)


def as_graph(edges: Ints64, n: int) -> Neighbours:
    """Make the graph of n vertices with the given edges, shape (n_edges, 2).

    An edge may be given more than once and either way round; loops are dropped.
    """
    here, there = edges[edges[:, 0] != edges[:, 1]].T.astype(np.int64)
    # Sorting one number for both ends of an edge is many times faster than sorting pairs.
    ends = np.sort(np.concatenate([here * n + there, there * n + here]))
    here, there = np.divmod(ends[np.diff(ends, prepend=-1) > 0], max(n, 1))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(here, minlength=n))])
    return Neighbours(own(indptr, np.int32), own(there, np.int32))
