"""The graph of neighbours exists, is symmetric and connected, whatever the positions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import Delaunay

from whosthere.data.neighbours import Neighbours, as_graph, delaunay, nearest, project
from whosthere.errors import InputError

AWKWARD = {
    "one": [(0, 0)],
    "two": [(0, 0), (1, 1)],
    "three on a line": [(0, 0), (2, 2), (1, 1)],
    "all in one place": [(3, 4)] * 5,
    "two places": [(0, 0), (1, 0), (0, 0), (1, 0)],
    "a square with a doubled corner": [(0, 0), (0, 1), (1, 0), (1, 1), (1, 1)],
    "almost a line": [(0, 0), (1, 1e-14), (2, 0), (3, 1e-14)],
    "a grid": [(x, y) for x in range(4) for y in range(5)],
}


def _matrix(graph):
    n = graph.indptr.size - 1
    return csr_array((np.ones(graph.indices.size), graph.indices, graph.indptr), (n, n))


@pytest.mark.parametrize("points", AWKWARD.values(), ids=AWKWARD.keys())
def test_awkward_positions_give_a_connected_graph(points):
    _check(np.array(points, dtype=float))


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=25))
def test_any_positions_give_a_connected_graph(points):
    _check(np.array(points, dtype=float))


def _check(points):
    graph = _matrix(delaunay(points))
    assert graph.shape == (len(points), len(points))
    assert (graph != graph.T).nnz == 0
    assert graph.diagonal().sum() == 0
    assert connected_components(graph)[0] == 1


def test_points_in_one_place_share_their_neighbours():
    graph = delaunay(np.array(AWKWARD["a square with a doubled corner"], dtype=float))
    assert set(graph.of(3)) - {4} == set(graph.of(4)) - {3}
    assert 4 in graph.of(3)


def test_points_on_a_line_are_joined_along_it():
    graph = delaunay(np.array([(0, 0), (2, 2), (1, 1), (5, 5)], dtype=float))
    assert [graph.of(i).tolist() for i in range(4)] == [[2], [2, 3], [0, 1], [1]]


def test_general_positions_give_the_triangulation(rng):
    points = rng.normal(size=(200, 2))
    indptr, indices = Delaunay(points).vertex_neighbor_vertices
    graph = delaunay(points)
    for i in range(200):
        assert set(graph.of(i)) == set(indices[indptr[i] : indptr[i + 1]])


def test_a_degree_is_111_km_and_the_date_line_is_no_border():
    plane = project(np.array([179.5, -179.5]), np.array([0.0, 0.0]))
    assert abs(plane[1, 0] - plane[0, 0]) == pytest.approx(111.195, abs=0.01)


_EDGES = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=30)


def _graph(edges):
    return as_graph(np.array(edges, dtype=np.int64).reshape(-1, 2), 9)


@given(_EDGES)
def test_edges_go_both_ways_once_and_never_in_a_loop(edges):
    graph = _graph(edges)
    wanted = {(a, b) for a, b in edges if a != b}
    wanted |= {(b, a) for a, b in wanted}
    assert {(a, int(b)) for a in range(9) for b in graph.of(a)} == wanted
    assert graph.indices.size == len(wanted)
    assert [tuple(pair) for pair in graph.pairs()] == sorted((a, b) for a, b in wanted if a < b)
    assert graph.n_edges == len(graph.pairs())


@given(_EDGES, st.lists(st.integers(0, 8), max_size=12))
def test_selecting_keeps_the_edges_among_the_selected(edges, chosen):
    dense = _matrix(_graph(edges)).toarray()
    selected = _graph(edges).select(np.array(chosen, dtype=np.int64))
    assert len(selected) == len(chosen)
    assert np.array_equal(_matrix(selected).toarray(), dense[np.ix_(chosen, chosen)])
    for i in range(len(chosen)):
        assert (np.diff(selected.of(i)) > 0).all()


def test_a_graph_is_a_value():
    indptr, indices = np.array([0, 1, 2]), np.array([1, 0])
    graph = Neighbours(indptr, indices)
    indices[:] = 7
    assert graph.of(0).tolist() == [1]
    assert repr(graph) == "<Neighbours: 2 vertices, 1 edges>"
    with pytest.raises(InputError, match="do not match"):
        Neighbours(indptr, indices[:1])


@pytest.mark.parametrize(("n", "most"), [(1, 3), (2, 3), (30, 4), (30, 40)])
def test_the_nearest_points_are_found(n, most):
    """Against all distances; points that lie in one place are neighbours of one another."""
    rng = np.random.default_rng(n)
    points = rng.integers(0, 4, (n, 2)).astype(np.float64)
    found = nearest(points, most)
    assert found.shape == (n, min(most, n - 1))
    away = np.linalg.norm(points[:, None] - points, axis=2)
    np.fill_diagonal(away, np.inf)
    for i, others in enumerate(found):
        assert np.unique(others).size == others.size
        assert away[i, others] == pytest.approx(np.sort(away[i])[: others.size])
