"""`whosthere report` and `whosthere compare`: audits as pages to read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from whosthere.cli import console
from whosthere.cli.options import Force, Json

if TYPE_CHECKING:
    from whosthere.reporting.sections.comparison import ComparisonPage
    from whosthere.reporting.sections.parts import Cell, Table


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of `whosthere audit --out`.")],
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="A name ending in .html; default report.html in RUN.",
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Write the report of a finished audit: one HTML file that opens offline.

    `whosthere audit` writes it at its end; this writes it anew. It names nobody and shows no
    single trace.

    Example: `whosthere report run --out report.html`
    """
    from whosthere.auditing.loading import load_audit
    from whosthere.reporting.report import REPORT, audit_report, refuse_page

    path = run / REPORT if out is None else out
    # The one in the folder of the audit is ours to replace.
    replaced = force or out is None
    audit = load_audit(run)
    refuse_page(path, force=replaced, runs=(run,))
    with console.working("Drawing the report ..."):
        audit_report(audit).save(path, force=replaced)
    console.say(f"Written: {path}")


def compare(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN RUN ...", help="Folders of finished audits.")
    ],
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Also write an HTML page: a name ending in .html."
        ),
    ] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Show several audits side by side: before and after, two months, two cities.

    Protections are matched by their names, or by what is done to the counts where only the group
    size differs. A value counts as changed only if the intervals of the two audits do not overlap.

    Example: `whosthere compare run stricter-run --out comparison.html`, or the same with `--json`
    """
    from whosthere.auditing.loading import load_audit
    from whosthere.errors import InputError
    from whosthere.reporting.report import comparison_report, refuse_page
    from whosthere.reporting.sections.comparison import comparison_json, comparison_page

    if len(runs) < 2:
        raise InputError("one audit cannot be compared", fix="Name at least two folders")
    if out is not None:
        refuse_page(out, force=force, runs=runs)
    audits = [load_audit(run) for run in runs]
    if json:
        console.print_json(comparison_json(audits))
    else:
        _show_all(comparison_page(audits))
    if out is not None:
        comparison_report(audits).save(out, force=force)
        if not json:
            console.say(f"Written: {out}")


def _show_all(page: ComparisonPage) -> None:
    for table in (page.plans, page.verdicts, *(measure.table for measure in page.measures)):
        _show(table)
    for warning in page.warnings:
        console.say(f"Note: {warning}")


def _show(table: Table) -> None:
    heads = [head.words for head in table.heads]
    console.table(table.caption, heads, [[_text(cell) for cell in row] for row in table.rows])


def _text(cell: Cell) -> str:
    return f"{cell.text}\n{cell.detail}" if cell.detail else cell.text
