"""`whosthere simulate` and `whosthere ingest`: records of a simulated city, and of any origin."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from whosthere.cli import console
from whosthere.cli.options import with_options
from whosthere.display import counted
from whosthere.errors import EmptyError, FileError, InputError
from whosthere.progress import progress

if TYPE_CHECKING:
    from collections.abc import Iterable

    from whosthere.data.ledger import Ledger
    from whosthere.data.traces import Traces

_PROBLEMS_FOUND = 2
_ROLES = {"user": "user", "time": "time", "region": "region", "lon": "longitude",
          "lat": "latitude", "point": "position", "place": "ids of places",
          "end region": "destination", "end lon": "longitude of the end",
          "end lat": "latitude of the end", "end time": "arrival"}  # fmt: skip


def simulate(
    city: str,
    *,
    users: int | None = None,
    regions: int | None = None,
    days: int | None = None,
    seed: int = 0,
    out: Path,
    json: bool = False,
    force: bool = False,
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


def ingest(
    context: typer.Context,
    records: Path | None = None,
    *,
    out: Path | None = None,
    json: bool = False,
    check: bool = False,
    skip_bad_files: bool = False,
    epoch: str = "1h",
    timezone: str | None = None,
    time_format: str | None = None,
    clock_change: str = "refuse",
    encoding: str | None = None,
    sql: str | None = None,
    database: str | None = None,
    friends: Path | None = None,
    regions: Path | None = None,
    grid_km: float | None = None,
    grid: str | None = None,
    antennas: Path | None = None,
    reach_km: float | None = None,
    polygons: Path | None = None,
    polygon_id: str | None = None,
    place_column: str | None = None,
    h3: int | None = None,
    user_column: str | None = None,
    user_from_path: bool = False,
    time_column: str | None = None,
    date_column: str | None = None,
    lon_column: str | None = None,
    lat_column: str | None = None,
    region_column: str | None = None,
    both_ends: bool = False,
    flows: str | None = None,
    pairs: Path | None = None,
    origin_column: str | None = None,
    destination_column: str | None = None,
    end_lon_column: str | None = None,
    end_lat_column: str | None = None,
    arrival_column: str | None = None,
    start: str | None = None,
    end: str | None = None,
    min_visits: int = 1,
    min_weekly_visits: int = 0,
    mostly_inside: bool = False,
    drop_invalid: bool = False,
    force: bool = False,
) -> None:
    """Read records of who was where, when, into one file of traces.

    A trace holds the (region, epoch) cells that a user visited, each once. With --flows, it holds
    the trips between pairs of regions that a user made, by the epoch in which they began.

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
                  antennas, polygons, pairs)  # fmt: skip
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
        known = skipped and (error in skipped or isinstance(error, EmptyError))
        found = skipped if skipped and known else [*(skipped or ()), error]
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
        _show_ledger(traces.ledger, context, "visits" if traces.weights is None else "trips")
    console.say(f"{counted(len(traces.regions), 'region')}, {traces.epochs}")
    console.say("Nothing was written (--check)" if out is None else f"Written: {out}")


def _show_ledger(ledger: Ledger, context: typer.Context, what: str) -> None:
    from whosthere.errors import listed, quote

    used = (
        f"{word} from {quote(ledger.columns[role])}"
        for role, word in _ROLES.items()
        if role in ledger.columns
    )
    console.say(f"Columns: {', '.join(used)}")
    rows: list[tuple[object, ...]] = [("read", ledger.records_read, ledger.users_read)]
    rows += [(f"- {entry.reason}", -entry.records, -entry.users) for entry in ledger.entries]
    rows.append((f"{what} kept", ledger.visits, ledger.users))
    console.table(f"From records to {what}", ("", "records", "users"), rows)
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
