"""Options that several commands have in common."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime
from functools import partial, wraps
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

import typer
from typer.models import ParameterInfo

from whosthere.auditing.choices import Choice, SearchChoices, choices_of
from whosthere.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

_Command = TypeVar("_Command", bound=Callable[..., None])
SOMETHING_FAILED = 1
"""Exit code of a command that was done in part."""
NOT_GOOD_ENOUGH = 3
"""Exit code of a command that was told to fail on a verdict, and met it."""
_OPTIONS_OF = {"past": ("past_in", "past_out")}
"""Parameters of functions that are several options."""

_TOLD: dict[str, dict[str, dict[str, Any]]] = tomllib.loads(
    (files("whosthere.cli") / "options.toml").read_text(encoding="utf-8")
)


def described(command: _Command) -> _Command:
    """Give the parameters of a command what ``options.toml`` says of them."""
    told = _TOLD["all"] | _TOLD.get(command.__name__.rstrip("_"), {})
    parameters = [
        one.replace(annotation=Annotated[one.annotation, _info(one.name, told[one.name])])
        if one.name in told and not isinstance(one.default, ParameterInfo)
        else one
        for one in inspect.signature(command, eval_str=True).parameters.values()
    ]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command


def _info(name: str, about: Mapping[str, Any], *default: Any) -> Any:  # noqa: ANN401 - as typer has it
    said: dict[str, Any] = {"metavar": about.get("metavar"), "help": about.get("help")}
    if about.get("argument"):
        return typer.Argument(*default, **said)
    usual = [f"--{name.replace('_', '-')}", *([about["short"]] if "short" in about else [])]
    said |= {"rich_help_panel": about["panel"], "min": about.get("min")}
    return typer.Option(*default, *about.get("flags", usual), **said)


results = partial(typer.Option, rich_help_panel="Results")
reading = partial(typer.Option, rich_help_panel="Reading")
FORCE, JSON = (_info(name, _TOLD["all"][name], False) for name in ("force", "json"))
TIMEZONE, TIME_FORMAT, ENCODING = (
    _info(name, _TOLD["all"][name], None) for name in ("timezone", "time_format", "encoding")
)
CLOCK_CHANGE = _info("at_clock_change", _TOLD["all"]["at_clock_change"], "refuse")
KNOWLEDGE = typer.Option(
    "all",
    metavar="SPEC",
    help=choices_of(SearchChoices)["knowledge"].help,
    rich_help_panel="Whom the attacker knows",
)


def with_options(message: str, context: typer.Context) -> str:
    """Return a message in which parameters of functions are named as options of the command.

    Messages name them in backquotes. What the command has no option for stays as it is.
    """
    names = {one.name: one.opts for one in context.command.params}

    def option(found: re.Match[str]) -> str:
        name = re.sub(r"columns\.(\w+)", r"\1_column", found[1])
        options = [names[one][0] for one in _OPTIONS_OF.get(name, (name,)) if one in names]
        return " and ".join(options) or found[0]

    return re.sub(r"`([\w.]+)`", option, message)


def known_failure(given: str | None, known: Collection[str]) -> str | None:
    """Return what `--fail-on` names, or refuse it."""
    if given is not None and given not in known:
        problem = f"--fail-on {given!r} is not known"
        raise InputError(problem, fix=f"Use {' or '.join(known)}")
    return given


def takes(declared: type, *, once: Collection[str] = ()) -> Callable[[_Command], _Command]:
    """Give a command the options that a class of choices declares, as keywords that may be None.

    Parameters
    ----------
    declared
        Such as `AuditChoices`.
    once
        Names of choices of which this command takes a single value.
    """
    choices = {
        name: replace(choice, several=False) if name in once else choice
        for name, choice in choices_of(declared).items()
    }

    def with_choices(command: _Command) -> _Command:
        @wraps(command)
        def call(**given: Any) -> None:  # noqa: ANN401 - whatever typer read
            for name, choice in choices.items():
                if choice.kind is dict:
                    given[name] = _numbers_by_name(given[name])
            command(**given)

        *own, _ = inspect.signature(command, eval_str=True).parameters.values()
        parameters = [one.replace(kind=one.KEYWORD_ONLY) for one in own]
        # The help shows the groups of options in the order of their first ones.
        parameters[2:2] = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_option(name, choice)
            )
            for name, choice in choices.items()
        ]
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {one.name: one.annotation for one in parameters}
        return cast("_Command", call)

    return with_choices


def _option(name: str, choice: Choice) -> Any:  # noqa: ANN401 - the annotation of a parameter
    several = choice.several or choice.kind is dict
    kind: Any = str if choice.kind is dict else choice.kind
    option = typer.Option(
        *(choice.flags or (f"--{name.replace('_', '-')}",)),
        metavar=choice.metavar,
        help=f"{choice.help} Can be repeated." if several else choice.help,
        rich_help_panel=choice.group,
        formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"] if kind is datetime else None,
    )
    return Annotated[list[kind] | None if several else kind | None, option]


def _numbers_by_name(given: list[str] | None) -> dict[str, int] | None:
    """Read texts such as ``likelihood-ratio=200``; a spec before the number may hold ``=`` too."""
    if given is None:
        return None
    numbers = {}
    for text in given:
        found = re.fullmatch(r"\s*(.*\S)\s*=\s*(-?[0-9]+)\s*", text)
        if found is None:
            raise InputError(
                f"{text!r} is not an attack with a number", fix="Write it like likelihood-ratio=200"
            )
        numbers[found[1]] = int(found[2])
    return numbers
