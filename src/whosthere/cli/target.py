"""`whosthere target`: what an attacker might know of one person, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from whosthere.cli import console
from whosthere.cli.options import Force


def target(
    traces: Annotated[Path, typer.Argument(metavar="TRACES", help="From `whosthere ingest`.")],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Where to write: .csv.")],
    user: Annotated[
        str | None, typer.Option(metavar="ID", help="Whom; by default somebody chosen at random.")
    ] = None,
    min_visits: Annotated[
        int, typer.Option(min=1, help="Without --user: choose among people with as many visits.")
    ] = 10,
    share: Annotated[
        float, typer.Option(help="Share of the visits that is known, chosen at random.")
    ] = 1.0,
    regions_only: Annotated[
        bool, typer.Option("--regions-only", help="Leave the times out, most visited first.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same choice.")] = 0,
    force: Force = False,
) -> None:
    """Write what an attacker is supposed to know of one person, for `whosthere attack`.

    The file holds real visits of a real person where the traces do: keep it as you keep those.

    Example: `whosthere target city/traces.parquet --share 0.1 --seed 3 --out target.csv`
    """
    import numpy as np

    from whosthere.adversary.knowledge import KnownRegions, KnownVisits
    from whosthere.adversary.targets import write_target
    from whosthere.data.files import refuse_existing
    from whosthere.data.traces import Traces
    from whosthere.errors import GroupError

    refuse_existing(out, force=force)
    everybody = Traces.load(traces)
    rng = np.random.default_rng(seed)
    if user is not None:
        row = everybody.row_of(user)
    else:
        eligible = np.flatnonzero(everybody.visits_per_user() >= min_visits)
        if not eligible.size:
            raise GroupError(
                f"nobody has {min_visits} visits",
                fix=f"Give --min-visits {int(everybody.visits_per_user().max())} or less",
            )
        row = int(rng.choice(eligible))
    known = KnownVisits.fraction(everybody.trace(row), share, rng)
    shown = KnownRegions.most_visited(known.cells, everybody.epochs.n) if regions_only else known
    write_target(shown, out, everybody.regions, everybody.epochs, force=force)
    console.say(f"{known.cells.size} of {everybody.trace(row).size} visits are known.")
    console.say(f"Written: {out}")
