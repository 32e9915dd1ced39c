"""Policies and verdicts: what is accepted, rejected or left open, and for which reasons."""

from __future__ import annotations

import json
import math
import pickle
import tomllib
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from whosthere.auditing.finding import Finding
from whosthere.auditing.policy import Limit, Policy, Verdict, judge, least_sample
from whosthere.auditing.vocabulary import CEILING, CONTROL, METRICS, glossary
from whosthere.errors import FileError, InputError

AUC = Policy("only AUC", (Limit("auc", 0.6),))
BOTH = Policy("two limits", (Limit("auc", 0.6), Limit("share_auc_90", 0.1)))
LIMITABLE = [name for name, metric in METRICS.items() if metric.can_be_limited]


def found(estimate, low, high, *, attack="a", metric="auc", setting="raw", note=None, n=50):
    return Finding(setting, attack, metric, estimate, low, high, n, 100, 100, note)


def only(findings, policy=AUC, *, trusted=True):
    (verdict,) = judge(findings, policy, trusted=trusted)
    return verdict


class TestDecision:
    @pytest.mark.parametrize(
        ("findings", "decision"),
        [
            ([found(0.7, 0.65, 0.75)], "reject"),
            ([found(0.5, 0.45, 0.55)], "accept"),
            ([found(0.6, 0.55, 0.65)], "cannot tell"),
            # At the limit is not above it.
            ([found(0.65, 0.6, 0.7)], "cannot tell"),
            ([found(0.65, math.nextafter(0.6, 1), 0.7)], "reject"),
            ([found(0.55, 0.5, 0.6)], "accept"),
            ([found(0.55, 0.5, math.nextafter(0.6, 1))], "cannot tell"),
            ([found(0.6, 0.6, 0.6)], "accept"),
            # Without a value or an interval nothing can be accepted.
            ([found(None, None, None, note="not resolvable with n = 100")], "cannot tell"),
            ([found(0.5, None, None)], "cannot tell"),
            ([found(0.5, 0.4, None)], "cannot tell"),
            ([found(0.5, None, 0.55)], "cannot tell"),
            ([found(None, 0.4, 0.55)], "cannot tell"),
            ([found(0.9, None, None)], "cannot tell"),
            ([found(math.nan, math.nan, math.nan)], "cannot tell"),
            # A lower end is enough to reject.
            ([found(0.7, 0.65, None)], "reject"),
            ([found(None, 0.65, None)], "reject"),
            # One attack is enough to reject, all are needed to accept.
            ([found(0.5, 0.45, 0.55), found(0.7, 0.65, 0.75, attack="b")], "reject"),
            ([found(0.5, 0.45, 0.55), found(0.5, 0.45, 0.55, attack="b")], "accept"),
            ([found(0.5, 0.45, 0.55), found(0.6, 0.5, 0.7, attack="b")], "cannot tell"),
            ([found(0.5, 0.45, 0.55), found(None, None, None, attack="b")], "cannot tell"),
            ([found(0.5, 0.5, 0.5), found(0, 0, 0, attack="b", metric="advantage")], "cannot tell"),
            # Said twice, both must hold.
            ([found(0.5, 0.45, 0.55), found(0.6, 0.5, 0.7)], "cannot tell"),
            # The ceiling and the control are not attacks.
            ([found(0.5, 0.45, 0.55), found(0.9, 0.8, 1, attack="omniscient")], "accept"),
            ([found(0.5, 0.45, 0.55), found(0.9, 0.8, 1, metric="control_auc")], "accept"),
            (
                [found(0.5, 0.45, 0.55), found(0.5, 0.4, 0.6, attack="x", metric="control_auc")],
                "accept",
            ),
            ([found(0.5, 0.45, 0.55, attack="omniscient")], "cannot tell"),
            ([found(0.9, 0.8, 1, attack="omniscient")], "cannot tell"),
            # Other metrics than the limited ones decide nothing.
            ([found(0.5, 0.45, 0.55), found(1, 1, 1, metric="advantage")], "accept"),
            ([found(0, 0, 0, metric="advantage")], "cannot tell"),
        ],
    )
    def test_one_limit(self, findings, decision):
        assert only(findings).decision == decision

    @pytest.mark.parametrize(
        ("auc", "share", "decision"),
        [
            ((0.5, 0.45, 0.55), (0, 0, 0.07), "accept"),
            ((0.5, 0.45, 0.55), (0, 0, 0.3), "cannot tell"),
            ((0.5, 0.45, 0.55), (0.3, 0.2, 0.4), "reject"),
            ((0.6, 0.5, 0.7), (0.3, 0.2, 0.4), "reject"),
            ((0.7, 0.65, 0.75), (0, 0, 0.07), "reject"),
            ((0.7, 0.65, 0.75), (None, None, None), "reject"),
            ((0.6, 0.5, 0.7), (0, 0, 0.07), "cannot tell"),
        ],
    )
    def test_two_limits(self, auc, share, decision):
        verdict = only([found(*auc), found(*share, metric="share_auc_90")], BOTH)
        assert verdict.decision == decision

    def test_settings_in_order_of_appearance(self):
        findings = [
            found(0.7, 0.65, 0.75, setting="z"),
            found(0.5, 0.45, 0.55, setting="b"),
            found(0.6, 0.5, 0.7, setting="a"),
            found(0.9, 0.85, 0.95, setting="z", attack="b"),
        ]
        verdicts = judge(findings, AUC)
        assert [v.setting for v in verdicts] == ["z", "b", "a"]
        assert [v.decision for v in verdicts] == ["reject", "accept", "cannot tell"]
        assert [v.strongest for v in verdicts] == ["b", "a", "a"]

    def test_attacks_of_other_settings_are_not_missed(self):
        findings = [
            found(0.5, 0.45, 0.55, setting="x"),
            found(0.5, 0.45, 0.55, setting="y", attack="b"),
        ]
        assert {verdict.decision for verdict in judge(findings, AUC)} == {"accept"}

    @pytest.mark.parametrize("auc", [(0.9, 0.8, 1), (0.5, 0.45, 0.55), (0.6, 0.5, 0.7)])
    def test_nothing_is_decided_if_the_control_failed(self, auc):
        verdict = only([found(*auc), found(*auc, attack="omniscient")], trusted=False)
        assert verdict.decision == "cannot tell"
        (reason,) = verdict.reasons
        assert "control failed" in reason

    @pytest.mark.parametrize("auc", [(0.9, 0.8, 1), (0.5, 0.45, 0.55)])
    def test_nothing_is_decided_without_a_control(self, auc):
        verdict = only([found(*auc)], trusted=None)
        assert verdict.decision == "cannot tell"
        (reason,) = verdict.reasons
        assert reason.startswith("There was no control")

    def test_nothing_measured(self):
        assert judge([], AUC) == []


