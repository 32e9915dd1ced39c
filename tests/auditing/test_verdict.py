"""Verdicts: what is accepted, rejected or left open, and for which reasons."""

from __future__ import annotations

import json
import math
from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from whosthere.adversary.attacks import Attack
from whosthere.auditing.judging import judge
from whosthere.auditing.policy import Limit, Policy
from whosthere.auditing.prospects import obstacles
from whosthere.auditing.reasons import chance_in_words, targets_needed
from whosthere.auditing.verdict import Verdict
from whosthere.game.plan import Plan, TargetChoice
from whosthere.inference.finding import Finding
from whosthere.inference.looks import FIRST_LOOK, Look
from whosthere.inference.metrics import least_people
from whosthere.inference.vocabulary import CEILING, EXCESS, GUARANTEE, MUST_BE, STRONGEST, UTILITY

AUC = Policy("only AUC", {"auc": 0.6})
BOTH = Policy("two limits", {"auc": 0.6, "share_auc_90": 0.1})
KNOWN_TODAY = (
    "So this is accepted by the attacks known today, not because no attack could ever do better."
)


TOO_FEW = "are too few: the next look needs at least 49 to show 0.1 or less."


def found(estimate, low, high, *, attack=STRONGEST, metric="auc", setting="raw", note=None, n=50):
    return Finding(setting, attack, metric, estimate, low, high, n, 100, 100, note)


def only(findings, policy=AUC, **known):
    (verdict,) = judge(findings, policy, **known)
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
            ([found(0.5, 0.5, 0.5), found(0, 0, 0, attack="b", metric="accuracy")], "cannot tell"),
            # Said twice, both must hold.
            ([found(0.5, 0.45, 0.55), found(0.6, 0.5, 0.7)], "cannot tell"),
            # The ceiling and the control are not attacks.
            ([found(0.5, 0.45, 0.55), found(0.9, 0.8, 1, attack=CEILING)], "accept"),
            ([found(0.5, 0.45, 0.55), found(0.9, 0.9, 0.9, attack=GUARANTEE)], "accept"),
            ([found(0.5, 0.45, 0.55, attack=GUARANTEE)], "cannot tell"),
            ([found(0.5, 0.45, 0.55), found(0.9, 0.8, 1, metric="control_auc")], "accept"),
            ([found(0.5, 0.45, 0.55), found(0, 0, 0, metric="law_control")], "accept"),
            (
                [found(0.5, 0.45, 0.55), found(0.5, 0.4, 0.6, attack="x", metric="control_auc")],
                "accept",
            ),
            ([found(0.5, 0.45, 0.55, attack=CEILING)], "cannot tell"),
            ([found(0.9, 0.8, 1, attack=CEILING)], "cannot tell"),
            # Other metrics than the limited ones decide nothing.
            ([found(0.5, 0.45, 0.55), found(1, 1, 1, metric="accuracy")], "accept"),
            ([found(0, 0, 0, metric="accuracy")], "cannot tell"),
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
        assert [v.strongest for v in verdicts] == ["b", STRONGEST, STRONGEST]

    def test_attacks_of_other_settings_are_not_missed(self):
        findings = [
            found(0.5, 0.45, 0.55, setting="x"),
            found(0.5, 0.45, 0.55, setting="y"),
            found(0.5, 0.45, 0.55, setting="y", attack="b"),
        ]
        assert {verdict.decision for verdict in judge(findings, AUC)} == {"accept"}

    @pytest.mark.parametrize("auc", [(0.9, 0.8, 1), (0.5, 0.45, 0.55), (0.6, 0.5, 0.7)])
    def test_nothing_is_decided_if_the_control_failed(self, auc):
        verdict = only([found(*auc), found(*auc, attack=CEILING)], trusted=False)
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


