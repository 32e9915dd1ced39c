"""Data as custodians have them: read as they are meant, or refused with the way to go on."""

import gzip
import io
import json
import struct
import subprocess
import sys
import zipfile

import numpy as np
import polars as pl
import pytest

from whosthere.data.traces import Traces

INGEST = ("ingest", "records.csv", "-o", "out.parquet")
INSPECT = ("inspect", "records.csv")
IN_ROME = ("--timezone", "Europe/Rome")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def records(folder):
    """Give a function that writes records.csv."""

    def write(text, encoding="utf-8"):
        (folder / "records.csv").write_bytes(text.encode(encoding))

    return write


@pytest.fixture
def ingested(whosthere):
    """Run a command that must end well; return the traces and what was said."""

    def run(*arguments):
        code, out, err = whosthere(*arguments)
        assert code == 0, err
        return Traces.load("out.parquet"), out

    return run


def starts(traces):
    """Return the local start of each visited epoch."""
    zone = traces.epochs.timezone
    utc = pl.Series(traces.epochs.starts).dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    return [str(utc[int(cell) % traces.epochs.n])[:16] for cell in traces.cells]


def table(*rows, header="user,time,region"):
    return "\n".join([header, *rows]) + "\n"


# Times that could be read wrongly


@pytest.mark.parametrize(
    ("written", "as_unix", "as_date", "pattern"),
    [
        ("20240330", "1970-08-23", "2024-03-30 ", "%Y%m%d"),
        ("2024033010", "2034-02-20", "2024-03-30 10:00", "%Y%m%d%H"),
        ("202403301015", "1976-05-31", "2024-03-30 10:15", "%Y%m%d%H%M"),
        ("20240330101530", "2611-05-24", "2024-03-30 10:15:30", "%Y%m%d%H%M%S"),
    ],
)
@pytest.mark.parametrize("kind", ["text", "numbers"])
def test_dates_in_digits_are_refused_with_both_readings(
    refused, ingested, folder, records, written, as_unix, as_date, pattern, kind
):
    name = "records.csv"
    if kind == "text":
        records(table(f"u1,{written},a", f"u2,{written},b"))
    else:
        name = "records.parquet"
        pl.DataFrame({"user": ["u1"], "time": [int(written)], "region": "a"}).write_parquet(name)
    message = refused("ingest", name, "-o", "out.parquet")
    for part in (as_unix, as_date, f"'{pattern}'", "--time-format", "unix"):
        assert part in message
    traces, _ = ingested("ingest", name, "-o", "out.parquet", *IN_ROME, "--time-format", pattern)
    assert starts(traces)[0].startswith("2024-03-30")
    traces, _ = ingested("ingest", name, "-o", "out.parquet", "--time-format", "unix", "--force")
    assert starts(traces)[0].startswith(as_unix)


def test_unix_times_of_another_age_are_refused(refused, records, ingested):
    records(table("u1,86400,a"))
    message = refused(*INGEST)
    assert "86400 is 1970-01-02 00:00 UTC" in message
    assert "--time-format" in message
    # One among others is an invalid row.
    records(table("u1,1711793700,a", "u1,99999,a"))
    message = refused(*INGEST)
    assert "outside 1990 to 2099" in message
    records(table(*(f"u1,{1711793700 + i},a" for i in range(1100)), "u1,99999,a"))
    assert "line 1,102" in refused(*INGEST)
    _, out = ingested(*INGEST, "--drop-invalid")
    assert "- at an implausible time" in out


def test_day_and_month_must_be_proven_or_asked_for(refused, ingested, records):
    records(table("u1,03/04/2024 10:00,a", "u2,05/04/2024 11:00,a"))
    message = refused(*INGEST, *IN_ROME)
    assert "'03/04/2024 10:00' can be read with the day or with the month first" in message
    assert "--time-format" in message
    traces, _ = ingested(*INGEST, *IN_ROME, "--time-format", "day-first")
    assert starts(traces) == ["2024-04-03 10:00", "2024-04-05 11:00"]
    traces, _ = ingested(*INGEST, *IN_ROME, "--time-format", "month-first", "--force")
    assert starts(traces) == ["2024-03-04 10:00", "2024-05-04 11:00"]
    # A value above 12 proves it, wherever it stands.
    many = ["u1,03/04/2024 10:00,a"] * 2_000
    records(table(*many, "u2,25/04/2024 11:00,a"))
    traces, _ = ingested(*INGEST, *IN_ROME, "--force")
    assert starts(traces) == ["2024-04-03 10:00", "2024-04-25 11:00"]
    records(table("u1,25/04/2024 10:00,a", "u2,04/25/2024 11:00,a"))
    assert "Write all dates alike" in refused(*INGEST, *IN_ROME, "--force")


