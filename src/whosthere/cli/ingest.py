"""`whosthere ingest`: records of any origin into traces."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from whosthere.cli import console
from whosthere.cli.options import (
    ClockChange,
    Force,
    TimeFormat,
    Timezone,
    refuse_useless,
    with_options,
)
from whosthere.display import counted
from whosthere.errors import FileError, InputError

if TYPE_CHECKING:
    from datetime import datetime

    from whosthere.data.ledger import Ledger
    from whosthere.data.reading.columns import Columns
    from whosthere.data.reading.partition.base import Partition
    from whosthere.data.reading.queries import Query

_REGIONS = "Regions (one of these)"
_SQL = "Databases"
_COLUMNS = "Columns (guessed from the usual names)"
_FILTERS = "Filters"
_ROLES = {"user": "user", "time": "time", "region": "region", "lon": "longitude",
          "lat": "latitude", "point": "position"}  # fmt: skip


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
        typer.Option(help="Of text files; UTF-8, UTF-16 with a mark and Latin-1 are found out."),
    ] = None,
    sql: Annotated[
        str | None,
        typer.Option(
            metavar="SELECT", help="Read the rows of a query (extra sql).", rich_help_panel=_SQL
        ),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|URL",
            help="With --sql: a DuckDB file, or postgresql://user@host/name. Without it the query "
            "names files itself.",
            rich_help_panel=_SQL,
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
        typer.Option(
            metavar="FILE",
            help="The records name their regions; this table lists them: region, lon, lat.",
            rich_help_panel=_REGIONS,
        ),
    ] = None,
    grid_km: Annotated[
        float | None,
        typer.Option(help="Squares of this many km over the data.", rich_help_panel=_REGIONS),
    ] = None,
    grid: Annotated[
        str | None,
        typer.Option(
            metavar="ROWSxCOLUMNS",
            help="That many squares over the data, such as 22x23.",
            rich_help_panel=_REGIONS,
        ),
    ] = None,
    antennas: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Table with lon and lat; each record goes to the nearest. With --grid, "
            "--grid-km, --polygons or --h3: the records name their antenna, and go where it "
            "stands.",
            rich_help_panel=_REGIONS,
        ),
    ] = None,
    reach_km: Annotated[
        float | None,
        typer.Option(
            help="With --antennas alone: places farther away are in no region.",
            rich_help_panel=_REGIONS,
        ),
    ] = None,
    polygons: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="GeoJSON of areas.", rich_help_panel=_REGIONS),
    ] = None,
    polygon_id: Annotated[
        str | None,
        typer.Option(
            metavar="PROPERTY",
            help="With --polygons: the property with the region's id.",
            rich_help_panel=_REGIONS,
        ),
    ] = None,
    h3: Annotated[
        int | None,
        typer.Option(help="H3 hexagons of this resolution, 0 to 15.", rich_help_panel=_REGIONS),
    ] = None,
    user_column: Annotated[str | None, typer.Option(rich_help_panel=_COLUMNS)] = None,
    time_column: Annotated[
        str | None,
        typer.Option(
            help="Times, or times of day if the date has a column of its own.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None,
    date_column: Annotated[str | None, typer.Option(rich_help_panel=_COLUMNS)] = None,
    lon_column: Annotated[str | None, typer.Option(rich_help_panel=_COLUMNS)] = None,
    lat_column: Annotated[str | None, typer.Option(rich_help_panel=_COLUMNS)] = None,
    region_column: Annotated[
        str | None,
        typer.Option(help="One column, or two such as LAC+CI.", rich_help_panel=_COLUMNS),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="TIME", help="Local date or time.", rich_help_panel=_FILTERS
        ),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option("--to", metavar="TIME", help="Not included.", rich_help_panel=_FILTERS),
    ] = None,
    box_quantile: Annotated[
        float | None,
        typer.Option(
            help="Keep the middle box with this share of the records along each axis, "
            "such as 0.99.",
            rich_help_panel=_FILTERS,
        ),
    ] = None,
    min_visits: Annotated[
        int, typer.Option(min=1, help="Drop users with fewer.", rich_help_panel=_FILTERS)
    ] = 1,
    min_weekly_visits: Annotated[
        int,
        typer.Option(
            min=0, help="Drop users with fewer in any whole week.", rich_help_panel=_FILTERS
        ),
    ] = 0,
    mostly_inside: Annotated[
        bool,
        typer.Option(
            "--mostly-inside",
            help="Drop users with half or more of their records outside the box or regions.",
            rich_help_panel=_FILTERS,
        ),
    ] = False,
    drop_invalid: Annotated[
        bool,
        typer.Option(
            "--drop-invalid",
            help="Leave out rows that cannot be used, and count them, instead of stopping.",
            rich_help_panel=_FILTERS,
        ),
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
        raise FileError("has an ending that is not known", where=out, fix="Use .parquet")
    inputs = (records, None if database is None else Path(database), friends, regions, antennas,
              polygons)  # fmt: skip
    refuse_existing(out, force=force, inputs=inputs)
    areas = next((one for one in (grid_km, grid, polygons, h3) if one is not None), None)
    refuse_useless(
        database__sql=(database, sql),
        reach_km__antennas=(reach_km, antennas),
        polygon_id__polygons=(polygon_id, polygons),
    )
    if reach_km is not None and areas is not None:
        raise InputError(
            "--reach-km does nothing where records name their antenna", fix="Leave it out"
        )
    origin = _origin(records, sql, database, encoding)
    partition = _partition(
        regions=regions,
        grid_km=grid_km,
        grid=grid,
        antennas=antennas,
        reach_km=reach_km,
        polygons=polygons,
        polygon_id=polygon_id,
        h3=h3,
    )
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


def _partition(
    *,
    regions: Path | None,
    grid_km: float | None,
    grid: str | None,
    antennas: Path | None,
    reach_km: float | None,
    polygons: Path | None,
    polygon_id: str | None,
    h3: int | None,
) -> Partition:
    """Make the partition that the options ask for; by default the records name their regions."""
    from whosthere import regions as ways

    areas = {"--grid-km": grid_km, "--grid": grid, "--polygons": polygons, "--h3": h3}
    given = [name for name, value in areas.items() if value is not None]
    if regions is not None:
        given.insert(0, "--regions")
        given += [] if antennas is None else ["--antennas"]
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} cannot be combined", fix="Give one of them")
    made: Partition | None = None
    if grid_km is not None:
        made = ways.Grid(grid_km)
    elif grid is not None:
        made = ways.GridShape(*_shape(grid))
    elif polygons is not None:
        made = ways.Polygons(polygons, polygon_id)
    elif h3 is not None:
        made = ways.H3Cells(h3)
    if antennas is None:
        return made or ways.RegionIds(None if regions is None else ways.read_regions(regions))
    table = ways.read_regions(antennas)
    if made is not None:
        return ways.ThroughAntennas(table, made)
    reach = {} if reach_km is None else {"reach_km": reach_km}
    return ways.NearestAntenna(table, **reach)


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
        console.say(f"Not read, for their endings are not known: {listed(ledger.not_read)}")
    if ledger.friends is not None:
        console.say(
            f"{ledger.friends.kept:,} friendships kept of {ledger.friends.rows_read:,} rows "
            f"({ledger.friends.unknown:,} with users who are not in the traces, "
            f"{ledger.friends.repeated:,} repeated)"
        )
