"""The lists of what can be chosen: all of it is there, and what they show can be typed."""

import re

import pytest

from whosthere.adversary.attacks import ATTACKS, attack
from whosthere.adversary.classifiers import CLASSIFIERS
from whosthere.adversary.knowledge_rules import FAMILIARITIES, familiarity
from whosthere.cli.hints import with_options


@pytest.fixture
def listed(whosthere):
    code, out, err = whosthere("attacks")
    assert (code, err) == (0, "")
    return out


def test_everything_that_can_be_chosen_is_listed(listed):
    for catalogue in (ATTACKS, FAMILIARITIES, CLASSIFIERS):
        for kind in catalogue.kinds.values():
            assert re.search(rf"^\s*{re.escape(kind.example)}(\s|$)", listed, re.MULTILINE)
            assert kind.summary.split(",")[0][:40] in re.sub(r"\s+", " ", listed)


def test_every_parameter_is_listed_with_its_default(listed):
    for catalogue in (ATTACKS, FAMILIARITIES, CLASSIFIERS):
        for kind in catalogue.kinds.values():
            for parameter, usual in kind.parameters():
                assert (parameter.key if usual is None else f"{parameter.key}={usual}") in listed
                assert parameter.meaning


def test_defaults_that_are_listed_are_the_defaults():
    """What is shown can be typed, and says nothing new."""
    for name, kind in ATTACKS.kinds.items():
        written = [f"{one.key}={usual}" for one, usual in kind.parameters() if usual is not None]
        assert attack(f"{name}({', '.join(written)})") == attack(name)


def test_what_attacks_need_is_said(listed):
    text = re.sub(r"\s+", " ", listed)
    assert "Needs traces of the target's friends and reference traces." in text
    assert "Needs past releases with known membership." in text


def test_examples_can_be_typed(listed):
    examples = re.findall(r"--(attack|knowledge) '(.+)'", listed)
    assert len(examples) >= 3
    for option, spec in examples:
        made = attack(spec) if option == "attack" else familiarity(spec)
        assert str(made) == spec


def test_choices_are_listed(listed):
    for choice in ("paired", "independent", "mechanism", "per-target", "lognormal:SIGMA", "greedy"):
        assert choice in listed


def test_messages_name_the_options_that_they_speak_of():
    known = {"--drop-invalid", "--from"}
    assert with_options("Ask for invalid rows to be dropped.", known) == (
        "Ask for invalid rows to be dropped (--drop-invalid)."
    )
    assert with_options("Nothing to add.", known) == "Nothing to add."
    # What a command does not have is not named, nor half of a pair.
    for said in ("Give a group size.", "Give start and end of the time window."):
        assert with_options(said, known) == said
