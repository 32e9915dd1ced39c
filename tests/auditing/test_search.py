"""The search: it finds what trying everything would find, with far fewer trials."""

import json
import math

import polars as pl
import pytest

from whosthere.auditing import search as searching
from whosthere.auditing.options import AuditOptions
from whosthere.auditing.policy import Limit, Policy
from whosthere.auditing.scores import SCHEMA
from whosthere.auditing.search import DEFAULT_FAMILIES, TrialFailedError, recommend
from whosthere.auditing.vocabulary import CONTROL
from whosthere.auditing.work import Outcome, Workers
from whosthere.data.cities import simulate
from whosthere.errors import InputError, SpecError
from whosthere.privacy.families import Family
from whosthere.privacy.mechanism import Mechanism

SUPPRESS, LAPLACE, ROUND = "suppress(k=?)", "laplace(eps=?, unit=event)", "round(to=?)"
# With four targets who are all found as by a coin, the interval ends at 0.8.
POLICY = Policy("only accuracy", (Limit("accuracy", 0.9),))
SEARCHER = str(searching.SEARCHER)
CHOSEN = {"group_sizes": 8, "attacks": SEARCHER, "targets": 4, "releases": 4}
OPTIONS = AuditOptions.of(**CHOSEN)


def specs(template):
    return [str(member.mechanism) for member in Family(template).members()]


class Pretender(Workers):
    """Knows which mechanisms each attack breaks, and makes up scores accordingly.

    Parameters
    ----------
    breaks
        Tells by attack and mechanism whether the attack finds everybody, or nobody.
    """

    def __init__(self, breaks):
        self.breaks = breaks
        self.closed = False

    def do(self, job, tasks):
        for task in tasks:
            rows = [
                self._row(task, contest, release, control)
                for contest in job.plan.contests_under(task.scheme)
                for control in (False, True)
                for release in range(
                    job.plan.control_releases if control else job.plan.releases_by(contest.attack)
                )
            ]
            yield Outcome(task, pl.DataFrame(rows, schema=SCHEMA))

    def _row(self, task, contest, release, control):
        label, attack = control or release % 2 == 0, str(contest.attack)
        found = self.breaks(attack, str(task.scheme.mechanism)) and label and not control
        return {
            "setting": str(contest.setting),
            "attack": attack,
            "target": task.target,
            "release": release,
            "label": label,
            "score": 1.0 if found else -1.0,
            "threshold": 0.0,
            "seconds": 0.0,
            "visits": 3,
            "uniqueness": 0.5,
            "calibrated": None,
            "control": control,
        }

    def close(self):
        self.closed = True


@pytest.fixture
def file(traces, tmp_path):
    path = tmp_path / "traces.parquet"
    traces.save(path)
    return path


@pytest.fixture
def search(file):
    """Search with made-up scores; return what was found, and the trials."""

    def run(breaks, families=(SUPPRESS,), attacks=SEARCHER, *, check_all=False, **others):
        trials = []
        found = recommend(
            file,
            AuditOptions.of(**CHOSEN | {"attacks": attacks} | others),
            families=families,
            policy=POLICY,
            workers=Pretender(breaks),
            check_all=check_all,
            on_trial=lambda *trial: trials.append(trial),
        )
        return found, trials

    return run


class TestFamily:
    @pytest.mark.parametrize(
        ("template", "weakest_to_strongest"),
        [
            (SUPPRESS, lambda mechanism: mechanism.steps[0].k),
            (ROUND, lambda mechanism: mechanism.steps[0].to),
            (LAPLACE, lambda mechanism: -mechanism.steps[0].eps),
            ("raw | gaussian(eps = ?)", lambda mechanism: -mechanism.steps[0].eps),
            (
                "laplace(eps=?, unit=user-day, max_visits=10) | suppress(k=1)",
                lambda mechanism: -mechanism.steps[0].eps,
            ),
            ("laplace(eps=1) | suppress(k=?)", lambda mechanism: mechanism.steps[1].k),
        ],
    )
    def test_ladders_go_from_weak_to_strong(self, template, weakest_to_strongest):
        strengths = [weakest_to_strongest(one.mechanism) for one in Family(template).members()]
        assert len(strengths) >= 5
        assert strengths == sorted(set(strengths))

    def test_choices_name_their_mechanisms(self):
        for template in DEFAULT_FAMILIES:
            family = Family(template)
            for choice, mechanism in family.members():
                name, value = choice.split("=")
                assert name == family.parameter
                assert mechanism == Mechanism.parse(template.replace("?", value))

    def test_numbers_are_short(self):
        """Products such as 3 * 0.1 must not show up as 0.30000000000000004."""
        for template in DEFAULT_FAMILIES:
            assert all(len(choice) <= len("eps=0.015") for choice, _ in Family(template).members())

    @pytest.mark.parametrize(
        "template",
        [
            "",
            "?",
            "raw",
            "suppress(k=1)",
            "suppress(k)",
            "suppress(?=1)",
            "suppress(k=?1)",
            "suppress(k=??)",
            "suppress(k=?) | round(to=?)",
            "gaussian(eps=1, delta=?)",
            "laplace(eps=1, unit=user, max_visits=?)",
            "laplace(eps=1, unit=?)",
        ],
    )
    def test_refusals_show_an_example(self, template):
        with pytest.raises(SpecError) as error:
            Family(template)
        if "family" in error.value.problem:
            assert repr(template) in str(error.value)
            assert "laplace(eps=?, unit=event)" in str(error.value)

    @pytest.mark.parametrize("template", ["supress(k=?)", "suppress(eps=?)", "laplace(eps=?, u=1)"])
    def test_mechanisms_that_are_none(self, template):
        with pytest.raises(SpecError, match=r"Did you mean|Known"):
            Family(template)


