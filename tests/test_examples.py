"""The scripts in `examples/` do what they say."""

import runpy
from pathlib import Path

import numpy as np
import pytest

JOINT = Path(__file__).parents[1] / "examples" / "joint_methods.py"


@pytest.fixture(scope="module")
def joint():
    return runpy.run_path(str(JOINT))


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
