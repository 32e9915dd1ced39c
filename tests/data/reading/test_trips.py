"""Origin-destination tables: trips out of records, and the pairs of regions between them."""

import numpy as np
import polars as pl
import pytest

import whosthere as wt
from whosthere.data.flows import Pairs
from whosthere.data.regions import Regions
from whosthere.data.traces import Traces
from whosthere.errors import InputError
from whosthere.privacy.scheme import Layout
from whosthere.privacy.table_words import WrittenTable

RIDES = pl.DataFrame(
    {
        "user": ["u1", "u1", "u1", "u2", "u3"],
        "started_at": ["08:00", "08:30", "08:35", "09:00", "09:10"],
        "ended_at": ["08:20", "08:50", "08:55", "09:20", "12:10"],
        "start_station_id": ["A", "B", "B", "A", "C"],
        "end_station_id": ["B", "A", "A", "A", "A"],
    }
).with_columns(pl.format("2024-01-01T{}Z", one).alias(one) for one in ("started_at", "ended_at"))


def trips_of(traces):
    """Return what each user adds to which pair and hour."""
    rows = traces.to_frame().drop_nulls()
    weight = rows["weight"] if "weight" in rows.columns else pl.repeat(1, rows.height, eager=True)
    hours = rows["epoch_start"].dt.hour()
    return set(zip(rows["user"], rows["region"], hours, weight, strict=True))


def records(*rows):
    """Return records of (user, time of day, region)."""
    frame = pl.DataFrame(rows, schema=["user", "time", "region"], orient="row")
    return frame.with_columns(pl.format("2024-01-01T{}Z", "time").alias("time"))


def dropped(traces):
    return {entry.reason: (entry.records, entry.users) for entry in traces.ledger.entries}


def test_each_record_is_a_trip():
    traces = wt.read_records(RIDES, flows="trips")
    assert trips_of(traces) == {
        ("u1", "A > B", 8, 1),
        ("u1", "B > A", 8, 2),
        ("u2", "A > A", 9, 1),
        ("u3", "C > A", 9, 1),
    }
    assert len(traces.regions) == 9
    assert traces.most_added == 2
    assert traces.ledger.visits == 5
    assert traces.ledger.columns["end region"] == "end_station_id"
    assert any("1 trip within one region" in note for note in traces.ledger.notes)
    assert traces.visits_per_user().tolist() == [3, 1, 1]


def test_rules_leave_trips_out_with_their_reasons():
    spec = "trips(within=no, max_gap=1h, counts=people)"
    traces = wt.read_records(RIDES, flows=spec)
    assert trips_of(traces) == {("u1", "A > B", 8, 1), ("u1", "B > A", 8, 1)}
    assert traces.weights is None
    assert dropped(traces) == {
        "that last longer than 1h": (1, 1),
        "within one region": (1, 1),
        "repeats of a trip": (1, 0),
    }
    ledger = traces.ledger
    assert ledger.records_read - sum(entry.records for entry in ledger.entries) == ledger.visits


def visits_of(traces):
    rows = traces.to_frame()
    return set(zip(rows["user"], rows["region"], rows["epoch_start"].dt.hour(), strict=True))


def as_visits(rides):
    """Return both ends of trips as records, by other code."""
    return pl.concat(
        rides.select("user", pl.col(time).alias("time"), pl.col(place).alias("region"))
        for time, place in (("started_at", "start_station_id"), ("ended_at", "end_station_id"))
    )


def test_both_ends_of_a_trip_are_visits():
    traces = wt.read_records(RIDES, both_ends=True)
    expected = wt.read_records(as_visits(RIDES))
    assert visits_of(traces) == visits_of(expected)
    assert traces.epochs == expected.epochs
    assert traces.ledger.records_read == 10
    assert traces.ledger.columns["end region"] == "end_station_id"
    assert any("each trip is two records" in note for note in traces.ledger.notes)


def test_both_ends_of_a_trip_are_dropped_together_and_counted_each():
    wrong = RIDES.with_columns(end_station_id=pl.Series(["B", None, "A", "A", "A"]))
    calls = []
    traces = wt.read_records(
        wrong, both_ends=True, drop_invalid=True, progress=lambda *call: calls.append(call)
    )
    whole = wrong.drop_nulls()
    assert visits_of(traces) == visits_of(wt.read_records(as_visits(whole)))
    assert dropped(traces)["without a region"] == (2, 0)
    ledger = traces.ledger
    assert ledger.records_read - sum(entry.records for entry in ledger.entries) == ledger.visits
    assert calls[-1] == ("Reading records", 5, 5)
    with pytest.raises(InputError, match="the frame, row 1: column 'end_station_id': is empty"):
        wt.read_records(wrong, both_ends=True)


