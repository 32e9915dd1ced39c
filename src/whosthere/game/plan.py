"""What an audit will do: who is attacked, in which settings, by whom."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

from whosthere.game.own_code import own_code

if TYPE_CHECKING:
    from whosthere.adversary.attacks import Attack
    from whosthere.game.setting import Scheme, Setting
    from whosthere.game.target_choice import TargetChoice
    from whosthere.game.together import Together


@dataclass(frozen=True)
class Contest:
    """One attack in one setting."""

    setting: Setting
    attack: Attack

    def __str__(self) -> str:
        return f"{self.attack} in {self.setting}"


@dataclass(frozen=True)
class Task:
    """A piece of work by itself: all that is measured on one target under one scheme."""

    target: int
    scheme: Scheme

    def __str__(self) -> str:
        return f"target {self.target} in {self.scheme}"


@dataclass(frozen=True)
class Plan:
    """Everything that decides the scores of an audit, except the traces.

    Parameters
    ----------
    contests
        What is measured, each once.
    targets
        Rows of the traces.
    releases
        Test releases of each target and scheme that an attack scores, half of them with the
        target.
    releases_of
        By the spec of an attack, how many it scores instead. A release belongs to its number,
        whoever scores it, so attacks share the first ones.
    control_releases
        Further ones with a stand-in for the target.
    reference_size
        How many people the attacker has real traces of; all others may be in test releases.
    past_releases
        Past releases with known membership, for attacks that learn from these.
    first_epoch
        Where the tested time begins; all before it is the past.
    seed
        Of all random draws.
    cautions
        What a reader of the results must know beforehand, a sentence each; decides nothing.
    choice
        How the targets were chosen; None where nobody knows. The scores depend on who they are,
        and not on this.
    together
        How many people share most of their visits with somebody else; None where nobody has
        measured it. It decides nothing.
    """

    contests: tuple[Contest, ...]
    targets: tuple[int, ...]
    releases: int
    control_releases: int
    reference_size: int
    past_releases: int
    first_epoch: int
    seed: int
    releases_of: tuple[tuple[str, int], ...] = ()
    cautions: tuple[str, ...] = field(default=(), compare=False)
    choice: TargetChoice | None = field(default=None, compare=False)
    together: Together | None = field(default=None, compare=False)

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
        """The pieces of work, target by target, so that all settings grow at the same pace."""
        return tuple(Task(*chosen) for chosen in product(self.targets, self.schemes))

    @property
    def _chosen(self) -> tuple[object, ...]:
        """Whatever a user may have written: attacks, mechanisms, kinds of knowledge."""
        mechanisms = [scheme.mechanism for scheme in self.schemes]
        knowledge = [setting.knowledge for setting in self.settings]
        return tuple(dict.fromkeys((*self.attacks, *mechanisms, *knowledge)))

    def contests_under(self, scheme: Scheme) -> tuple[Contest, ...]:
        """Return what is measured under one scheme."""
        return tuple(one for one in self.contests if one.setting.scheme == scheme)

    def attacks_in(self, setting: Setting) -> tuple[Attack, ...]:
        """Return who attacks in one setting."""
        return tuple(one.attack for one in self.contests if one.setting == setting)

    def releases_by(self, attack: Attack) -> int:
        """Return how many test releases of each target and scheme an attack scores."""
        return dict(self.releases_of).get(str(attack), self.releases)

    def releases_under(self, scheme: Scheme) -> int:
        """Return how many test releases of each target there are under one scheme."""
        return max(self.releases_by(one.attack) for one in self.contests_under(scheme))

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
            "code": {str(one): code for one in self._chosen if (code := own_code(one))},
            "targets": list(self.targets),
            "releases": self.releases,
            "control_releases": self.control_releases,
            "reference_size": self.reference_size,
            "past_releases": self.past_releases,
            "first_epoch": self.first_epoch,
            "seed": self.seed,
            **({"releases_of": special} if special else {}),
        }

    def about_json(self) -> dict[str, Any]:
        """Return what a reader of the results must know and scores do not depend on, as JSON."""
        return {
            "targets_chosen": None if self.choice is None else self.choice.to_json(),
            "cautions": list(self.cautions),
            "together": None if self.together is None else self.together.to_json(),
        }
