"""ROC curves agree with the metrics, and their bands with resampling."""

import numpy as np
import polars as pl
import pytest

from whosthere.inference.metrics import pooled_auc
from whosthere.reporting.charts.svg import Key
from whosthere.reporting.sections.sure import RATES, roc_curve


def scores(strength, n_targets=30, releases=20, seed=0):
    rng = np.random.default_rng(seed)
    target = np.repeat(np.arange(n_targets), releases)
    label = np.tile(np.arange(releases) % 2 == 0, n_targets)
    score = rng.normal(size=label.size) + strength * label
    return pl.DataFrame(
        {"target": target, "label": label, "score": score, "threshold": 0.0, "calibrated": score}
    )


def curve(rows, seed=1):
    return roc_curve(rows, Key("a", "s0"), seed=seed)


@pytest.mark.parametrize("strength", [0.0, 0.5, 2.0])
def test_area_is_the_pooled_auc(strength):
    rows = scores(strength)
    found = curve(rows)
    area = float(np.trapezoid(found.tpr, found.fpr))
    wanted = pooled_auc(
        rows["calibrated"].to_numpy(), rows["label"].to_numpy(), rows["target"].to_numpy()
    )
    assert area == pytest.approx(wanted.value, abs=0.03)


def test_rises_from_nothing_to_all_within_its_band():
    found = curve(scores(1.0))
    assert np.all(np.diff(found.tpr) >= 0)
    assert found.tpr[-1] == 1
    assert np.all(found.low <= found.tpr)
    assert np.all(found.tpr <= found.high)
    assert found.low.min() >= 0
    assert found.high.max() <= 1


def test_perfect_scores_find_all_without_false_alarms():
    rows = scores(1.0).with_columns(calibrated=pl.col("label").cast(pl.Float64))
    found = curve(rows)
    assert np.all(found.tpr == 1)
    assert np.all(found.low == 1)


def test_equal_scores_are_guessing():
    rows = scores(1.0).with_columns(calibrated=pl.lit(0.0))
    found = curve(rows)
    assert np.all(found.tpr[found.fpr < 1] == 0)
    assert found.tpr[-1] == 1


def test_same_seed_same_band():
    rows = scores(1.0)
    assert np.array_equal(curve(rows).low, curve(rows).low)


def test_more_targets_narrow_the_band():
    few, many = curve(scores(1.0, n_targets=10)), curve(scores(1.0, n_targets=200))
    middle = (RATES > 0.1) & (RATES < 0.5)
    assert (many.high - many.low)[middle].mean() < (few.high - few.low)[middle].mean() / 2


def test_scores_without_calibration_count_from_their_threshold():
    rows = scores(1.0)
    plain = rows.with_columns(
        calibrated=pl.lit(None, pl.Float64), score=pl.col("score") + 5, threshold=pl.lit(5.0)
    )
    assert np.allclose(curve(plain).tpr, curve(rows).tpr)
