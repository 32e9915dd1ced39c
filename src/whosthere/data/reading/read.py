"""Reading records: who was where, when, from files in any common form or frames, as Traces."""

from __future__ import annotations

import operator
from collections import Counter
from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import polars as pl

from whosthere.data.epochs import parse_length, zone
from whosthere.data.frames import is_frame
from whosthere.data.reading.batches import RecordTable
from whosthere.data.reading.columns import Columns, Layout, arrange, find_forms
from whosthere.data.reading.distinct import Labels
from whosthere.data.reading.gather import Gathering, assembled
from whosthere.data.reading.notes import about_reading, zone_of_times
from whosthere.data.reading.opening import USER_FROM_PATH, open_sources
from whosthere.data.reading.partition import (
    Grid,
    GridShape,
    H3Cells,
    NearestAntenna,
    Partition,
    RegionIds,
    ThroughAntennas,
)
from whosthere.data.reading.passes import (
    Filters,
    Passes,
    epochs_of,
    first_look,
    nothing_usable,
    sound_tables,
)
from whosthere.data.reading.polygons import Polygons
from whosthere.data.reading.queries import Query
from whosthere.data.reading.source import skipping
from whosthere.data.reading.tables import add_friends, read_pairs, read_places
from whosthere.data.reading.times import UNIX, TimeReader, clock_change_of, time_form
from whosthere.data.reading.trips import (
    BothEnds,
    FlowGathering,
    TripTable,
    about_ends,
    ends_of,
    flows_of,
    read_listed,
)
from whosthere.errors import InputError

_Given = TypeVar("_Given")
_Made = TypeVar("_Made")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from whosthere.data.frames import AnyPath, Frame
    from whosthere.data.reading.passes import Progress
    from whosthere.data.reading.times import ClockChange
    from whosthere.data.reading.trips import Flows
    from whosthere.data.regions import Regions
    from whosthere.data.traces import Traces

    Moment: TypeAlias = "str | date"


