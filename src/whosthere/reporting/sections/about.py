"""What a reader needs to understand, check and repeat an audit."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from whosthere.inference.vocabulary import METRICS
from whosthere.reporting.lookup import words_of
from whosthere.reporting.numbers import shortened
from whosthere.reporting.sections.chosen import said_of_targets
from whosthere.reporting.sections.tables import Head, Table, name_cell
from whosthere.reporting.texts import texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from whosthere.auditing.policy import Policy
    from whosthere.auditing.result import AuditResult

_LONG = 400


@dataclass(frozen=True)
class Entry:
    """A word of the glossary, or a fact: what it is called, and what it is."""

    key: str
    words: str
    meaning: str


@dataclass(frozen=True)
class About:
    """Method, glossary, limits, policy, manifest, and how to repeat the audit.

    `left_out` is what the command to repeat it does not say.
    """

    method: tuple[str, ...]
    limits: tuple[str, ...]
    glossary: tuple[Entry, ...]
    policy: Table
    policy_name: str
    prior: str
    facts: tuple[Entry, ...]
    command: str
    left_out: str


def about_section(audit: AuditResult) -> About:
    """Return everything that does not depend on what was found."""
    chosen = " ".join(said_of_targets("targets", audit))
    return About(
        tuple(
            paragraph.replace("{targets}", chosen) for paragraph in texts()["method"]["paragraphs"]
        ),
        tuple(texts()["limits"]["items"]),
        glossary_entries(one.metric for one in audit.findings),
        policy_table(audit.policy),
        shortened(audit.policy.name),
        f"{audit.policy.prior:.0%}",
        _facts(audit),
        command_of(audit),
        " ".join([*said_of_targets("targets_repeated", audit), *_time_left_out(audit)]),
    )


def glossary_entries(metrics: Iterable[str]) -> tuple[Entry, ...]:
    """Return all words in the order of the alphabet: those of the texts, and metrics."""
    terms = {
        key: Entry(key, key.replace("_", " "), meaning)
        for key, meaning in texts()["glossary"].items()
    }
    for metric in (METRICS[name] for name in dict.fromkeys(metrics) if name in METRICS):
        terms[metric.name] = Entry(metric.name, metric.words, metric.explanation)
    return tuple(sorted(terms.values(), key=lambda entry: entry.words.lower()))


def policy_table(policy: Policy) -> Table:
    """Return the limits and floors of a policy with what they mean."""
    heads = (Head("measure", numeric=False), Head("limit"), Head("meaning", numeric=False))
    rows = tuple(
        (name_cell(words_of(metric)), name_cell(asked), name_cell(METRICS[metric].explanation))
        for metric, asked in policy.in_words()
    )
    return Table("The limits of risk, and the floors of what must be left.", heads, rows)


def command_of(audit: AuditResult) -> str:
    """Return a command that repeats an audit, as far as its manifest tells."""
    plan = audit.plan
    given = {
        "--releases": plan.get("releases"),
        "--control-releases": plan.get("control_releases"),
        "--reference-size": plan.get("reference_size"),
        "--past-releases": plan.get("past_releases") or None,
        "--test-from": "..." if plan.get("first_epoch") else None,
        "--seed": plan.get("seed"),
    }
    contests: Mapping[str, Any] = plan.get("contests", {})
    mechanisms = dict.fromkeys(name.rpartition(", m=")[0] for name in contests)
    sizes = dict.fromkeys(name.rpartition(", m=")[2].partition(",")[0] for name in contests)
    attacks = dict.fromkeys(str(attack) for own in contests.values() for attack in own)
    parts = ["whosthere audit TRACES"]
    parts += [f"--group-size {shlex.quote(size)}" for size in sizes]
    parts += [f"--mechanism {shlex.quote(shortened(name))}" for name in mechanisms]
    parts += [f"--attack {shlex.quote(shortened(name))}" for name in attacks]
    # The usual knowledge goes without saying in a name.
    known = dict.fromkeys(name.partition(", knows ")[2] or "all" for name in contests)
    if set(known) != {"all"}:
        parts += [f"--knowledge {shlex.quote(shortened(spec))}" for spec in known]
    parts += _options_of_targets(audit)
    parts += [f"{option} {value}" for option, value in given.items() if value is not None]
    own = plan.get("releases_of", {})
    parts += [f"--releases-of {shlex.quote(f'{name}={n}')}" for name, n in own.items()]
    return " \\\n    ".join([*parts, "--out RUN"])


def _time_left_out(audit: AuditResult) -> list[str]:
    """Say that the manifest does not hold when the tested time begins, if not at once."""
    sentence: str = texts()["repeated"]["test_from"]
    return [sentence] if audit.plan.get("first_epoch") else []


def _options_of_targets(audit: AuditResult) -> list[str]:
    """Return the options that choose as many targets in the same way, without any id."""
    choice = audit.choice
    if choice is not None and choice.by_hand:
        return ["--user ..."]
    least = 1 if choice is None else choice.min_visits
    filtered = [f"--min-visits {least}"] if least > 1 else []
    return [f"--targets {audit.n_targets}", *filtered]


def _facts(audit: AuditResult) -> tuple[Entry, ...]:
    """Return the manifest in words; who the targets are is nobody's business."""
    plan, manifest = audit.plan, audit.manifest
    versions = manifest.get("versions", {})
    machine = manifest.get("machine", {})
    found = {
        "audit": audit.name,
        "begun": manifest.get("begun"),
        "SHA-256 of the traces": manifest.get("traces"),
        "targets": audit.n_targets,
        "how targets were chosen": audit.choice,
        "releases per target and protection": plan.get("releases"),
        "other numbers of releases": _joined(plan.get("releases_of")),
        "control releases": plan.get("control_releases"),
        "people an attacker has real traces of": plan.get("reference_size"),
        "past releases": plan.get("past_releases") or None,
        "seed": plan.get("seed"),
        "failed tasks": audit.failed_tasks,
        "versions": _joined(versions),
        "Python": manifest.get("python"),
        "machine": _joined(machine),
    }
    return tuple(
        Entry(name, name, shortened(str(value), _LONG))
        for name, value in found.items()
        if value is not None
    )


def _joined(values: object) -> str | None:
    if not isinstance(values, dict) or not values:
        return None
    return ", ".join(f"{name} {value}" for name, value in values.items())
