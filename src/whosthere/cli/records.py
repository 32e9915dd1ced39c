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

    from whosthere.data.ledger import Ledger
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
    epoch: str = reading("1h", help="Length of an epoch: 15min, 1h, 1d, ..."),
    timezone: str | None = TIMEZONE,
    time_format: str | None = TIME_FORMAT,
    clock_change: str = CLOCK_CHANGE,
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
    from inspect import signature

    from whosthere.data.files import refuse_existing
    from whosthere.data.reading.queries import Query
    from whosthere.data.reading.read import read_records, refuse_useless

    # The command and the function have the same words.
    shared = signature(read_records).parameters
    words = {name: given for name, given in locals().items() if name in shared}
    refuse_useless("without `sql`", sql is None, database=database)
    refuse_useless("with `check`", check, out=out)
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
    skipped: list[InputError] | None = [] if check or skip_bad_files else None
    try:
        with progress(console.err) as move:
            traces = read_records(
                records or Query(str(sql), database), **words, skipped=skipped, progress=move
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
