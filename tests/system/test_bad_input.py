"""Whatever a user gives wrongly ends in one message that says how to go on, and in no file."""

import os
import shutil

import polars as pl
import pytest

from whosthere.data.reading.read import read_records
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.publish import publish

RECORDS = "user,time,lon,lat,region\n" + "".join(
    f"u{i},2021-06-01T{hour:02d}:00:00Z,9.{i},45.{hour},{'abc'[i % 3]}\n"
    for i in range(6)
    for hour in (8, 9)
)
COUNTS = "region,time,count\na,2021-06-01T08:00:00Z,3\na,2021-06-01T09:00:00Z,4\n"


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """Make good records, regions, traces, a release and counts, and bad ones of each."""
    folder = tmp_path_factory.mktemp("template")
    write = {
        "records.csv": RECORDS,
        "regions.csv": "region,lon,lat\na,9,45\nb,9.1,45\nc,9.2,45\n",
        "bare.csv": "region\na\nb\nc\n",
        "two.csv": "region,lon,lat\na,9,45\nb,9.1,45\n",
        "nouser.csv": RECORDS.replace("user,", "name,"),
        "naive.csv": RECORDS.replace("Z,", ","),
        "mixed.csv": RECORDS + "u1,2021-06-01T10:00:00,9,45,a\n",
        "never.csv": RECORDS + "u1,never,9,45,a\n",
        "nan.csv": RECORDS + "u1,2021-06-01T10:00:00Z,9,nan,a\n",
        "swapped.csv": RECORDS + "u1,2021-06-01T10:00:00Z,45,139,a\n",
        "unknown.csv": RECORDS + "u1,2021-06-01T10:00:00Z,9,45,Z\n",
        "nothing.csv": "",
        "header.csv": RECORDS.splitlines()[0] + "\n",
        "notes.txt": "not records",
        "areas.geojson": "{",
        "counts.csv": COUNTS,
        "nocount.csv": COUNTS.replace("count", "how many"),
        "twice.csv": COUNTS + "a,2021-06-01T08:00:00Z,3\n",
        "half.csv": COUNTS + "a,2021-06-01T10:00:00Z,1.5\n",
        "marked.csv": COUNTS + "a,2021-06-01T10:00:00Z,<15\n",
        "offstep.csv": COUNTS + "a,2021-06-01T11:30:00Z,1\n",
        "naivecounts.csv": COUNTS.replace("Z,", ","),
        "occupied.parquet": "old",
        "empty.parquet": "",
        "counts.parquet": COUNTS,
        "occupied.csv": "old",
    }
    for name, text in write.items():
        (folder / name).write_text(text)
    (folder / "hollow").mkdir()
    pl.read_csv(folder / "records.csv").write_parquet(folder / "others.parquet")
    traces = read_records(folder / "records.csv")
    traces.save(folder / "traces.parquet")
    publish(traces, mechanism=Mechanism()).release.save(folder / "release.parquet")
    for name in ("traces", "release"):
        whole = (folder / f"{name}.parquet").read_bytes()
        (folder / f"{name}-cut.parquet").write_bytes(whole[:-30])
    return folder


@pytest.fixture
def folder(template, tmp_path, monkeypatch):
    """Give a folder to work in, with files good and bad."""
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


INGEST = "ingest {} -o out.parquet"
RELEASE = "release traces.parquet -o out.parquet -M"
IMPORT = "import -m 9 -M raw -o out.parquet {}"

INGEST_FIRST = "If it holds records, run `whosthere ingest` first"

