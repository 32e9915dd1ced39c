"""Claims are held, not held or undecided as the numbers say, whatever they are."""

import numpy as np
import polars as pl
import pytest

from whosthere.paper.claims import CLAIMS, OURS, judged
from whosthere.paper.datasets import LIKE
from whosthere.paper.experiments import EXPERIMENTS, places
from whosthere.paper.judging import Bound, Mean, Status, judge, mean
from whosthere.paper.results import Numbers, beside_published, published, summarised

N_TARGETS = 40


def made_up(auc, like="milan", spread=0.01, n_targets=N_TARGETS):
    """Numbers of all series, by a function of series, value and attack."""
    rng = np.random.default_rng(0)
    rows = []
    for experiment in EXPERIMENTS.values():
        for series, point, _ in places(experiment, LIKE[like], 11_000):
            for attack in (*series.attacks, "ceiling"):
                values = auc(series.name, point.value, attack) + spread * rng.normal(size=n_targets)
                rows.append(
                    pl.DataFrame(
                        {
                            "experiment": series.name,
                            "dataset": "made-up",
                            "parameter": series.parameter,
                            "value": point.value,
                            "attack": attack,
                            "target": np.arange(1, n_targets + 1),
                            "visits": np.arange(5, n_targets + 5),
                            "releases": 20,
                            "auc": values,
                            "accuracy": values,
                        }
                    )
                )
    return Numbers(pl.concat(rows))


def statuses(numbers, like="milan"):
    return {(series, one.claim): one.status for series, one in judged(numbers, like)}


def of(found, series, part):
    (status,) = [s for (name, text), s in found.items() if name == series and part in text]
    return status


def test_every_claim_is_judged_for_its_data():
    for like, others in (("milan", 1), ("cdr", 1)):
        found = judged(made_up(lambda *_: 0.7, like), like)
        assert len(found) == len(CLAIMS) + len(OURS) - others


def test_equal_attacks_are_close_and_nothing_falls():
    found = statuses(made_up(lambda *_: 0.7, spread=0.001))
    assert of(found, "ssc", "within 0.09") is Status.HELD
    assert of(found, "ssc", "fall as k grows") is Status.HELD
    assert of(found, "ssc", "at least 0.99") is Status.NOT_HELD
    assert of(found, "ssc", "likelihood ratio") is Status.HELD
    assert of(found, "paired-sampling", "0.29") is Status.NOT_HELD
    assert of(found, "regions-only-random", "below 0.63") is Status.NOT_HELD
    assert of(found, "synthetic-size", "raise the AUC") is Status.CANNOT_TELL


def test_one_setting_that_breaks_a_claim_breaks_it():
    def auc(series, value, attack):
        return 0.6 if (series, value, attack) == ("dp-event", "5.0", "zero-knowledge") else 0.7

    found = judged(made_up(auc, spread=0.001), "milan")
    (broken,) = [one for s, one in found if s == "dp-event" and "within 0.06" in one.claim]
    assert broken.status is Status.NOT_HELD
    assert "at 5.0: -0.100" in broken.test
    assert "1 of 5 not held" in broken.test


def test_wide_intervals_cannot_tell():
    found = statuses(made_up(lambda *_: 0.55, spread=0.3))
    assert of(found, "ssc", "below 0.55") is Status.CANNOT_TELL
    assert of(found, "dp-event", "within 0.06") is Status.CANNOT_TELL


def test_few_targets_cannot_tell_however_alike_they_are():
    found = statuses(made_up(lambda *_: 1.0, spread=0.0, n_targets=9))
    assert set(found.values()) == {Status.CANNOT_TELL}


def test_a_rise_is_seen():
    def auc(series, value, _):
        return 0.5 + 0.05 * int(value) if series == "ssc" else 0.7

    assert of(statuses(made_up(auc)), "ssc", "fall as k grows") is Status.NOT_HELD


def test_what_was_not_measured_is_not_judged():
    numbers = made_up(lambda *_: 0.7)
    only = Numbers(numbers.targets.filter(pl.col("experiment") == "ssc"))
    assert {series for series, _ in judged(only, "milan")} == {"ssc"}


def test_intervals_hold_as_often_as_they_say():
    """20 means together: all of 1,000 sets hold in 95 %, within four standard errors."""
    rng = np.random.default_rng(5)
    holds = []
    for _ in range(1_000):
        means = [mean("", rng.normal(0.7, 0.1, 30), together=20) for _ in range(20)]
        holds.append(all(one.low <= 0.7 <= one.high for one in means))
    assert np.mean(holds) == pytest.approx(0.95, abs=4 * np.sqrt(0.05 * 0.95 / 1_000))


@pytest.mark.parametrize(
    ("low", "high", "status"),
    [(0.6, 0.7, Status.HELD), (0.4, 0.45, Status.NOT_HELD), (0.4, 0.6, Status.CANNOT_TELL)],
)
def test_bounds(low, high, status):
    bound = Bound(Mean("x", (low + high) / 2, low, high), least=0.5)
    assert bound.status is status
    assert judge("text", [bound]).status is status


def test_differences_from_published_numbers_are_in_their_own_errors():
    numbers = made_up(lambda *_: 0.7)
    results = summarised(numbers.targets)
    both = beside_published(results, "milan")
    assert both.height == published().filter(pl.col("dataset") == "milan").height
    row = both.row(0, named=True)
    error = np.hypot(row["standard_error"], row["standard_error_ours"])
    assert row["in_standard_errors"] == pytest.approx((row["mean_ours"] - row["mean"]) / error)
    one = numbers.aucs("ssc", "1", "knock-knock")
    summary = results.row(
        by_predicate=(pl.col("experiment") == "ssc")
        & (pl.col("value") == "1")
        & (pl.col("attack") == "knock-knock")
        & (pl.col("metric") == "auc"),
        named=True,
    )
    assert summary["mean"] == pytest.approx(one.mean())
    assert summary["standard_error"] == pytest.approx(one.std(ddof=1) / np.sqrt(N_TARGETS))
