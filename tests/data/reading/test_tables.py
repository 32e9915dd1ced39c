"""Tables of who knows whom: each row is kept once, or accounted for."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whosthere.data.ledger import FriendEntry
from whosthere.data.reading.tables import among, read_pairs
from whosthere.errors import EmptyError, FileError, RecordsError

IDS = [*"abcde", "7"]


def _pairs(rows):
    return pl.DataFrame(rows, schema={"user": pl.String, "friend": pl.String}, orient="row")


@given(st.lists(st.tuples(*[st.sampled_from([*IDS, "x", "", None])] * 2)))
def test_rows_are_kept_once_or_accounted_for(rows):
    graph, entry = among(_pairs(rows), IDS)
    known = [row for row in rows if set(row) <= set(IDS)]
    wanted = {frozenset(row) for row in known if len(set(row)) == 2}
    assert {frozenset((IDS[a], IDS[b])) for a, b in graph.pairs()} == wanted
    assert entry == FriendEntry(
        len(rows), len(rows) - len(known), len(known) - len(wanted), len(wanted)
    )


@pytest.mark.parametrize(
    "content",
    [
        "user,friend\na,b\n7,c\n",
        "since;Friend;USER\n2001;a;b\n2002;7;c\n",
        "from,to,weight\na,b,1\n7,c,2\n",
        "user\tother\na\tb\n7\tc\n",
    ],
)
def test_columns_are_found_by_name_or_place(tmp_path, content):
    (tmp_path / "f.csv").write_text(content)
    pairs = read_pairs(tmp_path / "f.csv")
    assert pairs.columns == ["user", "friend"]
    assert {frozenset(row) for row in pairs.rows()} == {frozenset("ab"), frozenset("7c")}


def test_numbers_are_read_as_ids(tmp_path):
    pl.DataFrame({"user": [7, 8], "friend": [8, 9]}).write_parquet(tmp_path / "f.parquet")
    assert read_pairs(tmp_path / "f.parquet").rows() == [("7", "8"), ("8", "9")]


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ("user\na\n", RecordsError, r"no two columns of ids .found user."),
        ("user,friend\n", EmptyError, "has no rows"),
        ("", EmptyError, "is empty"),
        (None, FileError, "does not exist"),
    ],
)
def test_tables_without_pairs_are_refused(tmp_path, content, error, message):
    path = tmp_path / "f.csv"
    if content is not None:
        path.write_text(content)
    with pytest.raises(error, match=message) as caught:
        read_pairs(path)
    assert str(path) in str(caught.value)
