"""From scores of everybody to findings: the controls, and what is compared with what."""

from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest

from whosthere.inference.finding import Finding
from whosthere.inference.measure_everybody import _excess, _log_odds, _of_targets, measure_everybody
from whosthere.inference.panel import Panel
from whosthere.inference.scores import Scores
from whosthere.inference.vocabulary import CONTROL, SHARED_AUC

ROUNDS, PEOPLE = 60, 300
LIKE = Finding("here", "attack", "auc", 0.5, None, None, PEOPLE, 1, 1)


@dataclass(frozen=True)
class Asked:
    """Everybody's scores in memory, as in the files of a run folder."""

    panel: Panel
    coins: Panel

    def tests(self):
        return self.panel

    def controls(self):
        return self.coins

    def people(self):
        return pl.Series(range(self.panel.n_people))


def rows(attack, panel):
    n_rounds, n = panel.scores.shape
    return pl.DataFrame(
        {
            "setting": "here",
            "attack": attack,
            "release": np.repeat(np.arange(n_rounds), n),
            "target": np.tile(np.arange(n), n_rounds),
            "label": panel.labels.ravel(),
            "score": panel.scores.ravel().astype(np.float64),
            "calibrated": np.full(panel.scores.size, np.nan),
            "threshold": 0.0,
        }
    )


def measured(attacks, **options):
    """Measure attacks, each with the panels of its test and of its control rounds."""
    tests, controls = (
        pl.concat(rows(name, panels[i]) for name, panels in attacks.items()) for i in (0, 1)
    )
    everybody = {("here", name): Asked(*panels) for name, panels in attacks.items()}
    scores = Scores(tests, controls, everybody)
    found = measure_everybody(scores, include=0.5, seed=1, **options)
    return {(one.attack, one.metric): one for one in found}


def drawn(rng, n_rounds, shift, include=0.5, people=40):
    labels = rng.random((n_rounds, people)) < include
    scores = rng.normal(size=labels.shape) + shift * labels
    return Panel(scores.astype(np.float32), labels)


class TestExcess:
    """The best test of a release of which nothing is left says the same of all."""

    def excess(self, rng, scores_of):
        labels = rng.random((ROUNDS, PEOPLE)) < 0.9
        best = Panel(np.zeros(labels.shape, np.float32), labels)
        panel = Panel(scores_of(labels).astype(np.float32), labels)
        return _excess(panel, best, _log_odds(best), LIKE, seed=1, n_controls=4)

    def test_scores_that_follow_how_many_are_in_are_no_fault(self, rng):
        """False alarms: 1 % for all seeds together, as the bound says."""
        for _ in range(20):
            one = self.excess(
                rng, lambda labels: np.tile(1e-4 * labels.sum(axis=1)[:, None], PEOPLE)
            )
            assert one.low <= 0
            assert one.estimate == pytest.approx(0, abs=0.01)

    def test_scores_that_follow_labels_are_one(self, rng):
        one = self.excess(rng, lambda labels: rng.normal(size=labels.shape) + 0.5 * labels)
        assert one.low > 0


class TestControl:
    def test_labels_that_are_known_fail_it_and_others_do_not(self, rng):
        sound, leaking = drawn(rng, 4, 0.0), drawn(rng, 4, 2.0)
        found = measured({"sound": (sound, sound), "leaking": (sound, leaking)})
        assert found["sound", CONTROL].low <= 0.5 <= found["sound", CONTROL].high
        assert found["leaking", CONTROL].low > 0.5

    def test_a_round_whose_coins_fell_alike_says_nothing(self, rng):
        coins = drawn(rng, 3, 0.0)
        labels = coins.labels.copy()
        labels[1] = True
        tests = drawn(rng, 6, 0.0)
        some = measured({"attack": (tests, Panel(coins.scores, labels))})["attack", CONTROL]
        kept = Panel(coins.scores[[0, 2]], labels[[0, 2]])
        without = measured({"attack": (tests, kept)})["attack", CONTROL]
        assert (some.estimate, some.low) == (without.estimate, without.low)


class TestWhatIsCompared:
    def test_attacks_on_the_rounds_that_all_have(self, rng):
        """One that has more rounds is compared on the first of these."""
        coins, long, short = (drawn(rng, n, 1.0) for n in (2, 20, 8))
        found = measured({"long": (long, coins), "short": (short, coins)})
        first = measured({"long": (Panel(long.scores[:8], long.labels[:8]), coins)})
        assert found["long", SHARED_AUC].estimate == first["long", "auc"].estimate
        assert found["long", SHARED_AUC].estimate != found["long", "auc"].estimate
        assert ("short", SHARED_AUC) not in found

    def test_more_limits_leave_less_error_to_each(self, rng):
        panels = drawn(rng, 20, 1.0), drawn(rng, 2, 0.0)
        one, many = (measured({"attack": panels}, n_limits=n)["attack", "auc"] for n in (1, 6))
        assert (one.low, one.high) == (many.low, many.high)
        assert many.low_to_decide < one.low_to_decide
        # To accept, all must hold: no error is shared.
        assert many.high_to_decide == one.high_to_decide

    def test_scores_of_targets_count_from_their_own_threshold(self, rng):
        panel = drawn(rng, 5, 1.0, people=3)
        shifted = rows("attack", panel).with_columns(threshold=pl.col("target") * 10.0)
        shifted = shifted.with_columns(pl.col("score") + pl.col("threshold"))
        assert _of_targets(shifted.sample(fraction=1, shuffle=True, seed=1)).scores == (
            pytest.approx(panel.scores, abs=1e-5)
        )
