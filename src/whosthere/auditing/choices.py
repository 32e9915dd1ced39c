"""What a user may choose for an audit: declared once, for Python, plan files and the command line.

Nothing heavy is imported here, so that the help of a command appears at once. What was chosen
becomes `whosthere.auditing.options.AuditOptions`, which has the defaults and checks the values.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypedDict, TypeVar

from whosthere.specs import whole

if TYPE_CHECKING:
    import os

    from whosthere.adversary.attacks import Attack
    from whosthere.adversary.knowledge import Knowledge
    from whosthere.data.clusters import DrawGroup
    from whosthere.privacy.mechanism import Mechanism

_T = TypeVar("_T")
OneOrMore: TypeAlias = _T | Iterable[_T]
"""One value or several."""
PUBLISHED, ATTACKER, AMOUNT = "What is published", "Who attacks", "How much is tried"
"""The groups of choices in the help of a command."""


@dataclass(frozen=True)
class Choice:
    """How one thing is chosen outside Python.

    `kind` is the type of one value in a plan file and on the command line: `str`, `int`, `datetime`
    or, for whole numbers by name such as ``likelihood-ratio=200``, `dict`. `several` values are a
    list in a file, and a repeated option of a command. `flags` and `metavar` are what the command
    calls it and its value, if not by its name and its type, and `group` is where its help stands.
    """

    kind: type
    help: str
    several: bool = False
    flags: tuple[str, ...] | None = None
    metavar: str | None = None
    group: str = AMOUNT


class SearchChoices(TypedDict, total=False):
    """What may be chosen for a search as well as for an audit; a search takes one group size."""

    attacks: Annotated[
        "OneOrMore[Attack | str] | None",
        Choice(
            str,
            "Who attacks, such as likelihood-ratio or 'zero-knowledge(sampling=independent)'. By "
            "default knock-knock, zero-knowledge and likelihood-ratio. See: whosthere attacks.",
            several=True,
            flags=("--attack", "-a"),
            metavar="SPEC",
            group=ATTACKER,
        ),
    ]
    knowledge: Annotated[
        "OneOrMore[Knowledge | str] | None",
        Choice(
            str,
            "What is known of a target: all (default), 'share(0.1)' of the visits, regions, or "
            "'regions(top=2)'. See: whosthere attacks.",
            several=True,
            metavar="SPEC",
            group=ATTACKER,
        ),
    ]
    targets: Annotated[
        int | None, Choice(int, "People to attack, drawn at random; default 65 at the scale quick.")
    ]
    min_visits: Annotated[
        int | None, Choice(int, "Attack people with at least this many visits; default 1.")
    ]
    releases: Annotated[
        int | None,
        Choice(
            int,
            "Test releases per target and scheme, half of them with the target; default 20 at the "
            "scale quick.",
        ),
    ]
    releases_of: Annotated[
        Mapping[str, int] | None,
        Choice(
            dict,
            "Another number for one attack, such as likelihood-ratio=200.",
            metavar="ATTACK=N",
        ),
    ]
    reference_size: Annotated[
        int | None,
        Choice(
            int,
            "People an attacker has real traces of; default half of all if an attack uses them.",
            group=ATTACKER,
        ),
    ]
    seed: Annotated[int | None, Choice(int, "The same seed gives the same scores; default 0.")]


class AuditChoices(SearchChoices, total=False):
    """What may be chosen for an audit."""

    group_size: Annotated[
        OneOrMore[int] | None,
        Choice(
            int,
            "People in a release.",
            several=True,
            flags=("--group-size", "-m"),
            metavar="N",
            group=PUBLISHED,
        ),
    ]
    mechanisms: Annotated[
        "OneOrMore[Mechanism | str] | None",
        Choice(
            str,
            "A protection to try, such as 'suppress(k=1)'. See: whosthere mechanisms.",
            several=True,
            flags=("--mechanism", "-M"),
            metavar="SPEC",
            group=PUBLISHED,
        ),
    ]
    groups: Annotated[
        "DrawGroup | str | os.PathLike[str] | None",
        Choice(
            str,
            "Table with the columns user and group: test groups are then whole companies, "
            "districts or ages, drawn at random. Nothing is then accepted.",
            metavar="FILE",
            group=PUBLISHED,
        ),
    ]
    scale: Annotated[
        str | None,
        Choice(
            str,
            "quick (65 targets, 20 releases, 60 for likelihood-ratio; default) or paper (50, 100).",
        ),
    ]
    users: Annotated[
        OneOrMore[str] | None,
        Choice(
            str,
            "Attack this person instead. Nothing is then accepted.",
            several=True,
            flags=("--user",),
            metavar="ID",
        ),
    ]
    control_releases: Annotated[
        int | None, Choice(int, "Further releases without the target; default a fifth as many.")
    ]
    past_releases: Annotated[
        int | None,
        Choice(
            int, "For attacks that learn from past releases: how many; default 100.", group=ATTACKER
        ),
    ]
    test_from: Annotated[
        datetime | None,
        Choice(
            datetime,
            "Publish the time from here on. Past releases are made from the time before.",
            metavar="TIME",
            group=ATTACKER,
        ),
    ]


def choices_of(declared: type) -> dict[str, Choice]:
    """Return the choices that `SearchChoices` or `AuditChoices` declares, by name."""
    return {name: hint.__metadata__[0] for name, hint in declared.__annotations__.items()}


def whole_numbers(declared: type, given: Mapping[str, object]) -> dict[str, int]:
    """Return what was given for choices of one whole number, as Python's own, or refuse it."""
    kinds = {name: one.kind for name, one in choices_of(declared).items() if not one.several}
    return {
        name: whole(value, f"`{name}`")
        for name, value in given.items()
        if kinds.get(name) is int and value is not None
    }
