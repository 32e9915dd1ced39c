"""How much memory a process of an audit takes, as a function of the plan and the people.

A sum over what is in memory at the worst moment: while an attack is prepared, or scores a release.
The constants were measured on 64-bit Linux; `tests/auditing/test_memory.py` holds the model to a
quarter of what processes really take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from whosthere.adversary.attacks.trained import TrainedAttack
from whosthere.adversary.classifiers import ExactL1

if TYPE_CHECKING:
    from whosthere.adversary.attacks import Attack
    from whosthere.data.traces import Traces
    from whosthere.game.plan import Plan
    from whosthere.game.population import Population
    from whosthere.game.setting import Scheme

_MB = 1_000_000
# The interpreter with all libraries, before and after the compiled kernels are loaded.
_LIBRARIES, _KERNELS = 110 * _MB, 105 * _MB
_KERNELS_TO_TRAIN = 20 * _MB
# Of a visit its cell; of a user the id, its place in a tuple, and where the row begins.
_BYTES_PER_VISIT, _BYTES_PER_USER = 4, 75
# The tables of one mechanism, which are kept.
_TABLES = 2 * _MB
# True and published counts of a release, noise, and what each step makes of them.
_BYTES_PER_CELL_TO_PUBLISH = 16
# Rates, their logarithms and sums, in double precision.
_BYTES_PER_CELL_TO_FIT_RATES = 40
# Published counts are 32-bit numbers, and a classifier learns from a matrix of them.
_BYTES_PER_CELL_OF_PAST_RELEASES = 8

# What trained attacks keep of each group to learn from: a row of counts of all cells, of which the
# two groups of a pair share one. Counts take a byte as long as the busiest cell is well below 256.
_ROWS_PER_GROUP = {"paired": 0.5, "independent": 1.0}
_MOST_IN_A_BYTE = 200
# Means, deviations, weights, gradients and violations of the solver, in double precision.
_BYTES_PER_CELL_TO_SOLVE = 96
# Other classifiers take a copy of the counts in double precision, and standardise another one.
_BYTES_PER_COUNT_OF_OTHER_CLASSIFIERS = 16


def bytes_of_worker(plan: Plan, population: Population) -> int:
    """Return the most memory that a process takes which does tasks of a plan, in bytes.

    Parameters
    ----------
    plan
        What is done; one task after the other, so that their number does not matter.
    population
        Everybody, in the tested time and before it.
    """
    people = sum(_traces(one) for one in (population.tested, *population.earlier))
    # The file is read into a table first, from which the traces are made.
    reading = _LIBRARIES + 2 * people
    at_work = max(_scheme(scheme, plan, population) for scheme in plan.schemes)
    tables = _TABLES * len(plan.schemes)
    return round(max(reading, _LIBRARIES + _KERNELS + people + tables + at_work))


def _scheme(scheme: Scheme, plan: Plan, population: Population) -> float:
    """Return what a task under one scheme takes besides the people themselves."""
    attacks = [contest.attack for contest in plan.contests_under(scheme)]
    everybody = population.tested
    publishing = _BYTES_PER_CELL_TO_PUBLISH * everybody.n_cells
    past = 0
    if any("past" in attack.uses for attack in attacks):
        past = _BYTES_PER_CELL_OF_PAST_RELEASES * plan.past_releases * everybody.n_cells
    share = plan.reference_size / everybody.n_users
    reference = 0.0
    if any("reference" in attack.uses for attack in attacks):
        reference = share * _traces(everybody)
    would_be = 0.0
    if scheme.mechanism.bounds_visits:
        # For the ceiling, everybody in the pool is copied, and then bounded.
        would_be = 2 * (1 - share) * _traces(everybody)
    attacking = max(_attack(attack, scheme.group_size, everybody) for attack in attacks)
    return publishing + past + reference + max(would_be, attacking)


def _attack(attack: Attack, m: int, people: Traces) -> float:
    """Return what an attack takes while it is prepared or scores a release."""
    if isinstance(attack, TrainedAttack):
        return _training(attack, m, people)
    return _BYTES_PER_CELL_TO_FIT_RATES * people.n_cells


def _training(attack: TrainedAttack, m: int, people: Traces) -> float:
    """Return what it takes to learn from groups of m people, over all cells."""
    counts = _ROWS_PER_GROUP[attack.sampling] * attack.groups * people.n_cells
    busiest = m * int(people.counts().max(initial=0)) / people.n_users
    lessons = counts * (1 if busiest < _MOST_IN_A_BYTE else 2)
    if isinstance(attack.classifier, ExactL1):
        return _KERNELS_TO_TRAIN + lessons + _BYTES_PER_CELL_TO_SOLVE * people.n_cells
    return _KERNELS_TO_TRAIN + lessons + _BYTES_PER_COUNT_OF_OTHER_CLASSIFIERS * counts


def _traces(traces: Traces) -> int:
    return _BYTES_PER_VISIT * traces.n_visits + _BYTES_PER_USER * traces.n_users
