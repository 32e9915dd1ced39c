"""Options: blocks and their union, what overrides what, and what is refused at once."""

from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
import pytest

from whosthere.adversary.attacks import Attack, LikelihoodRatio, ZeroKnowledge
from whosthere.adversary.knowledge import All, Share
from whosthere.auditing.choices import AuditChoices, SearchChoices, choices_of
from whosthere.auditing.options import (
    DEFAULT_ATTACKS,
    IN_BLOCKS,
    SCALES,
    AuditOptions,
    Block,
    merged,
    several,
)
from whosthere.auditing.planning import make_plan
from whosthere.errors import InputError
from whosthere.game.rounds import Population
from whosthere.game.scoring import Scored, score_task
from whosthere.inference.vocabulary import CEILING
from whosthere.privacy.mechanism import Mechanism


def written(contests):
    return [str(contest) for contest in contests]


class TestSeveral:
    @pytest.mark.parametrize(
        ("given", "values"),
        [
            ("raw", ("raw",)),
            (5, (5,)),
            (np.int64(5), (5,)),
            (["a", "b"], ("a", "b")),
            (("a",), ("a",)),
            ((), ()),
            (range(2, 4), (2, 3)),
            (np.array([2, 3]), (2, 3)),
            (All(), (All(),)),
        ],
    )
    def test_one_value_stands_for_itself(self, given, values):
        assert several(given) == values


class TestBlock:
    def test_objects_and_specs_are_the_same(self):
        by_spec = Block("suppress(k=1)", 10, "share(0.5)", "zero-knowledge(groups=20)")
        by_object = Block(
            Mechanism.parse("suppress(k=1)"),
            (np.int64(10),),
            [Share(0.5)],
            ZeroKnowledge(groups=20),
        )
        assert by_spec == by_object
        assert written(by_spec.contests()) == written(by_object.contests())
        assert type(by_object.group_size[0]) is int

    def test_said_twice_is_said_once(self):
        block = Block(("raw", "RAW"), (10, np.int64(10)), ("all", All()), ("likelihood-ratio",) * 2)
        assert written(block.contests()) == ["likelihood-ratio in raw, m=10"]

    def test_the_usual_attacks_know_all(self):
        block = Block("raw", 10)
        assert block.attacks is None
        assert tuple(map(str, AuditOptions((block,)).attacks)) == DEFAULT_ATTACKS
        assert block.knowledge == (All(),)

    @pytest.mark.parametrize("size", [1, 0, -3, 2.5, True, "ten", "10"])
    def test_groups_that_are_none(self, size):
        with pytest.raises(InputError):
            Block("raw", size)

    @pytest.mark.parametrize(
        ("missing", "word"),
        [
            ("mechanisms", "no mechanism"),
            ("group_size", "no group size"),
            ("knowledge", "no knowledge"),
            ("attacks", "no attack"),
        ],
    )
    def test_nothing_must_be_missing(self, missing, word):
        chosen = {"mechanisms": "raw", "group_size": 10, missing: ()}
        with pytest.raises(InputError, match=word) as error:
            AuditOptions.of(**chosen).contests()
        assert "such as" in error.value.fix

    def test_no_block_at_all(self):
        with pytest.raises(InputError, match="no mechanism"):
            AuditOptions().contests()


class TestUnion:
    WIDE = Block(("raw", "suppress(k=1)"), (8, 10), attacks="likelihood-ratio")
    DEEP = Block("raw", 10, ("all", "regions"), ("log-likelihood", "likelihood-ratio"))

    def test_every_contest_once(self):
        both = AuditOptions((self.WIDE, self.DEEP)).contests()
        assert len(both) == len(set(both)) == 4 + 4 - 1
        assert set(both) == {*self.WIDE.contests(), *self.DEEP.contests()}

    def test_no_combination_that_nobody_asked_for(self):
        found = written(AuditOptions((self.WIDE, self.DEEP)).contests())
        assert "log-likelihood in raw, m=8" not in found
        assert "likelihood-ratio in suppress(k=1), m=8, knows regions" not in found

    def test_setting_by_setting(self):
        settings = [one.setting for one in AuditOptions((self.WIDE, self.DEEP)).contests()]
        first_seen = dict.fromkeys(settings)
        assert settings == sorted(settings, key=list(first_seen).index)

    def test_the_order_of_blocks_decides_no_score(self, traces):
        plans = [
            make_plan(AuditOptions(blocks, targets=2, releases=4), traces)
            for blocks in ((self.WIDE, self.DEEP), (self.DEEP, self.WIDE))
        ]
        people = Population.of(traces)
        first, second = (
            {
                repr(row)
                for task in plan.tasks
                for row in score_task(people, plan, task).targets.drop("seconds").to_dicts()
            }
            for plan in plans
        )
        assert first == second

    def test_what_blocks_share_is_measured_once(self, traces):
        plan = make_plan(AuditOptions((self.WIDE, self.DEEP), targets=1, releases=4), traces)
        rows = [
            (row["setting"], row["attack"], row["control"], row["release"])
            for task in plan.tasks
            for row in score_task(Population.of(traces), plan, task).targets.to_dicts()
        ]
        # The ceiling has no control releases.
        assert len(rows) == len(set(rows)) == 7 * (4 + 2) + len(plan.settings) * 4

    def test_and_scores_as_in_either_alone(self, traces):
        both = make_plan(
            AuditOptions((self.WIDE, self.DEEP), targets=1, releases=4, reference_size=15), traces
        )
        people = Population.of(traces)
        together = [
            row
            for task in both.tasks
            for row in score_task(people, both, task).targets.drop("seconds").to_dicts()
        ]
        for block in (self.WIDE, self.DEEP):
            plan = make_plan(
                AuditOptions((block,), targets=1, releases=4, reference_size=15), traces
            )
            for task in plan.tasks:
                for row in score_task(people, plan, task).targets.drop("seconds").to_dicts():
                    assert together.count(row) == 1