class TestReasons:
    def test_reject(self):
        findings = [
            found(0.948, 0.925, 0.969, attack="likelihood-ratio"),
            found(0.99, 0.7, 1, attack="other", metric="share_auc_90"),
            found(0.8, 0.78, 0.82, attack="other"),
            found(0.4, 0.3, 0.5, attack="likelihood-ratio", metric="share_auc_90"),
        ]
        verdict = only(findings, BOTH)
        assert verdict.strongest == "likelihood-ratio"
        assert verdict.reasons == (
            "For likelihood-ratio, the strongest attack, the mean AUC is 0.948 (0.925 to 0.969), "
            "above the limit of 0.6.",
            "For other, the share of people with an AUC of 0.9 or more is 0.990 (0.700 to 1.000), "
            "above the limit of 0.1.",
        )

    def test_reject_names_the_violated_limits_only(self):
        findings = [found(0.5, 0.45, 0.55), found(0.4, 0.3, 0.5, metric="share_auc_90")]
        (reason,) = only(findings, BOTH).reasons
        assert "share of people" in reason

    def test_reject_without_a_ceiling(self):
        findings = [found(0.9, 0.8, 1), found(0.95, 0.9, 1, attack="omniscient")]
        assert len(only(findings).reasons) == 1

    def test_reject_without_an_upper_end(self):
        policy = Policy("eps", (Limit("empirical_eps", 1),))
        for estimate in (2.1, None):
            finding = found(estimate, 2.1, None, metric="empirical_eps")
            (reason,) = only([finding], policy).reasons
            assert reason == "For a, the certified eps is at least 2.100, above the limit of 1."

    def test_accept(self):
        findings = [
            found(0.51, 0.5, 0.59, attack="other"),
            found(0.53, 0.5, 0.56, attack="likelihood-ratio"),
            found(0, 0, 0.07, attack="other", metric="share_auc_90"),
            found(0, 0, 0.07, attack="likelihood-ratio", metric="share_auc_90"),
            found(0.58, 0.55, 0.61, attack="omniscient"),
        ]
        verdict = only(findings, BOTH)
        assert verdict.strongest == "likelihood-ratio"
        assert verdict.reasons == (
            "No attack exceeds a limit.",
            "The largest mean AUC is 0.530 (0.500 to 0.560; limit 0.6), by likelihood-ratio.",
            "The largest share of people with an AUC of 0.9 or more is 0.000 (0.000 to 0.070; "
            "limit 0.1), by other.",
            "An attacker who knows where everybody else was would reach a mean AUC of 0.580.",
        )

    @pytest.mark.parametrize(
        "ceiling",
        [
            found(None, None, None, attack="omniscient"),
            found(0.5, 0.4, 0.6, attack="omniscient", metric="tpr_at_fpr_1pct"),
        ],
    )
    def test_ceiling_without_auc(self, ceiling):
        with_ceiling = only([found(0.5, 0.5, 0.55), ceiling])
        assert with_ceiling.reasons == only([found(0.5, 0.5, 0.55)]).reasons

    @pytest.mark.parametrize(
        ("n", "most", "help_"),
        [
            (10, 0.1, "Too few targets (10): at least 36 are needed to show 0.1 or less."),
            (35, 0.1, "Too few targets (35): at least 36 are needed to show 0.1 or less."),
            (36, 0.1, "More targets are needed to decide."),
            (10, 0, "No number of targets can show exactly 0."),
        ],
    )
    def test_few_targets(self, n, most, help_):
        policy = Policy("share", (Limit("share_auc_90", most),))
        findings = [
            found(0, 0, 0.2, metric="share_auc_90", attack="weak", n=n),
            found(0, 0, 0.308, metric="share_auc_90", attack="likelihood-ratio", n=n),
        ]
        assert only(findings, policy).reasons == (
            "For likelihood-ratio, the share of people with an AUC of 0.9 or more may be as high "
            f"as 0.308 (limit {most:g}). {help_}",
        )

    def test_few_releases(self):
        policy = Policy("tpr", (Limit("tpr_at_fpr_1pct", 0.01),))
        (reason,) = only([found(0, 0, 0.036, metric="tpr_at_fpr_1pct")], policy).reasons
        assert reason.endswith(
            "Too few releases with a target (100): at least 368 are needed to show 0.01 or less."
        )

    def test_undecided_auc_with_its_ceiling(self):
        findings = [found(0.58, 0.55, 0.61), found(0.6, 0.5, 0.7, attack="omniscient")]
        assert only(findings).reasons == (
            "For a, the mean AUC may be as high as 0.610 (limit 0.6). More targets or releases are "
            "needed to decide.",
            "An attacker who knows where everybody else was would reach a mean AUC of 0.600.",
        )

    @pytest.mark.parametrize(
        ("finding", "what"),
        [
            (found(None, None, None, note="with n = 100"), "is not known (with n = 100)"),
            (found(None, 0.5, 0.55), "is not known"),
            (found(None, 0.5, 0.6), "is not known"),
            (found(0.5, None, None), "has no confidence interval"),
            (found(0.5, None, None, note="n = 1"), "has no confidence interval (n = 1)"),
            (found(0.5, 0.4, None), "is at least 0.400, with no upper bound"),
            (found(0.5, 0.4, 0.6, metric="accuracy"), "was not measured"),
        ],
    )
    def test_open_ends(self, finding, what):
        assert only([finding]).reasons == (
            f"For a, the mean AUC {what}, so the audit cannot show that it is 0.6 or less.",
        )

    def test_the_attack_with_the_open_end_is_named(self):
        (reason,) = only([found(0.5, 0.45, 0.55), found(None, None, None, attack="b")]).reasons
        assert reason.startswith("For b, the mean AUC is not known")

    def test_numbers_close_to_the_limit_show_the_difference(self):
        (reason,) = only([found(0.7, 0.60004, 0.8)]).reasons
        assert "(0.60004 to 0.800), above the limit of 0.6" in reason
        (_, reason) = only([found(0.6, 0.5, 0.6)]).reasons
        assert "0.600 (0.500 to 0.600; limit 0.6)" in reason

    def test_only_the_ceiling_was_measured(self):
        verdict = only([found(0.5, 0.45, 0.55, attack="omniscient")])
        assert verdict.strongest is None
        assert verdict.reasons[0] == "No attack was measured in this setting."
        assert "would reach a mean AUC of 0.500" in verdict.reasons[1]


