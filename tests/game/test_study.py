"""Studies: an audit's own rounds one by one, and attackers that no audit judges by."""

import runpy
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import polars as pl
import pytest

import whosthere as wt
from whosthere.auditing.judging import judge
from whosthere.auditing.options import AuditOptions
from whosthere.auditing.planning import make_plan
from whosthere.auditing.policy import Policy
from whosthere.auditing.prospects import prospects
from whosthere.game.rounds import Population
from whosthere.game.scoring import score_task
from whosthere.inference.finding import Finding
from whosthere.inference.vocabulary import CEILING, EXCESS, STRONGEST, STUDY_ONLY, is_judged

ONE = {
    "group_size": 30,
    "targets": 1,
    "releases": 4,
    "control_releases": 2,
    "reference_size": 0,
    "seed": 1,
}
EXAMPLES = Path(__file__).parents[2] / "examples"
KNOCK_KNOCK = "knock-knock(groups=20, validation=10)"
WORDS = {
    "mechanisms": ["suppress(k=1)", "laplace(eps=1, unit=user-day, max_visits=2)"],
    "group_size": 40,
    "attacks": ["likelihood-ratio", KNOCK_KNOCK],
    "knowledge": ["all", "share(0.5)"],
    "targets": 2,
    "releases": 4,
    "releases_of": {"likelihood-ratio": 6},
    "seed": 3,
}


@dataclass(frozen=True)
class Curious(wt.attacks.Attack):
    """Scores by what it has, and keeps it for the test to look at."""

    parts: tuple[str, ...] = ("others",)

    name: ClassVar[str] = "curious"
    summary: ClassVar[str] = "has what no attacker has"
    had: ClassVar[list] = []

    @property
    def uses(self):
        return frozenset(self.parts)

    def fit(self, facts, knowledge, auxiliary, *, seed):
        self.had.append(auxiliary)
        return FittedCurious(seed % 97)


@dataclass(frozen=True)
class FittedCurious(wt.attacks.FittedAttack):
    value: float

    def score(self, release):
        return wt.attacks.Answer(self.value, 0.0)


@pytest.fixture(scope="module")
def city():
    return wt.simulate("milan-like", seed=7, users=400, days=1, regions=16).traces()


def audited(traces, **words):
    return wt.audit(traces, **WORDS | words, what_if=False, workers=1)


class TestRounds:
    def test_scores_are_those_of_the_audit_bit_for_bit(self, city):
        result = audited(city)
        found = []
        for one in wt.rounds(city, **WORDS):
            for spec in WORDS["attacks"]:
                for knowledge in WORDS["knowledge"] if one.number < 4 or "like" in spec else ():
                    answer = one.score(spec, knowledge)
                    known = "" if knowledge == "all" else f", knows {knowledge}"
                    place = (
                        f"{one.mechanism}, m={one.group_size}{known}",
                        spec,
                        one.target,
                        one.number,
                    )
                    found.append((*place, one.label, answer.score, answer.calibrated))
            found.append(
                (f"{one.mechanism}, m={one.group_size}", CEILING, one.target, one.number, one.label)
            )
            found[-1] += (one.ceiling, one.ceiling)
        rows = result.scores.filter(
            (pl.col("attack") != CEILING) | ~pl.col("setting").str.contains("knows")
        )
        columns = ("setting", "attack", "target", "release", "label", "score", "calibrated")
        assert sorted(found) == sorted(rows.select(columns).iter_rows())

    def test_a_round_has_all_that_the_audit_has(self, city):
        for one in wt.rounds(city, **WORDS, control_releases=2):
            group = one.publication.group
            assert group.rows[-1] == one.target if one.label else one.target not in group.rows
            assert set(one.others) == set(group.rows[:-1]) <= set(one.pool)
            assert sorted([one.target, *one.pool, *one.reference]) == list(range(city.n_users))
            assert (one.publication.truth == one.traces.counts(group.rows)).all()
            assert one.release is one.publication.release
        controls = list(wt.rounds(city, **WORDS, control_releases=2, control=True))
        assert len(controls) == 2 * 2 * 2
        assert all(one.label and one.target not in one.publication.group.rows for one in controls)

    def test_slips_are_found_at_once(self, city):
        with pytest.raises(wt.InputError, match="too large"):
            wt.rounds(city, **WORDS | {"group_size": 150})

    def test_an_attack_that_does_not_apply_says_so(self, city):
        one = next(wt.rounds(city, **WORDS))
        with pytest.raises(wt.attacks.NotApplicableError, match="past releases"):
            one.score("knock-knock-past-groups")


def met(traces, part, **words):
    """Return what an attack with a part had in each round, the rounds, and the scores."""
    Curious.had.clear()
    given = AuditOptions.of(**ONE | {"mechanisms": "raw", "attacks": Curious((part,))} | words)
    plan = make_plan(given, traces)
    table = score_task(Population.of(traces, plan.first_epoch), plan, plan.tasks[0]).targets
    # The first round was tried beforehand, to see whether the attack applies.
    had = [getattr(one, part) for one in Curious.had[1:]]
    every = [one for kind in (False, True) for one in wt.rounds(traces, plan=given, control=kind)]
    return plan, had, every, table


