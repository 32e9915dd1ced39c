"""Outputs appear whole or not at all."""

import pytest

from whosthere.data.files import new_file
from whosthere.errors import FileError


def test_an_interrupted_write_leaves_nothing(tmp_path):
    target = tmp_path / "deep" / "file"
    with pytest.raises(KeyboardInterrupt), new_file(target) as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert list((tmp_path / "deep").iterdir()) == []


def test_a_failed_replacement_keeps_the_old_file(tmp_path):
    target = tmp_path / "file"
    target.write_text("old")
    with pytest.raises(RuntimeError), new_file(target, force=True) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_an_existing_file_is_only_replaced_by_force(tmp_path):
    target = tmp_path / "file"
    target.write_text("old")
    with pytest.raises(FileError, match="--force"), new_file(target):
        pass
    with new_file(target, force=True) as temporary:
        temporary.write_text("new")
    assert target.read_text() == "new"


def test_a_folder_that_is_a_file_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot be written"), new_file(tmp_path / "file" / "x"):
        pass