class TestBisection:
    @pytest.mark.parametrize("template", [SUPPRESS, ROUND, LAPLACE])
    def test_finds_what_trying_all_would_find(self, search, template):
        members = specs(template)
        most = math.ceil(math.log2(len(members) + 1))
        # From "all pass" to "none passes".
        for n_broken in range(len(members) + 1):
            broken = set(members[:n_broken])
            found, trials = search(lambda _, spec, broken=broken: spec in broken, (template,))
            assert [one.mechanism for one in found.best] == members[n_broken : n_broken + 1]
            assert len(trials) == len(set(trials)) <= most
            for one in found.candidates:
                assert one.passes == (one.mechanism not in broken)
            places = [members.index(one.mechanism) for one in found.candidates]
            assert places == sorted(set(places))

    def test_nothing_passes(self, search):
        found, _ = search(lambda *_: True, (SUPPRESS, LAPLACE))
        assert found.best == ()
        assert found.recommended is None
        assert found.to_json()["recommended"] is None
        assert {one.family for one in found.candidates} == {SUPPRESS, LAPLACE}


class TestLastCheck:
    BOTH = (SEARCHER, "knock-knock")

    @pytest.mark.parametrize("first_stands", [3, 4, 7, 18])
    def test_moves_on_to_the_next_stronger(self, search, first_stands):
        """The searcher breaks the first three, another attack some more."""
        members = specs(SUPPRESS)
        broken = {SEARCHER: members[:3], "knock-knock": members[:first_stands]}
        found, trials = search(lambda attack, spec: spec in broken[attack], attacks=self.BOTH)
        assert [one.mechanism for one in found.best] == [members[first_stands]]
        checked = [spec for spec, what in trials if what == "knock-knock"]
        assert checked == members[3 : first_stands + 1]
        by_spec = {one.mechanism: one for one in found.candidates}
        for spec in checked:
            assert by_spec[spec].checked
            assert by_spec[spec].passes == (spec == members[first_stands])

    def test_fails_everywhere(self, search):
        found, _ = search(lambda attack, _: attack == "knock-knock", attacks=self.BOTH)
        assert found.best == ()
        assert found.recommended is None

    def test_a_hole_in_the_ladder_is_never_recommended(self, search):
        """Beyond what the bisection saw, the searcher is asked again."""
        members = specs(SUPPRESS)
        broken = {SEARCHER: [*members[:3], members[4]], "knock-knock": members[:4]}
        found, _ = search(lambda attack, spec: spec in broken[attack], attacks=self.BOTH)
        assert [one.mechanism for one in found.best] == [members[5]]

    def test_the_verdict_is_about_all_attacks(self, search):
        found, _ = search(lambda *_: False, attacks=self.BOTH)
        (best,) = found.best
        attacks = {one.attack for one in best.findings}
        assert {SEARCHER, "knock-knock"} == attacks
        assert len(best.findings) == len({(one.attack, one.metric) for one in best.findings})

    def test_the_searcher_is_always_among_them(self, search):
        members = specs(SUPPRESS)
        found, _ = search(
            lambda attack, spec: attack == SEARCHER and spec in members[:2],
            attacks=("zero-knowledge",),
        )
        assert [one.mechanism for one in found.best] == [members[2]]


