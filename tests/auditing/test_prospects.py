"""What an audit can decide at all, said before it is run."""

from dataclasses import replace

import pytest

from whosthere.auditing.options import AuditOptions
from whosthere.auditing.planning import make_plan
from whosthere.auditing.policy import Policy
from whosthere.auditing.prospects import prospects
from whosthere.data.cities import simulate

AUC = Policy("only AUC", {"auc": 0.6})
USUAL = Policy.default()


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    """Two rehearsals tell "always" from "never" as well as six do."""
    monkeypatch.setattr("whosthere.auditing.prospects._DRAWS", 2)


@pytest.fixture(scope="module")
def plan():
    traces = simulate("milan-like", seed=2, users=300, regions=4, days=1).traces()
    options = AuditOptions.of(mechanisms="raw", group_size=20, attacks="likelihood-ratio")
    return make_plan(options, traces)


def of(plan, policy=USUAL, *, targets=55, **changed):
    smaller = replace(plan, targets=plan.targets[:targets], **changed)
    return prospects(smaller, smaller.settings[0], policy)


def test_the_usual_audit_can_do_both(plan):
    found = of(plan)
    assert str(found) == "can accept and reject"
    assert found.why_not == ()


@pytest.mark.parametrize(
    ("policy", "changed", "words", "said"),
    [
        (USUAL, {"targets": 20}, "can reject but not accept", "at least 42 are needed"),
        # Among 55 people, none of the 6 % may have been drawn who would break this limit.
        (Policy("all", {"pooled_auc": 0.55}), {}, "can reject but not accept", "nobody is found"),
        (USUAL, {"targets": 2, "releases_of": ()}, "can decide nothing", "are too few"),
        (AUC, {"control_releases": 0}, "can decide nothing", "no control"),
        (AUC, {"targets": 1}, "can decide nothing", "1 target gives no"),
        (
            AUC,
            {"targets": 2, "releases": 2, "releases_of": ()},
            "can decide nothing",
            "2 targets with 2 releases each are too few",
        ),
        (Policy("lax", {"auc": 1}), {}, "can accept but not reject", "people are found"),
        (Policy("eps", {"empirical_eps": 1}), {}, "can reject but not accept", "never accept"),
    ],
)
def test_what_stands_in_the_way(plan, policy, changed, words, said):
    found = of(plan, policy, **changed)
    assert str(found) == words
    assert any(said in sentence for sentence in found.why_not)
