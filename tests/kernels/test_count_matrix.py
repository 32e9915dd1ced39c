"""Matrices of counts in pairs: whatever is asked of them is what the dense matrix says."""

import numpy as np
import pytest

from whosthere import kernels
from whosthere.kernels import CountMatrix


def paired(rng, n_pairs, p, dtype, most=9):
    base = rng.integers(3, most, (n_pairs, p)).astype(dtype)
    dense = np.repeat(base, 2, axis=0)
    bounds, changed, changes = [0], [], []
    for pair in range(n_pairs):
        cells = np.sort(rng.choice(p, rng.integers(0, min(p, 6)), replace=False))
        amounts = rng.choice([-3, -1, 1, 4], cells.size)
        dense[2 * pair, cells] = base[pair, cells] + amounts
        changed.extend(cells)
        changes.extend(amounts)
        bounds.append(len(changed))
    counts = CountMatrix(
        base.T.copy(),
        2,
        np.array(bounds),
        np.array(changed, np.int32),
        np.array(changes, np.int32),
    )
    return counts, dense


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize(("n_pairs", "p"), [(1, 5), (9, 40), (13, 5000)])
def test_pairs_are_their_dense_matrix(rng, n_pairs, p, dtype):
    matrix, dense = paired(rng, n_pairs, p, dtype)
    for found in (matrix, CountMatrix.single(dense.T.copy())):
        assert found.shape == dense.shape
        assert np.array_equal(found.dense(), dense)
        total, squares = kernels.cell_sums(found)
        assert np.array_equal(total, dense.sum(axis=0))
        assert np.array_equal(squares, (dense.astype(np.int64) ** 2).sum(axis=0))
        mean, scale = rng.random(p), rng.random(p) + 0.5
        weights = rng.normal(size=2 * n_pairs)
        standardised = (dense - mean) / scale
        sums = kernels.standardised_sums(
            found, weights, mean.astype(np.float32), scale.astype(np.float32)
        )
        np.testing.assert_allclose(sums, weights @ standardised, atol=1e-3)
        cells = rng.permutation(p)[:4]
        for precision, rtol in ((np.float64, 1e-12), (np.float32, 1e-5)):
            chosen = np.empty((4, 2 * n_pairs), precision)
            kernels.standardised_cells(found, cells, mean, scale, chosen)
            np.testing.assert_allclose(chosen, standardised.T[cells], rtol=rtol)


def test_sums_of_the_largest_counts_are_exact(rng):
    for dtype in (np.uint8, np.uint16):
        counts = np.full((1000, 3), np.iinfo(dtype).max, dtype)
        total, squares = kernels.cell_sums(CountMatrix.single(counts.T.copy()))
        assert total.tolist() == [1000 * int(counts[0, 0])] * 3
        assert squares.tolist() == [1000 * int(counts[0, 0]) ** 2] * 3


def test_a_change_beyond_the_type_of_the_rows_finds_room():
    base = np.full((2, 1), 255, np.uint8)
    counts = CountMatrix(
        base, 2, np.array([0, 1]), np.array([1], np.int32), np.array([2], np.int32)
    )
    assert counts.dense().tolist() == [[255, 257], [255, 255]]
