"""Plans: what is chosen, what is refused, and refusals whose advice works."""

import json
import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from whosthere.auditing.plan import DEFAULT_ATTACKS, SCALES, PlanOptions, make_plan, warnings
from whosthere.auditing.setting import Known, Setting
from whosthere.errors import EmptyError, GroupError, InputError
from whosthere.privacy.mechanism import Mechanism

OPTIONS = PlanOptions(
    mechanisms=("raw",), group_sizes=(10,), attacks=("likelihood-ratio",), targets=5, releases=4
)


@pytest.fixture
def plan(traces):
    """Make a plan from the usual options but for those given."""
    return lambda **chosen: make_plan(replace(OPTIONS, **chosen), traces)


@pytest.fixture
def refused(plan):
    """Return the message of a plan that must be refused."""

    def run(**chosen):
        with pytest.raises(InputError) as error:
            plan(**chosen)
        assert error.value.fix
        return str(error.value)

    return run


def number_after(words, message):
    return int(re.search(rf"{words} (\d+)", message)[1])


class TestKnown:
    @pytest.mark.parametrize("text", ["all", "share=0.1", "share=0.25", "regions", "regions=5"])
    def test_round_trip(self, text):
        assert str(Known.parse(text)) == text
        assert Known.parse(str(Known.parse(text))) == Known.parse(text)

    @pytest.mark.parametrize(
        ("text", "known"),
        [
            (" ALL ", Known()),
            ("share=1", Known()),
            ("Share = .5", Known(share=0.5)),
            ("regions = 3", Known(places_only=True, most_places=3)),
        ],
    )
    def test_case_and_spaces_are_free(self, text, known):
        assert Known.parse(text) == known

    @pytest.mark.parametrize("share", [1 / 3, 0.123456789, 1e-7])
    def test_shares_of_many_digits_keep_their_names_apart(self, share):
        known = Known(share=share)
        assert Known.parse(str(known)) == known
        assert str(Known(share=np.nextafter(share, 1))) != str(known)

    @pytest.mark.parametrize(
        "text",
        ["", "everything", "share", "share=", "share=0", "share=1.1", "share=nan", "share=a"],
    )
    def test_refused_shares(self, text):
        with pytest.raises(InputError, match=r"Use all, share=0\.1"):
            Known.parse(text)

    @pytest.mark.parametrize(
        "text",
        ["regions=0", "regions=-1", "regions=2.5", "all=1"],
    )
    def test_other_refusals(self, text):
        with pytest.raises(InputError, match=r"Use all, share=0\.1"):
            Known.parse(text)


class TestSettings:
    def test_every_combination_once(self, plan):
        mechanisms, sizes = ("raw", "suppress(k=1)"), (5, 10)
        knowledge, sampling = ("all", "share=0.5", "regions"), ("paired", "independent")
        made = plan(
            mechanisms=mechanisms, group_sizes=sizes, knowledge=knowledge, sampling=sampling
        )
        wanted = {
            Setting(Mechanism.parse(spec), m, Known.parse(known), how)
            for spec, m, known, how in product(mechanisms, sizes, knowledge, sampling)
        }
        assert len(wanted) == 24
        assert set(made.settings) == wanted
        assert len(made.settings) == len({str(setting) for setting in made.settings}) == 24

    def test_the_same_said_twice_is_one_setting(self, plan):
        made = plan(
            mechanisms=("raw", "RAW", "flowkit", "suppress(k=15)"),
            group_sizes=(10, 10),
            knowledge=("all", "share=1"),
            attacks=("likelihood-ratio", "likelihood-ratio"),
        )
        assert [str(setting) for setting in made.settings] == ["raw, m=10", "suppress(k=15), m=10"]
        assert made.attacks == ("likelihood-ratio",)

    def test_every_target_meets_every_setting_once(self, plan):
        made = plan(group_sizes=(5, 10), knowledge=("all", "regions"))
        pairs = [(unit.target, unit.setting) for unit in made.units]
        assert len(pairs) == len(set(pairs))
        assert set(pairs) == set(product(made.targets, made.settings))

    def test_defaults_go_without_saying(self):
        assert str(Setting(Mechanism(), 7)) == "raw, m=7"
        full = Setting(Mechanism(), 7, Known(share=0.5), "independent")
        assert str(full) == "raw, m=7, knows share=0.5, independent groups"


