"""`whosthere simulate` and `whosthere ingest`: records of a simulated city, and of any origin."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from whosthere.cli import console
from whosthere.cli.options import (
    CLOCK_CHANGE,
    ENCODING,
    FORCE,
    JSON,
    TIME_FORMAT,
    TIMEZONE,
    reading,
    results,
    with_options,
)
from whosthere.display import counted
from whosthere.errors import EmptyError, FileError, InputError
from whosthere.progress import progress

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from whosthere.data.ledger import Ledger
    from whosthere.data.reading.columns import Columns
    from whosthere.data.reading.partition import Partition
    from whosthere.data.traces import Traces

_PROBLEMS_FOUND = 2
_ROLES = {"user": "user", "time": "time", "region": "region", "lon": "longitude",
          "lat": "latitude", "point": "position"}  # fmt: skip


_size = partial(typer.Option, rich_help_panel="Size")


def simulate(
    city: str = typer.Argument(metavar="CITY", help="milan-like or cdr-like."),
    *,
    users: int | None = _size(None, help="How many people; default that of the city."),
    regions: int | None = _size(None, help="How many regions; default that of the city."),
    days: int | None = _size(None, help="How many days; default that of the city."),
    seed: int = _size(0, min=0, help="Same seed, same city."),
    out: Path = results(..., "--out", "-o", metavar="FOLDER", help="Where to write."),
    json: bool = JSON,
    force: bool = FORCE,
) -> None:
    """Simulate a city: who was where, when, and who knows whom.

    Writes records.parquet, regions.csv and friends.csv into FOLDER. The people are invented;
    nothing is downloaded.

    Example: `whosthere simulate milan-like --seed 7 --out city`
    """
    from whosthere.data.cities import FILES
    from whosthere.data.cities import simulate as make
    from whosthere.data.files import refuse_existing

    records_file, regions_file, friends_file = (out / name for name in FILES)
    for path in (records_file, regions_file, friends_file):
        refuse_existing(path, force=force)
    made = make(city, seed=seed, users=users, regions=regions, days=days)
    made.write(out, force=force)
    if json:
        numbers = {"records": len(made.user), "regions": len(made.regions)}
        written = [str(path) for path in (records_file, regions_file, friends_file)]
        epochs = made.epochs.to_json()
        console.print_json({"city": made.name, **numbers, "epochs": epochs, "files": written})
        return
    console.say(
        f"{made.name}: {counted(len(made.user), 'record')}, "
        f"{counted(len(made.regions), 'region')}, {made.epochs}"
    )
    console.say(f"Written: {records_file}, {regions_file} and {friends_file}")
    console.say(
        f"Next:    whosthere ingest {records_file} --regions {regions_file}"
        f" --friends {friends_file} --out {out / 'traces.parquet'}"
    )


_database = partial(typer.Option, None, rich_help_panel="Databases")
_regions = partial(typer.Option, None, rich_help_panel="Regions (one of these)")
_column = partial(typer.Option, None, rich_help_panel="Columns (guessed from the usual names)")
_filter = partial(typer.Option, rich_help_panel="Filters")


def ingest(
    context: typer.Context,
    records: Path | None = typer.Argument(
        None,
        metavar="RECORDS",
        help="A file or folder: .csv, .tsv, .ndjson, .jsonl, .geojson, .parquet, .xlsx, .ods, "
        ".plt; text also as .gz or .zst, all also in a .zip. Left out with --sql.",
    ),
    *,
    out: Path | None = results(
        None, "--out", "-o", metavar="FILE", help="The traces to write (.parquet)."
    ),
    json: bool = JSON,
    check: bool = results(
        False, "--check", help="List everything that is wrong with the records; write nothing."
    ),
    skip_bad_files: bool = reading(
        False, "--skip-bad-files", help="Leave out files that cannot be used, and list them."
    ),
    epoch_length: str = reading("1h", "--epoch", help="Length of an epoch: 15min, 1h, 1d, ..."),
    timezone: str | None = TIMEZONE,
    time_format: str | None = TIME_FORMAT,
    at_clock_change: str = CLOCK_CHANGE,
    encoding: str | None = ENCODING,
    sql: str | None = _database(metavar="SELECT", help="Read the rows of a query (extra sql)."),
    database: str | None = _database(
        metavar="FILE|URL",
        help="With --sql: a DuckDB file, or postgresql://user@host/name. Without it the query "
        "names files itself.",
    ),
    friends: Path | None = reading(
        None, metavar="FILE", help="Table of pairs of users who know one another: user, friend."
    ),
    regions: Path | None = _regions(
        metavar="FILE",
        help="The records name their regions; this table lists them: region, lon, lat. Or GeoJSON "
        "of areas.",
    ),
    grid_km: float | None = _regions(help="Squares of this many km over the data."),
    grid: str | None = _regions(
        metavar="ROWSxCOLUMNS", help="That many squares over the data, such as 22x23."
    ),
    antennas: Path | None = _regions(
        metavar="FILE",
        help="Table with lon and lat; each record goes to the nearest. With --grid, --grid-km, "
        "--polygons or --h3: the records name their antenna, and count where it stands.",
    ),
    reach_km: float | None = _regions(
        help="With --antennas alone: places farther away are in no region."
    ),
    polygons: Path | None = _regions(metavar="FILE", help="GeoJSON or GeoParquet of areas."),
    polygon_id: str | None = _regions(
        metavar="PROPERTY", help="With --polygons: the property with the region's id."
    ),
    h3: int | None = _regions(help="H3 hexagons of this resolution, 0 to 15."),
    user_column: str | None = _column(),
    user_from_path: bool = typer.Option(
        False,
        "--user-from-path",
        help="The user is the first folder below RECORDS, or the name of a file there.",
        rich_help_panel="Columns (guessed from the usual names)",
    ),
    time_column: str | None = _column(
        help="Times, or times of day if the date has a column of its own."
    ),
    date_column: str | None = _column(),
    lon_column: str | None = _column(),
    lat_column: str | None = _column(),
    region_column: str | None = _column(help="One column, or two such as LAC+CI."),
    start: str | None = _filter(None, "--from", metavar="TIME", help="Local date or time."),
    end: str | None = _filter(None, "--to", metavar="TIME", help="Not included."),
    box_quantile: float | None = _filter(
        None,
        help="Keep the middle box with this share of the records along each axis, such as 0.99.",
    ),
    min_visits: int = _filter(1, min=1, help="Drop users with fewer visits."),
    min_weekly_visits: int = _filter(
        0, min=0, help="Drop users with fewer visits in any whole week."
    ),
    mostly_inside: bool = _filter(
        False,
        "--mostly-inside",
        help="Drop users with half or more of their records outside the box or regions.",
    ),
    drop_invalid: bool = _filter(
        False,
        "--drop-invalid",
        help="Drop and count unusable rows instead of stopping.",
    ),
    force: bool = FORCE,
) -> None:
    """Read records of who was where, when, into one file of traces.

    A trace holds the (region, epoch) cells that a user visited, each once.

    Example: `whosthere ingest calls/ --antennas antennas.csv --polygons districts.geojson
    --timezone America/Bogota --out traces.parquet`
    """
    from whosthere.data.epochs import parse_length
    from whosthere.data.files import refuse_existing
    from whosthere.data.reading.columns import Columns
    from whosthere.data.reading.queries import Query
    from whosthere.data.reading.read import Filters, read_records
    from whosthere.data.reading.times import clock_change as known_change

    _refuse_useless_options(
        needing=(
            ("--database", database, "--sql", sql),
            ("--reach-km", reach_km, "--antennas", antennas),
            ("--polygon-id", polygon_id, "--polygons", polygons),
        ),
        excluding=(
            ("--out", out, "--check", check or None),
            ("--encoding", encoding, "--sql", sql),
            ("--user-from-path", user_from_path or None, "--sql", sql),
            ("--user-column", user_column, "--user-from-path", user_from_path or None),
        ),
    )
    if out is not None:
        inputs = (records, None if database is None else Path(database), friends, regions,
                  antennas, polygons)  # fmt: skip
        if out.suffix != ".parquet":
            raise FileError("has an unknown extension", where=out, fix="Use .parquet")
        refuse_existing(out, force=force, inputs=inputs)
    elif not check:
        raise InputError("--out is missing", fix="Name the traces to write, or use --check")
    if (records is None) == (sql is None):
        given = "both records and --sql are" if sql is not None else "neither records nor --sql is"
        raise InputError(f"{given} given", fix="Give one of them")
    partition = _partition(regions, grid_km, grid, antennas, reach_km, polygons, polygon_id, h3)
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
    skipped: list[InputError] | None = [] if check or skip_bad_files else None
    try:
        with progress(console.err) as move:
            traces = read_records(
                records or Query(str(sql), database),
                partition=partition,
                epoch_length=parse_length(epoch_length),
                timezone=timezone,
                columns=columns,
                filters=filters,
                time_format=time_format,
                at_clock_change=known_change(at_clock_change),
                encoding=encoding,
                drop_invalid=drop_invalid,
                user_from_path=user_from_path,
                skipped=skipped,
                friends=friends,
                progress=move,
            )
    except InputError as error:
        if not check:
            raise
        found = skipped if skipped and isinstance(error, EmptyError) else [*(skipped or ()), error]
        _list_problems(map(str, found), context, json=json)
        raise typer.Exit(_PROBLEMS_FOUND) from None
    if out is not None:
        traces.save(out, force=force)
    about = {
        "file": None if out is None else str(out),
        "regions": len(traces.regions),
        "epochs": traces.epochs.to_json(),
        "ledger": None if traces.ledger is None else traces.ledger.to_json(),
    }
    console.result(about, partial(_show, traces, out, context), json=json)
    if check and skipped:
        raise typer.Exit(_PROBLEMS_FOUND)


def _list_problems(problems: Iterable[str], context: typer.Context, *, json: bool) -> None:
    said = [with_options(problem, context) for problem in problems]
    console.result({"problems": said}, partial(console.say, *said, begin="Problem: "), json=json)


def _refuse_useless_options(
    needing: Iterable[tuple[str, object, str, object]],
    excluding: Iterable[tuple[str, object, str, object]],
) -> None:
    """Refuse an option without another that it needs, or with one that it does not go with."""
    for option, given, other, value in needing:
        if given is not None and value is None:
            fix = f"Give {other} too, or leave it out"
            raise InputError(f"{option} does nothing without {other}", fix=fix)
    for option, given, other, value in excluding:
        if given is not None and value is not None:
            raise InputError(f"{option} does nothing with {other}", fix="Leave it out")


def _refuse_useless_columns(columns: Columns, partition: Partition) -> None:
    useless = ("region",) if partition.uses_points else ("lon", "lat")
    needed = "the records' points" if partition.uses_points else "the regions they name"
    for role in useless:
        if getattr(columns, role) is not None:
            problem = f"--{role}-column does nothing here, where {needed} are used"
            raise InputError(problem, fix="Leave it out")


def _partition(  # noqa: PLR0917 - one for each option
    regions: Path | None,
    grid_km: float | None,
    grid: str | None,
    antennas: Path | None,
    reach_km: float | None,
    polygons: Path | None,
    polygon_id: str | None,
    h3: int | None,
) -> Partition:
    """Return the one partition that was asked for; by default the records name their regions."""
    from whosthere import regions as ways

    areas: dict[str, Partition] = {}
    if grid_km is not None:
        areas["--grid-km"] = ways.Grid(grid_km)
    if grid is not None:
        areas["--grid"] = ways.GridShape(*_shape(grid))
    if polygons is not None:
        areas["--polygons"] = ways.Polygons(polygons, polygon_id)
    if h3 is not None:
        areas["--h3"] = ways.H3Cells(h3)
    given = [*([] if regions is None else ["--regions"]), *areas]
    if regions is not None and antennas is not None:
        given.append("--antennas")
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} cannot be combined", fix="Give one of them")
    if reach_km is not None and areas:
        raise InputError(
            "--reach-km does nothing where records name their antenna", fix="Leave it out"
        )
    area = next(iter(areas.values()), None)
    if antennas is None:
        return area or ways.RegionIds(None if regions is None else ways.read_regions(regions))
    table = ways.read_regions(antennas)
    if area is not None:
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


def _show(traces: Traces, out: Path | None, context: typer.Context) -> None:
    if traces.ledger is not None:
        _show_ledger(traces.ledger, context)
    console.say(f"{counted(len(traces.regions), 'region')}, {traces.epochs}")
    console.say("Nothing was written (--check)" if out is None else f"Written: {out}")


def _show_ledger(ledger: Ledger, context: typer.Context) -> None:
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
    _list_problems(ledger.bad_files, context, json=False)
    if ledger.bad_files:
        console.say("Left out: the files with these problems")
    if ledger.not_read:
        console.say(f"Skipped: unknown extension: {listed(ledger.not_read)}")
    if ledger.friends is not None:
        console.say(
            f"{ledger.friends.kept:,} friendships kept of {ledger.friends.rows_read:,} rows "
            f"({ledger.friends.unknown:,} with users who are not in the traces, "
            f"{ledger.friends.repeated:,} repeated)"
        )
