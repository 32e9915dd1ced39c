"""Commands in this process, as a user would type them."""

import sys

import pytest

from whosthere.cli.main import main


@pytest.fixture
def whosthere(monkeypatch, capsys):
    """Run a command in this process; return its exit code, output and errors."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["whosthere", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, *capsys.readouterr()

    return run