class TestScales:
    @pytest.mark.parametrize("scale", SCALES)
    def test_fills_in_what_is_left_open(self, traces, plan, scale):
        twice = traces.select(np.tile(np.arange(20, 40), 3))
        options = PlanOptions(mechanisms=("raw",), group_sizes=(10,), scale=scale)
        made = make_plan(options, twice)
        assert (len(made.targets), made.releases) == SCALES[scale]
        assert made.attacks == DEFAULT_ATTACKS
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
        chosen = plan(targets=visited.size, min_visits=0).targets
        assert sorted(chosen) == visited.tolist()

    def test_seed_decides_and_attacks_do_not(self, plan):
        chosen = plan(seed=3).targets
        assert plan(seed=3).targets == chosen
        for other in (
            {"attacks": DEFAULT_ATTACKS},
            {"group_sizes": (5, 7)},
            {"mechanisms": ("suppress(k=1)",)},
            {"releases": 20},
            {"knowledge": ("regions",)},
            {"reference_size": 10},
        ):
            assert plan(seed=3, **other).targets == chosen
        assert len({plan(seed=seed).targets for seed in range(5)}) == 5

    def test_named(self, traces, plan):
        made = plan(target_ids=("u30", "u25", "u30"), targets=9)
        assert [traces.users[row] for row in made.targets] == ["u30", "u25"]

    def test_unknown_names_are_refused(self, refused):
        assert "not in these traces" in refused(target_ids=("u30", "nobody"))

    def test_named_without_visits_is_refused(self, traces, plan):
        silent = traces.users[int(np.argmin(traces.visits_per_user()))]
        with pytest.raises(EmptyError, match="no visit"):
            plan(target_ids=("u30", silent))

    def test_no_user_id_in_json(self, traces, plan):
        made = plan(target_ids=("u30", "u25"), mechanisms=("raw", "suppress(k=1)"))
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
        fewer = re.search(r"--targets (\d+)", message)
        looser = re.search(r"--min-visits (\d+)", message)
        assert fewer or looser
        if fewer:
            n = int(fewer[1])
            assert len(plan(targets=n, min_visits=min_visits).targets) == n < targets
        if looser:
            assert len(plan(targets=targets, min_visits=int(looser[1])).targets) == targets

    @pytest.mark.parametrize("min_visits", [1, 30])
    def test_more_targets_than_users(self, traces, min_visits):
        busy = traces.select(np.flatnonzero(traces.visits_per_user() >= 3))
        options = replace(OPTIONS, targets=busy.n_users + 1, min_visits=min_visits)
        with pytest.raises(GroupError) as error:
            make_plan(options, busy)
        n = number_after("--targets", str(error.value))
        assert len(make_plan(replace(options, targets=n), busy).targets) == n
        assert "--min-visits" not in str(error.value)

    @pytest.mark.parametrize("n", [0, -1])
    def test_no_target_at_all(self, refused, n):
        assert "at least 1" in refused(targets=n)


class TestGroupsTooLarge:
    @pytest.mark.parametrize("attacks", [("likelihood-ratio",), ("zero-knowledge",)])
    def test_without_a_reference(self, plan, refused, attacks):
        message = refused(group_sizes=(5, 40), attacks=attacks)
        most = number_after("--group-size", message)
        assert plan(group_sizes=(5, most), attacks=attacks)
        refused(group_sizes=(most + 1,), attacks=attacks)

    def test_with_a_reference(self, plan, refused):
        message = refused(group_sizes=(30,), attacks=DEFAULT_ATTACKS)
        most = number_after("--group-size", message)
        assert plan(group_sizes=(most,), attacks=DEFAULT_ATTACKS)
        refused(group_sizes=(most + 1,), attacks=DEFAULT_ATTACKS)
        left_out = re.search(r"leave out ([\w\- ]+) \(", message)[1].split(" and ")
        kept = tuple(name for name in DEFAULT_ATTACKS if name not in left_out)
        most = number_after("up to", message)
        assert plan(group_sizes=(most,), attacks=kept)
        refused(group_sizes=(most + 1,), attacks=kept)

    @pytest.mark.parametrize("reference", [0, 5, 12, 30, 37])
    def test_with_a_given_reference(self, plan, refused, reference):
        attacks = ("knock-knock", "likelihood-ratio")
        message = refused(group_sizes=(39,), attacks=attacks, reference_size=reference)
        size = re.search(r"--group-size (\d+)", message)
        if size:
            assert plan(group_sizes=(int(size[1]),), attacks=attacks, reference_size=reference)
        most = re.search(r"up to (\d+)", message)
        if most:
            kept = ("likelihood-ratio",)
            assert plan(group_sizes=(int(most[1]),), attacks=kept, reference_size=reference)
        assert size or most

    @pytest.mark.parametrize("size", [1, 0, -3])
    def test_a_group_hides_its_people(self, refused, size):
        assert "at least 2" in refused(group_sizes=(10, size))

    @pytest.mark.parametrize("size", [39, 100, -1])
    def test_reference_too_large(self, plan, refused, size):
        message = refused(reference_size=size)
        assert f"a reference of {size}" in message
        most = number_after("half of them,", message)
        assert plan(reference_size=most)