def test_the_day_of_one_file_is_proven_by_another(ingested, folder):
    (folder / "calls").mkdir()
    (folder / "calls" / "a.csv").write_text(table("u1,01.04.2024 10:00,a"))
    (folder / "calls" / "b.csv").write_text(table("u1,30.03.2024 10:00,a"))
    traces, _ = ingested("ingest", "calls", "-o", "out.parquet", *IN_ROME)
    assert starts(traces) == ["2024-03-30 10:00", "2024-04-01 10:00"]


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("user,date,time,region", "u1,2024-04-05,10:15,a"),
        ("user,date,hour,region", "u1,2024-04-05,10,a"),
        ("user,Date,Hour,region", "u1,20240405,10,a"),
        ("MSISDN,CALL_DATE,CALL_TIME,CELL_ID", "u1,2024/04/05,10:15:30,a"),
        ("user,day,clock,region", "u1,2024-04-05,10:15 AM,a"),
        ("IMSI,START_DATE,START_TIME,CELL_ID", "u1,2024-04-05,10:15:30.25,a"),
        ("user,timestamp,date,hour,region", "u1,2024-04-05 10:15,1999-01-01,5,a"),
        ("user,date,time,region", "u1,2024-04-05,2024-04-05T10:15,a"),
    ],
)
def test_dates_and_times_of_day_in_columns_of_their_own(ingested, records, header, row):
    records(table(row, header=header))
    traces, _ = ingested(*INGEST, *IN_ROME)
    assert starts(traces) == ["2024-04-05 10:00"]


def test_times_of_day_need_a_date(refused, ingested, records):
    records(table("u1,10:15,a"))
    assert "'time' holds times of day without a date" in refused(*INGEST, *IN_ROME)
    records(table("u1,5,a", header="user,hour,region"))
    assert "--date-column" in refused(*INGEST, *IN_ROME)
    records(table("u1,2024-04-05,10:15,a", header="user,giorno,time,region"))
    assert "--date-column" in refused(*INGEST, *IN_ROME)
    traces, _ = ingested(*INGEST, *IN_ROME, "--date-column", "giorno")
    assert starts(traces) == ["2024-04-05 10:00"]


# Changes of the clock


def test_hours_of_a_clock_change_are_named(refused, ingested, records):
    records(table("u1,2024-03-31 02:30,a", "u1,2024-10-27 02:30,a", "u1,2024-10-28 02:30,a"))
    message = refused(*INGEST, *IN_ROME)
    assert "'2024-03-31 02:30' does not exist in Europe/Rome" in message
    assert "--clock-change" in message
    records(table("u1,2024-10-27 02:30,a", "u1,2024-10-28 02:30,a"))
    assert "'2024-10-27 02:30' exists twice in Europe/Rome" in refused(*INGEST, *IN_ROME)


@pytest.mark.parametrize(
    ("how", "found"),
    [
        ("earlier", ["2024-03-31 01:00", "2024-10-27 02:00", "2024-10-28 02:00"]),
        ("later", ["2024-03-31 03:00", "2024-10-27 02:00", "2024-10-28 02:00"]),
        ("drop", ["2024-10-28 02:00"]),
    ],
)
def test_hours_of_a_clock_change_are_read_as_asked(ingested, records, how, found):
    records(table("u1,2024-03-31 02:30,a", "u1,2024-10-27 02:30,a", "u1,2024-10-28 02:30,a"))
    traces, out = ingested(*INGEST, *IN_ROME, "--clock-change", how)
    assert starts(traces) == found
    if how == "drop":
        assert "- at a local time that does not exist" in out
        assert "- at a local time that exists twice" in out
    else:
        assert f"1 local times that exist twice in Europe/Rome were read as the {how}" in out


# Text as programs write it


