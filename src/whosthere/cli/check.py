"""How well people would be found in a published table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from whosthere.cli import console
from whosthere.cli.options import NOT_GOOD_ENOUGH, known_failure, with_options
from whosthere.cli.releases import reads_tables
from whosthere.errors import InputError

if TYPE_CHECKING:
    from whosthere.auditing.release_check import ReleaseCheck
    from whosthere.game.table_check import TableCheck
    from whosthere.reporting.sections.parts import Table


@reads_tables
def check(
    ctx: typer.Context,
    counts: list[Path],
    *,
    mechanism: str | None = None,
    group_size: int | None = None,
    group: Path | None = None,
    tables: list[str] = [],  # noqa: B006 - typer asks for a list
    attacks: list[str] = [],  # noqa: B006
    visits: list[str] = [],  # noqa: B006
    releases: int | None = None,
    seed: int = 0,
    policy: Path | None = None,
    fail_on: str | None = None,
    what_if: bool = True,
    people: Path | None = None,
    with_ids: bool = False,
    out: Path | None = None,
    json: bool = False,
    force: bool = False,
    **reading: Any,  # noqa: ANN401 - the words of a reader
) -> None:
    """Find out how well people would be found in a published table.

    From the TABLE alone, this is an estimate without a verdict, and needs no personal data: people
    are drawn from rates that are fitted to the table. With the TRACES of the people whom it counts
    after it, it is a verdict on this very table: how many of them would be found at one false alarm
    in a hundred, where, and which coarser tables would pass. Several tables before TRACES are
    attacked together.

    Example: `whosthere check counts.csv --mechanism 'suppress(k=4)' --out check.html`, or
    `whosthere check release.parquet traces.parquet --people found.csv --fail-on reject`
    """
    from whosthere.auditing.policy import Policy
    from whosthere.auditing.release_check import check_release
    from whosthere.cli.audit import FAILS_ON, traces_of
    from whosthere.data.files import refuse_existing
    from whosthere.data.traces import Traces
    from whosthere.front import releases as front
    from whosthere.inference.vocabulary import STRONGEST
    from whosthere.privacy.release_files import is_release
    from whosthere.privacy.tables import TableReader
    from whosthere.reporting.report import check_report, refuse_page, release_check_report

    fails = FAILS_ON.get(known_failure(fail_on, FAILS_ON) or "", ())
    for one in filter(None, (out, people)):
        refuse_existing(one, force=force, inputs=counts)
    if out is not None:
        refuse_page(out, force=force)
    reader = TableReader(**reading)
    if len(counts) == 1:
        needy = {"group": group, "tables": tables, "attacks": attacks, "releases": releases,
                 "policy": policy, "fail_on": fail_on, "people": people}  # fmt: skip
        for name in (name for name, given in needy.items() if given):
            fix = "Name them after the table, or leave it out"
            raise InputError(f"`{name}` needs the traces of the people", fix=fix)
        with console.working("Looking for people ..."):
            found = front.check(
                counts[0],
                mechanism,
                group_size=group_size,
                visits=visits,
                reader=reader,
                seed=seed,
            )
        if out is not None:
            check_report(found).save(out, force=force)
        console.result(found.to_json(), partial(_show_check, found, out, ctx), json=json)
        return
    *published, last = counts
    if visits:
        raise InputError("`visits` is for a table without traces", fix="Leave it out")
    if with_ids and people is None:
        raise InputError("`with_ids` is about the file of people", fix="Name it (`people`)")
    if is_release(last):
        fix = "Name the traces of the people last"
        raise InputError("is a release, and no traces", where=last, fix=fix)
    judged_by = Policy.of(policy)
    with traces_of([last], None, talk=not json) as (path, read), console.progress() as move:
        everybody = Traces.load(path) if read is None else read
        checked = check_release(
            published,
            everybody,
            mechanism=mechanism,
            group_size=group_size,
            reader=reader,
            group=group,
            tables=tables,
            attacks=attacks or (STRONGEST,),
            policy=judged_by,
            releases=releases,
            what_if=what_if,
            seed=seed,
            on_progress=move,
        )
    if out is not None:
        release_check_report(checked).save(out, force=force)
    if people is not None:
        checked.save_people(people, users=everybody.users if with_ids else None, force=force)
    written = tuple(filter(None, (out, people)))
    console.result(checked.to_json(), partial(_show_checked, checked, written, ctx), json=json)
    if checked.verdict.decision in fails:
        raise typer.Exit(NOT_GOOD_ENOUGH)


def _show_check(found: TableCheck, out: Path | None, ctx: typer.Context) -> None:
    from whosthere.reporting.sections.table_check import error_in_words, risk_table
    from whosthere.reporting.words import texts

    _warn(found.warnings, ctx)
    _show_table(risk_table(found))
    console.say(texts()["check"]["estimate"], error_in_words(found))
    for note in found.notes:
        console.say(f"Note: {with_options(note, ctx)}.")
    if out is not None:
        console.say(f"Written: {out}")


def _show_checked(found: ReleaseCheck, written: Sequence[Path], ctx: typer.Context) -> None:
    from whosthere.reporting.sections.release_check import exposed_table, verdicts_table

    _warn(found.warnings, ctx)
    console.verdict(found.verdict.decision, found.verdict.headline, useless=found.verdict.useless)
    for sentence in found.verdict.reasons:
        console.beneath(sentence, indent=4)
    _show_table(exposed_table(found))
    if found.coarser:
        _show_table(verdicts_table(found))
    for note in found.notes:
        console.say(f"Note: {with_options(note, ctx)}.")
    for file in written:
        console.say(f"Written: {file}")


def _warn(warnings: Sequence[str], ctx: typer.Context) -> None:
    console.say(*(f"{with_options(said, ctx)}." for said in warnings), begin="Warning: ")


def _show_table(table: Table) -> None:
    rows = [[f"{cell.text}  {cell.detail}".rstrip() for cell in row] for row in table.rows]
    console.table(table.caption, [head.words for head in table.heads], rows)
