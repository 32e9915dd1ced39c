"""The game of everybody: who is in, and what its checks see."""

from dataclasses import replace

import numpy as np
import pytest

import whosthere as wt
from whosthere.arrays import own
from whosthere.auditing.options import AuditOptions
from whosthere.auditing.planning import make_plan
from whosthere.data.traces import Group
from whosthere.game.everybody import DIGITS, ROUNDS_IN_BLOCK, _of_group
from whosthere.game.rounds import Population
from whosthere.privacy.facts import Facts
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.publish import Publication, publish_table
from whosthere.privacy.step import WITHHELD

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def city():
    return wt.simulate("milan-like", seed=3, users=900, regions=9, days=1).traces()


def rounds_of(city, mechanism="suppress(k=1)", **chosen):
    options = AuditOptions.of(
        mechanisms=mechanism,
        everybody=True,
        include=0.7,
        seed=2,
        **{"attacks": "likelihood-ratio", "releases": 12} | chosen,
    )
    plan = make_plan(options, city)
    return plan.game.rounds(Population.of(city), plan, plan.tasks[0])


class TestRounds:
    def test_everybody_is_in_by_chance_alone(self, city):
        rounds = rounds_of(city)
        included = np.array([rounds.test(i).included for i in range(40)])
        # 5 standard errors, for people together and for rounds alone.
        reach = 5 * np.sqrt(0.21 / included.size)
        assert abs(included.mean() - 0.7) < reach
        assert np.abs(included.mean(axis=1) - 0.7).max() < 5 * np.sqrt(0.21 / city.n_users)
        assert len({row.tobytes() for row in included}) == 40

    def test_counts_are_those_of_who_is_in(self, city):
        drawn = rounds_of(city, "raw").test(0)
        (release,) = drawn.publication.releases
        assert np.array_equal(release.counts, city.counts(np.flatnonzero(drawn.included)))
        assert release.group_size == drawn.included.sum()

    def test_groups_do_not_depend_on_the_protection(self, city):
        one, other = (rounds_of(city, spec).test(4).included for spec in ("raw", "suppress(k=3)"))
        assert np.array_equal(one, other)

    def test_who_is_set_aside_is_in_no_release(self, city):
        rounds = rounds_of(city, attacks="knock-knock", targets=2)
        aside = rounds.reference_rows
        assert aside.size == rounds.plan.reference_size
        assert not np.intersect1d(aside, rounds.everybody).size
        assert not any(rounds.test(i).included[aside].any() for i in range(5))

    def test_blocks_are_all_rounds_once(self, city):
        rounds = rounds_of(city)
        game, plan = rounds.plan.game, rounds.plan
        (attack,) = plan.attacks
        numbers = [i for task in plan.tasks for i in game.tests(plan, task, attack)]
        assert sorted(numbers) == list(range(12))
        assert max(len(game.tests(plan, task, attack)) for task in plan.tasks) == ROUNDS_IN_BLOCK

    def test_scores_say_nothing_where_nothing_is_published(self, city):
        """How many are in is public, and moves the last digits of fitted rates."""
        rounds = rounds_of(city, "suppress(k=900)")
        (player,) = rounds.players(rounds.plan.contests)
        for i in range(3):
            assert not player.said(rounds.test(i)).everybody.any()

    def test_scores_are_those_of_one_after_the_other(self, city):
        rounds = rounds_of(city, targets=5)
        (player,) = rounds.players(rounds.plan.contests)
        drawn = rounds.test(1)
        (release,) = drawn.publication.releases
        for target, answer in player.said(drawn).answers.items():
            alone = wt.attack(release, city.trace(target), attack="likelihood-ratio")
            assert answer.score == pytest.approx(alone.score, abs=10.0**-DIGITS)


class TestAReleaseAsOfAnotherSize:
    def test_no_count_exceeds_the_group(self, city):
        """Attacks on targets are prepared for the size to expect."""
        how = Mechanism.parse("suppress(k=1, shown=mark)")
        rows = np.arange(40)
        crowd = city.select(np.zeros(40, np.int64) + int(np.argmax(city.visits_per_user())))
        made = publish_table(Group(crowd, own(rows, np.int64)), how, noise=RNG, bounding=RNG)
        facts = Facts.of(crowd, 30, how)
        fitted = _of_group(made.release, facts)
        assert made.release.values.max() == 40
        assert fitted.values.max() == 30
        assert np.array_equal(fitted.values == WITHHELD, made.release.values == WITHHELD)
        assert fitted.facts == facts


class TestChecks:
    def test_each_control_tosses_coins_of_its_own(self, city):
        """5 standard errors of half of the people, who are seen by chance once in a million."""
        rounds = rounds_of(city)
        one, other = (rounds.control(i) for i in range(2))
        is_in = np.zeros(city.n_users, np.bool_)
        is_in[one.publication.tables[0].group.rows] = True
        half, reach = city.n_users / 2, 2.5 * np.sqrt(city.n_users)
        assert abs(one.included.sum() - half) < reach
        for others in (other.included, is_in):
            assert abs((one.included != others).sum() - half) < reach

    def test_sound_rounds_have_no_fault(self, city):
        rounds = rounds_of(city, attacks="knock-knock", targets=2)
        (checks,) = rounds.checks()
        assert [checks.see(rounds.test(i)).fault for i in range(3)] == [None] * 3
        assert checks.fault_of_control(rounds.control(0)) is None

    def test_who_was_set_aside_is_seen(self, city):
        rounds = rounds_of(city, attacks="knock-knock", targets=2)
        (checks,) = rounds.checks()
        drawn = rounds.test(0)
        included = drawn.included.copy()
        included[rounds.reference_rows[0]] = True
        group = Group(city, own(np.flatnonzero(included), np.int64))
        made = publish_table(group, rounds.tables[0].mechanism, noise=RNG, bounding=RNG)
        wrong = replace(drawn, publication=Publication((made,)), included=included)
        assert "of the pool" in checks.see(wrong).fault

    def test_a_wrong_label_is_seen(self, city):
        rounds = rounds_of(city)
        (checks,) = rounds.checks()
        drawn = rounds.test(0)
        included = drawn.included.copy()
        included[:2] = included[:2][::-1] if included[0] != included[1] else ~included[:2]
        assert "label" in checks.see(replace(drawn, included=included)).fault