def test_both_ends_need_the_time_of_the_arrival():
    with pytest.raises(InputError, match="no column for the arrival"):
        wt.read_records(RIDES.drop("ended_at"), both_ends=True)


def test_one_end_of_a_trip_is_not_left_out_without_a_word():
    traces = wt.read_records(RIDES, region_column="end_station_id")
    assert "not read, though other ends of trips: start_station_id" in str(traces.ledger.notes)
    others = wt.read_records(RIDES.rename({"end_station_id": "x"}), region_column="x")
    assert "not read" not in str(others.ledger.notes)


def with_points(rides):
    return rides.with_columns(
        start_lat=pl.Series([45.0, 45.1, 45.1, 45.0, 45.2]),
        start_lng=9.0,
        end_lat=pl.Series([45.1, 45.0, 45.0, 45.0, 45.3]),
        end_lng=9.0,
    )


def test_points_of_both_ends_make_the_grid():
    ends = with_points(RIDES)
    with pytest.raises(InputError, match="begin at 'start_lng' and end at 'end_lng'"):
        wt.read_records(ends, grid="4x1")
    there = {
        hour
        for _, region, hour in visits_of(wt.read_records(ends, both_ends=True, grid="4x1"))
        if region == "r3c0"
    }
    assert there == {12}
    traces = wt.read_records(ends, flows="trips", grid="4x1")
    assert ("u3", "r2c0 > r3c0", 9, 1) in trips_of(traces)
    assert traces.regions.places.have_positions


def test_two_records_are_the_ends_of_a_trip():
    """In the order of time, whatever the order of rows; the window is about departures."""
    found = records(
        ("a", "08:50", "y"),
        ("a", "08:10", "x"),
        ("a", "09:05", "y"),
        ("a", "09:30", "z"),
        ("a", "10:00", "z"),
        ("b", "08:00", "x"),
        ("c", "07:50", "x"),
        ("c", "08:10", "y"),
    )
    traces = wt.read_records(found, flows="ends", start="2024-01-01T08:00", end="2024-01-01T09:20")
    assert trips_of(traces) == {("a", "x > y", 8, 1), ("a", "y > z", 9, 1)}
    assert dropped(traces) == {"that begin no trip": (5, 1), "outside the time window": (1, 1)}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("visits", {("x > p", 9, 1), ("p > y", 9, 1), ("y > x", 10, 1)}),
        ("visits(min_stay=20min)", {("x > y", 9, 1)}),
        ("visits(max_gap=30min)", {("x > p", 9, 1), ("p > y", 9, 1)}),
        ("visits(min_stay=10min, max_gap=10min)", set()),
    ],
)
def test_moves_between_visits_are_trips(spec, expected):
    """A visit lasts from its first to its last record; a short one is passed through."""
    found = records(
        ("a", "08:00", "x"),
        ("a", "08:40", "x"),
        ("a", "09:00", "x"),
        ("a", "09:20", "p"),
        ("a", "09:40", "y"),
        ("a", "10:10", "y"),
        ("a", "11:00", "x"),
    )
    if not expected:
        with pytest.raises(InputError, match="no trip is left of 7 records"):
            wt.read_records(found, flows=spec)
        return
    assert trips_of(wt.read_records(found, flows=spec)) == {("a", *one) for one in expected}


def test_only_listed_pairs_are_published():
    listed = pl.DataFrame({"origin": ["B", "A", "Z"], "destination": ["A", "A", "A"]})
    traces = wt.read_records(RIDES, flows="trips", pairs=listed)
    assert traces.regions.ids == ("A > A", "B > A", "Z > A")
    assert trips_of(traces) == {("u1", "B > A", 8, 2), ("u2", "A > A", 9, 1)}
    assert dropped(traces) == {"between regions that are no listed pair": (2, 1)}
    table = Regions(["A", "B", "C"])
    with pytest.raises(InputError, match="names 'Z', which is no region"):
        wt.read_records(RIDES, flows="trips", pairs=listed, regions=table)
    assert len(wt.read_records(RIDES, flows="trips", regions=table).regions) == 9


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"flows": "rides"}, "no kind of flows 'rides'"),
        ({"flows": "visits(min_stay=20)"}, "not a length of time"),
        ({"flows": "ends(min_stay=20min)"}, "no parameter 'min_stay'"),
        ({"flows": "ends"}, "looks like trips: they begin at 'start_station_id' and end at"),
        ({}, "looks like trips"),
        ({"grid": "2x2"}, "no column for the lon"),
        ({"flows": "trips", "destination_column": "nowhere"}, "no column 'nowhere'"),
        ({"flows": "trips", "destination_column": "start_station_id"}, "both ends of a trip"),
        ({"flows": "trips", "arrival_column": "started_at"}, "both ends of a trip"),
        ({"flows": "trips", "region_column": "start_station_id"}, "does nothing where both"),
        ({"flows": "ends", "both_ends": True}, "`both_ends` does nothing with `flows`"),
        ({"flows": "trips", "end_lon_column": "x"}, "does nothing here"),
        ({"flows": "trips", "grid": "2x2", "origin_column": "x"}, "does nothing here"),
        ({"flows": "trips", "grid": "2x2"}, "no column for the lon"),
        ({"pairs": RIDES}, "`pairs` does nothing without `flows`"),
        ({"arrival_column": "ended_at"}, "does nothing without `both_ends`, or `flows` of"),
        ({"flows": "trips", "regions": Regions(["A", "C"])}, "'B' is not in the regions table"),
    ],
)
def test_slips_are_refused(given, said):
    with pytest.raises(InputError, match=said):
        wt.read_records(RIDES, **given)