LATIN = "usuário;data;longitude;latitude\nzé;05/04/2024 10:15;-9,139;38,722\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16"])
@pytest.mark.parametrize("packed", ["plain", "gz", "zip"])
def test_encodings_and_decimal_commas(ingested, folder, encoding, packed):
    content = LATIN.encode(encoding)
    name = {"plain": "r.csv", "gz": "r.csv.gz", "zip": "r.zip"}[packed]
    if packed == "zip":
        with zipfile.ZipFile(name, "w") as archive:
            archive.writestr("inner/r.csv", content)
    else:
        (folder / name).write_bytes(gzip.compress(content) if packed == "gz" else content)
    traces, out = ingested(
        "ingest", name, "-o", "out.parquet", "--timezone", "Europe/Lisbon", "--grid", "1x1",
        "--user-column", "usuário", "--time-column", "data", "--time-format", "day-first",
    )  # fmt: skip
    assert traces.users == ("zé",)
    assert np.allclose(traces.regions.lon, -9.139, atol=1e-5)
    assert ("was read as" in out) == (encoding in {"latin-1", "utf-16"})


def test_files_of_one_name_in_an_archive_are_all_read(ingested, folder):
    with zipfile.ZipFile("r.zip", "w") as archive:
        archive.writestr("r.csv", table("a,2024-04-05T10:00Z,a"))
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("r.csv", table("b,2024-04-05T10:00Z,a"))
    traces, _ = ingested("ingest", "r.zip", "-o", "out.parquet")
    assert traces.users == ("a", "b")


@pytest.mark.parametrize("moment", [("us", -(2**63), None), ("us", 2**60, "UTC"),
                                    ("ms", 2**62, "UTC")])  # fmt: skip
def test_moments_beyond_the_calendar_are_no_times(ingested, refused, folder, moment):
    unit, far, zone = moment
    times = pl.Series([0, far]).cast(pl.Datetime(unit, zone))
    records = pl.DataFrame({"user": ["a", "b"], "time": times, "region": ["r", "r"]})
    records.write_parquet("r.parquet")
    command = ("ingest", "r.parquet", "-o", "out.parquet", "--timezone", "UTC")
    assert "row 2: column 'time': 'beyond the years 1 to 9999' is not a time" in refused(*command)
    assert ingested(*command, "--drop-invalid")[0].users == ("a",)


def test_zstd_is_read(ingested, folder):
    plain = table(*(f"u{i},2024-04-05T10:00Z,a" for i in range(3)), header="user;time;region")
    pl.read_csv(io.StringIO(plain.replace(";", ","))).write_csv("r.csv.zst", compression="zstd")
    traces, _ = ingested("ingest", "r.csv.zst", "-o", "out.parquet")
    assert traces.n_users == 3


def test_an_encoding_can_be_named(ingested, refused, folder):
    (folder / "r.csv").write_bytes(table("ć,2024-04-05T10:00Z,a").encode("utf-16-le"))
    assert "--encoding" in refused("ingest", "r.csv", "-o", "out.parquet")
    traces, _ = ingested("ingest", "r.csv", "-o", "out.parquet", "--encoding", "utf-16-le")
    assert traces.users == ("ć",)
    message = refused("ingest", "r.csv", "-o", "new.parquet", "--encoding", "utf-99")
    assert "'utf-99'" in message


RAGGED = table(
    'u1,2024-04-05T10:00Z,"a, with ""comma"""',
    "u2,2024-04-05T10:00Z,b,c,d",
    'u3,2024-04-05T10:00Z,"two',
    'lines"',
    "",
    "n/a,2024-04-05T10:00Z,a",
    'u5,"2024-04-05T10:00Z,a',
    "u6,2024-04-05T10:00Z",
    "u7,2024-04-05T10:00Z,z",
)


def test_ragged_rows_are_named_or_counted(refused, ingested, records):
    records(RAGGED)
    message = refused(*INGEST)
    assert "records.csv, line 3: has 5 fields where the header has 3" in message
    assert "--drop-invalid" in message
    traces, out = ingested(*INGEST, "--drop-invalid")
    assert traces.users == ("u1", "u3", "u7")
    assert set(traces.regions.ids) == {'a, with "comma"', "two\nlines", "z"}
    assert "- empty lines" in out
    assert "- with too many fields or an open quote │      -2" in out
    assert "- without a user" in out
    assert "- without a region" in out
    records(table('u1,2024-04-05T10:00Z,"a', 'b"', "n/a,2024-04-05T10:00Z,a"))
    assert "line 4: column 'user': 'n/a' is no user" in refused(*INGEST, "--force")


