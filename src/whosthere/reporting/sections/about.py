"""What a reader needs to understand, check and repeat an audit."""

from __future__ import annotations

import shlex
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from whosthere.data.epochs import Epochs, format_length, zone
from whosthere.display import counted
from whosthere.inference.vocabulary import METRICS
from whosthere.reporting.sections.parts import Cell, Head, Lookup, Table, metric_heads
from whosthere.reporting.words import shortened, texts, words_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from whosthere.auditing.policy import Policy
    from whosthere.auditing.result import AuditResult
    from whosthere.game.plan import TargetChoice
    from whosthere.inference.finding import Finding

_LONG = 400


class Entry(NamedTuple):
    """A word of the glossary as it is written, and what it means."""

    words: str
    meaning: str


class About(NamedTuple):
    """How to understand and repeat an audit; `left_out` is what the command does not say."""

    method: tuple[str, ...]
    facts: dict[str, str]
    command: str
    left_out: str


def about_section(audit: AuditResult) -> About:
    """Return everything that does not depend on what was found."""
    chosen = " ".join(said_of_targets("targets", audit.choice))
    left_out = said_of_targets("targets_repeated", audit.choice)
    # The manifest does not hold when the tested time begins.
    left_out += [texts()["repeated"]["test_from"]] if audit.plan["first_epoch"] else []
    told = texts()["method"]
    groups = told["groups" if audit.include is None else "groups_of_everybody"]
    method = (
        said.replace("{targets}", chosen).replace("{groups}", groups) for said in told["paragraphs"]
    )
    facts = {name: shortened(fact, _LONG) for name, fact in facts_of(audit).items()}
    return About(tuple(method), facts, command_of(audit), " ".join(left_out))


def subject_of(about: Mapping[str, Any], policy: Policy) -> dict[str, str]:
    """Return what a signature is about, as far as a manifest tells: data, time, version, policy."""
    data, begun = about.get("data"), about.get("begun")
    words = {head.term: head.words for head in metric_heads(METRICS)}
    asked = "; ".join(f"{words[metric]} {said}" for metric, said in policy.in_words())
    found = {
        "Data": data and _covered(data),
        "Traces": about.get("traces") and f"SHA-256 {about['traces']}",
        "Audited": begun and f"{begun[:16].replace('T', ' ')} UTC",
        "By": f"whosthere {about.get('versions', {}).get('whosthere', 'of an unknown version')}",
        "Policy": f"{shortened(policy.name)}: {asked}",
    }
    return {name: shortened(fact, _LONG) for name, fact in found.items() if fact}


def _covered(data: Mapping[str, Any]) -> str:
    epochs = Epochs.from_json(data["epochs"])
    there = zone(epochs.timezone)
    last = epochs.end.astimezone(there) - timedelta(microseconds=1)
    places = "pair" if "flows" in data else "region"
    size = counted(data["visits"], "visit"), counted(data["regions"], places)
    return (
        f"{data['people']:,} people, {', '.join(size)}, "
        f"{epochs.start.astimezone(there):%Y-%m-%d} to {last:%Y-%m-%d} ({epochs.timezone}) "
        f"in {counted(epochs.n, 'epoch')} of {format_length(epochs.length)}"
    )


def said_of_targets(topic: str, choice: TargetChoice | None) -> list[str]:
    """Return the sentence that a topic has for how the targets were chosen, if it has one."""
    sentences: dict[str, str] = texts()[topic]
    if choice is None:
        case, numbers = "unknown", {}
    else:
        case = "by_hand" if choice.by_hand else "everybody" if choice.who is None else "some"
        if choice.everybody:
            case = "all" if choice.who is None else "all_of"
        numbers = {"eligible": f"{choice.eligible:,}", "people": f"{choice.people:,}"}
        numbers["who"] = choice.who or ""
    return [sentences[case].format(**numbers)] if case in sentences else []