# What is typed, what the message must name, and how it must help.
WRONG = [
    # records
    (INGEST.format("none.csv"), "none.csv", "Check the path"),
    (INGEST.format("hollow"), "hollow", "Expected extensions"),
    (INGEST.format("notes.txt"), "notes.txt", "Expected: .csv"),
    (INGEST.format("nothing.csv"), "nothing.csv: is empty", "the right file, copied whole"),
    (INGEST.format("header.csv"), "header.csv: holds no rows", "the right files"),
    (
        INGEST.format("header.csv --from 2021-06-01 --to 2021-06-02"),
        "header.csv: holds no",
        "right",
    ),
    (INGEST.format("nouser.csv"), "nouser.csv", "which column holds the user"),
    (INGEST.format("records.csv --user-column usr"), "records.csv", "Did you mean 'user'?"),
    (INGEST.format("naive.csv"), "naive.csv", "such as Europe/Rome"),
    (INGEST.format("mixed.csv"), "mixed.csv", "with their offset from UTC, or none"),
    (INGEST.format("never.csv"), "never.csv, line 14: column 'time'", "invalid rows"),
    (INGEST.format("nan.csv --grid 2x2"), "nan.csv, line 14: column 'lat'", "invalid rows"),
    (INGEST.format("swapped.csv --grid 2x2"), "swapped.csv, line 14", "swapped? Correct"),
    (INGEST.format("unknown.csv --regions regions.csv"), "unknown.csv, line 14", "invalid rows"),
    (INGEST.format("traces-cut.parquet"), "traces-cut.parquet", "Is the file whole"),
    ("ingest records.csv", "--out is missing", "or use --check"),
    (INGEST.format("records.csv --check"), "--out does nothing with --check", "Leave it out"),
    (INGEST.format("records.csv --user-from-path --user-column a"), "--user-column", "Leave it"),
    # friends
    (INGEST.format("records.csv --friends none.csv"), "none.csv", "Check the path"),
    (INGEST.format("records.csv --friends hollow"), "hollow", "Name a file"),
    (INGEST.format("records.csv --friends bare.csv"), "bare.csv", "columns user and friend"),
    (INGEST.format("records.csv --friends header.csv"), "header.csv", "has no rows"),
    # regions
    (INGEST.format("records.csv --regions none.csv"), "none.csv", "Check the path"),
    (INGEST.format("records.csv --regions counts.csv"), "counts.csv", "more than once"),
    (INGEST.format("records.csv --regions header.csv"), "header.csv", "at least one region"),
    (INGEST.format("records.csv --antennas bare.csv"), "have no positions", "lon and lat"),
    (INGEST.format("records.csv --polygons areas.geojson"), "areas.geojson", "FeatureCollection"),
    (INGEST.format("records.csv --grid 2x2 --h3 7"), "--grid and --h3", "Give one of them"),
    (INGEST.format("records.csv --grid 2x2 --regions two.csv"), "--regions and --grid", "Give one"),
    (INGEST.format("records.csv --grid two"), "--grid 'two'", "22x23"),
    (INGEST.format("records.csv --grid 0x4"), "0 x 4", "Write it like"),
    (INGEST.format("records.csv --grid-km 0"), "0.0 km", "above 0"),
    (INGEST.format("records.csv --grid-km nan"), "nan km", "above 0"),
    (INGEST.format("records.csv --h3 99"), "H3 resolution 99", "from 0 to 15"),
    # times and filters
    (INGEST.format("records.csv --epoch 1month"), "'1month'", "15min, 1h, 1d or 1w"),
    (INGEST.format("records.csv --epoch 0h"), "'0h'", "15min, 1h, 1d or 1w"),
    (INGEST.format("records.csv --timezone Europe/Roma"), "'Europe/Roma'", "IANA name"),
    (INGEST.format("records.csv --from soon"), "--from 'soon'", "2013-11-01"),
    (INGEST.format("records.csv --from 2021-06-02 --to 2021-06-01"), "ends", "Swap its start"),
    (INGEST.format("records.csv --from 2022-01-01"), "no record", "Check its start and end"),
    (INGEST.format("records.csv --min-visits 99"), "fewer than 99", "Loosen the filters"),
    # traces and mechanisms
    ("release none.parquet -M raw -o out.parquet", "none.parquet", "Check the path"),
    ("release hollow -M raw -o out.parquet", "hollow", "`whosthere ingest`"),
    (
        "release records.csv -M raw -o out.parquet",
        "records.csv: is a file of another",
        INGEST_FIRST,
    ),
    (
        "release others.parquet -M raw -o out.csv",
        "others.parquet: is a file of another program",
        INGEST_FIRST,
    ),
    ("release empty.parquet -M raw -o out.parquet", "empty.parquet", "Write or copy it again"),
    ("target records.csv -o out.csv", "records.csv: is a file of another", INGEST_FIRST),
    ("paper ssc --dataset records.csv -o run", "records.csv: is a file of another", INGEST_FIRST),
    ("attack counts.parquet --target bare.csv", "not a release file", "whosthere import"),
    ("release traces-cut.parquet -M raw -o out.parquet", "traces-cut.parquet", "copy it again"),
    ("release release.parquet -M raw -o out.parquet", "release.parquet", "not a traces file"),
    (f"{RELEASE} raw -m 7", "a group of 7", "from 1 to 6"),
    (f"{RELEASE} raw -m 1", "a group of 1 hides nobody", "at least 2 people"),
    (f"{RELEASE} raw -m 0", "a group of 0", "at least 2 people"),
    (f"{RELEASE} raw -m -2", "a group of -2", "at least 2 people"),
    (f"{RELEASE} suppress(k=-1)", "k must lie between 0", "suppress(k=-1)"),
    (f"{RELEASE} suppress(k=1.5)", "k must be a whole number", "Write it like suppress(k=1)"),
    (f"{RELEASE} suppress", "the parameter k is missing", "Write it like suppress(k=1)"),
    (f"{RELEASE} supress(k=1)", "'supress'", "Did you mean 'suppress'?"),
    (f"{RELEASE} laplace(esp=1)", "'esp'", "Did you mean 'eps'?"),
    (f"{RELEASE} laplace(eps=0)", "eps must be positive", "character 1"),
    (f"{RELEASE} laplace(eps=-1)", "eps must be positive", "character 1"),
    (f"{RELEASE} laplace(eps=nan)", "eps must be positive", "character 1"),
    (f"{RELEASE} laplace(eps=inf)", "eps must be positive", "character 1"),
    (f"{RELEASE} laplace(eps=1,unit=usr,max_visits=3)", "'usr'", "Did you mean 'user'?"),
    (f"{RELEASE} suppress(k=1", "mechanism 'suppress(k=1'", "expected ','"),
    (f"{RELEASE} suppress(k=1)|", "expected a mechanism", "Known: raw, suppress"),
    # tables of counts
    (IMPORT.format("none.csv"), "none.csv", "Check the path"),
    (IMPORT.format("hollow"), "hollow", "Expected extensions"),
    (IMPORT.format("nocount.csv"), "nocount.csv", "which column holds the count"),
    (IMPORT.format("twice.csv"), "twice.csv", "Sum or remove"),
    (IMPORT.format("half.csv"), "half.csv, line 4: '1.5'", "whole numbers"),
    (IMPORT.format("marked.csv"), "marked.csv, line 4: '<15'", "withheld count"),
    (IMPORT.format("offstep.csv"), "offstep.csv", "length of an epoch"),
    (IMPORT.format("naivecounts.csv"), "naivecounts.csv", "such as Europe/Rome"),
    (IMPORT.format("naivecounts.csv --timezone Mars"), "'Mars'", "IANA name"),
    (IMPORT.format("counts.csv --regions bare.csv -m 3"), "counts.csv", "Correct the group size"),
    (IMPORT.format("counts.csv -m 0"), "a group of 0", "Give at least 1"),
    (IMPORT.format("unknown.csv --count-column lon"), "unknown.csv", "is not a count"),
    (IMPORT.format("counts.csv --epoch x"), "'x'", "15min, 1h, 1d or 1w"),
    (IMPORT.format("release-cut.parquet"), "release-cut.parquet", "Is the file whole"),
    # cities
    ("simulate milan-lik -o out", "'milan-lik'", "Did you mean 'milan-like'?"),
    ("simulate milan-like --users 0 -o out", "users, not 0", "at least one"),
    # looking into files
    ("inspect none.parquet", "none.parquet", "Check the path"),
    ("inspect notes.txt", "notes.txt", "Expected: .csv"),
    ("inspect nothing.csv", "nothing.csv: is empty", "the right file, copied whole"),
    ("inspect traces-cut.parquet", "traces-cut.parquet", "Write or copy it again"),
    ("inspect release-cut.parquet --json", "release-cut.parquet", "Write or copy it again"),
    # outputs
    ("ingest records.csv -o occupied.parquet", "occupied.parquet", "allow it"),
    ("ingest records.csv -o hollow", "hollow", "Use .parquet"),
    ("ingest records.csv -o out.csv", "out.csv", "Use .parquet"),
    ("ingest records.csv -o notes.txt/out.parquet", "notes.txt/out.parquet", "cannot be written"),
    ("release traces.parquet -M raw -o occupied.parquet", "occupied.parquet", "allow it"),
    ("release traces.parquet -M raw -o occupied.csv", "occupied.csv", "allow it"),
    ("release traces.parquet -M raw -o out.txt", "out.txt", "Use .parquet or .csv"),
    ("release traces.parquet -M raw -o hollow", "hollow", "Name a file"),
    ("release traces.parquet -M raw -o notes.txt/out.csv", "notes.txt/out.csv", "be written"),
    ("import counts.csv -m 9 -M raw -o occupied.csv", "occupied.csv", "allow it"),
    ("import counts.csv -m 9 -M raw -o out.xlsx", "out.xlsx", "Use .parquet or .csv"),
    ("simulate milan-like --users 2 --days 1 -o notes.txt", "notes.txt", "cannot be written"),
]