class TestRecommendation:
    def test_keeps_most_of_the_patterns(self, search):
        found, _ = search(lambda *_: False, (SUPPRESS, LAPLACE, ROUND))
        assert [one.family for one in found.best] == [SUPPRESS, LAPLACE, ROUND]
        losses = [one.pattern_lost for one in found.best]
        assert len(set(losses)) == 3
        assert found.recommended.pattern_lost == min(losses)
        assert found.to_json()["recommended"] == found.recommended.mechanism

    def test_families_do_not_disturb_each_other(self, search):
        members = specs(SUPPRESS)

        def breaks(_, spec):
            return spec in members[:5]

        (alone, _), (together, _) = search(breaks), search(breaks, (LAPLACE, SUPPRESS))
        assert [one.mechanism for one in alone.best] == [one.mechanism for one in together.best[1:]]

    def test_stronger_protections_lose_more(self, search):
        members = specs(SUPPRESS)
        lost = []
        for n in (0, 2, 6):
            found, _ = search(lambda _, spec, n=n: spec in members[:n])
            lost.append(found.best[0].utility.nonzero_lost)
        assert lost == sorted(lost)
        assert lost[0] < lost[-1]

    def test_only_the_most_useful_is_checked_unless_all_are_to_be(self, search):
        both, families = (SEARCHER, "knock-knock"), (SUPPRESS, LAPLACE, ROUND)
        found, trials = search(lambda *_: False, families, both)
        assert [what for _, what in trials].count("knock-knock") == 1
        (checked,) = [one for one in found.best if one.checked]
        assert checked == found.recommended == min(found.best, key=lambda one: one.pattern_lost)
        found, trials = search(lambda *_: False, families, both, check_all=True)
        assert [what for _, what in trials].count("knock-knock") == 3
        assert all(one.checked for one in found.best)
        assert found.recommended.mechanism == checked.mechanism

    def test_the_next_useful_is_checked_where_one_fails(self, search):
        """An attack breaks all of the most useful family, so another one is recommended."""
        both, families = (SEARCHER, "knock-knock"), (SUPPRESS, LAPLACE, ROUND)
        first, _ = search(lambda *_: False, families, both)
        broken = set(specs(first.recommended.family))
        found, _ = search(
            lambda attack, spec: attack == "knock-knock" and spec in broken, families, both
        )
        assert found.recommended is not None
        assert found.recommended.checked
        assert found.recommended.family != first.recommended.family
        # What is left of the broken family was never found to pass all attacks.
        assert not any(one.checked and one.mechanism in broken for one in found.best)

    def test_controls_of_all_trials_share_the_chance_of_a_false_alarm(self, search):
        """One of each attack, and the positive one."""
        n = len(specs(SUPPRESS)) + len(specs(ROUND))
        found, _ = search(lambda *_: False, (SUPPRESS, ROUND), (SEARCHER, "knock-knock"))
        notes = {
            one.note
            for candidate in found.candidates
            for one in candidate.findings
            if one.metric == CONTROL
        }
        assert notes == {f"99 % interval for all {3 * n} controls together"}

    def test_a_trial_that_fails_ends_the_search(self, file):
        class Failing(Pretender):
            def do(self, job, tasks):
                for task in tasks:
                    yield Outcome(task, None, "ZeroDivisionError: a test")

        workers = Failing(None)
        with pytest.raises(TrialFailedError, match="ZeroDivisionError: a test"):
            recommend(file, OPTIONS, families=(ROUND,), workers=workers)
        assert workers.closed

    def test_workers_are_let_go(self, file):
        workers = Pretender(lambda *_: False)
        recommend(file, OPTIONS, families=(ROUND,), policy=POLICY, workers=workers)
        assert workers.closed

    def test_workers_are_let_go_after_bad_input(self, file):
        workers = Pretender(lambda *_: False)
        with pytest.raises(SpecError):
            recommend(file, OPTIONS, families=("raw",), workers=workers)
        assert workers.closed

    @pytest.mark.parametrize(
        "wrong",
        [
            {"group_sizes": (400,)},
            {"releases": 5},
            {"attacks": ("knock-nock",)},
            {"group_sizes": (8, 9)},
            {"knowledge": ("all", "regions")},
        ],
    )
    def test_bad_input_is_refused_before_any_trial(self, file, wrong):
        trials = []
        with pytest.raises(InputError):
            recommend(
                file, AuditOptions.of(**CHOSEN | wrong), on_trial=lambda *one: trials.append(one)
            )
        assert trials == []

    def test_no_family_is_refused(self, file):
        with pytest.raises(InputError, match=r"no family.*suppress"):
            recommend(file, OPTIONS, families=())


@pytest.fixture(scope="module")
def city(tmp_path_factory):
    path = tmp_path_factory.mktemp("city") / "traces.parquet"
    simulate("milan-like", seed=7, users=400, days=1, regions=25).traces().save(path)
    return path


@pytest.mark.parametrize("template", [SUPPRESS, LAPLACE])
def test_real_search(city, template):
    policy = Policy("only accuracy", (Limit("accuracy", 0.6),))
    options = AuditOptions.of(group_sizes=40, attacks=SEARCHER, targets=20, releases=20, seed=2)
    found = recommend(city, options, families=(template,), policy=policy)
    assert json.loads(json.dumps(found.to_json(), allow_nan=False))["candidates"]
    for one in found.candidates:
        (measured,) = [f for f in one.findings if (f.attack, f.metric) == (SEARCHER, "accuracy")]
        assert one.passes == (measured.high <= 0.6)
    assert all(one.passes and one.checked for one in found.best)
    if template == SUPPRESS:
        # Who suppresses all counts up to 40 of groups of 40 publishes nothing, which is safe.
        assert found.best
        assert recommend(city, options, families=(template,), policy=policy) == found