def glossary_of(findings: Iterable[Finding]) -> dict[str, Entry]:
    """Return all words by their keys, in the order of the alphabet: of the texts, and metrics."""
    terms = {
        key: Entry(key.replace("_", " "), meaning) for key, meaning in texts()["glossary"].items()
    }
    for name in dict.fromkeys(one.metric for one in findings):
        if name in METRICS:
            terms[name] = Entry(METRICS[name].words, METRICS[name].explanation)
    return dict(sorted(terms.items(), key=lambda term: term[1].words.lower()))


def policy_table(policy: Policy) -> Table:
    """Return the limits and floors of a policy with what they mean."""
    heads = ("measure", Head("limit"), "meaning")
    rows = (
        (words_of(metric), asked, Cell(METRICS[metric].explanation, sort=words_of(metric)))
        for metric, asked in policy.in_words()
    )
    return Table.of("The limits of risk, and the floors of what must be left.", heads, rows)


def command_of(audit: AuditResult) -> str:
    """Return a command that repeats an audit, as far as its manifest tells."""
    plan, settings, choice = audit.plan, audit.manifest["settings"], audit.choice
    by_hand = choice is not None and choice.by_hand
    given = {
        "--everybody": [] if audit.include is None else [""],
        "--include": [] if audit.include is None else [f"{audit.include:g}"],
        "--together": ["..."] if "households=" in plan.get("game", "") else [],
        "--group-size": [one["group_size"] for one in settings] if audit.include is None else [],
        "--mechanism": [one["mechanism"] for one in settings],
        "--attack": [attack for own in plan["contests"].values() for attack in own],
        # What is usual goes without saying.
        "--knowledge": [one["knowledge"] for one in settings],
        # As many targets, chosen in the same way, without any id.
        "--user": ["..."] if by_hand else [],
        "--targets": [] if by_hand else [audit.n_targets],
        "--min-visits": [choice.min_visits] if choice and choice.min_visits > 1 else [],
        "--releases": [plan["releases"]],
        "--control-releases": [plan["control_releases"]],
        "--reference-size": [plan["reference_size"]],
        "--past-releases": [plan["past_releases"]],
        "--test-from": ["..."] if plan["first_epoch"] else [],
        "--seed": [plan["seed"]],
        "--releases-of": [f"{name}={n}" for name, n in plan.get("releases_of", {}).items()],
    }
    usual = {"--knowledge": {"all"}, "--past-releases": {0}}
    parts = [
        f"{option} {value if value in ('', '...') else shlex.quote(shortened(str(value)))}".strip()
        for option, values in given.items()
        if set(values) != usual.get(option)
        for value in dict.fromkeys(values)
    ]
    return " \\\n    ".join(["whosthere audit TRACES", *parts, "--out RUN"])


def facts_of(audit: AuditResult) -> dict[str, str]:
    """Return what was done, as far as it is known; who the targets are is nobody's business."""
    plan, manifest = audit.plan, audit.manifest
    passed = {None: "none", True: "passed", False: "FAILED"}
    found = {
        "audit": audit.name,
        "begun": manifest.get("begun"),
        "data": _covered(manifest["data"]) if "data" in manifest else None,
        "SHA-256 of the traces": manifest.get("traces"),
        "policy": audit.policy.name,
        "people asked": None if audit.include is None else audit.choice,
        "chance of being in a release": audit.include,
        "targets": audit.n_targets,
        "how targets were chosen": audit.choice if audit.include is None else None,
        "attacks": ", ".join(map(shortened, Lookup(audit.findings).attacks)),
        f"releases per {'' if audit.include else 'target and '}protection": plan.get("releases"),
        "other numbers of releases": _joined(plan.get("releases_of")),
        "control releases": plan.get("control_releases"),
        "controls": passed[audit.trusted],
        "people an attacker has real traces of": plan.get("reference_size"),
        "past releases": plan.get("past_releases") or None,
        "seed": plan.get("seed"),
        "failed tasks": audit.failed_tasks,
        "versions": _joined(manifest.get("versions")),
        "Python": manifest.get("python"),
        "machine": _joined(manifest.get("machine")),
    }
    return {name: str(value) for name, value in found.items() if value is not None}


def _joined(values: object) -> str | None:
    if not isinstance(values, dict) or not values:
        return None
    return ", ".join(f"{name} {value}" for name, value in values.items())
