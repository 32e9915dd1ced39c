"""Plans: what is chosen, what is refused, and refusals whose advice works."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product

import numpy as np
import pytest

from whosthere.adversary.attacks import Attack
from whosthere.adversary.knowledge import (
    All,
    Knowledge,
    Regions,
    Share,
)
from whosthere.auditing.options import DEFAULT_ATTACKS, SCALES, AuditOptions
from whosthere.auditing.planning import make_plan
from whosthere.errors import EmptyError, GroupError, InputError, SpecError
from whosthere.game.plan import Contest, Setting
from whosthere.game.rounds import Task
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.scheme import Scheme

OPTIONS = {
    "mechanisms": "raw",
    "group_size": 10,
    "attacks": "likelihood-ratio",
    "targets": 5,
    "releases": 4,
}


@pytest.fixture
def plan(traces):
    """Make a plan from the usual options but for those given."""
    return lambda **chosen: make_plan(AuditOptions.of(**OPTIONS | chosen), traces)


@pytest.fixture
def refused(plan):
    """Return the message of a plan that must be refused."""

    def run(**chosen):
        with pytest.raises(InputError) as error:
            plan(**chosen)
        assert error.value.fix or re.search("must be|is needed", error.value.problem)
        return str(error.value)

    return run


def number_after(words, message):
    return int(re.search(rf"{words} (\d+)", message)[1])


def number_before(words, message):
    found = re.search(rf"(\d+) {words}", message)
    return None if found is None else int(found[1])


def group_size_in(message):
    found = re.search(r"group size \S+ of (\d+) or less", message)
    return None if found is None else int(found[1])


class TestKnowledge:
    @pytest.mark.parametrize(
        "text",
        ["all", "share(0.1)", "share(0.25)", "regions", "regions(top=5)", "regions(guess=random)"],
    )
    def test_round_trip(self, text):
        assert str(Knowledge.parse(text)) == text
        assert Knowledge.parse(str(Knowledge.parse(text))) == Knowledge.parse(text)

    @pytest.mark.parametrize(
        ("text", "known"),
        [
            (" ALL ", All()),
            ("all()", All()),
            ("Share( .5 )", Share(0.5)),
            ("share(share=0.5)", Share(0.5)),
            ("regions( TOP = 3 )", Regions(3)),
            ("regions(guess=greedy)", Regions()),
        ],
    )
    def test_case_and_spaces_are_free(self, text, known):
        assert Knowledge.parse(text) == known

    @pytest.mark.parametrize("share", [1 / 3, 0.123456789, 1e-7])
    def test_shares_of_many_digits_keep_their_names_apart(self, share):
        known = Share(share)
        assert Knowledge.parse(str(known)) == known
        assert str(Share(float(np.nextafter(share, 1)))) != str(known)

    @pytest.mark.parametrize("text", ["", "everything", "much"])
    def test_refused_names(self, text):
        with pytest.raises(SpecError, match="Known: all, share, regions"):
            Knowledge.parse(text)

    @pytest.mark.parametrize(
        "text", ["share", "share()", "share(0)", "share(1.1)", "share(nan)", "share(a)"]
    )
    def test_refused_shares(self, text):
        with pytest.raises(SpecError, match=r"Write it like share\(0\.1\)|above 0 and at most 1"):
            Knowledge.parse(text)

    @pytest.mark.parametrize(
        "text",
        [
            "regions(0)",
            "regions(top=0)",
            "regions(top=-1)",
            "regions(top=2.5)",
            "regions(guess=wild)",
            "all(1)",
            "share=0.1",
            "share(0.1, 0.2)",
        ],
    )
    def test_other_refusals(self, text):
        with pytest.raises(SpecError):
            Knowledge.parse(text)


class TestSettings:
    def test_every_combination_once(self, plan):
        mechanisms, sizes = ("raw", "suppress(k=1)"), (5, 10)
        knowledge = ("all", "share(0.5)", "regions")
        attacks = ("likelihood-ratio", "log-likelihood", "zero-knowledge(sampling=independent)")
        made = plan(mechanisms=mechanisms, group_size=sizes, knowledge=knowledge, attacks=attacks)
        wanted = {
            Contest(
                Setting(Scheme.of(Mechanism.parse(spec), m), Knowledge.parse(known)),
                Attack.parse(attacker),
            )
            for spec, m, known, attacker in product(mechanisms, sizes, knowledge, attacks)
        }
        assert len(wanted) == 36
        assert set(made.contests) == wanted
        assert len(made.contests) == len({str(contest) for contest in made.contests}) == 36
        assert len(made.settings) == len({str(setting) for setting in made.settings}) == 12
        assert len(made.schemes) == 4

    def test_the_same_said_twice_is_one_setting(self, plan):
        made = plan(
            mechanisms=("raw", "RAW", "flowkit", "suppress(k=15)"),
            group_size=(10, 10),
            knowledge=("all", " ALL()"),
            attacks=(
                "likelihood-ratio",
                "likelihood-ratio",
                "zero-knowledge(groups=20)",
                "zero-knowledge( sampling=paired, groups = 20 )",
            ),
        )
        assert [str(setting) for setting in made.settings] == ["raw, m=10", "suppress(k=15), m=10"]
        assert list(map(str, made.attacks)) == ["likelihood-ratio", "zero-knowledge(groups=20)"]

    def test_every_target_meets_every_scheme_once(self, plan):
        made = plan(group_size=(5, 10), knowledge=("all", "regions"))
        assert len(made.tasks) == len(set(made.tasks))
        assert set(made.tasks) == {Task(*pair) for pair in product(made.targets, made.schemes)}

    def test_every_contest_belongs_to_one_scheme(self, plan):
        made = plan(group_size=(5, 10), knowledge=("all", "regions"), mechanisms=("raw", "raw"))
        under = [contest for scheme in made.schemes for contest in made.contests_under(scheme)]
        assert sorted(map(str, under)) == sorted(map(str, made.contests))
        inside = [(setting, one) for setting in made.settings for one in made.attacks_in(setting)]
        assert inside == [(contest.setting, contest.attack) for contest in made.contests]

    def test_fewer_targets_are_the_first_of_more(self, plan):
        few, more = (plan(targets=n, seed=4).targets for n in (5, 9))
        assert more[:5] == few

    def test_targets_come_first(self, plan):
        """What is done first is about few people in all settings, not all people in one."""
        made = plan(group_size=(5, 10))
        assert [task.number for task in made.tasks] == np.repeat(made.targets, 2).tolist()

    def test_defaults_go_without_saying(self):
        scheme = Scheme.of(Mechanism(), 7)
        assert str(Setting(scheme)) == "raw, m=7"
        assert str(Setting(scheme, Share(0.5))) == "raw, m=7, knows share(0.5)"

    def test_cautions_decide_nothing(self, plan):
        made = plan(group_size=30)
        assert made.cautions
        assert replace(made, cautions=()) == made
        assert replace(made, cautions=()).to_json() == made.to_json()


class TestScales:
    @pytest.mark.parametrize("scale", SCALES)
    def test_fills_in_what_is_left_open(self, traces, plan, scale):
        twice = traces.select(np.tile(np.arange(20, 40), 4))
        options = AuditOptions.of(mechanisms="raw", group_size=10, scale=scale)
        made = make_plan(options, twice)
        assert (len(made.targets), made.releases) == SCALES[scale][:2]
        assert tuple(map(str, made.attacks)) == DEFAULT_ATTACKS
        given = plan(scale=scale)
        assert (len(given.targets), given.releases) == (5, 4)

    @pytest.mark.parametrize(("releases", "control"), [(2, 2), (10, 2), (20, 4), (100, 20)])
    def test_control_is_a_fifth(self, plan, releases, control):
        assert plan(releases=releases).control_releases == control

    def test_control_can_be_given(self, plan):
        assert plan(control_releases=7).control_releases == 7

    def test_a_reference_is_set_aside_only_if_somebody_uses_it(self, traces, plan):
        assert plan().reference_size == 0
        with_reference = plan(attacks=("knock-knock", "likelihood-ratio"))
        assert with_reference.reference_size == (traces.n_users - 1) // 2
        assert plan(reference_size=12).reference_size == 12


class TestTargets:
    def test_distinct_and_eligible(self, traces, plan):
        visits = traces.visits_per_user()
        assert visits.min() == 0
        for seed in range(20):
            targets = plan(seed=seed, targets=12, min_visits=20).targets
            assert len(set(targets)) == 12
            assert visits[list(targets)].min() >= 20

    def test_everybody_eligible_can_be_chosen(self, traces, plan):
        visited = np.flatnonzero(traces.visits_per_user())
        chosen = plan(targets=visited.size, min_visits=1).targets
        assert sorted(chosen) == visited.tolist()

    def test_seed_decides_and_attacks_do_not(self, plan):
        chosen = plan(seed=3).targets
        assert plan(seed=3).targets == chosen
        for other in (
            {"attacks": DEFAULT_ATTACKS},
            {"group_size": (5, 7)},
            {"mechanisms": ("suppress(k=1)",)},
            {"releases": 20},
            {"knowledge": ("regions",)},
            {"reference_size": 10},
        ):
            assert plan(seed=3, **other).targets == chosen
        assert len({plan(seed=seed).targets for seed in range(5)}) == 5

    def test_named(self, traces, plan):
        made = plan(users=("u30", "u25", "u30"), targets=9)
        assert [traces.users[row] for row in made.targets] == ["u30", "u25"]

    def test_how_they_were_chosen_is_known_and_decides_nothing(self, traces, plan):
        drawn, frequent, named = plan(), plan(min_visits=2, targets=1), plan(users=("u30",))
        assert str(drawn.choice) == "drawn at random"
        visits = traces.visits_per_user()
        # In steps of 5 people.
        assert (int((visits >= 2).sum()), frequent.choice.eligible) == (37, 40)
        assert frequent.choice.people == traces.n_users
        assert frequent.choice.who == "people with 2 or more visits"
        assert named.choice.by_hand
        assert "targets_chosen" in named.about_json()
        assert "chosen" not in json.dumps(named.to_json())
        assert replace(drawn, choice=None) == drawn

    def test_unknown_names_are_refused(self, refused):
        assert "not in these traces" in refused(users=("u30", "nobody"))

    def test_named_without_visits_is_refused(self, traces, plan):
        silent = traces.users[int(np.argmin(traces.visits_per_user()))]
        with pytest.raises(EmptyError, match="no visit"):
            plan(users=("u30", silent))

    def test_no_user_id_in_json(self, traces, plan):
        made = plan(users=("u30", "u25"), mechanisms=("raw", "suppress(k=1)"))
        text = json.dumps(made.to_json(), allow_nan=False)
        assert json.loads(text)["targets"] == [30, 25]
        assert not any(user in text for user in traces.users)


class TestTooFewTargets:
    @pytest.mark.parametrize(
        ("targets", "min_visits"),
        [
            (30, 30),
            (39, 10),
            (15, 40),
            (5, 90),
            (3, 10_000),
        ],
    )
    def test_either_advice_works(self, plan, refused, targets, min_visits):
        message = refused(targets=targets, min_visits=min_visits)
        assert f"{targets} targets" in message
        fewer = number_before("targets or less", message)
        looser = number_before("visits or less", message)
        assert fewer or looser
        if fewer:
            assert len(plan(targets=fewer, min_visits=min_visits).targets) == fewer < targets
        if looser:
            assert len(plan(targets=targets, min_visits=looser).targets) == targets

    @pytest.mark.parametrize("min_visits", [1, 30])
    def test_more_targets_than_users(self, traces, min_visits):
        busy = traces.select(np.flatnonzero(traces.visits_per_user() >= 3))
        options = AuditOptions.of(
            **OPTIONS | {"targets": busy.n_users + 1, "min_visits": min_visits}
        )
        with pytest.raises(GroupError) as error:
            make_plan(options, busy)
        n = number_before("targets or less", str(error.value))
        assert len(make_plan(replace(options, targets=n), busy).targets) == n
        assert "visits or less" not in str(error.value)

    @pytest.mark.parametrize("n", [0, -1])
    def test_no_target_at_all(self, refused, n):
        assert "at least one target" in refused(targets=n)


class TestGroupsTooLarge:
    @pytest.mark.parametrize("attacks", [("likelihood-ratio",), ("zero-knowledge",)])
    def test_without_a_reference(self, plan, refused, attacks):
        message = refused(group_size=(5, 40), attacks=attacks)
        most = group_size_in(message)
        assert plan(group_size=(5, most), attacks=attacks)
        refused(group_size=(most + 1,), attacks=attacks)

    def test_with_a_reference(self, plan, refused):
        message = refused(group_size=(30,), attacks=DEFAULT_ATTACKS)
        most = group_size_in(message)
        assert plan(group_size=(most,), attacks=DEFAULT_ATTACKS)
        refused(group_size=(most + 1,), attacks=DEFAULT_ATTACKS)
        left_out = re.search(r"leave out ([\w\- ]+) \(", message)[1].split(" and ")
        kept = tuple(name for name in DEFAULT_ATTACKS if name not in left_out)
        most = number_after("up to", message)
        assert plan(group_size=(most,), attacks=kept)
        refused(group_size=(most + 1,), attacks=kept)

    @pytest.mark.parametrize("reference", [0, 5, 12, 30, 37])
    def test_with_a_given_reference(self, plan, refused, reference):
        attacks = ("knock-knock", "likelihood-ratio")
        message = refused(group_size=39, attacks=attacks, reference_size=reference)
        size = group_size_in(message)
        if size is not None:
            assert plan(group_size=size, attacks=attacks, reference_size=reference)
            refused(group_size=size + 1, attacks=attacks, reference_size=reference)
        most = re.search(r"up to (\d+)", message)
        if most:
            kept = ("likelihood-ratio",)
            assert plan(group_size=(int(most[1]),), attacks=kept, reference_size=reference)
        assert size or most

    @pytest.mark.parametrize("size", [13, 15, 19])
    def test_another_reference(self, plan, refused, size):
        attacks = ("knock-knock", "likelihood-ratio")
        message = refused(group_size=size, attacks=attacks, reference_size=12)
        low, high = map(int, re.search(r"reference size \S+ from (\d+) to (\d+)", message).groups())
        for reference in (low, high):
            assert plan(group_size=size, attacks=attacks, reference_size=reference)
        for reference in (low - 1, high + 1):
            refused(group_size=size, attacks=attacks, reference_size=reference)

    def test_past_releases_need_people_too(self, plan, refused):
        """Groups of past releases come from the reference, so that it must be large enough."""
        attacks = ("knock-knock-past-groups", "likelihood-ratio")
        assert plan(attacks=attacks).reference_size == 19
        most = group_size_in(refused(group_size=30, attacks=attacks))
        assert plan(group_size=most, attacks=attacks)
        refused(group_size=most + 1, attacks=attacks)

    @pytest.mark.parametrize("size", [10.5, True, "ten"])
    def test_a_group_has_whole_people(self, plan, size):
        with pytest.raises(InputError, match="whole number"):
            plan(group_size=size)

    @pytest.mark.parametrize("size", [1, 0, -3])
    def test_a_group_hides_its_people(self, refused, size):
        assert "at least 2" in refused(group_size=(10, size))

    @pytest.mark.parametrize("size", [39, 100, -1])
    def test_reference_too_large(self, plan, refused, size):
        message = refused(reference_size=size)
        assert f"a reference of {size}" in message
        most = number_after("half of them,", message)
        assert plan(reference_size=most)


# What is chosen, what the message must name, how it must help, and a choice that then works.
WRONG = [
    ({"releases": 5}, "must be even", "got 5", {"releases": 6}),
    ({"control_releases": -4}, "control releases", "got -4", {"control_releases": 0}),
    (
        {"attacks": ("likelihood-ration",)},
        "'likelihood-ration'",
        "'likelihood-ratio'?",
        {"attacks": ("likelihood-ratio",)},
    ),
    ({"attacks": ()}, "no attack", "likelihood-ratio", {"attacks": ("likelihood-ratio",)}),
    ({"attacks": ("loc-mia",)}, "none of the attacks applies", "likelihood-ratio", {}),
    ({"scale": "quik"}, "'quik'", "Did you mean 'quick'?", {"scale": "quick"}),
    (
        {"attacks": "zero-knowledge(sampling=pared)"},
        "'pared'",
        "Did you mean 'paired'?",
        {"attacks": "zero-knowledge(sampling=paired)"},
    ),
    ({"knowledge": ("some",)}, "'some'", "all, share, regions", {"knowledge": ("share(0.1)",)}),
    ({"mechanisms": ()}, "no mechanism", "suppress(k=1)", {"mechanisms": ("suppress(k=1)",)}),
    ({"mechanisms": ("supress(k=1)",)}, "'supress'", "Did you mean 'suppress'?", {}),
    ({"group_size": ()}, "no group size", "such as 1000", {}),
    (
        {"mechanisms": ("suppress(k=1)",), "attacks": ("contradiction-rule",)},
        "suppress(k=1), m=10",
        "likelihood-ratio",
        {"mechanisms": ("suppress(k=1)",), "attacks": ("contradiction-rule", "likelihood-ratio")},
    ),
    ({"releases": 0}, "at least 2", "got 0", {"releases": 2}),
    ({"releases": -2}, "at least 2", "got -2", {"releases": 2}),
    ({"seed": -1}, "seed", "0", {"seed": 0}),
    ({"knowledge": ()}, "know", "all", {"knowledge": ("all",)}),
    (
        {"test_from": datetime(2014, 1, 1)},
        "2014-01-01",
        "within them",
        {"test_from": datetime(2013, 11, 2)},
    ),
]


@pytest.mark.parametrize(("wrong", "named", "fix", "right"), WRONG)
def test_refusals(plan, refused, wrong, named, fix, right):
    message = refused(**wrong)
    assert named in message
    assert fix in message
    assert plan(**right)


SOMETIMES_UNSOUND = {
    "mechanisms": ("raw", "suppress(k=1)"),
    "knowledge": ("all", "regions"),
    "attacks": ("contradiction-rule", "likelihood-ratio"),
}


class TestAttacksThatDoNotApply:
    def test_left_out_where_unsound(self, plan):
        made = plan(**SOMETIMES_UNSOUND)
        usable = {str(s): list(map(str, made.attacks_in(s))) for s in made.settings}
        assert usable == {
            "raw, m=10": ["contradiction-rule", "likelihood-ratio"],
            "raw, m=10, knows regions": ["likelihood-ratio"],
            "suppress(k=1), m=10": ["likelihood-ratio"],
            "suppress(k=1), m=10, knows regions": ["likelihood-ratio"],
        }
        assert made.to_json()["contests"] == usable

    def test_and_said_so(self, plan):
        made = plan(**SOMETIMES_UNSOUND)
        [said] = [line for line in made.cautions if "contradiction-rule" in line]
        assert "left out of 3 of 4 settings" in said
        assert all(f"{setting}" in said for setting in made.settings[1:])


@pytest.mark.parametrize(("m", "warned"), [(19, False), (20, True), (39, True)])
def test_small_pools_are_told(plan, m, warned):
    """Of 39 others, two groups of 20 share somebody for sure."""
    said = plan(group_size=(5, m)).cautions
    assert len(said) == warned
    if warned:
        assert f"Groups of {m}" in said[0]
        assert "39 people" in said[0]


def test_groups_that_the_reference_leaves_are_told(plan):
    assert plan(group_size=15).cautions == ()
    said = plan(group_size=15, reference_size=19).cautions
    assert len(said) == 1
    assert "20 people" in said[0]


def test_group_errors_are_group_errors(plan):
    with pytest.raises(GroupError):
        plan(group_size=100)


class TestTestedTime:
    """The traces begin on 1 November 2013 in Rome, and have three days of hours."""

    def test_all_of_it_unless_said_otherwise(self, plan):
        assert plan().first_epoch == 0

    @pytest.mark.parametrize(
        ("moment", "first"),
        [
            (datetime(2013, 11, 1), 0),
            (datetime(2013, 11, 2), 24),
            (datetime(2013, 11, 2, 5, 30), 29),
            (datetime(2013, 11, 2, 4, 30, tzinfo=UTC), 29),
            (datetime(2013, 11, 3, 23, 59), 71),
        ],
    )
    def test_begins_in_the_epoch_that_holds_the_moment(self, plan, moment, first):
        assert plan(test_from=moment).first_epoch == first

    @pytest.mark.parametrize("moment", [datetime(2013, 10, 31, 23, 59), datetime(2013, 11, 4)])
    def test_is_refused_outside(self, refused, moment):
        assert "within them" in refused(test_from=moment)

    def test_targets_are_seen_in_it(self, traces, plan):
        begin = datetime(2013, 11, 3, 20)
        made = plan(test_from=begin, targets=4, min_visits=2)
        late = traces.between(68, 4)
        assert (late.visits_per_user()[list(made.targets)] >= 2).all()
        gone = np.flatnonzero(
            (late.visits_per_user() == 0) & (traces.visits_per_user() > 0)
        ).tolist()
        assert gone
        with pytest.raises(EmptyError, match="no visit"):
            plan(test_from=begin, users=traces.users[gone[0]])
