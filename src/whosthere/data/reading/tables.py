"""Tables beside the records: the regions there are, and who knows whom."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from whosthere.data.clusters import Clusters
from whosthere.data.floor import in_fives
from whosthere.data.frames import place_of
from whosthere.data.ledger import FriendEntry
from whosthere.data.neighbours import Neighbours, as_graph
from whosthere.data.reading.columns import (
    Columns,
    degrees_of,
    guess,
    joined_ids,
    parts_of,
    refuse_data_as_names,
    showable,
    single_values,
)
from whosthere.data.reading.opening import read_single
from whosthere.data.reading.polygons import Polygons, holds_areas
from whosthere.data.reading.source import naming
from whosthere.data.regions import Regions
from whosthere.errors import EmptyError, InputError, RecordsError, listed, quote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from whosthere.data.frames import AnyPath, Frame
    from whosthere.data.traces import Traces

FRIENDS, GROUPS = ("user", "friend"), ("user", "group")
NOT_GIVEN = "not given"
"""The group of people of whom a table does not say one."""
HOUSEHOLDS = ("user", "household")
_NOBODY = -1
# No attribute is called that.
_USER = "\0"
# An attribute with more different numbers than these does not name groups.
_MOST_NUMBERS = 12
# What other programs write where there is no value.
_NO_VALUES = ("", "NaN", "nan")


def read_regions(table: Regions | AnyPath | Frame) -> Regions:
    """Read the places of a data set.

    Parameters
    ----------
    table
        A file or frame with a column of ids and, if known, lon and lat; or GeoJSON of areas.
    """
    return read_places(table)[0]


def read_places(
    table: Regions | AnyPath | Frame,
    column: str | None = None,
    fix: str = "Name the column with the ids 'region', and rename others like it",
) -> tuple[Regions, str | None]:
    """Read what `read_regions` does; return the column of the ids as well, where there is one.

    It may be given. `fix` says what to do where it is not clear.
    """
    if isinstance(table, Regions):
        return table, None
    path = place_of(table)
    if column is None and path.suffix.lower() == ".geojson" and holds_areas(path):
        return Polygons(path).locator().regions(), None
    rows = read_single(table)
    found = rows.columns
    try:
        id_name = None if column is not None else guess("place", found)
        id_name = id_name or Columns(region=column).find("region", found)
        axes = [Columns().find(axis, found) for axis in ("lon", "lat")]
    except RecordsError as error:
        fix = fix if column is None else error.fix or fix
        raise RecordsError(error.problem, where=path, fix=fix) from error
    if id_name is None:
        refuse_data_as_names(found, where=path, header="region,lon,lat")
        raise RecordsError(
            f"has no region column (found {listed(showable(found))})", where=path, fix=fix
        )
    with naming(path):
        expr = joined_ids(parts_of(id_name, found), rows.schema)
        ids = rows.select(expr.cast(pl.String)).to_series()
        if ids.null_count():
            raise InputError(f"row {_first_null(ids) + 1} has no region id")
        degrees = [None if name is None else _degrees(rows, name) for name in axes]
        return Regions(ids.to_list(), *degrees), id_name


def _degrees(table: pl.DataFrame, name: str) -> NDArray[np.float64]:
    written = table.select(single_values(name, table.schema)).to_series()
    degrees = degrees_of(written)
    if degrees.null_count():
        row = _first_null(degrees)
        raise InputError(f"row {row + 1}, column {name!r}: {written[row]!r} is not a number")
    return degrees.to_numpy()


def _first_null(column: pl.Series) -> int:
    return column.is_null().arg_max() or 0


def read_pairs(given: AnyPath | Frame, columns: tuple[str, str] = FRIENDS) -> pl.DataFrame:
    """Read pairs of ids from the columns of these names or else the first two, as text."""
    path = place_of(given)
    table = read_single(given)
    by_lower_case = {name.strip().lower(): name for name in reversed(table.columns)}
    named = [by_lower_case[name] for name in columns if name in by_lower_case]
    chosen = named if len(named) == len(columns) else table.columns[: len(columns)]
    if len(named) < len(columns):
        refuse_data_as_names(table.columns, where=path, header=",".join(columns))
    if len(chosen) < len(columns):
        raise RecordsError(
            f"has no two columns of ids (found {listed(showable(table.columns))})",
            where=path,
            fix=f"Give a table with the columns {' and '.join(columns)}",
        )
    if not table.height:
        raise EmptyError("has no rows", where=path)
    with naming(path):
        ids = [joined_ids([name], table.schema) for name in chosen]
    return table.select(
        expr.cast(pl.String).alias(role) for role, expr in zip(columns, ids, strict=True)
    )


def read_clusters(
    given: AnyPath | Frame, users: Sequence[str], columns: tuple[str, str] = GROUPS
) -> Clusters:
    """Read which group each user belongs to; whoever is in none is one alone."""
    path, what = place_of(given), columns[1]
    pairs = read_pairs(given, columns).rename({what: "group"}).drop_nulls()
    pairs = pairs.unique(maintain_order=True)
    known = pairs.join(pl.DataFrame({"user": users}), on="user", how="semi")
    if known.is_empty():
        fix = "Give the ids as they are in the records"
        raise EmptyError("names nobody who is in the traces", where=path, fix=fix)
    if known["user"].is_duplicated().any():
        raise RecordsError(
            f"has people in several {what}s", where=path, fix=f"Give each person one {what}"
        )
    found = pl.DataFrame({"user": users}).join(known, on="user", how="left", maintain_order="left")
    group = found["group"].rank("dense").cast(pl.Int64) - 1
    # The others are numbered after all groups, each by itself.
    alone = pl.int_range(found.height, dtype=pl.Int64, eager=True) + known["group"].n_unique()
    return Clusters.by(group.fill_null(alone).to_numpy())


@dataclass(frozen=True, eq=False)
class Attributes:
    """What a table says of people: `groups` has a row for each user, a column for each attribute.

    `unknown` are people in the table who are not in the traces, `missing` those of the traces who
    are not in the table.
    """

    groups: pl.DataFrame
    unknown: int
    missing: int

    @property
    def cautions(self) -> tuple[str, ...]:
        """What a reader must know of how well the table and the traces fit together."""
        numbers = {
            f"say nothing of {{}} of the people in the traces, who are {NOT_GIVEN!r}": self.missing,
            "name {} people who are not in the traces": self.unknown,
        }
        return tuple(
            f"The groups (`by`) {what.format(f'about {in_fives(n):,}')}."
            for what, n in numbers.items()
            if n
        )


def read_attributes(given: AnyPath | Frame, users: Sequence[str]) -> Attributes:
    """Read to which groups each user belongs, such as age, tariff and district.

    People are in the column "user", or else the first one; every other column is an attribute. One
    of many different numbers is refused. Who has no value is in the group "not given".
    """
    path = place_of(given)
    table = read_single(given)
    found = table.columns
    user = next((name for name in found if name.strip().lower() == "user"), found[0])
    names = [name for name in found if name != user]
    if user == found[0] != "user":
        refuse_data_as_names(found, where=path, header="user,age,tariff")
    if not names:
        fix = "Give a table with the column user and one or more others, such as age or tariff"
        raise RecordsError("has no column besides the ids of people", where=path, fix=fix)
    with naming(path):
        ids = joined_ids([user], table.schema).cast(pl.String)
        columns = [single_values(name, table.schema).alias(name) for name in names]
        people = table.select(ids.alias(_USER), *columns).drop_nulls(_USER).unique()
    known = people.join(pl.DataFrame({_USER: users}), on=_USER, how="semi")
    if known.is_empty():
        fix = "Give the ids as they are in the records"
        raise EmptyError("names nobody who is in the traces", where=path, fix=fix)
    if known[_USER].is_duplicated().any():
        fix = "Give each person one row"
        raise RecordsError("has several different rows about a person", where=path, fix=fix)
    joined = pl.DataFrame({_USER: users}).join(known, on=_USER, how="left", maintain_order="left")
    with naming(path):
        groups = joined.select(_groups(joined[name]) for name in names)
    unknown = people[_USER].n_unique() - known.height
    return Attributes(groups, unknown, len(users) - known.height)


def _groups(values: pl.Series) -> pl.Series:
    """Return the names of groups by an attribute; many different numbers are none."""
    texts = values.cast(pl.String).str.strip_chars().replace(dict.fromkeys(_NO_VALUES, None))
    numbers = texts.cast(pl.Float64, strict=False)
    n = numbers.drop_nulls().n_unique()
    if numbers.null_count() == texts.null_count() and n > _MOST_NUMBERS:
        raise InputError(
            f"column {quote(values.name)} has {n:,} different numbers, which are no groups",
            fix="Write groups in words, such as '18 to 29', or leave the column out",
        )
    return texts.fill_null(NOT_GIVEN)


def read_households(given: AnyPath | Frame, users: Sequence[str]) -> Clusters:
    """Read which household each user belongs to; whoever is in none lives alone."""
    households = read_clusters(given, users, HOUSEHOLDS)
    if households.sizes.max() == 1:
        fix = "Give one row for each person, with the columns user and household"
        raise EmptyError("puts nobody with anybody else", where=place_of(given), fix=fix)
    return households


def among(pairs: pl.DataFrame, users: Sequence[str]) -> tuple[Neighbours, FriendEntry]:
    """Make a graph over users, in their order, of the pairs that join two of them."""
    ids = pl.Series(users, dtype=pl.String)
    rows = pl.int_range(ids.len(), dtype=pl.Int32, eager=True)
    edges = np.column_stack(
        [
            pairs[role].replace_strict(ids, rows, default=_NOBODY, return_dtype=pl.Int32).to_numpy()
            for role in FRIENDS
        ]
    )
    known = edges[(edges != _NOBODY).all(axis=1)]
    graph = as_graph(known, len(users))
    unknown, repeated = pairs.height - len(known), len(known) - graph.n_edges
    return graph, FriendEntry(pairs.height, unknown, repeated, graph.n_edges)


def add_friends(traces: Traces, pairs: pl.DataFrame) -> Traces:
    """Return traces with the friendships among their users, and an account of them."""
    graph, entry = among(pairs, traces.users)
    ledger = None if traces.ledger is None else replace(traces.ledger, friends=entry)
    return replace(traces, friends=graph, ledger=ledger)
