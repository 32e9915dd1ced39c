"""What a user may choose for an audit: declared once, for Python, plan files and the command line.

Nothing heavy is imported here, so that the help of a command appears at once. What was chosen
becomes `whosthere.auditing.options.AuditOptions`, which has the defaults and checks the values.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, ForwardRef, TypeAlias, TypedDict, TypeVar, get_args, get_origin

from whosthere.specs import whole

if TYPE_CHECKING:
    from datetime import timedelta

    from whosthere.adversary.attacks import Attack
    from whosthere.adversary.knowledge import Knowledge
    from whosthere.data.clusters import DrawGroup
    from whosthere.data.frames import AnyPath, Frame
    from whosthere.privacy.mechanism import Mechanism
    from whosthere.privacy.scheme import TableScheme

_T = TypeVar("_T")
OneOrMore: TypeAlias = _T | Iterable[_T]
"""One value or several."""


class SearchChoices(TypedDict, total=False):
    """What may be chosen for a search as well as for an audit; a search takes one group size."""

    attacks: "OneOrMore[Attack | str] | None"
    knowledge: "OneOrMore[Knowledge | str] | None"
    everybody: bool | None
    include: float | None
    targets: int | None
    min_visits: int | None
    weeks: OneOrMore[int] | None
    every: "timedelta | str | None"
    turnover: float | None
    together: "AnyPath | Frame | None"
    releases: int | None
    releases_of: Mapping[str, int] | None
    reference_size: int | None
    seed: int | None


class AuditChoices(SearchChoices, total=False):
    """What may be chosen for an audit."""

    group_size: OneOrMore[int] | None
    mechanisms: "OneOrMore[Mechanism | str] | None"
    tables: "OneOrMore[TableScheme | str] | None"
    groups: "DrawGroup | AnyPath | Frame | None"
    scale: str | None
    users: OneOrMore[str] | None
    control_releases: int | None
    past_releases: int | None
    test_from: datetime | None


@dataclass(frozen=True)
class Choice:
    """How one thing is chosen outside Python; the words of options are in ``cli/options.toml``.

    `kind` is the type of one value in a plan file and on the command line: `str`, `int`, `float`,
    `bool`, `datetime` or, for whole numbers by name such as ``likelihood-ratio=200``, `dict`.
    `several` values are a list in a file, and a repeated option of a command.
    """

    kind: type
    several: bool = False


def choices_of(declared: type) -> dict[str, Choice]:
    """Return the choices that a class such as `AuditChoices` declares, by name."""
    return {name: _choice(hint) for name, hint in declared.__annotations__.items()}


def _choice(hint: object) -> Choice:
    # What Python has objects for is a spec or a file elsewhere, and so a text.
    if isinstance(hint, ForwardRef):
        return Choice(str, several=hint.__forward_arg__.startswith("OneOrMore"))
    kind, *others = get_args(hint)
    return Choice(dict if get_origin(kind) else kind, several=len(others) > 1)


def whole_numbers(declared: type, given: Mapping[str, object]) -> dict[str, int]:
    """Return what was given for choices of one whole number, as Python's own, or refuse it."""
    kinds = {name: one.kind for name, one in choices_of(declared).items() if not one.several}
    return {
        name: whole(value, f"`{name}`")
        for name, value in given.items()
        if kinds.get(name) is int and value is not None
    }
