"""Records of databases and workbooks give the same traces as the same records in a file."""

import contextlib
import itertools
import os
import shutil
import sqlite3
import subprocess
import sys
import zipfile
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from whosthere.data.traces import Traces

duckdb = pytest.importorskip("duckdb", reason="the extra sql is not installed")

N = 3_000
START = datetime(2024, 4, 1, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def records(rng, folder):
    frame = pl.DataFrame(
        {
            "msisdn": [f"u{i:03d}" for i in rng.integers(0, 60, N)],
            "start_time": [START + timedelta(seconds=int(s)) for s in rng.integers(0, 172_800, N)],
            "cell_id": [f"c{i}" for i in rng.integers(0, 9, N)],
        }
    )
    frame.write_parquet("records.parquet")
    return frame


@pytest.fixture
def database(records):
    with duckdb.connect("calls.duckdb") as connection:
        connection.execute("CREATE TABLE calls AS SELECT * FROM 'records.parquet'")
    return "calls.duckdb"


@pytest.fixture
def ingested(whosthere):
    def run(*arguments):
        code, out, err = whosthere("ingest", *arguments, "-o", "out.parquet", "--force")
        assert code == 0, err
        return Traces.load("out.parquet"), out

    return run


def same(one, other):
    return (
        one.users == other.users
        and one.regions == other.regions
        and np.array_equal(one.cells, other.cells)
        and one.epochs == other.epochs
    )


def test_a_query_gives_the_traces_of_the_file(ingested, database):
    options = ("--timezone", "Europe/Rome")
    expected, _ = ingested("records.parquet", *options)
    found, out = ingested("--sql", "SELECT * FROM calls", "--database", database, *options)
    assert same(found, expected)
    assert f"{N:,}" in out
    # Without a database the query names files; a comment at its end does no harm.
    query = "SELECT * FROM 'records.parquet' -- all"
    assert same(ingested("--sql", query, *options)[0], expected)
    columns = "msisdn AS who, cell_id AS place, epoch(start_time)::BIGINT AS moment"
    named = ("--user-column", "who", "--region-column", "place", "--time-column", "moment")
    query = f"SELECT {columns} FROM calls"
    assert same(ingested("--sql", query, "--database", database, *named, *options)[0], expected)


def test_rows_can_be_made_distinct_by_the_database(ingested, database):
    hours = "SELECT DISTINCT msisdn, cell_id, date_trunc('hour', start_time) AS time FROM calls"
    options = ("--timezone", "UTC")
    expected, _ = ingested("records.parquet", *options)
    found, _ = ingested("--sql", hours, "--database", database, *options)
    assert same(found, expected)
    assert found.ledger.records_read == found.n_visits


@pytest.mark.parametrize(
    ("query", "name", "said"),
    [
        ("SELECT * FROM nothing", "calls.duckdb", "nothing"),
        ("SELEC 1", "calls.duckdb", "syntax error"),
        ("DROP TABLE calls", "calls.duckdb", "not a single SELECT"),
        ("SELECT * FROM calls; SELECT 1", "calls.duckdb", "not a single SELECT"),
        ("-- nothing", "calls.duckdb", "not a single SELECT"),
        ("SELECT 1 AS one", "calls.duckdb", "no column for the user"),
        ("SELECT 1", "none.duckdb", "none.duckdb: does not exist"),
        ("SELECT 1", "records.parquet", "records.parquet"),
        ("SELECT * FROM calls WHERE cell_id", "calls.duckdb", "refused"),
        ("SELECT cell_id, cell_id FROM calls", "calls.duckdb", "a name of its own"),
        (
            "SELECT * FROM calls WHERE (cell_id || '''x')::INT = 1",
            "calls.duckdb",
            "string ... to INT32",
        ),
    ],
)
def test_what_a_database_refuses_is_one_message(whosthere, database, query, name, said):
    code, _, err = whosthere("ingest", "--sql", query, "--database", name, "-o", "out.parquet")
    assert code == 2
    assert err.count("\n") == 1
    assert said in err
    assert not Path("out.parquet").exists()


def test_a_row_that_cannot_be_read_late_is_not_shown(refused, folder):
    rows = (f"{i},2024-05-01T10:00Z,a" for i in [*range(30_000), "Ann"])
    (folder / "calls.csv").write_text("user,time,region\n" + "\n".join(rows))
    said = refused("ingest", "--sql", "SELECT * FROM 'calls.csv'", "-o", "out.parquet")
    assert "the database refused (Conversion Error" in said
    assert "Ann" not in said


def test_a_query_leaves_the_database_alone(whosthere, ingested, database):
    before = Path(database).read_bytes()
    ingested("--sql", "SELECT * FROM calls", "--database", database)
    assert Path(database).read_bytes() == before
    code, _, err = whosthere(
        "ingest", "--sql", "SELECT 1", "--database", database, "-o", database, "--force"
    )
    assert code == 2
    assert "extension" in err


@pytest.mark.parametrize(
    "broken_out",
    [
        "SELECT 1); COPY (SELECT 42) TO 'out.csv'; SELECT * FROM (SELECT 1",
        "COPY (SELECT 42) TO 'out.csv'; SELECT 1",
        "SELECT * FROM query('COPY (SELECT 42) TO out')",
        "SELECT 1; SET GLOBAL TimeZone = 'Asia/Tokyo'",
    ],
)
def test_a_query_only_selects(refused, folder, broken_out):
    """Whatever it says, nothing is written: the fixture compares the folder."""
    assert "--sql" in refused("ingest", "--sql", broken_out, "-o", "out.parquet")


@pytest.mark.parametrize(
    "by_chance",
    [
        "SELECT * FROM calls USING SAMPLE reservoir(1000 ROWS)",
        "SELECT msisdn, cell_id, start_time + to_hours((9 * random())::INT) AS time FROM calls",
        "SELECT * FROM calls ORDER BY random() LIMIT 1000",
    ],
)
def test_a_query_that_is_not_repeatable_is_refused(refused, database, by_chance):
    message = refused("ingest", "--sql", by_chance, "--database", database, "-o", "out.parquet")
    assert "the query: gave other records when it was read again" in message


def test_without_the_extra_it_is_named(whosthere, monkeypatch, folder):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    code, _, err = whosthere("ingest", "--sql", "SELECT 1", "-o", "out.parquet")
    assert code == 2
    assert "[sql]" in err


# PostgreSQL: a server of our own


def _programs():
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


def _extension():
    """Return the file by which DuckDB reaches PostgreSQL, where a package brought it along."""
    pattern = "duckdb_extension_postgres_scanner/extensions/v*/postgres_scanner.duckdb_extension"
    places = (Path(place) for place in sys.path if place)
    return next((file for place in places for file in place.glob(pattern)), None)


@pytest.fixture
def postgres(tmp_path_factory, records):
    """Start a server with a table of calls; give its address."""
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed")
    home = tmp_path_factory.mktemp("pg")
    as_whom = []
    if os.geteuid() == 0:
        if shutil.which("runuser") is None:
            pytest.skip("PostgreSQL does not run as root, and there is no runuser")
        shutil.chown(home, "nobody")
        # Up to the folder of the system, which is open to everybody.
        for parent in itertools.takewhile(lambda one: one.stat().st_uid == 0, home.parents):
            if parent.stat().st_mode & 0o001:
                break
            parent.chmod(0o755)
        as_whom = ["runuser", "-u", "nobody", "--"]

    def run(*command, check=True):
        subprocess.run([*as_whom, *map(str, command)], check=check, capture_output=True, cwd=home)

    run(programs / "initdb", "-D", home / "data", "-U", "tester", "-A", "trust", "--no-sync")
    options = f"-k {home} -c listen_addresses= -c fsync=off"
    run(programs / "pg_ctl", "-D", home / "data", "-o", options, "-l", home / "log", "-w", "start")
    try:
        address = f"postgresql:///postgres?host={home}&user=tester"
        copy = home / "calls.csv"
        records.write_csv(copy, datetime_format="%Y-%m-%dT%H:%M:%S%:z")
        sql = (
            "CREATE TABLE calls (msisdn text, start_time timestamptz, cell_id text); "
            f"COPY calls FROM '{copy}' CSV HEADER"
        )
        copy.chmod(0o644)
        run(programs / "psql", address, "-c", sql)
        yield address
    finally:
        # A server that has ended by itself is no fault of ours.
        run(programs / "pg_ctl", "-D", home / "data", "-m", "immediate", "stop", check=False)


@pytest.mark.slow
def test_a_postgresql_server_gives_the_traces_of_the_file(
    ingested, whosthere, postgres, tmp_path_factory, monkeypatch
):
    extension = _extension()
    if extension is None:
        pytest.skip("DuckDB's postgres extension is not there, and nothing is downloaded")
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    platform = duckdb.execute("PRAGMA platform").fetchone()[0]
    place = home / ".duckdb" / "extensions" / f"v{duckdb.__version__}" / platform
    place.mkdir(parents=True)
    shutil.copy(extension, place)
    expected, _ = ingested("records.parquet", "--timezone", "Europe/Rome")
    query = ("--sql", "SELECT * FROM calls", "--database", postgres)
    found, _ = ingested(*query, "--timezone", "Europe/Rome")
    assert same(found, expected)
    wrong = postgres.replace("/postgres?", "/nowhere?") + "&password=secret"
    code, _, err = whosthere("ingest", *query[:3], wrong, "-o", "new.parquet")
    assert code == 2
    assert "secret" not in err


def test_a_missing_extension_is_named(whosthere, folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder))
    code, _, err = whosthere(
        "ingest", "--sql", "SELECT 1", "--database", "postgresql://nobody@nowhere/x",
        "-o", "out.parquet",
    )  # fmt: skip
    assert code == 2
    assert "INSTALL postgres" in err


