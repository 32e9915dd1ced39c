"""Files about people are for their owner alone, and a command that is stopped says what is kept."""

import errno
import os
import signal
from pathlib import Path

import polars as pl
import pytest

from whosthere.auditing import work
from whosthere.auditing.risk import TABLES
from whosthere.auditing.store import MAY_LEAVE, NOTE, STAYS
from whosthere.data.cities import simulate
from whosthere.reporting.report import REPORT

AUDIT = [
    *("audit", "t.parquet", "-m", "5", "-M", "raw", "-a", "likelihood-ratio", "--targets", "3"),
    *("--releases", "2", "--no-what-if", "--workers", "1", "--seed", "1", "-o", "run"),
]


@pytest.fixture(scope="module")
def city():
    return simulate("milan-like", seed=1, users=30, regions=4, days=1).traces()


@pytest.fixture
def folder(tmp_path, monkeypatch, city):
    """A folder with traces, in which everybody may read what is made, unless we see to it."""
    monkeypatch.chdir(tmp_path)
    before = os.umask(0)
    city.save("t.parquet")
    yield tmp_path
    os.umask(before)


def mode(path):
    return Path(path).stat().st_mode & 0o777


def test_what_is_about_people_is_private_whatever_the_umask(whosthere, folder):
    assert mode("t.parquet") == 0o600
    assert whosthere("target", "t.parquet", "--min-visits", "1", "-o", "deep/x.csv")[0] == 0
    assert mode("deep/x.csv") == 0o600
    assert mode("deep") == 0o700
    code, out, _ = whosthere(*AUDIT)
    assert code == 0
    assert "The folder is private: its README.txt says what may leave the house." in out
    modes = {path: mode(path) for path in Path("run").rglob("*") if path.name != REPORT}
    assert mode("run") == 0o700
    assert set(modes.values()) == {0o600, 0o700}
    assert {path for path, one in modes.items() if one == 0o700} == {Path("run/tasks")}


def test_what_is_published_stays_ordinary(whosthere, folder):
    assert whosthere("release", "t.parquet", "-M", "raw", "-o", "out/r.csv")[0] == 0
    assert whosthere("release", "t.parquet", "-M", "raw", "-o", "out/r.parquet")[0] == 0
    assert {mode(path) for path in Path("out").iterdir()} == {0o666}
    assert mode("out") == 0o777
    assert whosthere(*AUDIT)[0] == 0
    assert mode(f"run/{REPORT}") == 0o666


def test_the_note_of_a_run_folder_names_all_of_its_files(whosthere, folder):
    whosthere(*AUDIT)
    leave, stay = Path("run", NOTE).read_text().split("must not leave")
    kept = {path.name for path in Path("run").iterdir()} - {".lock", NOTE, "tasks"}
    # The others are written where changes were tried, records were given, or everybody was asked.
    others = {"what_if.json", "traces.parquet", *(f"{name}.parquet" for name in TABLES)}
    assert kept | others == {*MAY_LEAVE, *STAYS}
    assert all(f"  {name} " in leave for name in MAY_LEAVE)
    assert all(f"  {name} " in stay for name in (*STAYS, "tasks"))


def test_sigterm_ends_like_ctrl_c_with_an_exit_code_of_its_own(whosthere, folder, monkeypatch):
    score, scored = work.score_task, []

    def stopped(*arguments):
        if len(scored) == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        scored.append(score(*arguments))
        return scored[-1]

    monkeypatch.setattr(work, "score_task", stopped)
    code, _, err = whosthere(*AUDIT)
    assert code == 143
    assert "interrupted; 2 of 3 tasks are done and kept. The same command resumes there" in err
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert whosthere(*AUDIT)[0] == 0


@pytest.mark.parametrize(
    "command", [["release", "t.parquet", "-M", "raw", "-o", "r.parquet"], AUDIT]
)
@pytest.mark.parametrize(
    "fault",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        pl.exceptions.ComputeError("write: No space left on device (os error 28)"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
    ],
)
def test_a_full_disk_is_named_with_the_file(whosthere, folder, monkeypatch, command, fault):
    def full(*_, **__):
        raise fault

    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    code, _, err = whosthere(*command)
    [file] = [path for path in ("r.parquet", "run/tasks/") if path in err]
    assert code == 1
    assert f"error: could not write {file}" in err
    assert ("No space left on device" in err) != ("Disk quota exceeded" in err)
    assert "Free some space" in err
    assert not list(folder.rglob("*.part"))


def test_a_full_disk_is_said_of_the_log_too(whosthere, folder, monkeypatch):
    whosthere(*AUDIT)
    Path("run/log.txt").unlink()
    Path("run/log.txt").symlink_to("/dev/full")
    code, _, err = whosthere(*AUDIT)
    assert code == 1
    assert "could not write run/log.txt: No space left on device. Free some space" in err
