"""Faults of the machine, and inputs out of all proportion, end in one message."""

import subprocess
import sys
from pathlib import Path

import pytest

from whosthere.cli import console
from whosthere.data.cities import simulate

ENDS = {1, 2}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    simulate("milan-like", seed=1, users=30, regions=4, days=1).traces().save("t.parquet")
    return tmp_path


@pytest.fixture
def one_message(whosthere):
    """Run a command that must fail in one message; return the message."""

    def run(*arguments):
        code, _, err = whosthere(*arguments)
        assert code in ENDS
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        assert "Traceback" not in err
        return err

    return run


LONG = "x" * 300


@pytest.mark.parametrize(
    "typed",
    [
        f"inspect {LONG}.csv",
        f"ingest {LONG}.csv -o out.parquet",
        f"release t.parquet -M raw -o {LONG}.parquet",
        f"release t.parquet -M raw -o {'x' * 250}.csv",
        f"target t.parquet -o {LONG}.csv",
        f"simulate milan-like --users 2 --days 1 -o {LONG}",
        f"import {LONG}.csv -m 3 -M raw -o out.parquet",
    ],
)
def test_impossible_names(one_message, folder, typed):
    message = one_message(*typed.split(" "))
    assert "cannot be used" in message
    assert len(message) < 400


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="there is no /proc")
def test_output_that_the_system_refuses(one_message, folder):
    for typed in (
        "release t.parquet -M raw --seed 1 -o /proc/out.parquet",
        "release t.parquet -M raw --seed 1 -o /proc/out.csv",
        "target t.parquet --min-visits 1 -o /proc/out.csv",
        "simulate milan-like --users 2 --days 1 -o /proc/out",
        "audit t.parquet -m 3 -M raw -a likelihood-ratio --targets 2 --releases 2 -o /proc/out",
    ):
        assert "cannot be written" in one_message(*typed.split())


@pytest.mark.parametrize("size", ["--regions 1000000 --users 10", "--users 999999999999",
                                  "--days 999999999",
                                  "--days 40000"])  # fmt: skip
def test_cities_out_of_all_proportion_are_refused_before_any_work(one_message, folder, size):
    one_message("simulate", "milan-like", *size.split(), "-o", "city")
    assert not (folder / "city").exists()


@pytest.mark.parametrize(
    "typed",
    [
        "release t.parquet -M raw -o t.parquet --force",
        "release t.parquet -M raw -o linked.parquet --force",
        "target t.parquet --min-visits 1 -o t.csv --force",
        "ingest r.csv -o t.parquet --friends t.parquet --force",
        "ingest . -o t.parquet --force",
        "import c.csv -m 9 -M raw -o c.csv --force",
        "import c.csv -m 9 -M raw --regions r.csv -o r.csv --force",
    ],
)
def test_no_command_writes_over_its_input(one_message, folder, typed):
    (folder / "linked.parquet").symlink_to("t.parquet")
    (folder / "t.csv").symlink_to("t.parquet")
    (folder / "r.csv").write_text("region\na\n")
    (folder / "c.csv").write_text("region,time,count\na,2024-05-01T00:00Z,1\n")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert "is an input of this command" in one_message(*typed.split())
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("typed", ["inspect t.parquet", "inspect t.parquet --json", "mechanisms"])
def test_a_full_output_is_one_message(folder, typed):
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "whosthere", *typed.split()],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: could not write the output: No space left on device")
    assert "Free some space" in ended.stderr
    assert ended.stderr.count("\n") == 1


# Text from outside


NASTY = "a:smile:b[red]c[/red]\x1b[31m\x9b1m\u202edcba"


def test_text_from_files_does_nothing_to_a_terminal(whosthere, folder):
    (folder / "r.csv").write_text(f"user,{NASTY[:20]}\n1,2\n")
    _, out, _ = whosthere("inspect", "r.csv")
    assert "a:smile:b[red]c" in out
    (folder / "r.csv").write_text(f'user,time,region\n1,"never{NASTY}",2\n')
    _, _, err = whosthere("ingest", "r.csv", "-o", "out.parquet")
    assert "\x1b" not in err
    assert "\x9b" not in err
    assert "\u202e" not in err
    assert ":smile:b[red]c[/red]\\x1b[31m" in err


def test_everything_that_is_printed_is_inert(capsys):
    console.say(NASTY)
    console.complain(NASTY)
    console.table(NASTY, (NASTY,), [(NASTY,)])
    console.heading(NASTY)
    console.entry(NASTY[:12], NASTY)
    console.verdict("accept", NASTY)
    for text in capsys.readouterr():
        assert not {
            "\x1b",
            "\x9b",
            "\u202e",
            "\N{SMILING FACE WITH OPEN MOUTH AND SMILING EYES}",
        } & (set(text))
        assert ":smile:" in text


@pytest.mark.parametrize("content", [b"\x93NUMPY\x01\x00\x00\x02", b"\x89PNG\r\n\x1a\n\0\0", b"PK"])
def test_what_is_no_table_is_refused(one_message, folder, content):
    for ending in ("csv", "ndjson", "geojson", "parquet", "zip", "xlsx"):
        (folder / f"r.{ending}").write_bytes(content * 50)
        if (ending, content) != ("csv", b"PK"):
            one_message("inspect", f"r.{ending}")


def test_sentences_are_broken_between_words_on_a_terminal(monkeypatch, capsys):
    sentence = "the quick brown fox jumps over the lazy dog " * 5
    monkeypatch.setattr(console, "out", type(console.out)(width=80, force_terminal=True))
    console.say(sentence)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert " ".join(line.strip() for line in lines) == sentence.strip()


def test_sentences_that_go_to_a_file_are_not_broken_at_all(monkeypatch, capsys):
    sentence = "the quick brown fox jumps over the lazy dog " * 5
    monkeypatch.setattr(console, "out", type(console.out)(width=80, force_terminal=False))
    console.say(sentence.strip())
    assert capsys.readouterr().out.splitlines() == [sentence.strip()]


def test_advice_names_only_options_that_there_are(whosthere, folder):
    (folder / "c.csv").write_text("zone,hour,people\nA,never,3\n")
    _, _, err = whosthere("import", "c.csv", "-m", 3, "-M", "raw", "-o", "o.parquet")
    assert "--time-format" in err
    _, _, err = whosthere("inspect", "none.csv")
    assert "--" not in err