def test_a_table_without_destinations_says_which_column_is_missing():
    with pytest.raises(InputError, match="no column for the destination") as error:
        wt.read_records(RIDES.drop("end_station_id"), flows="trips")
    assert "`destination_column`" in error.value.fix


def test_arrivals_before_departures_are_refused_or_dropped():
    wrong = RIDES.with_columns(ended_at=pl.lit("2024-01-01T08:20Z"))
    with pytest.raises(InputError, match="lies before the departure"):
        wt.read_records(wrong, flows="trips")
    traces = wt.read_records(wrong, flows="trips", drop_invalid=True)
    assert dropped(traces) == {"that end before they begin": (4, 0)}
    assert traces.n_visits == 1


def test_a_row_that_is_bad_at_both_ends_is_counted_once():
    wrong = RIDES.with_columns(
        start_station_id=pl.Series(["A", None, "B", "A", "C"]),
        end_station_id=pl.Series(["B", None, "A", None, "A"]),
    )
    traces = wt.read_records(wrong, flows="trips", drop_invalid=True)
    assert dropped(traces) == {"without a region": (2, 0)}
    assert traces.ledger.records_read == 5


def test_files_keep_pairs(tmp_path):
    traces = wt.read_records(RIDES, flows="trips")
    traces.save(tmp_path / "flows.parquet")
    loaded = Traces.load(tmp_path / "flows.parquet")
    assert isinstance(loaded.regions, Pairs)
    assert loaded.regions == traces.regions
    assert trips_of(loaded) == trips_of(traces)
    some = traces.regions.select([5, 1])
    assert Pairs.from_json(some.to_json()).ids == ("B > C", "A > B")


def test_both_ends_are_merged():
    pairs = Pairs(Regions(["a", "b", "c"]))
    merged = pairs.merged(pairs.joined([0, 1, 0]))
    assert isinstance(merged, Pairs)
    assert merged.ids == ("a+c > a+c", "a+c > b", "b > a+c", "b > b")
    assert merged.places.ids == ("a+c", "b")
    apart = Pairs(Regions(["a", "b"])).merged([0, 0, 1, 2])
    assert not isinstance(apart, Pairs)
    assert apart.ids[0] == "a > a+a > b"
    named = pairs.merged(pairs.joined([0, 1, 0]), pairs.names([0, 1, 0], ("north", "south")))
    assert named.ids == ("north > north", "north > south", "south > north", "south > south")
    assert named.places.ids == ("north", "south")
    near = Pairs(Regions(list("abcd"), [0.0, 0.001, 1.0, 1.001], [45.0] * 4))
    assert near.merged(near.in_groups_of(2)).places.ids == ("a+b", "c+d")


def test_coarser_tables_add_trips_up():
    traces = wt.read_records(RIDES, flows="trips")
    new = traces.regions.joined([0, 0, 1])
    coarse = Layout(new, 2)(traces)
    assert coarse.regions.ids == ("A+B > A+B", "A+B > C", "C > A+B", "C > C")
    assert coarse.counts().sum() == traces.counts().sum() == 5
    assert coarse.added(0).tolist() == [3]
    assert coarse.most_added == 3


def test_a_table_of_districts_merges_both_ends(tmp_path):
    traces = wt.read_records(RIDES, flows="trips")
    districts = tmp_path / "districts.csv"
    districts.write_text("region,group\nA,inner\nB,inner\nC,outer\n")
    layout = WrittenTable.parse(f"regions={districts}").over(traces)
    assert layout(traces).regions.places.ids == ("inner", "outer")
    assert layout(traces).counts().sum(axis=1).tolist() == [4, 0, 1, 0]


@pytest.mark.parametrize("bad", [([0], [0, 1]), ([0], [3]), ([-1], [0])])
def test_pairs_of_other_places_are_refused(bad):
    with pytest.raises(InputError, match="no pairs"):
        Pairs(Regions(["a", "b", "c"]), *map(np.array, bad))