class TestStrongest:
    def test_largest_mean_auc_not_largest_interval(self):
        findings = [found(0.7, 0.1, 1), found(0.8, 0.75, 0.85, attack="b")]
        assert only(findings).strongest == "b"

    def test_first_of_equals(self):
        findings = [found(0.7, 0.1, 1, attack="z"), found(0.7, 0.1, 1, attack="a")]
        assert only(findings).strongest == "z"

    def test_none_without_values(self):
        assert only([found(None, None, None)]).strongest is None
        assert only([found(0.9, 0.8, 1, metric="accuracy")]).strongest is None


def test_verdict_to_json():
    verdict = Verdict("raw", "reject", ("Because.",), None)
    expected = {"setting": "raw", "decision": "reject", "reasons": ["Because."], "strongest": None}
    assert verdict.to_json() == expected
    assert json.loads(json.dumps(verdict.to_json())) == expected


def test_verdict_in_short_and_in_notebooks():
    verdict = Verdict("raw, m<5", "cannot tell", ("Too few.", "a & b."), None)
    assert repr(verdict) == "<Verdict 'cannot tell' on 'raw, m<5'>"
    assert verdict._repr_html_() == (
        "<div><strong>CANNOT TELL</strong> raw, m&lt;5"
        "<ul><li>Too few.</li><li>a &amp; b.</li></ul></div>"
    )