@pytest.mark.parametrize(
    ("query", "extension"),
    [
        ("SELECT * FROM sqlite_scan('calls.sqlite', 'calls')", "sqlite_scanner"),
        ("SELECT * FROM 's3://bucket/calls.parquet'", "httpfs"),
        ("SELECT ST_Point(1, 2)", "spatial"),
    ],
)
def test_a_query_that_needs_an_extension_names_it(refused, folder, monkeypatch, query, extension):
    monkeypatch.setenv("HOME", str(folder))
    message = refused("ingest", "--sql", query, "-o", "out.parquet")
    assert f"needs its extension {extension}" in message
    assert f"INSTALL {extension}" in message


def test_a_file_of_sqlite_names_the_extension(refused, folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder))
    with contextlib.closing(sqlite3.connect("calls.sqlite")) as connection:
        connection.execute("CREATE TABLE calls (user TEXT)")
        connection.commit()
    message = refused(
        *("ingest", "--sql", "SELECT * FROM calls", "--database", "calls.sqlite"),
        *("-o", "out.parquet"),
    )
    assert "calls.sqlite" in message
    assert "INSTALL sqlite" in message


def test_a_database_says_that_it_keeps_no_zone(ingested, folder):
    """A day of Rome is not one of UTC, and a database says nothing of either."""
    moments = [START + timedelta(hours=h) for h in range(48)]
    frame = pl.DataFrame({"user": ["u", "v"] * 24, "time": moments, "region": ["a", "b"] * 24})
    frame.with_columns(pl.col("time").dt.convert_time_zone("Europe/Rome")).write_parquet(
        "r.parquet"
    )
    of_file, said = ingested("r.parquet", "--epoch", "1d")
    assert of_file.epochs.timezone == "Europe/Rome"
    assert "time zone" not in said
    query = ("--sql", "SELECT * FROM 'r.parquet'", "--epoch", "1d")
    of_query, said = ingested(*query)
    assert of_query.epochs.timezone == "UTC"
    assert "midnight UTC. Say which zone is local (--timezone)" in said
    same_days, said = ingested(*query, "--timezone", "Europe/Rome")
    assert same(same_days, of_file)
    assert "time zone" not in said


