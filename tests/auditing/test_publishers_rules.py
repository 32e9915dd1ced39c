"""Audits of rules that publishers use: releases pass their own checks, and attacks find people."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import whosthere as wt
from whosthere.auditing.options import AuditOptions
from whosthere.auditing.planning import make_plan
from whosthere.game.checks import Checks
from whosthere.game.rounds import Population
from whosthere.game.target import TargetRounds

RULES = [
    "sdctools-d2",
    "sdctools-d5 | suppress(k=3, shown=mark)",
    "multimno",
    "safegraph",
    "wikimedia",
    "laplace(eps=9, unit=user-period, days=2, max_visits=9, max_regions=3)",
]


@pytest.fixture(scope="module")
def audited():
    traces = wt.simulate("milan-like", users=1500, days=3, seed=3).traces()
    return wt.audit(
        traces,
        mechanisms=RULES,
        group_size=150,
        attacks="likelihood-ratio",
        targets=12,
        releases=8,
        min_visits=5,
        seed=1,
        workers=1,
        what_if=False,
    )


def area(audited, rule, attack):
    found = audited.to_frame().filter(
        pl.col("metric") == "auc",
        pl.col("attack") == attack,
        pl.col("mechanism") == str(wt.mechanisms.Mechanism.parse(rule)),
    )
    return found["estimate"].item()


def test_test_releases_pass_all_checks(audited):
    """Also where the same people get the same noise, which makes cells depend on one another."""
    assert audited.trusted


@pytest.mark.parametrize("rule", ["sdctools-d2", "sdctools-d5 | suppress(k=3, shown=mark)"])
def test_the_ratio_is_no_better_than_the_ceiling(audited, rule):
    ratio, ceiling = (area(audited, rule, one) for one in ("likelihood-ratio", "ceiling"))
    assert 0.6 < ratio < ceiling + 0.02


def test_scaling_up_hides_nobody(audited):
    """One device passes the threshold."""
    assert area(audited, "multimno", "likelihood-ratio") > 0.95


def test_utility_is_that_of_people_and_not_of_scaled_counts(audited):
    kept = audited.to_frame().filter(
        pl.col("metric") == "visits_kept",
        pl.col("mechanism") == str(wt.mechanisms.Mechanism.parse("multimno")),
    )
    assert kept["estimate"].to_list() == pytest.approx([1.0] * kept.height)


def test_what_the_same_people_got_again_is_no_further_evidence():
    """Otherwise one unlikely draw of somebody alone in thirty cells looks like thirty."""
    traces = wt.simulate("milan-like", users=300, days=2, seed=3).traces()
    options = AuditOptions.of(
        mechanisms="sdctools-d5", group_size=60, attacks="likelihood-ratio", targets=2, releases=2
    )
    plan = make_plan(options, traces)
    rounds = TargetRounds(Population.of(traces), plan, plan.tasks[0])
    checks, drawn = Checks(rounds.tables[0]), [rounds.test(i) for i in (0, 1)]
    for one in drawn:
        checks.see(one)
    draws = [one.publication.tables[0].noise[0] for one in drawn]
    assert checks.sums()[0] == sum(np.unique(draw).size for draw in draws) < 2 * draws[0].size
