"""`whosthere simulate`: records of a simulated city."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from whosthere.cli import console
from whosthere.cli.options import Force


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
    """Make up a city: who was where, when, as FOLDER/records.parquet and FOLDER/regions.csv.

    The people are invented; nothing is downloaded.

    Example: `whosthere simulate milan-like --seed 7 --out city`
    """
    from whosthere.data.cities import simulate as make
    from whosthere.data.files import refuse_existing

    for name in ("records.parquet", "regions.csv"):
        refuse_existing(out / name, force=force)
    made = make(city, seed=seed, users=users, regions=regions, days=days)
    made.write(out, force=force)
    console.say(
        f"{made.name}: {len(made.user):,} records, {len(made.regions):,} regions, {made.epochs}"
    )
    console.say(f"Written: {out / 'records.parquet'} and {out / 'regions.csv'}")
    console.say(
        f"Next:    whosthere ingest {out / 'records.parquet'} --regions {out / 'regions.csv'}"
        f" --out {out / 'traces.parquet'}"
    )
