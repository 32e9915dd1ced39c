"""The game of everybody: equality with the game of one target, and coverage of intervals."""

from __future__ import annotations

from itertools import islice

import numpy as np
import polars as pl
import pytest
from scipy.special import ndtr, ndtri

from whosthere.errors import InputError
from whosthere.inference import metrics
from whosthere.inference.everybody import everybody_findings, pooled_auc, roc, tpr_at_fpr
from whosthere.inference.looks import Errors, Look
from whosthere.inference.naming import named, naming_table
from whosthere.inference.panel import Panel
from whosthere.inference.scores import RULED_OUT
from whosthere.inference.vocabulary import RATES


def drawn(rng, n_rounds, shifts, include=0.5, common=0.0):
    """Normal scores as of log-likelihood ratios; each round has an offset and a strength."""
    labels = rng.random((n_rounds, len(shifts))) < include
    offset, strength = common * rng.normal(size=(2, n_rounds, 1))
    scores = rng.normal(size=labels.shape) + offset
    scores += shifts * np.exp(strength) * (labels - 0.5)
    return Panel(scores.astype(np.float32), labels)


def found_in(panel, include=0.5, first=None, **options):
    findings = everybody_findings(panel, setting="s", attack="a", include=include, **options)
    return {one.metric: one for one in islice(findings, first)}


@pytest.fixture
def panel(rng):
    made = drawn(rng, 12, np.linspace(0, 3, 60), 0.7)
    scores = np.round(made.scores, 1)
    scores[rng.random(scores.shape) < 0.2 * ~made.labels] = RULED_OUT
    labels = made.labels.copy()
    labels[:, 0], labels[:, 1] = True, False
    labels[:, 2] = np.arange(12) == 3
    return Panel(scores, labels)


class TestPanel:
    def test_the_threshold_allows_just_so_many_false_alarms(self):
        """One of 100 may exceed it: so it is the second largest score, not the largest."""
        scores = np.arange(1, 102, dtype=np.float32)[None]
        panel = Panel(scores, np.arange(101)[None] == 100)
        assert panel.curves.threshold(0.01) == 99

    def test_what_is_looked_at_for_edges_is_of_all_people(self, monkeypatch):
        """Of many scores a part, which must not be always the same people's."""
        monkeypatch.setattr("whosthere.inference.panel._SCORES_FOR_EDGES", 30)
        scores = np.tile(np.arange(10, dtype=np.float32), (6, 1))
        panel = Panel(scores, np.random.default_rng(1).random(scores.shape) < 0.5)
        assert panel.curves.edges.tolist() == list(range(10))

    def test_what_chooses_the_guesses_does_not_judge_them(self, rng):
        """Rounds that choose them tell labels perfectly, those that judge them nothing."""
        labels = rng.random((20, 200)) < 0.5
        tell = np.arange(20)[:, None] % 2 == 0
        scores = np.where(tell, 5.0 * labels, 5.0 * (rng.random(labels.shape) < 0.5))
        found = found_in(Panel(scores.astype(np.float32), labels))["empirical_eps"]
        assert found.estimate < 0.1