# What is chosen, what the message must name, how it must help, and a choice that then works.
WRONG = [
    ({"releases": 5}, "5 releases", "even number", {"releases": 6}),
    ({"control_releases": 0}, "0 control", "at least 1", {"control_releases": 1}),
    ({"control_releases": -4}, "-4 control", "at least 1", {"control_releases": 1}),
    (
        {"attacks": ("likelihood-ration",)},
        "'likelihood-ration'",
        "'likelihood-ratio'?",
        {"attacks": ("likelihood-ratio",)},
    ),
    ({"attacks": ()}, "no attack", "likelihood-ratio", {"attacks": ("likelihood-ratio",)}),
    ({"attacks": ("loc-mia",)}, "loc-mia needs friends", "zero-knowledge", {}),
    ({"scale": "quik"}, "'quik'", "Did you mean 'quick'?", {"scale": "quick"}),
    ({"sampling": ("pared",)}, "'pared'", "Did you mean 'paired'?", {"sampling": ("paired",)}),
    ({"knowledge": ("some",)}, "'some'", "share=0.1", {"knowledge": ("share=0.1",)}),
    ({"mechanisms": ()}, "no mechanism", "suppress(k=1)", {"mechanisms": ("suppress(k=1)",)}),
    ({"mechanisms": ("supress(k=1)",)}, "'supress'", "Did you mean 'suppress'?", {}),
    ({"group_sizes": ()}, "no group size", "--group-size", {}),
    (
        {"mechanisms": ("suppress(k=1)",), "attacks": ("contradiction-rule",)},
        "suppress(k=1), m=10",
        "likelihood-ratio",
        {"mechanisms": ("suppress(k=1)",), "attacks": ("contradiction-rule", "likelihood-ratio")},
    ),
    ({"releases": 0}, "0 releases", "at least 2", {"releases": 2}),
    ({"releases": -2}, "-2 releases", "at least 2", {"releases": 2}),
    ({"seed": -1}, "seed", "0", {"seed": 0}),
    ({"sampling": ()}, "sampling", "paired", {"sampling": ("paired",)}),
    ({"knowledge": ()}, "know", "all", {"knowledge": ("all",)}),
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
    def test_left_out_where_unsound(self, traces, plan):
        made = plan(**SOMETIMES_UNSOUND)
        usable = {str(s): list(made.attacks_in(s, traces)) for s in made.settings}
        assert usable == {
            "raw, m=10": ["contradiction-rule", "likelihood-ratio"],
            "raw, m=10, knows regions": ["likelihood-ratio"],
            "suppress(k=1), m=10": ["likelihood-ratio"],
            "suppress(k=1), m=10, knows regions": ["likelihood-ratio"],
        }

    def test_and_said_so(self, traces, plan):
        made = plan(**SOMETIMES_UNSOUND)
        [said] = [line for line in warnings(made, traces) if "contradiction-rule" in line]
        assert "left out of 3 of 4 settings" in said
        assert all(f"{setting}" in said for setting in made.settings[1:])


@pytest.mark.parametrize(("m", "warned"), [(19, False), (20, True), (39, True)])
def test_small_pools_are_told(traces, plan, m, warned):
    """Of 39 others, two groups of 20 share somebody for sure."""
    said = warnings(plan(group_sizes=(5, m)), traces)
    assert len(said) == warned
    if warned:
        assert f"Groups of {m}" in said[0]
        assert "39 people" in said[0]


def test_groups_that_the_reference_leaves_are_told(traces, plan):
    assert warnings(plan(group_sizes=(15,)), traces) == []
    said = warnings(plan(group_sizes=(15,), reference_size=19), traces)
    assert len(said) == 1
    assert "20 people" in said[0]


def test_group_errors_are_group_errors(traces):
    with pytest.raises(GroupError):
        make_plan(replace(OPTIONS, group_sizes=(100,)), traces)
