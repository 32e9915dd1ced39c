"""Tables as statistical offices publish them: titles, notes, sheets, hours, marks."""

from datetime import date, datetime, time, timedelta

import pytest
import typer

from whosthere.cli.main import app
from whosthere.data.epochs import zone
from whosthere.privacy.release import Release

HOURS = range(3)
COUNTS = {"North": (20, 31, 0), "South": (18, 0, 1250)}
HIDING = "suppress(k=9, shown=mark)"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    pytest.importorskip("fastexcel", reason="the extra sheets is not installed")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def imported(whosthere):
    def run(table, *options, mechanism="raw"):
        code, out, err = whosthere(
            *("import", table, "-m", 5_000, "-M", mechanism, "--tz", "Europe/Rome"),
            *("-o", "out.parquet", "--force", *options),
        )
        assert code == 0, err
        return Release.load("out.parquet"), out

    return run


def command(table, *options, mechanism="raw"):
    given = ("-m", 5_000, "-M", mechanism, "--tz", "Europe/Rome", "-o", "new.parquet")
    return ("import", table, *given, *options)


def check(release, counts=COUNTS, length=timedelta(hours=1)):
    assert release.regions.ids == tuple(counts)
    assert release.counts.tolist() == [list(row) for row in counts.values()]
    assert release.epochs.length == length
    start = release.epochs.start.astimezone(zone(release.epochs.timezone))
    assert start.replace(tzinfo=None) == datetime(2024, 5, 1)


def long_rows(time_of):
    return [(name, *time_of(hour), row[hour]) for name, row in COUNTS.items() for hour in HOURS]


TITLES = [("Table 3. Visitors by zone and hour",), (), (None, "unit: people")]
NOTES = [(), ("Source: Statistics Office",), ("(a) Estimates",)]


def test_titles_notes_and_a_second_sheet(imported, refused, workbook, folder):
    rows = long_rows(lambda hour: (datetime(2024, 5, 1, hour),))
    table = [*TITLES, ("Zone", "Time", "People"), *rows, *NOTES]
    workbook("t.xlsx", {"About": [("Read me",)], "May": table})
    message = refused(*command("t.xlsx", "--sheet", "May"))
    assert "row 1 names 1 of 3 columns: is it a title?" in message
    assert "(--header-row), such as 4" in message
    for sheet in ("May", "2"):
        release, said = imported("t.xlsx", "--sheet", sheet, "--header-row", "4")
        check(release)
        assert (
            "left out 2 rows without any count, such as notes: 'Source: Statistics Office', "
            "'(a) Estimates'" in said
        )
    assert "no sheet 'Mai'" in refused(*command("t.xlsx", "--sheet", "Mai"))
    assert "Known: About, May" in refused(*command("t.xlsx", "--sheet", "3"))
    assert "fewer than 99 rows" in refused(*command("t.xlsx", "--header-row", "99"))
    table[6] = ("North", None, "many")
    workbook("bad.xlsx", {"May": table})
    message = refused(*command("bad.xlsx", "--header-row", "4"))
    assert "bad.xlsx, row 7" in message


@pytest.mark.parametrize(
    "hours",
    [
        ("00:00", "01:00", "02:00"),
        ("0h", "1h", "2h"),
        ("0h-1h", "1h-2h", "2h-3h"),
        ("00:00-01:00", "01:00-02:00", "02:00-03:00"),
        ("0\u20131h", "1\u20132h", "2\u20133h"),
        (0, 1, 2),
        (time(0), time(1), time(2)),
    ],
)
def test_hours_of_a_day(imported, refused, workbook, folder, hours):
    """In columns of their own, below a date or with it named by the user."""
    wide = [("Zone", *hours), *((name, *row) for name, row in COUNTS.items()), *NOTES]
    workbook("wide.xlsx", {"S": wide})
    release, said = imported("wide.xlsx", "--date", "2024-05-01")
    check(release)
    assert "left out 2 rows" in said
    message = refused(*command("wide.xlsx"))
    assert "its columns are times of day" in message
    assert "(--date)" in message
    rows = long_rows(lambda hour: (hours[hour],))
    workbook("long.xlsx", {"S": [("Zone", "Hour", "People"), *rows, *NOTES]})
    check(imported("long.xlsx", "--date", "2024-05-01")[0])
    assert "--date-column" in refused(*command("long.xlsx"))
    rows = long_rows(lambda hour: (date(2024, 5, 1), hours[hour]))
    workbook("dated.xlsx", {"S": [("Zone", "Date", "Hour", "People"), *rows]})
    check(imported("dated.xlsx")[0])
    assert "(--date)" in refused(*command("dated.xlsx", "--date", "2024-05-01"))


