"""From the decision to the release: whether an audit accepted exactly what is to be published."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from whosthere.auditing.reasons import listed
from whosthere.errors import InputError
from whosthere.game.own_code import own_code
from whosthere.privacy.release import Audited

if TYPE_CHECKING:
    from whosthere.auditing.result import AuditResult
    from whosthere.data.traces import Traces
    from whosthere.privacy.mechanism import Mechanism

_NOT_AUDITED = "this release was not audited, so nothing shows that nobody is found in it. "
_AUDIT_FIRST = "Audit the protection first, and name the folder of the audit (`audit`)"
_EVERYBODY = "A group of everybody cannot be audited yet: an audit needs people who are left out"


def acceptance(
    audit: AuditResult,
    mechanism: Mechanism,
    group_size: int | None,
    traces: Traces,
    traces_fingerprint: str,
) -> Audited:
    """Return by which audit a release of so many people, or of all, is accepted, or refuse it.

    It must be of these very traces, of this mechanism and of this group size, and accepted
    whatever the attacker was taken to know.
    """
    where = audit.folder or "the audit"

    def refuse(problem: str, fix: str) -> InputError:
        return InputError(problem, where=where, fix=fix)

    if group_size in {None, traces.n_users}:
        fix = "Publish fewer people (`group_size`), as many as were audited"
        raise refuse(f"it would be of all {traces.n_users:,} people. {_EVERYBODY}", fix)
    if audit.manifest["traces"] != traces_fingerprint:
        problem = "is an audit of other traces, or the traces have changed since"
        raise refuse(problem, "Audit these traces")
    if audit.plan["first_epoch"]:
        problem = "is an audit of a part of the time, and all of it would be published"
        raise refuse(problem, "Audit all of the time, or read only the records of that part")
    published = {"mechanism": str(mechanism), "group_size": group_size}
    schemes = {one["setting"]: one for one in audit.manifest["settings"]}
    verdicts = [one for one in audit.verdicts if published.items() <= schemes[one.setting].items()]
    what, code = f"{mechanism}, m={group_size}", audit.plan.get("code", {})
    if not verdicts or own_code(mechanism) != code.get(str(mechanism)):
        tried = listed([f"{one['mechanism']}, m={one['group_size']}" for one in schemes.values()])
        raise refuse(f"did not try {what}, but {tried}", "Publish what was accepted, or audit this")
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
        attacker_knows=listed([one.knows or "nobody says" for one in verdicts]),
        released=datetime.now(UTC).date().isoformat(),
    )


def not_audited(group_size: int | None, traces: Traces) -> str:
    """Say that a release of so many people, or of all, was not audited, and what to do."""
    return _NOT_AUDITED + (_EVERYBODY if group_size in {None, traces.n_users} else _AUDIT_FIRST)
