"""Reading records: any form of the same records gives the same traces, and nothing is lost."""

import gzip
import json
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whosthere.data.ledger import FriendEntry, Ledger
from whosthere.data.reading import distinct, opening, source
from whosthere.data.reading.batches import RecordTable
from whosthere.data.reading.columns import Columns, arrange
from whosthere.data.reading.read import read_records
from whosthere.data.reading.times import TimeReader
from whosthere.data.regions import Regions
from whosthere.errors import EmptyError, FileError, InputError, RecordsError

START = datetime(2021, 6, 1, tzinfo=UTC)
REGIONS = Regions(["a", "b", "c"], [9.0, 9.1, 9.2], [45.0, 45.1, 45.2])


@pytest.fixture
def records(rng):
    """Two days of 500 records of 20 users, as an operator might send them."""
    n = 500
    seconds = rng.integers(0, 2 * 86_400, n)
    region = rng.integers(0, 3, n)
    return pl.DataFrame(
        {
            "user_id": [f"u{i:02d}" for i in rng.integers(0, 20, n)],
            "timestamp": [START + timedelta(seconds=int(s)) for s in seconds],
            "region": [REGIONS.ids[i] for i in region],
            "lon": REGIONS.lon[region],
            "lat": REGIONS.lat[region],
        }
    )


