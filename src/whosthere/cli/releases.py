"""Releases: making one, and reading one of another program."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from whosthere.cli import console
from whosthere.cli.options import with_options, with_parameters
from whosthere.display import counted
from whosthere.errors import InputError

if TYPE_CHECKING:
    pass


def release(
    ctx: typer.Context,
    traces: Path,
    *,
    mechanism: str | None = None,
    tables: list[str] = [],  # noqa: B006 - typer asks for a list
    group_size: int | None = None,
    weeks: int | None = None,
    every: str | None = None,
    seed: int | None = None,
    audit: Path | None = None,
    out: Path,
    json: bool = False,
    force: bool = False,
) -> None:
    """Count a group of users per region and epoch, protect the counts, and write them.

    Prints what is guaranteed, and how much of the truth the release keeps. Do not give a seed for
    anything that is published: seeds can be guessed, and the noise then subtracted. A release with
    a seed is a trial without any guarantee. Several tables are files of their own, such as
    release-1.parquet.

    Example: `whosthere release city/traces.parquet --group-size 1000
    --mechanism 'laplace(eps=1, unit=event) | suppress(k=1)' --audit run --out release.parquet`
    """
    from whosthere.auditing.acceptance import (
        acceptance,
        not_audited,
        too_little_left,
    )
    from whosthere.auditing.loading import load
    from whosthere.data.files import fingerprint
    from whosthere.data.traces import Traces
    from whosthere.inference.vocabulary import UTILITY_WORDS
    from whosthere.privacy.publish import publish, refuse_one_person
    from whosthere.privacy.scheme import Scheme
    from whosthere.privacy.table_words import tables_of
    from whosthere.privacy.utility import utility

    files = numbered(out, max(len(tables), 1))
    for file in files:
        refuse_release(file, force=force, inputs=(traces,))
    everybody = Traces.load(traces)
    chosen = tables_of(tables, mechanism, everybody, weeks=weeks, every=every)
    refuse_one_person(everybody, group_size)
    audited, warning = None, f"{not_audited(group_size, everybody)}."
    if audit is not None:
        found = load(audit)
        audited = acceptance(found, chosen, group_size, everybody, fingerprint(traces))
        warning = too_little_left(found, Scheme(chosen, group_size or everybody.n_users))
    made = publish(everybody, tables=chosen, group_size=group_size, seed=seed, audited=audited)
    for table, file in zip(made.tables, files, strict=True):
        table.release.save(file, force=force)
    if json:
        described = [
            {
                "file": str(file),
                "group_size": one.release.group_size,
                "mechanism": str(one.release.mechanism),
                **({"cells": how.layout.written} if tables else {}),
                "guarantee": None if one.release.ledger is None else one.release.ledger.to_json(),
                "audit": None if audited is None else asdict(audited),
                "visits_dropped": one.share_dropped,
                "utility": asdict(utility(one.release.people, one.truth)),
            }
            for one, how, file in zip(made.tables, chosen, files, strict=True)
        ]
        console.print_json({"tables": described} if tables else described[0])
        return
    for one, how, file in zip(made.tables, chosen, files, strict=True):
        of_what = how.written if tables else str(how.mechanism)
        console.say(f"{counted(one.release.group_size, 'user')}, {of_what}")
        console.say(one.release.describe())
        if one.release.ledger is not None:
            console.table("What the release guarantees", ("", ""), one.release.ledger.rows())
        measured = asdict(utility(one.release.people, one.truth))
        rows: list[tuple[str, object]] = [
            (UTILITY_WORDS[name], value) for name, value in measured.items()
        ]
        if one.share_dropped:
            rows.insert(0, ("share of visits dropped by bounding", one.share_dropped))
        console.table("What the release keeps of the truth", ("measure", "value"), rows)
        say_written(file)
    ledgers = [release.ledger for release in made.releases]
    if len(files) > 1 and all(ledger and ledger.states_guarantee for ledger in ledgers):
        console.say("All tables are of the same people, so their budgets (eps, delta) add up.")
    if audited is not None:
        console.say(f"Audit: {audited}.")
    if warning:
        console.say(f"Warning: {with_options(warning, ctx)}")


def numbered(out: Path, n: int) -> list[Path]:
    """Return the files of n tables: the one named, or with a number before its ending."""
    if n == 1:
        return [out]
    if not out.name:
        raise InputError("is a folder", where=out, fix="Name a file, such as release.parquet")
    return [out.with_name(f"{out.stem}-{i}{out.suffix}") for i in range(1, n + 1)]


def refuse_release(out: Path, *, force: bool, inputs: Sequence[Path | None]) -> None:
    """Refuse to write a release where one of its files may not be written."""
    from whosthere.data.files import refuse_existing
    from whosthere.privacy.release_files import description_path

    for path in (out, description_path(out)) if out.suffix == ".csv" else (out,):
        refuse_existing(path, force=force, inputs=inputs)


def say_written(out: Path) -> None:
    """Say where a release is, and which file belongs to it."""
    from whosthere.privacy.release_files import description_path

    console.say(f"Written: {out}")
    if out.suffix == ".csv":
        console.say(f"Written: {description_path(out)}, its description. Keep both together.")


def _reading(
    *,
    wide: bool | None = None,
    epoch: str | None = None,
    timezone: str | None = None,
    time_format: str | None = None,
    clock_change: str = "refuse",
    regions: Path | None = None,
    markers: list[str] = [],  # noqa: B006 - typer asks for a list
    zeros: list[str] = [],  # noqa: B006
    thousands: str | None = None,
    sheet: str | None = None,
    header_row: int | None = None,
    date: str | None = None,
    encoding: str | None = None,
    region_column: str | None = None,
    time_column: str | None = None,
    date_column: str | None = None,
    count_column: str | None = None,
) -> None:
    """Declare the options of reading a table, which are the words of a `TableReader`."""


def reads_tables(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of reading a table, in place of its last parameter."""
    options = inspect.signature(_reading, eval_str=True).parameters.values()
    return with_parameters(command, 4, options)