def read_records(
    source: AnyPath | Sequence[AnyPath] | Query | Frame,
    *,
    regions: Partition | Regions | AnyPath | Frame | None = None,
    grid_km: float | None = None,
    grid: str | tuple[int, int] | None = None,
    antennas: Regions | AnyPath | Frame | None = None,
    reach_km: float | None = None,
    polygons: AnyPath | Frame | None = None,
    polygon_id: str | None = None,
    place_column: str | None = None,
    h3: int | None = None,
    epoch: str | timedelta = "1h",
    timezone: str | None = None,
    time_format: str | None = None,
    clock_change: ClockChange = "refuse",
    encoding: str | None = None,
    user_column: str | None = None,
    user_from_path: bool = False,
    time_column: str | None = None,
    date_column: str | None = None,
    lon_column: str | None = None,
    lat_column: str | None = None,
    region_column: str | None = None,
    both_ends: bool = False,
    flows: str | None = None,
    pairs: AnyPath | Frame | None = None,
    origin_column: str | None = None,
    destination_column: str | None = None,
    end_lon_column: str | None = None,
    end_lat_column: str | None = None,
    arrival_column: str | None = None,
    start: Moment | None = None,
    end: Moment | None = None,
    min_visits: int = 1,
    min_weekly_visits: int = 0,
    mostly_inside: bool = False,
    drop_invalid: bool = False,
    friends: AnyPath | Frame | None = None,
    skipped: list[InputError] | None = None,
    progress: Progress | None = None,
) -> Traces:
    """Read records of who was where, when, and make Traces of them.

    Parameters
    ----------
    source
        A frame of polars, pandas, GeoPandas, or of any library that hands its columns over as Arrow
        does. A file, a folder of files, or several: CSV, NDJSON, GeoJSON points, Parquet,
        workbooks, or zip files of these. Or a `Query` of a database.
    regions
        The records name their regions, and these are all there are: a table with region, lon and
        lat. Also any other `Partition`. By default the regions that the records name.
    grid_km, grid, h3
        Squares of so many km over the data; so many rows and columns of them, such as ``"22x23"``;
        or H3 hexagons of this resolution.
    antennas, reach_km
        A table with lon and lat: each record goes to the nearest of them, or to none if all are
        farther away than `reach_km`. With a grid, polygons or hexagons the records name their
        antenna, and count where it stands.
    place_column
        The column with the ids in the table of regions or antennas.
    polygons, polygon_id
        Areas, as GeoJSON, GeoParquet or a GeoDataFrame, and the property with their id.
    epoch
        How long each epoch lasts, such as ``"15min"``, ``"1h"`` or ``"1d"``.
    timezone
        IANA name of the local zone: where times without a zone were recorded, and whose days
        count. By default the zone that a column of datetimes carries, else UTC; times without
        a zone are refused then.
    time_format
        How times are written: ``iso``, ``unix``, ``day-first``, ``month-first`` or a pattern such
        as ``%Y%m%d%H%M``. By default found out from the times, and refused where they can be read
        in two ways.
    clock_change
        What becomes of local times that a change of the clock skipped or repeated: ``refuse``,
        ``drop``, or read as the ``earlier`` or ``later`` of the two possible moments.
    encoding
        Encoding of text files other than UTF-8, UTF-16 with a mark, and Latin-1.
    user_column, time_column, date_column, lon_column, lat_column, region_column
        Names of the columns where they are unusual. A user or region may be several together, as
        in ``"LAC+CI"``.
    both_ends
        Each record is a trip, and its user was where it begins and where it ends, at these times.
    flows, pairs
        What a trip is, for traces over pairs of regions: ``"trips"`` (each record is one),
        ``"ends"`` (every two records of a user are the ends of one) or ``"visits"`` (each move from
        one visit to the next is one). With rules, such as ``"visits(min_stay=20min, max_gap=4h)"``.
        A trip counts in the epoch in which it begins. The pairs are all pairs of regions, or those
        of a table with the columns origin and destination.
    origin_column, destination_column, end_lon_column, end_lat_column, arrival_column
        For `both_ends` and ``flows="trips"``: where trips begin and end (`lon_column` and
        `lat_column` are those of the beginning), and when they end, which flows need not know.
        They begin at `time_column`.
    user_from_path
        The user is the first folder below `source`, or the name of a file there.
    start, end
        The time window, `end` not included; without a zone they are local times. Where one is
        missing, the records' own range is taken.
    min_visits, min_weekly_visits
        Drop users with fewer visits in all, or in any whole week (counted from the first day).
    mostly_inside
        Drop users with half or more of their records outside the regions.
    drop_invalid
        Leave out rows that cannot be used, instead of refusing all.
    friends
        A table of pairs of users who know one another: columns user and friend, or the first
        two. Friendships between users who are in the traces are kept.
    skipped
        A list to which everything is added that is wrong with the files; those that cannot be used
        are then left out. All files are read once more for this. By default, the first problem is
        raised.
    progress
        Called with what is being done, the rows read so far, and their number where known.

    Returns
    -------
    Traces, users sorted by id, with a ledger of what was dropped and why.

    Examples
    --------
    >>> import whosthere as wt
    >>> traces = wt.read_records(frame, grid_km=1, epoch="1h", timezone="Europe/Rome")
    """
    in_files = not (is_frame(source) or isinstance(source, Query))
    refuse_useless("without files", not in_files, encoding=encoding, user_from_path=user_from_path)
    refuse_useless("with `user_from_path`", user_from_path, user_column=user_column)
    _refuse_no_numbers(
        wholes={"h3": h3, "min_visits": min_visits, "min_weekly_visits": min_weekly_visits},
        others={"grid_km": grid_km, "reach_km": reach_km},
    )
    wrong: list[InputError] | None = None if skipped is None else []
    partition, place_column = _partition(
        regions, grid_km, grid, antennas, reach_km, polygons, polygon_id, place_column, h3, wrong
    )
    places = {"region": region_column, "lon": lon_column, "lat": lat_column}
    _refuse_other_places(partition, places)
    trips, of_rows = _trips(flows, both_ends=both_ends, pairs=pairs, region_column=region_column)
    arrival = _arrivals(
        partition,
        of_rows=of_rows,
        names={"origin_column": origin_column, "destination_column": destination_column},
        points={"end_lon_column": end_lon_column, "end_lat_column": end_lat_column},
        arrival_column=arrival_column,
    )
    listed = _read(read_listed, pairs, wrong)
    columns = Columns(
        user=USER_FROM_PATH if user_from_path else user_column,
        time=time_column,
        date=date_column,
        **places | {"region": origin_column or region_column},
        end="start" if of_rows else "",
    )
    filters = Filters(
        start=_moment("start", start),
        end=_moment("end", end),
        min_visits=min_visits,
        min_weekly_visits=min_weekly_visits,
        mostly_inside=mostly_inside,
    )
    length = parse_length(epoch)
    zone("UTC" if timezone is None else timezone)
    time_format = None if time_format is None else time_form(time_format)
    times = TimeReader(
        timezone=timezone,
        clock_change=clock_change_of(clock_change),
        any_age=time_format == UNIX,
    )
    # Before the records, which can take long, so that a bad table is refused at once.
    known = _read(read_pairs, friends, wrong)
    # A grid needs the box of the records, and is known afterwards.
    fixed = None if partition.needs_box else partition
    early = _read(operator.methodcaller("locator"), fixed, wrong)
    opened = partial(
        open_sources, encoding=encoding, user_from_path=user_from_path, skipped=skipped
    )
    sources, not_read = _read(opened, source, wrong) or ([], [])
    place = "point" if partition.uses_points else "region"
    how: Any = {"roles": ("user", place, "time"), "time_format": time_format, "skipped": skipped}
    layouts = _each(partial(arrange, columns=columns, **how), sources, skipped)
    tables = [
        RecordTable(layout, replace(times, form=form), partition.is_open, drop_invalid)
        for layout, form in find_forms(layouts, time_format, skipped)
    ]
    if of_rows:
        kind = BothEnds if both_ends else TripTable
        tables = _each(lambda table: kind.of(table, arrival, place, skipped), tables, skipped)
    layouts = [table.layout for table in tables]
    passes = Passes(progress or (lambda *_: None))
    local = timezone or zone_of_times(layouts) or "UTC"
    window = filters.window(local)
    if skipped is not None:
        # Points may lie in no region, but none is unknown.
        none_known = partition.uses_points or partition.is_open or drop_invalid
        only = None if none_known else early
        skipped += wrong or ()
        tables = sound_tables(tables, only, window, skipped, passes)
        layouts = [table.layout for table in tables]
    if wrong:
        raise wrong[-1]
    look = first_look(tables, partition, window, passes)
    gathering = (Gathering if trips is None else partial(FlowGathering, flows=trips, pairs=listed))(
        locator=early or partition.locator(look.extent.box),
        epochs=epochs_of(window, look, length, local),
        window=window,
        users=Labels(_user_dtype(layouts)),
        drop=drop_invalid,
    )
    rows: Counter[Path] = Counter()
    for batch in passes.over(tables, "Reading records"):
        gathering.add(batch)
        rows[batch.source.path] += batch.rows_read
    if not len(gathering.users):
        raise nothing_usable(tables, gathering.invalid)
    traces = assembled(
        gathering,
        filters,
        only_visited=partition.is_open,
        columns=_names_of_columns(layouts)
        | ({} if place_column is None else {"place": place_column})
        | {f"end {role}": name for role, name in _names_of_columns(ends_of(tables)).items()},
        not_read=tuple(not_read),
        bad_files=tuple(map(str, skipped or ())),
        notes=tuple(about_reading(tables, rows, gathering, found_forms=time_format is None))
        + tuple(about_ends(tables)),
    )
    return traces if known is None else add_friends(traces, known)


