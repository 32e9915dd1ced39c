"""How far work has come, on a terminal and elsewhere."""

import io

from rich.console import Console

from whosthere.progress import progress


def written(moves, lines_every=0):
    """Return the lines that are written of moves, each a time and what is done then."""
    now = [0.0]
    out = Console(file=io.StringIO(), width=100, get_time=lambda: now[0])
    with progress(out, lines_every=lines_every) as move:
        for seconds, *call in moves:
            now[0] = seconds
            move(*call)
    return out.file.getvalue().splitlines()


def test_time_left_is_that_of_the_work_at_hand():
    """The second experiment of a study begins anew; the first one's time does not count."""
    lines = written(
        (begins + 2 * done, "looks", done, 10) for begins in (0, 1_000) for done in range(11)
    )
    assert lines[:11] == lines[11:]
    assert lines[5] == "looks: 5 of 10 done, about 10 s left"


def test_work_that_is_resumed_counts_from_where_it_was():
    lines = written((seconds, "tasks", done, 10) for seconds, done in enumerate((6, 7, 8)))
    assert lines[-1] == "tasks: 8 of 10 done, about 2 s left"


def test_lines_are_not_taken_for_markup():
    assert written([(0, "[bold]a\x1b[0m[/bold]", 1, 2)]) == ["[bold]a\\x1b[0m[/bold]: 1 of 2 done"]


def test_a_bar_begins_anew(monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    now = [0.0]
    shown = Console(file=io.StringIO(), force_terminal=True, width=100, get_time=lambda: now[0])
    with progress(shown) as move:
        for seconds, done in ((0, 0), (999, 10), (1_000, 1), (1_003, 2)):
            now[0] = seconds
            move("looks", done, 10)
    last = shown.file.getvalue().rsplit("looks", 1)[1]
    assert "2/10" in last
    assert "0:00:03" in last


def test_long_work_has_few_lines():
    """Ten trials of an hour each; after each line it takes twice as long to the next one."""
    moves = [
        (3_600 * trial + 36 * done, f"trial {trial}", done, 100)
        for trial in range(10)
        for done in range(101)
    ]
    lines = written(moves, lines_every=30)
    assert 8 <= len(lines) <= 12
    assert lines[0] == "trial 0: 0 of 100 done"
