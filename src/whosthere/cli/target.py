"""`whosthere target`: what an attacker might know of one person, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from whosthere.cli import console
from whosthere.cli.options import (
    Force,
    Knowledge,
    TracesFile,
)
from whosthere.display import counted


def target(
    traces: TracesFile,
    *,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Where to write: .csv.")],
    user: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Which person; by default one chosen at random."),
    ] = None,
    min_visits: Annotated[
        int, typer.Option(min=1, help="Without --user: visits that the person has at least.")
    ] = 10,
    knowledge: Annotated[str, Knowledge] = "all",
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same choice.")] = 0,
    force: Force = False,
) -> None:
    """Write what an attacker is assumed to know of one person, for `whosthere attack`.

    If the traces are real, so are the visits in this file: protect it as you protect the traces.

    Example: `whosthere target traces.parquet --knowledge 'share(0.1)' --seed 3 --out target.csv`
    """
    import numpy as np

    from whosthere.adversary.knowledge import knowledge_rule
    from whosthere.adversary.targets import write_target
    from whosthere.data.files import refuse_existing
    from whosthere.data.traces import Traces
    from whosthere.errors import GroupError
    from whosthere.seeds import generator

    known_of = knowledge_rule(knowledge)
    refuse_existing(out, force=force, inputs=(traces,))
    everybody = Traces.load(traces)
    rng = generator(seed, "target")
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
    known = known_of.of(everybody.trace(row), everybody.epochs.n, rng)
    write_target(known, out, everybody.regions, everybody.epochs, force=force)
    visits, n = known.certain.size, everybody.trace(row).size
    if visits:
        known_visits = f"{visits} of {counted(n, 'visit')}"
        console.say(f"{known_visits} {'is' if visits == 1 else 'are'} known.")
    else:
        places = len(known.places(everybody.epochs.n))
        known_places = f"{counted(places, 'region')} {'is' if places == 1 else 'are'}"
        console.say(f"{known_places} known, without times.")
    console.say(f"Written: {out}")
