"""A command that is stopped on its way leaves every file as it was."""

import runpy
import signal
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import polars as pl
import pytest

from whosthere.data.traces import Traces
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.publish import publish
from whosthere.privacy.release import Release

# A program that says on its output how far the command has come, and stays there. Programs in the
# background may have been set to ignore Ctrl-C; this one listens again.
_BEGIN = """
import signal, sys, time
from contextlib import contextmanager
signal.signal(signal.SIGINT, signal.default_int_handler)
"""
_WHILE_READING = """
from whosthere.cli import records
@contextmanager
def announced(_):
    yield lambda *call: (print("started", *call, flush=True), time.sleep(3600))
records.progress = announced
"""
_WHILE_WRITING = """
import polars
def half(table, path, *_, **__):
    path.write_bytes(b"half a file")
    print("started", flush=True)
    time.sleep(3600)
polars.DataFrame.write_parquet = half
"""
_END = """
from whosthere.cli.main import main
main()
"""
MESSAGE = "error: interrupted; no output was left half-written\n"
INTERRUPTED = (130, "", MESSAGE)
CITY = ["simulate", "milan-like", "--users", "20", "--days", "2"]


@contextmanager
def started(moment, *arguments):
    """Give a process that runs the command and has reached the moment."""
    process = subprocess.Popen(
        [sys.executable, "-c", _BEGIN + moment + _END, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline().startswith("started")
        yield process
    finally:
        process.kill()
        process.communicate()


def stop(process, how):
    process.send_signal(how)
    _, err = process.communicate(timeout=3600)
    return process.returncode, err


@pytest.fixture(scope="module")
def many_records(tmp_path_factory):
    """Write records that are read in several batches."""
    rng = np.random.default_rng(1)
    n = 600_000
    path = tmp_path_factory.mktemp("many") / "records.parquet"
    pl.DataFrame(
        {
            "user": rng.integers(0, 1000, n),
            "time": 1_622_505_600 + rng.integers(0, 86_400, n),
            "lon": rng.uniform(9, 10, n),
            "lat": rng.uniform(45, 46, n),
        }
    ).write_parquet(path, compression="uncompressed")
    return path


def test_ctrl_c_while_reading(many_records, tmp_path):
    out = tmp_path / "traces.parquet"
    out.write_text("old")
    arguments = ["ingest", many_records, "--h3", "9", "--out", out, "--force"]
    with started(_WHILE_READING, *arguments) as process:
        code, err = stop(process, signal.SIGINT)
    assert (code, err) == (130, MESSAGE)
    assert list(tmp_path.iterdir()) == [out]
    assert out.read_text() == "old"


def test_ctrl_c_while_writing(tmp_path):
    with started(_WHILE_WRITING, *CITY, "--out", tmp_path / "city") as process:
        [part] = (tmp_path / "city").iterdir()
        assert part.name.endswith(".part")
        code, err = stop(process, signal.SIGINT)
    assert (code, err) == (130, MESSAGE)
    assert list((tmp_path / "city").iterdir()) == []


def test_a_killed_command_leaves_the_old_file(tmp_path):
    names = {"records.parquet", "regions.csv", "friends.csv"}
    for name in names:
        (tmp_path / name).write_text("old")
    with started(_WHILE_WRITING, *CITY, "--out", tmp_path, "--force") as process:
        assert stop(process, signal.SIGKILL)[0] == -signal.SIGKILL
    assert {(tmp_path / name).read_text() for name in names} == {"old"}
    others = {path.name for path in tmp_path.iterdir()} - names
    assert all(name.startswith(".") and name.endswith(".part") for name in others)


@pytest.fixture
def folder(traces, tmp_path, monkeypatch):
    """Work in a folder with traces and a table of counts."""
    monkeypatch.chdir(tmp_path)
    traces.save(tmp_path / "traces.parquet")
    table = publish(traces, mechanism=Mechanism()).release.to_frame()
    table.write_parquet(tmp_path / "counts.parquet")
    return tmp_path


def _interrupted(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("typed", "step"),
    [
        ("release traces.parquet -M raw -o out.parquet", (Traces, "load")),
        ("release traces.parquet -M raw -o out.parquet", (pl.DataFrame, "write_parquet")),
        ("release traces.parquet -M raw -o out.csv", (pl.DataFrame, "write_csv")),
        ("import counts.parquet -m 40 -M raw -o out.parquet", (pl.DataFrame, "write_parquet")),
        ("import counts.parquet -m 40 -M raw -o out.csv", (Release, "to_frame")),
    ],
)
def test_every_step_can_be_interrupted(folder, whosthere, monkeypatch, typed, step, files):
    monkeypatch.setattr(*step, _interrupted)
    before = files()
    assert whosthere(*typed.split()) == INTERRUPTED
    assert files() == before
    for name in ("out.csv", "out.csv-metadata.json", "out.parquet"):
        (folder / name).write_text("old")
    before = files()
    assert whosthere(*typed.split(), "--force") == INTERRUPTED
    assert files() == before


def test_whatever_an_interruption_turns_into_is_no_fault(whosthere, monkeypatch, tmp_path):
    def interrupted(*_, **__):
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            raise SyntaxError("a module was half imported") from None

    monkeypatch.setattr("whosthere.data.cities.simulate", interrupted)
    assert whosthere(*CITY, "-o", tmp_path / "city") == (143, "", MESSAGE)


def test_ctrl_c_while_the_command_is_imported(monkeypatch):
    class Stops:
        def find_spec(self, name, *_):
            if name == "whosthere.cli.main":
                raise KeyboardInterrupt

    monkeypatch.setattr(sys, "meta_path", [Stops(), *sys.meta_path])
    monkeypatch.delitem(sys.modules, "whosthere.cli.main", raising=False)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("whosthere", run_name="__main__")
    assert ended.value.code == 130
