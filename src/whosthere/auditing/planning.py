"""From what a user chose to a plan: checked against the data, with what was left open filled in."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from math import ceil, floor
from typing import TYPE_CHECKING

import numpy as np

from whosthere.adversary.attacks import Attack, Auxiliary, NotApplicableError, PastRelease
from whosthere.adversary.attacks.base import FOR_STUDIES, WORDS, AttackOnEverybody, View
from whosthere.adversary.suspects import over
from whosthere.auditing.reasons import listed
from whosthere.data.clusters import draw_group
from whosthere.data.epochs import to_micros, zone
from whosthere.data.floor import LEAST_PEOPLE, in_fives
from whosthere.data.reading.tables import read_clusters, read_households
from whosthere.errors import EmptyError, GroupError, InputError
from whosthere.game.everybody import EverybodyGame, set_aside
from whosthere.game.plan import Contest, Plan, Setting, TargetChoice
from whosthere.game.rounds import Population, Task
from whosthere.game.target import TargetGame, TargetRounds
from whosthere.privacy.facts import Facts
from whosthere.privacy.release import Release
from whosthere.seeds import generator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from whosthere.auditing.options import AuditOptions
    from whosthere.data.clusters import Clusters
    from whosthere.data.traces import Traces
    from whosthere.game.rounds import Game


_APPLIES = {True: "likelihood-ratio", False: "zero-knowledge"}
"""Which attack applies to mechanisms with a law, and without."""
# The most chance that a release of everybody is of nobody, or that nobody is ever in, or out.
_MOST_ODD = 0.01


def make_plan(options: AuditOptions, traces: Traces) -> Plan:
    """Check what a user chose against the data, and fill in what was left open.

    Attacks that do not apply in a setting are left out of it; the plan's cautions say which.
    """
    first_epoch = _first_epoch(options, traces)
    population = Population.of(traces, first_epoch)
    reference_size = _reference_size(options, options.attacks, traces)
    asks_everybody = _game_of_everybody(options)
    m = None
    if asks_everybody is not None:
        m = asks_everybody.group_size(traces.n_users - reference_size)
    contests = options.contests(population.tested, m)
    attacks = tuple(dict.fromkeys(one.attack for one in contests))
    if asks_everybody is None:
        _check_groups(contests, attacks, options, reference_size, traces)
    _check_past(attacks, options, population, first_epoch)
    _check_tables(contests, population)
    given = options.together
    households = None if given is None else read_households(given, traces.users)
    plan = Plan(
        contests=contests,
        targets=_targets(options, population.tested, households, reference_size),
        releases=options.n_releases,
        releases_of=tuple(
            (attack, releases)
            for attack, releases in options.releases_by_attack().items()
            if releases != options.n_releases
        ),
        control_releases=options.n_control_releases,
        reference_size=reference_size,
        past_releases=options.past_releases if _users_of("past", attacks) else 0,
        first_epoch=first_epoch,
        seed=options.seed,
        choice=_choice(options, population.tested, households, reference_size),
        game=_game(options, traces, contests, reference_size, households),
    )
    _check_households(plan, population)
    _check_chance(plan, population)
    _check_turnover(plan, traces.n_users - 1 - reference_size)
    return _without_idle(plan, population)


def _game_of_everybody(options: AuditOptions) -> EverybodyGame | None:
    return None if options.chance is None else EverybodyGame(options.chance, options.min_visits)


def _game(
    options: AuditOptions,
    traces: Traces,
    contests: Sequence[Contest],
    reference_size: int,
    households: Clusters | None,
) -> Game:
    """Return the game, with what draws its groups if it is not chance alone; that is tried once."""
    given, of_everybody = options.groups, _game_of_everybody(options)
    if of_everybody is not None:
        return replace(of_everybody, households=households)
    if given is None:
        return TargetGame(turnover=options.turnover, households=households)
    if not callable(given):
        return TargetGame(read_clusters(given, traces.users))
    people = np.arange(traces.n_users - 1 - reference_size)
    n = max(one.setting.scheme.group_size for one in contests) - 1
    once, again = (draw_group(given, generator(0, "try"), people, n) for _ in range(2))
    if not np.array_equal(once, again):
        raise GroupError(
            "the function that draws groups (`groups`) draws others from the same random numbers",
            fix="Draw all random numbers from `rng`",
        )
    return TargetGame(given)


def _without_idle(plan: Plan, population: Population) -> Plan:
    """Leave out attacks where they do not apply, and say what a reader must know."""
    said = _about_people(plan, population)

    @cache
    def reference(people: Population) -> Traces:
        return people.tested.select(np.arange(plan.reference_size))

    def views_of(setting: Setting, target: int) -> list[View]:
        return _views(setting, plan, population, target, reference)

    first = {one: views_of(one, plan.targets[0]) for one in plan.settings}
    why = {}
    for one in plan.contests:
        why[one] = plan.game.obstacle(one) or _obstacle(one, first[one.setting])
        if why[one] and "friends" in one.attack.uses:
            others = (views_of(one.setting, row) for row in plan.targets[1:])
            why[one] = why[one] if all(_obstacle(one, views) for views in others) else None
    for setting in plan.settings:
        obstacles = [why[one] for one in plan.contests if one.setting == setting]
        if all(obstacles):
            raise InputError(
                f"none of the attacks applies to {setting}: {obstacles[0]}",
                fix=f"Add another, such as {_APPLIES[setting.scheme.has_law]}",
            )
    for attack in plan.attacks:
        own = [one for one in plan.contests if one.attack == attack]
        idle = [one for one in own if why[one]]
        if idle:
            settings = "; ".join(str(one.setting) for one in idle)
            said.append(
                f"{attack} is left out of {len(idle)} of {len(own)} settings ({settings}), where "
                f"it does not apply: {why[idle[0]]}."
            )
        if attack.is_study_only:
            has = listed([WORDS[part] for part in sorted(attack.uses & FOR_STUDIES)])
            said.append(
                f"{attack} has {has}, as hardly any attacker does. No setting is judged by it, and "
                "it may exceed the ceiling of the game of one target."
            )
    kept = tuple(one for one in plan.contests if not why[one])
    said += dict.fromkeys(
        sentence
        for one in kept
        for view in first[one.setting]
        for sentence in one.attack.cautions(view.facts, view.auxiliary)
    )
    return replace(plan, contests=kept, cautions=tuple(said))


def _obstacle(contest: Contest, views: Sequence[View]) -> str | None:
    """Return why an attack cannot be made on a target, None if it can."""
    try:
        contest.attack.check_tables(views)
    except NotApplicableError as error:
        return error.problem
    return None


def _views(
    setting: Setting,
    plan: Plan,
    population: Population,
    target: int,
    reference: Callable[[Population], Traces],
) -> list[View]:
    """Return what an attacker will have of each table, as far as it can be told beforehand.

    Blank releases stand for those that the game will make, and the first people for the reference.
    """
    m, views = setting.scheme.group_size, []
    finest = population.under(setting.scheme.tables[0].layout.in_finest_cells).tested
    rng = generator(plan.seed, "knowledge", target)
    known = setting.knowledge.of(finest.select([target]), rng)
    for table in setting.scheme.tables:
        people = population.under(table.layout)
        traces, friends = people.tested, people.friends_of(target)
        facts = Facts.of(traces, m, table.mechanism)
        lowest = table.mechanism.alphabet(facts.most_count).lowest
        blank = Release(np.full(facts.shape, lowest, np.int32), facts)
        auxiliary = Auxiliary(
            reference=reference(people),
            friends=traces.select(friends) if friends.size else None,
            past=[PastRelease(blank, target_in=i % 2 == 0) for i in range(plan.past_releases)],
            example=blank,
            example_in=blank,
            # Of a million people, a copy takes longer than all else that is checked.
            others=traces.select(np.arange(m - 1)) if _users_of("others", plan.attacks) else None,
            everybody=traces,
            older=blank,
        )
        here = over(known, table.layout.all_at_once)
        views.append(View(facts, here, auxiliary, table.layout))
    return views


def _about_people(plan: Plan, population: Population) -> list[str]:
    said = []
    game = plan.game
    if isinstance(game, TargetGame) and game.turnover:
        said.append(
            f"From each table to the next, {100 * game.turnover:g} % of the other people are "
            "replaced; a target is in all tables, or in none. Attacks that learn from groups make "
            "them of the same people throughout."
        )
    if game.households is not None:
        said.append(
            "Whole households are in or out (`together`). Attacks know what one person did, and "
            "nothing of who else is in the household. The ceiling and the guarantee are about the "
            "whole household."
        )
    if not game.draws_uniformly:
        said.append(
            "The groups are not drawn uniformly (`groups`). Attacks assume that they are, so "
            "others may do better, and nothing is accepted."
        )
    pool = population.tested.n_users - 1 - plan.reference_size
    largest = max(scheme.group_size for scheme in plan.schemes)
    if isinstance(game, TargetGame) and pool < 2 * largest:
        said.append(
            f"Groups of {largest} are drawn from {pool} people, so test releases share more than "
            "half of their people. The results are about these people more than about others."
        )
    if _users_of("friends", plan.attacks) and population.friends is not None:
        alone = sum(not population.friends_of(target).size for target in plan.targets)
        if alone:
            said.append(
                f"{alone} of {len(plan.targets)} targets have no friends in the table: attacks "
                "that need friends are not made on them."
            )
    return said


def _first_epoch(options: AuditOptions, traces: Traces) -> int:
    """Return the epoch at which the tested time begins."""
    if options.test_from is None:
        return 0
    moment = options.test_from
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone(traces.epochs.timezone))
    first = int(traces.epochs.index_of(np.array([to_micros(moment)]))[0])
    if first < 0:
        raise InputError(
            f"the tested time is to begin at {options.test_from}, outside of the {traces.epochs}",
            fix="Give a time within them",
        )
    return first


def _users_of(part: str, attacks: Sequence[Attack]) -> list[Attack]:
    return [attack for attack in attacks if part in attack.uses]


def _in_need_of_people(attacks: Sequence[Attack]) -> list[Attack]:
    """Return the attacks that need people who are in no test release."""
    return [attack for attack in attacks if attack.uses & {"reference", "past"}]


def _reference_size(options: AuditOptions, attacks: Sequence[Attack], traces: Traces) -> int:
    others = traces.n_users - 1
    if options.reference_size is None:
        return others // 2 if _in_need_of_people(attacks) else 0
    if not 0 <= options.reference_size < others:
        raise GroupError(
            f"a reference of {options.reference_size} cannot be taken from {others} others",
            fix=f"Give at most half of them, {others // 2}",
        )
    return options.reference_size


def _check_groups(
    contests: Sequence[Contest],
    attacks: Sequence[Attack],
    options: AuditOptions,
    reference: int,
    traces: Traces,
) -> None:
    """Refuse groups that the data cannot provide, and say which it could."""
    largest = max(one.setting.scheme.group_size for one in contests)
    others = traces.n_users - 1
    pool, need = others - reference, [str(attack) for attack in _in_need_of_people(attacks)]
    # Groups that an attack draws from exactly m people would all be the same.
    spare = int(any(attack.groups_from_reference for attack in attacks))
    most = min(pool, reference - spare) if need else pool
    if largest <= most:
        return
    if pool < largest:
        aside = f" with {reference} set aside as a reference" if reference else ""
        problem = f"of {traces.n_users} users, {pool} are left for test groups{aside}"
    else:
        more = "more than that" if spare else "as many"
        problem = f"{need[0]} needs a reference of {more}, and it is to have {reference}"
    fixes = [f"give a group size (`group_size`) of {most} or less"] if most >= 2 else []
    if need and 2 * largest + spare <= others:
        fixes.append(
            f"give a reference size (`reference_size`) from {largest + spare} to {others - largest}"
        )
    if need and len(need) < len(attacks):
        without = pool if options.reference_size is not None else others
        fixes.append(f"leave out {' and '.join(need)} (then up to {without} people)")
    fix = _either(fixes or ["look for larger data"])
    raise GroupError(f"groups of {largest} are too large: {problem}", fix=fix)


def _check_turnover(plan: Plan, pool: int) -> None:
    """Refuse more people who come and go than there are."""
    game = plan.game
    people = max(game.people_in(one) for one in plan.schemes) if isinstance(game, TargetGame) else 0
    left = min(pool, plan.reference_size) if _users_of("past", plan.attacks) else pool
    if people > left:
        raise GroupError(
            f"with those who come and go (`turnover`), a publication holds {people:,} people, and "
            f"{left:,} are left for it",
            fix="Give a smaller share (`turnover`), fewer tables (`weeks`) or smaller groups "
            "(`group_size`)",
        )


def _check_households(plan: Plan, population: Population) -> None:
    """Refuse groups that whole households cannot make up, by drawing one for each size of these."""
    households = plan.game.households
    if households is None or not isinstance(plan.game, TargetGame):
        return
    sizes = households.sizes[households.of]
    smallest = min(scheme.group_size for scheme in plan.schemes)
    if sizes.max() > smallest:
        raise GroupError(
            f"groups of {smallest} do not hold the largest household (`together`)",
            fix="Give larger groups (`group_size`), or leave that household out of the file",
        )
    past = bool(_users_of("past", plan.attacks))
    for row, scheme in product(np.unique(sizes, return_index=True)[1], plan.schemes):
        rounds = TargetRounds(population, plan, Task(int(row), scheme))
        m, reference = scheme.group_size, rounds.reference_rows
        if _in_need_of_people(plan.attacks) and reference.size <= m:
            raise GroupError(
                f"a reference of whole households (`together`) is {reference.size} people, too few "
                f"to draw groups of {m} from",
                fix="Give smaller groups (`group_size`) or a larger reference (`reference_size`)",
            )
        for people in (rounds.pool, reference)[: 1 + past]:
            rounds.drawn_households(generator(0, "try"), people, households)


def _check_chance(plan: Plan, population: Population) -> None:
    """Refuse too few people to ask, and a chance of being in that may leave nobody in or out.

    Each release must hold somebody, and the releases together test people who are in and who are
    not: everybody, or the targets of an attack that scores one after the other.
    """
    game = plan.game
    if not isinstance(game, EverybodyGame):
        return
    rounds = game.rounds(population, plan, plan.tasks[0])
    households = game.households
    n, n_asked = (
        rows.size if households is None else np.unique(households.of[rows]).size
        for rows in (rounds.people, rounds.everybody)
    )
    who = "people" if households is None else "households (`together`)"
    if n_asked < LEAST_PEOPLE:
        raise GroupError(
            f"nothing is said of fewer than {LEAST_PEOPLE} {who}, and only {n_asked} can be asked",
            fix="Give larger data, or leave out `min_visits`, `reference_size` or `together`",
        )
    scored = min(
        plan.releases_by(one)
        * (n_asked if isinstance(one, AttackOnEverybody) else len(plan.targets))
        for one in plan.attacks
    )
    n_releases = max(map(plan.releases_by, plan.attacks)) + plan.control_releases
    # Less leaves nobody in some release, or those whom an attack scores out of all; more, in all.
    odd = _MOST_ODD
    least = max(1 - (odd / n_releases) ** (1 / n), 1 - odd ** (1 / scored))
    most = odd ** (1 / scored)
    if not least <= game.include <= most:
        what = "in" if game.include < least else "out of"
        nearest = min(ceil(100 * least), 99) if what == "in" else max(floor(100 * most), 1)
        proposed = f"a chance such as {nearest / 100:g}" if least <= nearest / 100 <= most else ""
        more = "larger data" if what == "in" else "more releases or targets (`releases`, `targets`)"
        raise GroupError(
            f"a chance of {game.include:g} (`include`) may leave nobody {what} a release",
            fix="Give " + " or ".join(filter(None, (proposed, more))),
        )


def _check_tables(contests: Sequence[Contest], population: Population) -> None:
    """Refuse units that a table cannot express, and slips in mechanisms of a user's own.

    These are tried on the first people.
    """
    for scheme in dict.fromkeys(one.setting.scheme for one in contests):
        for table in scheme.tables:
            most_added = population.under(table.layout).tested.most_added
            table.check(table.layout.covered(population.tested).epochs, most_added)
        if not scheme.has_law:
            rng, rows = generator(0, "try"), np.arange(scheme.group_size)
            for table in scheme.tables:
                traces = population.under(table.layout).tested
                facts = Facts.of(traces, scheme.group_size, table.mechanism)
                table.mechanism.apply(traces.counts(rows), facts.most_count, rng)


def _check_past(
    attacks: Sequence[Attack], options: AuditOptions, population: Population, first_epoch: int
) -> None:
    learners = _users_of("past", attacks)
    if not learners:
        return
    if options.past_releases < 4 or options.past_releases % 2:
        raise InputError(
            f"{learners[0]} cannot learn from {options.past_releases} past releases",
            fix="Give an even number, at least 4",
        )
    if first_epoch and not population.earlier:
        raise InputError(
            f"only {first_epoch} epochs lie before the {population.tested.epochs.n} tested ones, "
            "which is too short for a past release",
            fix="Let the tested time begin later, or leave its beginning out",
        )


def _either(fixes: Sequence[str]) -> str:
    """Write ways out of a problem as one sentence."""
    text = ", or ".join(fixes)
    return text[0].upper() + text[1:]


def _choice(
    options: AuditOptions, traces: Traces, households: Clusters | None, reference_size: int
) -> TargetChoice:
    """Return how the targets are chosen, for whoever reads what is found about them."""
    if options.users:
        return TargetChoice(by_hand=True)
    least, visits = options.min_visits, traces.visits_per_user()
    if options.everybody:
        aside = set_aside(options.seed, traces.n_users, reference_size, households)
        visits = np.delete(visits, aside)
    eligible, people = in_fives(int((visits >= least).sum())), visits.size
    return TargetChoice(
        everybody=options.everybody,
        min_visits=least,
        eligible=min(eligible, people),
        people=people,
    )


def _targets(
    options: AuditOptions, traces: Traces, households: Clusters | None, reference_size: int
) -> tuple[int, ...]:
    """Return the rows of the people to attack, of different households."""
    visits = traces.visits_per_user()
    of = np.arange(traces.n_users) if households is None else households.of
    if options.users:
        rows = tuple(traces.row_of(user) for user in dict.fromkeys(options.users))
        if not all(visits[row] for row in rows):
            raise EmptyError("a named target made no visit", fix="Leave that one out")
        if np.unique(of[list(rows)]).size < len(rows):
            problem = "two named targets are of the same household (`together`)"
            raise InputError(problem, fix="Name one of each household")
        return rows
    n = options.n_targets
    if n < 1:
        raise InputError(f"at least one target is needed, got {n}")
    eligible = np.flatnonzero(visits >= options.min_visits)
    if options.everybody:
        aside = set_aside(options.seed, traces.n_users, reference_size, households)
        eligible = np.setdiff1d(eligible, aside)
        n = n if options.targets else max(min(n, eligible.size), 1)
    # All in random order, of whom the first are taken: more targets are these and others. They are
    # a sample of households, each person as likely as any other at first.
    order = generator(options.seed, "targets").permutation(eligible)
    if households is not None:
        order = order[np.sort(np.unique(of[order], return_index=True)[1])]
        if options.everybody and not options.targets:
            n = min(n, order.size)
        if order.size < n:
            raise GroupError(
                f"{n} targets of different households (`together`) are wanted, and {order.size} "
                f"households have somebody with at least {options.min_visits} visits",
                fix=f"Ask for {order.size} targets or less (`targets`)",
            )
    if eligible.size < n:
        enough = int(np.sort(visits)[-n]) if n <= visits.size else 0
        fixes = [f"ask for {enough} visits or less (`min_visits`)"] if enough else []
        fixes += [f"ask for {eligible.size} targets or less (`targets`)"] if eligible.size else []
        raise GroupError(
            f"only {eligible.size} users have at least {options.min_visits} visits, "
            f"and {n} targets are wanted",
            fix=_either(fixes or ["look for larger data"]),
        )
    return tuple(int(row) for row in order[:n])
