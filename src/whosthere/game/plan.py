"""What an audit will do: who is attacked, in which settings, by whom."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from whosthere.adversary.knowledge import All, Knowledge
from whosthere.game.own_code import own_code
from whosthere.game.target import TARGET_GAME

if TYPE_CHECKING:
    from collections.abc import Mapping

    from whosthere.adversary.attacks import Attack
    from whosthere.game.rounds import Game, Task
    from whosthere.game.together import Together
    from whosthere.privacy.scheme import Layout, Scheme, TableScheme


@dataclass(frozen=True)
class TargetChoice:
    """How targets were chosen, which decides for whom numbers speak; it names nobody."""

    by_hand: bool = False
    """Whether a user named them. They are then no sample, and speak for nobody else."""
    everybody: bool = False
    """Whether all of these people are asked, and not a sample of them."""
    min_visits: int = 1
    """How many visits the people had at least from whom they were drawn at random."""
    eligible: int = 0
    people: int = 0
    """How many people these were, rounded up to a multiple of 5, and how many there are."""

    @property
    def who(self) -> str | None:
        """Whom the numbers are about; None if they are about everybody."""
        if self.by_hand:
            return "people named by hand"
        return f"people with {self.min_visits:,} or more visits" if self.min_visits > 1 else None

    def __str__(self) -> str:
        if self.by_hand:
            return "named by hand"
        if self.who is None:
            return "everybody" if self.everybody else "drawn at random"
        how = "all" if self.everybody else "drawn at random from"
        return f"{how} {self.who} ({self.eligible:,} of {self.people:,})"

    def to_json(self) -> dict[str, Any]:
        """Return the choice as a JSON object."""
        numbers = asdict(self)
        by_hand, everybody = numbers.pop("by_hand"), numbers.pop("everybody")
        how = "everybody" if everybody else "at random"
        return {"how": "by hand"} if by_hand else {"how": how, **numbers}

    @classmethod
    def from_json(cls, described: Mapping[str, Any]) -> TargetChoice:
        """Read what `to_json` wrote."""
        numbers = {name: int(value) for name, value in described.items() if name != "how"}
        how = described["how"]
        return cls(by_hand=how == "by hand", everybody=how == "everybody", **numbers)


@dataclass(frozen=True)
class Setting:
    """What is published, and how well targets are known; never what the attacker does."""

    scheme: Scheme
    knowledge: Knowledge = All()

    def over(self, layout: Layout) -> Setting:
        """Return it with other cells of every table, over the same time."""
        tables = (
            replace(one, layout=replace(layout, times=one.layout.times, every=one.layout.every))
            for one in self.scheme.tables
        )
        return self.with_tables(tuple(tables))

    def with_tables(self, tables: tuple[TableScheme, ...]) -> Setting:
        """Return it with other tables."""
        return replace(self, scheme=replace(self.scheme, tables=tables))

    def __str__(self) -> str:
        """Write the setting as tables and files name it; that all is known goes without saying."""
        known = "" if self.knowledge == All() else f", knows {self.knowledge}"
        return f"{self.scheme}{known}"


@dataclass(frozen=True)
class Contest:
    """One attack in one setting."""

    setting: Setting
    attack: Attack

    def __str__(self) -> str:
        return f"{self.attack} in {self.setting}"


@dataclass(frozen=True)
class Plan:
    """Everything that decides the scores of an audit, except the traces."""

    contests: tuple[Contest, ...]
    """What is measured, each once."""
    targets: tuple[int, ...]
    """Whose membership is asked: rows of the traces."""
    releases: int
    """Test releases of each target and scheme that an attack scores."""
    control_releases: int
    """Further ones with a stand-in for the target."""
    reference_size: int
    """How many people the attacker has real traces of; all others may be in test releases."""
    past_releases: int
    """Past releases with known membership, for attacks that learn from these."""
    first_epoch: int
    """Where the tested time begins; all before it is the past."""
    seed: int
    releases_of: tuple[tuple[str, int], ...] = ()
    """By the spec of an attack, how many it scores instead. A release belongs to its number,
    whoever scores it, so attacks share the first ones."""
    game: Game = TARGET_GAME
    cautions: tuple[str, ...] = field(default=(), compare=False)
    """What a reader of the results must know, in sentences; like what follows, it decides no
    score."""
    choice: TargetChoice | None = field(default=None, compare=False)
    """How the targets were chosen."""
    together: Together | None = field(default=None, compare=False)
    """How many people share most of their visits with somebody else."""

    @cached_property
    def settings(self) -> tuple[Setting, ...]:
        """What is published and known, each once."""
        return tuple(dict.fromkeys(contest.setting for contest in self.contests))

    @cached_property
    def schemes(self) -> tuple[Scheme, ...]:
        """What is published, each once."""
        return tuple(dict.fromkeys(setting.scheme for setting in self.settings))

    @cached_property
    def attacks(self) -> tuple[Attack, ...]:
        """Who attacks in some setting, each once."""
        return tuple(dict.fromkeys(contest.attack for contest in self.contests))

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """The pieces of work: blocks of rounds."""
        return self.game.tasks(self)

    @property
    def code(self) -> dict[str, str]:
        """Fingerprints of what a user wrote: attacks, mechanisms, knowledge, regions, the game."""
        mechanisms = [one for scheme in self.schemes for one in scheme.mechanisms]
        knowledge = [setting.knowledge for setting in self.settings]
        chosen = dict.fromkeys((*self.attacks, *mechanisms, *knowledge, self.game))
        layouts = [table.layout for scheme in self.schemes for table in scheme.tables]
        merged = {str(one): one.fingerprint for one in layouts if one.fingerprint}
        return {str(one): code for one in chosen if (code := own_code(one))} | merged

    def contests_under(self, scheme: Scheme) -> tuple[Contest, ...]:
        """Return what is measured under one scheme."""
        return tuple(one for one in self.contests if one.setting.scheme == scheme)

    def attacks_in(self, setting: Setting) -> tuple[Attack, ...]:
        """Return who attacks in one setting."""
        return tuple(one.attack for one in self.contests if one.setting == setting)

    def releases_by(self, attack: Attack) -> int:
        """Return how many test releases of each target and scheme an attack scores."""
        return dict(self.releases_of).get(str(attack), self.releases)

    def with_releases_of(self, attack: Attack, releases: int) -> Plan:
        """Return a plan in which an attack scores another number of releases."""
        changed = dict(self.releases_of) | {str(attack): releases}
        return replace(self, releases_of=tuple(changed.items()))

    def to_json(self) -> dict[str, Any]:
        """Return the plan as a JSON object, with settings and attacks by their specs."""
        special = {
            str(attack): releases
            for attack in self.attacks
            if (releases := self.releases_by(attack)) != self.releases
        }
        return {
            "contests": {
                str(setting): [str(attack) for attack in self.attacks_in(setting)]
                for setting in self.settings
            },
            "code": self.code,
            "targets": list(self.targets),
            "releases": self.releases,
            "control_releases": self.control_releases,
            "reference_size": self.reference_size,
            "past_releases": self.past_releases,
            "first_epoch": self.first_epoch,
            "seed": self.seed,
            **({"releases_of": special} if special else {}),
            **({} if self.game == TARGET_GAME else {"game": str(self.game)}),
        }

    def about_json(self) -> dict[str, Any]:
        """Return what a reader of the results must know and scores do not depend on, as JSON."""
        return {
            "targets_chosen": None if self.choice is None else self.choice.to_json(),
            "cautions": list(self.cautions),
            "together": None if self.together is None else self.together.to_json(),
        }
