"""A release reads back as it was written, holds nothing secret, and damage is refused."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from whosthere.data.epochs import Epochs
from whosthere.data.regions import Regions
from whosthere.data.traces import Traces
from whosthere.errors import FileError, InputError
from whosthere.privacy.exact_noise import Randomness
from whosthere.privacy.facts import Facts
from whosthere.privacy.ledger import GuaranteeLedger
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.publish import publish
from whosthere.privacy.release import Release
from whosthere.privacy.step import WITHHELD

ENDINGS = [".parquet", ".csv"]
SPECS = [
    "raw",
    "suppress(k=1)",
    "opensafely",
    "laplace(eps=0.1, unit=event) | suppress(k=1)",
    "gaussian(eps=1, delta=1e-6, unit=user-day, max_visits=10)",
]
# Three of these zones change their clocks on the days that the starts fall on.
ZONES = ["UTC", "Europe/Rome", "America/Bogota", "Australia/Lord_Howe", "Asia/Kathmandu"]
STARTS = [
    datetime(2013, 10, 26, 22, tzinfo=UTC),
    datetime(2014, 3, 29, 23, tzinfo=UTC),
    datetime(2014, 4, 5, 10, tzinfo=UTC),
    datetime(2016, 2, 28, 23, 59, 59, tzinfo=UTC),
]
LENGTHS = [timedelta(minutes=15), timedelta(hours=1), timedelta(days=1), timedelta(seconds=7)]
IDS = st.one_of(
    st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), min_size=1),
    st.sampled_from(['a,"b"', '"', "1", "01", "1e3", "null", "NaN", "Zürich", "東京", " x "]),
)


@st.composite
def releases(draw):
    ids = draw(st.lists(IDS, min_size=1, max_size=4, unique=True))
    lon = lat = None
    if draw(st.booleans()):
        lon = draw(st.lists(st.floats(-180, 180), min_size=len(ids), max_size=len(ids)))
        lat = draw(st.lists(st.floats(-90, 90), min_size=len(ids), max_size=len(ids)))
    epochs = Epochs(
        draw(st.sampled_from(STARTS)),
        draw(st.sampled_from(LENGTHS)),
        draw(st.integers(1, 30)),
        draw(st.sampled_from(ZONES)),
    )
    group_size = draw(st.one_of(st.integers(1, 9), st.just(2**30)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    counts = rng.integers(0, group_size, (len(ids), epochs.n), endpoint=True)
    mechanism = Mechanism.parse(draw(st.sampled_from(SPECS)))
    try:
        return Release(counts, Facts(Regions(ids, lon, lat), epochs, group_size, mechanism))
    except InputError:  # an epoch that begins a second before midnight lies in two days
        reject()


@pytest.fixture
def release(rng, regions, epochs):
    counts = rng.integers(0, 20, (7, 72), endpoint=True)
    return Release(counts, Facts(regions, epochs, 20, Mechanism.parse("suppress(k=1)")))


@pytest.mark.parametrize("ending", ENDINGS)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(releases())
def test_a_release_reads_back_equal(tmp_path, ending, release):
    path = tmp_path / f"release{ending}"
    release.save(path, force=True)
    again = Release.load(path)
    assert again == release
    assert hash(again) == hash(release)
    assert again.counts.dtype == np.int32
    assert not again.counts.flags.writeable
    assert again.mechanism.describe() == release.mechanism.describe()


@settings(max_examples=60, deadline=None)
@given(releases())
def test_the_table_has_each_cell_once_in_order(release):
    table = release.to_frame()
    starts = table["epoch_start"].dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    rows = zip(table["region"], starts.to_numpy(), table["count"], strict=True)
    expected = [
        (region, start, release.counts[i, j])
        for i, region in enumerate(release.regions.ids)
        for j, start in enumerate(release.epochs.starts)
    ]
    assert list(rows) == expected
    assert table["epoch_start"].dtype.time_zone == release.epochs.timezone


@settings(max_examples=60, deadline=None)
@given(releases())
def test_a_release_goes_to_a_frame_and_back(release):
    for frame in (release.to_frame(), release.to_frame().reverse(), release.to_frame().lazy()):
        assert Release.from_frame(frame, release.facts) == release


def test_withheld_cells_survive_a_frame_and_a_file_in_another_order(release, tmp_path):
    facts = replace(release.facts, mechanism=Mechanism.parse("suppress(k=5, shown=mark)"))
    values = np.where(release.values <= 5, WITHHELD, release.values)
    marked = Release(values, facts)
    assert marked.withheld.any()
    assert Release.from_frame(marked.to_frame().reverse(), facts) == marked
    pytest.importorskip("pandas")
    assert Release.from_frame(marked.to_frame().to_pandas(), facts) == marked
    marked.save(tmp_path / "r.csv")
    header, *rows = (tmp_path / "r.csv").read_text().splitlines()
    (tmp_path / "r.csv").write_text("\n".join([header, *reversed(rows)]))
    assert Release.load(tmp_path / "r.csv") == marked


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows.drop("count"), "no column count"),
        (lambda rows: rows.slice(1), "503 rows are not one for each of 504 cells"),
        (lambda rows: rows[1:].vstack(rows[1:2]), "504 rows are not one for each of 504 cells"),
        (lambda rows: rows.with_columns(pl.col("count") / 2), "must be whole numbers"),
        (lambda rows: rows.with_columns(count=None), "must be whole numbers"),
        (lambda rows: rows.with_columns(region=None, epoch_start=None), "datetimes with a zone"),
    ],
)
def test_rows_that_are_no_release_are_refused(release, change, message):
    with pytest.raises(InputError, match=message):
        Release.from_frame(change(release.to_frame()), release.facts)


def test_a_csv_can_be_read_with_other_programs(tmp_path):
    epochs = Epochs(datetime(2013, 10, 27, tzinfo=UTC), timedelta(hours=1), 2, "Europe/Rome")
    Release(np.array([[3, 0]]), Facts(Regions(['via "Roma", 1']), epochs, 5, Mechanism())).save(
        tmp_path / "r.csv"
    )
    assert (tmp_path / "r.csv").read_text() == (
        "region,epoch_start,count\n"
        '"via ""Roma"", 1",2013-10-27T02:00:00+02:00,3\n'
        '"via ""Roma"", 1",2013-10-27T02:00:00+01:00,0\n'
    )


def _unequal(release):
    """Give releases that differ in one thing each."""
    counts = release.counts.copy()
    counts[0, 0] = (counts[0, 0] + 1) % 2
    yield Release(counts, release.facts)
    parts = {
        "group_size": release.group_size + 1,
        "regions": Regions([f"x{i}" for i in range(7)]),
        "epochs": Epochs(release.epochs.start, timedelta(hours=2), 72, "Europe/Rome"),
        "mechanism": Mechanism(),
    }
    for name, other in parts.items():
        yield Release(release.counts, replace(release.facts, **{name: other}))


def test_releases_differ_in_anything_public(release):
    assert all(other != release for other in _unequal(release))
    assert release != "release"


def test_sizes_may_be_numpy_numbers(release, tmp_path):
    same = Release(
        release.counts, Facts(release.regions, release.epochs, np.int64(20), release.mechanism)
    )
    same.save(tmp_path / "r.parquet")
    assert Release.load(tmp_path / "r.parquet") == release


@pytest.mark.parametrize(
    ("counts", "group_size", "message"),
    [
        (np.zeros((72, 7), int), 5, "do not fit 7 regions x 72 epochs"),
        (np.zeros(7 * 72, int), 5, "do not fit"),
        (np.zeros((0, 0), int), 5, "do not fit"),
        (np.full((7, 72), 6), 5, "outside 0 to 5"),
        (np.full((7, 72), -1), 5, "outside 0 to 5"),
        (np.full((7, 72), 2**32 + 1), 5, "outside 0 to 5"),
        (np.full((7, 72), 1.5), 5, "whole numbers"),
        (np.full((7, 72), np.nan), 5, "whole numbers"),
        (np.zeros((7, 72), int), 0, "a group of 0 people"),
        (np.zeros((7, 72), int), -3, "a group of -3 people"),
    ],
)
def test_impossible_counts_are_refused(regions, epochs, counts, group_size, message):
    with pytest.raises(InputError, match=message):
        Release(counts, Facts(regions, epochs, group_size, Mechanism()))


def _secret_traces(rng):
    """Make 60 users with unmistakable ids whose true counts are unmistakable too."""
    epochs = Epochs(datetime(2021, 6, 1, tzinfo=UTC), timedelta(hours=1), 24)
    cells = [np.sort(rng.choice(48, 20, replace=False)).astype(np.int32) for _ in range(60)]
    users = tuple(f"secret-person-{i:02d}" for i in range(60))
    indptr = np.arange(61) * 20
    return Traces(users, indptr, np.concatenate(cells), Regions(["a", "b"]), epochs)


SEED = 73_519_284_611


@pytest.mark.parametrize("ending", ENDINGS)
def test_no_secret_is_in_the_files(rng, tmp_path, ending):
    mechanism = Mechanism.parse("suppress(k=59)")
    made = publish(_secret_traces(rng), mechanism=mechanism, group_size=59, seed=SEED)
    assert made.truth.any()
    assert not made.release.counts.any()
    made.release.save(tmp_path / f"r{ending}")
    for path in tmp_path.iterdir():
        content = path.read_bytes()
        for secret in (b"secret", b"person", str(SEED).encode(), b"truth", b"dropped"):
            assert secret not in content
    if ending == ".parquet":
        described = pl.read_parquet_metadata(tmp_path / "r.parquet")
        assert set(described) == {"ARROW:schema", "whosthere"}
        stored = pl.read_parquet(tmp_path / "r.parquet")
        assert stored.columns == ["region", "epoch_start", "count"]
        assert not stored["count"].sum()
        head = json.loads(described["whosthere"])
    else:
        assert set(pl.read_csv(tmp_path / "r.csv")["count"]) == {0}
        head = json.loads((tmp_path / "r.csv-metadata.json").read_text())
    public = {"kind", "group_size", "mechanism", "description", "guarantee", "audit"}
    public |= {"regions", "epochs"}
    assert set(head) - {"format"} == public


def test_the_files_do_not_depend_on_the_truth(rng, tmp_path):
    """Two groups whose counts are all suppressed give the same bytes."""
    mechanism = Mechanism.parse("suppress(k=60)")
    for name in "ab":
        made = publish(_secret_traces(rng), mechanism=mechanism)
        made.release.save(tmp_path / f"{name}.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_same_release_gives_the_same_bytes(release, tmp_path, ending):
    release.save(tmp_path / f"a{ending}")
    Release.load(tmp_path / f"a{ending}").save(tmp_path / f"b{ending}")
    assert (tmp_path / f"a{ending}").read_bytes() == (tmp_path / f"b{ending}").read_bytes()


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_existing_file_is_only_replaced_by_force(release, tmp_path, ending):
    path = tmp_path / f"r{ending}"
    release.save(path)
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    other = next(_unequal(release))
    with pytest.raises(FileError, match=r"exists already.*allow it to be replaced"):
        other.save(path)
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before
    other.save(path, force=True)
    assert Release.load(path) == other
    assert set(tmp_path.iterdir()) == set(before)


def test_a_description_in_the_way_is_only_replaced_by_force(release, tmp_path):
    (tmp_path / "r.csv-metadata.json").write_text("mine")
    with pytest.raises(FileError, match=r"r\.csv-metadata\.json: exists already"):
        release.save(tmp_path / "r.csv")
    assert [file.name for file in tmp_path.iterdir()] == ["r.csv-metadata.json"]
    assert (tmp_path / "r.csv-metadata.json").read_text() == "mine"


def test_counts_and_description_are_replaced_together(release, tmp_path, monkeypatch):
    release.save(tmp_path / "r.csv")

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(pl.DataFrame, "write_csv", interrupted)
    for other in _unequal(release):
        with pytest.raises(KeyboardInterrupt):
            other.save(tmp_path / "r.csv", force=True)
        assert Release.load(tmp_path / "r.csv") == release
        assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("name", ["r", "r.txt", "r.parquet.gz", "r.json"])
def test_other_endings_are_refused(release, tmp_path, name):
    path = tmp_path / name
    with pytest.raises(FileError, match=r"unknown extension\. Use \.parquet or \.csv"):
        release.save(path)
    assert not path.exists()
    path.touch()
    with pytest.raises(FileError, match="unknown extension"):
        Release.load(path)


def test_missing_files_and_folders_are_refused(tmp_path):
    with pytest.raises(FileError, match="does not exist"):
        Release.load(tmp_path / "r.parquet")
    (tmp_path / "r.parquet").mkdir()
    with pytest.raises(FileError, match="is a folder"):
        Release.load(tmp_path / "r.parquet")


@pytest.mark.parametrize("left", [0, 3, 100, -1])
def test_a_truncated_parquet_file_is_refused(release, tmp_path, left):
    path = tmp_path / "r.parquet"
    release.save(path)
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(FileError, match="not a whole Parquet file"):
        Release.load(path)


def test_files_of_another_kind_are_refused(release, traces, tmp_path):
    traces.save(tmp_path / "t.parquet")
    with pytest.raises(FileError, match="is a traces file, not a release"):
        Release.load(tmp_path / "t.parquet")
    release.to_frame().write_parquet(tmp_path / "o.parquet")
    with pytest.raises(FileError, match="file of another program"):
        Release.load(tmp_path / "o.parquet")


def test_a_csv_without_its_description_is_refused(release, tmp_path):
    release.save(tmp_path / "r.csv")
    (tmp_path / "r.csv-metadata.json").unlink()
    with pytest.raises(FileError, match=r"no description beside it.*whosthere import"):
        Release.load(tmp_path / "r.csv")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, ""),
        (None, "{"),
        (None, "[]"),
        (None, "null"),
        (None, "{}"),
        ("group_size", "twenty"),
        ("group_size", None),
        ("group_size", 3),
        ("group_size", float("inf")),
        ("mechanism", "supress(k=1)"),
        ("mechanism", 7),
        ("mechanism", None),
        ("regions", {"ids": ["a"], "lon": None, "lat": None}),
        ("regions", {"ids": ["r0"] * 7, "lon": None, "lat": None}),
        ("regions", {"ids": [f"x{i}" for i in range(7)], "lon": None, "lat": None}),
        ("regions", {"ids": [], "lon": None, "lat": None}),
        ("regions", []),
        ("epochs", {"start": "soon", "length": "1h", "n": 72, "timezone": "UTC"}),
        ("epochs", {"start": "2013-10-31T23:00", "length": "1h", "n": 72, "timezone": "UTC"}),
        ("epochs", {"start": "2013-10-31T23:00Z", "length": "1x", "n": 72, "timezone": "UTC"}),
        ("epochs", {"start": "2013-10-31T23:00Z", "length": "2h", "n": 72, "timezone": "UTC"}),
        ("epochs", {"start": "2013-10-31T23:00Z", "length": f"{10**9}w", "n": 9, "timezone": ""}),
        ("epochs", {"start": "2013-10-31T23:00Z", "length": "1h", "n": 71, "timezone": "UTC"}),
        ("epochs", {"start": "2013-10-31T23:00Z", "length": "1h", "n": 72, "timezone": "Mars"}),
    ],
)  # fmt: skip
def test_a_damaged_description_is_refused(release, tmp_path, key, value):
    path, description = tmp_path / "r.csv", tmp_path / "r.csv-metadata.json"
    release.save(path)
    head = json.loads(description.read_text())
    description.write_text(value if key is None else json.dumps({**head, key: value}))
    with pytest.raises(FileError, match=r"r\.csv.*Write or copy it again"):
        Release.load(path)


def _without_last_line(text):
    return "\n".join(text.splitlines()[:-1])


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: "",
        lambda _: "region,epoch_start,count\n",
        lambda text: text.replace("count", "number"),
        lambda text: text.replace("region", "place"),
        lambda text: text.replace("r3,", "r4,", 1),
        lambda text: text.replace("2013-11-01", "2013-11-02", 1),
        lambda text: text.replace("2013-11-01T", "first of November, ", 1),
        lambda text: text[: text.rindex(",") + 1],
        lambda text: text[: text.rindex(",")] + ",many",
        lambda text: text[: text.rindex(",")] + ",-1",
        lambda text: text[: text.rindex(",")] + ",1.5",
        lambda text: text[: text.rindex(",")] + f",{2**40}",
        _without_last_line,
    ],
)
def test_a_damaged_csv_is_refused(release, tmp_path, damage):
    path = tmp_path / "r.csv"
    release.save(path)
    before = path.read_text()
    path.write_text(damage(before))
    assert path.read_text() != before
    with pytest.raises(FileError, match=r"r\.csv.*Write or copy it again"):
        Release.load(path)


def test_a_parquet_file_with_other_rows_is_refused(release, tmp_path):
    path = tmp_path / "r.parquet"
    release.save(path)
    whole = pl.read_parquet(path)
    head = {"whosthere": pl.read_parquet_metadata(path)["whosthere"]}
    for damaged in (whole.slice(1), pl.concat([whole, whole[:1]]), whole.drop("count")):
        damaged.write_parquet(path, metadata=head)
        with pytest.raises(FileError, match="damaged release"):
            Release.load(path)


LEDGERS = [
    "raw",
    "laplace(eps=1)",
    "gaussian(eps=2, unit=user, max_visits=3)",
    "random-round(to=3)",
]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize("spec", LEDGERS)
def test_a_release_keeps_its_ledger(rng, tmp_path, spec, seed, ending):
    made = publish(_secret_traces(rng), mechanism=Mechanism.parse(spec), seed=seed).release
    made.save(tmp_path / f"r{ending}")
    read = Release.load(tmp_path / f"r{ending}")
    assert read.ledger == made.ledger
    assert read.ledger.seeded == (seed is not None)
    assert read.describe() == made.describe()


def test_a_trial_promises_nothing(rng):
    made = publish(_secret_traces(rng), mechanism="laplace(eps=1, unit=user, max_visits=3)", seed=1)
    text = made.release.describe()
    assert "odds" not in text
    assert text.endswith("This is a trial, and nothing is guaranteed.")
    assert not made.release.ledger.states_guarantee


def test_a_release_without_a_ledger_promises_nothing(rng):
    made = publish(_secret_traces(rng), mechanism="laplace(eps=1, unit=user, max_visits=3)")
    assert made.release.describe() == made.release.mechanism.describe()
    unknown = Release(made.release.counts, made.release.facts)
    assert unknown == made.release
    assert "How the noise was drawn is not known, so nothing is guaranteed." in unknown.describe()


def test_noise_of_an_ordinary_generator_promises_nothing(rng):
    made = publish(_secret_traces(rng), mechanism="laplace(eps=1)").release
    ordinary = Release(made.counts, made.facts, GuaranteeLedger(Randomness.SYSTEM))
    assert ordinary.describe().endswith("So nothing is guaranteed.")


@pytest.mark.parametrize("ending", ENDINGS)
def test_files_of_earlier_versions_have_no_ledger(release, tmp_path, ending, monkeypatch):
    described = release._describe()
    del described["guarantee"]
    monkeypatch.setattr(Release, "_describe", lambda self: described)
    release.save(tmp_path / f"r{ending}")
    assert Release.load(tmp_path / f"r{ending}").ledger is None


@pytest.mark.parametrize("bad", [5, {}, [], {"randomness": "dice"}])
def test_a_damaged_ledger(release, tmp_path, bad, monkeypatch):
    described = {**release._describe(), "guarantee": bad}
    monkeypatch.setattr(Release, "_describe", lambda self: described)
    release.save(tmp_path / "r.parquet")
    with pytest.raises(FileError, match="damaged"):
        Release.load(tmp_path / "r.parquet")
