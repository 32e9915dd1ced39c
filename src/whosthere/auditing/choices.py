"""What a user may choose for an audit: declared once, for Python, plan files and the command line.

Nothing heavy is imported here, so that the help of a command appears at once. What was chosen
becomes `whosthere.auditing.options.AuditOptions`, which has the defaults and checks the values.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias, TypedDict, TypeVar, get_args, get_origin

if TYPE_CHECKING:
    from whosthere.adversary.attacks import Attack
    from whosthere.adversary.knowledge import KnowledgeRule
    from whosthere.privacy.mechanism import Mechanism

_T = TypeVar("_T")
OneOrMore: TypeAlias = _T | Iterable[_T]
"""One value or several."""


class SearchChoices(TypedDict, total=False):
    """What may be chosen for a search as well as for an audit, besides the size of groups."""

    attacks: "OneOrMore[Attack | str] | None"
    knowledge: "OneOrMore[KnowledgeRule | str] | None"
    targets: int | None
    min_visits: int | None
    releases: int | None
    releases_of: Mapping[str, int] | None
    reference_size: int | None
    seed: int | None


class AuditChoices(SearchChoices, total=False):
    """What may be chosen for an audit, besides the size of groups."""

    mechanisms: "OneOrMore[Mechanism | str] | None"
    scale: str | None
    users: OneOrMore[str] | None
    control_releases: int | None
    past_releases: int | None
    test_from: datetime | None


@dataclass(frozen=True)
class Choice:
    """How one thing is chosen outside Python; the words of options are in ``cli/options.toml``.

    `kind` is the type of one value in a plan file and on the command line: `str`, `int`, `datetime`
    or, for whole numbers by name such as ``likelihood-ratio=200``, `dict`. `several` values are a
    list in a file, and a repeated option of a command.
    """

    kind: type
    several: bool = False


GROUP_SIZES = Choice(int, several=True)
"""The size of groups. An audit takes several, a search takes one."""
_SEVERAL = dict.fromkeys(("attacks", "knowledge", "mechanisms", "users"), Choice(str, several=True))


def choices_of(declared: type) -> dict[str, Choice]:
    """Return the choices that a class such as `AuditChoices` declares, by name."""
    plain = {name: hint for name, hint in declared.__annotations__.items() if name not in _SEVERAL}
    kinds = {name: get_args(hint)[0] for name, hint in plain.items()}
    return {
        name: _SEVERAL.get(name) or Choice(dict if get_origin(kinds[name]) else kinds[name])
        for name in declared.__annotations__
    }
