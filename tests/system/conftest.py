"""Commands in this process, as a user would type them."""

import sys

import pytest

from whosthere.cli import console
from whosthere.cli.main import main


@pytest.fixture
def whosthere(monkeypatch, capsys):
    """Run a command in this process; return its exit code, output and errors."""
    # Whoever imported it first decided how wide it is.
    for stream in (console.out, console.err):
        monkeypatch.setattr(stream, "width", 200)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["whosthere", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, *capsys.readouterr()

    return run


@pytest.fixture
def files(folder):
    """Give a function that returns the content of everything in the test's folder."""
    return lambda: {
        path: path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))
    }


@pytest.fixture
def refused(whosthere, files):
    """Run a command that must be refused without touching a file; return the message."""

    def run(*arguments):
        before = files()
        code, out, err = whosthere(*arguments)
        assert code == 2
        assert out == ""
        assert err.startswith("error: ")
        assert err.count("error:") == 1
        assert err.count("\n") == 1
        assert "Traceback" not in err
        assert files() == before
        return err

    return run