class TestAcceptance:
    """More than limits that are kept is needed to accept."""

    def test_needs_the_strongest_attack(self):
        weak = [found(0.5, 0.45, 0.55, attack="b"), found(0.5, 0.45, 0.55, attack="c")]
        verdict = only(weak)
        assert verdict.decision == "cannot tell"
        assert verdict.reasons[0].startswith("likelihood-ratio, the strongest attack known, was")
        assert verdict.reasons[1:] == only([*weak, found(0.5, 0.45, 0.55)]).reasons
        assert only([*weak, found(0.5, 0.45, 0.55)]).decision == "accept"

    @pytest.mark.parametrize("name", ["likelihood-ratio-other", "likelihood", CEILING])
    def test_nothing_else_stands_for_it(self, name):
        findings = [found(0.5, 0.45, 0.55, attack="b"), found(0.5, 0.45, 0.55, attack=name)]
        assert only(findings).decision == "cannot tell"

    def test_must_be_measured_in_the_same_setting(self):
        findings = [found(0.5, 0.45, 0.55), found(0.5, 0.45, 0.55, setting="x", attack="b")]
        assert [v.decision for v in judge(findings, AUC)] == ["accept", "cannot tell"]

    def test_is_not_needed_to_reject(self):
        assert only([found(0.7, 0.65, 0.75, attack="b")]).decision == "reject"

    @pytest.mark.parametrize(
        ("auc", "before", "after"),
        [
            ((0.5, 0.45, 0.55), "accept", "cannot tell"),
            ((0.7, 0.65, 0.75), "reject", "reject"),
            ((0.6, 0.55, 0.65), "cannot tell", "cannot tell"),
        ],
    )
    def test_a_failed_task_blocks_acceptance_but_not_rejection(self, auc, before, after):
        findings = [found(*auc), found(*auc, setting="other")]
        verdicts = judge(findings, AUC, incomplete={"raw"})
        assert [v.decision for v in verdicts] == [after, before]
        failed = "Some tasks of this setting failed, so some people were not attacked."
        assert (verdicts[0].reasons[0] == failed) == (before == "accept")
        assert failed not in verdicts[1].reasons

    @given(st.floats(0, 1))
    def test_the_ceiling_decides_nothing_but_is_said(self, auc):
        verdict = only([found(0.5, 0.45, 0.55), found(auc, auc, auc, attack=CEILING)])
        assert verdict.decision == "accept"
        assert (KNOWN_TODAY in verdict.reasons) == (auc > 0.6)
        assert any(f"could reach a mean AUC of {auc:.3f}" in one for one in verdict.reasons)

    def test_all_limits_that_the_ceiling_is_above_are_named(self):
        findings = [
            found(0.5, 0.45, 0.55),
            found(0, 0, 0.07, metric="share_auc_90"),
            found(0.9, 0.8, 1, attack=CEILING),
            found(0.4, 0.3, 0.5, attack=CEILING, metric="share_auc_90"),
        ]
        verdict = only(findings, BOTH)
        assert verdict.decision == "accept"
        assert verdict.reasons[-2:] == (
            "Somebody who knew the other people of the group could reach a mean AUC of 0.900, "
            "above the limit of the mean AUC and the share of people with an AUC of 0.9 or more.",
            KNOWN_TODAY,
        )


class TestEndsThatDecide:
    @pytest.mark.parametrize(
        ("low", "to_decide", "decision"),
        [
            (0.65, 0.61, "reject"),
            (0.65, 0.6, "cannot tell"),
            (0.65, 0.59, "cannot tell"),
            (0.65, None, "reject"),
            (0.59, None, "cannot tell"),
        ],
    )
    def test_the_lower_end_that_decides_rejects(self, low, to_decide, decision):
        finding = replace(found(0.7, low, 0.75), low_to_decide=to_decide)
        assert only([finding]).decision == decision

    @pytest.mark.parametrize(
        ("high", "to_decide", "decision"),
        [
            (0.58, 0.59, "accept"),
            (0.58, 0.6, "accept"),
            (0.58, 0.61, "cannot tell"),
            (0.58, None, "accept"),
            (0.61, None, "cannot tell"),
        ],
    )
    def test_the_upper_end_that_decides_accepts(self, high, to_decide, decision):
        finding = replace(found(0.55, 0.5, high), high_to_decide=to_decide)
        assert only([finding]).decision == decision

    def test_the_end_that_decides_is_shown(self):
        shown = found(0.641, 0.607, 0.679)
        (reason, *_) = only([replace(shown, low_to_decide=0.5975)]).reasons
        assert "is 0.641 (0.607 to 0.679), above the limit of 0.6. To reject, " in reason
        assert "that is 0.598." in reason
        (reason,) = only([replace(shown, low_to_decide=0.603)]).reasons
        assert reason.endswith(
            "is 0.641 (0.607 to 0.679), above the limit of 0.6; lower bound that decides: 0.603."
        )
        (reason,) = only([replace(found(0.57, 0.55, 0.59), high_to_decide=0.601)]).reasons
        assert "is 0.570 (0.550 to 0.590), within the limit of 0.6. To accept, " in reason
        assert "that is 0.601." in reason
        (reason,) = only([replace(found(0.57, 0.55, 0.61), high_to_decide=0.62)]).reasons
        assert "may be as high as 0.620 (limit 0.6)" in reason
        (reason,) = only([shown]).reasons
        assert reason.endswith("is 0.641 (0.607 to 0.679), above the limit of 0.6.")

    def test_what_is_above_by_itself_is_said_before_what_may_be(self):
        by_itself = replace(found(0.65, 0.61, 0.68), low_to_decide=0.59)
        (reason, *_) = only([found(0.6, 0.5, 0.7, attack="b"), by_itself]).reasons
        assert "0.590" in reason

    def test_it_does_not_help_to_accept(self):
        finding = replace(found(0.58, 0.5, 0.61), low_to_decide=0.1)
        assert only([finding]).decision == "cannot tell"

    def test_a_later_look_says_so(self):
        (first,) = judge([found(0.5, 0.45, 0.55)], AUC)
        (later,) = judge([found(0.5, 0.45, 0.55)], AUC, look=Look(3))
        assert (first.look, later.look) == (1, 3)
        assert "look" not in f"{first.headline} {first.reasons}"
        assert later.headline.endswith("(look 3)")
        *others, said = later.reasons
        assert tuple(others) == first.reasons
        assert said.startswith("This is look 3: ")
        assert "at most 2.5 %" in said
        assert "may spend 0.31 %" in said