@dataclass(frozen=True)
class SaysTheSame(Attack):
    """Differs from its like in nothing that a spec shows."""

    name: ClassVar[str] = "likelihood-ratio"
    summary: ClassVar[str] = "is called like another attack"

    def fit(self, facts, knowledge, auxiliary, *, seed):
        raise NotImplementedError


class TestNames:
    def test_two_attacks_of_the_same_name_are_refused(self):
        """Their scores could not be told apart afterwards."""
        attacks = LikelihoodRatio(), SaysTheSame()
        with pytest.raises(InputError, match="likelihood-ratio"):
            AuditOptions.of(mechanisms="raw", group_size=10, attacks=attacks)

    def test_in_different_blocks_too(self):
        with pytest.raises(InputError, match="likelihood-ratio"):
            Block(("raw", "suppress(k=1)"), 10, attacks=SaysTheSame())


class TestNumbers:
    @pytest.mark.parametrize("scale", SCALES)
    def test_a_scale_fills_in_what_is_left_open(self, scale):
        options = AuditOptions(scale=scale)
        assert (options.n_targets, options.n_releases) == SCALES[scale][:2]
        given = AuditOptions(scale=scale, targets=3, releases=4, control_releases=0)
        assert (given.n_targets, given.n_releases, given.n_control_releases) == (3, 4, 0)

    @pytest.mark.parametrize(
        "wrong",
        [
            *({"scale": "quik"}, {"seed": -1}, {"min_visits": 0}),
            *({"releases": 3}, {"releases": 0}, {"releases": -2}),
        ],
    )
    def test_refused_at_once(self, wrong):
        with pytest.raises(InputError, match=next(iter(wrong))):
            AuditOptions(**wrong)

    @pytest.mark.parametrize("number", [3, 0, -2])
    def test_numbers_of_single_attacks_are_balanced_too(self, number):
        with pytest.raises(InputError, match=f"of likelihood-ratio must be even.*got {number}"):
            AuditOptions(releases_of={"likelihood-ratio": number})

    def test_one_user_is_not_a_list_of_letters(self):
        assert AuditOptions(users="u30").users == ("u30",)
        assert AuditOptions(users=["u30", "u31"]).users == ("u30", "u31")