# Workbooks


def _cell(value):
    text = f"<text:p>{value}</text:p>"
    return f'<table:table-cell office:value-type="string">{text}</table:table-cell>'


def _ods(path, rows):
    names = "urn:oasis:names:tc:opendocument:xmlns"
    body = "".join(f"<table:table-row>{''.join(map(_cell, row))}</table:table-row>" for row in rows)
    content = (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document-content '
        f'xmlns:office="{names}:office:1.0" xmlns:table="{names}:table:1.0" '
        f'xmlns:text="{names}:text:1.0" office:version="1.2"><office:body><office:spreadsheet>'
        f'<table:table table:name="S">{body}</table:table></office:spreadsheet></office:body>'
        "</office:document-content>"
    )
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", kind)
        archive.writestr(
            "META-INF/manifest.xml",
            f'<?xml version="1.0"?><manifest:manifest xmlns:manifest="{names}:manifest:1.0">'
            f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/>'
            '<manifest:file-entry manifest:full-path="content.xml" '
            'manifest:media-type="text/xml"/></manifest:manifest>',
        )
        archive.writestr("content.xml", content)


@pytest.mark.parametrize("ending", ["xlsx", "ods"])
def test_workbooks_are_read(ingested, whosthere, folder, workbook, ending):
    pytest.importorskip("fastexcel", reason="the extra sheets is not installed")
    rows = [
        ("user", "time", "region"),
        (7, "2024-04-05T10:00Z", "a"),
        (8, "2024-04-05T10:00Z", "a"),
    ]
    if ending == "xlsx":
        workbook(folder / "r.xlsx", {"S": rows})
    else:
        _ods(folder / "r.ods", rows)
    traces, _ = ingested(f"r.{ending}")
    assert traces.users == ("7", "8")
    (folder / f"bad.{ending}").write_bytes(b"PK\x03\x04 nothing")
    code, _, err = whosthere("ingest", f"bad.{ending}", "-o", "new.parquet")
    assert code == 2
    assert "is no workbook" in err