@pytest.mark.parametrize("packed", ["csv", "csv.gz"])
def test_a_row_with_a_control_character_is_named_or_counted(refused, ingested, folder, packed):
    text = table("u1,2024-04-05T10:00Z,a", "u\0002,2024-04-05T10:00Z,b", "u3,2024-04-05T10:00Z,c")
    content = text.encode()
    name = f"r.{packed}"
    (folder / name).write_bytes(gzip.compress(content) if packed == "csv.gz" else content)
    message = refused("ingest", name, "-o", "out.parquet")
    assert f"{name}, line 3: has a control character (NUL)" in message
    assert "--drop-invalid" in message
    assert "--encoding" not in message
    traces, out = ingested("ingest", name, "-o", "out.parquet", "--drop-invalid")
    assert traces.users == ("u1", "u3")
    assert "- with a control character" in out
    (folder / name).write_bytes(text.replace("user", "us\0er").encode())
    message = refused("ingest", name, "-o", "out.parquet", "--force")
    assert f"{name}, line 1: has a control character" in message


def test_control_characters_in_ids_further_on_are_noted(ingested, records):
    rows = [f"u{i % 9},2024-04-05T10:00Z,a" for i in range(9_000)]
    records(table(*rows, "u\0001,2024-04-05T10:00Z,a"))
    assert "Note: 1 user ids hold control characters" in ingested(*INGEST)[1]


def test_a_file_that_is_not_compressed_as_its_ending_says(refused, folder, rng):
    for ending, packing in (("csv.gz", "gzip"), ("csv.zst", "zstd")):
        (folder / f"r.{ending}").write_bytes(b"\1" + rng.bytes(5_000))
        message = refused("ingest", f"r.{ending}", "-o", "out.parquet")
        assert f"r.{ending}: is not compressed by {packing}, as its extension says" in message
        assert "Is the file whole and its extension right?" in message
        assert "encoding" not in message


def test_surplus_fields_are_found_where_other_columns_are_ignored(refused, records):
    rows = ("u1,2024-04-05T10:00Z,a,x,y", "u2,2024-04-05T10:00Z,b,x,y,z")
    records(table(*rows, header="user,time,region,more,columns"))
    assert "line 3: has 6 fields where the header has 5" in refused(*INGEST)


def test_broken_rows_far_into_a_file_are_found(refused, ingested, records):
    rows = [f"u{i % 50},2024-04-05T10:00Z,a" for i in range(30_000)]
    rows[25_000] += ",too,many"
    records(table(*rows))
    assert "line 25,002: has 5 fields" in refused(*INGEST)
    traces, _ = ingested(*INGEST, "--drop-invalid")
    assert traces.ledger.records_read == 30_000
    assert sum(entry.records for entry in traces.ledger.entries) == 30_000 - traces.n_visits


@pytest.mark.parametrize(
    "header",
    ["START_TIME,IMSI,CELL_ID", "Call Date,MSISDN,Cell-ID", "event_time,Subscriber ID,siteId",
     "TIMESTAMP,caller,bts"],
)  # fmt: skip
def test_usual_names_in_any_form(ingested, records, header):
    records(table("2024-04-05T10:00Z,u1,a", header=header))
    assert ingested(*INGEST)[0].users == ("u1",)


def test_cells_are_numbered_within_areas(ingested, records, folder):
    rows = [f"u{i},2024-04-05T10:00Z,{lac},{ci}" for i, (lac, ci) in enumerate([(1, 7), (2, 7)])]
    records(table(*rows, header="user,time,LAC,CI"))
    traces, _ = ingested(*INGEST)
    assert traces.regions.ids == ("1-7", "2-7")
    (folder / "cells.csv").write_text("LAC,CI,lon,lat\n1,7,9.1,45\n2,7,9.3,45\n")
    traces, _ = ingested(*INGEST, "--antennas", "cells.csv", "--grid", "1x2", "--force")
    assert traces.cells.tolist() == [0, 1]
    records(table(*rows, header="user,time,A,B"))
    traces, _ = ingested(*INGEST, "--region-column", "A+B", "--force")
    assert traces.regions.ids == ("1-7", "2-7")


def test_ids_of_raw_bytes_are_read_as_hexadecimal(ingested, folder):
    ids = [bytes([i]) * 32 for i in (255, 1)]
    frame = pl.DataFrame(
        {"user_id": ids, "timestamp": ["2024-04-05T10:00Z"] * 2, "cell_id": [b"\x00\xff"] * 2}
    )
    frame.write_parquet("r.parquet")
    traces, _ = ingested("ingest", "r.parquet", "-o", "out.parquet")
    assert traces.users == ("01" * 32, "ff" * 32)
    assert traces.regions.ids == ("00ff",)


def _wkb(lon, lat, order="<"):
    return struct.pack(f"{order}BIdd", order == "<", 1, lon, lat)