def _refuse_other_places(partition: Partition, columns: dict[str, str | None]) -> None:
    """Refuse columns of points where regions are named, and the other way round."""
    for role, name in columns.items():
        of_points = role != "region"
        used = "records' points" if partition.uses_points else "regions they name"
        why = f"here, where the {used} are used"
        refuse_useless(why, of_points != partition.uses_points, **{f"{role}_column": name})


def _each(
    make: Callable[[_Given], _Made], given: Iterable[_Given], wrong: list[InputError] | None
) -> list[_Made]:
    """Make something of each that is given, except where what is wrong with it is noted."""
    made = []
    for one in given:
        with skipping(wrong):
            made.append(make(one))
    return made


def _read(
    read: Callable[..., _Made], given: object, wrong: list[InputError] | None
) -> _Made | None:
    """Read what was given; None where nothing was, or where what is wrong with it is noted."""
    return next(iter(_each(read, [] if given is None else [given], wrong)), None)


def _trips(
    flows: str | None, *, both_ends: bool, pairs: object, region_column: str | None
) -> tuple[Flows | None, bool]:
    """Return what a trip is, where flows are asked for; and whether each record has both ends."""
    trips = None if flows is None else flows_of(flows)
    of_rows = both_ends or (trips is not None and trips.of_rows)
    refuse_useless("without `flows`", trips is None, pairs=pairs)
    refuse_useless("with `flows`", trips is not None, both_ends=both_ends)
    refuse_useless("where both ends of trips are read", of_rows, region_column=region_column)
    return trips, of_rows


_NO_TRIPS = "without `both_ends`, or `flows` of trips"


def _arrivals(
    partition: Partition,
    *,
    of_rows: bool,
    names: dict[str, str | None],
    points: dict[str, str | None],
    arrival_column: str | None,
) -> Columns:
    """Return the columns of where and when trips end, or refuse those that do nothing."""
    refuse_useless(_NO_TRIPS, not of_rows, arrival_column=arrival_column)
    for given, uses_points in ((names, False), (points, True)):
        refuse_useless(_NO_TRIPS, not of_rows, **given)
        why = f"here, where trips end at {'points' if partition.uses_points else 'named regions'}"
        refuse_useless(why, uses_points != partition.uses_points, **given)
    return Columns(
        time=arrival_column,
        lon=points["end_lon_column"],
        lat=points["end_lat_column"],
        region=names["destination_column"],
        end="end",
    )


