"""Ways to make regions, each against a plain restatement of what it means."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whosthere.data.reading.extent import Box, lon_lat
from whosthere.data.reading.partition import (
    NOWHERE,
    UNKNOWN,
    Grid,
    GridShape,
    H3Cells,
    NearestAntenna,
    RegionIds,
)
from whosthere.data.reading.polygons import Polygons
from whosthere.data.regions import Regions
from whosthere.errors import InputError, RecordsError

BOX = Box(9.0, 45.0, 9.4, 45.3)


def _places(lon, lat):
    return pl.DataFrame({"lon": lon, "lat": lat})


def _points(rng, n=500):
    return _places(rng.uniform(8.9, 9.5, n), rng.uniform(44.9, 45.4, n))


@pytest.mark.parametrize("grid", [Grid(1.6), Grid(7), GridShape(5, 8), GridShape(1, 1)], ids=str)
def test_grid_squares_hold_their_points(rng, grid):
    places = _points(rng)
    locator = grid.locator(BOX)
    regions = locator.regions()
    found = locator.locate(places)
    inside = BOX.holds(*lon_lat(places))
    assert np.array_equal(found != NOWHERE, inside)
    lon, lat = (axis[inside] for axis in lon_lat(places))
    centre = found[inside]
    for degrees, centres in ((lon, regions.lon), (lat, regions.lat)):
        steps = np.diff(np.unique(centres.round(9)), append=np.inf)
        assert np.abs(degrees - centres[centre]).max() <= steps[0] / 2 + 1e-8


def test_grid_squares_have_their_size():
    regions = Grid(2.0).locator(BOX).regions()
    km = regions.positions_km
    steps = np.diff(np.unique(km.round(6), axis=0), axis=0)
    assert np.abs(steps[:, 1][steps[:, 1] > 0] - 2.0).max() < 0.01


def test_the_far_edges_belong_to_the_last_squares():
    corner = _places(np.array([BOX.east, BOX.west]), np.array([BOX.north, BOX.south]))
    assert GridShape(3, 4).locator(BOX).locate(corner).tolist() == [11, 0]


def test_a_box_without_extent_is_one_place():
    point = Box(9.0, 45.0, 9.0, 45.0)
    for grid in (Grid(1.0), GridShape(2, 2)):
        located = grid.locator(point).locate(_places(np.array([9.0]), np.array([45.0])))
        assert located.tolist() == [0]


def test_nearest_antenna_is_the_nearest_on_the_ground(rng):
    places = _points(rng)
    antennas = Regions(
        [str(i) for i in range(30)], rng.uniform(9, 9.4, 30), rng.uniform(45, 45.3, 30)
    )
    lon, lat = (np.radians(axis)[:, None] for axis in lon_lat(places))
    a_lon, a_lat = np.radians(antennas.lon), np.radians(antennas.lat)
    haversine = (
        np.sin((lat - a_lat) / 2) ** 2
        + np.cos(lat) * np.cos(a_lat) * np.sin((lon - a_lon) / 2) ** 2
    )
    km = 2 * 6371.0088 * np.arcsin(np.sqrt(haversine))
    found = NearestAntenna(antennas).locator().locate(places)
    assert np.array_equal(found, km.argmin(axis=1))
    near = NearestAntenna(antennas, reach_km=3.0).locator().locate(places)
    assert np.array_equal(near, np.where(km.min(axis=1) <= 3.0, km.argmin(axis=1), NOWHERE))


def test_antennas_need_positions():
    with pytest.raises(InputError, match="no positions"):
        NearestAntenna(Regions(["a"])).locator()


@given(st.lists(st.sampled_from(["a", "b", "c", "7", "é"]), min_size=1))
def test_ids_are_found_in_the_table(names):
    places = pl.DataFrame({"region": pl.Series(names, dtype=pl.String)})
    found = RegionIds(Regions(["7", "a", "é"])).locator().locate(places)
    assert found.tolist() == [["7", "a", "é"].index(n) if n in "7aé" else UNKNOWN for n in names]


@given(st.lists(st.lists(st.integers(-50, 50), min_size=1), min_size=1, max_size=4))
def test_learned_ids_keep_their_number(batches):
    locator = RegionIds().locator()
    numbers = [locator.locate(pl.DataFrame({"region": batch})).tolist() for batch in batches]
    ids = locator.regions().ids
    assert [[ids[i] for i in batch] for batch in numbers] == [[str(n) for n in b] for b in batches]


def test_h3_cells_are_those_of_the_library(rng):
    h3 = pytest.importorskip("h3")
    places = _points(rng, 50)
    locator = H3Cells(7).locator()
    found = locator.locate(places)
    regions = locator.regions()
    for i in range(50):
        lon, lat = (float(axis[i]) for axis in lon_lat(places))
        assert regions.ids[found[i]] == h3.latlng_to_cell(lat, lon, 7)


def _square(west, south, size, **feature):
    ring = [[west, south], [west + size, south], [west + size, south + size], [west, south + size]]
    geometry = {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}
    return {"type": "Feature", "geometry": geometry, **feature}


def _write(path, *features):
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


def test_polygons_hold_their_points_and_the_first_wins(tmp_path):
    pytest.importorskip("shapely")
    path = _write(
        tmp_path / "areas.geojson",
        _square(0, 0, 2, properties={"name": "west", "code": "W"}),
        _square(1, 0, 2, properties={"name": "east", "code": "E"}),
    )
    places = _places(np.array([0.5, 1.5, 2.5, 9.0]), np.array([1.0, 1.0, 1.0, 1.0]))
    locator = Polygons(path).locator()
    assert locator.locate(places).tolist() == [0, 0, 1, NOWHERE]
    assert locator.regions().ids == ("west", "east")
    assert Polygons(path, "code").locator().regions().ids == ("W", "E")
    with pytest.raises(RecordsError, match=r"feature 1: has no property 'id_'.*name, code"):
        Polygons(path, "id_").locator()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not a GeoJSON FeatureCollection"),
        ("[]", "not a GeoJSON FeatureCollection"),
        ('{"features": []}', "no features"),
        ('{"features": [{"geometry": {"type": "Point", "coordinates": [0, 0]}}]}', "a Point where"),
        ('{"features": [{"geometry": null}]}', "missing geometry"),
        ('{"features": [{"geometry": {"type": "Polygon", "coordinates": "x"}}]}', "feature 1"),
    ],
)
def test_bad_polygons_are_refused(tmp_path, content, message):
    pytest.importorskip("shapely")
    path = tmp_path / "areas.geojson"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        Polygons(path).locator()


@pytest.mark.parametrize(
    "make",
    [lambda: Grid(0), lambda: Grid(float("nan")), lambda: GridShape(0, 3), lambda: H3Cells(16)],
)
def test_bad_sizes_are_refused(make):
    with pytest.raises(InputError):
        make()