def promised(auc, tpr, odds, more=0.0, largest=None):
    values = {
        "auc": auc,
        "tpr_at_fpr_1pct": tpr,
        "odds_factor": odds,
        "chance_of_more": more,
        "largest_odds_factor": largest,
    }
    return [found(v, None, None, attack=GUARANTEE, metric=name) for name, v in values.items()]


class TestGuaranteed:
    def test_without_any(self):
        for known in ([], promised(0.7, 0.03, 4.2)[1:]):
            assert only([found(0.5, 0.45, 0.55), *known]).guaranteed == (
                "The mechanism guarantees nothing about whether a person is in.",
            )

    @pytest.mark.parametrize("odds", [1.0, 4.2, 1000.0])
    def test_strong(self, odds):
        """Bounds are rounded up: a smaller number would promise too much."""
        (said,) = only([found(0.5, 0.45, 0.55), *promised(0.7123, 0.0341, odds)]).guaranteed
        assert f"multiplies the odds that a person is in by at most {odds:,.1f}, for every" in said
        assert "No attack exceeds an AUC of 0.713 for anybody." in said
        assert "nobody finds more than 3.5% of the people" in said
        assert "except" not in said

    def test_a_chance_of_more_is_said(self):
        (said,) = only([found(0.5, 0.45, 0.55), *promised(0.7, 0.03, 4.2, 5.2e-5)]).guaranteed
        assert "by at most 4.2, for everybody who may be in it, except with a chance of" in said
        for largest, never in ((7.34, "5.2e-05 (and never by more than 7.4)."), (1e5, "5.2e-05.")):
            given = promised(0.7, 0.03, 4.2, 5.2e-5, largest)
            assert never in only([found(0.5, 0.45, 0.55), *given]).guaranteed[0]
        assert "at most 5.2e-05." in said

    @pytest.mark.parametrize(
        ("chance", "said"), [(5.21e-5, "5.3e-05"), (0.0991, "0.1"), (0.3, "0.3"), (1.0, "1")]
    )
    def test_a_chance_is_rounded_up(self, chance, said):
        assert chance_in_words(chance) == said

    @pytest.mark.parametrize("odds", [1000.1, 1e30, None])
    def test_weak(self, odds):
        (said,) = only([found(0.5, 0.45, 0.55), *promised(0.9991, 0.99, odds)]).guaranteed
        assert "may multiply the odds of being in by more than 1,000, which promises next" in said
        assert "an AUC of 1.000 for anybody" in said

    @pytest.mark.parametrize("trusted", [True, False, None])
    def test_is_said_whatever_was_decided(self, trusted):
        findings = [found(0.9, 0.8, 1), *promised(0.7, 0.03, 4.2)]
        assert "4.2" in only(findings, trusted=trusted).guaranteed[0]

    def test_decides_nothing(self):
        findings = [found(0.5, 0.45, 0.55), *promised(1.0, 1.0, None)]
        assert only(findings).decision == "accept"


