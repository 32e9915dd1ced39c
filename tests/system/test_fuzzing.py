"""Damaged files and odd options, thousands of them: a message and an exit code, nothing else.

Always the same ones, so that a change is tested and not luck: 150 in each of the two searches, and
2,000 with --full. With WHOSTHERE_FUZZ_SECONDS, others are tried for so long. The number of commands
that were tried is printed.
"""

import contextlib
import gzip
import io
import json
import os
import random
import shutil
import signal
import struct
import sys
import time
import zipfile

import polars as pl
import pytest
import typer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whosthere.cli.main import app, main
from whosthere.data.cities import simulate

SECONDS = float(os.environ.get("WHOSTHERE_FUZZ_SECONDS", "0"))
LONGEST = 3600
CODES = {0, 1, 2, 130}
COMMAND = typer.main.get_command(app)
COMMANDS = COMMAND.commands
# These start processes, or work for as long as they are told to.
UNTRIED = {"workers", "cluster", "help", "install_completion", "show_completion"}


@pytest.fixture
def patient(full):
    """Give the settings of a search."""
    return settings(
        max_examples=200 if SECONDS else 2_000 if full else 150,
        derandomize=not SECONDS,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


@pytest.fixture(scope="module")
def base(tmp_path_factory, workbook):
    """Make a sound file of each kind."""
    folder = tmp_path_factory.mktemp("base")
    city = simulate("milan-like", seed=3, users=12, regions=4, days=1)
    records = city.records().head(60)
    text = records.with_columns(pl.col("timestamp").dt.strftime("%Y-%m-%dT%H:%M:%S%:z"))
    csv = text.write_csv().encode()
    features = [
        {"type": "Feature", "properties": {"user": r["user"], "time": r["timestamp"]},
         "geometry": {"type": "Point", "coordinates": [r["lon"], r["lat"]]}}
        for r in text.rows(named=True)
    ]  # fmt: skip
    area = [[[8, 44], [10, 44], [10, 46], [8, 46], [8, 44]]]
    polygon = {"type": "Feature", "geometry": {"type": "Polygon", "coordinates": area}}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("r.csv", csv)
    contents = {
        "records.csv": csv,
        "semicolons.csv": csv.replace(b",", b";").decode().encode("utf-16"),
        "records.csv.gz": gzip.compress(csv),
        "records.zip": packed.getvalue(),
        "records.ndjson": text.write_ndjson().encode(),
        "records.geojson": json.dumps({"features": features}).encode(),
        "areas.geojson": json.dumps({"features": [polygon]}).encode(),
        "counts.csv": b"region,time,count\na,2024-05-01T00:00Z,20\na,2024-05-01T01:00Z,<15\n",
        "wide.csv": b"region,2024-05-01T00:00Z,2024-05-01T01:00Z,Total\na,20,1,21\nb,*,3,3\n",
        "track.plt": b"Geolife trajectory\nWGS 84\nAltitude is in Feet\nReserved 3\n0,2,255\n0\n"
        + b"".join(
            b"39.9,116.%d,0,9,39744.1,2008-10-23,%02d:55:05\r\n" % (i, i) for i in range(24)
        ),
        "target.csv": b"region,epoch\nr0c0,0\nr0c1,3\n",
        "plan.toml": b'mechanisms = ["raw"]\ngroup_size = [5]\n',
        "policy.toml": b"[[limits]]\nmetric = 'auc'\nat_most = 0.6\n",
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    records.write_parquet(folder / "records.parquet")
    workbook(folder / "counts.xlsx", {"S": [("zone", "0h", "1h"), ("a", 3, 4), ("b", 5, 6)]})
    corners = [axis for corner in area[0] for axis in corner]
    wkb = struct.pack("<BIII10d", 1, 3, 1, 5, *corners)
    pl.DataFrame({"id": ["a"], "geometry": [wkb]}).write_parquet(folder / "areas.parquet")
    city.regions.write_csv(folder / "regions.csv")
    city.traces().save(folder / "traces.parquet")
    with _inside(folder):
        for out in ("release.parquet", "release.csv"):
            assert _run("release", "traces.parquet", "-M", "raw", "-o", out)[0] == 0
    return folder


@contextlib.contextmanager
def _inside(folder):
    before = os.getcwd()  # noqa: PTH109 - nothing but a name
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


class HangError(BaseException):
    """Nothing that a command may catch."""


@contextlib.contextmanager
def _limit():
    """End what hangs."""

    def stop(*_):
        raise HangError(f"a command took more than {LONGEST} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LONGEST)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _run(*arguments):
    """Run a command in this process; return its exit code, output and errors."""
    out, err = io.StringIO(), io.StringIO()
    typed, sys.argv = sys.argv, ["whosthere", *map(str, arguments)]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _limit():
            main()
    except SystemExit as end:
        return end.code or 0, out.getvalue(), err.getvalue()
    finally:
        sys.argv = typed
    return 0, out.getvalue(), err.getvalue()


class Trials:
    """Counts what was tried, and ends a search when its time is over."""

    def __init__(self, folder):
        self.folder = folder
        self.begun = time.monotonic()
        self.codes = dict.fromkeys(sorted(CODES), 0)

    @property
    def is_over(self):
        return SECONDS > 0 and time.monotonic() - self.begun > SECONDS

    def repeat(self, search):
        """Search once, or anew until the time is over."""
        search()
        while SECONDS and not self.is_over:
            search()

    def check(self, arguments):
        """Run a command; all that may be there afterwards is what it was told to make."""
        before = set(self.folder.iterdir())
        try:
            code, out, err = _run(*arguments)
        except HangError as hang:
            pytest.fail(f"{hang}: {arguments}")
        assert code in CODES, (arguments, code)
        assert "Traceback" not in err, (arguments, err)
        if code == 2:
            listed = "--check" in arguments and "Problem: " in out
            assert listed or err.startswith("error: "), (arguments, err)
        self.codes[code] += 1
        new = {path.name for path in set(self.folder.iterdir()) - before}
        assert not any(name.endswith(".part") for name in new), (arguments, new)
        if code:
            assert not new, (arguments, new)
        for name in new:
            path = self.folder / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def report(self, what, capsys):
        with capsys.disabled():
            n = sum(self.codes.values())
            print(f"\n{what}: {n:,} commands tried, exit codes {self.codes}")
        assert n


@pytest.fixture
def trials(base, tmp_path, monkeypatch):
    shutil.copytree(base, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    # Made once: typer would put the commands together again for each of them.
    monkeypatch.setattr(typer.main, "get_command", lambda _: COMMAND)
    return Trials(tmp_path)


NASTY = [
    b"", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b'"', b"\n", b"\r\n\r\n", b";", b",,,,", b"\x1b[31m",
    b"nan", b"-1", b"1e999", b"9" * 400, b"20240330", b"2024-03-31T02:30", b"99/99/9999", b"{}",
    b"[[[[", b"null", b"\xe9", b"\xf0\x9f\x98\x80", b":smile:", b"n/a", b"PK\x03\x04", b"PAR1",
    b"0001-01-01", b"262144-01-01", b"2024-10-27 02:30:00", b"+99:99", b"\x1f\x8b",
]  # fmt: skip


def _damaged(content, rng):
    """Return content with a few changes."""
    content = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randint(0, len(content))
        end = min(len(content), at + rng.choice([0, 1, 3, 20, 200]))
        nasty, noise = rng.choice(NASTY), rng.randbytes(rng.randint(1, 9))
        content[at:end] = rng.choice([b"", nasty, nasty, noise, bytes(content[at:end]) * 2])
    return bytes(content[: rng.choice([len(content)] * 5 + [rng.randint(0, len(content))])])


READERS = {
    "records.csv": [["inspect"], ["ingest", "--grid", "2x2"], ["ingest", "--drop-invalid"],
                    ["ingest", "--check"], ["ingest", "--skip-bad-files"]],
    "semicolons.csv": [["inspect"], ["ingest", "--drop-invalid", "--clock-change", "drop"]],
    "records.csv.gz": [["inspect"], ["ingest", "--timezone", "Europe/Rome"]],
    "records.zip": [["inspect"], ["ingest", "--h3", "5"]],
    "records.ndjson": [["inspect"], ["ingest"]],
    "records.geojson": [["inspect"], ["ingest", "--grid-km", "3"]],
    "records.parquet": [["inspect"], ["ingest"]],
    "track.plt": [["inspect"], ["ingest", "--user-from-path", "--grid", "2x2"]],
    "counts.csv": [["import", "-m", "50", "-M", "suppress(k=14, shown=mark)", "--withheld", "<15"]],
    "wide.csv": [["import", "-m", "50", "-M", "laplace(eps=1)", "--tz", "UTC"]],
    "traces.parquet": [["inspect"], ["release", "-M", "raw"], ["target", "--min-visits", "1"]],
    "release.parquet": [["inspect"], ["attack", "--target", "target.csv"]],
    "release.csv": [["inspect"], ["attack", "--target", "target.csv"]],
    "release.csv-metadata.json": [["inspect release.csv"]],
    "target.csv": [["attack release.parquet --target target.csv"]],
    "regions.csv": [["ingest records.csv --regions regions.csv"],
                    ["ingest records.csv --antennas regions.csv --grid 2x2"]],
    "areas.geojson": [["ingest records.csv --polygons areas.geojson"]],
    "areas.parquet": [["ingest records.csv --polygons areas.parquet"]],
    "counts.xlsx": [["import", "-m", "50", "-M", "raw", "--date", "2024-05-01", "--tz", "UTC"],
                    ["import", "-m", "50", "-M", "raw", "--header-row", "2", "--sheet", "S"]],
    "plan.toml": [["audit traces.parquet --plan plan.toml --dry-run --out run"]],
    "policy.toml": [["audit traces.parquet -m 99 -M raw --policy policy.toml --dry-run --out run"]],
}  # fmt: skip
OUTPUTS = {"ingest": "new.parquet", "import": "new.csv", "release": "new.csv", "target": "new.csv"}


@pytest.mark.slow
def test_damaged_files(trials, patient, base, capsys):
    @patient
    @given(st.sampled_from(sorted(READERS)), st.integers(0, 2**32), st.integers(0, 5))
    def search(name, seed, which):
        if trials.is_over:
            return
        rng = random.Random(seed)
        (trials.folder / name).write_bytes(_damaged((base / name).read_bytes(), rng))
        command, *rest = READERS[name][which % len(READERS[name])]
        arguments = [*command.split(), *rest] if " " in command else [command, name, *rest]
        if arguments[0] in OUTPUTS and "--check" not in arguments:
            arguments += ["-o", OUTPUTS[arguments[0]]]
        trials.check(arguments)
        shutil.copy(base / name, trials.folder / name)

    trials.repeat(search)
    trials.report("damaged files", capsys)


VALUES = [
    "", " ", "0", "-1", "1", "2", "3.5", "nan", "inf", "-inf", "1e999", "9" * 30, "x", "1h", "1d",
    "0h", "15min", "2x2", "0x0", "x" * 300, "é", "[red]", ":smile:", "\x1b[0m", "user", "time",
    "region", "a+b", "Europe/Rome", "Mars/Base", "2024-01-01", "2024-13-01", "20240101", "raw",
    "suppress(k=1)", "suppress(k=", "laplace(eps=1)", "round(to=5) | suppress(k=3)", "all",
    "likelihood-ratio", "share(0.5)", "regions", "%Y%m%d", "%", "unix", "day-first", "earlier",
    "drop", "utf-16", "latin-1", "records.csv", "records.parquet", "counts.csv", "traces.parquet",
    "release.csv", "regions.csv", "areas.geojson", "target.csv", "plan.toml", "policy.toml", ".",
    "none.csv", "/proc/x", "new.parquet", "new.csv", "SELECT 1", "SELECT * FROM 'records.csv'",
    "<15", ",", "milan-like", "greedy",
]  # fmt: skip
SOUND = {
    "simulate": ["milan-like", "--users", "3", "--days", "1", "--regions", "4", "-o", "new"],
    "ingest": ["records.csv", "-o", "new.parquet"],
    "release": ["traces.parquet", "-M", "raw", "-o", "new.parquet"],
    "import": ["counts.csv", "-m", "50", "-M", "suppress(k=14, shown=mark)", "--withheld", "<15",
               "-o", "new.csv"],
    "target": ["traces.parquet", "--min-visits", "1", "-o", "new.csv"],
    "attack": ["release.parquet", "--target", "target.csv"],
    "check": ["release.parquet", "--visits", "2"],
    "inspect": ["records.csv"],
    "mechanisms": [],
    "attacks": [],
    "audit": ["traces.parquet", "-m", "5", "-M", "raw", "--out", "new", "--dry-run"],
    "recommend": ["none.parquet", "-m", "5"],
    "report": ["none"],
    "compare": ["none", "."],
    "paper": ["none", "--scale", "smoke", "-o", "new"],
}  # fmt: skip


def test_every_command_is_tried():
    assert set(SOUND) == set(COMMANDS)


@st.composite
def typed(draw):
    """Make a sound command with a few options more, of any value."""
    name = draw(st.sampled_from(sorted(SOUND)))
    options = [
        one
        for one in COMMANDS[name].params
        if one.param_type_name == "option" and one.name not in UNTRIED
    ]
    arguments = [name, *SOUND[name]]
    for option in draw(st.lists(st.sampled_from(options), max_size=3)) if options else ():
        arguments.append(draw(st.sampled_from(option.opts + option.secondary_opts)))
        if not option.is_flag:
            arguments.append(draw(st.sampled_from(VALUES)))
    if draw(st.integers(0, 9)) == 0:
        arguments.insert(draw(st.integers(1, len(arguments))), draw(st.sampled_from(VALUES)))
    return arguments


@pytest.mark.slow
def test_odd_options(trials, patient, base, capsys):
    @patient
    @given(typed())
    def search(arguments):
        if trials.is_over:
            return
        trials.check(arguments)
        for file in base.iterdir():
            if (trials.folder / file.name).read_bytes() != file.read_bytes():
                # Another file than the input may be replaced if that is asked for.
                assert "--force" in arguments, (arguments, file.name)
                assert file.name not in SOUND[arguments[0]], (arguments, file.name)
                shutil.copy(file, trials.folder)

    trials.repeat(search)
    trials.report("odd options", capsys)
