"""The estimate of an audit's cost, by a clock that only attacks move."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from whosthere.adversary.attacks import Answer, Attack, FittedAttack
from whosthere.adversary.attacks.base import AttackOnEverybody
from whosthere.auditing import estimate
from whosthere.auditing.estimate import Cost, estimate_cost
from whosthere.auditing.options import AuditOptions, Block
from whosthere.auditing.planning import make_plan
from whosthere.game.rounds import Population
from whosthere.game.scoring import score_task


class Clock:
    """Stands still unless somebody works."""

    def __init__(self):
        self.now, self.fits, self.waited = 0.0, [], 0.0

    def perf_counter(self):
        return self.now + self.waited

    def process_time(self):
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """Put the clock where the estimate reads the time, and where attacks find it."""
    stopped = Clock()
    monkeypatch.setattr(estimate, "time", stopped)
    monkeypatch.setattr(Slow, "clock", stopped)
    return stopped


@dataclass(frozen=True)
class Slow(Attack):
    """Takes its time: seconds to fit for each person of a group, to score, and to load at first."""

    to_fit: float = 0.0
    to_score: float = 0.0
    to_load: float = 0.0

    name: ClassVar[str] = "slow"
    summary: ClassVar[str] = "takes its time"
    clock: ClassVar[Clock | None] = None

    def fit(self, facts, knowledge, auxiliary, *, seed):
        first = facts.group_size not in self.clock.fits
        self.clock.fits.append(facts.group_size)
        self.clock.now += self.to_fit * facts.group_size + (self.to_load if first else 0)
        return Fitted(self)


class Fitted(FittedAttack):
    def __init__(self, attack):
        self._attack = attack

    def score(self, release):
        self._attack.clock.now += self._attack.to_score
        return Answer(0.0, 0.0)


def plan_of(traces, *blocks, **chosen):
    usual = {"targets": 3, "releases": 4, "control_releases": 3}
    return make_plan(AuditOptions(blocks, **usual | chosen), traces)


def seconds(plan, traces, tasks=None):
    cost = estimate_cost(plan, Population.of(traces), plan.tasks if tasks is None else tasks)
    return cost.seconds


@pytest.mark.parametrize(("releases", "control"), [(4, 3), (10, 0), (2, 8)])
def test_every_release_is_counted_and_every_fit_once(traces, releases, control):
    chosen = {"releases": releases, "control_releases": control}
    plan = plan_of(traces, Block("raw", 5, attacks=Slow(0.02, 0.01)), **chosen)
    each = 0.02 * 5 + 0.01 * (releases + control)
    assert seconds(plan, traces) == pytest.approx(3 * each)


def test_attacks_with_numbers_of_their_own_are_counted_by_these(traces):
    attacks = (Slow(0.02, 0.01), Slow(0.04, 0.03))
    of = {str(attacks[0]): 20}
    plan = plan_of(traces, Block("raw", 5, attacks=attacks), releases_of=of)
    each = (0.02 + 0.04) * 5 + 0.01 * (20 + 3) + 0.03 * (4 + 3)
    assert seconds(plan, traces) == pytest.approx(3 * each)


def test_all_attacks_and_knowledges_are_counted(traces):
    attacks = (Slow(0.02, 0.01), Slow(0.04, 0.03))
    plan = plan_of(traces, Block("raw", 5, ("all", "regions"), attacks))
    each = (0.02 + 0.04) * 5 + (0.01 + 0.03) * 7
    assert seconds(plan, traces) == pytest.approx(3 * 2 * each)


def test_only_what_is_left_is_counted(traces):
    plan = plan_of(traces, Block("raw", (5, 10), attacks=Slow(0.02)))
    assert [task.scheme.group_size for task in plan.tasks] == [5, 10] * 3
    left = plan.tasks[3:]
    assert seconds(plan, traces, left) == pytest.approx(0.02 * (10 + 5 + 10))


def test_only_schemes_that_are_left_are_tried(traces, clock):
    plan = plan_of(traces, Block("raw", (5, 10), attacks=Slow(0.02)))
    seconds(plan, traces, plan.tasks[1::2])
    assert set(clock.fits) == {10}


def test_nothing_is_left(traces, clock):
    plan = plan_of(traces, Block("raw", 5, attacks=Slow(1.0)))
    assert seconds(plan, traces, ()) == 0
    assert clock.fits == []


def test_what_is_loaded_once_is_not_counted(traces):
    plan = plan_of(traces, Block("raw", 5, attacks=Slow(0.02, to_load=10.0)))
    assert seconds(plan, traces) == pytest.approx(3 * 0.02 * 5)


def test_tries_end_after_a_while_and_the_others_are_taken_to_lie_between(traces, clock):
    """The first scheme takes 5 s a try, the last one 8 s: 26 s are enough."""
    plan = plan_of(traces, Block("raw", (5, 6, 7, 8), attacks=Slow(1.0)))
    assert seconds(plan, traces) == pytest.approx(3 * (5 + 6 + 7 + 8))
    assert clock.fits == [5, 5, 8, 8]


def test_tries_go_on_while_there_is_time(traces, clock):
    plan = plan_of(traces, Block("raw", (5, 6, 7, 8), attacks=Slow(0.1)))
    assert seconds(plan, traces) == pytest.approx(3 * 0.1 * (5 + 6 + 7 + 8))
    assert clock.fits == [5, 5, 8, 8, 7, 7, 6, 6]


def test_memory_is_told(traces):
    plan = plan_of(traces, Block("raw", 5, attacks=Slow()))
    cost = estimate_cost(plan, Population.of(traces), plan.tasks)
    assert isinstance(cost, Cost)
    assert cost.bytes_per_worker > 10_000_000


def test_on_a_busy_machine_work_takes_longer(traces, clock, monkeypatch):
    """Only what takes long waits for others: here loading, and neither of the short tries."""
    plan = plan_of(traces, Block("raw", 5, attacks=Slow(0.02, to_load=30.0)))
    alone = seconds(plan, traces)
    clock.fits.clear()
    fit = Slow.fit

    def waiting(self, *given, **more):
        clock.waited += 0 if clock.fits else 90.6
        return fit(self, *given, **more)

    monkeypatch.setattr(Slow, "fit", waiting)
    assert seconds(plan, traces) == pytest.approx(4 * alone)


@dataclass(frozen=True)
class SlowOnEverybody(Slow, AttackOnEverybody):
    """Takes its time for all people together."""

    def scorer(self, views):
        def score(releases):
            self.clock.now += self.to_score
            return np.zeros(views[0].knowledge.n_users)

        return score


def test_releases_of_everybody_are_counted_and_what_their_scores_take(traces):
    options = {"everybody": True, "include": 0.5, "targets": 2, "control_releases": 2}
    attack = SlowOnEverybody(0.0, 0.01)
    plans = [
        make_plan(AuditOptions.of(mechanisms="raw", attacks=attack, releases=n, **options), traces)
        for n in (12, 120)
    ]
    costs = [estimate_cost(plan, Population.of(traces), plan.tasks) for plan in plans]
    # Blocks of five, five and two releases, and one of two controls.
    assert len(plans[0].tasks) == 4
    assert [cost.seconds for cost in costs] == pytest.approx([0.01 * (12 + 2), 0.01 * (120 + 2)])
    asked = int((traces.visits_per_user() > 0).sum())
    # Of each round and person two scores are kept.
    scored = score_task(Population.of(traces), plans[0], plans[0].tasks[0]).everybody
    assert 16 <= scored.estimated_size() / (5 * asked) <= 17
    more = costs[1].bytes_to_measure - costs[1].bytes_per_worker
    more -= costs[0].bytes_to_measure - costs[0].bytes_per_worker
    assert more == 3 * 5 * (120 - 12) * asked


def test_memory_to_measure_is_told_where_it_is_more():
    assert Cost(1.0, 2 * 10**9, 10**9).memory == "2.0 GB of memory each"
    assert Cost(1.0, 10**9, 3 * 10**9).memory == "1.0 GB of memory each, 3.0 GB to measure"
    assert Cost(1.0, 0).memory == "some of memory each"