@pytest.mark.parametrize(("typed", "named", "fix"), WRONG, ids=[typed for typed, *_ in WRONG])
def test_wrong_input_is_refused_in_one_message(refused, typed, named, fix):
    message = refused(*typed.split())
    assert named in message
    assert fix in message


@pytest.mark.parametrize("typed", [INGEST.format("records.csv"), IMPORT.format("counts.csv")])
def test_no_name_is_no_time_zone(refused, typed):
    message = refused(*typed.split(), "--timezone", "")
    assert "'' is not a known time zone" in message
    assert "IANA name" in message


def test_one_of_two_outputs_in_the_way_is_enough(refused, folder):
    (folder / "out").mkdir()
    (folder / "out" / "regions.csv").write_text("mine")
    message = refused("simulate", "milan-like", "--users", "2", "--days", "1", "-o", "out")
    assert "regions.csv: exists already" in message
    (folder / "new.csv-metadata.json").write_text("mine")
    message = refused("release", "traces.parquet", "-M", "raw", "-o", "new.csv")
    assert "new.csv-metadata.json: exists already" in message


def test_a_failed_replacement_keeps_the_old_file(refused):
    for typed in (
        "ingest never.csv --force -o traces.parquet",
        "release traces-cut.parquet -M raw --force -o release.parquet",
        "release traces.parquet -M raw -m 99 --force -o release.parquet",
        "import half.csv -m 9 -M raw --force -o release.parquet",
    ):
        refused(*typed.split())


