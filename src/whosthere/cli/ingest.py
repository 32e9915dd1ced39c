"""`whosthere ingest`: records of any origin into traces."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from whosthere.cli import console
from whosthere.cli.options import Force, Timezone
from whosthere.errors import FileError, InputError

if TYPE_CHECKING:
    from datetime import datetime

    from whosthere.data.ledger import Ledger
    from whosthere.data.partition import Partition

_REGIONS = "Regions (one of these)"
_COLUMNS = "Columns (guessed from the usual names)"
_FILTERS = "Filters"


def ingest(
    records: Annotated[
        Path,
        typer.Argument(
            metavar="RECORDS",
            help="A file or folder: .csv, .tsv, .csv.gz, .ndjson, .jsonl, .geojson, .parquet.",
        ),
    ],
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The traces to write (.parquet).")
    ],
    epoch: Annotated[str, typer.Option(help="Length of an epoch: 15min, 1h, 1d, ...")] = "1h",
    timezone: Timezone = None,
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
            help="Table with lon and lat; each record goes to the nearest.",
            rich_help_panel=_REGIONS,
        ),
    ] = None,
    reach_km: Annotated[
        float | None,
        typer.Option(
            help="With --antennas: places farther away are in no region.", rich_help_panel=_REGIONS
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
    time_column: Annotated[str | None, typer.Option(rich_help_panel=_COLUMNS)] = None,
    lon_column: Annotated[str | None, typer.Option(rich_help_panel=_COLUMNS)] = None,
    lat_column: Annotated[str | None, typer.Option(rich_help_panel=_COLUMNS)] = None,
    region_column: Annotated[str | None, typer.Option(rich_help_panel=_COLUMNS)] = None,
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

    Example: `whosthere ingest calls/ --antennas antennas.csv --timezone America/Bogota
    --out traces.parquet`
    """
    from whosthere.data.columns import Columns
    from whosthere.data.epochs import parse_length
    from whosthere.data.files import refuse_existing
    from whosthere.data.read import Filters, read_records

    if out.suffix != ".parquet":
        raise FileError("has an ending that is not known", where=out, fix="Use .parquet")
    refuse_existing(out, force=force)
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
        user=user_column, time=time_column, lon=lon_column, lat=lat_column, region=region_column
    )
    with console.progress() as move:
        traces = read_records(
            records,
            partition=partition,
            epoch_length=parse_length(epoch),
            timezone=timezone,
            columns=columns,
            filters=filters,
            drop_invalid=drop_invalid,
            friends=friends,
            progress=move,
        )
    traces.save(out, force=force)
    if traces.ledger is not None:
        _show(traces.ledger)
    console.say(f"{len(traces.regions):,} regions, {traces.epochs}")
    console.say(f"Written: {out}")


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
    from whosthere.data import partition as ways
    from whosthere.data.regions import Regions

    chosen = {
        "--regions": regions,
        "--grid-km": grid_km,
        "--grid": grid,
        "--antennas": antennas,
        "--polygons": polygons,
        "--h3": h3,
    }
    given = [name for name, value in chosen.items() if value is not None]
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} cannot be combined", fix="Give one of them")
    if grid_km is not None:
        return ways.Grid(grid_km)
    if grid is not None:
        return ways.GridShape(*_shape(grid))
    if antennas is not None:
        reach = {} if reach_km is None else {"reach_km": reach_km}
        return ways.NearestAntenna(Regions.read(antennas), **reach)
    if polygons is not None:
        return ways.Polygons(polygons, polygon_id)
    if h3 is not None:
        return ways.H3Cells(h3)
    return ways.RegionIds(None if regions is None else Regions.read(regions))


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


def _show(ledger: Ledger) -> None:
    rows: list[tuple[object, ...]] = [("read", ledger.records_read, ledger.users_read)]
    rows += [(f"- {entry.reason}", -entry.records, -entry.users) for entry in ledger.entries]
    rows.append(("visits kept", ledger.visits, ledger.users))
    console.table("From records to visits", ("", "records", "users"), rows)
    if ledger.friends is not None:
        console.say(
            f"{ledger.friends.kept:,} friendships kept of {ledger.friends.rows_read:,} rows "
            f"({ledger.friends.unknown:,} with users who are not in the traces, "
            f"{ledger.friends.repeated:,} repeated)"
        )