def _visits(traces):
    """Return the set of (user, region, epoch start) that the traces hold."""
    return {
        (
            user,
            traces.regions.ids[cell // traces.epochs.n],
            traces.epochs.starts[cell % traces.epochs.n],
        )
        for row, user in enumerate(traces.users)
        for cell in traces.trace(row)
    }


def _expected(records):
    """Return the same set straight from the records, without any of our code."""
    hours = records.with_columns(pl.col("timestamp").dt.truncate("1h").dt.replace_time_zone(None))
    rows = hours.select("user_id", "region", "timestamp").unique().rows()
    return {(u, r, np.datetime64(t)) for u, r, t in rows}


def _read(path, **options):
    return read_records(path, regions=REGIONS, **options)


def _write_parquet(records, folder):
    path = folder / "records.parquet"
    records.write_parquet(path)
    return path


def _write_rows(rows, folder):
    table = pl.DataFrame(rows, schema=["user", "time", "region"], orient="row")
    return _write_parquet(table, folder)


def test_visits_are_the_distinct_user_region_hours(records, tmp_path):
    traces = _read(_write_parquet(records, tmp_path))
    assert _visits(traces) == _expected(records)
    assert traces.regions == REGIONS
    assert traces.users == tuple(sorted(set(records["user_id"])))
    assert traces.ledger.records_read == 500
    assert traces.ledger.visits == traces.n_visits


def _iso(records):
    return records.with_columns(pl.col("timestamp").dt.strftime("%Y-%m-%dT%H:%M:%S%:z"))


def _as_csv(records, folder):
    path = folder / "r.csv"
    _iso(records).write_csv(path)
    return path


def _as_gzipped_semicolons(records, folder):
    path = folder / "r.csv.gz"
    path.write_bytes(gzip.compress(_iso(records).write_csv(separator=";").encode()))
    return path


def _as_gzipped_tabs(records, folder):
    path = folder / "r.tsv.gz"
    path.write_bytes(gzip.compress(_iso(records).write_csv(separator="\t").encode()))
    return path


def _as_ndjson(records, folder):
    path = folder / "r.ndjson"
    _iso(records).write_ndjson(path)
    return path


def _as_geojson(records, folder):
    path = folder / "r.geojson"
    features = [
        {
            "type": "Feature",
            "geometry": {"type": "Point", "coordinates": [row.pop("lon"), row.pop("lat")]},
            "properties": row,
        }
        for row in _iso(records).rows(named=True)
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


def _as_folder(records, folder):
    path = folder / "parts"
    (path / "deep").mkdir(parents=True)
    records.head(100).write_parquet(path / "b.parquet")
    _iso(records.slice(100, 250)).write_csv(path / "a.csv")
    _iso(records.tail(150)).write_ndjson(path / "deep" / "c.jsonl")
    (path / "_SUCCESS").touch()
    (path / "notes.md").write_text("not records")
    return path


def _as_unix_seconds(records, folder):
    path = folder / "r.csv"
    records.with_columns(pl.col("timestamp").dt.epoch("s")).write_csv(path)
    return path


@pytest.mark.parametrize(
    "write",
    [
        _as_csv,
        _as_gzipped_semicolons,
        _as_gzipped_tabs,
        _as_ndjson,
        _as_geojson,
        _as_folder,
        _as_unix_seconds,
    ],
)
def test_every_form_of_the_records_gives_the_same_traces(records, tmp_path, write):
    assert _visits(_read(write(records, tmp_path))) == _expected(records)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.randoms(use_true_random=False))
def test_the_order_of_records_does_not_matter(records, tmp_path, random):
    order = list(range(records.height))
    random.shuffle(order)
    first = _read(_write_parquet(records, tmp_path))
    second = _read(_write_parquet(records[order], tmp_path))
    assert first.users == second.users
    assert np.array_equal(first.indptr, second.indptr)
    assert np.array_equal(first.cells, second.cells)


def test_small_batches_and_merges_change_nothing(records, tmp_path, monkeypatch):
    path = _write_parquet(records, tmp_path)
    whole = _read(path)
    monkeypatch.setattr(source.FrameSource.batches, "__defaults__", (7,))
    monkeypatch.setattr(distinct, "_BLOCK", 20)
    pieces = _read(path)
    assert np.array_equal(whole.indptr, pieces.indptr)
    assert np.array_equal(whole.cells, pieces.cells)
    assert whole.ledger == pieces.ledger


def test_derived_seeds_as_users(records, tmp_path):
    numbered = records.with_columns(user_id=pl.col("user_id").str.slice(1).cast(pl.Int32))
    traces = _read(_write_parquet(numbered, tmp_path))
    assert traces.users == tuple(sorted(str(int(u[1:])) for u in set(records["user_id"])))
    assert traces.n_visits == len(_expected(records))


def test_a_grid_over_points(records, tmp_path):
    path = _write_parquet(records.drop("region"), tmp_path)
    traces = read_records(path, grid="3x3")
    assert len(traces.regions) == 9
    assert traces.n_visits == len(_expected(records))


def test_regions_learned_from_the_records_are_sorted_and_visited(records, tmp_path):
    path = _write_parquet(records.filter(pl.col("region") != "b"), tmp_path)
    traces = read_records(path)
    assert traces.regions.ids == ("a", "c")
    assert _visits(traces) == _expected(records.filter(pl.col("region") != "b"))


def test_unusual_columns_can_be_named(records, tmp_path):
    odd = records.rename({"user_id": "who", "timestamp": "when", "region": "where"})
    path = _write_parquet(odd, tmp_path)
    traces = _read(path, user_column="who", time_column="when", region_column="where")
    assert _visits(traces) == _expected(records)


def test_local_days_and_window(records, tmp_path):
    naive = records.with_columns(
        pl.col("timestamp").dt.convert_time_zone("America/Bogota").dt.replace_time_zone(None)
    )
    window = {"start": datetime(2021, 6, 1), "end": "2021-06-02"}
    traces = _read(_write_parquet(naive, tmp_path), timezone="America/Bogota", **window)
    assert traces.epochs.start == datetime(2021, 6, 1, 5, tzinfo=UTC)
    assert traces.epochs.n == 24
    inside = records.filter(
        pl.col("timestamp").is_between(
            START + timedelta(hours=5), START + timedelta(hours=29), closed="left"
        )
    )
    assert _visits(traces) == _expected(inside)


def test_the_ledger_accounts_for_every_record_and_user(records, tmp_path):
    far = records.head(60).with_columns(user_id=pl.lit("far"), lon=pl.lit(100.0))
    late = records.head(5).with_columns(
        user_id=pl.lit("late"), timestamp=pl.lit(START + timedelta(days=9))
    )
    path = _write_parquet(pl.concat([records, far.head(3), late]), tmp_path)
    filters = {
        "start": START, "end": START + timedelta(days=2), "min_visits": 20, "mostly_inside": True,
    }  # fmt: skip
    ledger = read_records(path, antennas=REGIONS, reach_km=200, **filters).ledger
    assert ledger.records_read == 508
    assert ledger.users_read == 22
    assert ledger.records_read == sum(e.records for e in ledger.entries) + ledger.visits
    assert ledger.users_read == sum(e.users for e in ledger.entries) + ledger.users
    dropped = {entry.reason: entry for entry in ledger.entries}
    assert dropped["outside the time window"].users == 1
    assert dropped["in no region"].users == 1


def test_users_who_miss_a_week_are_dropped(tmp_path):
    days = {"steady": [0, 7, 14], "gap": [0, 1, 2, 14], "late": [8, 15]}
    rows = [(u, START + timedelta(days=d), "a") for u, ds in days.items() for d in ds]
    path = _write_parquet(
        pl.DataFrame(rows, schema=["user", "time", "region"], orient="row"), tmp_path
    )
    window = {"start": START, "end": START + timedelta(days=23)}
    traces = _read(path, min_weekly_visits=1, **window)
    assert traces.users == ("steady",)


def test_users_mostly_elsewhere_are_dropped(tmp_path):
    places = {"local": "aab", "tourist": "xxa", "half": "ax"}
    rows = [
        (u, START + timedelta(hours=h), r) for u, rs in places.items() for h, r in enumerate(rs)
    ]
    path = _write_parquet(
        pl.DataFrame(rows, schema=["user", "time", "region"], orient="row"), tmp_path
    )
    traces = _read(path, mostly_inside=True, drop_invalid=True)
    assert traces.users == ("local",)


@pytest.mark.parametrize("drop_invalid", [False, True])
def test_a_first_look_reads_users_only_to_drop_rows_without_one(
    records, tmp_path, monkeypatch, drop_invalid
):
    read = []
    batches = source.FrameSource.batches

    def noted(opened, chosen, *others):
        read.append({expr.meta.output_name() for expr in chosen})
        return batches(opened, chosen, *others)

    path = _write_parquet(records, tmp_path)
    monkeypatch.setattr(source.FrameSource, "batches", noted)
    read_records(path, grid="3x3", drop_invalid=drop_invalid)
    looked_over, gathered = read
    assert gathered - looked_over == (set() if drop_invalid else {"user"})


def test_invalid_rows_are_dropped_and_counted_when_asked(records, tmp_path):
    broken = _iso(records).with_row_index("i").with_columns(
        user_id=pl.when(pl.col("i") == 3).then(None).otherwise("user_id"),
        timestamp=pl.when(pl.col("i") == 5).then(pl.lit("soon")).otherwise("timestamp"),
        lat=pl.when(pl.col("i").is_in([5, 8])).then(None).otherwise("lat"),
    )  # fmt: skip
    path = tmp_path / "r.csv"
    broken.drop("i").write_csv(path)
    traces = read_records(path, grid="3x3", drop_invalid=True)
    reasons = Counter({e.reason: e.records for e in traces.ledger.entries})
    assert reasons["without a user"] == 1
    assert reasons["without a valid time"] == 1
    assert reasons["without valid coordinates"] == 1
    assert traces.ledger.records_read == 500


GOOD = "user,time,lon,lat,region\nu1,2021-06-01T10:00:00Z,9.1,45.1,a\n"


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("time,lon,lat\n", {}, "no column for the user"),
        (
            "user,lon,lat\nu,1,2\n",
            {},
            r"no column for the time .found user, lon, lat.*column holds the time",
        ),
        ("user,time,lon\nu,1,2\n", {}, "no column for the lat"),
        (GOOD, {"user_column": "usr"}, r"no column 'usr'.*Did you mean 'user'"),
        (GOOD + "u1,2021-06-01T10:00:00,9,45,a\n", {}, "with and without a time zone"),
        ("user,time,lon,lat\nu,2021-06-01T10:00,9,45\n", {}, r"no time zone.*such as Europe/Rome"),
        (GOOD + "u1,tomorrow,9,45,a\n", {}, r"line 3: column 'time': 'tomorrow' is not a time"),
        (GOOD + "u1,2021-06-01T10:00:00Z,9,nan,a\n", {}, r"line 3: column 'lat': 'nan'"),
        (GOOD + "u1,2021-06-01T10:00:00Z,,45,a\n", {}, r"line 3: column 'lon'"),
        (GOOD + "u1,2021-06-01T10:00:00Z,45,139,a\n", {}, r"line 3.*swapped"),
        (GOOD + ",2021-06-01T10:00:00Z,9,45,a\n", {}, r"line 3: column 'user': is empty"),
        (GOOD, {"timezone": "Europe/Roma"}, "not a known time zone"),
        (
            GOOD,
            {"start": datetime(2022, 1, 1)},
            "no record lies in the time window",
        ),
        (
            GOOD,
            {"start": datetime(2022, 1, 1), "end": datetime(2022, 1, 2)},
            "no record lies in the time window",
        ),
        (GOOD, {"min_visits": 5}, r"no visit is left of 1 records.*fewer than 5"),
        (
            GOOD + "u1,1970-01-01T10:00:00Z,9,45,a\n",
            {},
            r"reach from 1970.*start.*end.*of the time window",
        ),
        ("", {}, "is empty"),
        ("user,time,lon,lat\n", {}, "holds no rows"),
    ],
)
def test_bad_records_are_refused(tmp_path, content, options, message):
    path = tmp_path / "r.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        read_records(path, grid="2x2", **options)


