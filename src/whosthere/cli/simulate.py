"""`whosthere simulate`: records of a simulated city."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from whosthere.cli import console
from whosthere.cli.options import Force
from whosthere.display import counted


def simulate(
    city: Annotated[str, typer.Argument(metavar="CITY", help="milan-like or cdr-like.")],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where to write.")],
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same city.")] = 0,
    users: Annotated[int | None, typer.Option(help="How many people.")] = None,
    regions: Annotated[int | None, typer.Option(help="How many regions.")] = None,
    days: Annotated[int | None, typer.Option(help="How many days.")] = None,
    force: Force = False,
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
    console.say(
        f"{made.name}: {counted(len(made.user), 'record')}, "
        f"{counted(len(made.regions), 'region')}, {made.epochs}"
    )
    console.say(f"Written: {records_file}, {regions_file} and {friends_file}")
    console.say(
        f"Next:    whosthere ingest {records_file} --regions {regions_file}"
        f" --friends {friends_file} --out {out / 'traces.parquet'}"
    )
