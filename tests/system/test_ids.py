"""Ids of people and places: one person stays one, and two stay two, whatever wrote the files."""

import unicodedata

import polars as pl
import pytest

from whosthere.data.traces import Traces
from whosthere.privacy.release import Release

ROLES = ("user", "region")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "records").mkdir()
    return tmp_path


@pytest.fixture
def read(whosthere):
    """Ingest the folder of records; return the traces and what was said."""

    def run(*options):
        code, out, err = whosthere("ingest", "records", "-o", "out.parquet", *options)
        assert code == 0, err
        return Traces.load("out.parquet"), out

    return run


def table(role, ids, hour=10):
    """Return records with the given ids of users or regions; the others are all alike."""
    times = [f"2024-05-01T{hour}:00Z"] * len(ids)
    other = ["x"] * len(ids)
    columns = {"user": ids, "region": other} if role == "user" else {"user": other, "region": ids}
    return pl.DataFrame({**columns, "time": times})


def found(traces, role):
    return set(traces.users if role == "user" else traces.regions.ids)


@pytest.mark.parametrize("role", ROLES)
def test_whole_numbers_are_the_same_with_decimals(folder, read, role):
    for name, ids in {
        "1.csv": ["32470000000", "32470000001"],
        "2.csv": ["32470000000.0", "32470000001.00"],
        "3.csv": ["32470000000,0", "32470000001,"],
        "4.csv": ["1.5", "v2.0"],
    }.items():
        table(role, ids).write_csv(folder / "records" / name, separator=";")
    numbers = [32470000000, 32470000001]
    table(role, numbers).write_parquet(folder / "records" / "5.parquet")
    table(role, [float(n) for n in numbers]).write_parquet(folder / "records" / "6.parquet")
    decimals = pl.col(role).cast(pl.Decimal(20, 1))
    table(role, numbers).with_columns(decimals).write_parquet(folder / "records" / "7.parquet")
    traces, _ = read()
    assert found(traces, role) == {"32470000000", "32470000001", "1.5", "v2.0"}


def test_parts_of_a_region_lose_their_decimals(folder, read):
    records = pl.DataFrame({"user": ["u"], "time": ["2024-05-01T10:00Z"], "LAC": [101], "CI": [7]})
    records.write_csv(folder / "records" / "1.csv")
    records.cast({"LAC": pl.Float64}).write_csv(folder / "records" / "2.csv")
    records.cast({"CI": pl.Float64}).write_parquet(folder / "records" / "3.parquet")
    assert read()[0].regions.ids == ("101-7",)


def test_a_rounded_part_of_a_region_is_refused(folder, refused):
    header = "user,time,LAC,CI\n"
    (folder / "records" / "1.csv").write_text(header + "u,2024-05-01T10:00Z,101,1.23E+05\n")
    assert "column 'LAC+CI': an id was rounded" in refused("ingest", "records", "-o", "out.parquet")


def test_tables_beside_the_records_are_read_alike(folder, read):
    table("region", ["1", "2.0"]).write_csv(folder / "records" / "1.csv")
    (folder / "regions.csv").write_text("region,lon,lat\n1.0,9,45\n2,9.1,45\n")
    assert read("--regions", "regions.csv")[0].regions.ids == ("1", "2")


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    "rounded", ["3.247E+10", "3,247E+10", "3.247e10", "3E+10", "1e+20", "9007199254740993.0"]
)
def test_rounded_ids_are_refused(folder, refused, read, role, rounded):
    table(role, ["5e10", "12e34567", rounded]).write_csv(folder / "records/1.csv", separator=";")
    message = refused("ingest", "records", "-o", "out.parquet")
    assert f"1.csv, line 4: column '{role}': an id was rounded" in message
    assert "as text" in message
    assert rounded not in message
    traces, out = read("--drop-invalid")
    assert f"with a {role} id that was rounded" in out
    assert found(traces, role) == {"5e10", "12e34567"}


@pytest.mark.parametrize(("kind", "fits"), [(pl.Float32, 2.0**24), (pl.Float64, 8e15)])
def test_floats_that_are_too_large_are_refused(folder, refused, read, kind, fits):
    path = folder / "records" / "1.parquet"
    table("user", [fits * 4]).cast({"user": kind}).write_parquet(path)
    assert "rounded" in refused("ingest", "records", "-o", "out.parquet")
    table("user", [fits]).cast({"user": kind}).write_parquet(path)
    assert read()[0].users == (str(int(fits)),)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    ("ids", "difference"),
    [
        (["002", "2"], "leading zeros or a plus"),
        (["+3247", "003247"], "leading zeros or a plus"),
        (["a3f0", "A3F0"], "upper and lower case"),
        (["Évry", unicodedata.normalize("NFD", "Évry")], "the Unicode form of letters"),
        (["a", "a "], "spaces or quotes"),
        (["a", "'a'"], "spaces or quotes"),
        (["b1", " B1"], "spaces or quotes or upper and lower case, and"),
        (["007.0 ", "007"], "spaces or quotes, and"),
        (["32 470", "32470"], "spaces or quotes, and"),
        (["u1", "u\u200b1"], "characters that are not seen, and"),
    ],
)
def test_ids_that_may_be_the_same_are_noted(folder, read, role, ids, difference):
    table(role, [*ids, "other"]).write_csv(folder / "records/1.csv")
    traces, out = read()
    assert len(found(traces, role)) == 3
    assert f"Note: 2 {role} ids differ from one another only by {difference}" in out
    assert out.count("differ from one another") == 1


def test_a_published_table_holds_no_formula(folder, whosthere, read):
    names = ["=HYPERLINK(1)", "@b", "-c", "-5", "'=d"]
    records = table("region", names)
    records.write_csv(folder / "records/1.csv")
    records.with_columns(user=pl.lit("y")).write_csv(folder / "records/2.csv")
    assert found(read()[0], "region") == set(names) - {"'=d"} | {"=d"}
    for command in (
        "release out.parquet -M raw -o release.csv",
        "target out.parquet --min-visits 1 -o target.csv",
        "attack release.csv --target target.csv",
        "import release.csv -m 2 -M raw --epoch 1h -o again.parquet",
    ):
        code, _, err = whosthere(*command.split())
        assert code == 0, err
    for name in ("release.csv", "target.csv"):
        cells = (folder / name).read_text().splitlines()[1:]
        assert {cell.split(",")[0] for cell in cells} == {
            "'=HYPERLINK(1)", "'@b", "'-c", "-5", "'=d"
        }  # fmt: skip
    imported = Release.load("again.parquet").regions.ids
    assert set(imported) == {"=HYPERLINK(1)", "@b", "-c", "-5", "=d"}