class TestMeaning:
    @pytest.mark.parametrize(
        ("tpr", "prior", "size", "right", "many"),
        [
            (0.5, 0.5, 1000, "98%", "50.0% of the people in a release, about 500 of 1,000."),
            (0.01, 0.5, 200, "50%", "1.0% of the people in a release, about 2 of 200."),
            (0.2, 0.01, 50, "17%", "20.0% of the people in a release, about 10 of 50."),
            (0.99, 0.01, 100, "50%", "99.0% of the people in a release, about 99 of 100."),
            (0.0, 0.5, 100, "0%", "0.0% of the people in a release, about 0 of 100."),
            (1.0, 0.9, None, "100%", "100.0% of the people in a release."),
        ],
    )
    def test_known_answers(self, tpr, prior, size, right, many):
        policy = Policy("p", {"auc": 0.6}, prior)
        findings = [found(0.5, 0.4, 0.55), found(tpr, None, None, metric="tpr_at_fpr_1pct")]
        known = {} if size is None else {"raw": {"group_size": size}, "other": {"group_size": 7}}
        (said,) = only(findings, policy, known=known).meaning
        assert said.startswith(f"At a false-alarm rate of 1 %, {STRONGEST} finds {many}")
        assert said.endswith(f"are in, {right} of those whom it names are.")
        assert f"If {prior:.0%} of the people in question" in said

    @given(st.floats(0, 1), st.floats(0.001, 0.999))
    def test_precision_is_bayes(self, tpr, prior):
        policy = Policy("p", {"auc": 0.6}, prior)
        (said,) = only([found(tpr, 0, 1, metric="tpr_at_fpr_1pct")], policy).meaning
        precision = prior * tpr / (prior * tpr + (1 - prior) * 0.01)
        assert f"are in, {precision:.0%} of those" in said

    def test_the_best_attack_and_no_other_line(self):
        findings = [
            found(0.1, 0, 1, metric="tpr_at_fpr_1pct"),
            found(0.3, 0, 1, metric="tpr_at_fpr_1pct", attack="b"),
            found(None, None, None, metric="tpr_at_fpr_1pct", attack="c"),
            found(0.9, 0, 1, metric="tpr_at_fpr_1pct", attack=CEILING),
            found(0.8, None, None, metric="tpr_at_fpr_1pct", attack=GUARANTEE),
        ]
        (said,) = only(findings).meaning
        assert ", b finds 30.0% (0.0% to 100.0%) of" in said

    def test_with_its_interval_and_what_the_attacker_knows(self):
        tpr = found(0.2, 0.1, 0.3, metric="tpr_at_fpr_1pct")
        verdict = only([tpr], known={"raw": {"group_size": 500, "knows": "half of their visits"}})
        (said,) = verdict.meaning
        assert "20.0% (10.0% to 30.0%)" in said
        assert "about 100 (50 to 150) of 500" in said
        assert "which knows half of their visits" in said
        assert verdict.knows == verdict.to_json()["knows"] == "half of their visits"

    def test_nothing_known_nothing_said(self):
        assert only([found(0.5, 0.4, 0.55)]).meaning == ()
        assert only([found(None, None, None, metric="tpr_at_fpr_1pct")]).meaning == ()


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
        findings = [found(0.9, 0.8, 1), found(0.95, 0.9, 1, attack=CEILING)]
        assert len(only(findings).reasons) == 1

    def test_reject_without_an_upper_end(self):
        policy = Policy("eps", {"empirical_eps": 1})
        for estimate in (2.1, None):
            finding = found(estimate, 2.1, None, metric="empirical_eps")
            (reason,) = only([finding], policy).reasons
            assert (
                reason
                == f"For {STRONGEST}, the certified eps is at least 2.100, above the limit of 1."
            )

    def test_accept(self):
        findings = [
            found(0.51, 0.5, 0.59, attack="other"),
            found(0.53, 0.5, 0.56, attack="likelihood-ratio"),
            found(0, 0, 0.07, attack="other", metric="share_auc_90"),
            found(0, 0, 0.07, attack="likelihood-ratio", metric="share_auc_90"),
            found(0.58, 0.55, 0.61, attack=CEILING),
        ]
        verdict = only(findings, BOTH)
        assert verdict.strongest == "likelihood-ratio"
        assert verdict.reasons == (
            "No attack exceeds a limit.",
            "The largest mean AUC is 0.530 (0.500 to 0.560; limit 0.6), by likelihood-ratio.",
            "The largest share of people with an AUC of 0.9 or more is 0.000 (0.000 to 0.070; "
            "limit 0.1), by other.",
            "Somebody who knew the other people of the group could reach a mean AUC of 0.580, "
            "within the limits.",
        )

    @pytest.mark.parametrize(
        "ceiling",
        [
            found(None, None, None, attack=CEILING),
            found(0.5, 0.4, 0.6, attack=CEILING, metric="tpr_at_fpr_1pct"),
        ],
    )
    def test_ceiling_without_auc(self, ceiling):
        with_ceiling = only([found(0.5, 0.5, 0.55), ceiling])
        assert with_ceiling.reasons == only([found(0.5, 0.5, 0.55)]).reasons

    @pytest.mark.parametrize(
        ("n", "most", "help_"),
        [
            (10, 0.1, f"10 targets {TOO_FEW}"),
            (48, 0.1, f"48 targets {TOO_FEW}"),
            (
                49,
                0.1,
                "About 180 targets instead of 49 would decide, if the estimate stays as it is.",
            ),
            (10, 0, "No number of targets can show exactly 0."),
        ],
    )
    def test_few_targets(self, n, most, help_):
        policy = Policy("share", {"share_auc_90": most})
        findings = [
            found(0, 0, 0.2, metric="share_auc_90", attack="weak", n=n),
            found(0, 0, 0.308, metric="share_auc_90", attack="likelihood-ratio", n=n),
        ]
        assert only(findings, policy).reasons == (
            "For likelihood-ratio, the share of people with an AUC of 0.9 or more may be as high "
            f"as 0.308 (limit {most:g}). {help_}",
        )

    def test_few_targets_for_a_rate(self):
        policy = Policy("tpr", {"tpr_at_fpr_1pct": 0.01})
        (reason,) = only([found(0, 0, 0.036, metric="tpr_at_fpr_1pct")], policy).reasons
        assert reason.endswith(
            "50 targets are too few: the next look needs at least 505 to show 0.01 or less."
        )

    def test_undecided_auc_with_its_ceiling(self):
        findings = [found(0.58, 0.55, 0.61), found(0.6, 0.5, 0.7, attack=CEILING)]
        assert only(findings).reasons == (
            f"For {STRONGEST}, the mean AUC may be as high as 0.610 (limit 0.6). About 140 "
            "targets instead of 50 would decide, if the estimate stays as it is.",
            "Somebody who knew the other people of the group could reach a mean AUC of 0.600, "
            "within the limits.",
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
            f"For {STRONGEST}, the mean AUC {what}, so the audit cannot show that it is 0.6 or "
            "less.",
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
        verdict = only([found(0.5, 0.45, 0.55, attack=CEILING)])
        assert verdict.strongest is None
        assert verdict.reasons[0] == "No attack that may decide was measured in this setting."
        assert "could reach a mean AUC of 0.500" in verdict.reasons[1]


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


class TestComparison:
    FINDINGS = (
        found(0.9, 0.85, 0.95, attack="many"),
        found(0.7, 0.65, 0.75, attack="many", metric="shared_auc"),
        found(0.8, 0.7, 0.9, attack="few"),
        found(0.8, 0.7, 0.9, attack="few", metric="shared_auc"),
        found(0.95, 0.9, 1.0, attack=CEILING, metric="shared_auc"),
    )

    def test_the_strongest_is_so_on_the_releases_that_all_scored(self):
        assert only(self.FINDINGS).strongest == "few"
        assert only([one for one in self.FINDINGS if one.metric == "auc"]).strongest == "many"

    def test_it_is_said(self):
        said = (
            "On the releases that all attacks scored, the mean AUC is 0.800 for few, "
            "0.700 for many."
        )
        assert said in only(self.FINDINGS).reasons
        assert said not in only(self.FINDINGS, trusted=False).reasons

    def test_it_decides_nothing(self):
        kept = [found(0.5, 0.45, 0.55), found(0.9, 0.85, 0.95, metric="shared_auc")]
        assert only(kept).decision == "accept"


def left(cells=0.5, pattern=(0.5, 0.4, 0.6)):
    return [
        found(cells, cells, cells, attack=UTILITY, metric="cells_kept"),
        found(*pattern, attack=UTILITY, metric="pattern_correlation"),
        found(2.0, 1.9, 2.1, attack=UTILITY, metric="relative_error"),
    ]


class TestUseless:
    accepted, rejected = found(0.5, 0.45, 0.55), found(0.7, 0.65, 0.75)
    FLOORS = Policy("floors", {"auc": 0.6}, keep={"pattern_correlation": 0.3, "cells_kept": 0.1})

    @pytest.mark.parametrize(
        ("utility", "useless"),
        [
            ([], False),
            (left(), False),
            (left(cells=0.1), False),
            (left(cells=math.nextafter(0.1, 0)), True),
            (left(cells=0.0), True),
            # The estimate is compared, not the interval.
            (left(pattern=(0.3, 0.05, 0.4)), False),
            (left(pattern=(math.nextafter(0.3, 0), 0.2, 0.4)), True),
            (left(pattern=(0.0, 0.0, 0.0)), True),
            (left(pattern=(-0.01, None, None)), True),
        ],
    )
    def test_is_said_and_decides_nothing(self, utility, useless):
        for finding, decision in ((self.accepted, "accept"), (self.rejected, "reject")):
            verdict = only([finding, *utility], self.FLOORS)
            assert (verdict.decision, verdict.useless) == (decision, useless)
            assert verdict.to_json()["useless"] is useless
            assert ("useless" in verdict.headline) is useless
            assert ("useless" in " ".join(verdict.reasons)) is useless

    def test_an_acceptance_begins_with_it(self):
        verdict = only([self.accepted, *left(cells=0.002)], self.FLOORS)
        assert verdict.reasons[0].startswith("Safe, but useless: ")
        assert "0.002 (floor 0.1)" in verdict.reasons[0]
        assert "safe, but useless" in verdict.headline

    def test_without_floors_only_nothing_at_all_is_useless(self):
        policy = Policy("no floors", {"auc": 0.6}, keep={})
        assert not only([self.accepted, *left(cells=0.001, pattern=(0, 0, 0))], policy).useless
        verdict = only([self.accepted, *left(cells=0.0, pattern=(0, 0, 0))], policy)
        assert (verdict.decision, verdict.useless) == ("accept", True)
        assert verdict.reasons[0] == "Safe, but useless: no count above 0 is published."

    def test_the_first_line_shows_what_is_left(self):
        verdict = only([self.accepted, *left(pattern=(0.84, 0.8, 0.9))])
        assert "pattern correlation 0.84, relative error 2.00" in verdict.headline
        assert verdict.to_json()["left"] == {
            "cells_kept": 0.5,
            "pattern_correlation": 0.84,
            "relative_error": 2.0,
        }
        assert hash(verdict) == hash(only([self.accepted, *left(pattern=(0.84, 0.8, 0.9))]))


class TestAboveTheCeiling:
    attack, ceiling = found(0.58, 0.55, 0.59), found(0.57, 0.5, 0.6, attack=CEILING)

    def test_is_chance_only_if_a_paired_test_agrees(self):
        by_chance = found(0.01, -0.01, 1.0, metric=EXCESS)
        verdict = only([self.attack, self.ceiling, by_chance])
        assert verdict.decision == "accept"
        (said,) = [reason for reason in verdict.reasons if "paired test" in reason]
        assert "0.580" in said
        assert "0.570" in said
        untested = only([self.attack, self.ceiling])
        below = only([replace(self.attack, estimate=0.56), self.ceiling, by_chance])
        assert not any("paired test" in one for one in (*untested.reasons, *below.reasons))

    def test_a_significant_excess_is_a_failed_control(self):
        excess = found(0.1, 0.01, 1.0, metric=EXCESS)
        assert excess.holds is False
        verdict = only([self.attack, self.ceiling, excess], trusted=False)
        assert verdict.decision == "cannot tell"
        assert "better than the best possible" in verdict.reasons[0]

    def test_far_below_it_is_as_it_must_be(self):
        assert found(-0.4, -0.5, 1.0, metric=EXCESS).holds

    @pytest.mark.parametrize("metric", MUST_BE)
    def test_every_control_that_fails_is_named(self, metric):
        failed = found(0.9, 0.8, 1.0, metric=metric)
        (reason,) = only([self.attack, failed], trusted=False).reasons
        others = [only([self.attack], trusted=False)]
        others += [
            only([self.attack, replace(failed, metric=one)], trusted=False)
            for one in set(MUST_BE) - {metric}
        ]
        assert reason not in [one.reasons[0] for one in others]


def test_verdict_to_json():
    verdict = Verdict("raw", "reject", ("Because.",), ("Nothing.",), ("Much.", "More."), None)
    expected = {
        "setting": "raw",
        "decision": "reject",
        "reasons": ["Because."],
        "guaranteed": ["Nothing."],
        "meaning": ["Much.", "More."],
        "strongest": None,
        "left": {},
        "useless": False,
        "alone": None,
        "who": None,
        "knows": None,
        "group_size": None,
        "look": 1,
        "own_mechanism": False,
        "protection": "",
    }
    assert verdict.to_json() == expected
    assert json.loads(json.dumps(verdict.to_json())) == expected


def test_verdict_in_short_and_in_notebooks():
    verdict = Verdict("raw, m<5", "cannot tell", ("Too few.", "a & b."))
    assert repr(verdict) == "<Verdict 'cannot tell' on 'raw, m<5'>"
    assert verdict._repr_html_() == (
        "<div><strong>CANNOT TELL</strong> raw, m&lt;5"
        "<ul><li>Too few.</li><li>a &amp; b.</li></ul></div>"
    )
    whole = replace(verdict, guaranteed=("1 < 2.",), meaning=("So.",))
    assert whole._repr_html_() == verdict._repr_html_().replace(
        "</div>", "Guaranteed<ul><li>1 &lt; 2.</li></ul>Meaning<ul><li>So.</li></ul></div>"
    )


def test_verdict_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        only([found(0.5, 0.45, 0.55)]).decision = "reject"


class TestLeastSample:
    @pytest.mark.parametrize("limit", [0.9, 0.5, 0.2, 0.1, 0.05, 0.013])
    @pytest.mark.parametrize("look", [1, 2, 9])
    def test_against_clopper_pearson(self, limit, look):
        def upper(n):
            return binomtest(0, n).proportion_ci(1 - 0.05 / 2**look, method="exact").high

        n = least_people(limit, Look(look).error)
        assert upper(n) <= limit
        assert n == 1 or upper(n - 1) > limit

    @pytest.mark.parametrize("n", [1, 2, 10, 36, 1000])
    def test_a_limit_that_is_just_reached(self, n):
        assert abs(least_people(1 - 0.0125 ** (1 / n), 0.0125) - n) <= 1

    def test_known_values(self):
        assert [least_people(limit, 0.0125) for limit in (1, 0.9875, 0.1, 0.01)] == [1, 1, 42, 437]
        assert [least_people(0.1, Look(look).error) for look in (1, 2, 3, 4)] == [42, 49, 55, 62]
        assert least_people(1e-12, 0.0125) == pytest.approx(-math.log(0.0125) * 1e12)


class TestChoiceOfTargets:
    """Whom a verdict is about, and what people who were named by hand can decide."""

    BY_HAND = TargetChoice(by_hand=True)
    FREQUENT = TargetChoice(min_visits=20, eligible=113, people=2000)
    TPR = found(0.5, 0.4, 0.6, metric="tpr_at_fpr_1pct")

    def test_named_people_are_never_accepted(self):
        ceiling = found(0.9, 0.8, 1, attack=CEILING)
        verdict = only([found(0.5, 0.45, 0.55), ceiling], choice=self.BY_HAND)
        assert verdict.decision == "cannot tell"
        assert "named by hand" in verdict.reasons[0]
        assert KNOWN_TODAY not in verdict.reasons
        assert "(about people named by hand)" in verdict.headline

    def test_named_people_can_fail(self):
        verdict = only([found(0.7, 0.65, 0.75)], choice=self.BY_HAND)
        assert verdict.decision == "reject"
        assert "named by hand" in verdict.reasons[-1]

    def test_more_named_people_would_not_help(self):
        verdict = only([found(0.59, 0.55, 0.63)], choice=self.BY_HAND)
        assert verdict.decision == "cannot tell"
        assert not any("would decide" in reason for reason in verdict.reasons)

    def test_without_a_control_that_is_the_reason(self):
        (reason,) = only([found(0.5, 0.45, 0.55)], trusted=None, choice=self.BY_HAND).reasons
        assert reason.startswith("There was no control")

    def test_a_filter_is_said_and_no_number_of_everybody(self):
        known = {"raw": {"group_size": 200}}
        some = only([found(0.5, 0.45, 0.55), self.TPR], known=known, choice=self.FREQUENT)
        assert some.decision == "accept"
        assert "(about people with 20 or more visits)" in some.headline
        (meaning,) = some.meaning
        assert " of the people with 20 or more visits who are in a release." in meaning
        assert "of 200" not in meaning

    def test_everybody_needs_no_word(self):
        for choice in (None, TargetChoice(eligible=2000, people=2000)):
            found_all = only(
                [found(0.5, 0.45, 0.55), self.TPR],
                known={"raw": {"group_size": 200}},
                choice=choice,
            )
            assert found_all.who is None
            assert (
                "of the people in a release, about 100 (80 to 120) of 200." in found_all.meaning[0]
            )

    def test_beforehand(self):
        assert obstacles_to(AUC) == []
        (said,) = obstacles_to(AUC, choice=self.BY_HAND)
        assert "named by hand" in said

    @pytest.mark.parametrize("choice", [BY_HAND, FREQUENT, TargetChoice()])
    def test_round_trip(self, choice):
        assert TargetChoice.from_json(json.loads(json.dumps(choice.to_json()))) == choice


def test_tasks_that_failed_leave_nothing_accepted_in_words():
    findings = [found(0.5, 0.45, 0.55), found(0.9, 0.8, 1, attack=CEILING)]
    verdict = only(findings, incomplete={"raw"})
    assert verdict.decision == "cannot tell"
    assert KNOWN_TODAY not in verdict.reasons


METRIC_NAMES = st.sampled_from(["auc", "tpr_at_fpr_1pct", "share_auc_90", "empirical_eps"])
LEVELS = st.integers(0, 20).map(lambda n: n / 20)  # coarse, so that ends meet limits


@st.composite
def some_findings(draw):
    attack = draw(st.sampled_from([STRONGEST, "b", "c", CEILING, GUARANTEE]))
    low, estimate, high = sorted(draw(st.tuples(LEVELS, LEVELS, LEVELS)))
    lost = draw(st.sets(st.sampled_from(["low", "estimate", "high"]), max_size=3))
    full = found(estimate, low, high, attack=attack, metric=draw(METRIC_NAMES))
    return replace(full, **dict.fromkeys(lost)) if draw(st.booleans()) else full


@st.composite
def some_policies(draw):
    limits = draw(st.dictionaries(METRIC_NAMES, LEVELS, min_size=1))
    return Policy("p", limits)


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
        tighter = {limit.metric: data.draw(LEVELS) * limit.most for limit in policy.limits}
        assert rank(findings, Policy("tighter", tighter)) >= rank(findings, policy)

    @given(FINDINGS, some_policies())
    def test_more_limits(self, findings, policy):
        fewer = Policy("fewer", {one.metric: one.most for one in policy.limits[:1]})
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
        for reason in (*verdict.reasons, *verdict.guaranteed, *verdict.meaning):
            assert reason.endswith(".")
            assert "None" not in reason
            assert "inf" not in reason
        assert trusted or verdict.decision == "cannot tell"


class TestHeadline:
    def test_a_verdict_by_one_attacker_says_so(self):
        one = [found(0.5, 0.45, 0.55)]
        assert only(one).alone == STRONGEST
        assert only(one).headline == f"raw  (by {STRONGEST} alone)"
        assert f"(by {STRONGEST} alone)" in only(one)._repr_html_()
        both = [*one, found(0.5, 0.45, 0.55, attack="knock-knock")]
        assert only(both).alone is None
        assert only(both).headline == "raw"


class TestTargetsNeeded:
    LIMIT = Limit("auc", 0.6)

    @pytest.mark.parametrize(
        ("finding", "needed"),
        [
            # Half as wide an interval needs four times as many, and the next look 1.24 times more.
            (found(0.55, 0.45, 0.65), 250),
            (found(0.65, 0.55, 0.75), 250),
            (found(0.59, 0.55, 0.63), 1000),
            (found(0.6, 0.55, 0.65), None),
            (found(0.59999, 0.5, 0.7), None),
            (found(None, None, None), None),
            (found(0.5, None, None), None),
        ],
    )
    def test_intervals_shrink_with_the_root_of_the_number(self, finding, needed):
        assert targets_needed(finding, self.LIMIT, finding.n_targets, look=Look()) == needed

    def test_the_number_is_said(self):
        verdict = only([found(0.55, 0.45, 0.65)])
        assert "About 250 targets instead of 50 would decide" in " ".join(verdict.reasons)
        verdict = only([found(0.6, 0.5, 0.7)])
        assert "no number of targets within reach" in " ".join(verdict.reasons)


def obstacles_to(policy, attack=STRONGEST, look=FIRST_LOOK, **changed):
    """What stands in the way of a plan of usual size, but for what is changed."""
    sizes = {"targets": 55, "releases": 20, "control_releases": 4} | changed
    usual = {"reference_size": 0, "past_releases": 0, "first_epoch": 0, "seed": 0}
    targets = tuple(range(sizes.pop("targets")))
    plan = Plan(contests=(), targets=targets, **usual | sizes)
    return obstacles(plan, [Attack.parse(attack)], policy, look=look)


class TestObstacles:
    def test_the_usual_audit_can_accept(self):
        assert obstacles_to(Policy.default()) == []

    @pytest.mark.parametrize(
        ("changed", "said"),
        [
            ({"targets": 20}, "at least 42 are needed"),
            ({"targets": 45, "look": Look(2)}, "at least 49 are needed"),
            ({"control_releases": 0}, "no control"),
            ({"targets": 45, "releases": 4}, "at least 100 releases without the target"),
        ],
    )
    def test_what_stands_in_the_way(self, changed, said):
        (one, *_) = obstacles_to(Policy.default(), **changed)
        assert said in one

    def test_weak_attacks_and_hopeless_limits(self):
        (said,) = obstacles_to(Policy.default(), "knock-knock")
        assert STRONGEST in said
        hopeless = Policy("x", {"share_auc_90": 0, "empirical_eps": 1})
        said = obstacles_to(hopeless)
        assert "exactly 0" in said[0]
        assert "never accept" in said[1]
