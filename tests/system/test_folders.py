"""Folders of records: what is missing or broken is named, and nothing is left out unseen."""

import gzip
import os
import random
import zipfile

import pytest

from whosthere.data.traces import Traces

INGEST = ("ingest", "records", "-o", "out.parquet")
CHECK = ("ingest", "records", "--check")
HEADER = "user,time,region\n"


def day(number, hours=range(24)):
    """Return the records of a day."""
    return HEADER + "".join(
        f"u{hour % 5},2024-05-{number:02d}T{hour:02d}:10:00Z,{'ab'[hour % 2]}\n" for hour in hours
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "records").mkdir()
    return tmp_path


@pytest.fixture
def records(folder):
    """Give a function that writes files of records: text, or bytes as they are."""

    def write(**files):
        for name, content in files.items():
            path = folder / "records" / name.replace("__", "/").replace("_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())

    return write


@pytest.fixture
def read(whosthere):
    """Ingest the folder of records; return the traces and what was said."""

    def run(*options):
        code, out, err = whosthere(*INGEST, *options)
        assert code == 0, err
        return Traces.load("out.parquet"), out

    return run


def large_gz(size=20_000):
    rng = random.Random(1)
    rows = (
        f"{rng.randrange(10**9)},2024-05-01T{rng.randrange(24):02d}:00:00Z,{rng.randrange(99)}\n"
        for _ in range(size)
    )
    return gzip.compress((HEADER + "".join(rows)).encode())


# What is missing


def test_days_and_epochs_without_a_visit_are_listed(records, read):
    records(a_csv=day(1), b_csv=day(2, [*range(3), *range(5, 24)]), c_csv=day(6), d_csv=day(8))
    _, out = read("--from", "2024-05-01", "--to", "2024-05-09")
    assert "Note: 4 of 8 days have no visit: 2024-05-03 to 2024-05-05, 2024-05-07." in out
    hours = "2024-05-02 03:00 to 2024-05-02 04:00"
    assert f"Note: 2 of 192 other epochs have no visit: {hours}." in out


def test_nothing_is_said_where_nothing_is_missing(records, read):
    records(a_csv=day(1))
    assert "Note" not in read()[1]


def test_a_link_that_leads_nowhere_is_refused(folder, records, refused, read):
    records(a_csv=day(1))
    (folder / "records" / "b.csv").symlink_to("gone.csv")
    assert "records/b.csv: is a link that leads nowhere" in refused(*INGEST)
    _, out = read("--skip-bad-files")
    assert "Problem: records/b.csv: is a link that leads nowhere" in out
    (folder / "records" / "b.csv").unlink()
    (folder / "records" / "b.txt").symlink_to("gone.txt")
    assert "Skipped: unknown extension: b.txt" in read("--force")[1]


def test_linked_folders_are_read_once(folder, records, read):
    records(a_csv=day(1))
    (folder / "more").mkdir()
    (folder / "more" / "b.csv").write_text(day(2))
    (folder / "more" / "back").symlink_to(folder / "more")
    (folder / "records" / "more").symlink_to(folder / "more")
    traces, _ = read()
    assert traces.epochs.n_days == 2
    assert traces.ledger.records_read == 48


def test_what_links_lead_to_again_is_read_once(folder, records, read):
    records(a_csv=day(1), u1__b_csv=day(2))
    (folder / "records" / "all").symlink_to(folder / "records")
    (folder / "records" / "again.csv").symlink_to("u1/b.csv")
    (folder / "records" / "latest").symlink_to("u1")
    traces, _ = read()
    assert traces.ledger.records_read == 48
    # Files are named as they stand, and not after a link that comes first.
    traces, _ = read("--force", "--user-from-path")
    assert set(traces.users) == {"a", "u1"}


def test_files_without_rows_are_listed(records, read):
    records(a_csv=day(1), b_csv=HEADER)
    assert "Note: 1 of 2 files have no rows: b.csv." in read()[1]


def test_a_last_line_that_may_be_cut_is_noted(records, read):
    records(a_csv=day(1), b_csv=day(2)[:-2])
    _, out = read("--drop-invalid")
    assert "Note: b.csv does not end with a line end: its last row may be cut." in out


def test_many_files_alike_are_noted_together(records, read):
    records(**{f"{i}_csv": day(1).encode("utf-16") for i in range(9)}, a_csv=day(2)[:-1])
    _, out = read()
    assert "Note: 0.csv was read as UTF-16. This is so for 8 more files." in out
    assert out.count("Note") == 2


@pytest.mark.parametrize("keeps", [0.4, 0.9])
def test_a_truncated_gz_is_named(records, refused, read, keeps):
    whole = large_gz()
    assert len(gzip.decompress(whole)) > 1 << 19
    records(a_csv=day(1), b_csv_gz=whole[: int(len(whole) * keeps)])
    message = refused(*INGEST)
    assert "records/b.csv.gz: cannot be read" in message
    assert "Is the file whole" in message
    traces, out = read("--skip-bad-files")
    assert "Problem: records/b.csv.gz: cannot be read" in out
    assert traces.ledger.records_read == 24
    assert len(traces.ledger.bad_files) == 1


def test_members_of_archives_that_are_not_read_are_named(folder, records, refused, read):
    path = folder / "records" / "a.zip"
    for empty in ("", day(2)):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("1.csv", day(1))
            archive.writestr("2.csv", empty)
            archive.writestr("notes.txt", "x")
        if not empty:
            assert "records/a.zip/2.csv: is empty" in refused(*INGEST)
            assert read("--skip-bad-files", "--force")[0].ledger.records_read == 24
    assert "not read in a.zip, for their extensions are unknown: notes.txt" in read("--force")[1]


@pytest.mark.parametrize("name", ["/abs.csv", "../../up.csv"])
def test_members_may_be_named_like_files_elsewhere(folder, read, name):
    with zipfile.ZipFile(folder / "records" / "a.zip", "w") as archive:
        archive.writestr(name, day(1))
    assert read()[0].ledger.records_read == 24


def test_a_name_that_is_no_text_is_refused(folder, records, refused):
    records(a_csv=day(1))
    (folder / "records" / os.fsdecode(b"\xff.csv")).write_text(day(2))
    assert "has a name that is not UTF-8" in refused(*INGEST)


# All problems at once


def broken(records, folder):
    records(
        a_csv=day(1),
        b_csv="",
        c_csv=day(2).replace("user", "name"),
        d_csv=day(3) + ",2024-05-03T10:00:00Z,a\n" * 3 + "u1,never,a\n",
        e_csv_gz=large_gz()[:-9],
        f_parquet=b"PAR1",
        g_csv=day(4).replace("Z", ""),
        h_csv=HEADER + "u1,20240501,a\n",
        i_csv=day(5).replace(",a", ",z"),
        k_csv=HEADER + "u1,03/04/2024 10:00,a\n",
        l_csv=HEADER + "u1,03/05/2024 10:00,a\n",
    )
    (folder / "records" / "j.csv").symlink_to("gone.csv")
    (folder / "regions.csv").write_text("region,lon,lat\na,9,45\nb,9.1,45\n")


PROBLEMS = (
    "b.csv: is empty",
    "c.csv: has no column for the user",
    "d.csv, line 26: column 'user': is empty, and so in 2 more rows.",
    "d.csv, line 29: column 'time': 'never' is not a time",
    "e.csv.gz: cannot be read",
    "f.parquet: cannot be read",
    "g.csv: the times have no time zone",
    "h.csv, column 'time': the times are numbers",
    "i.csv, line 2: region 'z' is not in the regions table, and so in 11 more rows.",
    "j.csv: is a link that leads nowhere",
    "k.csv: the date '03/04/2024 10:00' can be read with the day or with the month first",
    "l.csv: the date '03/04/2024 10:00' can be read with the day or with the month first",
)


def test_all_problems_are_listed_at_once(folder, records, whosthere, files):
    broken(records, folder)
    before = files()
    code, out, err = whosthere(*CHECK, "--regions", "regions.csv")
    assert code == 2
    assert err == ""
    assert files() == before
    for problem in PROBLEMS:
        assert f"Problem: records/{problem}" in out
    assert out.count("Problem:") == len(PROBLEMS)
    assert "--drop-invalid" in out
    assert "Nothing was written" in out


def test_bad_files_are_left_out_and_listed(folder, records, read):
    broken(records, folder)
    traces, out = read("--regions", "regions.csv", "--skip-bad-files")
    assert out.count("Problem:") == len(traces.ledger.bad_files) == len(PROBLEMS)
    assert traces.ledger.records_read == 24
    assert traces.epochs.n_days == 1


def test_rows_that_are_dropped_are_no_problems(folder, records, whosthere):
    broken(records, folder)
    _, out, _ = whosthere(*CHECK, "--regions", "regions.csv", "--drop-invalid")
    assert not any(name in out for name in ("records/d.csv", "records/i.csv"))
    assert out.count("Problem:") == len(PROBLEMS) - 3
    assert "- without a user" in out


def test_problems_of_columns_zones_rows_and_tables_are_listed_in_one_round(
    folder, records, whosthere, refused
):
    records(
        a_csv="who,time,place\nu,2024-05-01T10:00,a\n",
        b_csv="user,time,region\n,2024-05-01T10:00Z,z\nu,2024-05-01T10:00Z,z\n",
    )
    (folder / "regions.csv").write_text("name,lon\na,9\n")
    (folder / "friends.csv").write_text("x\n")
    tables = ("--regions", "regions.csv", "--friends", "friends.csv")
    code, out, _ = whosthere(*CHECK, *tables)
    assert code == 2
    found = (
        "records/a.csv: has no column for the user",
        "records/a.csv: has no column for the region",
        "records/a.csv: the times have no time zone",
        "records/b.csv, line 2: column 'user': is empty",
        "regions.csv: has no region column",
        "friends.csv: has no two columns of ids",
    )
    assert [f"Problem: {one}" in out for one in found] == [True] * len(found)
    assert out.count("Problem:") == len(found)
    (folder / "regions.csv").write_text("region\na\n")
    _, out, _ = whosthere(*CHECK, *tables[:2])
    assert "records/b.csv, line 3: region 'z' is not in the regions table" in out
    # A table that cannot be used is no file to leave out.
    records(a_csv=day(1))
    assert "friends.csv" in refused(*INGEST, "--skip-bad-files", *tables[2:])


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (("--antennas", "regions.csv"), ["user", "lon"]),
        (("--both-ends",), ["user", "origin", "destination", "arrival"]),
        (("--flows", "trips", "--grid", "2x2"), ["user", "lon", "end_lon"]),
    ],
)
def test_all_columns_that_lack_are_listed_at_once(folder, records, whosthere, options, found):
    records(a_csv="who,time,place\nu,2024-05-01T10:00Z,a\n")
    (folder / "regions.csv").write_text("name,lon\na,9\n")
    _, out, _ = whosthere(*CHECK, *options)
    lacking = [f"Problem: records/a.csv: has no column for the {one} (" in out for one in found]
    assert lacking == [True] * len(found)
    assert out.count("Problem: records") == len(found)


