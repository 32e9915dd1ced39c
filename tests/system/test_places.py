"""Wrong places are said: far antennas and points, areas that cross themselves, projections."""

import json

import numpy as np
import polars as pl
import pytest

from whosthere.data.regions import Regions
from whosthere.data.traces import Traces
from whosthere.privacy.release import Release

N = 240


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def points(rng, folder):
    """Records of 12 people around Milan, in a square of about 30 km."""
    frame = pl.DataFrame(
        {
            "user": [f"u{i % 12}" for i in range(N)],
            "time": [f"2024-05-01T{i % 24:02}:00Z" for i in range(N)],
            "lon": rng.uniform(9.0, 9.4, N),
            "lat": rng.uniform(45.3, 45.6, N),
        }
    )
    frame.write_csv("points.csv")
    return frame


@pytest.fixture
def ingested(whosthere):
    def run(records, *options):
        code, out, err = whosthere("ingest", records, *options, "-o", "t.parquet", "--force")
        assert code == 0, err
        return Traces.load("t.parquet"), out

    return run


def areas(path, **rings):
    features = [
        {"type": "Feature", "properties": {"name": name},
         "geometry": {"type": "Polygon", "coordinates": [ring]}}
        for name, ring in rings.items()
    ]  # fmt: skip
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))


SQUARE = [[9, 45.3], [9.4, 45.3], [9.4, 45.6], [9, 45.6], [9, 45.3]]
BOW_TIE = [[9, 45.3], [9.4, 45.6], [9.4, 45.3], [9, 45.6], [9, 45.3]]


def antennas(path, points, lon="lon", lat="lat"):
    some = points.gather_every(10)
    pl.DataFrame(
        {"region": [f"a{i}" for i in range(some.height)], "lon": some[lon], "lat": some[lat]}
    ).write_csv(path)


def test_antennas_far_from_most_records_are_refused(ingested, refused, whosthere, points, folder):
    antennas("swapped.csv", points, lon="lat", lat="lon")
    message = refused("ingest", "points.csv", "--antennas", "swapped.csv", "-o", "new.parquet")
    assert "240 of 240 records lie more than 100 km from every antenna" in message
    assert "swapped?" in message
    assert "--reach-km" in message
    code, said, _ = whosthere("ingest", "points.csv", "--antennas", "swapped.csv", "--check")
    assert code == 2
    assert "240 of 240 records lie more than 100 km from every antenna" in said
    ingested("points.csv", "--antennas", "swapped.csv", "--reach-km", "9000")


@pytest.mark.parametrize("grid", [("--grid-km", "5"), ("--grid", "7x5")])
def test_a_grid_reaches_over_the_antimeridian(ingested, points, grid):
    """It is the same one as anywhere else on the same latitudes."""
    for name, west in (("here", 9.0), ("there", 179.84)):
        lon = west + pl.col("lon") - points["lon"].min()
        moved = points.with_columns(lon=pl.when(lon > 180).then(lon - 360).otherwise(lon))
        moved.write_csv(f"{name}.csv")
    assert moved["lon"].min() < 0 < moved["lon"].max()
    here, _ = ingested("here.csv", *grid)
    there, _ = ingested("there.csv", *grid)
    assert there.regions.ids == here.regions.ids
    assert there.cells.tolist() == here.cells.tolist()
    assert np.abs(there.regions.lon).min() > 179


def test_a_grid_that_a_stray_point_makes_too_large_is_refused(ingested, refused, points):
    at_zero = pl.int_range(N) == 7
    strayed = pl.when(at_zero).then(0.0).otherwise(pl.col("lon", "lat")).name.keep()
    points.with_columns(strayed).write_csv("stray.csv")
    message = refused("ingest", "stray.csv", "--grid-km", "0.5", "-o", "new.parquet")
    assert "larger squares, or leave out positions far away from all others" in message
    _, said = ingested("stray.csv", "--grid-km", "10")
    assert "missing position: 1 record." in said


def test_the_antimeridian_has_two_names(ingested, points):
    points.with_columns(lon=pl.Series([180.0, -180.0] * 120)).write_csv("line.csv")
    traces, said = ingested("line.csv", "--grid", "1x1")
    assert "in no region" not in said
    assert traces.n_users == points["user"].n_unique()


