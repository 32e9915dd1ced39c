"""Which regions lie next to one another: the Delaunay triangulation of their positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from whosthere.data.arrays import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

EARTH_RADIUS_KM = 6371.0088
# Points whose spread across their main direction is below this share of the spread along it
# are on one line as far as a triangulation in double precision can tell.
_COLLINEAR = 1e-9


@dataclass(frozen=True, eq=False)
class Neighbours:
    """An undirected graph: vertex i is next to ``indices[indptr[i]:indptr[i + 1]]``, sorted."""

    indptr: NDArray[np.int32]
    indices: NDArray[np.int32]

    def of(self, vertex: int) -> NDArray[np.int32]:
        """Return the neighbours of one vertex."""
        return self.indices[self.indptr[vertex] : self.indptr[vertex + 1]]


def project(lon: NDArray[np.float64], lat: NDArray[np.float64]) -> NDArray[np.float64]:
    """Place longitudes and latitudes (degrees) on a plane, in km, shape (n, 2).

    Equirectangular around the points' own middle, which is right for cities and countries;
    points on both sides of the 180th meridian stay together.
    """
    turn = np.exp(1j * np.radians(lon))
    middle_lon = np.degrees(np.angle(turn.sum()))
    middle_lat = lat.mean()
    east = (lon - middle_lon + 180.0) % 360.0 - 180.0
    km_a_degree = np.pi * EARTH_RADIUS_KM / 180.0
    return np.column_stack(
        [east * km_a_degree * np.cos(np.radians(middle_lat)), (lat - middle_lat) * km_a_degree]
    )


def delaunay(points: NDArray[np.float64]) -> Neighbours:
    """Join points (shape (n, 2)) that share an edge of the Delaunay triangulation.

    Where no triangulation exists the nearest sensible graph is made: points on a line are
    joined to the next ones along it, and points in one place are joined to one another and to
    all neighbours of that place. The graph is always connected.
    """
    places, place_of = np.unique(points, axis=0, return_inverse=True)
    members = np.argsort(place_of.reshape(-1), kind="stable")
    edges = _edges_of_places(places)
    if len(places) == len(points):
        return as_graph(members[edges], len(points))
    bounds = np.cumsum(np.bincount(place_of.reshape(-1)))[:-1]
    return as_graph(_spread_over_members(edges, np.split(members, bounds)), len(points))


def _edges_of_places(places: NDArray[np.float64]) -> NDArray[np.int64]:
    """Edges between distinct points, shape (n_edges, 2)."""
    from scipy.spatial import Delaunay, QhullError  # noqa: PLC0415 - slow to import

    centred = places - places.mean(axis=0)
    if len(places) < 3 or _is_line(centred):
        return _path(centred)
    try:
        triangulation = Delaunay(centred)
    except QhullError:
        return _path(centred)
    corners = triangulation.simplices
    edges = [corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]]
    # Points that Qhull could not tell from a facet hang on to the vertex nearest to them.
    edges.append(triangulation.coplanar[:, [0, 2]])
    return np.concatenate(edges).astype(np.int64)


def _is_line(centred: NDArray[np.float64]) -> bool:
    spread = np.linalg.svd(centred, compute_uv=False)
    return bool(spread[1] <= _COLLINEAR * spread[0])


def _path(centred: NDArray[np.float64]) -> NDArray[np.int64]:
    """Join each point to the next along the direction in which they are spread most."""
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    order = np.argsort(centred @ directions[0], kind="stable")
    return np.column_stack([order[:-1], order[1:]])


def _spread_over_members(
    edges: NDArray[np.int64], members: list[NDArray[np.int64]]
) -> NDArray[np.int64]:
    """Turn edges between places into edges between all points at those places."""
    pairs = [(int(p), int(q)) for p, q in edges] + [(p, p) for p in range(len(members))]
    grids = [np.meshgrid(members[p], members[q]) for p, q in pairs]
    return np.column_stack([np.concatenate([g[side].ravel() for g in grids]) for side in (0, 1)])


def as_graph(edges: NDArray[np.int64], n: int) -> Neighbours:
    """Make the graph of n vertices with the given edges, shape (n_edges, 2); loops are dropped."""
    both_ways = np.concatenate([edges, edges[:, ::-1]])
    both_ways = np.unique(both_ways[both_ways[:, 0] != both_ways[:, 1]], axis=0)
    degrees = np.bincount(both_ways[:, 0], minlength=n)
    indptr = np.concatenate([[0], np.cumsum(degrees)])
    return Neighbours(frozen(indptr, np.int32), frozen(both_ways[:, 1], np.int32))
