"""Tables of who knows whom: each row is kept once, or accounted for."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whosthere.data.ledger import FriendEntry
from whosthere.data.reading.tables import NOT_GIVEN, among, read_attributes, read_pairs
from whosthere.errors import EmptyError, FileError, InputError, RecordsError

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


class TestAttributes:
    USERS = tuple(f"u{i}" for i in range(100))

    def test_groups_of_each_user(self, tmp_path):
        (tmp_path / "f.csv").write_text(
            "tariff;USER;district\nflat;u1;north\n;u0;south\nflat;u3;\nflat;zz;north\n"
        )
        found = read_attributes(tmp_path / "f.csv", ["u0", "u1", "u2", "u3"])
        assert found.groups.to_dict(as_series=False) == {
            "tariff": [NOT_GIVEN, "flat", NOT_GIVEN, "flat"],
            "district": ["south", "north", NOT_GIVEN, NOT_GIVEN],
        }
        assert (found.unknown, found.missing) == (1, 1)

    def test_the_first_column_holds_people(self, tmp_path):
        pl.DataFrame({"id": [7.0, 8.0], "age": [30, 40]}).write_parquet(tmp_path / "f.parquet")
        found = read_attributes(tmp_path / "f.parquet", ["8", "7"])
        assert found.groups["age"].to_list() == ["40", "30"]

    def test_values_are_groups_unless_they_are_many_numbers(self):
        table = pl.DataFrame(
            {
                "user": self.USERS,
                "home": [f"a{i}" for i in range(100)],
                "code": [str(i % 12) for i in range(100)],
            }
        )
        groups = read_attributes(table, self.USERS).groups
        assert groups["home"].to_list() == table["home"].to_list()
        assert groups["code"].n_unique() == 12
        with pytest.raises(InputError, match=r"column 'age' has 13 different numbers.*'18 to 29'"):
            read_attributes(table.with_columns(age=pl.int_range(100) % 13), self.USERS)

    @pytest.mark.parametrize("nothing", [float("nan"), "NaN", "nan", None, " "])
    def test_not_a_number_is_not_given(self, nothing):
        """It would turn numbers into words."""
        ages = [*[2.5] * 90, *[nothing] * 10]
        table = pl.DataFrame({"user": self.USERS, "age": pl.Series(ages, strict=False)})
        groups = read_attributes(table, self.USERS).groups["age"]
        assert set(groups.tail(10)) == {NOT_GIVEN}
        assert set(groups.head(90)) == {"2.5"}

    @pytest.mark.parametrize(
        ("content", "error", "message"),
        [
            ("user\nu1\n", RecordsError, "no column besides the ids"),
            ("user,age\nsecret,3\n", EmptyError, "names nobody who is in the traces"),
            ("user,age\nu1,3\nu1,4\n", RecordsError, "several different rows about a person"),
            ("user,age\n", EmptyError, "nobody"),
            ("", EmptyError, "is empty"),
            (None, FileError, "does not exist"),
        ],
    )
    def test_bad_tables_are_refused_without_ids(self, tmp_path, content, error, message):
        path = tmp_path / "f.csv"
        if content is not None:
            path.write_text(content)
        with pytest.raises(error, match=message) as caught:
            read_attributes(path, self.USERS)
        assert not any(one in str(caught.value) for one in ("u1", "secret"))

    def test_equal_rows_are_one(self):
        table = pl.DataFrame({"user": ["u1", "u1"], "x": ["a", "a"]})
        assert read_attributes(table, self.USERS).missing == 99
