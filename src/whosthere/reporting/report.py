"""Reports: of an audit, of several side by side, of a recommendation, or of a table alone.

Each is one HTML file that needs nothing else. It may hold what must not leave a house, so it must
not talk to anybody. Style and script stand in the file, and a content-security policy allows only
these two, by their hashes; it forbids style attributes. Pictures are SVG that Python writes. The
script only chooses, sorts and filters what is there already, so a page without it is complete.
"""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from whosthere._version import __version__
from whosthere.auditing.result import AuditResult
from whosthere.data.files import new_file, refuse_existing
from whosthere.data.floor import LEAST_PEOPLE
from whosthere.data.flows import Pairs
from whosthere.display import counted, first_screen
from whosthere.errors import FileError
from whosthere.game.leaks import table_of_regions
from whosthere.reporting.sections.about import about_section, glossary_of, policy_table, subject_of
from whosthere.reporting.sections.comparison import comparison_page
from whosthere.reporting.sections.everybody import everybody_section
from whosthere.reporting.sections.overview import ladders, overview, search_overview
from whosthere.reporting.sections.parts import Lookup
from whosthere.reporting.sections.people import leak_panel, where_section, who_section
from whosthere.reporting.sections.release_check import (
    exposed_table,
    subject_of_release,
    verdicts_table,
)
from whosthere.reporting.sections.sure import sure_section
from whosthere.reporting.sections.table_check import (
    error_in_words,
    risk_chart,
    risk_table,
    subject_of_table,
)
from whosthere.reporting.words import in_trips, outcome, shortened, texts, visible, words_of

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from whosthere.auditing.release_check import ReleaseCheck
    from whosthere.game.table_check import TableCheck
    from whosthere.search.recommendation import Recommendation

REPORT = "report.html"
"""The name of the report in the folder of an audit."""


@dataclass(frozen=True, repr=False)
class Report:
    """A page to read in a browser, which needs no other file and no network."""

    title: str
    """What it is about."""
    html: str
    """All of it."""

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the page to a file, whole or not at all."""
        with new_file(Path(path), force=force, public=True) as temporary:
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
    html = _render(
        "audit",
        of_trips=_is_of_trips(audit),
        title=title,
        audit=audit,
        subject=subject_of(audit.manifest, audit.policy),
        attacks=Lookup(audit.findings).attacks,
        overview=overview(audit),
        everybody=everybody_section(audit),
        who=who_section(audit) if audit.include is None else None,
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
    of_trips = all(map(_is_of_trips, audits))
    html = _render("compare", of_trips=of_trips, title=title, page=page, glossary=glossary)
    return Report(title, html)


def recommendation_report(found: Recommendation) -> Report:
    """Return what a search for a protection found."""
    html = _render(
        "recommend",
        of_trips="flows" in found.about.get("data", {}),
        title="Recommendation",
        subject=subject_of(found.about, found.policy),
        overview=search_overview(found),
        ladders=ladders(found),
        n_families=len({one.family for one in found.candidates}),
        policy_name=found.policy.name,
        policy=policy_table(found.policy),
        glossary=glossary_of(one for tried in found.candidates for one in tried.last_findings),
    )
    return Report("Recommendation", html)


def check_report(found: TableCheck) -> Report:
    """Return what a table gives away, as estimated from it alone."""
    regions = table_of_regions(found.release.regions)
    html = _render(
        "check",
        of_trips=isinstance(found.release.regions, Pairs),
        title="Check of a table",
        subject=subject_of_table(found),
        chart=risk_chart(found),
        table=risk_table(found),
        error=error_in_words(found),
        where=leak_panel(found.leaks, regions, 1, shortened(str(found.release.mechanism))),
        notes=found.notes,
        warnings=found.warnings,
        glossary=glossary_of(found.findings),
    )
    return Report("Check of a table", html)


def release_check_report(found: ReleaseCheck) -> Report:
    """Return who would be found in a release, given the people whom it counts."""
    finest = max(found.releases, key=lambda one: one.facts.n_cells)
    name = shortened(str(finest.mechanism))
    html = _render(
        "check_release",
        title="Check of a release",
        subject=subject_of_release(found),
        decision=outcome(found.verdict),
        verdict=found.verdict,
        exposed=exposed_table(found),
        verdicts=verdicts_table(found),
        where=leak_panel(found.leaks, table_of_regions(finest.regions), 1, name),
        notes=found.notes,
        warnings=found.warnings,
        glossary=glossary_of(found.findings),
    )
    return Report("Check of a release", html)


@first_screen.register(AuditResult)
def _first_screen(result: AuditResult) -> str:
    glossary = glossary_of(result.findings)
    shown, of_trips = overview(result), _is_of_trips(result)
    return _render("notebook", fragment=True, of_trips=of_trips, overview=shown, glossary=glossary)


def _is_of_trips(audit: AuditResult) -> bool:
    return "flows" in audit.manifest.get("data", {})


def _render(
    template: str, *, fragment: bool = False, of_trips: bool = False, **context: object
) -> str:
    """Return a page, or a fragment of one for somebody else's page, such as a notebook.

    The style of a fragment holds within it alone, and there is no script.
    """
    script = _asset("script.js")
    style = _asset("theme.css") + _asset("page.css") + _asset("parts.css")
    if fragment:
        theme = _asset("theme.css").replace(":root", ".whosthere")
        own = Markup(".whosthere { background: var(--paper); color: var(--ink); padding: .5rem;\n")
        style = theme + own + _asset("parts.css") + Markup("}")
    page = _environment().get_template(f"{template}.html.j2")
    html = page.render(
        style=style,
        script=script,
        policy_of_content=(
            f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
            "base-uri 'none'; form-action 'none'"
        ),
        version=__version__,
        texts=texts(),
        is_fragment=fragment,
        **context,
    )
    return in_trips(html) if of_trips else html


@cache
def _environment() -> Environment:
    """Return the templates; whatever they show is escaped."""
    made = Environment(
        loader=PackageLoader("whosthere.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    made.filters |= {"short": shortened, "words": words_of, "prose": _prose}
    made.globals["counted"] = counted
    made.filters["anchor"] = lambda key: "word-" + re.sub(r"[^A-Za-z0-9]+", "-", key)
    return made


@cache
def _asset(name: str) -> Markup:
    """Return a file that belongs to every page, as it is."""
    source = files("whosthere.reporting") / "templates" / name
    return Markup(source.read_text(encoding="utf-8"))  # noqa: S704 - our own file


def _prose(text: str) -> Markup:
    """Return a text in which commands stand between backticks."""
    commands = re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(text)))
    return Markup(commands)  # noqa: S704 - escaped before


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