class TestValues:
    def test_equal_the_game_of_one_target(self, panel):
        """AUC, accuracy, pooled AUC and TPR by the other implementation, ties and all."""
        kept = panel.people.has_auc
        assert not kept[:2].any()
        assert kept.tolist() == [0 < n < 12 for n in panel.labels.sum(axis=0)]
        scores, labels = panel.scores[:, kept].ravel(), panel.labels[:, kept].ravel()
        targets = np.tile(np.arange(kept.sum()), 12)
        _, aucs = metrics.auc_by_target(scores, labels, targets)
        assert panel.people.measured[kept, 0] == pytest.approx(aucs)
        right = [
            ((one[own] > 0).mean() + (one[~own] <= 0).mean()) / 2
            for one, own in zip(panel.scores.T[kept], panel.labels.T[kept], strict=True)
        ]
        assert panel.people.measured[kept, 1] == pytest.approx(right)
        found = found_in(panel)
        assert found["auc"].estimate == pytest.approx(aucs.mean())
        assert found["accuracy"].estimate == pytest.approx(np.mean(right))
        everybody = panel.scores.ravel(), panel.labels.ravel()
        assert found["pooled_auc"].estimate == pytest.approx(metrics.auc(*everybody))
        targets = np.tile(np.arange(60), 12)
        tpr = metrics.tpr_at_fpr(*everybody, targets, 0.1, n_resamples=10)
        assert found["tpr_at_fpr_10pct"].estimate == pytest.approx(tpr.value)
        threshold = panel.curves.threshold(0.01)
        times = ((panel.scores > threshold) & panel.labels).sum(axis=0)
        assert panel.people.found().tolist() == times.tolist()

    def test_left_out_is_really_left_out(self, panel):
        """Every value without a round or a person, against a panel that never had them."""
        parts = range(12), range(60)
        mean, by_round, by_person = panel.people.mean(0)
        kept = np.flatnonzero(panel.people.has_auc)
        assert by_person.size == kept.size
        for r in parts[0]:
            rest = Panel(np.delete(panel.scores, r, 0), np.delete(panel.labels, r, 0))
            assert by_round[r] == pytest.approx(rest.people.mean(0)[0])
            accuracy = panel.people.mean(1)[1][r]
            assert accuracy == pytest.approx(rest.people.mean(1)[0])
        for place, i in list(enumerate(kept))[:5]:
            rest = Panel(np.delete(panel.scores, i, 1), np.delete(panel.labels, i, 1))
            assert by_person[place] == pytest.approx(rest.people.mean(0)[0])
        assert mean == pytest.approx(np.nanmean(panel.people.measured[:, 0]))
        share, by_round, by_person = panel.people.share_found()
        above = (panel.scores > panel.curves.threshold(0.01)) & panel.labels
        assert share == above.sum() / panel.labels.sum()
        for found, axis in ((by_round, 1), (by_person, 0)):
            left = panel.labels.sum() - panel.labels.sum(axis=axis)
            assert found == pytest.approx((above.sum() - above.sum(axis=axis)) / left)

    def test_somebody_who_is_always_with_another_tells_nothing_more(self, rng):
        """Households of two who are alike are as good as one of them: they are the sample."""
        one = drawn(rng, 20, np.linspace(0, 3, 100), common=0.3)
        both = [np.repeat(part, 2, axis=1) for part in (one.scores, one.labels)]
        alone, together = (Panel(*both, units) for units in (None, np.repeat(np.arange(100), 2)))
        expected, found, taken_apart = map(found_in, (one, together, alone))
        for name in ("auc", "pooled_auc", "accuracy", "tpr_at_fpr_10pct", "empirical_eps"):
            for end in ("estimate", "low", "high"):
                assert getattr(found[name], end) == pytest.approx(getattr(expected[name], end))
        assert taken_apart["empirical_eps"].estimate > 1.02 * found["empirical_eps"].estimate
        assert taken_apart["auc"].low > found["auc"].low

    def test_perfect_attacks_have_exact_ends(self, rng):
        """The fewer of IN and OUT count; of eps, all guesses about rounds that do not choose."""
        labels = rng.random((20, 60)) < 0.8
        panel = Panel(np.where(labels, 5, -5).astype(np.float32), labels)
        n = (~labels).sum()
        assert pooled_auc(panel.curves).low == pytest.approx(0.025 ** (1 / n))
        share = 0.05 ** (1 / labels[1::2].size)
        bound = found_in(panel)["empirical_eps"]
        assert bound.estimate == pytest.approx(np.log(share / (1 - share)))
        assert found_in(panel)["empirical_eps_ceiling"].estimate == bound.estimate

    @pytest.mark.parametrize(("n_out", "known"), [(1000, True), (999, False)])
    def test_a_rate_needs_ten_false_alarms(self, rng, n_out, known):
        labels = np.ones((4, 500), np.bool_)
        labels.ravel()[:n_out] = False
        panel = Panel(rng.normal(size=labels.shape).astype(np.float32), labels)
        assert (tpr_at_fpr(panel.curves, 0.01).value is not None) == known
        assert panel.people.resolved == known

    def test_many_scores_are_counted_between_edges(self, rng):
        """Of more values than edges: still almost the exact AUC and TPR."""
        panel = drawn(rng, 40, np.linspace(0, 3, 1500))
        assert panel.curves.edges.size < 5000
        scores, labels = panel.scores.ravel(), panel.labels.ravel()
        exact = metrics.auc(scores, labels)
        assert pooled_auc(panel.curves).value == pytest.approx(exact, abs=1e-4)
        for fpr in (0.1, 0.01, 0.001):
            out = np.sort(scores[~labels])[::-1]
            threshold = out[int(fpr * out.size)]
            expected = (scores[labels] > threshold).mean()
            assert tpr_at_fpr(panel.curves, fpr).value == pytest.approx(expected)

    def test_the_curve_is_the_metric_at_every_rate_that_can_be_resolved(self, rng):
        panel = drawn(rng, 40, np.linspace(0, 3, 60))
        rates = [1e-4, 0.01, 0.1, 0.5]
        curve = roc(panel, rates)
        assert curve["fpr"].to_list() == [*rates[1:], 1.0]
        assert curve["tpr"].is_sorted()
        assert curve.row(-1) == (1.0, 1.0, 1.0, 1.0)
        for fpr, *ends in curve.head(-1).iter_rows():
            one = tpr_at_fpr(panel.curves, fpr)
            assert ends == [one.value, one.low, one.high]
        assert curve.filter(
            (pl.col("low") > pl.col("tpr")) | (pl.col("tpr") > pl.col("high"))
        ).is_empty()
        few = roc(drawn(rng, 1, np.ones(100)), [0.01])
        assert few["fpr"].to_list() == [1.0]

    def test_where_nearly_all_are_found_the_interval_is_narrow(self, rng):
        """The slope there is that of the last bit of the curve, not of a steeper part before."""
        panel = drawn(rng, 20, np.linspace(0, 4, 400), include=0.9, common=0.3)
        curve = roc(panel, [0.8, 0.9, 0.95])
        assert curve["tpr"][2] > 0.99
        assert curve["low"][2] > curve["low"][0]

    def test_what_cannot_be_resolved_is_none(self, rng):
        found = found_in(drawn(rng, 4, np.ones(100)), 0.9)
        assert found["tpr_at_fpr_01pct"].estimate is None
        assert "10,000 OUT scores are needed" in found["tpr_at_fpr_01pct"].note
        assert found["empirical_eps"].estimate is None
        assert "--include 0.5" in found["empirical_eps"].note
        one = found_in(drawn(rng, 1, np.ones(100)))
        assert one["auc"].estimate is None
        assert (one["pooled_auc"].low, one["pooled_auc"].high) == (None, None)

    def test_ceilings_have_what_they_are_compared_by(self, panel):
        found = [
            one.metric
            for one in everybody_findings(panel, setting="s", attack="ceiling", include=0.5)
        ]
        assert found == ["auc", "pooled_auc", *RATES, "share_auc_90"]

    def test_bad_input(self):
        with pytest.raises(InputError, match="same shape"):
            Panel(np.zeros((2, 3), np.float32), np.zeros((3, 2), bool))
        with pytest.raises(InputError, match="finite"):
            Panel(np.full((2, 3), np.nan, np.float32), np.eye(2, 3) > 0)
        with pytest.raises(InputError, match="both in and not in"):
            Panel(np.zeros((2, 3), np.float32), np.ones((2, 3), bool))


