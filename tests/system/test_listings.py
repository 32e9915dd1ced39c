"""The lists of what can be chosen: all of it is there, and what they show can be typed."""

import re

import pytest
import typer

from whosthere.adversary.attacks import ATTACKS, Attack
from whosthere.adversary.knowledge import KNOWLEDGE, Knowledge
from whosthere.adversary.models import CLASSIFIERS
from whosthere.cli import options
from whosthere.cli.main import app
from whosthere.cli.options import with_options


@pytest.fixture
def listed(whosthere):
    code, out, err = whosthere("attacks")
    assert (code, err) == (0, "")
    return out


def test_everything_that_can_be_chosen_is_listed(listed):
    for catalogue in (ATTACKS, KNOWLEDGE, CLASSIFIERS):
        for kind in catalogue.kinds.values():
            assert re.search(rf"^\s*{re.escape(kind.example)}(\s|$)", listed, re.MULTILINE)
            assert kind.summary.split(",")[0][:40] in re.sub(r"\s+", " ", listed)


def test_every_parameter_is_listed_with_its_default(listed):
    for catalogue in (ATTACKS, KNOWLEDGE, CLASSIFIERS):
        for kind in catalogue.kinds.values():
            for one in kind.parameters:
                assert (one.key if one.usual is None else f"{one.key}={one.usual}") in listed
                assert one.meaning


def test_defaults_that_are_listed_are_the_defaults():
    """What is shown can be typed, and says nothing new."""
    for name, kind in ATTACKS.kinds.items():
        written = [f"{one.key}={one.usual}" for one in kind.parameters if one.usual is not None]
        assert Attack.parse(f"{name}({', '.join(written)})") == Attack.parse(name)


def test_what_attacks_need_is_said(listed):
    text = re.sub(r"\s+", " ", listed)
    assert "Needs traces of the target's friends and reference traces." in text
    assert "Needs past releases with known membership." in text


def test_examples_can_be_typed(listed):
    examples = re.findall(r"--(attack|knowledge) '(.+)'", listed)
    assert len(examples) >= 3
    for option, spec in examples:
        made = Attack.parse(spec) if option == "attack" else Knowledge.parse(spec)
        assert str(made) == spec


def test_choices_are_listed(listed):
    for choice in ("paired", "independent", "mechanism", "per-target", "lognormal:SIGMA", "greedy"):
        assert choice in listed


@pytest.mark.parametrize(
    ("command", "named", "shown"),
    [
        ("ingest", "`drop_invalid` and `start`", "--drop-invalid and --from"),
        ("ingest", "`user_column`, `epoch`", "--user-column, --epoch"),
        ("import", "`markers`, `clock_change`", "--withheld, --clock-change"),
        ("attack", "`past`, `reference`", "--past-in and --past-out, --reference"),
        ("audit", "`read_records`", "`whosthere ingest`"),
        ("audit", "`group_size`, `mechanisms`", "--group-size, --mechanism"),
        ("audit", "`geomPoint`, `whosthere ingest`", "`geomPoint`, `whosthere ingest`"),
    ],
)
def test_messages_name_options_where_python_has_parameters(command, named, shown):
    context = typer.Context(typer.main.get_command(app).commands[command])
    assert with_options(named, context) == shown


def test_what_is_said_of_options_is_about_options_that_there_are():
    told = dict(options._TOLD)
    everywhere = told.pop("all")
    parameters = {
        name: {one.name: one for one in command.params}
        for name, command in typer.main.get_command(app).commands.items()
    }
    for name, own in told.items():
        assert own.keys() <= parameters[name].keys()
        for option, about in own.items():
            assert (parameters[name][option].help or "").startswith(about.get("help", ""))
    for option in everywhere:
        assert any(option in own for own in parameters.values())
