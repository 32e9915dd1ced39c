"""From the decision to the release: whether an audit accepted exactly what is to be published."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from whosthere.auditing.loading import tasks_done
from whosthere.auditing.reasons import listed
from whosthere.display import counted
from whosthere.errors import FileError, InputError
from whosthere.game.own_code import own_code
from whosthere.privacy.release import Audited
from whosthere.privacy.scheme import Scheme

if TYPE_CHECKING:
    from whosthere.auditing.result import AuditResult
    from whosthere.auditing.verdict import Verdict
    from whosthere.data.traces import Traces
    from whosthere.privacy.scheme import TableScheme

_NOT_AUDITED = "this release was not audited, so nothing shows that nobody is found in it. "
_AUDIT_FIRST = "Audit the protection first, and name the folder of the audit (`audit`)"
_OF_EVERYBODY = "an audit of everybody (`whosthere audit --everybody`)"


def acceptance(
    audit: AuditResult,
    tables: tuple[TableScheme, ...],
    group_size: int | None,
    traces: Traces,
    traces_fingerprint: str,
) -> Audited:
    """Return by which audit a release of so many people, or of all, is accepted, or refuse it.

    It must be of these very traces, of these tables and of this group size, and accepted
    whatever the attacker was taken to know. A release of all people needs an audit of everybody.
    """
    where = audit.folder or "the audit"
    if audit.folder is not None:
        kept, planned = tasks_done(audit.folder)
        if (missing := planned - kept) > audit.failed_tasks:
            fix = "Repeat the command of the audit, which does them again"
            raise FileError(f"lacks the scores of {counted(missing, 'task')}", where=where, fix=fix)

    def refuse(problem: str, fix: str) -> InputError:
        return InputError(problem, where=where, fix=fix)

    of_all = group_size is None or group_size == traces.n_users
    if of_all and audit.include is None:
        problem = f"is an audit of groups, and this would be of all {traces.n_users:,} people"
        fix = f"Publish as many people as were audited (`group_size`), or make {_OF_EVERYBODY}"
        raise refuse(problem, fix)
    if audit.include is not None and not of_all:
        problem = f"is an audit of everybody, and this would be of {group_size:,} people"
        raise refuse(problem, "Publish everybody (without `group_size`), or audit groups")
    if audit.include is not None and audit.plan["reference_size"]:
        problem = "is an audit of the people who were not set aside, and this would be of all"
        fix = "Audit everybody without attacks that learn from people set aside"
        raise refuse(problem, fix)
    if audit.manifest["traces"] != traces_fingerprint:
        problem = "is an audit of other traces, or the traces have changed since"
        raise refuse(problem, "Audit these traces")
    if audit.plan["first_epoch"]:
        problem = "is an audit of a part of the time, and all of it would be published"
        raise refuse(problem, "Audit all of the time, or read only the records of that part")
    # Of everybody, as many are expected in a release of an audit.
    m = group_size if audit.include is None else round(audit.include * traces.n_users)
    what, code, times = (
        Scheme(tables, m or traces.n_users),
        audit.plan.get("code", {}),
        tables[0].layout.times,
    )
    tried, verdicts = _about(audit, what)
    if times is None and audit.series and not verdicts:
        problem = "is an audit of tables that are published again and again, and this would be one"
        raise refuse(problem, "Say for how long it is published (`weeks`), or audit it by itself")
    if times is not None and "turnover" in audit.plan.get("game", ""):
        problem = "is an audit of people who come and go, and this would be of the same ones"
        raise refuse(problem, "Audit it without `turnover`")
    same = all(
        own_code(one.mechanism) == code.get(str(one.mechanism))
        and one.layout.fingerprint == code.get(str(one.layout))
        for one in tried.tables
    )
    if not verdicts or not same:
        others = listed([one.setting for one in audit.verdicts] or ["nothing"])
        raise refuse(
            f"did not try {what}, but {others}", "Publish what was accepted, or audit this"
        )
    for one in verdicts:
        if one.decision != "accept":
            problem = f"did not accept {one.setting} (its verdict: {one.decision})"
            raise refuse(
                problem, "Publish what was accepted; its report says what stands in the way"
            )
    return Audited(
        audit=audit.identity,
        begun=str(audit.manifest["begun"]),
        policy=audit.policy.name,
        limits={one.metric: one.most for one in audit.policy.limits},
        about=verdicts[0].who or "everybody",
        attacker_knows=listed(list(dict.fromkeys(one.knows or "nobody says" for one in verdicts))),
        released=datetime.now(UTC).date().isoformat(),
    )


def _about(audit: AuditResult, scheme: Scheme) -> tuple[Scheme, list[Verdict]]:
    """Return what was tried of what is published, with the verdicts, whatever is known of people.

    A table that is published again and again must have been tried as often, or more often: whoever
    has more tables can leave some out. Verdicts on fewer tables belong to it.
    """

    def named(tried: Scheme) -> list[Verdict]:
        return [one for one in audit.verdicts if f"{one.setting}, ".startswith(f"{tried}, ")]

    times = scheme.tables[0].layout.times
    if times is None:
        return scheme, named(scheme)
    found: list[Verdict] = []
    for n in sorted({one["weeks"] for one in audit.manifest["settings"] if "weeks" in one}):
        tried = scheme.published(n)
        found += (here := named(tried))
        if here and n >= times:
            return tried, found
    return scheme, []


def too_little_left(audit: AuditResult, scheme: Scheme) -> str:
    """Say of something that was accepted that it is useless all the same; nothing if it is not."""
    _, found = _about(audit, scheme)
    return next((one.reasons[0] for one in found if one.useless), "")


def not_audited(group_size: int | None, traces: Traces) -> str:
    """Say that a release of so many people, or of all, was not audited, and what to do."""
    of_all = group_size in {None, traces.n_users}
    return _NOT_AUDITED + (f"Make {_OF_EVERYBODY}, and name its folder (`audit`)" if of_all
                           else _AUDIT_FIRST)  # fmt: skip
