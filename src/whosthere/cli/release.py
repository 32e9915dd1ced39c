"""`whosthere release`: a protected release from traces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from whosthere.cli import console
from whosthere.cli.options import (
    Force,
    Json,
    MechanismSpec,
    ReleaseFile,
    Seed,
    TracesFile,
)
from whosthere.display import counted


def release(
    traces: TracesFile,
    *,
    out: ReleaseFile,
    mechanism: MechanismSpec,
    group_size: Annotated[
        int | None,
        typer.Option(
            "--group-size", "-m", help="How many users to count, chosen at random; default all."
        ),
    ] = None,
    seed: Seed = None,
    json: Json = False,
    force: Force = False,
) -> None:
    """Count a group of users per region and epoch, protect the counts, and write them.

    Prints what is guaranteed, and how much of the truth the release keeps. Do not give a seed for
    anything that is published: seeds can be guessed, and the noise then subtracted. A release with
    a seed is a trial without any guarantee.

    Example: `whosthere release city/traces.parquet --group-size 1000
    --mechanism 'laplace(eps=1, unit=event) | suppress(k=1)' --out release.parquet`
    """
    from whosthere.data.traces import Traces
    from whosthere.privacy.mechanism import Mechanism
    from whosthere.privacy.publish import publish, refuse_one_person
    from whosthere.privacy.utility import UTILITY_WORDS, utility

    refuse_release(out, force=force, inputs=(traces,))
    chosen = Mechanism.parse(mechanism)
    everybody = Traces.load(traces)
    refuse_one_person(everybody, group_size)
    made = publish(everybody, mechanism=chosen, group_size=group_size, seed=seed)
    made.release.save(out, force=force)
    ledger = made.release.ledger
    measured = asdict(utility(made.release.counts, made.truth))
    if json:
        console.print_json(
            {
                "file": str(out),
                "group_size": made.release.group_size,
                "mechanism": str(chosen),
                "guarantee": None if ledger is None else ledger.to_json(),
                "visits_dropped": made.share_dropped,
                "utility": measured,
            }
        )
        return
    console.say(f"{counted(made.release.group_size, 'user')}, {chosen}")
    console.say(made.release.describe())
    if ledger is not None:
        console.table("What the release guarantees", ("", ""), ledger.rows())
    rows: list[tuple[str, object]] = [
        (UTILITY_WORDS[name], value) for name, value in measured.items()
    ]
    if made.share_dropped:
        rows.insert(0, ("share of visits dropped by bounding", made.share_dropped))
    console.table("What the release keeps of the truth", ("measure", "value"), rows)
    say_written(out)


def refuse_release(out: Path, *, force: bool, inputs: Sequence[Path | None]) -> None:
    """Refuse to write a release where one of its files may not be written."""
    from whosthere.data.files import refuse_existing
    from whosthere.privacy.release import description_path

    for path in (out, description_path(out)) if out.suffix == ".csv" else (out,):
        refuse_existing(path, force=force, inputs=inputs)


def say_written(out: Path) -> None:
    """Say where a release is, and which file belongs to it."""
    from whosthere.privacy.release import description_path

    console.say(f"Written: {out}")
    if out.suffix == ".csv":
        console.say(f"Written: {description_path(out)}, its description. Keep both together.")