@reads_tables
def import_(
    ctx: typer.Context,
    counts: list[Path],
    *,
    group_size: int,
    mechanism: list[str],
    out: Path,
    json: bool = False,
    force: bool = False,
    **reading: Any,  # noqa: ANN401 - the words of a reader
) -> None:
    """Read tables of counts made by another program as releases.

    Missing rows are 0. Withheld counts are marked. --mechanism says how the counts were protected;
    counts that it cannot have published are refused. Several tables of the same people become
    files of their own, such as release-1.parquet.

    Example: `whosthere import counts.csv --group-size 20000 --mechanism flowkit
    --timezone Africa/Accra --out release.parquet`
    """
    from whosthere.privacy.mechanism import Mechanism
    from whosthere.privacy.tables import TableReader

    files, done = numbered(out, len(counts)), [Mechanism.parse(one) for one in mechanism]
    if len(done) not in {1, len(counts)}:
        problem = f"{len(counts)} tables have {len(done)} mechanisms (`mechanism`)"
        raise InputError(problem, fix="Give one for all of them, or one for each in their order")
    for file in files:
        refuse_release(file, force=force, inputs=(*counts, reading["regions"]))
    reader, each = TableReader(**reading), done if len(done) > 1 else done * len(counts)
    imported = [
        reader.read(table, group_size=group_size, mechanism=one)
        for table, one in zip(counts, each, strict=True)
    ]
    for one, file in zip(imported, files, strict=True):
        one.release.save(file, force=force)
    if json:
        described = [
            {
                "file": str(file),
                "regions": len(one.release.regions),
                "epochs": one.release.epochs.to_json(),
                "nonzero_cells": int((one.release.counts > 0).sum()),
                "withheld_cells": one.n_withheld,
                "warnings": list(one.warnings),
                "notes": list(one.notes),
            }
            for one, file in zip(imported, files, strict=True)
        ]
        console.print_json({"tables": described} if len(files) > 1 else described[0])
        return
    for one, file in zip(imported, files, strict=True):
        release = one.release
        console.say(*(f"{with_options(said, ctx)}." for said in one.warnings), begin="Warning: ")
        console.say(
            f"{counted(len(release.regions), 'region')}, {release.epochs}, "
            f"{counted(int((release.counts > 0).sum()), 'cell')} with somebody in them, "
            f"{one.n_withheld:,} withheld"
        )
        for note in one.notes:
            console.say(f"Note: {with_options(note, ctx)}.")
        console.say(
            "Guarantee: none, as the mechanism gives none."
            if release.mechanism.guarantee is None
            else "Guarantee: unknown. Whether the noise of another program can be relied on is not "
            "in its table."
        )
        say_written(file)