def test_points_of_geoparquet(ingested, refused, folder):
    points = [_wkb(9.1, 45.1), _wkb(9.2, 45.2, ">")]
    frame = pl.DataFrame(
        {"user": ["u1", "u2"], "timestamp": ["2024-04-05T10:00Z"] * 2, "where": points}
    )
    crs = {"id": {"authority": "EPSG", "code": 4326}}

    def write(crs):
        geo = {"primary_column": "where", "columns": {"where": {"encoding": "WKB", "crs": crs}}}
        frame.write_parquet("r.parquet", metadata={"geo": json.dumps(geo)})

    write(crs)
    traces, _ = ingested("ingest", "r.parquet", "-o", "out.parquet", "--grid", "2x2")
    assert traces.cells.tolist() == [0, 3]
    write({"name": "UTM zone 32N", "id": {"authority": "EPSG", "code": 32632}})
    message = refused("ingest", "r.parquet", "-o", "new.parquet", "--grid", "2x2")
    assert "UTM zone 32N" in message
    assert "WGS 84" in message


@pytest.mark.parametrize(
    "place",
    [
        {"geomPoint.geom": {"type": "Point", "coordinates": [9.1, 45.4]}},
        {"geomPoint": {"geom": {"type": "Point", "coordinates": [9.1, 45.4]}}},
        {"geometry": {"type": "Point", "coordinates": [9.1, 45.4, 120.0]}},
    ],
)
def test_geojson_whose_point_is_anywhere(ingested, folder, place):
    feature = {"user": "abc", "timestamp": 1383260400, "created": "x", "entities": [1], **place}
    (folder / "r.geojson").write_text(json.dumps({"features": [feature, feature]}))
    traces, _ = ingested("ingest", "r.geojson", "-o", "out.parquet", "--grid", "1x1")
    assert traces.users == ("abc",)


def test_geojson_without_a_usable_point(refused, folder):
    for geometry, said in (
        ({"type": "Point", "coordinates": [9.1]}, "a Point without longitude and latitude"),
        ({"type": "Polygon", "coordinates": []}, "a Polygon where a Point was expected"),
        (None, "a missing geometry"),
    ):
        feature = {"type": "Feature", "properties": {"user": "u"}, "geometry": geometry}
        (folder / "r.geojson").write_text(json.dumps({"features": [feature]}))
        assert said in refused("ingest", "r.geojson", "-o", "out.parquet", "--grid", "1x1")


# Which column is which


def test_ingest_says_which_columns_it_read(ingested, records):
    records(table("u1,2024-04-05,10:15,a", header="MSISDN,date,time,cell_id"))
    _, out = ingested(*INGEST, *IN_ROME)
    assert "Columns: user from 'MSISDN', time from 'date+time', region from 'cell_id'" in out
    records(table("u1,2024-04-05T10:00Z,9.1,45.1", header="user,t,x,y"))
    _, out = ingested(*INGEST, "--grid", "1x1", "--force")
    assert "time from 't', longitude from 'x', latitude from 'y'" in out


def test_a_column_that_seems_to_number_the_rows_is_noted(ingested, records, whosthere):
    rows = [f"{i},h{i % 5},2024-04-05T{i % 24:02d}:00Z,a" for i in range(40)]
    records(table(*rows, header="id,hash,timestamp,region"))
    _, out = ingested(*INGEST)
    assert "Note: each of the 40 users has one record only, as if 'id' numbered the rows" in out
    assert "(--user-column)." in out
    traces, out = ingested(*INGEST, "--user-column", "hash", "--force")
    assert traces.n_users == 5
    assert "one record only" not in out
    # A few people with a record each are nothing strange.
    records(table(*rows[:5], header="id,hash,timestamp,region"))
    assert "one record only" not in ingested(*INGEST, "--force")[1]
    _, out, _ = whosthere("inspect", "records.csv")
    assert "columns used by ingest, user" in out


@pytest.mark.parametrize(
    ("header", "candidates", "option"),
    [
        ("user,User,time,region", "the user: user, User", "--user-column"),
        ("id,subscriber_hash,timestamp,region", "the user: id, subscriber_hash", "--user-column"),
        ("user,timestamp,TimeStamp,region", "the time: timestamp, TimeStamp", "--time-column"),
        (
            "user,time,region,region",
            "the region: region (column 3), region (column 4)",
            "--region-column",
        ),
        ("user,time,CI,ci", "the region: CI, ci", "--region-column"),
    ],
)
def test_columns_that_serve_equally_well_are_refused(refused, records, header, candidates, option):
    records(table("1,2024-04-05T10:00Z,2024-04-05T10:00Z,a", header=header))
    message = refused(*INGEST)
    assert f"records.csv: has several columns that may hold {candidates}." in message
    assert f"({option})" in message


