"""The help of commands: options in named groups, readable at any width.

Typer's own tables cut the names of options in a narrow terminal.
"""

from __future__ import annotations

import re
from textwrap import wrap
from typing import TYPE_CHECKING

from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from whosthere.cli import console

if TYPE_CHECKING:
    from collections.abc import Iterable

    import typer

_WIDTH_OF_NAMES = 26
_NARROW = 72
# An option stays with its value.
_WORDS_OF_A_COMMAND = re.compile(r"(?:--?[a-zA-Z][\w-]* (?!-))?(?:'[^']*'|\S)+")
_WORDS = {
    r" <(?:list\[)?[pP]ath\]?>": "",
    r"<(?:list\[)?str\]?>": "TEXT",
    r"<(?:list\[)?(?:int|float)\]?(?: range)?>": "N",
    r"\bx>=(\d+)\]": r"at least \1]",
    r"\.\.\. TEXT": "...",
}
"""How typer writes values and their limits, and how the help does."""


class HelpfulCommand(TyperCommand):
    """A command whose help never cuts a name."""

    def format_help(self, ctx: typer.Context, _formatter: object) -> None:  # type: ignore[override]
        """Print the help."""
        arguments = [one for one in self.get_params(ctx) if one.param_type_name == "argument"]
        names = [str(one.metavar) if one.required else f"[{one.metavar}]" for one in arguments]
        _show_head(" ".join((ctx.command_path, *names, "[OPTIONS]")), self.help or "")
        _show_options(self, ctx)


class HelpfulGroup(TyperGroup):
    """A command with commands, whose help shows these in their groups."""

    def format_help(self, ctx: typer.Context, _formatter: object) -> None:  # type: ignore[override]
        """Print the help."""
        _show_head(f"{ctx.command_path} COMMAND [OPTIONS]", self.help or "")
        groups: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            panel = str(getattr(command, "rich_help_panel", None) or "Commands")
            summary = (command.help or "").partition("\n\n")[0]
            groups.setdefault(panel, []).append((name, " ".join(summary.split())))
        for panel, entries in groups.items():
            _show_group(panel, entries, width=14)
        _show_options(self, ctx)
        console.say("", self.epilog or "")


def _show_head(usage: str, text: str) -> None:
    _print(Text.assemble(("Usage: ", "bold"), usage))
    for paragraph in text.split("\n\n"):
        words, _, rest = " ".join(paragraph.split()).partition("Example: ")
        if words:
            _print(Text("\n" + words))
        examples = re.findall(r"`([^`]+)`", rest)
        if examples:
            _print(Text("\nExamples" if len(examples) > 1 else "\nExample", "bold"))
        for example in examples:
            _print(_continued(example))


def _continued(command: str) -> Text:
    """Return a command over as many lines as it needs, so that a shell takes it as it stands."""
    lines, most = [""], console.out.width - 10
    words = _WORDS_OF_A_COMMAND.findall(command)
    for word in (part for one in words for part in one.split(" ", len(one) > most)):
        if len(lines[-1]) + len(word) > most:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".lstrip()
    return Text("  " + " \\\n      ".join(lines), no_wrap=True, overflow="ignore")


def _show_options(command: TyperCommand | TyperGroup, ctx: typer.Context) -> None:
    groups: dict[str, list[tuple[str, str]]] = {}
    for one in command.get_params(ctx):
        record = one.get_help_record(ctx)
        if record is not None:
            texts = list(record)
            for typers, words in _WORDS.items():
                texts = [re.sub(typers, words, text) for text in texts]
            usual = "Arguments" if one.param_type_name == "argument" else "Options"
            panel = getattr(one, "rich_help_panel", None) or usual
            groups.setdefault(panel, []).append((texts[0], texts[1]))
    # What has no group of its own comes last.
    for panel in sorted(groups, key=lambda name: name == "Options"):
        _show_group(panel, groups[panel])


def _show_group(title: str, entries: Iterable[tuple[str, str]], width: int = 0) -> None:
    _print(Text(f"\n{title}", "bold"))
    beside = width or _WIDTH_OF_NAMES
    place = beside if width or console.out.width >= _NARROW else 6
    for name, meaning in entries:
        lines = wrap(meaning, console.out.width - place - 1, break_on_hyphens=False)
        shown = Text(f"  {name}", "cyan")
        if len(name) + 4 <= place and lines:
            shown.append(" " * (place - len(name) - 2) + lines.pop(0), "default")
        _print(shown)
        for line in lines:
            _print(Text(" " * place + line))


def _print(text: Text) -> None:
    console.out.print(text, soft_wrap=text.no_wrap or False)
