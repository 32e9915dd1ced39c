"""All sections of a page, in the order in which they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from whosthere.reporting.lookup import Lookup
from whosthere.reporting.numbers import shortened
from whosthere.reporting.sections.about import About, about_section
from whosthere.reporting.sections.certainty import Certainty, certainty_section
from whosthere.reporting.sections.overview import Overview, overview
from whosthere.reporting.sections.people import People, people_section
from whosthere.reporting.sections.places import Places, places_section

if TYPE_CHECKING:
    from whosthere.auditing.result import AuditResult


@dataclass(frozen=True, eq=False)
class AuditPage:
    """The report of one audit; sections that were not measured are None."""

    name: str
    settings: tuple[str, ...]
    attacks: tuple[str, ...]
    overview: Overview
    people: People | None
    places: Places | None
    certainty: Certainty
    about: About


def audit_page(audit: AuditResult) -> AuditPage:
    """Return the sections of an audit's report."""
    return AuditPage(
        shortened(audit.name),
        tuple(shortened(verdict.setting) for verdict in audit.verdicts),
        tuple(shortened(attack) for attack in Lookup.of(audit).attacks),
        overview(audit),
        people_section(audit),
        places_section(audit),
        certainty_section(audit),
        about_section(audit),
    )
