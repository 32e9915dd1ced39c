"""Audits to report on, made from scores that were drawn and not from traces."""

import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from whosthere.auditing.follow_up import MeanOverTargets, WhatIf
from whosthere.auditing.judging import guarantee_findings, judge
from whosthere.auditing.manifest import write_json
from whosthere.auditing.policy import Policy
from whosthere.auditing.result import AuditResult
from whosthere.auditing.store import FORMAT_VERSION, RunFolder
from whosthere.errors import SpecError
from whosthere.game.leaks import REGIONS
from whosthere.game.plan import TargetChoice
from whosthere.inference.finding import Finding
from whosthere.inference.measure import measure, per_target
from whosthere.inference.scores import OF_CHECKS, SCHEMA
from whosthere.inference.vocabulary import OF_UTILITY
from whosthere.privacy.guarantees import GameGuarantee, GuaranteeForAll
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.trade_off import Budget

SETTINGS = ("raw, m=100", "suppress(k=1), m=100", "laplace(eps=0.1, unit=event), m=100")
STRENGTHS = (4.0, 1.0, 0.0)
ATTACKS = ("knock-knock", "likelihood-ratio")


def _scores(settings=SETTINGS, attacks=ATTACKS, targets=40, releases=20, strengths=STRENGTHS):
    """Return scores that are shifted by the strength of each setting where a target is in."""
    rng = np.random.default_rng(3)
    rows = []
    for setting, strength in zip(settings, strengths, strict=True):
        for attack in (*attacks, "ceiling"):
            for target in range(targets):
                label = np.arange(releases) % 2 == 0
                score = rng.normal(size=releases) + strength * label
                rows.append(
                    pl.DataFrame(
                        {
                            "setting": setting,
                            "attack": attack,
                            "target": 1000 + 7 * target,
                            "release": np.arange(releases),
                            "label": label,
                            "score": score,
                            "threshold": 0.5,
                            "calibrated": score,
                            "seconds": 0.001,
                            "visits": 5 + target,
                            "uniqueness": target / targets,
                            **dict.fromkeys((*OF_UTILITY, *OF_CHECKS)),
                        },
                        schema={name: kind for name, kind in SCHEMA.items() if name != "control"},
                    )
                )
    return pl.concat(rows)


@cache
def _measured(settings, attacks, n_limits, **sizes):
    """Return scores and what is measured of them, once for all audits that have the same."""
    scores = _scores(settings, attacks, **sizes)
    return scores, tuple(measure(scores, scores.clear(), seed=0, n_limits=n_limits))


EVERYBODY = TargetChoice(eligible=2000, people=2000)
# An AUC of 0.6, 1.5 % found, and an odds factor of 1.5.
PROMISED = GuaranteeForAll(GameGuarantee(Budget(math.log(1.5))), 2000)


def _audit(
    settings=SETTINGS, attacks=ATTACKS, *, policy=None, name="run", choice=EVERYBODY, **sizes
):
    """Return a finished audit, as if it had been read from a folder."""
    by = policy or Policy.default()
    scores, measured = _measured(settings, attacks, len(by.limits), **sizes)
    promised = {setting: PROMISED for setting in settings if "laplace" in setting}
    findings = [*measured, *guarantee_findings(promised)]
    known = {
        one: {
            "protection": _words(_described(one)["mechanism"]),
            "group_size": _described(one)["group_size"],
        }
        for one in settings
    }
    control = Finding(settings[0], attacks[0], "control_auc", 0.5, 0.4, 0.6, 40, 400, 400)
    targets = scores["target"].unique(maintain_order=True).to_list()
    plan = {
        "contests": {setting: list(attacks) for setting in settings},
        "targets": targets,
        "releases": 20,
        "control_releases": 4,
        "reference_size": 0,
        "past_releases": 0,
        "first_epoch": 0,
        "seed": 5,
    }
    return AuditResult(
        {
            "format": FORMAT_VERSION,
            "plan": plan,
            "settings": [_described(setting) for setting in settings],
            "together": None,
            "people_looked_at": 40,
            "targets_chosen": choice.to_json(),
            "cautions": [],
            "looks": [],
            "machine": {},
            "traces": "ab" * 32,
            "data": {
                "people": 2000,
                "visits": 9000,
                "regions": 9,
                "epochs": {
                    "start": "2026-03-01T23:00:00+00:00",
                    "length": "1h",
                    "n": 168,
                    "timezone": "Europe/Rome",
                },
            },
            "begun": "2026-01-01T00:00:00+00:00",
            "versions": {"whosthere": "0.1.0", "numpy": "2"},
            "python": "3.11",
        },
        (*findings, control),
        by,
        tuple(judge(findings, by, choice=choice, known=known)),
        True,
        0,
        scores,
        per_target(scores),
        Path(name),
    )