def test_a_sound_folder_has_no_problems(records, whosthere, files):
    records(a_csv=day(1))
    before = files()
    code, out, _ = whosthere(*CHECK)
    assert code == 0
    assert "Problem" not in out
    assert "visits kept" in out
    assert files() == before


@pytest.mark.parametrize("options", [CHECK, (*INGEST, "--skip-bad-files")])
def test_a_folder_may_hold_nothing_sound(records, whosthere, options):
    records(a_csv="", b_csv="x\n1\n")
    code, out, err = whosthere(*options)
    assert code == 2
    if options == CHECK:
        assert out.count("Problem: records/a.csv: is empty") == 1
        assert out.count("Problem: records/b.csv: has no column for the") == 3
        assert err == ""
    else:
        assert "no file can be read. List what is wrong with them (--check)" in err


# Columns as others name them


POINT = ("--grid", "2x2")


@pytest.mark.parametrize(
    ("header", "row", "options"),
    [
        # trackintel
        (
            "id;user_id;tracked_at;elevation;geom",
            "1;u{};2024-05-01 10:00:00+00:00;3;POINT ({lon} {lat})",
            POINT,
        ),
        (
            "user_id;tracked_at;geom",
            'u{};2024-05-01T10:00:00+00:00;"SRID=4326;POINT Z({lon} {lat} 12.0)"',
            POINT,
        ),
        # Veraset
        (
            "utc_timestamp;caid;id_type;latitude;longitude;date;geo_hash",
            "1714557600;u{};aaid;{lat};{lon};2024-05-01;9q8",
            POINT,
        ),
        # Spectus
        (
            "cuebiq_id;device;event_zoned_datetime;lat;lng;processing_date",
            "u{};1;2024-05-01T10:00:00Z;{lat};{lon};20240501",
            POINT,
        ),
        # scikit-mobility
        ("lat;lng;datetime;uid;tid", "{lat};{lon};2024-05-01T10:00:00Z;u{};7", POINT),
        # multimno
        (
            "user_id;timestamp;mcc;plmn;cell_id;latitude;longitude;year;month;day",
            "u{};2024-05-01T10:00:00Z;214;21401;{cell};{lat};{lon};2024;5;1",
            (),
        ),
    ],
)
def test_columns_are_found_as_others_name_them(records, read, header, row, options):
    rows = [row.format(i, lon=9 + i / 10, lat=45 + i / 10, cell=f"c{i}") for i in range(4)]
    records(a_csv="\n".join([header, *rows]) + "\n")
    traces, _ = read(*options)
    assert traces.users == ("u0", "u1", "u2", "u3")
    assert traces.epochs.local_start == "2024-05-01 10:00 UTC"
    assert len(set(traces.cells.tolist())) == (2 if options else 4)


