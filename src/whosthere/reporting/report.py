"""Reports: of an audit, of several side by side, or of a recommendation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from whosthere.auditing.result import AuditResult
from whosthere.data.files import new_file, refuse_existing
from whosthere.data.floor import LEAST_PEOPLE
from whosthere.display import first_screen
from whosthere.errors import FileError
from whosthere.reporting.lookup import Lookup
from whosthere.reporting.render import render
from whosthere.reporting.sections.about import about_section, glossary_of, policy_table
from whosthere.reporting.sections.comparison import comparison_page
from whosthere.reporting.sections.ladder import choice_section, ladders_section
from whosthere.reporting.sections.overview import overview
from whosthere.reporting.sections.sure import sure_section
from whosthere.reporting.sections.where import where_section
from whosthere.reporting.sections.who import who_section
from whosthere.reporting.words import shortened

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from whosthere.search.recommendation import Recommendation

REPORT = "report.html"
"""The name of the report in the folder of an audit."""


@dataclass(frozen=True, repr=False)
class Report:
    """A page to read in a browser, which needs no other file and no network.

    Attributes
    ----------
    title
        What it is about.
    html
        All of it.
    """

    title: str
    html: str

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the page to a file, whole or not at all."""
        with new_file(Path(path), force=force) as temporary:
            temporary.write_text(self.html, encoding="utf-8")

    def __repr__(self) -> str:
        return f"<Report {self.title!r}: {len(self.html) / 1e3:,.0f} kB>"


def refuse_page(path: Path, *, force: bool, runs: Sequence[Path] = ()) -> None:
    """Refuse a file that a page must not be written to, before any work is done.

    A page is called ``.html``. In the folders that it is made from, it replaces nothing but the
    report of its audit: all other files there are results.
    """
    if path.suffix.lower() != ".html":
        raise FileError(
            "a page cannot be called that", where=path, fix="Give it a name that ends in .html"
        )
    for run in runs:
        inside = path.resolve().is_relative_to(run.resolve())
        is_its_report = len(runs) == 1 and path.resolve() == (run / REPORT).resolve()
        if inside and not is_its_report:
            raise FileError(
                "lies in the folder of an audit, which is for its results",
                where=path,
                fix="Choose another folder",
            )
    refuse_existing(path, force=force)


def audit_report(audit: AuditResult) -> Report:
    """Return the report of one audit."""
    title = f"Audit {shortened(audit.name)}"
    html = render(
        "audit",
        title=title,
        audit=audit,
        attacks=Lookup(audit.findings).attacks,
        overview=overview(audit),
        who=who_section(audit),
        where=where_section(audit),
        sure=sure_section(audit),
        about=about_section(audit),
        policy=policy_table(audit.policy),
        least_people=LEAST_PEOPLE,
        glossary=glossary_of(audit.findings),
    )
    return Report(title, html)


def comparison_report(audits: Sequence[AuditResult]) -> Report:
    """Return several audits side by side."""
    page = comparison_page(audits)
    title = f"Audits {', '.join(page.names)}"
    glossary = glossary_of(one for audit in audits for one in audit.findings)
    return Report(title, render("compare", title=title, page=page, glossary=glossary))


def recommendation_report(found: Recommendation) -> Report:
    """Return what a search for a protection found."""
    html = render(
        "recommend",
        title="Recommendation",
        overview=choice_section(found),
        ladders=ladders_section(found),
        policy_name=found.policy.name,
        policy=policy_table(found.policy),
        glossary=glossary_of(one for tried in found.candidates for one in tried.last_findings),
    )
    return Report("Recommendation", html)


@first_screen.register(AuditResult)
def _first_screen(result: AuditResult) -> str:
    glossary = glossary_of(result.findings)
    return render("notebook", fragment=True, overview=overview(result), glossary=glossary)