class TestLeastSample:
    @pytest.mark.parametrize("limit", [0.9, 0.5, 0.2, 0.1, 0.05, 0.013])
    @pytest.mark.parametrize("confidence", [0.9, 0.95, 0.999])
    def test_against_clopper_pearson(self, limit, confidence):
        def upper(n):
            return binomtest(0, n).proportion_ci(confidence, method="exact").high

        n = least_sample(limit, confidence=confidence)
        assert upper(n) <= limit
        assert n == 1 or upper(n - 1) > limit

    @pytest.mark.parametrize("n", [1, 2, 10, 36, 1000])
    def test_a_limit_that_is_just_reached(self, n):
        assert abs(least_sample(1 - 0.025 ** (1 / n)) - n) <= 1

    def test_known_values(self):
        assert [least_sample(limit) for limit in (1, 0.975, 0.1, 0.01)] == [1, 1, 36, 368]
        assert least_sample(1e-12) == pytest.approx(-math.log(0.025) * 1e12)

    @pytest.mark.parametrize("limit", [0, -0.1, 1.1, math.nan])
    def test_refusals(self, limit):
        with pytest.raises(InputError, match="no sample shows"):
            least_sample(limit)
        for confidence in (0, 1, math.nan):
            with pytest.raises(InputError):
                least_sample(0.1, confidence=confidence)


