"""Regions as values, and their table."""

import numpy as np
import polars as pl
import pytest

from whosthere.data.reading.tables import read_regions
from whosthere.data.regions import Regions
from whosthere.errors import FileError, InputError, RecordsError


def test_csv_round_trip(regions, tmp_path):
    regions.write_csv(tmp_path / "r.csv")
    assert read_regions(tmp_path / "r.csv") == regions


def test_a_table_without_positions(tmp_path):
    (tmp_path / "r.csv").write_text("cell_id,name\n007,a\n8,b\n")
    read = read_regions(tmp_path / "r.csv")
    assert read.ids == ("007", "8")
    assert not read.have_positions
    with pytest.raises(InputError, match="no positions"):
        _ = read.neighbours


def test_parquet_and_other_names(tmp_path):
    table = pl.DataFrame({"antenna": [3, 1], "longitude": [9.1, 9.2], "latitude": [45.0, 45.1]})
    table.write_parquet(tmp_path / "a.parquet")
    read = read_regions(tmp_path / "a.parquet")
    assert read.ids == ("3", "1")
    assert read.lon.tolist() == [9.1, 9.2]


def test_the_callers_arrays_stay_theirs():
    lon = np.array([1.0, 2.0])
    regions = Regions(["a", "b"], lon, [3.0, 4.0])
    with pytest.raises(ValueError, match="read-only"):
        regions.lon[0] = 7.0
    lon += 5.0
    assert regions.lon.tolist() == [1.0, 2.0]


def test_thousands_of_regions_show_in_one_line():
    many = Regions([f"<{i}>" for i in range(5000)])
    assert repr(many) == "<Regions: 5,000 regions, without positions>"
    assert "5,000" in many._repr_html_()
    assert "<1>" not in many._repr_html_()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n", "has no region column"),
        ("region,lon,lat\nx,9,45\nx,9,46\n", "'x' appears more than once"),
        ("region,lon,lat\nx,9,abc\n", "row 1, column 'lat': 'abc' is not a number"),
        ("region,lon,lat\nx,45,109\n", "swapped"),
        ("region,lon\nx,45\n", "both longitude and latitude"),
        ("region\n", "at least one region"),
        ("region,lon,lat\n,9,45\n", "row 1 has no region id"),
    ],
)
def test_bad_tables_are_refused(tmp_path, content, message):
    path = tmp_path / "r.csv"
    path.write_text(content)
    with pytest.raises(RecordsError, match=message) as caught:
        read_regions(path)
    assert str(path) in str(caught.value)


def test_a_missing_file(tmp_path):
    with pytest.raises(FileError, match="does not exist"):
        read_regions(tmp_path / "none.csv")


class TestGroupsOfNeighbours:
    @pytest.mark.parametrize(("k", "side"), [(4, 2), (9, 3), (36, 6)])
    def test_a_grid_becomes_one_of_larger_squares(self, k, side):
        x, y = (each.ravel() for each in np.meshgrid(range(6), range(6)))
        # A degree is longer to the north than to the east.
        grid = Regions([f"{i}" for i in range(36)], 9 + x * 0.0143, 45 + y * 0.01)
        groups = np.array(grid.in_groups_of(k))
        squares = {(int(a), int(b)) for a, b in zip(x // side, y // side, strict=True)}
        assert len(set(groups)) == len(squares) == 36 // k
        for group in range(36 // k):
            own = groups == group
            assert len({*zip(x[own] // side, y[own] // side, strict=True)}) == 1
        assert len(grid.merged(groups)) == 36 // k

    @pytest.mark.parametrize("n", [2, 3, 7, 50, 114])
    @pytest.mark.parametrize("k", [2, 3, 5])
    def test_groups_are_full_except_the_last(self, rng, n, k):
        if k <= n:
            places = Regions([f"{i}" for i in range(n)], rng.uniform(9, 9.1, n), np.full(n, 45.0))
            sizes = np.bincount(places.in_groups_of(k))
            assert (sizes[:-1] == k).all()
            assert 1 <= sizes[-1] <= k

    def test_without_positions_nobody_is_near(self):
        with pytest.raises(InputError, match="without positions"):
            Regions(["a", "b", "c"]).in_groups_of(2)
