"""What an audit will do: targets, settings and attacks, checked against the data."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast, get_args

import numpy as np

from whosthere.adversary.attacks import (
    ATTACKS,
    TRAINED,
    Attack,
    Auxiliary,
    Facts,
    NotApplicableError,
    attack_named,
)
from whosthere.adversary.groups import Sampling
from whosthere.auditing.setting import Known, Setting
from whosthere.errors import EmptyError, GroupError, InputError, suggestion
from whosthere.privacy.mechanism import Mechanism
from whosthere.seeds import generator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from whosthere.data.traces import Traces


class Scale(NamedTuple):
    """How many people, and how many releases of each, an audit looks at."""

    targets: int
    releases: int


SCALES: Mapping[str, Scale] = MappingProxyType(
    {
        # Enough for a verdict by the default policy, with one person found by chance.
        "quick": Scale(targets=55, releases=20),
        "paper": Scale(targets=50, releases=100),
    }
)
DEFAULT_ATTACKS = ("knock-knock", "zero-knowledge", "likelihood-ratio")
# The control scores a fifth as many releases again.
_RELEASES_PER_CONTROL = 5


@dataclass(frozen=True)
class PlanOptions:
    """What a user may choose, by file or by option; all but mechanisms and groups may be left out.

    Parameters
    ----------
    mechanisms, group_sizes, knowledge, sampling
        Every combination of these is a setting.
    attacks
        Names of attacks.
    scale
        How many targets and releases there are where their numbers are not given.
    targets
        How many people are attacked, chosen at random.
    min_visits
        How many visits these have at least.
    target_ids
        Whom to attack instead, by name.
    releases
        Test releases for each target and setting, half of them with the target.
    control_releases
        Further ones with a stand-in for the target; see `whosthere.auditing.control`.
    reference_size
        How many people an attacker has real traces of; half of all by default.
    seed
        The same seed gives the same scores.
    """

    mechanisms: tuple[str, ...] = ()
    group_sizes: tuple[int, ...] = ()
    knowledge: tuple[str, ...] = ("all",)
    sampling: tuple[str, ...] = ("paired",)
    attacks: tuple[str, ...] = DEFAULT_ATTACKS
    scale: str = "quick"
    targets: int | None = None
    min_visits: int = 1
    target_ids: tuple[str, ...] = ()
    releases: int | None = None
    control_releases: int | None = None
    reference_size: int | None = None
    seed: int = 0


@dataclass(frozen=True)
class Unit:
    """A piece of work by itself: one target in one setting, with all attacks."""

    target: int
    setting: Setting

    def __str__(self) -> str:
        return f"target {self.target} in {self.setting}"


@dataclass(frozen=True)
class Plan:
    """Everything that decides the scores of an audit, but for the traces.

    Parameters
    ----------
    settings, attacks
        What is measured.
    targets
        Rows of the traces.
    releases
        Test releases for each target and setting, half of them with the target.
    control_releases
        Further ones with a stand-in for the target.
    reference_size
        How many people the attacker has real traces of; all others may be in test releases.
    seed
        Of all random draws.
    """

    settings: tuple[Setting, ...]
    attacks: tuple[str, ...]
    targets: tuple[int, ...]
    releases: int
    control_releases: int
    reference_size: int
    seed: int

    @property
    def units(self) -> tuple[Unit, ...]:
        """The pieces of work, target by target, so that all settings grow at the same pace."""
        return tuple(
            Unit(target, setting) for target, setting in product(self.targets, self.settings)
        )

    def attacks_in(self, setting: Setting, traces: Traces) -> dict[str, Attack]:
        """Return the attacks that make sense in a setting, by name."""
        facts = Facts(traces.regions, traces.epochs, setting.group_size, setting.mechanism)
        rng = np.random.default_rng(0)
        known = setting.known.of(traces.trace(self.targets[0]), traces.epochs.n, rng)
        # Whether the reference suffices was settled when the plan was made.
        auxiliary = Auxiliary(traces)
        usable = {}
        for name in self.attacks:
            sampling = setting.sampling if name in TRAINED else None
            attack = attack_named(name, sampling=sampling)
            try:
                attack.check(facts, known, auxiliary)
            except NotApplicableError:
                continue
            usable[name] = attack
        return usable

    def to_json(self) -> dict[str, Any]:
        """Return the plan as a JSON object, with settings by their names."""
        return {
            "settings": [str(setting) for setting in self.settings],
            "attacks": list(self.attacks),
            "targets": list(self.targets),
            "releases": self.releases,
            "control_releases": self.control_releases,
            "reference_size": self.reference_size,
            "seed": self.seed,
        }


def make_plan(options: PlanOptions, traces: Traces) -> Plan:
    """Check what a user chose against the data, and fill in what was left open."""
    attacks, settings = _attacks(options.attacks), _settings(options)
    scale = _scale(options.scale)
    releases, control_releases = _releases(options, scale)
    reference_size = _reference_size(options, attacks, traces)
    _check_groups(settings, options, reference_size, traces)
    if options.seed < 0:
        raise InputError(f"a seed of {options.seed}", fix="Give 0 or more")
    n_targets = scale.targets if options.targets is None else options.targets
    plan = Plan(
        settings=settings,
        attacks=attacks,
        targets=_targets(options, n_targets, traces),
        releases=releases,
        control_releases=control_releases,
        reference_size=reference_size,
        seed=options.seed,
    )
    for setting in settings:
        if not plan.attacks_in(setting, traces):
            raise InputError(
                f"none of the attacks applies to {setting}",
                fix="Add another, such as likelihood-ratio",
            )
    return plan


def warnings(plan: Plan, traces: Traces) -> list[str]:
    """Say what a reader of the results must know beforehand, a sentence each."""
    said = []
    pool = traces.n_users - 1 - plan.reference_size
    largest = max(setting.group_size for setting in plan.settings)
    if pool < 2 * largest:
        said.append(
            f"Groups of {largest} are drawn from {pool} people, so test releases share more than "
            "half of their people. The results are about these people more than about others."
        )
    usable = {setting: plan.attacks_in(setting, traces) for setting in plan.settings}
    for name in plan.attacks:
        without = [str(setting) for setting in plan.settings if name not in usable[setting]]
        if without:
            said.append(
                f"{name} is left out of {len(without)} of {len(plan.settings)} settings, where it "
                f"does not apply: {'; '.join(without)}."
            )
    return said


def _attacks(names: Sequence[str]) -> tuple[str, ...]:
    if not names:
        raise InputError("no attack is given", fix=f"Give some of: {', '.join(DEFAULT_ATTACKS)}")
    usable = [name for name, kind in ATTACKS.items() if kind.uses <= {"reference"}]
    for name in names:
        if name not in ATTACKS:
            raise InputError(f"there is no attack {name!r}", fix=suggestion(name, usable))
        if name not in usable:
            raise InputError(
                f"{name} needs friends or past releases of the target, which traces do not hold",
                fix=f"Use some of: {', '.join(usable)}",
            )
    return tuple(dict.fromkeys(names))


def _settings(options: PlanOptions) -> tuple[Setting, ...]:
    if not options.mechanisms:
        raise InputError(
            "no mechanism is given", fix="Give some, as in --mechanism 'suppress(k=1)'"
        )
    if not options.group_sizes:
        raise InputError("no group size is given", fix="Give one, as in --group-size 1000")
    if not options.knowledge or not options.sampling:
        raise InputError(
            "knowledge and sampling cannot be empty", fix="Leave them out for all and paired"
        )
    for text in options.sampling:
        if text not in get_args(Sampling):
            raise InputError(f"{text!r} is no sampling", fix=suggestion(text, get_args(Sampling)))
    combinations = product(
        (Mechanism.parse(text) for text in options.mechanisms),
        options.group_sizes,
        (Known.parse(text) for text in options.knowledge),
        cast("tuple[Sampling, ...]", options.sampling),
    )
    return tuple(dict.fromkeys(Setting(*chosen) for chosen in combinations))


def _scale(name: str) -> Scale:
    if name not in SCALES:
        raise InputError(f"there is no scale {name!r}", fix=suggestion(name, SCALES))
    return SCALES[name]


def _releases(options: PlanOptions, scale: Scale) -> tuple[int, int]:
    """Return how many test and how many control releases each unit has."""
    tests = scale.releases if options.releases is None else options.releases
    if tests < 2 or tests % 2:
        raise InputError(
            f"{tests} releases cannot be balanced", fix="Give an even number, at least 2"
        )
    controls = options.control_releases
    if controls is None:
        controls = max(2, tests // _RELEASES_PER_CONTROL)
    if controls < 1:
        raise InputError(
            f"{controls} control releases cannot show that an audit is sound",
            fix="Give at least 1",
        )
    return tests, controls


def _reference_size(options: PlanOptions, attacks: Sequence[str], traces: Traces) -> int:
    others = traces.n_users - 1
    if options.reference_size is None:
        return others // 2 if _users_of_a_reference(attacks) else 0
    if not 0 <= options.reference_size < others:
        raise GroupError(
            f"a reference of {options.reference_size} cannot be taken from {others} others",
            fix=f"Give at most half of them, {others // 2}",
        )
    return options.reference_size


def _users_of_a_reference(attacks: Sequence[str]) -> list[str]:
    return [name for name in attacks if "reference" in ATTACKS[name].uses]


def _check_groups(
    settings: Sequence[Setting], options: PlanOptions, reference: int, traces: Traces
) -> None:
    """Refuse groups that the data cannot provide, and say which it could."""
    sizes = [setting.group_size for setting in settings]
    if min(sizes) < 2:
        raise GroupError(f"a group of {min(sizes)} hides nobody", fix="Give at least 2")
    largest, others = max(sizes), traces.n_users - 1
    pool, need = others - reference, _users_of_a_reference(options.attacks)
    most = min(pool, reference) if need else pool
    if largest <= most:
        return
    if pool < largest:
        beside = f" beside a reference of {reference}" if reference else ""
        problem = f"of {traces.n_users} users, {pool} are left for test groups{beside}"
    else:
        problem = f"{need[0]} needs a reference of as many, and it is to have {reference}"
    fixes = [f"give --group-size {most} or less"] if most >= 2 else []
    if need and 2 * largest <= others:
        fixes.append(f"give a --reference-size from {largest} to {others - largest}")
    if need and set(need) < set(options.attacks):
        without = pool if options.reference_size is not None else others
        fixes.append(f"leave out {' and '.join(need)} (then up to {without} people)")
    fix = _either(fixes or ["look for larger data"])
    raise GroupError(f"groups of {largest} are too large: {problem}", fix=fix)


def _either(fixes: Sequence[str]) -> str:
    """Write ways out of a problem as one sentence."""
    text = ", or ".join(fixes)
    return text[0].upper() + text[1:]


def _targets(options: PlanOptions, n: int, traces: Traces) -> tuple[int, ...]:
    """Return the rows of the people to attack."""
    visits = traces.visits_per_user()
    if options.target_ids:
        rows = tuple(traces.row_of(user) for user in dict.fromkeys(options.target_ids))
        if not all(visits[row] for row in rows):
            raise EmptyError("a named target made no visit", fix="Leave that one out")
        return rows
    if n < 1:
        raise InputError(f"{n} targets are nobody to attack", fix="Give at least 1")
    eligible = np.flatnonzero(visits >= max(options.min_visits, 1))
    if eligible.size < n:
        enough = int(np.sort(visits)[-n]) if n <= visits.size else 0
        fixes = [f"give --min-visits {enough} or less"] if enough else []
        fixes += [f"give --targets {eligible.size} or less"] if eligible.size else []
        raise GroupError(
            f"only {eligible.size} users have at least {options.min_visits} visits, "
            f"and {n} targets are wanted",
            fix=_either(fixes or ["look for larger data"]),
        )
    chosen = generator(options.seed, "targets").choice(eligible, n, replace=False)
    return tuple(int(row) for row in chosen)