class TestPolicy:
    def test_default(self):
        policy = Policy.default()
        assert policy.to_json() == {
            "name": "whosthere default",
            "limits": {"auc": 0.6, "tpr_at_fpr_1pct": 0.1, "share_auc_90": 0.1},
        }

    def test_default_is_packaged_and_explained(self):
        text = (files("whosthere.auditing") / "default_policy.toml").read_text()
        assert set(tomllib.loads(text)["limits"]) <= set(LIMITABLE)
        for name in LIMITABLE:
            assert name in text
        assert f"At least {least_sample(0.1)} targets" in text

    def test_read(self, tmp_path):
        path = tmp_path / "strict.toml"
        path.write_text('name = "ours"\n[limits]\nempirical_eps = 20\nauc = 1')
        assert Policy.read(path) == Policy("ours", (Limit("empirical_eps", 20), Limit("auc", 1)))

    @pytest.mark.parametrize("head", ["", 'name = ""\n'])
    def test_named_after_its_file(self, tmp_path, head):
        path = tmp_path / "strict.toml"
        path.write_text(f"{head}[limits]\nauc = 0.55")
        assert Policy.read(path).name == "strict"

    def test_json_round_trip(self, tmp_path):
        policy = Policy.default()
        table = json.loads(json.dumps(policy.to_json()))
        path = tmp_path / "copy.toml"
        limits = "\n".join(f"{metric} = {most}" for metric, most in table["limits"].items())
        path.write_text(f'name = "{table["name"]}"\n[limits]\n{limits}')
        assert Policy.read(path) == policy

    @pytest.mark.parametrize(
        ("text", "problem", "fix"),
        [
            ("", "the policy has no limits", "Limit at least one metric, such as auc to 0.6"),
            ("[limits]", "the policy has no limits", "Limit at least one metric"),
            ("[limit]\nauc = 0.6", "there is no key 'limit'", "Did you mean 'limits'?"),
            ("auc = 0.6", "there is no key 'auc'", "Known: name, limits"),
            ("limits = 0.6", "limits is the number 0.6, not a table of numbers", "Write it like"),
            ("name = 3", "name is the number 3, not text", "Write it like"),
            (
                "[limits]\ntpr_at_fpr_1 = 0.1",
                "there is no metric 'tpr_at_fpr_1' to limit",
                "Did you mean 'tpr_at_fpr_1pct'?",
            ),
            ("[limits]\ncontrol_auc = 0.6", "control_auc cannot be limited", "These can be: auc,"),
            ("[limits]\nauc = 60", "the limit of auc cannot be 60", "Give a number from 0 to 1."),
            ("[limits]\nauc = -0.1", "the limit of auc cannot be -0.1", "from 0 to 1."),
            ("[limits]\nauc = nan", "the limit of auc cannot be nan", "from 0 to 1."),
            (
                "[limits]\nempirical_eps = -1",
                "the limit of empirical_eps cannot be -1",
                "Give a number of 0 or more.",
            ),
            ("[limits]\nempirical_eps = inf", "cannot be inf", "of 0 or more."),
            ('[limits]\nauc = "60 %"', "limits.auc is the text '60 %', not a number", "Write it"),
            ("[limits]\nauc = true", "limits.auc is true, not a number", "Write it"),
            ("[limits]\nauc = 0.6 or so", "is not valid TOML", "Write lines like"),
        ],
    )
    def test_bad_files(self, tmp_path, text, problem, fix):
        path = tmp_path / "bad.toml"
        path.write_text(text)
        with pytest.raises(InputError) as error:
            Policy.read(path)
        assert str(error.value).startswith(f"{path}: ")
        assert problem in str(error.value)
        assert fix in str(error.value)

    def test_missing_file(self, tmp_path):
        with pytest.raises(FileError, match="does not exist"):
            Policy.read(tmp_path / "none.toml")

    def test_from_a_mapping(self):
        policy = Policy(name="mine", limits={"auc": 0.6, "tpr_at_fpr_1pct": 0.05})
        assert policy.limits == (Limit("auc", 0.6), Limit("tpr_at_fpr_1pct", 0.05))
        same = Policy("mine", iter(policy.limits))
        assert policy == same
        assert hash(policy) == hash(same)
        assert policy != Policy("other", policy.limits)
        assert policy != Policy("mine", {"auc": 0.6})
        assert replace(policy, name="other") == Policy("other", policy.limits)
        assert pickle.loads(pickle.dumps(policy)) == policy

    def test_cannot_be_changed(self):
        with pytest.raises(FrozenInstanceError):
            AUC.name = "other"
        with pytest.raises(FrozenInstanceError):
            AUC.limits[0].most = 1
        with pytest.raises(FrozenInstanceError):
            only([found(0.5, 0.45, 0.55)]).decision = "reject"

    @pytest.mark.parametrize(
        ("limits", "problem", "fix"),
        [
            ({}, "the policy has no limits", "auc to 0.6"),
            ((), "the policy has no limits", "auc to 0.6"),
            ({"auc": "0.6"}, "the limit of auc cannot be '0.6'", "a number from 0 to 1"),
            ({"auc": True}, "the limit of auc cannot be True", "a number from 0 to 1"),
            ({"auc": None}, "the limit of auc cannot be None", "a number from 0 to 1"),
            ({"auk": 0.6}, "there is no metric 'auk' to limit", "Did you mean 'auc'?"),
            ({1: 0.6}, "there is no metric 1 to limit", "Known: auc"),
            ("auc", "'auc' cannot be the limits of a policy", "such as {'auc': 0.6}"),
            (("auc", 0.6), "cannot be the limits of a policy", "such as {'auc': 0.6}"),
            (0.6, "0.6 cannot be the limits of a policy", "such as {'auc': 0.6}"),
        ],
    )
    def test_bad_limits(self, limits, problem, fix):
        with pytest.raises(InputError) as error:
            Policy("mine", limits)
        assert problem in error.value.problem
        assert fix in error.value.fix

    def test_numbers_of_other_kinds(self):
        limit = Limit("auc", np.float32(0.5))
        assert type(limit.most) is float
        assert limit == Limit("auc", Fraction(1, 2))

    def test_of_whatever_stands_for_one(self, tmp_path):
        path = tmp_path / "strict.toml"
        path.write_text("limits.auc = 0.55")
        read = Policy("strict", {"auc": 0.55})
        assert Policy.of(path) == Policy.of(str(path)) == Policy.read(str(path)) == read
        assert Policy.of() == Policy.of(None) == Policy.default()
        assert Policy.of(AUC) is AUC
        assert Policy.of({"auc": 0.55}) == Policy("custom", {"auc": 0.55})
        with pytest.raises(FileError, match="does not exist"):
            Policy.of(str(tmp_path / "none.toml"))

    def test_shown_in_short_and_in_notebooks(self):
        policy = Policy("<mine>", {"auc": 0.6, "empirical_eps": 2})
        assert repr(policy) == "<Policy '<mine>': auc <= 0.6, empirical_eps <= 2>"
        html = policy._repr_html_()
        assert "Policy: &lt;mine&gt;" in html
        assert "<td>mean AUC</td><td>0.6</td>" in html
        assert "<td>certified eps</td><td>2</td>" in html

    def test_limited_twice(self):
        with pytest.raises(InputError, match="auc is limited twice"):
            Policy("p", (Limit("auc", 0.6), Limit("accuracy", 0.6), Limit("auc", 0.7)))

    @pytest.mark.parametrize("metric", LIMITABLE)
    def test_ends_of_the_range_are_allowed(self, metric):
        largest = METRICS[metric].largest
        assert Limit(metric, 0).most == 0
        assert Limit(metric, 1 if largest is None else largest)