def test_unknown_regions_are_refused_by_row(records, tmp_path):
    other = records.with_columns(
        region=pl.when(pl.int_range(500) == 77).then(pl.lit("Z")).otherwise("region")
    )
    path = _write_parquet(other, tmp_path)
    with pytest.raises(RecordsError, match=r"row 78: region 'Z' is not in the regions table"):
        _read(path)
    assert _read(path, drop_invalid=True).ledger.entries[0].reason == (
        "in a region that is not in the table"
    )


def test_no_error_shows_a_user(records, tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("user,time,lon,lat\nsecret-person,never,9,45\n")
    with pytest.raises(RecordsError) as caught:
        read_records(path, grid="2x2")
    assert "secret-person" not in str(caught.value)


def test_unreadable_files_are_refused(records, tmp_path):
    path = _write_parquet(records, tmp_path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(RecordsError, match="cannot be read"):
        _read(path)
    with pytest.raises(FileError, match="does not exist"):
        _read(tmp_path / "none.csv")
    (tmp_path / "x.txt").write_text("x")
    with pytest.raises(FileError, match="unknown extension"):
        _read(tmp_path / "x.txt")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match="folder without files"):
        _read(tmp_path / "empty")


def test_inputs_are_left_alone(records, tmp_path):
    path = _write_parquet(records, tmp_path)
    before = path.read_bytes()
    _read(path)
    assert path.read_bytes() == before


def test_progress_reaches_the_end(records, tmp_path):
    calls = []
    _read(_write_parquet(records, tmp_path), progress=lambda *call: calls.append(call))
    assert calls[-1] == ("Reading records", 500, 500)


@pytest.mark.parametrize("later", ["2021-06-30T10:00:00Z", "2021-06-01T10:00:00Z"])
def test_records_that_change_between_two_readings_are_refused(records, tmp_path, later):
    """Also where the new rows lie within the time that was found in the first reading."""
    path = _as_csv(records, tmp_path)

    def grows(what, done, _total):
        if (what, done) == ("Reading records", 0):
            with path.open("a") as file:
                file.write(f"u00,{later},a,9.0,45.0\n")

    with pytest.raises(RecordsError, match=r"r\.csv: gave other records when it was read again"):
        _read(path, progress=grows)


_CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            _CELLS,
            st.one_of(
                _CELLS, st.sampled_from(["2021-06-01T10:00:00Z", "1622541600", "2021-06-01"])
            ),
            st.one_of(_CELLS, st.floats(-200, 200).map(str)),
            st.one_of(_CELLS, st.floats(-100, 100).map(str)),
        ),
        max_size=6,
    ),
    st.booleans(),
)
def test_any_text_is_read_or_refused_politely(tmp_path, rows, drop_invalid):
    path = tmp_path / "r.csv"
    pl.DataFrame(
        rows, schema=dict.fromkeys(("user", "time", "lon", "lat"), pl.String), orient="row"
    ).write_csv(path)
    try:
        traces = read_records(path, grid="2x2", timezone="UTC", drop_invalid=drop_invalid)
    except InputError:
        return
    assert 0 < traces.n_visits <= len(rows)


