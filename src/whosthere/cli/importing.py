"""`whosthere import`: a table of counts made by others into a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from whosthere.cli import console
from whosthere.cli.options import (
    ClockChange,
    Force,
    MechanismSpec,
    RegionsTable,
    ReleaseFile,
    TimeFormat,
    Timezone,
)
from whosthere.cli.release import refuse_release, say_written
from whosthere.display import counted


def import_table(
    counts: Annotated[
        Path, typer.Argument(metavar="TABLE", help="CSV or Parquet with region, time and count.")
    ],
    *,
    out: ReleaseFile,
    group_size: Annotated[
        int, typer.Option("--group-size", "-m", help="How many people were counted.")
    ],
    mechanism: MechanismSpec,
    wide: Annotated[
        bool | None,
        typer.Option(
            "--wide/--long",
            help="One row per region and a column per epoch, named by its time; or a row per "
            "region and epoch. Detected from the names of the columns.",
        ),
    ] = None,
    epoch_length: Annotated[
        str | None,
        typer.Option(
            "--epoch", help="Length of an epoch; default the smallest step between times."
        ),
    ] = None,
    timezone: Timezone = None,
    time_format: TimeFormat = None,
    at_clock_change: ClockChange = "refuse",
    regions: RegionsTable = None,
    markers: Annotated[
        list[str] | None,
        typer.Option(
            "--withheld", help="What stands for a withheld count, such as '<15'. Can be repeated."
        ),
    ] = None,
    thousands: Annotated[
        str | None,
        typer.Option(metavar="MARK", help="Mark between thousands, such as ',' in 1,234."),
    ] = None,
    region_column: Annotated[str | None, typer.Option()] = None,
    time_column: Annotated[str | None, typer.Option()] = None,
    date_column: Annotated[str | None, typer.Option()] = None,
    count_column: Annotated[str | None, typer.Option()] = None,
    force: Force = False,
) -> None:
    """Read a table of counts made by another program as a release.

    Missing rows are 0. Withheld counts are marked. --mechanism says how the counts were protected;
    counts that it cannot have published are refused.

    Example: `whosthere import counts.csv --group-size 20000 --mechanism flowkit
    --timezone Africa/Accra --out release.parquet`
    """
    from whosthere.data.epochs import parse_length
    from whosthere.data.reading.columns import THOUSANDS, Columns
    from whosthere.data.reading.tables import read_regions
    from whosthere.data.reading.times import clock_change as known_change
    from whosthere.errors import InputError
    from whosthere.privacy.mechanism import Mechanism
    from whosthere.privacy.tables import TableReader

    refuse_release(out, force=force, inputs=(counts, regions))
    at_change = known_change(at_clock_change)
    if at_change == "drop":
        raise InputError("counts cannot be dropped", fix="Give --clock-change earlier or later")
    if thousands is not None and thousands not in THOUSANDS:
        raise InputError(f"{thousands!r} is no mark between thousands", fix="Use , . ' or a space")
    if wide and any(one is not None for one in (time_column, date_column, count_column)):
        raise InputError(
            "--time-column, --date-column and --count-column do nothing with --wide",
            fix="Leave them out",
        )
    reader = TableReader(
        columns=Columns(
            region=region_column, time=time_column, date=date_column, count=count_column
        ),
        wide=wide,
        epoch_length=None if epoch_length is None else parse_length(epoch_length),
        timezone=timezone,
        time_format=time_format,
        at_clock_change=at_change,
        regions=None if regions is None else read_regions(regions),
        markers=tuple(markers or ()),
        thousands=thousands,
    )
    imported = reader.read(counts, group_size=group_size, mechanism=Mechanism.parse(mechanism))
    release = imported.release
    release.save(out, force=force)
    console.say(
        f"{counted(len(release.regions), 'region')}, {release.epochs}, "
        f"{int((release.counts > 0).sum()):,} cells with somebody in them, "
        f"{imported.n_withheld:,} withheld"
    )
    for note in imported.notes:
        console.say(f"Note: {note}.")
    console.say(
        "Guarantee: none, as the mechanism gives none."
        if release.mechanism.guarantee is None
        else "Guarantee: unknown. Whether the noise of another program can be relied on is not in "
        "its table."
    )
    say_written(out)
