"""The numbering of cells."""

import numpy as np

from whosthere.data.cells import cell_at, epoch_of, region_and_epoch, region_of


def test_every_cell_has_a_number_of_its_own_and_is_found_by_it(traces):
    n_regions, n_epochs = traces.shape
    region, epoch = np.indices((n_regions, n_epochs))
    cells = cell_at(region, epoch, n_epochs)
    # In the order of counts with the shape (n_regions, n_epochs).
    assert np.array_equal(cells.reshape(-1), np.arange(traces.n_cells))
    assert np.array_equal(region_and_epoch(cells, n_epochs), (region, epoch))
    assert np.array_equal(region_of(cells, n_epochs), region)
    assert np.array_equal(epoch_of(cells, n_epochs), epoch)
