"""Guarantees beside what the best attacker reaches, as `benchmarks/guarantees.py` computes it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from whosthere.data.cities import simulate

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "guarantees.py"
ROUNDING = 1e-9


@pytest.fixture(scope="module")
def benchmark_script():
    described = importlib.util.spec_from_file_location("benchmark_of_guarantees", SCRIPT)
    module = importlib.util.module_from_spec(described)
    # Its dataclasses look for their module by name.
    sys.modules[described.name] = module
    described.loader.exec_module(module)
    yield module
    del sys.modules[described.name]


@pytest.fixture(scope="module")
def city():
    return simulate("milan-like", seed=3, users=400, days=3, regions=25).traces()


@pytest.mark.parametrize(
    "mechanism",
    [
        "laplace(eps=0.1, unit=event)",
        "laplace(eps=1, unit=user-day, max_visits=2) | suppress(k=1)",
        "discrete-laplace(eps=0.3, unit=event)",
        "gaussian(eps=0.5, delta=1e-6, unit=user, max_visits=5)",
    ],
)
def test_nobody_reaches_more_than_is_guaranteed(benchmark_script, city, mechanism):
    order = np.argsort(-city.visits_per_user(), kind="stable")
    people = np.concatenate([order[:3], order[10::60]])
    found = benchmark_script.compared(city, mechanism, people, m=80, seed=1)
    assert min(found["least_margin"].values()) > -ROUNDING
    sides = [found[name] for name in ("largest_auc", "log_odds", "chance_of_more")]
    for one in (*sides, *found["pooled"].values()):
        if one["reached"] is not None:
            assert one["reached"] <= one["guaranteed"] + ROUNDING
    # The comparison would be idle if the attacker reached next to nothing.
    assert found["largest_auc"]["reached"] > 0.52


def test_what_is_reached_is_what_all_tables_together_say(benchmark_script):
    """Two cells of a group of 6, one of each person: all 49 published tables, one by one."""
    mechanism = benchmark_script.Mechanism.parse("laplace(eps=0.7, unit=event)")
    reached = benchmark_script.Best(mechanism, 6).reached(np.array([2]), np.array([4]))
    laws = [
        np.outer(*(mechanism.pmf(np.arange(7), n, 6) for n in counts)).reshape(-1)
        for counts in ((3, 4), (2, 5))
    ]
    ratios = np.round(np.log(laws[0] / laws[1]), 9)
    above = np.sign(ratios[:, None] - ratios) / 2 + 0.5
    exact = laws[0] @ above @ laws[1]
    found = benchmark_script.auc(reached.with_person, reached.without)
    assert found == pytest.approx(exact, abs=1e-4)
    assert reached.most == pytest.approx(ratios.max(), abs=1e-8)