class TestVocabulary:
    def test_names(self):
        assert list(METRICS) == [
            "auc",
            "accuracy",
            "advantage",
            "tpr_at_fpr_10pct",
            "tpr_at_fpr_1pct",
            "tpr_at_fpr_01pct",
            "empirical_eps",
            "empirical_eps_ceiling",
            "share_auc_90",
            "auc_fewest_visits",
            "auc_most_visits",
            "auc_least_unique",
            "auc_most_unique",
            "risk_visits_correlation",
            "risk_uniqueness_correlation",
            "control_auc",
        ]
        assert all(name == metric.name for name, metric in METRICS.items())
        assert len({metric.words for metric in METRICS.values()}) == len(METRICS)

    def test_explanations_are_whole_sentences(self):
        for _, explanation in glossary([*METRICS, CEILING]):
            assert explanation[0].isupper()
            assert explanation.endswith(".")

    def test_glossary(self):
        auc, control = METRICS["auc"], METRICS[CONTROL]
        found = glossary(["auc", CEILING, "auc", CONTROL])
        assert [words for words, _ in found] == ["mean AUC", "omniscient", "AUC of the control"]
        assert found[0] == (auc.words, auc.explanation)
        assert "knows where everybody else was" in found[1][1]
        assert found[2] == (control.words, control.explanation)
        assert glossary([]) == []
        with pytest.raises(InputError, match=r"there is no metric 'auk'\. Did you mean 'auc'"):
            glossary(["auk"])


