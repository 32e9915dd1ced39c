"""Families: one open parameter, and the mechanisms that it stands for."""

from __future__ import annotations

import pytest

from whosthere.errors import SpecError
from whosthere.privacy.catalogue import MECHANISMS
from whosthere.privacy.mechanism import Family, Mechanism

TEMPLATES = [
    "suppress(k=?)",
    "round(to=?)",
    "random-round(to=?)",
    "laplace(eps=?, unit=event)",
    "raw | GAUSSIAN(eps = ?)",
    "laplace(eps=?, unit=user-day, max_visits=10) | suppress(k=1)",
    "laplace(eps=1) | opensafely | suppress(k=?) | round(to=3)",
]


@pytest.mark.parametrize("template", TEMPLATES)
def test_members_are_the_template_with_its_values(template):
    family = Family(template)
    members = family.members()
    assert len({member.mechanism for member in members}) == len(members) >= 5
    for choice, mechanism in members:
        name, value = choice.split("=")
        assert name == family.parameter
        assert mechanism == Mechanism.parse(template.replace("?", value))
        assert len(choice) <= len("eps=0.015")


def test_ladders_go_from_weak_to_strong():
    for kind in MECHANISMS.kinds.values():
        for one in kind.parameters:
            ladder = list(one.ladder)
            assert ladder == sorted(set(ladder), reverse=one.field in {"eps", "rho"})


@pytest.mark.parametrize(
    "template",
    [
        "raw",
        "?",
        "suppress(k=1)",
        "suppress(?)",
        "suppress(?=1)",
        "suppress(k=?1)",
        "suppress(k=f(?))",
        "suppress(k=?) | round(to=?)",
        "gaussian(eps=1, delta=?)",
        "laplace(eps=1, unit=user, max_visits=?)",
        "laplace(eps=1, unit=?)",
    ],
)
def test_refusals_show_an_example(template):
    with pytest.raises(SpecError, match="a family needs one open parameter") as error:
        Family(template)
    assert repr(template) in str(error.value)
    assert "one ? for k or to or eps or rho, as in 'laplace(eps=?, unit=event)'" in str(error.value)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("", "expected a mechanism"),
        ("supress(k=?)", "Did you mean 'suppress'"),
        ("suppress(eps=?)", "suppress has no parameter 'eps'"),
        ("laplace(eps=?, u=1)", "laplace has no parameter 'u'"),
        ("laplace(eps=?, unit=user)", "max_visits is missing"),
        ("suppress(k=?", "expected ',' or '\\)'"),
    ],
)
def test_mechanisms_that_are_none(template, message):
    with pytest.raises(SpecError, match=message):
        Family(template)
