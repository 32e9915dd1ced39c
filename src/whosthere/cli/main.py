"""The command `whosthere`: its parts, and what happens to errors."""

from __future__ import annotations

import errno
import os
import signal
import sys
from contextlib import suppress
from io import UnsupportedOperation
from typing import TYPE_CHECKING, cast

import typer

from whosthere._version import __version__
from whosthere.cli import console
from whosthere.cli.attack import attack, target
from whosthere.cli.audit import audit
from whosthere.cli.check import check
from whosthere.cli.help import HelpfulCommand, HelpfulGroup
from whosthere.cli.options import described, with_options
from whosthere.cli.paper import paper
from whosthere.cli.recommend import recommend
from whosthere.cli.records import ingest, simulate
from whosthere.cli.releases import import_, release
from whosthere.cli.views import attacks, compare, inspect, mechanisms, report
from whosthere.errors import AuditFailedError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable

# What typer raises where a command is not used as it is declared; only a kind of it is public.
_MISUSE: type[Exception] = typer.BadParameter.__mro__[1]
SYSTEM_ERROR = 1
USER_ERROR = 2
# Ctrl-C and SIGTERM end a command alike, each with the exit code that shells give to its signal.
_SIGNALS: list[int] = []


class _Command(HelpfulCommand):
    """A command; what its user caused ends in one message and an exit code."""

    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override]
        try:
            return super().invoke(ctx)
        except typer.Exit:
            raise
        except (KeyboardInterrupt, Exception) as error:
            stopped = isinstance(error, KeyboardInterrupt)
            if stopped or _SIGNALS:  # an import that is interrupted fails as it likes
                said = str(error) if stopped else ""
                console.complain(said or "interrupted; no output was left half-written")
                raise typer.Exit(_code_of_signal()) from None
            if isinstance(error, AuditFailedError):
                console.complain(f"{error}.")
                raise typer.Exit(SYSTEM_ERROR) from None
            if not isinstance(error, InputError):
                raise
            commands = cast("HelpfulGroup", typer.main.get_command(app)).commands
            asked = self if error.command is None else commands[error.command]
            console.complain(with_options(str(error), typer.Context(asked)))
            raise typer.Exit(USER_ERROR) from None


def _stop(number: int, _frame: object) -> None:
    _SIGNALS.append(number)
    raise KeyboardInterrupt


def _code_of_signal() -> int:
    return 128 + (_SIGNALS or [signal.SIGINT])[-1]


app = typer.Typer(
    name="whosthere",
    cls=HelpfulGroup,
    help="Measure whether people can be found in published location counts.",
    epilog="Start with:  whosthere simulate milan-like --seed 7 --out city",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_COMMANDS: dict[str, tuple[Callable[..., None], ...]] = {
    "Prepare": (simulate, ingest),
    "Audit": (audit, recommend),
    "One release": (release, import_, check, target, attack),
    "Look": (inspect, report, compare, mechanisms, attacks),
    "Study": (paper,),
}
for group, commands in _COMMANDS.items():
    for command in commands:
        name = command.__name__.rstrip("_")
        app.command(name, cls=_Command, rich_help_panel=group)(described(command))


def _show_version(value: bool) -> None:  # noqa: FBT001 - called by typer
    if value:
        console.say(f"whosthere {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version."
    ),
) -> None:
    pass


def main() -> None:
    """Run the command line; what the system refuses ends in one message and exit code 1.

    SIGTERM stops a command as Ctrl-C does.
    """
    _SIGNALS.clear()
    signal.signal(signal.SIGTERM, _stop)
    # What a shell runs in the background ignores Ctrl-C, and still should.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)
    try:
        try:
            sys.exit(app(standalone_mode=False) or 0)
        finally:
            sys.stdout.flush()
    except _MISUSE as error:
        _complain_of_misuse(cast("typer.BadParameter", error))
        sys.exit(USER_ERROR)
    except KeyboardInterrupt:  # before a command began
        sys.exit(_code_of_signal())
    except BrokenPipeError:
        # The reader of our output went away, as in `whosthere inspect ... | head`.
        _give_up_output()
        sys.exit(SYSTEM_ERROR)
    except OSError as error:
        _give_up_output()
        console.complain(_fault(error))
        sys.exit(SYSTEM_ERROR)
    except MemoryError:
        console.complain("there is not enough memory. Use less data, or a larger machine.")
        sys.exit(SYSTEM_ERROR)


def _complain_of_misuse(error: typer.BadParameter) -> None:
    """Say in one line what is wrong with the options and arguments that were given."""
    said = error.format_message().rstrip(".")
    command = "whosthere" if error.ctx is None else error.ctx.command_path
    if said:  # else the help was shown, as nothing was asked for
        console.complain(f"{said[0].lower()}{said[1:]}. See: {command} --help")


def _give_up_output() -> None:
    """Send what is still to be written nowhere, for Python would try again at its end."""
    # An output that is no file of the system cannot fail like one.
    with suppress(UnsupportedOperation):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EIO}


def _fault(error: OSError) -> str:
    where = "the output" if error.filename is None else error.filename
    advice = "Free some space" if error.errno in _FULL else "Use another folder"
    return f"could not write {where}: {error.strerror or error}. {advice}, or try again."