METRIC_NAMES = st.sampled_from(["auc", "tpr_at_fpr_1pct", "share_auc_90", "empirical_eps"])
LEVELS = st.integers(0, 20).map(lambda n: n / 20)  # coarse, so that ends meet limits


@st.composite
def some_findings(draw):
    attack = draw(st.sampled_from(["a", "b", "c", "omniscient"]))
    low, estimate, high = sorted(draw(st.tuples(LEVELS, LEVELS, LEVELS)))
    lost = draw(st.sets(st.sampled_from(["low", "estimate", "high"]), max_size=3))
    full = found(estimate, low, high, attack=attack, metric=draw(METRIC_NAMES))
    return replace(full, **dict.fromkeys(lost)) if draw(st.booleans()) else full


@st.composite
def some_policies(draw):
    limits = draw(st.dictionaries(METRIC_NAMES, LEVELS, min_size=1))
    return Policy("p", tuple(Limit(metric, most) for metric, most in limits.items()))


FINDINGS = st.lists(some_findings(), min_size=1, max_size=12)
ORDER = {"accept": 0, "cannot tell": 1, "reject": 2}


def rank(findings, policy):
    return ORDER[only(findings, policy).decision]


def worse(finding, shift):
    """Move what is known of the interval up."""
    up = {"estimate": finding.estimate, "low": finding.low, "high": finding.high}
    return replace(finding, **{k: v if v is None else min(v + shift, 1) for k, v in up.items()})


class TestMonotonicity:
    @given(FINDINGS, some_policies(), st.data())
    def test_worse_intervals(self, findings, policy, data):
        shifts = data.draw(st.lists(LEVELS, min_size=len(findings), max_size=len(findings)))
        worsened = [worse(f, shift) for f, shift in zip(findings, shifts, strict=True)]
        assert rank(worsened, policy) >= rank(findings, policy)

    @given(FINDINGS, some_policies(), st.data())
    def test_tighter_limits(self, findings, policy, data):
        tighter = tuple(
            Limit(limit.metric, data.draw(LEVELS) * limit.most) for limit in policy.limits
        )
        assert rank(findings, Policy("tighter", tighter)) >= rank(findings, policy)

    @given(FINDINGS, some_policies())
    def test_more_limits(self, findings, policy):
        fewer = Policy("fewer", policy.limits[:1])
        assert rank(findings, policy) >= rank(findings, fewer)

    @given(FINDINGS, some_policies())
    def test_a_lost_value_is_never_accepted(self, findings, policy):
        lost = found(None, None, None, metric=policy.limits[0].metric)
        assert only([*findings, lost], policy).decision != "accept"

    @given(FINDINGS, some_policies(), st.randoms())
    def test_order_does_not_matter(self, findings, policy, rng):
        shuffled = rng.sample(findings, len(findings))
        assert rank(shuffled, policy) == rank(findings, policy)

    @given(FINDINGS, some_policies(), st.booleans())
    def test_every_verdict_says_why(self, findings, policy, trusted):
        verdict = only(findings, policy, trusted=trusted)
        assert verdict.reasons
        for reason in verdict.reasons:
            assert reason.endswith(".")
            assert "None" not in reason
            assert "inf" not in reason
        assert trusted or verdict.decision == "cannot tell"