class TestIntervals:
    def test_perfect_attacks_are_not_certain(self, rng):
        """Where nothing varies, it is as certain as so many independent scores can be."""
        labels = rng.random((10, 200)) < 0.5
        found = found_in(Panel(np.where(labels, 5, -5).astype(np.float32), labels))
        for metric in ("auc", "pooled_auc", "accuracy", "tpr_at_fpr_10pct", "tpr_at_fpr_1pct"):
            assert (found[metric].estimate, found[metric].high) == (1, 1)
            assert 0.99 < found[metric].low < 0.999

    def test_deciding_ends_are_further_out_at_later_looks(self, panel):
        first = found_in(panel, errors=Errors.at(Look(1)))
        later = found_in(panel, errors=Errors.at(Look(4), n_judged=8))
        for metric, one in first.items():
            if one.estimate is not None and one.high is not None and one.low < one.high:
                assert later[metric].at_least <= one.at_least <= one.low
                assert later[metric].at_most >= one.at_most >= one.high

    @pytest.mark.parametrize(("common", "differ"), [(0.0, True), (0.3, True), (0.5, False)])
    @pytest.mark.parametrize("include", [0.5, 0.9])
    def test_cover(self, rng, simulations, common, differ, include):
        """With and without what rounds have in common, 20 rounds of 300 people.

        The truth is that of 2,000 rounds of the same people. Each end may miss in 2.5 %. Where
        people do not differ, it is rounds alone that an interval is about.
        """
        shifts = np.abs(rng.normal(size=300)) * 1.5 if differ else np.full(300, 1.5)
        n, most = simulations(1000, 0.05)
        whole = found_in(drawn(rng, 2000, shifts, include, common), include, first=6)
        wanted = ("auc", "pooled_auc", "accuracy", "tpr_at_fpr_10pct", "tpr_at_fpr_1pct")
        missed = dict.fromkeys(wanted, 0)
        for _ in range(n):
            found = found_in(drawn(rng, 20, shifts, include, common), include, first=6)
            for metric in wanted:
                one, truth = found[metric], whole[metric].estimate
                if one.estimate is None:
                    assert (metric, include) == ("tpr_at_fpr_1pct", 0.9)
                    continue
                missed[metric] += not one.low <= truth <= one.high
        assert max(missed.values()) <= most * n, missed

    def test_a_common_effect_is_why_rounds_count(self, rng):
        """Intervals as if all scores were independent would miss: these are several times wider."""
        shifts = np.ones(3000)
        alone, common = (
            found_in(drawn(rng, 20, shifts, 0.5, some), first=2) for some in (0.0, 0.5)
        )
        width = [one["pooled_auc"].high - one["pooled_auc"].low for one in (alone, common)]
        assert width[1] > 3 * width[0]

    def test_equal_scores_at_the_threshold(self, rng):
        """Half of the people have a score that about 1 % of OUT have, too."""
        n, missed = 60, 0
        truth = {0.0095: 0.5, 0.0105: 0.0}
        for rate, tpr in truth.items():
            for _ in range(n):
                labels = rng.random((10, 2000)) < 0.5
                high = rng.random(labels.shape) < np.where(labels, 0.5, rate)
                found = tpr_at_fpr(Panel(high.astype(np.float32), labels).curves, 0.01)
                missed += not found.low <= tpr <= found.high
        # 2.5 % each: a chance of 1 in 10,000 to be above 14 of 120.
        assert missed <= 14