_FAR = {
    "xlsx": ("</sheetData>", '<row r="1048576"><c r="XFD1048576"{}</c></row></sheetData>'),
    "ods": (
        "</table:table>",
        '<table:table-row table:number-rows-repeated="1048000"/><table:table-row>'
        '<table:table-cell table:number-columns-repeated="16383"/><table:table-cell{}'
        "</table:table-cell></table:table-row></table:table>",
    ),
}


@pytest.mark.parametrize("ending", ["xlsx", "ods"])
def test_a_workbook_with_a_stray_cell_is_refused_before_it_is_read(
    ingested, refused, folder, workbook, ending
):
    """Its table would take 512 GiB; a cell that is only formatted is no cell of the table."""
    pytest.importorskip("fastexcel", reason="the extra sheets is not installed")
    rows = [("user", "time", "region"), ("u", "2024-04-05T10:00Z", "a")]
    for content in ("><v>1</v>" if ending == "xlsx" else "><text:p>x</text:p>", ">"):
        if ending == "xlsx":
            workbook(folder / "whole.xlsx", {"S": rows})
        else:
            _ods(folder / "whole.ods", rows)
        end, far = _FAR[ending]
        with (
            zipfile.ZipFile(f"whole.{ending}") as whole,
            zipfile.ZipFile(f"r.{ending}", "w", zipfile.ZIP_DEFLATED) as strayed,
        ):
            for name in whole.namelist():
                text = whole.read(name).decode()
                strayed.writestr(name, text.replace(end, far.format(content)))
        if content == ">":
            assert ingested(f"r.{ending}")[0].users == ("u",)
        else:
            message = refused("ingest", f"r.{ending}", "-o", "out.parquet")
            assert f"r.{ending}: its cells reach to row 1,048," in message
            assert "and column 16,384. Delete the cells" in message


def test_a_panic_of_a_library_is_one_message(refused, folder, workbook, monkeypatch):
    class PanicException(BaseException):
        pass

    def panics(_content):
        raise PanicException("called `Result::unwrap()` on an `Err` value")

    workbook(folder / "r.xlsx", {"S": [("user", "time", "region")]})
    broken = SimpleNamespace(read_excel=panics, FastExcelError=ValueError)
    monkeypatch.setitem(sys.modules, "fastexcel", broken)
    assert "r.xlsx: cannot be read (damaged)" in refused("ingest", "r.xlsx", "-o", "out.parquet")


def test_dates_and_times_of_day_are_cells_of_their_own(ingested, folder, workbook):
    """A time of day is a fraction of a day to a workbook, and a date a time at midnight."""
    pytest.importorskip("fastexcel", reason="the extra sheets is not installed")
    days = [(date(2024, 4, 5), time(0, 0)), (date(2024, 4, 5), time(13, 30)),
            (date(2024, 4, 6), time(23, 59))]  # fmt: skip
    rows = [("u", day, clock, "a") for day, clock in days]
    workbook("r.xlsx", {"S": [("user", "date", "time", "region"), *rows]})
    found, _ = ingested("r.xlsx", "--timezone", "UTC")
    assert found.epochs.n == 48
    assert found.cells.tolist() == [0, 13, 47]