def test_an_area_that_crosses_itself_is_repaired_and_named(ingested, points, folder):
    areas(folder / "tie.geojson", tie=BOW_TIE)
    traces, said = ingested("points.csv", "--polygons", "tie.geojson")
    assert "1 of 1 areas have outlines that are not valid" in said
    assert "were repaired: tie" in said
    # The two triangles of the tie, left and right of its knot.
    across, up = ((points[axis] - low) / wide - 0.5 for axis, low, wide in
                  (("lon", 9, 0.4), ("lat", 45.3, 0.3)))  # fmt: skip
    inside = int((np.abs(across) >= np.abs(up)).sum())
    outside = next(e.records for e in traces.ledger.entries if e.reason == "in no region")
    assert outside == N - inside


def test_an_area_without_extent_is_refused(refused, points, folder):
    areas(folder / "line.geojson", line=[[9, 45], [9.1, 45.1], [9.2, 45.2], [9, 45]])
    message = refused("ingest", "points.csv", "--polygons", "line.geojson", "-o", "new.parquet")
    assert "line.geojson, feature 1: its polygon has no area" in message


def test_overlapping_areas_are_said(ingested, points, folder):
    areas(folder / "two.geojson", one=SQUARE, two=[[x + 0.1, y] for x, y in SQUARE])
    _, said = ingested("points.csv", "--polygons", "two.geojson")
    assert "places lie in several areas, and count in the first" in said


def test_projected_coordinates_are_called_so(refused, points, folder):
    metres = points.with_columns(lon=514_000 + 1000 * pl.col("lon"), lat=5_034_000.0)
    metres.write_csv("utm.csv")
    message = refused("ingest", "utm.csv", "--grid", "2x2", "-o", "new.parquet")
    assert "look projected" in message
    assert "EPSG:4326" in message
    assert "swapped" not in message
    areas(folder / "utm.geojson", a=[[514e3 + x, 5_034e3 + y] for x, y in SQUARE])
    message = refused("ingest", "points.csv", "--polygons", "utm.geojson", "-o", "new.parquet")
    assert "utm.geojson, feature 1" in message
    assert "look projected" in message
    antennas("utm-antennas.csv", metres)
    message = refused("ingest", "points.csv", "--antennas", "utm-antennas.csv", "-o", "new.parquet")
    assert "look projected" in message
    swapped = points.rename({"lon": "lat", "lat": "lon"}).with_columns(lat=pl.col("lat") + 90)
    swapped.write_csv("swapped.csv")
    message = refused("ingest", "swapped.csv", "--grid", "2x2", "-o", "new.parquet")
    assert "swapped?" in message


def test_areas_may_be_geoparquet(ingested, refused, points, folder):
    shapely = pytest.importorskip("shapely")
    west = [[9, 45.3], [9.2, 45.3], [9.2, 45.6], [9, 45.6], [9, 45.3]]
    east = [[x + 0.2, y] for x, y in west]
    areas(folder / "two.geojson", west=west, east=east)
    expected, _ = ingested("points.csv", "--polygons", "two.geojson")
    table = pl.DataFrame(
        {
            "code": ["W", "E"],
            "name": ["west", "east"],
            "geometry": [shapely.Polygon(ring).wkb for ring in (west, east)],
        }
    )
    geo = {"version": "1.0.0", "primary_column": "geometry", "columns": {"geometry": {}}}
    table.write_parquet("two.parquet", metadata={"geo": json.dumps(geo)})
    found, _ = ingested("points.csv", "--polygons", "two.parquet")
    assert found.regions == expected.regions
    assert found.cells.tolist() == expected.cells.tolist()
    assert found.regions.outlines == expected.regions.outlines
    found, _ = ingested("points.csv", "--polygons", "two.parquet", "--polygon-id", "code")
    assert found.regions.ids == ("W", "E")
    geo["columns"]["geometry"]["crs"] = {"name": "UTM", "id": {"authority": "EPSG", "code": 32632}}
    table.write_parquet("utm.parquet", metadata={"geo": json.dumps(geo)})
    message = refused("ingest", "points.csv", "--polygons", "utm.parquet", "-o", "new.parquet")
    assert "not longitudes and latitudes (UTM)" in message
    table.drop("geometry").write_parquet("none.parquet")
    message = refused("ingest", "points.csv", "--polygons", "none.parquet", "-o", "new.parquet")
    assert "no column of polygons" in message
    table.clear().write_parquet("none.parquet")
    message = refused("ingest", "points.csv", "--polygons", "none.parquet", "-o", "new.parquet")
    assert "none.parquet: has no areas" in message