class TestKnowledge:
    def test_others_are_those_of_each_release(self, city):
        bounded = "laplace(eps=1, unit=user, max_visits=1)"
        _, had, every, _ = met(city, "others", mechanisms=bounded)
        assert len(had) == len(every) == 6
        for others, one in zip(had, every, strict=True):
            assert others.users == tuple(city.users[row] for row in one.others)
            assert others.n_visits == 29
            left = one.publication.only.counts - others.counts()
            assert (left.min(), left.sum()) == (0, 1)

    def test_everybody_may_be_in_but_the_target(self, city):
        plan, *_ = met(city, "everybody")
        [target] = plan.targets
        missing = set(city.users) - set(Curious.had[0].everybody.users)
        assert missing == {city.users[target]}

    def test_an_older_release_is_of_the_same_people(self, city):
        _, had, every, _ = met(city, "older")
        for older, one in zip(had, every, strict=True):
            assert (older.counts == one.publication.truth).all()

    def test_an_older_release_has_noise_of_its_own(self, city):
        _, had, every, _ = met(city, "older", mechanisms="laplace(eps=1, unit=event)")
        releases = [*had, *(one.release for one in every)]
        assert len({one.values.tobytes() for one in releases}) == 12

    def test_an_older_release_is_of_the_time_before(self, city):
        begin = city.epochs.local_starts[16].replace(tzinfo=None)
        _, had, every, _ = met(city, "older", test_from=begin)
        before = city.between(8, 8)
        for older, one in zip(had, every, strict=True):
            assert (older.counts == before.counts(one.publication.group.rows)).all()
            assert older.epochs.end == one.release.epochs.start

    def test_scores_plan_and_cautions_name_it(self, city):
        plan, _, _, table = met(city, "others")
        assert set(table["attack"]) == {f"curious{STUDY_ONLY}", CEILING}
        assert list(plan.to_json()["contests"].values()) == [[f"curious{STUDY_ONLY}"]]
        assert (
            "has traces of the other people of the release, as hardly any attacker"
            in plan.cautions[-1]
        )

    @pytest.mark.parametrize("part", ["example_in", "others", "everybody", "older"])
    def test_whoever_uses_such_a_part_is_marked(self, part):
        assert str(Curious((part,))).endswith(STUDY_ONLY)
        assert not str(Curious(("reference",))).endswith(STUDY_ONLY)

    def test_a_spec_of_ours_is_read_with_its_mark_and_without(self):
        spec = "zero-knowledge(fit=per-target-in)"
        assert str(wt.attacks.Attack.parse(spec)) == f"{spec}{STUDY_ONLY}"
        assert wt.attacks.Attack.parse(f"{spec}{STUDY_ONLY}") == wt.attacks.Attack.parse(spec)


def found(estimate, attack, metric="auc"):
    ends = None if estimate is None else estimate - 0.01, estimate + 0.01
    return Finding("raw", attack, metric, estimate, *ends, 50, 100, 100, None)


class TestNothingIsJudgedByIt:
    LIMIT = Policy("only AUC", {"auc": 0.6})

    @pytest.mark.parametrize("strongest", [0.5, 0.6, 0.9])
    @pytest.mark.parametrize("study", [0.1, 1.0])
    def test_a_verdict_is_the_same_with_it(self, strongest, study):
        findings = [found(strongest, STRONGEST)]
        [without] = judge(findings, self.LIMIT)
        [verdict] = judge([*findings, found(study, f"me{STUDY_ONLY}")], self.LIMIT)
        said = (
            "me has what hardly any attacker has. It is shown for study only, and decides nothing."
        )
        assert verdict.reasons == (*without.reasons, said)
        assert (verdict.decision, verdict.strongest) == (without.decision, STRONGEST)
        assert (verdict.alone, verdict.meaning) == (STRONGEST, without.meaning)

    @pytest.mark.parametrize("study", [0.1, 1.0])
    def test_alone_it_decides_nothing(self, study):
        [verdict] = judge([found(study, f"me{STUDY_ONLY}")], self.LIMIT)
        assert (verdict.decision, verdict.strongest) == ("cannot tell", None)

    def test_what_is_found_of_others_is_the_same_with_it(self, city):
        """Not even the level at which they are judged; no ceiling is held against it."""
        words = {"mechanisms": "suppress(k=1)", "group_size": 40, "knowledge": "all"}
        plain = audited(city, **words, attacks=["likelihood-ratio"])
        more = audited(city, **words, attacks=["likelihood-ratio", Curious()])
        about_audit = {"control_auc", "law_control", "faults", EXCESS}
        rest = [one for one in more.findings if not one.attack.startswith("curious")]
        had, have = (
            [one for one in some if one.metric not in about_audit]
            for some in (plain.findings, rest)
        )
        assert had == have
        assert EXCESS not in {one.metric for one in more.findings if not is_judged(one.attack)}
        assert [one.decision for one in plain.verdicts] == [one.decision for one in more.verdicts]
        assert any("study only" in reason for reason in more.verdicts[0].reasons)
        assert "study only" in wt.report(more).html

    def test_prospects(self, city):
        words = ONE | {"mechanisms": "raw", "attacks": Curious()}
        plan = make_plan(AuditOptions.of(**words), city)
        assert str(prospects(plan, plan.settings[0], self.LIMIT)) == "can decide nothing"

    def test_the_informed_attacker_reaches_the_ceiling(self, capsys, monkeypatch):
        monkeypatch.setattr("whosthere.auditing.work.usable_processors", lambda: 1)
        script = runpy.run_path(str(EXAMPLES / "informed_attacker.py"))
        result = script["main"](users=200, group_size=50, targets=6, releases=10)
        assert "informed (study only)" in capsys.readouterr().out
        aucs = {(one.setting, one.attack): one.estimate for one in result.findings
                if one.metric == "auc"}  # fmt: skip
        for setting in {one.setting for one in result.verdicts}:
            informed, best = aucs[setting, f"informed{STUDY_ONLY}"], aucs[setting, CEILING]
            assert informed == pytest.approx(best, abs=0.002)
            assert best > 0.55