_PLACE_FIX = "Say which column holds their ids (`place_column`), or rename it"


def _partition(  # noqa: PLR0917 - one for each word
    regions: Partition | Regions | AnyPath | Frame | None,
    grid_km: float | None,
    grid: str | tuple[int, int] | None,
    antennas: Regions | AnyPath | Frame | None,
    reach_km: float | None,
    polygons: AnyPath | Frame | None,
    polygon_id: str | None,
    place_column: str | None,
    h3: int | None,
    wrong: list[InputError] | None,
) -> tuple[Partition, str | None]:
    """Return the one partition that was asked for; by default the records name their regions.

    And the column with the ids in the table of regions or antennas, where there is one.
    """
    refuse_useless("without `antennas`", antennas is None, reach_km=reach_km)
    refuse_useless("without `polygons`", polygons is None, polygon_id=polygon_id)
    areas: dict[str, Partition] = {}
    if grid_km is not None:
        areas["`grid_km`"] = Grid(grid_km)
    if grid is not None:
        areas["`grid`"] = GridShape(*_shape(grid))
    if polygons is not None:
        areas["`polygons`"] = Polygons(polygons, polygon_id)
    if h3 is not None:
        areas["`h3`"] = H3Cells(h3)
    given = [*([] if regions is None else ["`regions`"]), *areas]
    if regions is not None and antennas is not None:
        given.append("`antennas`")
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} cannot be combined", fix="Give one of them")
    refuse_useless("where records name their antenna", bool(areas), reach_km=reach_km)
    area = next(iter(areas.values()), None)
    listed = regions if antennas is None else antennas
    if listed is None or isinstance(listed, Partition):
        refuse_useless("without a table of places", is_so=True, place_column=place_column)
        return listed or area or RegionIds(), None
    named = partial(read_places, column=place_column, fix=_PLACE_FIX)
    table, column = _read(named, listed, wrong) or (None, None)
    if table is None:
        # Another way, by which records are looked over for what else is wrong.
        return GridShape(1, 1) if antennas is not None and area is None else RegionIds(), None
    if antennas is None:
        return RegionIds(table), column
    if area is not None:
        return ThroughAntennas(table, area), column
    return NearestAntenna(table, **({} if reach_km is None else {"reach_km": reach_km})), column


def refuse_useless(why: str, is_so: bool, **given: object) -> None:  # noqa: FBT001 - the condition
    """Refuse what was given but does nothing where something is so."""
    for word, value in given.items():
        if is_so and value is not None and value is not False:
            raise InputError(f"`{word}` does nothing {why}", fix="Leave it out")


def _refuse_no_numbers(wholes: dict[str, object], others: dict[str, object]) -> None:
    """Refuse text, fractions and the like that are given as numbers, by their words."""
    for word, value in (wholes | others).items():
        kind, name = (Integral, "a whole number") if word in wholes else (Real, "a number")
        if value is not None and (isinstance(value, bool) or not isinstance(value, kind)):
            raise InputError(f"`{word}` must be {name}, not {value!r}")


def _shape(grid: str | tuple[int, int]) -> tuple[int, int]:
    try:
        rows, columns = map(int, grid.lower().split("x")) if isinstance(grid, str) else grid
        return operator.index(rows), operator.index(columns)
    except (ValueError, TypeError):
        raise InputError(f"`grid` {grid!r} is not a shape", fix="Write it like 22x23") from None


def _moment(word: str, given: Moment | None) -> datetime | None:
    if given is None or isinstance(given, datetime):
        return given
    try:
        return datetime.fromisoformat(str(given))
    except ValueError:
        raise InputError(
            f"`{word}` {str(given)!r} is not a time",
            fix="Write it like 2013-11-01 or 2013-11-01T08:00",
        ) from None


def _user_dtype(layouts: Sequence[Layout]) -> type[pl.Int64 | pl.String]:
    """Return how user ids are kept while reading: as numbers only where they all fit."""
    kinds = [layout.kind("user") for layout in layouts]
    fits = all(kind.is_integer() and kind != pl.UInt64 for kind in kinds)
    return pl.Int64 if fits else pl.String


def _names_of_columns(layouts: Sequence[Layout]) -> dict[str, str]:
    """Return which column was read for each role; tables may differ in it."""
    names: dict[str, dict[str, None]] = {}
    for layout in layouts:
        for role, name in layout.names.items():
            names.setdefault(role, {})[name] = None
    return {role: " or ".join(found) for role, found in names.items()}
