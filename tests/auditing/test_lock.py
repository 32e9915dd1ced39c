"""The lock of a folder: one process at a time, and nothing left of a process that is gone."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager

import pytest

from whosthere.auditing.manifest import LOCK, only_one
from whosthere.errors import FileError

HOLD = """
import sys
from pathlib import Path
from whosthere.auditing.manifest import only_one
with only_one(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def another_process(folder):
    """Start a process that holds the lock until its input ends."""
    command = [sys.executable, "-c", HOLD, str(folder)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def assert_held(folder):
    with pytest.raises(FileError) as error, only_one(folder):
        pytest.fail("two were let in")
    assert str(error.value) == (
        f"{folder}: another audit is at work in this folder. Wait until it has ended."
    )


def assert_free(folder):
    with only_one(folder):
        assert (folder / LOCK).exists()


def test_another_process_is_kept_out_until_the_first_ends(tmp_path):
    with another_process(tmp_path) as process:
        assert_held(tmp_path)
        assert_held(tmp_path)
        process.stdin.close()
        assert process.wait(10) == 0
        assert_free(tmp_path)


def test_a_killed_process_leaves_nothing_that_blocks(tmp_path):
    with another_process(tmp_path) as process:
        process.kill()
        process.wait(10)
        assert_free(tmp_path)


def test_the_same_process_is_kept_out_too(tmp_path):
    with only_one(tmp_path):
        assert_held(tmp_path)
    assert_free(tmp_path)


def test_other_folders_are_free(tmp_path):
    with only_one(tmp_path / "a"), only_one(tmp_path / "b"):
        pass


def test_an_error_inside_frees_the_folder(tmp_path):
    with pytest.raises(KeyError), only_one(tmp_path):
        raise KeyError
    assert_free(tmp_path)


def test_errors_inside_are_not_mistaken_for_those_of_locking(tmp_path):
    with pytest.raises(TimeoutError), only_one(tmp_path):
        raise TimeoutError


def test_the_folder_is_made(tmp_path):
    assert_free(tmp_path / "not" / "there")


def test_a_file_in_place_of_the_folder(tmp_path):
    path = tmp_path / "file"
    path.touch()
    with (
        pytest.raises(FileError, match=r"file: cannot be written or locked \(File exists\)\."),
        only_one(path),
    ):
        pass


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_nothing_may_be_written_to(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(FileError, match=r"cannot be written or locked \("), only_one(tmp_path):
        pass