def test_a_column_that_is_there_twice_is_chosen_by_its_place(refused, ingested, records):
    records(table("1,2,2024-04-05T10:00Z,a", header="user,user,time,region"))
    named = (*INGEST, "--user-column")
    assert "no column 'user'. Known: user (column 1), user (column 2)" in refused(*named, "user")
    assert ingested(*named, "user (column 2)")[0].users == ("2",)


@pytest.mark.parametrize(
    "header", [b"3247\xff0000123,t,r", b"na\xefme4711,t,r", b"\x93u\x94,t,r", b"u3247000,t,r"]
)
def test_a_header_that_may_hold_an_id_is_not_shown(refused, folder, header):
    (folder / "records.csv").write_bytes(header + b"\nu1,2024-04-05T10:00Z,a\n")
    message = refused(*INGEST)
    assert "has no column for the user (found (unreadable), t, r)" in message


@pytest.mark.parametrize("end", [b"\xe2", b"\xe2\x82", b"\xf0\x9f\x98"])
def test_a_header_may_end_within_a_letter(whosthere, folder, end):
    (folder / "records.csv").write_bytes(b"regi" + end)
    assert whosthere(*INSPECT)[0] == 0


def test_a_better_name_wins_over_another(ingested, records):
    row = "7,u1,2024-04-05T10:00Z,a,2024,2025"
    records(table(row, header="id,user_id,timestamp,cell_id,day,Day"))
    traces, _ = ingested(*INGEST)
    assert traces.users == ("u1",)
    records(table(row, header="id,user_type,timestamp,cell_id,day,Day"))
    assert ingested(*INGEST, "--user-column", "id", "--force")[0].users == ("7",)


def test_ids_that_differ_by_spaces_only_are_counted(ingested, records):
    rows = [f"{user},2024-04-05T10:00Z,{region}" for user in ("u1", "u1 ", " u1", "u2", " u3")
            for region in ("a", "a ", "b", " c")]  # fmt: skip
    records(table(*rows))
    traces, out = ingested(*INGEST)
    assert traces.shape == (4, 1)
    assert traces.n_users == 5
    assert "Note: 3 user ids differ from one another only by spaces or quotes, and count" in out
    assert "Note: 2 region ids differ" in out
    # Spaces around every id, as after a comma, are nothing to note.
    records(table("u1, 2024-04-05T10:00Z, a", "u2, 2024-04-05T10:00Z, b"))
    assert "Note" not in ingested(*INGEST, "--force")[1]


SECRETS = ("u4711", "9.2234", "2024-04-05", "1712311200", "Duomo")


@pytest.mark.parametrize(
    "row",
    [
        "u4711,2024-04-05T10:00Z,Duomo",
        "u4711,05/04/2024 10:00,Duomo",
        "u4711,1712311200,Duomo",
        "u4711,2024-04-05 10:00,2024-04-05 10:05,Duomo",
        "u4711,5 Apr 2024 10:00,9.2234,45.1",
        "4711,x,9.2234,t",
    ],
)
@pytest.mark.parametrize("column", [(), ("--user-column", "user")])
def test_a_missing_header_shows_nobody(refused, records, row, column):
    records(f"{row}\n{row}\n")
    for command in ((*INGEST, *column), (*INGEST, "--grid", "2x2", *column), INSPECT):
        message = refused(*command)
        assert "records.csv: line 1 looks like data: the header with the names" in message
        assert "Add a first line with the names, such as user,time,region." in message
        assert not any(secret in message for secret in SECRETS)


def test_other_tables_without_a_header_show_nobody(refused, records, folder):
    records(table("u1,2024-04-05T10:00Z,a"))
    (folder / "pairs.csv").write_text("4711,4712\n4711,4713\n")
    message = refused(*INGEST, "--friends", "pairs.csv")
    assert "pairs.csv: line 1 looks like data" in message
    assert "such as user,friend." in message
    assert "47" not in message
    (folder / "regions.csv").write_text("a,9.1,45.1\nb,9.2,45.2\n")
    assert "such as region,lon,lat." in refused(*INGEST, "--regions", "regions.csv")