def _words(mechanism):
    try:
        return Mechanism.parse(mechanism).in_words
    except SpecError:
        return ""


def _described(setting):
    mechanism, _, rest = setting.rpartition(", m=")
    m, _, knowledge = rest.partition(", knows ")
    about = {"mechanism": mechanism, "group_size": int(m), "knowledge": knowledge or "all"}
    return {"setting": setting, **about}


def _with_places(audit, ids=None):
    """Return an audit that also measured where, when, utility, marginals and changes."""
    names = ids or [f"r{i}" for i in range(9)]
    n = len(names)
    regions = pl.DataFrame(
        {
            "index": np.arange(n, dtype=np.int32),
            "id": names,
            "lon": 9.0 + np.arange(n) % 3 / 10,
            "lat": 45.0 + np.arange(n) // 3 / 10,
            "outline": None,
        },
        schema=REGIONS,
    )
    leaks, marginals, utility = [], [], []
    for j, verdict in enumerate(audit.verdicts):
        for axis, size in (("region", n), ("hour", 168)):
            index = np.arange(size, dtype=np.int32)
            about = {"setting": [verdict.setting] * size, "axis": [axis] * size, "index": index}
            leaks.append(
                pl.DataFrame(
                    about
                    | {"targets": (index % 12).astype(np.int32), "leak": 1.0 + index.astype(float)}
                )
            )
            share = np.full(size, 1 / size)
            marginals.append(pl.DataFrame(about | {"truth": share, "estimated": share * 1.1}))
        for metric, value in (("visits_kept", 0.9), ("pattern_correlation", 0.9 - j / 10)):
            utility.append(
                Finding(verdict.setting, "utility", metric, value, value - 0.01, value, 40, 40, 0)
            )
    change = WhatIf(
        audit.verdicts[0].setting,
        "the leakiest tenth of the regions merged with a neighbour",
        "auc",
        MeanOverTargets(0.9, 0.85, 0.95),
        MeanOverTargets(0.7, 0.65, 0.75),
        {"visits_kept": 0.91, "pattern_correlation": 0.92},
        {"visits_kept": 0.83, "pattern_correlation": 0.84},
    )
    return replace(
        audit,
        findings=(*audit.findings, *utility),
        regions=regions,
        leaks=pl.concat(leaks),
        marginals=pl.concat(marginals),
        what_if=(change,),
    )


def _written(audit, folder):
    """Write an audit as `whosthere audit` keeps it."""
    folder.mkdir(parents=True, exist_ok=True)
    verdicts = {
        "trusted": audit.trusted,
        "failed_tasks": audit.failed_tasks,
        "policy": audit.policy.to_json(),
        "verdicts": [verdict.to_json() for verdict in audit.verdicts],
    }
    findings = [finding.to_json() for finding in audit.findings]
    for name, value in (
        ("manifest", dict(audit.manifest)),
        ("verdicts", verdicts),
        ("findings", findings),
        ("what_if", [one.to_json() for one in audit.what_if]),
    ):
        write_json(folder / f"{name}.json", value)
    for name in ("scores", "targets", "regions", "leaks", "marginals"):
        RunFolder(folder).write_results(name, getattr(audit, name))
    return folder


@pytest.fixture(scope="session")
def made_audit():
    """Give a function that makes an audit of settings and attacks."""
    return _audit


@pytest.fixture(scope="session")
def with_places():
    """Give a function that adds to an audit all that not every audit measures."""
    return _with_places


@pytest.fixture(scope="session")
def written():
    """Give a function that writes an audit to a folder."""
    return _written


@pytest.fixture(scope="session")
def audit():
    return _audit()


@pytest.fixture(scope="session")
def full_audit(audit):
    """An audit with everything that a report can show."""
    return _with_places(audit)
