"""What a notebook shows of a result: the first screen of its report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whosthere.auditing.finished import FinishedAudit
from whosthere.reporting.render import render_fragment
from whosthere.reporting.sections.about import glossary_entries
from whosthere.reporting.sections.overview import overview

if TYPE_CHECKING:
    from whosthere.auditing.result import AuditResult


def first_screen(result: AuditResult) -> str:
    """Return verdicts, what to do, and the picture that decides, as a piece of HTML."""
    audit = FinishedAudit.of(result)
    glossary = glossary_entries(one.metric for one in audit.findings)
    return render_fragment("notebook", page={"overview": overview(audit)}, glossary=glossary)