class TestNaming:
    def test_known_answer(self, rng):
        """Normal scores: the precision as a function of the threshold is known."""
        panel = drawn(rng, 50, np.full(4000, 2.0))
        thresholds = np.linspace(-3, 6, 20001)
        tpr, fpr = ndtr(1 - thresholds), ndtr(-1 - thresholds)
        for precision, prior in ((0.9, 0.5), (0.75, 0.1), (0.99, 0.9)):
            right, wrong = prior * tpr, (1 - prior) * fpr
            expected = 4000 * right[right / (right + wrong) >= precision].max()
            found = named(panel, precision, prior)
            assert found.value == pytest.approx(expected, rel=0.05)
            assert found.low <= expected <= found.high

    def test_covers(self, rng, simulations):
        n, most = simulations(1000, 0.05)
        thresholds = np.linspace(-3, 6, 20001)
        tpr, fpr = ndtr(0.5 - thresholds), ndtr(-0.5 - thresholds)
        expected = 300 * 0.5 * tpr[tpr / (tpr + fpr) >= 0.85].max()
        ends = [named(drawn(rng, 20, np.ones(300)), 0.85) for _ in range(n)]
        assert np.mean([not one.low <= expected <= one.high for one in ends]) <= most

    def test_a_guess_is_no_knowledge(self, rng):
        panel = drawn(rng, 20, np.zeros(500), 0.9)
        assert named(panel, 0.9, 0.9).value == 450
        assert named(panel, 0.9).value == 0
        assert named(panel, 0.9).high < 10
        assert named(panel, 0.4).note == "by naming everybody"
        with pytest.raises(InputError, match="precision must be between 0 and 1"):
            named(panel, 1.0)

    def test_table(self, rng):
        panel = drawn(rng, 20, np.full(1000, 2.0))
        table = naming_table(panel, 0.5, (0.1, 0.01, 1e-5))
        assert table["wrong"].to_list()[:2] == pytest.approx([50, 5], rel=0.01)
        assert table["named"][0] == pytest.approx(500 * ndtr(2 + ndtri(0.1)), rel=0.05)
        assert table["named"][2] is None
        precise = table["named"] / (table["named"] + table["wrong"])
        assert table["precision"].to_list() == pytest.approx(precise.to_list())
