"""Outputs appear whole or not at all; what is read back is what was written."""

import json
import subprocess
import sys

import polars as pl
import pytest

from whosthere.data.files import (
    for_sheets,
    from_sheets,
    new_file,
    read_metadata,
    read_table,
    write_table,
)
from whosthere.data.reading.columns import plain_ids
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
    with pytest.raises(FileError, match="allow it to be replaced"), new_file(target):
        pass
    with new_file(target, force=True) as temporary:
        temporary.write_text("new")
    assert target.read_text() == "new"


def test_a_folder_that_is_a_file_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot be written"), new_file(tmp_path / "file" / "x"):
        pass


def test_a_folder_in_place_of_an_output_is_said_once(tmp_path):
    with pytest.raises(FileError) as refused, new_file(tmp_path, force=True):
        pass
    assert str(refused.value) == f"{tmp_path}: is a folder. Name a file."


@pytest.mark.parametrize("name", ["t.parquet", "[a-b]*.parquet", "x=1 é?.parquet"])
def test_a_table_and_its_metadata_read_back(tmp_path, name):
    frame = pl.DataFrame({"n": [1, None], "lists": [[1, 2], []], "text": ["ü", ""]})
    write_table(frame, tmp_path / name, kind="thing", metadata={"a": [1, {"b": "ü"}]})
    read, head = read_table(tmp_path / name, kind="thing")
    assert read.equals(frame)
    assert head["a"] == [1, {"b": "ü"}]
    with pytest.raises(FileError, match="is a thing file, not a traces file"):
        read_table(tmp_path / name, kind="traces")


def test_tables_of_other_programs_have_no_metadata(tmp_path):
    pl.DataFrame({"n": [1]}).write_parquet(tmp_path / "t.parquet", metadata={"pandas": "{}"})
    assert read_metadata(tmp_path / "t.parquet") is None


@pytest.mark.parametrize("head", ["{", "[]", "{}", json.dumps({"kind": "thing", "format": "x"})])
def test_damaged_metadata_is_refused(tmp_path, head):
    path = tmp_path / "t.parquet"
    pl.DataFrame({"n": [1]}).write_parquet(path, metadata={"whosthere": head})
    with pytest.raises(FileError, match="damaged whosthere metadata"):
        read_metadata(path)


def test_damaged_content_is_refused_or_read(tmp_path, rng):
    """Whatever bytes change, nothing but our own error comes out."""
    path = tmp_path / "t.parquet"
    write_table(pl.DataFrame({"n": [[1, 2, 3]] * 50}), path, kind="thing", metadata={})
    whole = path.read_bytes()
    for place in rng.integers(4, len(whole) - 4, 100):
        path.write_bytes(whole[:place] + rng.bytes(3) + whole[place + 3 :])
        try:
            read_table(path, kind="thing")
        except FileError:
            continue


def test_messages_name_no_option(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError) as caught, new_file(tmp_path / "file"):
        pass
    assert "--" not in str(caught.value)


def test_files_need_no_pyarrow(traces, tmp_path):
    traces.save(tmp_path / "t.parquet")
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from whosthere.data.traces import Traces\n"
        f"Traces.load({str(tmp_path / 't.parquet')!r}).save({str(tmp_path / 'u.parquet')!r})"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert (tmp_path / "t.parquet").read_bytes() == (tmp_path / "u.parquet").read_bytes()


def test_what_is_safe_in_sheets_comes_back():
    names = ["=1+1", "+cmd", "-x", "@a", "'=x", "''-y", "\tz", "-5", "+3,5", "L'Aquila", "'a", "a"]
    written = for_sheets(pl.Series(names))
    assert not any(text[0] in "=@\t\r" or text[:2] in {"+c", "-x"} for text in written)
    assert [text for text, name in zip(written, names, strict=True) if text == name] == names[7:]
    assert from_sheets(written).to_list() == names
    assert plain_ids(written).to_list() == names
