"""The scripts in `examples/` do what they say."""

import runpy
from pathlib import Path

import numpy as np
import pytest

import whosthere as wt
from whosthere.data.flows import Pairs

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture(scope="module")
def joint():
    return runpy.run_path(str(EXAMPLES / "joint_methods.py"))


@pytest.fixture(scope="module")
def ends():
    return runpy.run_path(str(EXAMPLES / "flows_both_ends.py"))


@pytest.fixture
def counts():
    return np.random.default_rng(1).poisson(3, (40, 24)).astype(np.int32)


def test_controlled_rounding_keeps_counts_and_totals_within_the_base(joint, counts):
    rng = np.random.default_rng(2)
    made = np.array([joint["controlled_rounding"](counts, 1000, rng) for _ in range(400)])
    assert (made % 3 == 0).all()
    assert np.abs(made - counts).max() < 3
    assert np.abs(made.sum(axis=2) - counts.sum(axis=1)).max() < 3
    assert np.abs(made.mean(axis=0) - counts).max() < 0.4


def test_complementary_suppression_hides_no_count_of_a_region_alone(joint):
    counts = np.array([[9, 7, 3, 0], [9, 9, 8, 6], [2, 1, 8, 9], [4, 0, 0, 0]], dtype=np.int32)
    made = joint["complementary_suppression"](counts, 100, None)
    assert made.tolist() == [[9, 0, 0, 0], [9, 9, 8, 6], [0, 0, 8, 9], [0, 0, 0, 0]]


def test_top_down_fits_counts_to_noisy_totals(joint, counts):
    made = joint["top_down"](counts, 1000, np.random.default_rng(3))
    assert made.min() >= 0
    away = made.sum(axis=1) - counts.sum(axis=1)
    # The noise of 24 counts by itself would add up to nearly 10.
    assert 1 < away.std() < 3


def test_joint_methods_can_be_audited(joint, capsys, monkeypatch):
    monkeypatch.setattr("whosthere.auditing.work.usable_processors", lambda: 1)
    few = {"attacks": "knock-knock", "group_size": 30, "targets": 1, "releases": 2}
    few |= {"mechanisms": joint["OPTIONS"]["mechanisms"][5:]}
    result = joint["main"](users=300, regions=16, days=1, **few)
    assert "accept" not in {one.decision for one in result.verdicts}
    assert "top_down knock-knock auc" in capsys.readouterr().out


def test_flows_are_shown_where_both_ends_are_busy(ends):
    places = wt.Regions(["A", "B", "C"])
    pairs = Pairs(places, [0, 0, 1, 2], [1, 2, 0, 1])
    # A has 16 departures and 20 arrivals; B 20 and 17; C 2 and 1.
    counts = np.array([[15], [1], [20], [2]], dtype=np.int32)
    shown = ends["both_ends"](pairs)(counts, 100, None)
    assert shown.tolist() == [[15], [0], [20], [0]]
    fewer = ends["both_ends"](pairs)(counts - 1, 100, None)
    assert fewer.tolist() == [[0], [0], [19], [0]]


def test_flows_between_busy_ends_can_be_audited(ends, capsys, monkeypatch):
    monkeypatch.setattr("whosthere.auditing.work.usable_processors", lambda: 1)
    few = {"attacks": "knock-knock", "group_size": 30, "targets": 1, "releases": 2}
    result = ends["main"](users=300, regions=4, days=2, min_visits=1, **few)
    assert len(result.verdicts) == 4
    assert "show_between_busy_places knock-knock auc" in capsys.readouterr().out