@pytest.mark.parametrize(
    "header", ["barrio,2024-04-05 10:00,2024-04-05 11:00", "barrio,2,3G,region", "a,b,c"]
)
def test_unusual_names_are_no_data(whosthere, records, header):
    records(f"{header}\n" + ",".join("1" * (header.count(",") + 1)))
    code, out, _ = whosthere(*INSPECT)
    assert code == 0
    assert header.replace(",", ", ") in out


def test_a_table_of_regions_with_two_columns_of_ids_is_refused(refused, records, folder):
    records(table("u1,2024-04-05T10:00Z,a"))
    (folder / "regions.csv").write_text("region,Region\na,North\n")
    message = refused(*INGEST, "--regions", "regions.csv")
    assert "regions.csv: has several columns that may hold the region: region, Region" in message
    assert "Say which column holds their ids (--place-column)" in message


def test_the_ids_of_a_table_of_places_are_found_named_and_chosen(
    ingested, refused, records, folder
):
    """A table of stations, as an operator publishes it: its location is a kind of place."""
    header = "id,name,obcn,location,latitude,longitude"
    (folder / "s.csv").write_text(f"{header}\n2,North,GDL-001,STREET,45.1,9.1\n")
    records(table("u1,2024-04-05T10:00Z,2", header="user,time,station_id"))
    traces, out = ingested(*INGEST, "--regions", "s.csv")
    assert traces.regions.ids == ("2",)
    assert "region from 'station_id', ids of places from 'id'" in out
    records(table("u1,2024-04-05T10:00Z,9.1,45.1", header="user,time,lon,lat"))
    by_name = ("--antennas", "s.csv", "--place-column", "name", "--force")
    traces, out = ingested(*INGEST, *by_name)
    assert traces.regions.ids == ("North",)
    assert "ids of places from 'name'" in out
    message = refused(*INGEST, "--antennas", "s.csv", "--place-column", "nam", "--force")
    assert "s.csv: has no column 'nam'. Did you mean 'name'?" in message
    message = refused(*INGEST, "--grid", "2x2", "--place-column", "name", "--force")
    assert "--place-column does nothing without a table" in message


# Folders


def test_files_that_are_not_read_are_listed(ingested, folder):
    (folder / "calls").mkdir()
    (folder / "calls" / "a.csv").write_text(table("u1,2024-04-05T10:00Z,a"))
    (folder / "calls" / "b.txt").write_text(table("u2,2024-04-05T10:00Z,a"))
    (folder / "calls" / "c.csv.bak").write_text("")
    (folder / "calls" / "_SUCCESS").touch()
    traces, out = ingested("ingest", "calls", "-o", "out.parquet")
    assert traces.ledger.not_read == ("b.txt", "c.csv.bak")
    assert "b.txt, c.csv.bak" in out


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_names_of_folders_are_columns(ingested, folder, ending):
    for day in ("2024-04-05", "2024-04-06"):
        path = folder / "calls" / f"date={day}" / "region=n%2Fo" / f"part.{ending}"
        path.parent.mkdir(parents=True)
        frame = pl.DataFrame({"user": ["u1"], "hour": [7]})
        frame.write_csv(path) if ending == "csv" else frame.write_parquet(path)
    traces, _ = ingested("ingest", "calls", "-o", "out.parquet", *IN_ROME)
    assert traces.regions.ids == ("n/o",)
    assert starts(traces) == ["2024-04-05 07:00", "2024-04-06 07:00"]


# Antennas into areas


def test_records_go_where_their_antenna_stands(ingested, refused, records, folder):
    (folder / "cells.csv").write_text("cell_id;lon;lat\nc1;9,1;45,1\nc2;9,9;45,9\nc3;30;60\n")
    areas = {"west": (9, 9.5), "east": (9.5, 10)}
    features = [
        {"type": "Feature", "properties": {"name": name}, "geometry": {"type": "Polygon",
         "coordinates": [[[w, 45], [e, 45], [e, 46], [w, 46], [w, 45]]]}}
        for name, (w, e) in areas.items()
    ]  # fmt: skip
    (folder / "areas.geojson").write_text(json.dumps({"features": features}))
    records(table("u1,2024-04-05T10:00Z,c1", "u1,2024-04-05T11:00Z,c2", "u1,2024-04-05T11:00Z,c3"))
    command = (*INGEST, "--antennas", "cells.csv")
    traces, out = ingested(*command, "--polygons", "areas.geojson")
    assert traces.regions.ids == ("west", "east")
    assert traces.n_visits == 2
    assert "- in no region" in out
    for areas in (("--grid", "2x2"), ("--grid-km", "500"), ("--h3", "5")):
        assert ingested(*command, *areas, "--force")[0].n_visits == 3
    records(table("u1,2024-04-05T10:00Z,c1", "u1,2024-04-05T11:00Z,c9"))
    message = refused(*command, "--polygons", "areas.geojson", "--force")
    assert "line 3: region 'c9' is not in the regions table" in message
    _, out = ingested(*command, "--polygons", "areas.geojson", "--force", "--drop-invalid")
    assert "- in a region that is not in the table" in out