class TestReleasesOfAttacks:
    ZERO, INDEPENDENT = "zero-knowledge", "zero-knowledge(sampling=independent)"

    def numbers(self, attacks=DEFAULT_ATTACKS, **chosen):
        options = AuditOptions.of(mechanisms="raw", group_size=10, attacks=attacks, **chosen)
        return options.releases_by_attack()

    def test_the_quick_scale_looks_longer_where_it_is_cheap(self):
        quick = SCALES["quick"]
        more = quick.releases_of["likelihood-ratio"]
        assert more > quick.releases
        assert self.numbers() == dict.fromkeys(DEFAULT_ATTACKS, 20) | {"likelihood-ratio": more}

    def test_a_number_for_all_holds_for_all(self):
        assert set(self.numbers(releases=40).values()) == {40}
        assert set(self.numbers(scale="paper").values()) == {100}

    def test_what_is_given_for_an_attack_goes_first(self):
        given = {"likelihood-ratio": 200, "knock-knock": 4}
        expected = {"knock-knock": 4, "zero-knowledge": 40, "likelihood-ratio": 200}
        assert self.numbers(releases=40, releases_of=given) == expected
        assert self.numbers(releases_of={"zero-knowledge": 40})["likelihood-ratio"] == 60

    def test_a_name_holds_for_all_variants_and_a_spec_for_one(self):
        both = (self.ZERO, self.INDEPENDENT)
        of = {self.ZERO: 30}
        assert self.numbers(both, releases_of=of) == dict.fromkeys(both, 30)
        of["zero-knowledge( sampling = independent )"] = 10
        assert self.numbers(both, releases_of=of) == {self.ZERO: 30, self.INDEPENDENT: 10}

    def test_the_users_own_attack_can_be_named(self):
        @dataclass(frozen=True)
        class Own(SaysTheSame):
            name: ClassVar[str] = "own"

        assert self.numbers(Own(), releases_of={"own": 8}) == {"own": 8}

    @pytest.mark.parametrize(
        ("key", "fix"),
        [
            ("likelihod-ratio", "'likelihood-ratio'?"),
            ("log-likelihood", "Known: knock-knock, likelihood-ratio, zero-knowledge"),
            ("zero-knowledge(sampling=independent)", "Known"),
            ("", "Known"),
        ],
    )
    def test_an_attack_that_is_none_of_them(self, key, fix):
        with pytest.raises(InputError, match="none of the attacks") as error:
            self.numbers(releases_of={key: 40})
        assert fix in error.value.fix

    def test_the_plan_has_them(self, traces):
        chosen = {"mechanisms": ("raw", "suppress(k=1)"), "group_size": 10, "targets": 1}
        attacks = ("likelihood-ratio", "log-likelihood")
        options = AuditOptions.of(**chosen, attacks=attacks, releases=4)
        plain = make_plan(options, traces)
        plan = make_plan(merged(options, {"releases_of": {"likelihood-ratio": 8}}), traces)
        assert "releases_of" not in plain.to_json()
        assert plan.to_json() == plain.to_json() | {"releases_of": {"likelihood-ratio": 8}}
        assert [plan.releases_by(attack) for attack in plan.attacks] == [8, 4]
        ceilings = [Scored.wanted(plan, task).by(CEILING, "all") for task in plan.tasks]
        assert ceilings == [(8, 0), (8, 0)]


class TestMerged:
    TWO = AuditOptions(
        (
            Block("raw", 8, "all", "likelihood-ratio"),
            Block("suppress(k=1)", 10, "regions", "log-likelihood"),
        ),
        targets=7,
        seed=3,
    )

    def test_nothing_given_changes_nothing(self):
        assert merged(self.TWO, {}) == self.TWO

    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            (
                {"group_size": (5, 6)},
                [
                    "likelihood-ratio in raw, m=5",
                    "likelihood-ratio in raw, m=6",
                    "log-likelihood in suppress(k=1), m=5, knows regions",
                    "log-likelihood in suppress(k=1), m=6, knows regions",
                ],
            ),
            (
                {"attacks": "zero-knowledge"},
                [
                    "zero-knowledge in raw, m=8",
                    "zero-knowledge in suppress(k=1), m=10, knows regions",
                ],
            ),
            (
                {"mechanisms": "raw", "group_size": 9, "knowledge": "all"},
                ["likelihood-ratio in raw, m=9", "log-likelihood in raw, m=9"],
            ),
        ],
    )
    def test_what_belongs_to_blocks_is_replaced_in_every_block(self, given, expected):
        options = merged(self.TWO, given)
        assert written(options.contests()) == expected
        assert (options.targets, options.seed) == (7, 3)

    def test_other_options(self):
        options = merged(self.TWO, {"seed": 9, "releases": 4})
        assert (options.seed, options.n_releases, options.targets) == (9, 4, 7)
        assert options.blocks == self.TWO.blocks

    def test_without_a_file(self):
        options = merged(AuditOptions(), {"mechanisms": "raw", "group_size": 10, "seed": 2})
        assert options == AuditOptions.of(mechanisms="raw", group_size=10, seed=2)

    def test_none_stands_for_what_is_not_given(self):
        assert merged(self.TWO, {"seed": None, "group_size": None}) == self.TWO

    def test_an_option_that_there_is_not(self):
        with pytest.raises(InputError, match="'sizes'"):
            merged(self.TWO, {"sizes": 5})

    def test_every_option_is_declared(self):
        """What Python, files and the command line offer is what there is to choose."""
        declared = {*choices_of(AuditChoices)}
        assert declared == {*IN_BLOCKS, *(one.name for one in fields(AuditOptions))} - {"blocks"}
        assert choices_of(SearchChoices).items() <= choices_of(AuditChoices).items()

    def test_a_number_of_targets_goes_before_names(self):
        named = AuditOptions(users=("u30",))
        assert merged(named, {"targets": 5}).users == ()
        assert merged(named, {"seed": 5}).users == ("u30",)

    def test_names_go_before_a_number(self, traces):
        usual = {"mechanisms": "raw", "group_size": 10, "attacks": "likelihood-ratio"}
        for given in ({"users": ("u30",)}, {"users": ("u30",), "targets": 5}):
            plan = make_plan(merged(AuditOptions(targets=3), usual | given), traces)
            assert plan.targets == (30,)