def test_a_damaged_description_of_a_csv_release(refused, whosthere, folder):
    assert whosthere("release", "traces.parquet", "-M", "raw", "-o", "ours.csv")[0] == 0
    (folder / "ours.csv-metadata.json").write_text("{")
    assert "Write or copy it again" in refused("inspect", "ours.csv")
    for described, said in (
        ("[]", "ours.csv-metadata.json: does not describe a release."),
        ("{}", "ours.csv: is a damaged release (its description does not fit)."),
        ('{"regions": []}', "ours.csv: is a damaged release (its description does not fit)."),
    ):
        (folder / "ours.csv-metadata.json").write_text(described)
        assert f"{said} Write or copy it again." in refused("inspect", "ours.csv")


def test_the_description_of_a_csv_release_is_announced(whosthere, folder):
    for typed in (
        "release traces.parquet -M raw -o ours.csv",
        "import counts.csv -m 9 -M raw -o theirs.csv",
    ):
        _, said, _ = whosthere(*typed.split())
        name = typed.split()[-1]
        assert f"Written: {name}\nWritten: {name}-metadata.json, its description." in said
    _, said, _ = whosthere("release", "traces.parquet", "-M", "raw", "-o", "o.parquet")
    assert "metadata" not in said


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read and write all")
def test_permission_denied(whosthere, refused, tmp_path_factory):
    closed = tmp_path_factory.mktemp("closed")
    (closed / "records.csv").write_text(RECORDS)
    (closed / "records.csv").chmod(0)
    closed.chmod(0o500)
    try:
        code, _, message = whosthere("ingest", str(closed / "records.csv"), "-o", "out.parquet")
        assert code == 2
        assert "is not readable" in message
        for typed in ("ingest records.csv", "release traces.parquet -M raw"):
            message = refused(*typed.split(), "-o", str(closed / "out.parquet"))
            assert "out.parquet: cannot be written" in message
        message = refused(
            "release", "traces.parquet", "-M", "raw", "-o", str(closed / "deep" / "out.csv")
        )
        assert "cannot be written" in message
    finally:
        closed.chmod(0o700)


@pytest.mark.parametrize(
    "typed",
    [
        "simulat milan-like -o out",
        "simulate milan-like",
        "simulate milan-like -o out --users many",
        "simulate milan-like -o out --seed -1",
        "ingest records.csv -o out.parquet --min-visits 0",
        "ingest records.csv -o out.parquet --gird 2x2",
        "release traces.parquet -o out.parquet -M raw --seed -1",
        "import counts.csv -M raw -o out.parquet",
        "inspect",
    ],
)
def test_wrong_usage_is_refused(whosthere, folder, typed, files):
    before = files()
    code, out, err = whosthere(*typed.split())
    assert code == 2
    assert out == ""
    assert err.endswith("--help\n")
    assert err.startswith("error: ")
    assert files() == before


def test_several_tables_need_the_name_of_a_file(refused, folder):
    err = refused("import", "counts.csv", "counts.csv", "-m", "9", "-M", "raw", "-o", ".")
    assert "is a folder" in err