def test_a_table_without_any_time_is_of_the_day_that_is_given(imported, folder):
    (folder / "t.csv").write_text("zone,people\nA,4\nB,6\n")
    release, _ = imported("t.csv", "--date", "2024-05-01")
    check(release, {"A": (4,), "B": (6,)}, timedelta(days=1))
    release, _ = imported("t.csv", "--date", "2024-05-01", "--epoch", "7d")
    assert release.epochs.length == timedelta(days=7)


def test_spans_say_how_long_a_count_lasts(imported, refused, folder):
    """Only two of the hours are there: they are an hour long, not two."""
    (folder / "t.csv").write_text("zone,0h-1h,2h-3h\nA,4,6\n")
    check(imported("t.csv", "--date", "2024-05-01")[0], {"A": (4, 0, 6)})
    (folder / "t.csv").write_text("zone,0h-6h,6h-12h,12h-18h,18h-24h\nA,4,5,6,7\n")
    release, _ = imported("t.csv", "--date", "2024-05-01")
    check(release, {"A": (4, 5, 6, 7)}, timedelta(hours=6))
    (folder / "t.csv").write_text("zone,0h-6h,6h-12h,12h-24h\nA,4,5,6\n")
    assert "different lengths" in refused(*command("t.csv", "--date", "2024-05-01"))


def test_times_as_names_of_columns_are_cells_of_dates(imported, workbook, folder):
    times = [datetime(2024, 5, 1, hour) for hour in HOURS]
    workbook("t.xlsx", {"S": [("Zone", *times), *((z, *row) for z, row in COUNTS.items())]})
    check(imported("t.xlsx")[0])


def test_marks_below_a_number_are_known(imported, workbook, folder):
    rows = [("North", "< 10", 31, "<10"), ("South", 18, "≤9", 1250), ("West", "<1", 12, 0)]
    workbook("t.xlsx", {"S": [("Zone", "0h", "1h", "2h"), *rows]})
    release, said = imported("t.xlsx", "--date", "2024-05-01", mechanism=HIDING)
    assert release.withheld.sum(axis=1).tolist() == [2, 1, 0]
    assert release.counts.tolist() == [[0, 31, 0], [18, 0, 1250], [0, 12, 0]]
    assert "3 withheld" in said


def test_text_with_titles(imported, refused, folder):
    rows = long_rows(lambda hour: (f"2024-05-01 {hour:02}:00",))
    body = "".join(f"{name};{when};{count}\n" for name, when, count in rows)
    text = f"Table 3: Visitors\n\nZone;Time;Größe\n{body}\nSource: us\n"
    for encoding in ("utf-8-sig", "latin-1", "utf-16"):
        (folder / "t.csv").write_text(text, encoding=encoding)
        options = ("--header-row", "3", "--count-column", "Größe")
        release, said = imported("t.csv", *options)
        check(release)
        assert "left out 1 row without any count, such as notes: 'Source: us'" in said
    (folder / "t.csv").write_text(text.replace("18\n", "x\n"), encoding="cp437")
    message = refused(*command("t.csv", *options, "--encoding", "cp437"))
    assert "t.csv, line 7: 'x' is not a count" in message
    assert "no row of names" in refused(*command("t.csv", "--header-row", "99"))


def test_notes_with_separators_are_left_out_below_the_counts_only(imported, refused, folder):
    rows = long_rows(lambda hour: (f"2024-05-01 {hour:02}:00",))
    body = "".join(f"{name},{when},{count}\n" for name, when, count in rows)
    note = "Source: us, 2024, all rights\n"
    (folder / "t.csv").write_text(f"zone,time,people\n{body}{note}")
    release, said = imported("t.csv")
    check(release)
    assert "left out 1 row without any count, such as notes: 'Source: us'" in said
    (folder / "t.csv").write_text(f"zone,time,people\n{note}{body}")
    assert "t.csv, line 2: ' 2024' is not a time" in refused(*command("t.csv"))


def test_what_is_not_there_is_said_to_be_read_as_0(imported, refused, folder):
    (folder / "hours.csv").write_text("region,00:00,01:00,03:00\nNorth,5,,7\nSouth,4,2,3\n")
    release, out = imported("hours.csv", "--date", "2024-05-01")
    assert release.counts.tolist() == [[5, 0, 0, 7], [4, 2, 0, 3]]
    assert "Note: 1 empty cell read as 0. If they stand for withheld counts, say so" in out
    assert out.startswith("Warning: 1 of 4 epochs have no row in the table. They are read as 0")
    marking = "suppress(k=1, shown=mark, zeros=mark)"
    options = ("--date", "2024-05-01", "--withheld", "")
    said = refused(*command("hours.csv", *options, mechanism=marking))
    assert "cells that are not in the table are read as 0, which suppress(k=1" in said
    (folder / "hours.csv").write_text("region,00:00,01:00\nNorth,5,\nSouth,4,2\n")
    assert "empty cell" not in imported("hours.csv", *options, mechanism=marking)[1]


