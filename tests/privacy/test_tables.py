"""Tables of counts made by others: any usual form of them gives the same release."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whosthere.data.epochs import Epochs
from whosthere.data.regions import Regions
from whosthere.errors import FileError, InputError, RecordsError
from whosthere.privacy.facts import Facts
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.release import Release
from whosthere.privacy.tables import TableReader

RAW = Mechanism()
START = datetime(2021, 6, 1, tzinfo=UTC)
HEADER = "region,time,count\n"


@pytest.fixture
def release(rng):
    """Two days of hours in three regions; the first and last hour have somebody in them."""
    counts = rng.integers(0, 4, (3, 48))
    counts[:, [0, -1]] += 1
    return Release(
        counts, Facts(Regions(["a", "b", "c"]), Epochs(START, timedelta(hours=1), 48), 9, RAW)
    )


def read(path, *, group_size=9, mechanism=RAW, **options):
    return TableReader(**options).read(path, group_size=group_size, mechanism=mechanism).release


def read_text(folder, text, *, group_size=99, **options):
    path = folder / "counts.csv"
    path.write_text(text)
    return read(path, group_size=group_size, **options)


def _as_csv(release, folder):
    release.to_frame().write_csv(folder / "c.csv", datetime_format="%Y-%m-%dT%H:%M:%S%:z")
    return folder / "c.csv", {}


def _as_parquet(release, folder):
    release.to_frame().write_parquet(folder / "c.parquet")
    return folder / "c.parquet", {}


def _as_unix_times(release, folder):
    table = release.to_frame().with_columns(pl.col("epoch_start").dt.epoch("s"))
    table.write_csv(folder / "c.csv", separator=";")
    return folder / "c.csv", {}


def _as_other_names(release, folder):
    names = {"region": "Gemeinde", "epoch_start": "Beginn", "count": "Personen"}
    table = release.to_frame().rename(names).select("Personen", "Gemeinde", "Beginn")
    table.with_columns(quality=pl.lit("good")).write_parquet(folder / "c.parquet")
    columns = {"region_column": "Gemeinde", "time_column": "Beginn", "count_column": "Personen"}
    return folder / "c.parquet", columns


def _without_zeros(release, folder):
    table = release.to_frame().filter(pl.col("count") > 0)
    table.sample(fraction=1, shuffle=True, seed=5).write_parquet(folder / "c.parquet")
    return folder / "c.parquet", {}


def _as_floats(release, folder):
    release.to_frame().cast({"count": pl.Float64}).write_csv(folder / "c.csv")
    return folder / "c.csv", {"timezone": "UTC"}


def _with_withheld_counts(release, folder):
    shown = pl.when(pl.col("count") > 0).then(pl.col("count").cast(pl.String)).otherwise
    release.to_frame().with_columns(count=shown(pl.lit("<1"))).write_parquet(folder / "c.parquet")
    return folder / "c.parquet", {"markers": ("<1",)}


def _as_wide_csv(release, folder):
    table = release.to_frame().with_columns(pl.col("epoch_start").dt.strftime("%Y-%m-%d %H:%M"))
    table.pivot(on="epoch_start", index="region", values="count").write_csv(folder / "c.csv")
    return folder / "c.csv", {"wide": True, "timezone": "UTC"}


def _as_wide_parquet(release, folder):
    table = release.to_frame().with_columns(pl.col("epoch_start").dt.epoch("s").cast(pl.String))
    wide = table.pivot(on="epoch_start", index="region", values="count")
    wide.rename({"region": "row"}).write_parquet(folder / "c.parquet")
    return folder / "c.parquet", {"wide": True}


@pytest.mark.parametrize(
    "write",
    [
        _as_csv,
        _as_parquet,
        _as_unix_times,
        _as_other_names,
        _without_zeros,
        _as_floats,
        _with_withheld_counts,
        _as_wide_csv,
        _as_wide_parquet,
    ],
)
def test_every_form_of_the_counts_gives_the_same_release(release, tmp_path, write):
    path, options = write(release, tmp_path)
    before = path.read_bytes()
    assert read(path, **options) == release
    assert path.read_bytes() == before


def test_counts_in_memory_give_the_same_release(release):
    pytest.importorskip("pandas")
    frame = release.to_frame()
    regions = pl.DataFrame({"region": release.regions.ids})
    assert read(frame.lazy()) == release
    assert read(frame.to_pandas().set_index("region"), regions=regions, epoch="1h") == release
    with pytest.raises(InputError, match=r"the frame, row 0: 'many' is not a count"):
        read(frame.with_columns(count=pl.lit("many")))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"clock_change": "drop"}, "counts cannot be dropped. Give `clock_change` earlier"),
        ({"thousands": "-"}, "'-' is no mark between thousands"),
        ({"wide": True, "count_column": "n"}, "`count_column` do nothing with `wide`"),
        ({"epoch": "an hour"}, "not a length of time"),
        ({"date": "today"}, "`date` 'today' is no day"),
    ],
)
def test_words_of_the_reader_are_checked(release, options, message):
    with pytest.raises(InputError, match=message):
        read(release.to_frame(), **options)


def test_one_marker_will_do(tmp_path):
    text = HEADER + "a,2021-06-01T00:00Z,..\na,2021-06-01T01:00Z,8\n"
    how = {"markers": "..", "mechanism": Mechanism.parse("suppress(k=5, shown=mark)")}
    assert read_text(tmp_path, text, **how).withheld.tolist() == [[True, False]]


@st.composite
def tables(draw):
    """Make releases whose first and last epoch have a count, of sorted regions."""
    ids = draw(
        st.lists(st.sampled_from(["1", "01", "a,b", '"', "é", "東"]), min_size=1, unique=True)
    )
    zone = draw(st.sampled_from(["UTC", "Europe/Rome", "America/Bogota", "Australia/Lord_Howe"]))
    start = draw(st.sampled_from([START, datetime(2013, 10, 26, 20, tzinfo=UTC)]))
    length = draw(st.sampled_from([timedelta(minutes=15), timedelta(hours=1), timedelta(days=1)]))
    n = draw(st.integers(2, 20))
    counts = np.random.default_rng(draw(st.integers(0, 999))).integers(0, 50, (len(ids), n))
    return Release(counts, Facts(Regions(sorted(ids)), Epochs(start, length, n, zone), 50, RAW))


@pytest.mark.parametrize("write", [_as_csv, _as_parquet])
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(tables())
def test_a_release_of_ours_reads_back_without_its_description(tmp_path, write, release):
    path, options = write(release, tmp_path)
    assert read(path, group_size=50, timezone=release.epochs.timezone, **options) == release


def test_the_zone_of_a_column_is_the_local_one(tmp_path):
    epochs = Epochs(START, timedelta(hours=1), 4, "America/Bogota")
    release = Release(np.ones((1, 4), int), Facts(Regions(["a"]), epochs, 9, RAW))
    path, _ = _as_parquet(release, tmp_path)
    assert read(path) == release
    assert read(path, timezone="UTC").epochs.timezone == "UTC"


def test_what_is_known_of_the_release_is_kept(release, tmp_path):
    path, _ = _as_csv(release, tmp_path)
    noise = Mechanism.parse("laplace(eps=1, unit=event)")
    found = read(path, group_size=1234, mechanism=noise)
    assert found.group_size == 1234
    assert found.mechanism == noise


def test_missing_rows_are_zero(tmp_path):
    text = HEADER + "b,2021-06-01T03:00Z,4\na,2021-06-01T00:00Z,2\na,2021-06-01T01:00Z,3\n"
    found = read_text(tmp_path, text)
    assert found.regions.ids == ("a", "b")
    assert found.counts.tolist() == [[2, 3, 0, 0], [0, 0, 0, 4]]


@pytest.mark.parametrize(
    "marker", ["", "*", " * ", "NA", "N/A", "NaN", "null", "suppressed", "redacted"]
)
def test_the_usual_marks_of_withheld_counts(tmp_path, marker):
    text = HEADER + f"a,2021-06-01T00:00Z,{marker}\na,2021-06-01T01:00Z,3\n"
    found = read_text(tmp_path, text, mechanism=Mechanism.parse("suppress(k=2, shown=mark)"))
    assert found.counts.tolist() == [[0, 3]]
    # An empty cell is like a missing row; any other mark says that a count was withheld.
    assert found.withheld.tolist() == [[marker != "", False]]


def test_empty_cells_are_withheld_if_said_so(tmp_path):
    text = HEADER + "a,2021-06-01T00:00Z,\na,2021-06-01T01:00Z,3\na,2021-06-01T02:00Z,0\n"
    marking = Mechanism.parse("suppress(k=2, shown=mark)")
    found = read_text(tmp_path, text, mechanism=marking, markers=("",))
    assert found.withheld.tolist() == [[True, False, False]]


def test_marks_need_a_mechanism_that_withholds(tmp_path):
    text = HEADER + "a,2021-06-01T00:00Z,<10\na,2021-06-01T01:00Z,20\n"
    with pytest.raises(RecordsError, match=r"'<10' .* withholds nothing.*k=9, shown=mark"):
        read_text(tmp_path, text, markers=("<10",), mechanism=Mechanism.parse("suppress(k=9)"))


def test_other_marks_must_be_named(tmp_path):
    text = HEADER + "a,2021-06-01T00:00Z,<15\na,2021-06-01T01:00Z,20\na,2021-06-01T02:00Z,x\n"
    with pytest.raises(
        RecordsError, match=r"counts\.csv, line 4: 'x' is not a count.*withheld count"
    ):
        read_text(tmp_path, text)
    hiding = Mechanism.parse("suppress(k=14, shown=mark)")
    found = read_text(tmp_path, text, markers=("x",), mechanism=hiding)
    assert found.counts.tolist() == [[0, 20, 0]]
    assert found.withheld.tolist() == [[True, False, True]]


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt64, pl.Float64, pl.String, pl.Decimal(9, 2)])
def test_missing_counts_of_any_type_are_zero(tmp_path, dtype):
    times = [START, START + timedelta(hours=1)]
    counts = pl.Series([None, 3]).cast(dtype)
    table = pl.DataFrame({"region": [7, 7], "time": times, "count": counts})
    table.write_parquet(tmp_path / "c.parquet")
    found = read(tmp_path / "c.parquet")
    assert found.regions.ids == ("7",)
    assert found.counts.tolist() == [[0, 3]]


def test_withheld_counts_of_a_wide_table(tmp_path):
    text = "place,2021-06-01T00:00Z,2021-06-01T02:00Z\nb,<5,7\na,,9\n"
    options = {"markers": ("<5",), "epoch": timedelta(hours=1)}
    marking = Mechanism.parse("suppress(k=4, shown=mark)")
    found = read_text(tmp_path, text, **options, mechanism=marking)
    assert found.regions.ids == ("a", "b")
    assert found.counts.tolist() == [[0, 0, 9], [0, 0, 7]]


def test_a_wide_table_may_name_its_columns_like_ours(tmp_path):
    for name in ("row", "time", "count", "region"):
        text = f"{name},2021-06-01T00:00Z,2021-06-01T01:00Z\na,1,2\n"
        assert read_text(tmp_path, text, wide=True).counts.tolist() == [[1, 2]]
    with pytest.raises(RecordsError, match="'2021-06-41' is not a time"):
        read_text(tmp_path, "region,2021-06-01,2021-06-41\na,1,2\n", timezone="UTC")


def test_local_times_over_the_end_of_summer_time(tmp_path):
    text = HEADER + "".join(f"a,2013-10-27T0{h}:00,{h}\n" for h in (0, 1, 2, 3, 4))
    rome = {"timezone": "Europe/Rome"}
    with pytest.raises(RecordsError, match=r"line 4: .*02:00 exists twice in Europe/Rome.*earlier"):
        read_text(tmp_path, text, **rome)
    # The clock shows 2 twice; the table has the hour once, so that the other one is 0.
    for which, counts in (("earlier", [0, 1, 2, 0, 3, 4]), ("later", [0, 1, 0, 2, 3, 4])):
        found = read_text(tmp_path, text, **rome, clock_change=which)
        assert found.counts.tolist() == [counts]
        assert found.epochs.start == datetime(2013, 10, 26, 22, tzinfo=UTC)
    twice = text + "a,2013-10-27T02:00,7\n"
    assert read_text(tmp_path, twice, **rome).counts.tolist() == [[0, 1, 2, 7, 3, 4]]
    with pytest.raises(RecordsError, match="02:00 exists twice"):
        read_text(tmp_path, twice + "a,2013-10-27T02:00,8\n", **rome)
    offsets = HEADER + "".join(f"a,2013-10-27T0{h},1\n" for h in ("2:00+02:00", "2:00+01:00"))
    assert read_text(tmp_path, offsets, timezone="Europe/Rome").counts.tolist() == [[1, 1]]


def test_local_times_over_the_start_of_summer_time(tmp_path):
    text = HEADER + "".join(f"a,2014-03-30 0{h}:00,{h}\n" for h in (0, 1, 3, 4))
    found = read_text(tmp_path, text, timezone="Europe/Rome")
    assert found.counts.tolist() == [[0, 1, 3, 4]]
    with pytest.raises(RecordsError, match=r"line 6: 2014-03-30 02:30 does not exist in"):
        read_text(tmp_path, text + "a,2014-03-30 02:30,1\n", timezone="Europe/Rome")


def test_days(tmp_path):
    table = pl.DataFrame(
        {"region": ["a"] * 3, "date": [date(2021, 6, d) for d in (1, 2, 4)], "n": [5, 6, 7]}
    )
    table.write_parquet(tmp_path / "c.parquet")
    found = read(tmp_path / "c.parquet", timezone="America/Bogota")
    assert found.counts.tolist() == [[5, 6, 0, 7]]
    assert found.epochs.length == timedelta(days=1)
    assert found.epochs.days.tolist() == [0, 1, 2, 3]
    assert found.epochs.start == datetime(2021, 6, 1, tzinfo=ZoneInfo("America/Bogota"))


@pytest.mark.parametrize(("first", "step"), [("03-30", 1), ("10-26", 1), ("10-21", 7)])
def test_days_on_which_the_clocks_change(tmp_path, first, step):
    days = [date.fromisoformat(f"2024-{first}") + timedelta(days=step * i) for i in range(4)]
    text = HEADER + "".join(f"a,{day},{n}\n" for n, day in enumerate(days))
    found = read_text(tmp_path, text, timezone="Europe/Rome")
    assert found.counts.tolist() == [[0, 1, 2, 3]]
    assert [start.date() for start in found.epochs.local_starts] == days
    noon = HEADER + "".join(f"a,{day}T12:00,1\n" for day in days)
    again = read_text(tmp_path, noon, timezone="Europe/Rome")
    assert (again.epochs, again.counts.sum()) == (found.epochs, 4)
    (tmp_path / "noon.csv").write_text(noon)
    [note] = (
        TableReader(timezone="Europe/Rome")
        .read(tmp_path / "noon.csv", group_size=9, mechanism=RAW)
        .notes
    )
    assert note.startswith(f"each time is read as its day in Europe/Rome, such as {days[0]} 12:00")
    with pytest.raises(RecordsError, match="do not fall on steps"):
        read_text(tmp_path, noon + f"a,{days[0]}T13:00,1\n", timezone="Europe/Rome", epoch="1d")


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.sets(st.integers(0, 60), min_size=2, max_size=8), st.sampled_from([None, 1, 2, 5]))
def test_the_epoch_is_the_smallest_step(tmp_path, quarters, given_length):
    """Times are taken if all of them lie a whole number of steps from the first."""
    first, *others = sorted(quarters)
    times = [START + timedelta(minutes=15 * q) for q in sorted(quarters)]
    table = pl.DataFrame({"region": "a", "time": times, "count": 1})
    table.write_parquet(tmp_path / "c.parquet")
    step = given_length or min(b - a for a, b in zip([first, *others], others, strict=False))
    options = {} if given_length is None else {"epoch": timedelta(minutes=15 * step)}
    if any((q - first) % step for q in quarters):
        with pytest.raises(RecordsError, match=r"do not fall on steps.*length of an epoch"):
            read(tmp_path / "c.parquet", **options)
        return
    found = read(tmp_path / "c.parquet", **options)
    assert found.epochs.length == timedelta(minutes=15 * step)
    taken = [(q - first) // step for q in sorted(quarters)]
    assert np.flatnonzero(found.counts[0]).tolist() == taken


def test_a_single_time_needs_a_length(tmp_path):
    text = HEADER + "a,2021-06-01T00:00Z,1\nb,2021-06-01T00:00Z,2\n"
    with pytest.raises(RecordsError, match=r"has a single time.*length of an epoch"):
        read_text(tmp_path, text)
    assert read_text(tmp_path, text, epoch=timedelta(days=1)).counts.tolist() == [[1], [2]]


def test_a_regions_table_gives_order_positions_and_empty_regions(release, tmp_path):
    regions = Regions(["c", "quiet", "a", "b"], [9.0, 9.1, 9.2, 9.3], [45.0] * 4)
    path, _ = _as_csv(release, tmp_path)
    found = read(path, regions=regions)
    assert found.regions == regions
    expected = np.stack([release.counts[2], np.zeros(48, int), *release.counts[:2]])
    assert np.array_equal(found.counts, expected)
    with pytest.raises(RecordsError, match=r"c\.csv: region 'c' is not in the regions table"):
        read(path, regions=Regions(["a", "b"]))


GOOD = HEADER + "a,2021-06-01T00:00:00Z,1\na,2021-06-01T01:00:00Z,2\n"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "is empty"),
        (HEADER, {}, "has no counts"),
        ("region\na\n", {"wide": True}, "has no counts"),
        ("region,time\na,2021-06-01\n", {}, r"no column for the count .found region, time"),
        ("time,count\n1,1\n", {}, r"no column for the region.*column holds the region"),
        (GOOD, {"count_column": "cuont"}, r"no column 'cuont'.*Did you mean 'count'"),
        (GOOD + "a,2021-06-01T01:00:00Z,2\n", {}, r"region 'a' has more than one count"),
        (GOOD + "a,2021-06-01T03:00:00+02:00,2\n", {}, r"region 'a' has more than one count"),
        (GOOD + "a,2021-06-01T02:00:00Z,1.5\n", {}, r"line 4: '1\.5' is not a count.*whole number"),
        (GOOD + "a,2021-06-01T02:00:00Z,few\n", {}, r"line 4: 'few' is not a count"),
        (GOOD + "a,2021-06-01T02:00:00Z,nan\n", {}, r"line 4: 'nan' is not a count"),
        (GOOD + "a,2021-06-01T02:00:00Z,inf\n", {}, r"line 4: 'inf' is not a count"),
        (GOOD + "a,2021-06-01T02:00:00Z,1e99\n", {}, r"line 4: '1e99' is not a count"),
        (GOOD + f"a,2021-06-01T02:00:00Z,{2**40}\n", {}, r"count of 1099511627776 is too large"),
        (GOOD + "a,2021-06-01T02:00:00Z,-1\n", {}, r"line 4: '-1' is not a count"),
        (GOOD + "a,2021-06-01T02:00:00Z,100\n", {}, r"to 100, outside 0 to 99"),
        (GOOD + ",2021-06-01T02:00:00Z,1\n", {}, r"line 4: an empty cell is no region"),
        (GOOD + "a,,1\n", {}, r"line 4: an empty cell is not a time"),
        (GOOD + "a,noon,1\n", {}, r"line 4: 'noon' is not a time.*ISO 8601"),
        (GOOD + "a,2021-06-01T02:00:00,1\n", {}, "with and without a time zone"),
        (GOOD.replace("Z", ""), {}, r"no time zone.*such as Europe/Rome"),
        (GOOD.replace("Z", ""), {"timezone": "Europe/Roma"}, "not a known time zone"),
        (GOOD, {"timezone": "Europe/Roma"}, "not a known time zone"),
        (GOOD + "a,2021-06-01T02:30:00Z,1\n", {}, "do not fall on steps of 0:30:00|steps of 1:00"),
        (GOOD + "a,1970-01-01T00:00:00Z,1\n", {"epoch": timedelta(seconds=1),
         "regions": Regions(["a", "b"])}, "more than 2147483647 cells"),
        (GOOD, {"group_size": 0}, "a group of 0 people"),
    ],
)  # fmt: skip
def test_bad_tables_are_refused_by_name(tmp_path, text, options, message):
    with pytest.raises(InputError, match=message) as caught:
        read_text(tmp_path, text, **options)
    assert "counts.csv" in str(caught.value)


def test_unreadable_tables_are_refused(release, tmp_path):
    path, _ = _as_parquet(release, tmp_path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(RecordsError, match="cannot be read"):
        read(path)
    with pytest.raises(FileError, match="does not exist"):
        read(tmp_path / "none.csv")
    (tmp_path / "c.txt").touch()
    with pytest.raises(FileError, match="unknown extension"):
        read(tmp_path / "c.txt")


def test_a_folder_is_only_read_if_it_is_one_table(release, tmp_path):
    (tmp_path / "parts").mkdir()
    with pytest.raises(FileError, match="folder without files"):
        read(tmp_path / "parts")
    _as_parquet(release, tmp_path / "parts")
    assert read(tmp_path / "parts") == release
    _as_csv(release, tmp_path / "parts")
    with pytest.raises(RecordsError, match="holds 2 tables"):
        read(tmp_path / "parts")


def test_columns_of_unusable_types_are_refused(tmp_path):
    times = [START, START + timedelta(hours=1)]
    good = pl.DataFrame({"region": ["a", "a"], "time": times, "count": [1, 2]})
    for column in ("region", "time", "count"):
        odd = good.with_columns(pl.Series(column, [[1], [2]]))
        odd.write_parquet(tmp_path / "c.parquet")
        with pytest.raises(InputError, match=r"c\.parquet"):
            read(tmp_path / "c.parquet")


_TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=8)


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.tuples(
            _TEXTS,
            st.one_of(_TEXTS, st.sampled_from(["2021-06-01", "2021-06-02T00:00", "1622541600"])),
            st.one_of(_TEXTS, st.integers(-1, 9).map(str), st.floats().map(str)),
        ),
        max_size=5,
    ),
    st.booleans(),
)
def test_any_text_is_read_or_refused_politely(tmp_path, rows, wide):
    path = tmp_path / "c.csv"
    schema = dict.fromkeys(("region", "time", "count"), pl.String)
    pl.DataFrame(rows, schema=schema, orient="row").write_csv(path)
    try:
        found = read(path, wide=wide, timezone="UTC")
    except InputError:
        return
    assert found.counts.size >= len(rows)