def test_empty_results_say_what_happened(records, tmp_path):
    filters = {"start": START, "end": START + timedelta(days=1), "min_visits": 10_000}
    with pytest.raises(EmptyError, match=r"outside the time.*repeats of a visit.*fewer than"):
        _read(_write_parquet(records, tmp_path), **filters)


def test_window_in_a_zone_with_summer_time(tmp_path):
    rome = ZoneInfo("Europe/Rome")
    rows = [("u", datetime(2013, 10, 27, 12, tzinfo=rome).astimezone(UTC), "a")]
    path = _write_parquet(
        pl.DataFrame(rows, schema=["user", "time", "region"], orient="row"), tmp_path
    )
    window = {"start": date(2013, 10, 27), "end": date(2013, 10, 28)}
    assert _read(path, timezone="Europe/Rome", **window).epochs.n == 25


def test_no_message_names_an_option(tmp_path):
    for content in (
        "user,lon,lat\nu,1,2\n",
        GOOD + "u1,tomorrow,9,45,a\n",
        GOOD + "u1,1970-01-01T10:00:00Z,9,45,a\n",
        "user,time,lon,lat\nu,2021-06-01T10:00,9,45\n",
        "user,time,lon,lat\n",
    ):
        path = tmp_path / "r.csv"
        path.write_text(content)
        with pytest.raises(InputError) as caught:
            read_records(path, grid="2x2")
        assert "--" not in str(caught.value)


