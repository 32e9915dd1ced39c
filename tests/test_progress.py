"""How far work has come, on a terminal and elsewhere."""

import io

import pytest
from rich.console import Console

from whosthere import progress
from whosthere.cli import console


@pytest.fixture
def clock(monkeypatch):
    """Give a clock that stands still until it is told the time."""
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def test_time_left_is_that_of_the_work_at_hand(clock, capsys):
    """The second experiment of a study begins anew; the first one's time does not count."""
    with console.progress(lines_every=0) as move:
        for begins in (0, 1_000):
            for done in range(11):
                clock[0] = begins + 2 * done
                move("looks", done, 10)
    lines = capsys.readouterr().err.splitlines()
    assert lines[:11] == lines[11:]
    assert lines[5] == "looks: 5 of 10 done, about 10 s left"


def test_work_that_is_resumed_counts_from_where_it_was(clock, capsys):
    with console.progress(lines_every=0) as move:
        for seconds, done in enumerate((6, 7, 8)):
            clock[0] = seconds
            move("tasks", done, 10)
    assert capsys.readouterr().err.splitlines()[-1] == "tasks: 8 of 10 done, about 2 s left"


def test_a_bar_begins_anew(monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    now = [0.0]
    shown = Console(file=io.StringIO(), force_terminal=True, width=100, get_time=lambda: now[0])
    with progress.progress(shown) as move:
        for seconds, done in ((0, 0), (999, 10), (1_000, 1), (1_003, 2)):
            now[0] = seconds
            move("looks", done, 10)
    last = shown.file.getvalue().rsplit("looks", 1)[1]
    assert "2/10" in last
    assert "0:00:03" in last