@pytest.mark.parametrize(
    ("options", "corners"),
    [(("--grid", "3x4"), 4), (("--h3", "6"), 6), (("--polygons", "tie.geojson"), 3)],
)
def test_outlines_are_kept_in_traces_and_releases(
    ingested, whosthere, points, folder, options, corners
):
    areas(folder / "tie.geojson", tie=BOW_TIE)
    traces, _ = ingested("points.csv", *options)
    for row in range(len(traces.regions)):
        for ring in traces.regions.outline(row):
            assert len(ring) == 2 * corners
    for out in ("r.parquet", "r.csv"):
        assert whosthere("release", "t.parquet", "-M", "raw", "-o", out)[0] == 0
        assert Release.load(out).regions.outlines == traces.regions.outlines


def test_the_squares_of_a_grid_touch_one_another(ingested, points):
    traces, _ = ingested("points.csv", "--grid", "1x2")
    west, east = (np.reshape(traces.regions.outline(row)[0], (-1, 2)) for row in (0, 1))
    assert west.max(axis=0) == pytest.approx([east[:, 0].min(), points["lat"].max()], abs=1e-5)
    assert east.max(axis=0) == pytest.approx([points["lon"].max(), points["lat"].max()], abs=1e-5)


def test_details_of_an_area_that_no_map_shows_are_left_out(ingested, points, folder):
    """A circle of 20,000 corners, with many islands too small to be seen."""
    shapely = pytest.importorskip("shapely")
    circle = shapely.Point(9.2, 45.45).buffer(0.3, quad_segs=5_000)
    islands = [shapely.Point(9.8, 45.2 + i / 1000).buffer(1e-5) for i in range(300)]
    shape = shapely.MultiPolygon([circle, *islands])
    feature = {"type": "Feature", "id": "x", "geometry": shapely.geometry.mapping(shape)}
    (folder / "round.geojson").write_text(json.dumps({"features": [feature]}))
    traces, _ = ingested("points.csv", "--polygons", "round.geojson")
    (ring,) = traces.regions.outline(0)
    assert len(ring) < 200
    assert traces.n_visits


def test_regions_that_records_name_may_be_areas(ingested, refused, points, folder):
    """So that the map shows them, though nothing has to be found on it."""
    areas(folder / "two.geojson", west=SQUARE, east=[[x + 0.4, y] for x, y in SQUARE])
    pl.DataFrame({"user": ["u", "v"], "time": ["2024-05-01T00:00Z"] * 2, "region": ["west", "east"]}
                 ).write_csv("calls.csv")  # fmt: skip
    traces, _ = ingested("calls.csv", "--regions", "two.geojson")
    assert traces.regions.ids == ("west", "east")
    (ring,) = traces.regions.outline(1)
    assert sorted(ring[::2]) == pytest.approx([9.4, 9.4, 9.8, 9.8])
    (folder / "none.geojson").write_text('{"features": [{"geometry": null}]}')
    message = refused("ingest", "calls.csv", "--regions", "none.geojson", "-o", "new.parquet")
    assert "none.geojson, feature 1" in message


def test_damaged_outlines_are_refused():
    good = Regions(["a", "b"], [9, 10], [45, 45], [[[0, 0, 1, 0, 1, 1]]]).to_json()
    assert Regions.from_json(good).outlines == (((0, 0, 1, 0, 1, 1),),)
    for bad in ([["1 2 3"]], [["x y"]], [["1 nan"]], [["1 2"]] * 3):
        with pytest.raises(ValueError, match=r"outline|float"):
            Regions.from_json({**good, "outlines": bad})
