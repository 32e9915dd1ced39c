"""`whosthere import`: a table of counts made by others into a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from whosthere.cli import console
from whosthere.cli.options import Force, MechanismSpec, RegionsTable, Timezone


def import_table(
    counts: Annotated[
        Path, typer.Argument(metavar="TABLE", help="CSV or Parquet with region, time and count.")
    ],
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Where to write: .parquet or .csv.")
    ],
    group_size: Annotated[
        int, typer.Option("--group-size", "-m", help="How many people were counted.")
    ],
    mechanism: MechanismSpec,
    wide: Annotated[
        bool,
        typer.Option("--wide", help="One row per region, one column per epoch, named by its time."),
    ] = False,
    epoch: Annotated[
        str | None,
        typer.Option(help="Length of an epoch; default the smallest step between times."),
    ] = None,
    timezone: Timezone = None,
    regions: RegionsTable = None,
    withheld: Annotated[
        list[str] | None,
        typer.Option(help="What stands for a withheld count, such as '<15'; read as 0."),
    ] = None,
    region_column: Annotated[str | None, typer.Option()] = None,
    time_column: Annotated[str | None, typer.Option()] = None,
    count_column: Annotated[str | None, typer.Option()] = None,
    force: Force = False,
) -> None:
    """Read a table of counts made by another program as a release.

    Missing rows and withheld counts are 0. Say with --mechanism what is known of how the counts
    were protected.

    Example: `whosthere import counts.csv --group-size 20000 --mechanism flowkit
    --timezone Africa/Accra --out release.parquet`
    """
    from whosthere.data.columns import Columns
    from whosthere.data.epochs import parse_length
    from whosthere.data.files import refuse_existing
    from whosthere.data.regions import Regions
    from whosthere.privacy.mechanism import Mechanism
    from whosthere.privacy.tables import TableReader

    refuse_existing(out, force=force)
    reader = TableReader(
        columns=Columns(region=region_column, time=time_column, count=count_column),
        wide=wide,
        epoch_length=None if epoch is None else parse_length(epoch),
        timezone=timezone,
        regions=None if regions is None else Regions.read(regions),
        markers=tuple(withheld or ()),
    )
    release = reader.read(counts, group_size=group_size, mechanism=Mechanism.parse(mechanism))
    release.save(out, force=force)
    console.say(
        f"{len(release.regions):,} regions, {release.epochs}, "
        f"{int((release.counts > 0).sum()):,} cells with somebody in them"
    )
    console.say(
        "Guarantee: unknown. Whether the noise of another program can be relied on is not in its "
        "table."
    )
    console.say(f"Written: {out}")
