"""Records in memory: any frame of the same records gives the same traces as their file."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

import whosthere as wt
from whosthere.data.files import fingerprint
from whosthere.data.frames import as_lazy

pd = pytest.importorskip("pandas", reason="the extra pandas is not installed")
START = datetime(2021, 6, 1, tzinfo=UTC)
HOW = {"grid_km": 2, "epoch": "2h", "timezone": "Europe/Rome"}


@pytest.fixture(scope="module")
def records():
    """Two days of 400 records of 20 users, with unusual ids and digits."""
    rng = np.random.default_rng(3)
    seconds = rng.integers(0, 2 * 86_400, 400)
    return pl.DataFrame(
        {
            "user": [f"secret-{i:02d}" for i in rng.integers(0, 20, 400)],
            "time": [START + timedelta(seconds=int(s)) for s in seconds],
            "lon": rng.normal(9.19, 0.05, 400),
            "lat": rng.normal(45.46, 0.05, 400),
        }
    )


@pytest.fixture(scope="module")
def from_csv(records, tmp_path_factory):
    path = tmp_path_factory.mktemp("records") / "r.csv"
    records.write_csv(path, datetime_format="%Y-%m-%dT%H:%M:%S%:z")
    return wt.read_records(path, **HOW)


def _pandas(records):
    return records.to_pandas()


def _in_rome(records):
    return records.with_columns(pl.col("time").dt.convert_time_zone("Europe/Rome"))


def _categories(records):
    return records.to_pandas().astype({"user": "category"})


def _objects(records):
    frame = records.to_pandas()
    return frame.assign(user=frame["user"].astype(object), time=frame["time"].astype(object))


def _nullable(records):
    return records.to_pandas().convert_dtypes()


def _users_in_index(records):
    return records.to_pandas().set_index("user")


def _users_in_one_level(records):
    return records.with_row_index("event").to_pandas().set_index(["user", "event"])


def _texts(records):
    return records.with_columns(pl.col("time").dt.strftime("%Y-%m-%dT%H:%M:%S%:z")).to_pandas()


class _Trajectories(pd.DataFrame):
    """A frame as scikit-mobility has it: a class of its own, and a system that is a dict."""

    crs = {"init": "epsg:4326"}  # noqa: RUF012 - as there

    @property
    def _constructor(self):
        return _Trajectories


def _trajectories(records):
    names = {"user": "uid", "time": "datetime", "lon": "lng"}
    return _Trajectories(records.rename(names).to_pandas())


def _geo(records, name="geometry"):
    geopandas = pytest.importorskip("geopandas")
    frame = records.to_pandas()
    frame[name] = geopandas.points_from_xy(frame.pop("lon"), frame.pop("lat"), crs=4326)
    return geopandas.GeoDataFrame(frame, geometry=name)


def _positionfixes(records):
    names = {"user": "user_id", "time": "tracked_at"}
    return _geo(records.rename(names), "geom").rename_axis(index="id")


def _well_known_text(records):
    point = pl.format("POINT ({} {})", "lon", "lat")
    return records.select("user", "time", geometry=point)


@pytest.mark.parametrize(
    "as_frame",
    [
        pl.DataFrame.clone,
        pl.DataFrame.lazy,
        pl.DataFrame.to_arrow,
        *(_in_rome, _pandas, _categories, _objects, _nullable, _texts),
        *(_users_in_index, _users_in_one_level, _trajectories, _geo, _positionfixes),
        _well_known_text,
    ],
)
def test_a_frame_gives_the_traces_of_the_file(records, from_csv, tmp_path, as_frame):
    traces = wt.read_records(as_frame(records), **HOW)
    assert traces.users == from_csv.users
    assert np.array_equal(traces.indptr, from_csv.indptr)
    assert np.array_equal(traces.cells, from_csv.cells)
    assert traces.regions == from_csv.regions
    assert traces.epochs == from_csv.epochs
    prints = set()
    for one in (traces, from_csv):
        replace(one, ledger=replace(one.ledger, columns={})).save(tmp_path / "t", force=True)
        prints.add(fingerprint(tmp_path / "t"))
    assert len(prints) == 1


def test_frames_keep_their_zone_and_are_left_alone(records):
    frame = _pandas(_in_rome(records))
    before = frame.copy()
    traces = wt.read_records(frame, grid=(3, 4))
    assert traces.epochs.timezone == "Europe/Rome"
    assert len(traces.regions) == 12
    assert traces.ledger.notes == ()
    pd.testing.assert_frame_equal(frame, before)


def test_projected_points_are_converted_and_noted(records, from_csv):
    utm = _geo(records).to_crs(32632)
    traces = wt.read_records(utm, regions=wt.regions.Grid(2), epoch="2h", timezone="Europe/Rome")
    assert traces.ledger.notes == (
        "the points of the frame were converted from WGS 84 / UTM zone 32N to WGS 84",
    )
    assert traces.users == from_csv.users
    assert traces.n_visits == pytest.approx(from_csv.n_visits, abs=2)


def test_regions_friends_and_areas_may_be_frames(records):
    geopandas = pytest.importorskip("geopandas")
    shapely = pytest.importorskip("shapely")
    table = pl.DataFrame({"region": ["w", "e"], "lon": [9.1, 9.3], "lat": [45.4, 45.5]})
    friends = pd.DataFrame({"user": ["secret-01"], "friend": ["secret-02"]})
    traces = wt.read_records(records, antennas=table, friends=friends, timezone="UTC")
    assert traces.regions.ids == ("w", "e")
    assert traces.friends.n_edges == 1
    halves = [shapely.box(8, 44, 9.19, 47), shapely.box(9.19, 44, 11, 47)]
    districts = geopandas.GeoDataFrame({"code": ["w", "e"]}, geometry=halves, crs=4326)
    by_code = {"polygons": districts.to_crs(3857), "polygon_id": "code", "timezone": "UTC"}
    assert wt.read_records(records, **by_code).regions.ids == ("w", "e")


def _people(ids):
    return pd.DataFrame({"user": ids, "time": ["2021-06-01T10:00Z"] * len(ids), "region": "a"})


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (_people(["secret", 7]), {}, r"the frame: column 'user' cannot be read.*values of one typ"),
        (_people(["a"]).assign(x=object()), {}, "column 'x' cannot be read. Leave it out"),
        (_people(["secret", None]), {}, r"the frame, row 1: column 'user': is empty.*drop_invalid"),
        (pd.concat([_people(["a"])] * 2, axis=1), {}, r"a name of its own"),
        (_people(["a"]).assign(time="soon"), {}, r"row 0: column 'time': 'soon' is not a time"),
        (
            _people(["a"]).assign(time=pd.Timestamp("2021-06-01")),
            {},
            r"the frame: the times have no time zone.*`timezone`",
        ),
        (
            _people(["a"]).assign(time=pd.Timestamp("2021-06-01", tz="+05:30")),
            {},
            r"a zone with a name",
        ),
        (_people(["a"]).assign(time=pd.Period("2021-06", "D")), {}, r"column of times holds"),
        (_people(["a"]).rename(columns={"user": "wer"}), {}, r"column for the user.*`user_column`"),
        (_people([]), {}, "the frame: holds no rows"),
        (pd.DataFrame(), {}, "the frame: has no column for the user"),
        (pd.Series(["secret"]), {}, "the frame: a column cannot be read"),
        (_people(["a"]), {"grid_km": 1}, "no column for the lon"),
        (_people(["a"]), {"encoding": "latin-1"}, "`encoding` does nothing without files"),
        (_people(["a"]), {"user_from_path": True}, "`user_from_path` does nothing without files"),
        (_people(["a"]), {"grid_km": 1, "h3": 7}, "`grid_km` and `h3` cannot be combined"),
        (_people(["a"]), {"grid": "many"}, "`grid` 'many' is not a shape"),
        (_people(["a"]), {"start": "soon"}, "`start` 'soon' is not a time"),
        (_people(["a"]), {"lon_column": "x"}, "`lon_column` does nothing here"),
        (_people(["a"]), {"epoch": "an hour"}, "'an hour' is not a length of time"),
        (_people(["a"]), {"epoch": 3600}, "3600 is not a length of time"),
        (_people(["a"]), {"regions": ["a"]}, "a list is no table. Give a path, or a frame"),
        (42, {}, "a int is no table"),
        (
            pl.LazyFrame({"user": ["secret"]}).cast(pl.Int64),
            {"user_column": "user", "time_column": "user", "region_column": "user"},
            r"the frame: its query failed \(InvalidOperationError\). Collect it first",
        ),
    ],
)
def test_what_a_frame_lacks_is_said_in_words_of_python(frame, options, message):
    with pytest.raises(wt.InputError, match=message) as caught:
        wt.read_records(frame, **options)
    assert "--" not in str(caught.value)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None or "secret" not in str(caught.value.__cause__)


def test_points_in_no_system_of_degrees_are_refused(records):
    utm = _geo(records).to_crs(32632).set_crs(None, allow_override=True)
    with pytest.raises(wt.InputError, match=r"the frame, row 0: column 'geometry'.*projected"):
        wt.read_records(utm, grid_km=1)


def test_what_is_no_point_is_refused(records):
    areas = _geo(records).to_crs(32632)
    areas = areas.set_geometry(areas.buffer(10))
    with pytest.raises(wt.InputError, match=r"row 0: column 'geometry': a value is no point"):
        wt.read_records(areas, grid_km=1)
    with pytest.raises(wt.InputError, match="the frame: a column cannot be read"):
        wt.read_records(areas.geometry, grid_km=1)


def test_an_audit_takes_a_frame(records, capsys):
    few = {"mechanisms": "raw", "group_size": 5, "attacks": "likelihood-ratio", "targets": 2,
           "releases": 4, "what_if": False, "workers": 1}  # fmt: skip
    places = records.select("user", "time", region=pl.col("lon").round(1).cast(pl.String))
    scores = [wt.audit(frame, **few).scores for frame in (places, places.to_pandas())]
    assert scores[0].drop("seconds", strict=False).equals(scores[1].drop("seconds", strict=False))
    assert "Read 400 records of 20 people (user from 'user'" in capsys.readouterr().err
    with pytest.raises(
        wt.InputError, match=r"column for the region.*`read_records` first"
    ) as caught:
        wt.audit(records, **few)
    assert "--" not in str(caught.value)


def test_frames_without_the_extra_say_which(monkeypatch):
    frame = _people(["a"])
    monkeypatch.setattr(pd.DataFrame, "__arrow_c_stream__", _fails)
    with pytest.raises(wt.InputError, match=r"pip install.*\[pandas\]"):
        as_lazy(frame)


def _fails(*_):
    raise ImportError


def test_a_query_is_named_as_python_names_it():
    pytest.importorskip("duckdb", reason="the extra sql is not installed")
    with pytest.raises(wt.InputError, match=r"^`sql`: the database refused"):
        wt.read_records(wt.Query("SELECT nothing"))


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ({"h3": 8.5}, "`h3` must be a whole number, not 8.5"),
        ({"grid_km": "2"}, "`grid_km` must be a number, not '2'"),
        ({"grid": (5.5, 5)}, "is not a shape"),
        ({"grid": 5}, "is not a shape"),
        ({"grid_km": 2, "min_visits": "2"}, "`min_visits` must be a whole number"),
        ({"grid_km": 2, "timezone": UTC}, "not a known time zone"),
    ],
)
def test_numbers_are_numbers(records, words, problem):
    with pytest.raises(wt.InputError, match=problem):
        wt.read_records(records, **words)


def test_several_frames_are_refused_and_not_shown(records):
    words = {"mechanisms": "raw", "group_size": 5}
    for call in (wt.read_records, lambda some: wt.audit(some, **words)):
        with pytest.raises(wt.InputError, match="join several") as found:
            call([records, records])
        assert "secret" not in str(found.value)


def test_all_that_take_traces_take_such_records(records):
    named = records.with_columns(region=pl.col("lon").round(1).cast(pl.String)).drop("lon", "lat")
    traces = wt.read_records(named)
    words = {"mechanisms": "raw", "group_size": 5, "attacks": "likelihood-ratio"}
    rounds = [next(iter(wt.rounds(one, targets=2, **words))) for one in (named, traces)]
    assert rounds[0].release.counts.tolist() == rounds[1].release.counts.tolist()
    made = [wt.publish(one, "raw", group_size=5, seed=1) for one in (named.to_pandas(), traces)]
    assert (made[0].release.counts == made[1].release.counts).all()
    with pytest.raises(wt.InputError, match="a int is no table"):
        wt.publish(3, "raw", group_size=5, seed=1)
