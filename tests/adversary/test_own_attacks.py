"""What a user needs to write an attack: a plain form, clear refusals, and scores that compare."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import whosthere as wt
from whosthere.adversary.attacks import Answer, Attack, Auxiliary, FittedAttack, calibrated
from whosthere.attacks import NUMBER, RULED_OUT, YES_NO, parameter
from whosthere.auditing.options import AuditOptions
from whosthere.auditing.run import prepare_audit
from whosthere.errors import InputError
from whosthere.privacy.facts import Facts
from whosthere.privacy.mechanism import Mechanism

M = 60


@dataclass(frozen=True)
class Mine(Attack):
    """Asks how many people were counted where the target was."""

    least: float = parameter(NUMBER, default=0.5)
    compared: bool = parameter(YES_NO, default=True)

    name: ClassVar[str] = "mine"
    summary: ClassVar[str] = "counts people at the target's visits"
    uses = frozenset({"example"})

    def fit(self, facts, knowledge, auxiliary, *, seed):
        def score(release):
            return np.log1p(release.counts.reshape(-1)[knowledge.cells]).mean()

        if self.compared:
            return calibrated(score, facts, knowledge, auxiliary, seed=seed, groups=60)
        return Plain(score)


@dataclass(frozen=True)
class Plain(FittedAttack):
    function: object

    def score(self, release):
        return Answer(self.function(release), 0.0)


@pytest.fixture(scope="module")
def people():
    return wt.simulate("milan-like", seed=1, users=1200, regions=16, days=1).traces()


def test_a_parameter_needs_no_words():
    assert str(Mine()) == "mine"
    assert str(Mine(least=2.0, compared=False)) == "mine(least=2, compared=no)"


@pytest.mark.parametrize(
    ("uses", "said"),
    [
        (frozenset({"refrence"}), "uses 'refrence'.*reference"),
        ({"example", "truth"}, "uses 'truth', which no attacker has"),
        ("reference", "no set.*frozenset"),
        (["reference"], "no set"),
    ],
)
def test_what_nobody_has_is_refused_at_once(people, monkeypatch, uses, said):
    monkeypatch.setattr(Mine, "uses", uses)
    with pytest.raises(InputError, match=said):
        wt.audit(people, mechanisms="raw", group_size=M, attacks=Mine())
    made = wt.publish(people, "raw", group_size=M, seed=1)
    with pytest.raises(InputError, match=said):
        wt.attack(made.release, people.trace(0), Mine())


def test_a_class_is_no_attack(people):
    with pytest.raises(InputError, match=r"Mine.* is no attack. Give a spec, or an object"):
        wt.audit(people, mechanisms="raw", group_size=M, attacks=[Mine])


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, None, "1", np.ones((2, 2))])
def test_an_answer_is_a_finite_number(wrong):
    with pytest.raises(InputError, match=r"no finite number. Use RULED_OUT") as found:
        Answer(wrong, 0.0)
    # A whole array may be the counts of real people.
    assert "[" not in str(found.value)
    with pytest.raises(InputError, match="threshold"):
        Answer(0.0, wrong)
    # Not a number is what it is where it was not given.
    if not (isinstance(wrong, float) and np.isnan(wrong)):
        with pytest.raises(InputError, match="calibrated"):
            Answer(0.0, 0.0, wrong)
    assert Answer(np.float32(1.5), np.int64(1)) == Answer(1.5, 1.0, 0.5)
    assert Answer(np.array(1.5), 1, np.array(0.5)) == Answer(1.5, 1.0, 0.5)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (None, "Mine has no name that is one word"),
        ("", "one word"),
        ("two words", "one word"),
        ("mine (study only)", "one word"),
        ("mine(least=1)", "one word"),
        ("ceiling", "already call something else ceiling"),
        ("guarantee", "already call"),
        ("knock-knock", "already call something else knock-knock"),
    ],
)
def test_results_must_be_able_to_call_it_by_its_name(people, monkeypatch, name, said):
    monkeypatch.setattr(Mine, "name", name)
    with pytest.raises(InputError, match=said):
        wt.audit(people, mechanisms="raw", group_size=M, attacks=Mine())


def test_what_is_returned_is_looked_at(people, monkeypatch):
    made = wt.publish(people, "raw", group_size=M, seed=1)
    monkeypatch.setattr(Plain, "score", lambda _self, _release: 0.5)
    with pytest.raises(InputError, match=r"Plain.score returned a float.*wt.attacks.Answer"):
        wt.attack(made.release, people.trace(0), Mine(compared=False))
    monkeypatch.setattr(Mine, "fit", lambda *_given, **_words: None)
    with pytest.raises(InputError, match=r"Mine.fit returned a NoneType, no FittedAttack"):
        wt.attack(made.release, people.trace(0), Mine(compared=False))


DRAWN = np.random.default_rng(1)


@pytest.mark.parametrize("given", [False, True])
def test_random_numbers_of_its_own_are_found_out(people, monkeypatch, given):
    def fit(_self, _facts, _knowledge, _auxiliary, *, seed):
        rng = np.random.default_rng(seed) if given else DRAWN
        shift = rng.random()
        return Plain(lambda release: release.counts.sum() + shift)

    monkeypatch.setattr(Mine, "fit", fit)
    words = {"mechanisms": "raw", "group_size": M, "targets": 2, "releases": 2, "workers": 1}
    if given:
        assert wt.audit(people, attacks=Mine(), what_if=False, **words).failed_tasks == 0
    else:
        with pytest.raises(InputError, match="other scores when the first task was done again"):
            wt.audit(people, attacks=Mine(), **words)


class TestCalibrated:
    @pytest.fixture(scope="class")
    @classmethod
    def releases(cls, people):
        """Releases without the target, who is the first."""
        others = people.select(np.arange(1, people.n_users))
        return [wt.publish(others, "raw", group_size=M, seed=i).release for i in range(40)]

    @pytest.mark.parametrize("part", ["example", "reference"])
    def test_is_what_the_score_is_without_the_target(self, people, releases, part):
        """A score that adds up everything, so that who the target is hardly matters."""
        facts, known = releases[0].facts, people.select([0])
        given = {"example": releases[0], "reference": people.select(np.arange(1, people.n_users))}
        fitted = calibrated(
            lambda release: 3.0 * release.counts.max() + 7.0,
            facts,
            known,
            Auxiliary(**{part: given[part]}),
            seed=2,
        )
        answers = [fitted.score(release) for release in releases]
        assert answers == [fitted.score(release) for release in releases]
        values = np.array([answer.calibrated for answer in answers])
        # Synthetic people are only like real ones; those of the reference are real.
        assert abs(values.mean()) < (1.5 if part == "example" else 0.5)
        assert 0.5 < values.std() < 2.0
        # Where nothing is trained, it lies in the middle between two whole scores.
        assert (2 * answers[0].threshold).is_integer()

    def test_those_who_cannot_be_in_do_not_count(self, people, releases):
        facts, known = releases[0].facts, people.select([0])

        def score(release):
            seen = release.counts.reshape(-1)[known.cells]
            return RULED_OUT if not seen.all() else float(seen.sum())

        fitted = calibrated(score, facts, known, Auxiliary(example=releases[0]), seed=2)
        assert fitted.tuning.deviation < 100
        assert {RULED_OUT} < {fitted.score(one).calibrated for one in releases} | {0.0}
        never = calibrated(
            lambda _: RULED_OUT, facts, known, Auxiliary(example=releases[0]), seed=2
        )
        assert never.score(releases[0]).is_certain

    def test_needs_somebody_to_make_groups_of(self, people):
        facts = Facts.of(people, M, Mechanism.parse("raw"))
        with pytest.raises(InputError, match=r'uses = frozenset\(\{"example"\}\)'):
            calibrated(len, facts, people.select([0]), Auxiliary(), seed=1)

    def test_leaving_it_out_understates_what_an_attack_finds(self, people, tmp_path):
        """Which people are found at few false alarms, over all targets."""
        people.save(tmp_path / "traces.parquet")
        options = AuditOptions.of(
            mechanisms="raw",
            group_size=M,
            attacks=[Mine(), Mine(compared=False)],
            targets=16,
            releases=16,
            seed=1,
            min_visits=2,
        )
        audit = prepare_audit(tmp_path / "traces.parquet", options, tmp_path / "run")
        result = audit.run(leaks=False)
        found = {
            (one.attack, one.metric): one.estimate
            for one in result.findings
            if one.attack.startswith("mine")
        }
        # Releases of one target are ranked alike; those of all targets are not.
        assert found["mine", "auc"] == found["mine(compared=no)", "auc"]
        few = "tpr_at_fpr_1pct"
        assert found["mine(compared=no)", few] < 0.1
        assert found["mine", few] > found["mine(compared=no)", few] + 0.1
        assert found["mine", "accuracy"] > found["mine(compared=no)", "accuracy"] + 0.1
