"""Policies: limits that anyone can set, and the words for what is limited."""

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

from whosthere.auditing.policy import Floor, Limit, Policy
from whosthere.errors import FileError, InputError
from whosthere.inference.looks import FIRST_LOOK
from whosthere.inference.metrics import least_people
from whosthere.inference.vocabulary import CEILING, CONTROL, GUARANTEE, METRICS, glossary

AUC = Policy("only AUC", {"auc": 0.6})
LIMITABLE = [name for name, metric in METRICS.items() if metric.can_be_limited]
WITH_FLOOR = [name for name, metric in METRICS.items() if metric.can_have_floor]


class TestPolicy:
    def test_default(self):
        policy = Policy.default()
        assert policy.to_json() == {
            "name": "whosthere default",
            "limits": {
                "auc": 0.6,
                "pooled_auc": 0.6,
                "tpr_at_fpr_1pct": 0.1,
                "share_auc_90": 0.1,
            },
            "prior": 0.5,
            "keep": {"pattern_correlation": 0.5, "cells_kept": 0.01},
        }

    def test_default_is_packaged_and_explained(self):
        text = (files("whosthere.auditing") / "default_policy.toml").read_text()
        assert set(tomllib.loads(text)["limits"]) <= set(LIMITABLE)
        for name in (*LIMITABLE, *WITH_FLOOR):
            assert name in text
        assert f"At least {least_people(0.1, FIRST_LOOK.error)} targets" in text

    def test_read(self, tmp_path):
        path = tmp_path / "strict.toml"
        path.write_text('name = "ours"\n[limits]\nempirical_eps = 20\nauc = 1')
        assert Policy.read(path) == Policy("ours", {"empirical_eps": 20, "auc": 1})

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
            ("limits = 0.6", "limits should be", "found 0.6"),
            (
                "prior = 1\n[limits]\nauc = 0.6",
                "the prior must be between 0 and 1",
                "got 1",
            ),
            ("prior = true\n[limits]\nauc = 0.6", "prior should be", "found true"),
            ("name = 3", "name should be", "found 3"),
            (
                "[limits]\ntpr_at_fpr_1 = 0.1",
                "there is no metric 'tpr_at_fpr_1'",
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
            ('[limits]\nauc = "60 %"', "limits.auc should be", "found '60 %'"),
            ("[limits]\nauc = true", "limits.auc should be", "found true"),
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
        same = Policy("mine", policy.limits)
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

    @pytest.mark.parametrize("prior", [1e-6, 0.01, 0.5, np.float64(0.25), Fraction(3, 4), 0.999])
    def test_prior(self, prior):
        policy = Policy("mine", {"auc": 0.6}, prior)
        assert type(policy.prior) is float
        assert policy.prior == policy.to_json()["prior"] == float(prior)
        assert json.loads(json.dumps(policy.to_json())) == policy.to_json()
        assert (policy == Policy("mine", {"auc": 0.6})) == (prior == 0.5)
        assert pickle.loads(pickle.dumps(policy)) == policy

    @pytest.mark.parametrize("prior", [0, 1, -0.1, 1.5, 50, float("nan"), True, "0.5", None])
    def test_bad_priors(self, prior):
        with pytest.raises(InputError) as error:
            Policy("mine", {"auc": 0.6}, prior)
        assert error.value.problem == f"the prior must be between 0 and 1, got {prior!r}"

    def test_prior_in_a_file(self, tmp_path):
        path = tmp_path / "rare.toml"
        path.write_text("prior = 0.01\n[limits]\nauc = 0.6")
        assert Policy.read(path) == Policy("rare", {"auc": 0.6}, 0.01)
        path.write_text("[limits]\nauc = 0.6")
        assert Policy.read(path).prior == 0.5

    @pytest.mark.parametrize(
        ("limits", "problem", "fix"),
        [
            ({}, "the policy has no limits", "auc to 0.6"),
            ((), "the policy has no limits", "auc to 0.6"),
            ({"auc": "0.6"}, "the limit of auc cannot be '0.6'", "a number from 0 to 1"),
            ({"auc": True}, "the limit of auc cannot be True", "a number from 0 to 1"),
            ({"auc": None}, "the limit of auc cannot be None", "a number from 0 to 1"),
            ({"auk": 0.6}, "there is no metric 'auk'", "Did you mean 'auc'?"),
            ({1: 0.6}, "there is no metric 1", "Known: auc"),
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
        policy = Policy("<mine>", {"auc": 0.6, "empirical_eps": 2}, keep={"cells_kept": 0.2})
        assert (
            repr(policy) == "<Policy '<mine>': auc <= 0.6, empirical_eps <= 2, cells_kept >= 0.2>"
        )
        html = policy._repr_html_()
        assert "Policy: &lt;mine&gt;" in html
        assert "mean AUC</th><td>at most 0.6</td>" in html
        assert "certified eps</th><td>at most 2</td>" in html
        assert "share of visited cells kept</th><td>at least 0.2</td>" in html

    @pytest.mark.parametrize("metric", LIMITABLE)
    def test_ends_of_the_range_are_allowed(self, metric):
        largest = METRICS[metric].largest
        assert Limit(metric, 0).most == 0
        assert Limit(metric, min(largest, 1))


class TestFloors:
    def test_without_floors_those_of_the_default_hold(self, tmp_path):
        path = tmp_path / "ours.toml"
        path.write_text("limits.auc = 0.55")
        assert Policy("p", {"auc": 0.6}).keep == Policy.read(path).keep == Policy.default().keep
        path.write_text("limits.auc = 0.55\n[keep]")
        assert Policy("p", {"auc": 0.6}, keep={}).keep == Policy.read(path).keep == ()

    @pytest.mark.parametrize("metric", WITH_FLOOR)
    def test_from_a_file_and_from_python(self, tmp_path, metric):
        path = tmp_path / "ours.toml"
        path.write_text(f"[limits]\nauc = 0.6\n[keep]\n{metric} = 0.25")
        policy = Policy("ours", {"auc": 0.6}, keep={metric: 0.25})
        assert Policy.read(path) == policy == Policy("ours", {"auc": 0.6}, keep={metric: 0.25})
        assert policy.to_json()["keep"] == {metric: 0.25}
        assert Policy(**json.loads(json.dumps(policy.to_json()))) == policy
        assert pickle.loads(pickle.dumps(policy)) == policy

    def test_what_is_better_the_smaller_it_is_has_none(self, tmp_path):
        for metric in set(METRICS) - set(WITH_FLOOR):
            with pytest.raises(InputError, match=r"the larger it is: .*pattern_correlation"):
                Floor(metric, 0.5)
        path = tmp_path / "ours.toml"
        path.write_text("limits.auc = 0.6\nkeep.relative_error = 0.5")
        with pytest.raises(InputError, match=r"ours.toml.*relative_error cannot have a floor"):
            Policy.read(path)

    @pytest.mark.parametrize("metric", WITH_FLOOR)
    def test_a_floor_is_no_limit(self, metric):
        with pytest.raises(InputError, match=r"under \[keep\]"):
            Limit(metric, 0.5)

    @pytest.mark.parametrize("least", [-0.1, 1.1, math.nan, math.inf, "much", None, True])
    def test_refused_values(self, least):
        with pytest.raises(InputError, match="Give a number from 0 to 1"):
            Floor("cells_kept", least)

    @pytest.mark.parametrize("keep", ["cells_kept", 0.5, [Limit("auc", 0.6)]])
    def test_refused_floors(self, keep):
        with pytest.raises(InputError, match="cannot be the floors of a policy"):
            Policy("p", {"auc": 0.6}, keep=keep)

    def test_unknown(self):
        with pytest.raises(InputError, match=r"Did you mean .*pattern_correlation"):
            Floor("patern_correlation", 0.5)


class TestVocabulary:
    def test_names(self):
        assert list(METRICS) == [
            "auc",
            "shared_auc",
            "pooled_auc",
            "accuracy",
            "tpr_at_fpr_10pct",
            "tpr_at_fpr_1pct",
            "tpr_at_fpr_01pct",
            "empirical_eps",
            "empirical_eps_ceiling",
            "share_auc_90",
            "auc_p90",
            "odds_factor",
            "chance_of_more",
            "largest_odds_factor",
            "control_auc",
            "law_control",
            "faults",
            "above_ceiling",
            "visits_kept",
            "cells_kept",
            "relative_error",
            "pattern_correlation",
        ]
        assert len({metric.words for metric in METRICS.values()}) == len(METRICS)

    def test_explanations_are_whole_sentences(self):
        for _, explanation in glossary([*METRICS, CEILING, GUARANTEE]):
            assert explanation[0].isupper()
            assert explanation.endswith(".")

    def test_glossary(self):
        auc, control = METRICS["auc"], METRICS[CONTROL]
        found = glossary(["auc", CEILING, "auc", CONTROL])
        assert [words for words, _ in found] == ["mean AUC", "ceiling", "AUC of the control"]
        assert found[0] == (auc.words, auc.explanation)
        assert "knows all other people of the group" in found[1][1]
        assert found[2] == (control.words, control.explanation)
        assert glossary([]) == []
        with pytest.raises(InputError, match=r"there is no metric 'auk'\. Did you mean 'auc'"):
            glossary(["auk"])
