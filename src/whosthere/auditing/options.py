"""What a user may choose for an audit, in Python, in a file or on the command line."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack, cast

import numpy as np

from whosthere.adversary.attacks import Attack
from whosthere.adversary.knowledge import Knowledge
from whosthere.auditing.choices import AuditChoices, OneOrMore, whole_numbers
from whosthere.data.epochs import parse_length
from whosthere.errors import GroupError, InputError, SpecError, suggestion
from whosthere.game.plan import Contest, Setting
from whosthere.inference.vocabulary import STRONGEST
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.own import refuse_two_of_a_name
from whosthere.privacy.scheme import ORDINARY, WEEK, Scheme, TableScheme
from whosthere.privacy.table_words import WrittenTable, read_weeks
from whosthere.seeds import check_seed
from whosthere.specs import whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime, timedelta

    from whosthere.data.clusters import DrawGroup
    from whosthere.data.frames import AnyPath, Frame
    from whosthere.data.traces import Traces


class Scale(NamedTuple):
    """How many people, and how many releases of each, an audit looks at.

    `releases_of` has the numbers of attacks that score more or less than `releases`, by name.
    """

    targets: int
    releases: int
    releases_of: Mapping[str, int] = MappingProxyType({})


SCALES: Mapping[str, Scale] = MappingProxyType(
    {
        # Enough for a verdict by the default policy, with one person found by chance. The
        # likelihood ratio takes little time beside the trained attacks.
        "quick": Scale(65, 20, MappingProxyType({"likelihood-ratio": 60})),
        "paper": Scale(targets=50, releases=100),
    }
)
DEFAULT_ATTACKS = ("knock-knock", "zero-knowledge", "likelihood-ratio")
FOR_EVERYBODY = Scale(targets=65, releases=100)
"""How many people attacks that score one after the other are made on in a game of everybody, and
how many releases there are, all of which test everybody."""
DEFAULT_INCLUDE = 0.9
DEFAULT_PAST_RELEASES = 100
# The control scores a fifth as many releases again.
_RELEASES_PER_CONTROL = 5


@dataclass(frozen=True, init=False)
class Block:
    """A part of a plan: every combination of what it lists is measured.

    Each may be given as one value or several, as objects or as specs.

    Parameters
    ----------
    mechanisms
        What is done to the counts.
    group_size
        People in a release.
    knowledge
        What is known of the targets.
    attacks
        Who attacks; by default knock-knock, zero-knowledge and likelihood-ratio, or the latter
        alone where everybody is published.
    tables
        What is published together, such as ``("finest", "epochs=1d: round(to=5)")``; one table over
        the regions and epochs of the traces by default. A table without a mechanism takes each of
        the mechanisms in turn.
    weeks
        For how many weeks a table is published, week after week, such as ``(1, 2, 4)``; without
        any, all of the time is published at once.
    """

    mechanisms: tuple[Mechanism, ...]
    group_size: tuple[int, ...]
    knowledge: tuple[Knowledge, ...]
    attacks: tuple[Attack, ...] | None
    tables: tuple[WrittenTable, ...]
    weeks: tuple[int, ...]

    def __init__(
        self,
        mechanisms: OneOrMore[Mechanism | str] = (),
        group_size: OneOrMore[int] = (),
        knowledge: OneOrMore[Knowledge | str] = "all",
        attacks: OneOrMore[Attack | str] | None = None,
        *,
        tables: OneOrMore[TableScheme | str] = (),
        weeks: OneOrMore[int] = (),
    ) -> None:
        given = (mechanisms, group_size, knowledge, attacks, tables, weeks)
        for (name, kind), chosen in zip(IN_BLOCKS.items(), given, strict=True):
            if chosen is None:
                object.__setattr__(self, name, None)
                continue
            values = [kind.read(one) for one in several(chosen)]
            if name == "mechanisms":
                refuse_two_of_a_name(cast("list[Mechanism]", values))
            # The same table may be published twice.
            kept = values if name == "tables" else dict.fromkeys(values)
            object.__setattr__(self, name, tuple(kept))

    def contests(self, traces: Traces | None = None, every: timedelta = WEEK) -> Iterator[Contest]:
        """Return what is measured, in order.

        Traces tell which cells tables have, and `every` which time one of a series of tables has.
        """
        closed = bool(self.tables) and all(one.mechanism is not None for one in self.tables)
        if closed and self.mechanisms:
            raise InputError(
                "all tables (`tables`) say what is done to them, so nothing takes a mechanism",
                fix="Leave the mechanisms (`mechanisms`) out, or one of a table",
            )
        for name, kind in IN_BLOCKS.items():
            given = getattr(self, name)
            if kind.example and not (given or given is None or (closed and name == "mechanisms")):
                fix = f"Give at least one (`{name}`), such as {kind.example}"
                raise InputError(f"no {kind.words} is given", fix=fix)
        attacks = _parsed(DEFAULT_ATTACKS) if self.attacks is None else self.attacks
        written = self.tables or (WrittenTable(),)
        layouts = [one.over(traces) for one in self.tables] or [ORDINARY]
        for mechanism, m, knowledge, times in product(
            self.mechanisms or (None,),
            self.group_size,
            self.knowledge,
            sorted(self.weeks) or (None,),
        ):
            tables = (
                TableScheme(
                    cast("Mechanism", one.mechanism or mechanism),
                    layout if times is None else replace(layout, times=times, every=every),
                )
                for one, layout in zip(written, layouts, strict=True)
            )
            scheme = Scheme(tuple(tables), m)
            for attack in attacks:
                yield Contest(Setting(scheme, knowledge), attack)


def _parsed(attacks: Iterable[str]) -> tuple[Attack, ...]:
    return tuple(map(Attack.parse, attacks))


def several(given: Any) -> tuple[Any, ...]:  # noqa: ANN401 - one value or several of any type
    """Return one value or several as a tuple; a text is one value."""
    if isinstance(given, str) or not hasattr(given, "__iter__") or getattr(given, "ndim", 1) == 0:
        return (given,)
    return tuple(given)


def _mechanism(given: Any) -> Mechanism:  # noqa: ANN401 - whatever a user gave
    if callable(given):
        fix = "Wrap it: wt.mechanisms.own(function, name='mine')"
        raise SpecError("a function by itself is no mechanism", fix=fix)
    return Mechanism.parse(given)


def _group_size(given: int) -> int:
    size = whole(given, "the group size")
    if size < 2:
        raise GroupError(f"a group of {size} hides nobody", fix="Give at least 2")
    return size


class _InBlocks(NamedTuple):
    """How one of several is read, what it is called, and an example if there must be one."""

    read: Callable[[Any], Mechanism | int | Knowledge | Attack | WrittenTable]
    words: str
    example: str


IN_BLOCKS: Mapping[str, _InBlocks] = MappingProxyType(
    {
        "mechanisms": _InBlocks(_mechanism, "mechanism", "'suppress(k=1)'"),
        "group_size": _InBlocks(_group_size, "group size", "1000"),
        "knowledge": _InBlocks(Knowledge.parse, "knowledge of the target", "'all'"),
        "attacks": _InBlocks(Attack.parse, "attack", "'likelihood-ratio'"),
        "tables": _InBlocks(WrittenTable.parse, "table", ""),
        "weeks": _InBlocks(read_weeks, "number of weeks", ""),
    }
)
"""What belongs to a block; all other options are the same for all blocks."""


@dataclass(frozen=True)
class AuditOptions:
    """What a user may choose; all except mechanisms and group sizes may be left out.

    Parameters
    ----------
    blocks
        What is measured: the union of all blocks. What two of them share is measured once.
    scale
        How many targets and releases there are where their numbers are not given.
    targets
        How many people are attacked, chosen at random.
    min_visits
        How many visits these have at least; all that is found is about such people.
    users
        Whom to attack instead, by id. They do not speak for all others, so nothing is accepted.
    releases
        Test releases for each target and scheme, half of them with the target.
    releases_of
        How many of them single attacks score, by spec or by name, such as
        ``{"likelihood-ratio": 200}``. Where neither these nor `releases` are given, the scale
        decides.
    control_releases
        Further ones with a stand-in for the target, 0 for none; see
        `whosthere.inference.control`.
    reference_size
        How many people an attacker has real traces of; half of all by default.
    past_releases
        How many past releases with known membership there are, for attacks that learn from these.
    test_from
        Local date or time at which the tested time begins. Past releases are then made from the
        time before, else from the same time as the tested ones.
    every
        How much time each of several tables covers, such as ``"1d"``, if it is not a week: `weeks`
        are then numbers of these.
    turnover
        Which share of the other people is replaced by others from each table to the next, 0 by
        default. A target is in all tables, or in none.
    groups
        How the people of test releases are drawn, if not uniformly: a file or a frame of whole
        groups with the columns user and group, or a function ``draw(rng, people, n)`` that returns
        n of the rows `people`. Attacks assume uniform groups, so nothing is then accepted.
    everybody
        Whether all people are published, and not groups of some: each person is in a test release
        by chance, and all who made `min_visits` are asked. The targets are then those of attacks
        that score one person after the other, and there is no group size.
    include
        The chance with which each person is in a release of everybody, 0.9 by default.
    together
        Who is counted together, such as households: a file or a frame with the columns user and
        household. People who are not in it are alone. Households are then in or out as a whole, the
        target's in the place of others of the same size.
    seed
        The same seed gives the same scores.
    """

    blocks: tuple[Block, ...] = (Block(),)
    scale: str = "quick"
    targets: int | None = None
    min_visits: int = 1
    users: tuple[str, ...] = field(default=(), repr=False)
    releases: int | None = None
    releases_of: Mapping[str, int] = field(default_factory=dict, hash=False)
    control_releases: int | None = None
    reference_size: int | None = None
    past_releases: int = DEFAULT_PAST_RELEASES
    test_from: datetime | None = None
    seed: int = 0
    groups: DrawGroup | AnyPath | Frame | None = field(default=None, repr=False, hash=False)
    every: timedelta = WEEK
    turnover: float = 0.0
    everybody: bool = False
    include: float | None = None
    together: AnyPath | Frame | None = field(default=None, repr=False, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "blocks", tuple(self.blocks) or (Block(),))
        object.__setattr__(self, "users", several(self.users))
        object.__setattr__(self, "every", parse_length(self.every))
        given = {of: whole(n, f"`releases_of` {of}") for of, n in self.releases_of.items()}
        object.__setattr__(self, "releases_of", given)
        seed = check_seed(self.seed)
        for name, value in (whole_numbers(AuditChoices, vars(self)) | {"seed": seed}).items():
            object.__setattr__(self, name, value)
        if self.scale not in SCALES:
            fix = suggestion(str(self.scale), SCALES)
            raise InputError(f"there is no scale {self.scale!r}", fix=fix)
        if self.min_visits < 1:
            n = self.min_visits
            raise InputError(f"the number of visits must be at least 1 (`min_visits`), got {n}")
        for of, n in {"": self.n_releases, **self.releases_of}.items():
            if n < 2 or n % 2:
                whose = f" of {of}" if of else ""
                raise InputError(
                    f"the number of releases{whose} must be even and at least 2, got {n}"
                )
        share: object = self.turnover
        if not (isinstance(share, float | int | np.number) and 0 <= share < 1):
            problem = f"a share of {self.turnover} cannot change (`turnover`)"
            raise InputError(problem, fix="Give a share from 0 to less than 1, such as 0.1")
        if self.turnover and self.groups is not None:
            problem = "groups of your own (`groups`) stay the same, and some are to change"
            raise InputError(problem, fix="Leave out one of `groups` and `turnover`")
        if self.together is not None and (self.turnover or self.groups is not None):
            other = "turnover" if self.turnover else "groups"
            problem = f"whole households (`together`) do not go with `{other}`"
            raise InputError(problem, fix="Leave out one of the two")
        for name in ("turnover", "every"):
            given = getattr(self, name) != getattr(AuditOptions, name)
            if given and not any(block.weeks for block in self.blocks):
                problem = f"`{name}` is about tables that are published again and again"
                raise InputError(problem, fix="Say how often (`weeks`), or leave it out")
        if self.n_control_releases < 0:
            n = self.n_control_releases
            raise InputError(f"the number of control releases must be 0 or more, got {n}")
        self._check_everybody()

    def _check_everybody(self) -> None:
        chance: object = self.include
        if chance is not None and not self.everybody:
            problem = "a chance of being in (`include`) is given, and groups have a size"
            raise InputError(problem, fix="Ask for everybody (`everybody`), or leave it out")
        known = isinstance(chance, float | int | np.number) and 0 < chance < 1
        if not (chance is None or known):
            problem = f"{chance} is no chance of being in (`include`)"
            raise InputError(problem, fix="Give a number between 0 and 1, such as 0.9")
        if not self.everybody:
            return
        given = {
            "group_size": any(block.group_size for block in self.blocks),
            "users": self.users,
            "groups": self.groups is not None,
            "turnover": self.turnover,
        }
        for name in (name for name, value in given.items() if value):
            problem = f"everybody is in a release by chance (`everybody`), so `{name}` says nothing"
            raise InputError(problem, fix=f"Leave out `{name}` or `everybody`")

    @classmethod
    def of(cls, **chosen: Unpack[AuditChoices]) -> AuditOptions:
        """Return options from plain keywords: those of one block, and all others."""
        return merged(cls(), chosen)

    @property
    def n_targets(self) -> int:
        """How many people are attacked, unless they are named."""
        return self._scale.targets if self.targets is None else self.targets

    @property
    def n_releases(self) -> int:
        """How many test releases of each target and scheme an attack scores, unless it is named."""
        return self._scale.releases if self.releases is None else self.releases

    @property
    def _scale(self) -> Scale:
        return FOR_EVERYBODY if self.everybody else SCALES[self.scale]

    @property
    def chance(self) -> float | None:
        """The chance of being in a release of everybody; None where there are groups."""
        if not self.everybody:
            return None
        return DEFAULT_INCLUDE if self.include is None else float(self.include)

    @property
    def attacks(self) -> tuple[Attack, ...]:
        """Who attacks in some block, each once."""
        return tuple(dict.fromkeys(one for block in self._blocks() for one in block.attacks or ()))

    def _blocks(self, m: int | None = None) -> Iterator[Block]:
        """Return the blocks with what was left open: who attacks, and the size of the groups."""
        usual = _parsed((STRONGEST,) if self.everybody else DEFAULT_ATTACKS)
        for block in self.blocks:
            sizes = block.group_size if m is None else (m,)
            attacks = usual if block.attacks is None else block.attacks
            yield replace(block, attacks=attacks, group_size=sizes)

    def releases_by_attack(self) -> dict[str, int]:
        """Return how many test releases each attack scores, by its spec.

        Numbers are given by a spec, or by a bare name for all of its variants whose spec is not
        named. What the user gave goes before the scale.
        """
        specs = {str(one): one.name for one in self.attacks}
        given = {_named_in(specs, key): n for key, n in self.releases_of.items()}
        scale = self._scale.releases_of if self.releases is None else {}
        return {
            spec: next(
                (of[key] for of in (given, scale) for key in (spec, name) if key in of),
                self.n_releases,
            )
            for spec, name in specs.items()
        }

    @property
    def n_control_releases(self) -> int:
        """How many control releases there are for each target and scheme."""
        if self.control_releases is not None:
            return self.control_releases
        # Of everybody, one has as many scores as there are people.
        return 2 if self.everybody else max(2, self.n_releases // _RELEASES_PER_CONTROL)

    def contests(self, traces: Traces | None = None, m: int | None = None) -> tuple[Contest, ...]:
        """Return what is measured, each once, setting by setting; see `Block.contests`.

        Where everybody is published, `m` is how many people to expect in a release.
        """
        refuse_two_of_a_name(one for block in self.blocks for one in block.mechanisms)
        chosen = (one for block in self._blocks(m) for one in block.contests(traces, self.every))
        wanted = dict.fromkeys(chosen)
        # Scores are kept by these names: two of the same could not be told apart.
        twice = [name for name, n in Counter(map(str, wanted)).items() if n > 1]
        if twice:
            raise InputError(
                f"two that differ are both called {twice[0]}", fix="Give each a name of its own"
            )
        settings = dict.fromkeys(one.setting for one in wanted)
        return tuple(one for setting in settings for one in wanted if one.setting == setting)


def _named_in(specs: Mapping[str, str], key: str) -> str:
    """Return the spec or the name of an attack that a user's key stands for, or refuse it."""
    known = {*specs, *specs.values()}
    # The user's own attacks can be named, but not parsed.
    with suppress(InputError):
        key = key if key in known else str(Attack.parse(key))
    if key in known:
        return key
    raise InputError(
        f"releases are given for {key!r} (`releases_of`), which is none of the attacks",
        fix=suggestion(key, sorted(known)),
    )


def merged(options: AuditOptions, given: Mapping[str, Any]) -> AuditOptions:
    """Return options with others that override them, by name; None stands for one not given.

    What belongs to blocks replaces it in every block.
    """
    given = {name: value for name, value in given.items() if value is not None}
    known = [*IN_BLOCKS, *(one.name for one in fields(options))]
    for name in given:
        if name not in known:
            raise InputError(f"there is no option {name!r}", fix=suggestion(name, known))
    in_blocks = {name: value for name, value in given.items() if name in IN_BLOCKS}
    others = {name: value for name, value in given.items() if name not in IN_BLOCKS}
    if "targets" in others and "users" not in others:
        others["users"] = ()
    if in_blocks:
        blocks = others.get("blocks", options.blocks)
        others["blocks"] = tuple(replace(block, **in_blocks) for block in blocks)
    return replace(options, **others)
