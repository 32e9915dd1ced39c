"""Findings: every metric of every attack, from scores whose answers are known."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from whosthere.auditing.judging import guarantee_findings
from whosthere.auditing.options import AuditOptions
from whosthere.auditing.planning import make_plan
from whosthere.data.cities import simulate
from whosthere.game.rounds import Population
from whosthere.game.scoring import score_task
from whosthere.game.scoring import tests_and_controls as scores_by_kind
from whosthere.inference import measure as measure_module
from whosthere.inference.looks import Look
from whosthere.inference.measure import control_holds, measure, per_target
from whosthere.inference.metrics import eps_ceiling
from whosthere.inference.scores import RELEASES_FOR_UTILITY, SCHEMA, shared_releases
from whosthere.inference.vocabulary import (
    CEILING,
    CONTROL,
    EXCESS,
    GUARANTEE,
    METRICS,
    MUST_BE,
    OF_UTILITY,
    SHARED_AUC,
    UTILITY,
)
from whosthere.kernels import threads
from whosthere.privacy.guarantees import guarantee_for_all
from whosthere.privacy.mechanism import Mechanism

TARGETS = (11, 3, 7, 5, 2, 19)
N_RELEASES, N_CONTROLS = 20, 4
OF_A_GUARANTEE = {"odds_factor", "chance_of_more", "largest_odds_factor"}
OF_AN_ATTACK = set(METRICS) - {*MUST_BE, SHARED_AUC, *OF_UTILITY, *OF_A_GUARANTEE}
RATES = {"tpr_at_fpr_10pct", "tpr_at_fpr_1pct", "tpr_at_fpr_01pct"}
OF_THE_CEILING = {"auc", "pooled_auc", "share_auc_90"} | RATES


COLUMNS = {name: kind for name, kind in SCHEMA.items() if name != "control"}


def table(rows):
    return pl.DataFrame(rows, schema=COLUMNS)


def scores(attack, give, *, setting="raw, m=9", control=False, threshold=0.0, targets=TARGETS):
    """Return rows of an attack whose scores are given by target, release and label."""
    rows = []
    for target in targets:
        for release in range(N_CONTROLS if control else N_RELEASES):
            label = control or release % 2 == 0
            rows.append(
                {
                    "setting": setting,
                    "attack": attack,
                    "target": target,
                    "release": release,
                    "label": label,
                    "score": float(give(target, release, label)),
                    "threshold": threshold,
                    "seconds": 0.1,
                    "visits": 10 * target,
                    "uniqueness": 1 / target,
                    "calibrated": None,
                }
            )
    return rows


def perfect(target, release, label):
    return (10 + release if label else -10 - release) + target / 100


def same(target, release, label):
    return 1.0


def noise(target, release, label):
    return np.random.default_rng([target, release, label]).normal()


def guaranteed_by(mechanism):
    traces = simulate("milan-like", seed=1, users=50, days=1, regions=9).traces()
    return guarantee_for_all([(Mechanism.parse(mechanism), traces)])


def measured(tests, controls=(), seed=0):
    return measure(table(tests), table(list(controls)), seed=seed)


def by_metric(findings, attack, setting="raw, m=9"):
    found = [one for one in findings if (one.attack, one.setting) == (attack, setting)]
    named = {one.metric: one for one in found}
    assert len(named) == len(found)
    return named


@pytest.fixture(scope="module")
def two_attacks():
    tests, controls = [], []
    for attack, give in (("perfect", perfect), ("same", same)):
        tests += scores(attack, give)
        controls += scores(attack, noise if attack == "perfect" else same, control=True)
    tests += scores(CEILING, perfect)
    return measured(tests, controls)


def test_threads_of_libraries_do_not_wait_busily(monkeypatch):
    """They took five times as long as the measuring itself."""
    alone = []
    part = measure_module.by_setting_and_attack
    monkeypatch.setattr(
        measure_module,
        "by_setting_and_attack",
        lambda rows: [alone.append(threads._alone.get()), part(rows)][1],
    )
    measured(scores("same", same))
    assert all(alone)


class TestWhatIsMeasured:
    def test_every_metric_of_every_attack_and_no_other(self, two_attacks):
        for attack in ("perfect", "same"):
            assert set(by_metric(two_attacks, attack)) == OF_AN_ATTACK | {CONTROL, EXCESS}
        assert set(by_metric(two_attacks, CEILING)) == OF_THE_CEILING
        assert {one.attack for one in two_attacks} == {"perfect", "same", CEILING}

    def test_sample_sizes(self, two_attacks):
        n, half = len(TARGETS), N_RELEASES // 2
        for one in two_attacks:
            n_in, n_out = n * half, n * half
            if one.metric == CONTROL:
                n_in = n * N_CONTROLS
            elif one.metric.startswith("empirical_eps"):  # the other half chose a threshold
                n_in = n_out = n * half // 2
            assert (one.n_targets, one.n_in, one.n_out) == (n, n_in, n_out)

    def test_settings_are_kept_apart(self):
        tests = scores("a", perfect) + scores("a", same, setting="round(to=5), m=9")
        tests += scores(CEILING, perfect) + scores(CEILING, same, setting="round(to=5), m=9")
        findings = measured(tests)
        assert by_metric(findings, "a")["auc"].estimate == 1
        assert by_metric(findings, "a", "round(to=5), m=9")["auc"].estimate == 0.5
        for setting in ("raw, m=9", "round(to=5), m=9"):
            assert set(by_metric(findings, CEILING, setting)) == OF_THE_CEILING
        assert by_metric(findings, CEILING, "round(to=5), m=9")["auc"].estimate == 0.5

    def test_without_controls_nothing_is_said_of_them(self):
        findings = measured(scores("a", same))
        assert set(by_metric(findings, "a")) == OF_AN_ATTACK
        assert control_holds(findings) is None

    def test_attacks_are_compared_on_the_releases_that_they_share(self):
        """The one with more releases is right about those alone that the other did not score."""
        few = [row for row in scores("few", perfect) if row["release"] < 6]
        late = scores("many", lambda target, release, label: label and release >= 6)
        elsewhere = scores("many", perfect, setting="round(to=5), m=9")
        findings = measured(few + late + scores(CEILING, perfect) + elsewhere)
        here = [one for one in findings if one.setting == "raw, m=9"]
        for attack, all_of_them, shared in (("few", 1, 1), ("many", 0.85, 0.5), (CEILING, 1, 1)):
            found = by_metric(here, attack)
            assert found["auc"].estimate == pytest.approx(all_of_them)
            assert found[SHARED_AUC].estimate == pytest.approx(shared)
            assert found[SHARED_AUC].n_in == found[SHARED_AUC].n_out == 3 * len(TARGETS)
        assert all(one.metric != SHARED_AUC for one in findings if one not in here)

    def test_shared_releases_are_those_of_each_setting(self):
        few = [row for row in scores("few", perfect) if row["release"] < 6]
        many, alone = scores("many", same), scores("many", same, setting="round(to=5), m=9")
        kept = shared_releases(table(few + many + alone))
        expected = few + [row for row in many if row["release"] < 6] + alone
        assert kept.equals(table(expected))

    def test_fewer_targets_are_told(self):
        """An attack that does not apply to all has findings on those it was made on."""
        tests = scores("a", perfect) + scores("b", perfect, targets=TARGETS[:2])
        findings = measured(tests)
        assert by_metric(findings, "a")["auc"].n_targets == len(TARGETS)
        few = by_metric(findings, "b")["auc"]
        assert (few.n_targets, few.n_in, few.n_out) == (2, N_RELEASES, N_RELEASES)

    def test_ceiling_is_the_mean_over_targets(self):
        tests = scores("a", same)
        tests += scores(CEILING, lambda t, r, label: label if t in {11, 19} else 0.0)
        ceiling = by_metric(measured(tests), CEILING)["auc"]
        assert ceiling.estimate == pytest.approx((2 * 1 + 4 * 0.5) / 6)
        assert ceiling.low < ceiling.estimate < ceiling.high

    def test_guarantees_are_about_everybody(self):
        promised = {"raw, m=9": guaranteed_by("laplace(eps=0.1)")}
        tests = scores("a", noise) + scores(CEILING, noise)
        found = by_metric(
            [*measure(table(tests), table([]), seed=0), *guarantee_findings(promised)], GUARANTEE
        )
        assert {one.n_targets for one in found.values()} == {promised["raw, m=9"].everybody}
        assert {(one.n_in, one.n_out, one.low, one.high) for one in found.values()} == {
            (0, 0, None, None)
        }
        assert found["auc"].estimate == promised["raw, m=9"].worst.auc
        assert found["tpr_at_fpr_01pct"].estimate < found["tpr_at_fpr_1pct"].estimate
        assert 0 < found["chance_of_more"].estimate < 1e-4
        assert found["odds_factor"].estimate < found["largest_odds_factor"].estimate
        assert not by_metric(measured(tests), GUARANTEE)

    def test_odds_beyond_any_number_can_be_written(self):
        promised = {"raw, m=9": guaranteed_by("laplace(eps=1000)")}
        tests = scores(CEILING, noise)
        findings = [*measure(table(tests), table([]), seed=0), *guarantee_findings(promised)]
        odds = by_metric(findings, GUARANTEE)["odds_factor"]
        assert odds.estimate is None
        assert "too large" in odds.note
        json.dumps([one.to_json() for one in findings], allow_nan=False)

    def test_an_attack_that_does_better_than_the_best_is_a_fault(self):
        """On the releases that both scored, whoever else scored more."""
        tests = scores("leaking", perfect) + scores("sound", noise) + scores(CEILING, noise)
        early = [row for row in tests if row["attack"] == "sound" or row["release"] < 18]
        for rows in (tests, early):
            found = measured(rows, scores("leaking", same, control=True))
            excess = {one.attack: one for one in found if one.metric == EXCESS}
            assert set(excess) == {"leaking", "sound"}
            assert not excess["leaking"].holds
            assert excess["leaking"].n_in == sum(r["label"] for r in rows if r["attack"] == CEILING)
            assert (excess["sound"].estimate, excess["sound"].holds) == (0, True)
            assert control_holds(found) is False

    def test_attacks_and_limits_share_the_chance_of_a_wrong_rejection(self):
        """Neither the ceiling nor other settings count."""
        alone = scores("a", noise)
        more = alone + scores("b", same) + scores(CEILING, perfect)
        more += scores("c", same, setting="raw, m=5")

        def lows(rows, n_limits):
            found = measure(table(rows), table([]), seed=0, n_limits=n_limits)
            return {
                one.metric: one.low_to_decide
                for one in by_metric(found, "a").values()
                if one.holds is None
            }

        assert lows(more, 1) == lows(alone, 2)
        assert lows(more, 3) == lows(alone, 6)
        for name in ("auc", "accuracy", "pooled_auc"):
            few, many = lows(alone, 1)[name], lows(alone, 6)[name]
            assert many < few <= by_metric(measured(alone), "a")[name].low + 1e-9

    def test_each_look_has_less_error_to_spend(self):
        """For both ends of all that can be limited; what is shown stays as it is."""
        rows = scores("a", noise)

        def ends(look):
            found = measure(table(rows), table([]), seed=0, look=Look(look))
            return by_metric(found, "a")

        first, second = ends(1), ends(2)
        for name in (name for name, metric in METRICS.items() if metric.can_be_limited):
            one, two = first[name], second[name]
            assert (one.estimate, one.low, one.high) == (two.estimate, two.low, two.high)
            assert two.at_least <= one.at_least
            assert two.at_most >= one.at_most
        for name in ("auc", "accuracy"):
            one, two = first[name], second[name]
            assert two.at_least < one.at_least < one.low
            assert two.at_most > one.at_most > one.high

    def test_strict_json(self, two_attacks):
        text = json.dumps([one.to_json() for one in two_attacks], allow_nan=False)
        assert len(json.loads(text)) == len(two_attacks)

    def test_no_scores_no_findings(self):
        assert measured([]) == []

    def test_order_of_rows_does_not_matter(self, rng):
        tests = scores("a", noise) + scores("b", perfect) + scores("c", same)
        controls = scores("a", noise, control=True) + scores("b", same, control=True)
        shuffled = [[rows[i] for i in rng.permutation(len(rows))] for rows in (tests, controls)]
        found, wanted = (
            {(one.attack, one.metric): one.to_json() for one in measured(*rows)}
            for rows in (shuffled, (tests, controls))
        )
        assert found.keys() == wanted.keys()
        # But for the last digits of sums.
        assert all(found[place] == pytest.approx(wanted[place]) for place in wanted)

    def test_one_target(self):
        tests = scores("a", perfect, targets=(4,))
        found = by_metric(measured(tests, scores("a", noise, control=True, targets=(4,))), "a")
        assert found["auc"].estimate == 1
        assert found["auc"].low is None
        assert found[CONTROL].low is not None


class TestKnownAnswers:
    def test_perfect(self, two_attacks):
        found = by_metric(two_attacks, "perfect")
        for metric in ("auc", "pooled_auc", "accuracy", "tpr_at_fpr_10pct"):
            assert found[metric].estimate == 1
        assert found["share_auc_90"].estimate == pytest.approx(1, abs=1e-3)
        # Half of the releases choose a threshold, and the others judge.
        n = len(TARGETS) * N_RELEASES // 4
        most = found["empirical_eps_ceiling"].estimate
        assert most == pytest.approx(eps_ceiling(n, n))
        assert found["empirical_eps"].estimate == most

    def test_always_the_same(self, two_attacks):
        found = by_metric(two_attacks, "same")
        assert found["auc"].estimate == found["accuracy"].estimate == 0.5
        for metric in ("tpr_at_fpr_10pct", "empirical_eps"):
            assert found[metric].estimate == 0
        assert found["share_auc_90"].estimate == pytest.approx(0, abs=1e-3)
        assert (found[CONTROL].low, found[CONTROL].high) == (0.5, 0.5)

    def test_rates_beyond_the_sample_have_no_value(self, two_attacks):
        """60 OUT releases show no rate of 1 in 100."""
        for attack in ("perfect", "same"):
            found = by_metric(two_attacks, attack)
            for metric in ("tpr_at_fpr_1pct", "tpr_at_fpr_01pct"):
                assert (found[metric].estimate, found[metric].low) == (None, None)
                assert "60" in found[metric].note

    def test_decisions_are_by_the_attackers_threshold(self):
        tests = scores("a", perfect, threshold=-100.0)
        found = by_metric(measured(tests), "a")
        assert found["auc"].estimate == 1
        assert found["accuracy"].estimate == 0.5

    def test_a_score_at_the_threshold_is_a_no(self):
        found = by_metric(measured(scores("a", lambda *_: 0.0)), "a")
        assert found["tpr_at_fpr_10pct"].estimate == 0
        says_no = by_metric(measured(scores("a", lambda t, r, label: 0.0 if label else -1.0)), "a")
        assert says_no["accuracy"].estimate == 0.5
        assert says_no["auc"].estimate == 1

    def test_auc_is_the_mean_over_targets(self):
        """Two of six are found without fail, and nothing is known of the others."""
        found = by_metric(
            measured(scores("a", lambda t, r, label: label if t in {11, 19} else 0.0)), "a"
        )
        assert found["auc"].estimate == pytest.approx((2 * 1 + 4 * 0.5) / 6)
        assert found["share_auc_90"].estimate == pytest.approx(2 / 6, abs=1e-3)

    def test_intervals_hold_their_estimates(self, two_attacks):
        for one in two_attacks:
            if one.estimate is not None and one.low is not None and one.high is not None:
                assert one.low <= one.estimate <= one.high


class TestUtility:
    def kept(self, give):
        rows = [
            row | dict.fromkeys(OF_UTILITY, give(row["target"])) for row in scores(CEILING, perfect)
        ]
        return by_metric(measured(rows), UTILITY)

    def test_is_a_mean_over_targets_with_its_interval(self):
        found = self.kept(lambda target: target / 100)
        assert set(found) == set(OF_UTILITY)
        for one in found.values():
            assert one.estimate == pytest.approx(np.mean(TARGETS) / 100)
            assert one.low < one.estimate < one.high
            assert one.n_targets == len(TARGETS)
            assert one.n_in == one.n_out == len(TARGETS) * RELEASES_FOR_UTILITY // 2

    def test_the_same_everywhere_is_known_exactly(self):
        for one in self.kept(lambda _: 1.0).values():
            assert one.low == one.estimate == one.high == 1

    def test_what_is_not_known_is_not_said(self):
        assert self.kept(lambda _: None) == {}
        some = self.kept(lambda target: None if target == TARGETS[0] else 0.25)
        assert some["cells_kept"].estimate == 0.25


class TestControl:
    def controlled(self, give):
        tests = scores("a", noise) + scores("b", noise)
        controls = scores("a", give, control=True) + scores("b", noise, control=True)
        return measured(tests, controls)

    def test_holds_without_a_leak(self):
        findings = self.controlled(noise)
        assert control_holds(findings) is True
        found = by_metric(findings, "a")[CONTROL]
        # Of 24 and 60 scores, an AUC deviates by 0.07.
        assert found.estimate == pytest.approx(0.5, abs=0.14)
        assert found.low < 0.5 < found.high

    @pytest.mark.parametrize("shift", [3, -3])
    def test_fails_with_one(self, shift):
        findings = self.controlled(lambda *which: noise(*which) + shift)
        assert control_holds(findings) is False
        control = by_metric(findings, "a")[CONTROL]
        assert not control.low <= 0.5 <= control.high

    def test_one_leak_of_many_is_enough(self):
        findings = self.controlled(lambda *which: 50.0)
        assert control_holds(findings) is False
        assert control_holds([one for one in findings if one.attack == "b"])

    def test_strong_attacks_are_no_leak(self):
        """An attack that finds every target finds none where there is none."""
        tests = scores("a", lambda *which: noise(*which) + 100 * which[-1])
        findings = measured(tests, scores("a", noise, control=True))
        assert by_metric(findings, "a")["auc"].estimate == 1
        assert control_holds(findings) is True

    def test_ends_of_the_interval_count_as_holding(self, two_attacks):
        (control, *_) = [one for one in two_attacks if one.metric == CONTROL]
        assert control_holds([replace(control, low=0.5, high=0.6)])
        assert not control_holds([replace(control, low=np.nextafter(0.5, 1), high=0.6)])


class TestPerTarget:
    def test_every_target_of_every_attack_once(self, rng):
        tests = scores("a", perfect) + scores("b", same, targets=TARGETS[:2])
        tests += scores("a", lambda t, r, label: label if t > 6 else 0.0, setting="raw, m=5")
        frame = per_target(table([tests[i] for i in rng.permutation(len(tests))]))
        found = {(row["setting"], row["attack"], row["target"]): row for row in frame.to_dicts()}
        assert len(found) == frame.height == 6 + 2 + 6
        for (setting, attack, target), row in found.items():
            assert (row["visits"], row["uniqueness"]) == (10 * target, 1 / target)
            assert row["releases"] == N_RELEASES
            if setting == "raw, m=5":
                assert row["auc"] == (1 if target > 6 else 0.5)
            else:
                assert row["auc"] == (1 if attack == "a" else 0.5)

    def test_their_mean_is_the_finding(self):
        tests = scores("a", noise)
        mean = per_target(table(tests))["auc"].mean()
        assert by_metric(measured(tests), "a")["auc"].estimate == pytest.approx(mean)

    def test_nobody(self):
        assert per_target(table([])).height == 0


@pytest.mark.parametrize("spec", ["raw", "suppress(k=1)", "laplace(eps=1, unit=event)"])
def test_real_audit(spec):
    """The control holds but in 1 % of seeds, and nobody exceeds the ceiling but by chance."""
    traces = simulate("milan-like", seed=7, users=400, days=1, regions=25).traces()
    options = AuditOptions.of(
        mechanisms=spec,
        group_size=40,
        attacks="likelihood-ratio",
        targets=20,
        releases=20,
        seed=1,
    )
    plan = make_plan(options, traces)
    done = {task: score_task(Population.of(traces), plan, task).targets for task in plan.tasks}
    findings = measure(*scores_by_kind(plan, done), seed=plan.seed)
    assert control_holds(findings)
    setting = str(plan.settings[0])
    reached = by_metric(findings, "likelihood-ratio", setting)["auc"]
    ceiling = by_metric(findings, CEILING, setting)["auc"]
    assert reached.low <= ceiling.high
    assert reached.estimate <= ceiling.estimate + (reached.high - reached.low)
    assert (reached.n_targets, reached.n_in, reached.n_out) == (20, 200, 200)