def test_friends_are_read_with_the_records(records, tmp_path):
    (tmp_path / "friends.csv").write_text("user,friend\nu01,u03\nu03,u01\nu05,u02\nu05,nobody\n")
    path = _write_parquet(records, tmp_path)
    traces = _read(path, friends=tmp_path / "friends.csv")
    pairs = {tuple(traces.users[i] for i in pair) for pair in traces.friends.pairs()}
    assert pairs == {("u01", "u03"), ("u02", "u05")}
    assert traces.ledger.friends == FriendEntry(4, 1, 1, 2)
    assert Ledger.from_json(traces.ledger.to_json()) == traces.ledger
    assert _read(path).friends is None
    few = _read(path, friends=tmp_path / "friends.csv", min_visits=25)
    assert set(few.users) < set(traces.users)
    assert len(few.friends) == few.n_users


def test_a_wrong_table_of_friends_is_refused_before_the_records_are_read(tmp_path):
    (tmp_path / "friends.csv").write_text("user\na\n")
    (tmp_path / "r.csv").write_text("no records at all")
    with pytest.raises(RecordsError, match=r"friends\.csv: has no two columns"):
        _read(tmp_path / "r.csv", friends=tmp_path / "friends.csv")


def test_batches_show_no_user(records, tmp_path):
    (table,), _ = opening.open_sources(_write_parquet(records, tmp_path))
    layout = arrange(table, Columns(), ("user", "time", "point"))
    [batch] = RecordTable(layout, TimeReader(), learns_regions=False, drop_invalid=False).batches()
    assert "u0" not in repr(batch)