def test_options_without_effect_are_refused(refused, records, folder):
    records(table("u1,2024-04-05T10:00Z,a"))
    (folder / "cells.csv").write_text("cell_id,lon,lat\na,9.1,45.1\n")
    for options in (
        ["--reach-km", "3"],
        ["--polygon-id", "name"],
        ["--database", "x.duckdb"],
        ["--lon-column", "x"],
        ["--grid", "2x2", "--region-column", "region"],
        ["--antennas", "cells.csv", "--grid", "2x2", "--reach-km", "3"],
        ["--sql", "SELECT 1", "--encoding", "latin-1"],
    ):
        records_or_none = INGEST if "--sql" not in options else ("ingest", "-o", "out.parquet")
        assert "does nothing" in refused(*records_or_none, *options)
    assert "both records and --sql" in refused(*INGEST, "--sql", "SELECT 1")
    assert "neither records nor --sql" in refused("ingest", "-o", "out.parquet")


def test_a_file_without_one_usable_row_says_so(refused, records):
    records(table("n/a,2024-04-05T10:00Z,a", "u1,never,a"))
    message = refused(*INGEST, "--drop-invalid")
    assert "no row can be used (1 without a user, 1 without a valid time)" in message


def test_a_missing_extra_is_noticed_before_the_data_are_read(refused, records, monkeypatch):
    records("no records at all")
    monkeypatch.setitem(sys.modules, "h3.api.basic_int", None)
    message = refused(*INGEST, "--h3", "7")
    assert "[geo]" in message
    # The advice is for the way in which whosthere was installed.
    assert "pip install '" in message


@pytest.mark.parametrize("name", ["*", "^.*$", "a.b", "^x$"])
def test_names_of_columns_are_no_patterns(ingested, folder, records, name):
    records(table("u1,2024-04-05T10:00Z,a,1", header=f"user,time,{name},other"))
    assert ingested(*INGEST, "--region-column", name)[0].regions.ids == ("a",)
    (folder / "regions.csv").write_text(f"region,{name},lon,lat\na,b,9,45\n")
    command = (*INGEST, "--region-column", name, "--regions", "regions.csv", "--force")
    assert ingested(*command)[0].regions.ids == ("a",)


def test_columns_of_lists_are_refused(refused, folder):
    nested = {
        "user": ["u"],
        "time": ["2024-04-05T10:00Z"],
        "region": ["a"],
        "lon": [9],
        "lat": [45],
    }
    for role in nested:
        frame = pl.DataFrame({**nested, role: [[1, 2]]})
        frame.write_parquet("r.parquet")
        way = ("--grid", "1x1") if role in {"lon", "lat"} else ()
        assert "holds List" in refused("ingest", "r.parquet", "-o", "out.parquet", *way)
    pl.DataFrame({"user": [[1]], "friend": [[1]]}).write_parquet("friends.parquet")
    pl.DataFrame({**nested, "lat": [45]}).write_parquet("r.parquet")
    message = refused("ingest", "r.parquet", "-o", "out.parquet", "--friends", "friends.parquet")
    assert "friends.parquet: column 'user' holds List" in message


def test_a_zone_that_has_no_name_is_refused_without_a_panic(folder):
    """In a process of its own, for a panic writes to the stream of errors by itself."""
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra sql is not installed")
    pyarrow = pytest.importorskip("pyarrow")
    moments = pyarrow.array([1_712_311_200_000_000], pyarrow.timestamp("us", tz="+05:30"))
    table = pyarrow.table({"user": ["u"], "time": moments, "region": ["a"]})
    parquet.write_table(table, "r.parquet")
    command = [sys.executable, "-m", "whosthere", "ingest", "r.parquet", "-o", "out.parquet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: r.parquet: column 'time' holds")
    assert "+05:30" in done.stderr
    assert done.stderr.count("\n") == 1
