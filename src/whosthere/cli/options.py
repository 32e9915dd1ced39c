"""How commands get their options: types from their signatures, words from ``options.toml``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

import typer

from whosthere.auditing.choices import Choice, choices_of
from whosthere.display import told
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
_COMMANDS_OF = {"read_records": "`whosthere ingest`"}

_TOLD: dict[str, dict[str, dict[str, Any]]] = told("whosthere.cli", "options")


_TOLD["check"] = _TOLD["import"] | _TOLD["check"]


def described(command: _Command) -> _Command:
    """Give the parameters of a command what ``options.toml`` says of them."""
    own = _TOLD.get(command.__name__.rstrip("_"), {})
    parameters = []
    for one in inspect.signature(command, eval_str=True).parameters.values():
        about = _TOLD["all"].get(one.name, {}) | own.get(one.name, {})
        annotation = one.annotation
        if about:
            if "list" in str(annotation) and not about.get("argument"):
                about["help"] += " Can be repeated."
            annotation = Annotated[annotation, _info(one.name, about)]
        parameters.append(one.replace(annotation=annotation))
    return _declared(command, parameters)


def _info(name: str, about: Mapping[str, Any]) -> Any:  # noqa: ANN401 - as typer has it
    said: dict[str, Any] = {"metavar": about.get("metavar"), "help": about.get("help")}
    if about.get("argument"):
        return typer.Argument(**said)
    usual = [f"--{name.replace('_', '-')}", *([about["short"]] if "short" in about else [])]
    said |= {"rich_help_panel": about["panel"], "min": about.get("min")}
    said |= {"formats": about.get("formats")}
    return typer.Option(*about.get("flags", usual), **said)


def with_options(message: str, context: typer.Context) -> str:
    """Return a message in which parameters of functions are named as options of the command.

    Messages name them in backquotes. What the command has no option for stays as it is.
    """
    names = {one.name: one.opts for one in context.command.params}

    def option(found: re.Match[str]) -> str:
        asked = _OPTIONS_OF.get(found[1], (found[1],))
        options = [names[one][0] for one in asked if one in names]
        return " and ".join(options) or _COMMANDS_OF.get(found[1], found[0])

    return re.sub(r"`([\w.]+)`", option, message)


def known_failure(given: str | None, known: Collection[str]) -> str | None:
    """Return what `--fail-on` names, or refuse it."""
    if given is not None and given not in known:
        problem = f"--fail-on {given!r} is not known"
        raise InputError(problem, fix=f"Use {' or '.join(known)}")
    return given


def takes(declared: type, *, once: Collection[str] = ()) -> Callable[[_Command], _Command]:
    """Give a command the options that a class of choices declares, as keywords that may be None.

    It takes a single value of the choices that are named `once`.
    """
    choices = {
        name: replace(choice, several=False) if name in once else choice
        for name, choice in choices_of(declared).items()
    }

    options = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_typed(choice)
        )
        for name, choice in choices.items()
    ]

    def with_choices(command: _Command) -> _Command:
        @wraps(command)
        def call(**given: Any) -> None:  # noqa: ANN401 - whatever typer read
            for name, choice in choices.items():
                if choice.kind is dict:
                    given[name] = _numbers_by_name(given[name])
                elif choice.several and choice.kind is int:
                    given[name] = _numbers(name, given[name])
            command(**given)

        return cast("_Command", with_parameters(call, 2, options))

    return with_choices


def with_parameters(command: _Command, place: int, more: Iterable[inspect.Parameter]) -> _Command:
    """Declare further options of a command, from a place on, for its last parameter.

    The help shows the groups of options in the order of their first ones.
    """
    *own, _ = inspect.signature(command, eval_str=True).parameters.values()
    parameters = [one.replace(kind=one.KEYWORD_ONLY) for one in own]
    parameters[place:place] = more
    return _declared(command, parameters)


def _declared(command: _Command, parameters: list[inspect.Parameter]) -> _Command:
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command


def _typed(choice: Choice) -> Any:  # noqa: ANN401 - the annotation of a parameter
    if choice.kind is dict or (choice.several and choice.kind is int):
        return list[str] | None
    return list[choice.kind] | None if choice.several else choice.kind | None  # type: ignore[name-defined]


def _numbers(name: str, given: list[str] | None) -> list[int] | None:
    """Read whole numbers, each by itself or several as in ``1,2,4``."""
    texts = [text.strip() for several in given or () for text in several.split(",")]
    for text in texts:
        if not re.fullmatch("-?[0-9]+", text):
            raise InputError(f"{text!r} is no whole number (`{name}`)", fix="Write it like 1,2,4")
    return [int(text) for text in texts] or None


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
