"""Text tables: the same rows however they are encoded, packed, cut into blocks or broken."""

import csv
import gzip
import io
import re

import polars as pl
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from whosthere.data.reading import delimited
from whosthere.data.reading.columns import degrees_of, whole_numbers_of
from whosthere.data.reading.delimited import open_delimited
from whosthere.data.reading.source import RAGGED, Stored
from whosthere.errors import RecordsError

quick = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
FIELDS = st.text(st.sampled_from('ab1é"\n;,|\t \x85\x0c'), max_size=6)
ROWS = st.lists(st.tuples(FIELDS, FIELDS, FIELDS), min_size=1, max_size=12)


def written(rows, separator=";"):
    out = io.StringIO()
    writer = csv.writer(out, delimiter=separator, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerows([("first", "second", "third"), *rows])
    return out.getvalue()


def read(path):
    return [
        tuple(text or "" for text in row) for row in open_delimited(Stored(path)).whole().rows()
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("block", [40, 1 << 24])
@quick
@given(ROWS, st.sampled_from(",;\t|"))
def test_rows_come_back(tmp_path, monkeypatch, encoding, packed, block, rows, separator):
    monkeypatch.setattr(delimited, "_BLOCK_CHARS", block)
    content = written(rows, separator).encode(encoding)
    # Some Latin-1 is UTF-8 as well, and nobody can tell.
    assume(
        encoding != "latin-1" or content.isascii() or not delimited._is_utf8(content, is_cut=False)
    )
    path = tmp_path / "r.csv"
    path.write_bytes(gzip.compress(content) if packed else content)
    assert read(path) == rows


@quick
@given(ROWS, st.data())
def test_only_broken_rows_are_lost(tmp_path, monkeypatch, rows, data):
    # Without quotes of their own: what an open quote swallows would be ambiguous otherwise.
    rows = [tuple(re.sub(r'[";\n]', "", text) for text in row) for row in rows]
    monkeypatch.setattr(delimited, "_BLOCK_CHARS", data.draw(st.sampled_from([30, 100, 1 << 24])))
    lines = [f"{line}\n" for line in written(rows).split("\n")[:-1]]
    broken = data.draw(st.sets(st.integers(1, len(rows)), max_size=3))
    for index in broken:
        lines[index] = data.draw(st.sampled_from(["1;2;3;4\n", "a;b;c;;;d\n", '"open;2;3\n']))
    path = tmp_path / "r.csv"
    path.write_text("".join(lines))
    source = open_delimited(Stored(path))
    chosen = [pl.col(name) for name in source.columns]
    found, marked, n = [], set(), 0
    for frame in source.batches(chosen):
        ragged = frame[RAGGED] if RAGGED in frame.columns else pl.Series([None] * frame.height)
        marked |= {n + i + 1 for i in range(frame.height) if ragged[i] is not None}
        found += [row[:3] for row, why in zip(frame.rows(), ragged, strict=True) if why is None]
        n += frame.height
    assert marked == broken
    kept = [row for index, row in enumerate(rows, start=1) if index not in broken]
    assert [tuple(text or "" for text in row) for row in found] == kept
    assert n == len(rows)


@quick
@given(ROWS)
def test_lines_are_named_as_an_editor_counts_them(tmp_path, rows):
    path = tmp_path / "r.csv"
    path.write_text(written(rows))
    source = open_delimited(Stored(path))
    line = 2
    for index, row in enumerate(rows):
        assert source.place(index) == f"{path}, line {line}"
        line += 1 + sum(text.count("\n") for text in row)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_header_may_be_longer_than_what_is_looked_at_first(tmp_path, encoding, packed):
    names = [f"région {i:05}" for i in range(8_000)]
    text = f"{','.join(names)}\n{','.join('7' * 8_000)}\n".encode(encoding)
    path = tmp_path / "t.csv"
    path.write_bytes(gzip.compress(text) if packed else text)
    source = open_delimited(Stored(path))
    assert list(source.columns) == names
    assert source.whole().rows() == [("7",) * 8_000]


def test_a_broken_row_far_down_loses_and_repeats_nothing(tmp_path, monkeypatch):
    """What was read fast before is skipped in the careful reading, several blocks of it."""
    monkeypatch.setattr(delimited, "BATCH_ROWS", 1000)
    monkeypatch.setattr(delimited, "_BLOCK_CHARS", 4000)
    lines = [f"{n};b;c" for n in range(20_000)]
    lines[19_990] = "1;2;3;4"
    path = tmp_path / "r.csv"
    path.write_text("\n".join(["first;second;third", *lines]))
    frames = list(open_delimited(Stored(path)).batches([pl.col("first")]))
    careful = [frame.height for frame in frames if RAGGED in frame.columns]
    assert sum(frame.height for frame in frames[: -len(careful)]) > 2 * max(careful)
    found = [text for frame in frames for text in frame["first"]]
    assert found == [None if n == 19_990 else str(n) for n in range(20_000)]


def test_degrees_and_whole_numbers():
    assert degrees_of(pl.Series(["9,5", " 9.25", "x", None])).to_list() == [9.5, 9.25, None, None]
    numbers = whole_numbers_of(pl.Series(["1 234", "5.0", "x", "1,234,567", "2,000"]), None)
    assert numbers.to_list() == [1234, 5, None, 1234567, 2000]
    with pytest.raises(RecordsError, match="'1,234' can be a whole number"):
        whole_numbers_of(pl.Series(["1,234"]), None)
    assert whole_numbers_of(pl.Series(["1.234", "x"]), ".").to_list() == [1.234 * 1000, None]
    assert whole_numbers_of(pl.Series(["31.000", "4"]), ".").to_list() == [31_000, 4]
    assert whole_numbers_of(pl.Series(["31.000", "4"]), ",").to_list() == [31, 4]
    with pytest.raises(RecordsError, match=r"'31\.000' can be a whole number"):
        whole_numbers_of(pl.Series(["31.000", "4"]), None)
