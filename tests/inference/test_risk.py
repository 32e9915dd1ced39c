"""Risk of people: the true spread is covered, and groups show nobody."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from whosthere.inference import uneven
from whosthere.inference.exposed import BINS, Mixture, bin_of
from whosthere.inference.panel import Panel
from whosthere.inference.risk import (
    PERCENTILES,
    by_group,
    percentile,
    risk_of_people,
    share_above,
    spread,
)

N_ROUNDS = 40


def panel_of(rng, aucs, include=0.5, common=0.0, n_rounds=N_ROUNDS):
    """Normal scores by which each person has a given AUC; rounds may have an offset in common."""
    shifts = np.sqrt(2) * ndtri(aucs)
    labels = rng.random((n_rounds, len(aucs))) < include
    scores = rng.normal(size=labels.shape) + shifts * labels
    scores += common * rng.normal(size=(n_rounds, 1))
    return Panel(scores.astype(np.float32), labels)


class TestPeople:
    def test_rows(self, rng):
        made = panel_of(rng, np.linspace(0.5, 0.99, 100))
        labels = made.labels.copy()
        labels[:, 3], labels[:, 4] = True, False
        panel = Panel(made.scores, labels)
        rows = risk_of_people(panel)
        assert rows["person"].to_list() == list(range(100))
        assert rows["rounds_in"].to_list() == labels.sum(axis=0).tolist()
        assert (rows["rounds_in"] + rows["rounds_out"] == N_ROUNDS).all()
        assert rows["auc"].is_null().to_list() == [i in {3, 4} for i in range(100)]
        assert rows["tpr"].is_null().to_list() == [i == 4 for i in range(100)]
        above = (panel.scores > panel.curves.threshold(0.01)) & labels
        assert rows["tpr"][3] == above[:, 3].mean()

    def test_what_is_expected_is_closer_to_the_truth(self, rng):
        """Than what is measured: that is what the mixture is for."""
        true = np.where(rng.random(2000) < 0.1, 0.97, 0.6)
        rows = risk_of_people(panel_of(rng, true, n_rounds=20))
        measured, expected = (
            np.sqrt(np.mean((rows[name].to_numpy() - true) ** 2))
            for name in ("auc", "expected_auc")
        )
        assert expected < 0.6 * measured
        assert rows["expected_auc"].mean() == pytest.approx(true.mean(), abs=0.01)

    def test_unequal_numbers_have_unequal_noise(self, rng):
        """Somebody with 1 OUT round is drawn towards all others more than one with 20."""
        few = Mixture.of_aucs([1.0] + [0.6, 0.55, 0.65] * 20, [39] + [20] * 60, [1] + [20] * 60)
        many = Mixture.of_aucs([1.0] + [0.6, 0.55, 0.65] * 20, 20, 20)
        assert few.expected[0] < 0.7
        assert many.expected[0] > 0.9


class TestSpread:
    @pytest.mark.parametrize(("include", "common"), [(0.5, 0.0), (0.5, 0.5), (0.8, 0.2)])
    def test_covers_known_aucs(self, rng, simulations, include, common):
        """True AUCs are known: each percentile and share is in its interval in 95 % of panels."""
        n, most = simulations(300, 0.05)
        limits = (0.7, 0.9)
        missed = np.zeros(len(PERCENTILES) + len(limits))
        for _ in range(n):
            true = np.where(rng.random(400) < 0.2, 0.96, rng.uniform(0.5, 0.8, 400))
            panel = panel_of(rng, true, include, common)
            for place, q in enumerate(PERCENTILES):
                truth = np.quantile(true, q, method="inverted_cdf")
                found = percentile(panel.people, q)
                missed[place] += not found.low <= truth <= found.high
            for place, limit in enumerate(limits, len(PERCENTILES)):
                found = share_above(panel.people, limit)
                missed[place] += not found.low <= (true >= limit).mean() <= found.high
        assert missed.max() <= most * n, missed

    def test_covers_known_rates(self, rng, simulations):
        """The same for how often people are found, by the threshold that holds for all."""
        n, most = simulations(300, 0.05)
        missed = np.zeros(4)
        for _ in range(n):
            aucs = np.where(rng.random(400) < 0.2, 0.98, rng.uniform(0.5, 0.8, 400))
            true = ndtr(np.sqrt(2) * ndtri(aucs) - ndtri(0.99))
            people = panel_of(rng, aucs).people
            for place, q in enumerate((0.5, 0.75, 0.9)):
                truth = np.quantile(true, q, method="inverted_cdf")
                found = percentile(people, q, risk="tpr")
                missed[place] += not found.low <= truth <= found.high
            found = share_above(people, 0.4, risk="tpr")
            missed[3] += not found.low <= (true >= 0.4).mean() <= found.high
        assert missed.max() <= most * n, missed

    def test_covers_where_single_scores_decide(self, rng, simulations):
        """Log-normal scores: one large OUT score of ten is above all IN scores of a person.

        With normal noise, the 99th percentile was missed in 21 of 30 panels.
        """
        n, most = simulations(300, 0.05)
        shifts, true = np.repeat([[0.0, 2.5], [0.5, 0.9006]], [255, 45], axis=1)
        missed = np.zeros(3)
        for _ in range(n):
            labels = np.argsort(rng.random((100, 300)), axis=0) >= 10
            scores = rng.lognormal(size=labels.shape) + shifts * labels
            people = Panel(scores.astype(np.float32), labels).people
            for place, q in enumerate((0.5, 0.9, 0.99)):
                found = percentile(people, q)
                truth = np.quantile(true, q, method="inverted_cdf")
                missed[place] += not found.low <= truth <= found.high
        assert missed.max() <= most * n, missed

    def test_covers_where_the_threshold_rests_on_few_false_alarms(self, rng, simulations):
        """On nine: everybody has the same risk, so that little else makes an interval wide.

        With a threshold that is taken as known, 16 of 40 panels are missed.
        """
        n, most = simulations(400, 0.05)
        true = np.full(300, ndtr(2.5 / np.sqrt(2)))
        truth, missed = ndtr(2.5 - ndtri(0.99)), np.zeros(2)
        for _ in range(n):
            panel = panel_of(rng, true, include=0.95, n_rounds=60)
            _, highest, lowest = panel.curves.thresholds(0.01)
            missed[0] += not lowest <= ndtri(0.99) <= highest
            found = percentile(panel.people, 0.5, risk="tpr")
            missed[1] += not found.low <= truth <= found.high
        assert missed.max() <= most * n, missed

    def test_groups_are_found_by_any_threshold_too(self, rng):
        panel = panel_of(rng, np.full(60, 0.95), n_rounds=20)
        rates = [panel.people.share_found(by=by)[0] for by in range(3)]
        row = by_group(panel, ["a"] * 60, least=5).row(0, named=True)
        assert row["tpr"] == rates[0]
        assert row["tpr_low"] < rates[1] < rates[0] < rates[2] < row["tpr_high"]

    def test_rounds_in_common_make_people_tell_less(self, rng):
        alone, common = (panel_of(rng, np.full(500, 0.8), 0.5, some).people for some in (0.0, 1.0))
        assert alone.independence > 0.5
        assert common.independence < 0.2

    def test_nobody_was_both_in_and_out(self, rng):
        panel = Panel(
            rng.normal(size=(4, 10)).astype(np.float32), np.arange(10) < 5 + np.zeros((4, 1))
        )
        assert spread(panel)["value"].null_count() == len(PERCENTILES)
        assert share_above(panel.people, 0.9).value is None
        assert risk_of_people(panel)["expected_auc"].null_count() == 10

    def test_table(self, rng):
        panel = panel_of(rng, np.linspace(0.5, 0.99, 300))
        for risk in ("auc", "tpr"):
            table = spread(panel, risk)
            assert table["percentile"].to_list() == list(PERCENTILES)
            assert (table["low"] <= table["value"]).all()
            assert (table["value"] <= table["high"]).all()
            assert table["value"].is_sorted()


class TestUneven:
    @pytest.mark.parametrize("spread_of_in", uneven.SPREADS)
    @pytest.mark.parametrize(("n_in", "n_out"), [(9, 4), (3, 20)])
    def test_laws_are_those_of_panels(self, rng, n_in, n_out, spread_of_in):
        """Drawn in one loop and measured in another: the same AUCs and balances."""
        grid = np.array([0.6, 0.9])
        law = uneven._drawn(n_in, n_out, grid, spread_of_in)
        assert law.sum(axis=(1, 2)) == pytest.approx(1)
        labels = np.repeat([[True], [False]], [n_in, n_out], axis=0) & np.ones((1, 20_000), bool)
        for expected, auc in zip(law, grid, strict=True):
            scores = rng.normal(size=labels.shape) * np.where(labels, spread_of_in, 1)
            scores += labels * np.sqrt(1 + spread_of_in**2) * ndtri(auc)
            people = Panel(scores.astype(np.float32), labels).people
            balance = np.searchsorted(uneven._BALANCES, people.balance)
            places = bin_of(people.measured[:, 0]) * uneven._N_BALANCES + balance
            found = np.bincount(places, minlength=expected.size) / places.size
            # Two samples, of 20,000 and of 10,000: six standard errors in each of many bins.
            usual = np.maximum((found + expected.ravel()) / 2, 1e-3)
            error = np.sqrt(usual * (1 / 10_000 + 1 / 20_000))
            assert (np.abs(found - expected.ravel()) < 6 * error).all()

    def test_balance(self):
        """By what it says: variances of the shares of pairs that single scores win."""
        scores = np.array([3, 3, 9, 1, 2, 4], np.float32)[:, None]
        people = Panel(np.tile(scores, 2), np.arange(6)[:, None] < [[3, 5]]).people
        in_, out = np.var([2 / 3, 2 / 3, 1], ddof=1), np.var([1, 1, 1 / 3], ddof=1)
        assert people.balance == pytest.approx([out / (in_ + out), 0])

    @pytest.mark.parametrize("spread_of_in", uneven.SPREADS)
    def test_many_releases_are_like_drawn_ones(self, spread_of_in):
        grid = np.array([0.6, 0.9])
        centres = (BINS[1:] + BINS[:-1]) / 2
        means, errors = [], []
        for make in (uneven._drawn, uneven._beta):
            law = make(150, 120, grid, spread_of_in).sum(axis=2)
            means.append(law @ centres)
            errors.append(np.sqrt(law @ centres**2 - means[-1] ** 2))
        assert means[0] == pytest.approx(means[1], abs=0.005)
        assert errors[0] == pytest.approx(errors[1], rel=0.1)


class TestGroups:
    def test_groups_and_the_rest(self, rng):
        true = np.repeat([0.6, 0.95, 0.8], [300, 200, 7])
        names = np.repeat(["young", "old", "x"], [300, 200, 7]).astype(object)
        names[-7:] = ["a", "b", "c", "d", "d", "d", "e"]
        panel = panel_of(rng, true)
        table = by_group(panel, names.tolist(), least=5)
        assert table["group"].to_list() == ["old", "young", "others"]
        assert table["people"].to_list() == [200, 300, 7]
        for row, truth in zip(table.rows(named=True), (0.95, 0.6, 0.8), strict=True):
            assert row["auc_low"] < truth < row["auc_high"]
        measured = risk_of_people(panel)["auc"].to_numpy()
        assert table["auc"][0] == pytest.approx(measured[300:500].mean())
        assert table["share_auc_90"][0] > 0.9
        assert table["tpr"][0] > table["tpr"][1]

    @pytest.mark.parametrize(
        ("sizes", "expected"),
        [
            ([50, 6, 4], {"a": 50, "others": 10}),
            ([50, 3, 4], {"a": 50, "others": 7}),
            ([50, 5, 5], {"a": 50, "b": 5, "c": 5}),
            ([4, 2, 1], {"others": 7}),
            ([2, 1, 1], {}),
        ],
    )
    def test_nobody_follows_from_the_rest(self, rng, sizes, expected):
        """All groups and the total are known, so that what is left out must be enough people."""
        names = np.repeat(["a", "b", "c"], sizes).tolist()
        panel = panel_of(rng, np.full(sum(sizes), 0.7))
        table = by_group(panel, names, least=5)
        found = dict(zip(*table.select("group", "people"), strict=True)) if table.height else {}
        assert found == expected

    def test_covers_with_few_people(self, rng, simulations):
        """30 people whose rounds have something in common, beside others."""
        n, most = simulations(500, 0.05)
        true = np.repeat([0.85, 0.6], [30, 100])
        missed = 0
        for _ in range(n):
            panel = panel_of(rng, true, 0.5, 0.5)
            row = by_group(panel, ["a"] * 30 + ["b"] * 100, least=5).row(0, named=True)
            # The common offset makes a person harder to find.
            truth = ndtr(np.sqrt(2) * ndtri(0.85) / np.sqrt(2 * (1 + 0.25)))
            missed += not row["auc_low"] <= truth <= row["auc_high"]
        assert missed <= most * n