def test_a_dash_is_in_doubt(imported, refused, folder):
    """In statistics a dash mostly stands for nobody, and elsewhere for a withheld count."""
    (folder / "t.csv").write_text("zone,0h,1h\nA,<10,60\nB,-,50\n")
    options = ("--date", "2024-05-01")
    message = refused(*command("t.csv", *options))
    assert "t.csv, line 3: '-' is not a count" in message
    assert "withheld count (--withheld) or for 0 (--zero)" in message
    release, _ = imported("t.csv", *options, "--zero", "-", mechanism=HIDING)
    assert release.withheld.tolist() == [[True, False], [False, False]]
    release, _ = imported("t.csv", *options, "--withheld", "-", mechanism=HIDING)
    assert release.withheld.tolist() == [[True, False], [True, False]]


@pytest.mark.parametrize("mark", [".", ","])
def test_three_digits_after_a_mark_are_in_doubt(imported, refused, folder, mark):
    """31.000 is 31 people to some, and 31,000 to others."""
    (folder / "t.csv").write_text(f"zone;0h;1h\nA;3{mark}000;6\n")
    options = ("--date", "2024-05-01")
    assert "mark between thousands" in refused(*command("t.csv", *options))
    release, _ = imported("t.csv", *options, "--thousands", mark)
    assert release.counts.tolist() == [[3000, 6]]


def test_a_day_of_23_hours_is_a_day(imported, folder):
    (folder / "t.csv").write_text("zone,2024-03-31,2024-04-01\nA,4,6\n")
    release, _ = imported("t.csv")
    assert release.counts.tolist() == [[4, 6]]
    assert str(release.epochs) == "2 epochs of 1d from 2024-03-31 00:00 Europe/Rome"


def test_columns_of_the_same_hour_are_refused(refused, workbook, folder):
    """As where the dates stand in a row above the hours."""
    days = [(None, date(2024, 5, 1), None, date(2024, 5, 2)), ("Zone", "0h", "1h", "0h", "1h")]
    workbook("t.xlsx", {"S": [*days, ("A", 1, 2, 3, 4)]})
    message = refused(*command("t.xlsx", "--header-row", "2", "--date", "2024-05-01"))
    assert "several columns called '0h'" in message


def test_a_region_of_zeros_is_not_taken_for_a_note(imported, folder):
    (folder / "t.csv").write_text("zone,0h,1h\nA,4,6\nB,,\n")
    (folder / "regions.csv").write_text("region\nA\nB\n")
    release, said = imported("t.csv", "--date", "2024-05-01")
    assert release.regions.ids == ("A",)
    assert "notes: 'B'" in said
    release, said = imported("t.csv", "--date", "2024-05-01", "--regions", "regions.csv")
    check(release, {"A": (4, 6), "B": (0, 0)})
    assert "left out" not in said


TABLES = [
    "",
    "x\n1\n",
    "zone,people\nA,3\n",
    "zone,hour,people\nA,7,3\n",
    "zone,time\nA,2024-05-01T00:00\n",
    "zone,time,people\nA,2024-05-01T00:00,3\n",
    "zone,time,people\nA,01/02/2024,3\nA,02/02/2024,3\n",
    "zone,time,people\nA,20240501,3\nA,20240502,3\n",
    "zone,time,people\nA,2024-05-01,many\nA,2024-05-02,3\n",
    "zone,time,people\nA,2024-05-01,3\nA,never,3\n",
    'zone,time,people\nA,2024-05-01,"1,234"\nA,2024-05-02,3\n',
    "zone,time,people\nA,2024-03-31 02:30,3\nA,2024-03-31 03:30,3\n",
    "zone,time,people\nA,2024-05-01,<10\nA,2024-05-02,3\n",
    "zone,0h,1h\nA,2,3\n",
    "zone,Zone,time,people\nA,A,2024-05-01,3\n",
    "Table 3\n\nzone,time,people\nA,2024-05-01,3\n",
    "A,2024-05-01,3\nB,2024-05-01,3\n",
    "zone,time,people\nA,2024-05-01,3,4\n",
    "zone\0,time\0,people\0\n" * 9,
]


@pytest.mark.parametrize("text", TABLES)
def test_messages_name_options_that_the_command_has(refused, folder, text):
    options = {
        name for one in typer.main.get_command(app).commands["import"].params for name in one.opts
    }
    (folder / "t.csv").write_text(text)
    message = refused(
        "import", "t.csv", "-m", 50, "-M", "raw", "--tz", "Europe/Rome", "-o", "o.csv"
    )
    assert "`" not in message
    named = {word.strip("().,;:") for word in message.split() if word.lstrip("(").startswith("--")}
    assert named <= options
    assert "grid" not in message
