"""`whosthere ingest`: records of any origin into traces."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from whosthere.cli import console
from whosthere.cli.options import (
    ClockChange,
    Force,
    TimeFormat,
    Timezone,
    with_options,
)
from whosthere.display import counted
from whosthere.errors import FileError, InputError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from whosthere.data.ledger import Ledger
    from whosthere.data.reading.columns import Columns
    from whosthere.data.reading.partition import Partition
    from whosthere.data.reading.queries import Query

_ROLES = {"user": "user", "time": "time", "region": "region", "lon": "longitude",
          "lat": "latitude", "point": "position"}  # fmt: skip
_database = partial(typer.Option, rich_help_panel="Databases")
_regions = partial(typer.Option, rich_help_panel="Regions (one of these)")
_column = partial(typer.Option, rich_help_panel="Columns (guessed from the usual names)")
_filter = partial(typer.Option, rich_help_panel="Filters")


def ingest(
    context: typer.Context,
    records: Annotated[
        Path | None,
        typer.Argument(
            metavar="RECORDS",
            help="A file or folder: .csv, .tsv, .ndjson, .jsonl, .geojson, .parquet, .xlsx, .ods; "
            "text also as .gz or .zst, all also in a .zip. Left out with --sql.",
        ),
    ] = None,
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The traces to write (.parquet).")
    ],
    epoch_length: Annotated[
        str, typer.Option("--epoch", help="Length of an epoch: 15min, 1h, 1d, ...")
    ] = "1h",
    timezone: Timezone = None,
    time_format: TimeFormat = None,
    at_clock_change: ClockChange = "refuse",
    encoding: Annotated[
        str | None,
        typer.Option(
            help="Of text files. UTF-8, UTF-16 with a byte-order mark and Latin-1 are detected."
        ),
    ] = None,
    sql: Annotated[
        str | None, _database(metavar="SELECT", help="Read the rows of a query (extra sql).")
    ] = None,
    database: Annotated[
        str | None,
        _database(
            metavar="FILE|URL",
            help="With --sql: a DuckDB file, or postgresql://user@host/name. Without it the query "
            "names files itself.",
        ),
    ] = None,
    friends: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Table of pairs of users who know one another: user, friend."
        ),
    ] = None,
    regions: Annotated[
        Path | None,
        _regions(
            metavar="FILE",
            help="The records name their regions; this table lists them: region, lon, lat.",
        ),
    ] = None,
    grid_km: Annotated[
        float | None, _regions(help="Squares of this many km over the data.")
    ] = None,
    grid: Annotated[
        str | None,
        _regions(metavar="ROWSxCOLUMNS", help="That many squares over the data, such as 22x23."),
    ] = None,
    antennas: Annotated[
        Path | None,
        _regions(
            metavar="FILE",
            help="Table with lon and lat; each record goes to the nearest. With --grid, "
            "--grid-km, --polygons or --h3: the records name their antenna, and count where it "
            "stands.",
        ),
    ] = None,
    reach_km: Annotated[
        float | None,
        _regions(help="With --antennas alone: places farther away are in no region."),
    ] = None,
    polygons: Annotated[Path | None, _regions(metavar="FILE", help="GeoJSON of areas.")] = None,
    polygon_id: Annotated[
        str | None,
        _regions(metavar="PROPERTY", help="With --polygons: the property with the region's id."),
    ] = None,
    h3: Annotated[int | None, _regions(help="H3 hexagons of this resolution, 0 to 15.")] = None,
    user_column: Annotated[str | None, _column()] = None,
    time_column: Annotated[
        str | None, _column(help="Times, or times of day if the date has a column of its own.")
    ] = None,
    date_column: Annotated[str | None, _column()] = None,
    lon_column: Annotated[str | None, _column()] = None,
    lat_column: Annotated[str | None, _column()] = None,
    region_column: Annotated[str | None, _column(help="One column, or two such as LAC+CI.")] = None,
    start: Annotated[
        str | None, _filter("--from", metavar="TIME", help="Local date or time.")
    ] = None,
    end: Annotated[str | None, _filter("--to", metavar="TIME", help="Not included.")] = None,
    box_quantile: Annotated[
        float | None,
        _filter(
            help="Keep the middle box with this share of the records along each axis, such as 0.99."
        ),
    ] = None,
    min_visits: Annotated[int, _filter(min=1, help="Drop users with fewer visits.")] = 1,
    min_weekly_visits: Annotated[
        int, _filter(min=0, help="Drop users with fewer visits in any whole week.")
    ] = 0,
    mostly_inside: Annotated[
        bool,
        _filter(
            "--mostly-inside",
            help="Drop users with half or more of their records outside the box or regions.",
        ),
    ] = False,
    drop_invalid: Annotated[
        bool,
        _filter("--drop-invalid", help="Drop and count unusable rows instead of stopping."),
    ] = False,
    force: Force = False,
) -> None:
    """Read records of who was where, when, into one file of traces.

    A trace holds the (region, epoch) cells that a user visited, each once.

    Example: `whosthere ingest calls/ --antennas antennas.csv --polygons districts.geojson
    --timezone America/Bogota --out traces.parquet`
    """
    from whosthere.data.epochs import parse_length
    from whosthere.data.files import refuse_existing
    from whosthere.data.reading.columns import Columns
    from whosthere.data.reading.read import Filters, read_records
    from whosthere.data.reading.times import clock_change as known_change

    if out.suffix != ".parquet":
        raise FileError("has an unknown extension", where=out, fix="Use .parquet")
    inputs = (records, None if database is None else Path(database), friends, regions, antennas,
              polygons)  # fmt: skip
    refuse_existing(out, force=force, inputs=inputs)
    for option, given, needed, other in (
        ("--database", database, "--sql", sql),
        ("--reach-km", reach_km, "--antennas", antennas),
        ("--polygon-id", polygon_id, "--polygons", polygons),
    ):
        if given is not None and other is None:
            fix = f"Give {needed} too, or leave it out"
            raise InputError(f"{option} does nothing without {needed}", fix=fix)
    origin = _origin(records, sql, database, encoding)
    areas = _areas(grid_km, grid, polygons, polygon_id, h3)
    partition = _partition(areas, regions, antennas, reach_km)
    filters = Filters(
        start=_moment(start, "--from"),
        end=_moment(end, "--to"),
        box_quantile=box_quantile,
        min_visits=min_visits,
        min_weekly_visits=min_weekly_visits,
        mostly_inside=mostly_inside,
    )
    columns = Columns(
        user=user_column,
        time=time_column,
        date=date_column,
        lon=lon_column,
        lat=lat_column,
        region=region_column,
    )
    _refuse_useless_columns(columns, partition)
    with console.progress() as move:
        traces = read_records(
            origin,
            partition=partition,
            epoch_length=parse_length(epoch_length),
            timezone=timezone,
            columns=columns,
            filters=filters,
            time_format=time_format,
            at_clock_change=known_change(at_clock_change),
            encoding=encoding,
            drop_invalid=drop_invalid,
            friends=friends,
            progress=move,
        )
    traces.save(out, force=force)
    if traces.ledger is not None:
        _show(traces.ledger, context)
    console.say(f"{counted(len(traces.regions), 'region')}, {traces.epochs}")
    console.say(f"Written: {out}")


def _origin(
    records: Path | None, sql: str | None, database: str | None, encoding: str | None
) -> Path | Query:
    """Return what to read: files, or a query."""
    from whosthere.data.reading.queries import Query

    if (records is None) == (sql is None):
        given = "both records and --sql are" if sql is not None else "neither records nor --sql is"
        raise InputError(f"{given} given", fix="Give one of them")
    if sql is None and records is not None:
        return records
    if encoding is not None:
        raise InputError("--encoding does nothing with --sql", fix="Leave it out")
    return Query(str(sql), database)


def _refuse_useless_columns(columns: Columns, partition: Partition) -> None:
    useless = ("region",) if partition.uses_points else ("lon", "lat")
    for role in useless:
        if getattr(columns, role) is not None:
            needed = "the records' points" if partition.uses_points else "the regions they name"
            raise InputError(
                f"--{role}-column does nothing here, where {needed} are used", fix="Leave it out"
            )


def _areas(
    grid_km: float | None,
    grid: str | None,
    polygons: Path | None,
    polygon_id: str | None,
    h3: int | None,
) -> dict[str, Partition]:
    """Return the partitions into areas that were asked for, by option."""
    from whosthere import regions as ways

    asked: dict[str, Partition] = {}
    if grid_km is not None:
        asked["--grid-km"] = ways.Grid(grid_km)
    if grid is not None:
        asked["--grid"] = ways.GridShape(*_shape(grid))
    if polygons is not None:
        asked["--polygons"] = ways.Polygons(polygons, polygon_id)
    if h3 is not None:
        asked["--h3"] = ways.H3Cells(h3)
    return asked


def _partition(
    areas: Mapping[str, Partition],
    regions: Path | None,
    antennas: Path | None,
    reach_km: float | None,
) -> Partition:
    """Return the one partition that was asked for; by default the records name their regions."""
    from whosthere import regions as ways

    given = [*([] if regions is None else ["--regions"]), *areas]
    if regions is not None and antennas is not None:
        given.append("--antennas")
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} cannot be combined", fix="Give one of them")
    if reach_km is not None and areas:
        raise InputError(
            "--reach-km does nothing where records name their antenna", fix="Leave it out"
        )
    if antennas is None:
        named = ways.RegionIds(None if regions is None else ways.read_regions(regions))
        return next(iter(areas.values()), named)
    table = ways.read_regions(antennas)
    for area in areas.values():
        return ways.ThroughAntennas(table, area)
    return ways.NearestAntenna(table, **({} if reach_km is None else {"reach_km": reach_km}))


def _shape(text: str) -> tuple[int, int]:
    rows, _, columns = text.lower().partition("x")
    try:
        return int(rows), int(columns)
    except ValueError:
        raise InputError(f"--grid {text!r} is not a shape", fix="Write it like 22x23") from None


def _moment(text: str | None, option: str) -> datetime | None:
    from datetime import datetime

    if text is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"{option} {text!r} is not a time", fix="Write it like 2013-11-01 or 2013-11-01T08:00"
        ) from None


def _show(ledger: Ledger, context: typer.Context) -> None:
    from whosthere.errors import listed, quote

    used = (
        f"{word} from {quote(ledger.columns[role])}"
        for role, word in _ROLES.items()
        if role in ledger.columns
    )
    console.say(f"Columns: {', '.join(used)}")
    rows: list[tuple[object, ...]] = [("read", ledger.records_read, ledger.users_read)]
    rows += [(f"- {entry.reason}", -entry.records, -entry.users) for entry in ledger.entries]
    rows.append(("visits kept", ledger.visits, ledger.users))
    console.table("From records to visits", ("", "records", "users"), rows)
    for note in ledger.notes:
        console.say(f"Note: {with_options(note, context)}.")
    if ledger.not_read:
        console.say(f"Skipped: unknown extension: {listed(ledger.not_read)}")
    if ledger.friends is not None:
        console.say(
            f"{ledger.friends.kept:,} friendships kept of {ledger.friends.rows_read:,} rows "
            f"({ledger.friends.unknown:,} with users who are not in the traces, "
            f"{ledger.friends.repeated:,} repeated)"
        )
