"""Options that several commands have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Force = Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Seed = Annotated[
    int | None,
    typer.Option("--seed", min=0, help="The same seed gives the same result, bit for bit."),
]
MechanismSpec = Annotated[
    str,
    typer.Option(
        "--mechanism",
        "-M",
        metavar="SPEC",
        help="What is done to the counts, such as 'suppress(k=1)' or "
        "'laplace(eps=1, unit=event) | suppress(k=1)'. See: whosthere mechanisms.",
    ),
]
RegionsTable = Annotated[
    Path | None,
    typer.Option(
        "--regions", metavar="FILE", help="Table of regions: region and, if known, lon and lat."
    ),
]
Timezone = Annotated[
    str | None,
    typer.Option(
        "--timezone",
        "--tz",
        metavar="ZONE",
        help="Local time zone, such as Europe/Rome: for times without a zone, and for days.",
    ),
]