def test_a_point_that_is_none_is_refused(records, refused):
    records(a_csv="user,time,geom\nu1,2024-05-01T10:00Z,LINESTRING (9 45)\n")
    message = refused(*INGEST, *POINT)
    assert "records/a.csv, line 2: column 'geom'" in message


PLT = (
    "Geolife trajectory\nWGS 84\nAltitude is in Feet\nReserved 3\n"
    "0,2,255,My Track,0,0,2,8421376\n0\n"
)


def track(lat, lon, hours):
    return PLT + "".join(
        f"{lat},{lon},0,492,39744.{hour:010d},2008-10-23,{hour:02d}:55:05\r\n" for hour in hours
    )


def test_a_folder_for_each_user(records, read):
    records(
        **{
            "000__Trajectory__1_plt": track(39.9, 116.3, [1, 2]),
            "000__Trajectory__2_plt": track(39.9, 116.3, [4]),
            "009__Trajectory__1_plt": track(40.0, 116.4, [2, 3]),
        }
    )
    traces, out = read("--user-from-path", *POINT)
    assert traces.users == ("000", "009")
    assert traces.visits_per_user().tolist() == [3, 2]
    assert traces.epochs.local_start == "2008-10-23 01:00 UTC"
    assert "user from '(path)'" in out


def test_a_file_for_each_user(records, read):
    text = day(1).replace("user", "device")
    records(ann_csv=text, bob_csv_gz=gzip.compress(text.encode()))
    assert read("--user-from-path")[0].users == ("ann", "bob")


@pytest.mark.parametrize(
    "names", [("Data__000__1_csv", "Data__001__1_csv"), ("2024-05-01__a_csv",)]
)
def test_folders_of_something_else_are_no_users(records, refused, names):
    records(**dict.fromkeys(names, day(1)))
    assert "not one for each user" in refused(*INGEST, "--user-from-path")


def test_a_broken_track_is_named(records, refused):
    records(a_plt=PLT + "39.9,116.3,0\n", b_plt=track(39.9, 116.3, [1]))
    assert "records/a.plt: cannot be read" in refused(*INGEST, "--user-from-path", *POINT)
    records(a_plt=track(39.9, 116.3, [1]) + "39.9,x,0,1,2,2008-10-23,10:00:00\n")
    assert "records/a.plt, line 8: column 'lon'" in refused(*INGEST, "--user-from-path", *POINT)
