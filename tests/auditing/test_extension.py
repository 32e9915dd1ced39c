"""A larger audit holds a smaller one: what is added to it gives the same as asked for at once."""

import json
import shutil
from collections import Counter

import polars as pl
import pytest

import whosthere as wt
from whosthere.adversary.attacks import Attack
from whosthere.auditing.manifest import obstacle
from whosthere.auditing.options import AuditOptions
from whosthere.auditing.policy import Policy
from whosthere.auditing.run import prepare_audit
from whosthere.auditing.work import ThisProcess
from whosthere.errors import FileError
from whosthere.game.scoring import NOTHING, Scored
from whosthere.inference.looks import Look
from whosthere.inference.vocabulary import CEILING

FEW = "groups=20, validation=10"
CHOSEN = {
    "mechanisms": ["suppress(k=1)", "laplace(eps=1, unit=event)"],
    "group_size": 20,
    "knowledge": ["all", "share(0.5)"],
    "attacks": [
        f"knock-knock({FEW})",
        f"zero-knowledge({FEW}, fit=per-target)",
        "likelihood-ratio",
    ],
    "seed": 3,
}
SMALL = {"targets": 2, "releases": 4, "control_releases": 4, "releases_of": {"likelihood-ratio": 8}}
LARGE = SMALL | {"targets": 3, "releases": 6, "control_releases": 6}


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    path = tmp_path_factory.mktemp("city") / "traces.parquet"
    wt.simulate("milan-like", seed=2, users=500, regions=9, days=1).traces().save(path)
    return path


def prepared(traces, out, *, extend=False, **sizes):
    return prepare_audit(traces, AuditOptions.of(**CHOSEN, **sizes), out, extend=extend)


def looks(folder):
    """How many targets each look had seen."""
    return [one["targets"] for one in json.loads((folder / "manifest.json").read_text())["looks"]]


def scores(folder, name):
    return pl.read_parquet(folder / f"{name}.parquet").drop("seconds")


@pytest.fixture(scope="module")
def at_once(traces, tmp_path_factory):
    folder = tmp_path_factory.mktemp("at-once") / "run"
    prepared(traces, folder, **LARGE).run(what_if=False)
    return folder


@pytest.fixture(scope="module")
def small(traces, tmp_path_factory):
    """Give the folder of a small audit, which is not to be changed, and its plan."""
    folder = tmp_path_factory.mktemp("small") / "run"
    audit = prepared(traces, folder, **SMALL)
    audit.run(what_if=False)
    return folder, audit.plan


@pytest.fixture
def folder(small, tmp_path):
    """Give a small audit that may be extended."""
    return shutil.copytree(small[0], tmp_path / "run")


def same(one, other):
    for name in ("scores", "control"):
        assert scores(one, name).equals(scores(other, name))
    for name in ("targets", "leaks", "marginals"):
        assert pl.read_parquet(one / f"{name}.parquet").equals(
            pl.read_parquet(other / f"{name}.parquet")
        )
    assert findings(one) == findings(other)


def findings(folder):
    """What was measured; which ends decide, and what a note says of them, depends on the look."""
    found = json.loads((folder / "findings.json").read_text())
    of_look = {"low_to_decide", "high_to_decide", "note"}
    return [{key: one[key] for key in one.keys() - of_look} for one in found]


def test_what_is_added_is_what_one_audit_would_have_found(traces, at_once, folder):
    before = scores(folder, "scores")
    assert looks(folder) == [2]
    larger = prepared(traces, folder, extend=True, **LARGE)
    assert len(larger.left) == len(larger.plan.tasks)
    assert larger.look == Look(2)
    result = larger.run(what_if=False)
    assert {one.look for one in result.verdicts} == {2}
    assert looks(folder) == [2, 3]
    same(folder, at_once)
    # And what was there is still there.
    assert (
        before.join(
            scores(folder, "scores"), on=before.columns, how="semi", nulls_equal=True
        ).height
        == before.height
    )
    again = prepared(traces, folder, **LARGE)
    assert not again.left
    # The same scores are the same look, whatever the policy.
    assert again.look == Look(2)
    judged = again.run(policy=Policy("another", {"auc": 0.7}), what_if=False)
    assert {one.look for one in judged.verdicts} == {2}
    assert looks(folder) == [2, 3]


def test_nothing_is_scored_twice(traces, small, folder, monkeypatch):
    scored = []
    kind = small[1].attacks[-1].__class__
    fit = kind.fit

    def counting(self, *given, **more):
        fitted = fit(self, *given, **more)
        score = fitted.score_tables
        counted = lambda releases: (scored.append(1), score(releases))[1]  # noqa: E731
        object.__setattr__(fitted, "score_tables", counted)
        return fitted

    monkeypatch.setattr(kind, "fit", counting)
    prepared(traces, folder, extend=True, **SMALL | {"control_releases": 6}).run(
        workers=ThisProcess(), what_if=False
    )
    # Two more control releases for each target, scheme and knowledge.
    assert len(scored) == 2 * 2 * 2 * 2


def test_an_attack_that_has_scored_all_is_not_fitted_again(traces, small, folder, monkeypatch):
    fitted = Counter()
    for kind in {one.__class__ for one in small[1].attacks}:
        monkeypatch.setattr(kind, "fit", counted(kind.fit, fitted))
    prepared(traces, folder, extend=True, **SMALL | {"releases": 6}).run(
        workers=ThisProcess(), leaks=False
    )
    assert fitted["likelihood-ratio"] == 0
    # Each of 2 targets, 2 schemes and 2 kinds of knowledge.
    assert fitted["knock-knock"] == fitted["zero-knowledge"] == 2 * 2 * 2


def counted(fit, fitted):
    def counting(self, *given, **more):
        fitted[self.name] += 1
        return fit(self, *given, **more)

    return counting


class Interrupted(ThisProcess):
    """Stops after a few tasks, as a user might."""

    def do(self, job, tasks):
        for i, outcome in enumerate(super().do(job, tasks)):
            if i == 3:
                raise KeyboardInterrupt
            yield outcome


def test_an_interrupted_extension_resumes(traces, at_once, folder):
    with pytest.raises(KeyboardInterrupt):
        prepared(traces, folder, extend=True, **LARGE).run(workers=Interrupted(), what_if=False)
    assert not (folder / "verdicts.json").exists()
    # Nothing was judged, so nothing was looked at.
    assert looks(folder) == [2]
    resumed = prepared(traces, folder, **LARGE)
    assert 0 < len(resumed.left) < len(resumed.plan.tasks)
    resumed.run(what_if=False)
    same(folder, at_once)


class TestAttacks:
    """Attacks are added to the same releases."""

    ALL = (*CHOSEN["attacks"], "log-likelihood(validation=10)", "knock-knock-past-groups")
    SIZES = SMALL | {"past_releases": 8}

    def prepared(self, traces, out, attacks, **more):
        options = AuditOptions.of(**CHOSEN | self.SIZES | {"attacks": attacks} | more)
        return prepare_audit(traces, options, out, extend=True)

    @staticmethod
    def same(one, other):
        assert all(scores(one, name).equals(scores(other, name)) for name in ("scores", "control"))
        assert findings(one) == findings(other)

    @pytest.fixture(scope="class")
    @classmethod
    def all_at_once(cls, traces, tmp_path_factory):
        folder = tmp_path_factory.mktemp("all-at-once") / "run"
        cls().prepared(traces, folder, cls.ALL).run(leaks=False)
        return folder

    def test_give_what_they_would_have_given_from_the_start(self, traces, all_at_once, folder):
        before = scores(folder, "scores")
        larger = self.prepared(traces, folder, self.ALL)
        assert larger.look == Look(2)
        assert {one.look for one in larger.run(leaks=False).verdicts} == {2}
        self.same(folder, all_at_once)
        kept = scores(folder, "scores").join(
            before, on=before.columns, how="semi", nulls_equal=True
        )
        assert kept.height == before.height
        assert not self.prepared(traces, folder, self.ALL).left

    def test_only_they_are_fitted(self, traces, small, folder, monkeypatch):
        fitted = Counter()
        added = Attack.parse("log-likelihood(validation=10)")
        for one in (*small[1].attacks, added):
            monkeypatch.setattr(type(one), "fit", counted(type(one).fit, fitted))
        larger = self.prepared(traces, folder, self.ALL[:4])
        larger.run(workers=ThisProcess(), leaks=False)
        # Each of 2 targets, 2 schemes and 2 kinds of knowledge.
        assert fitted == {"log-likelihood": 2 * 2 * 2}

    def test_resume_where_they_were_interrupted(self, traces, all_at_once, folder):
        with pytest.raises(KeyboardInterrupt):
            self.prepared(traces, folder, self.ALL).run(workers=Interrupted(), leaks=False)
        resumed = self.prepared(traces, folder, self.ALL)
        assert len(resumed.left) == 1
        resumed.run(leaks=False)
        self.same(folder, all_at_once)

    def test_stay(self, traces, folder):
        with pytest.raises(FileError, match="likelihood-ratio would be left out of suppress"):
            self.prepared(traces, folder, self.ALL[:2], releases_of={})

    def test_cannot_take_people_from_the_releases(self, traces, tmp_path):
        folder = tmp_path / "run"
        self.prepared(traces, folder, "likelihood-ratio").run(leaks=False)
        with pytest.raises(FileError, match="reference size would change"):
            self.prepared(traces, folder, ["likelihood-ratio", "log-likelihood"])


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"targets": 1}, "other people"),
        ({"releases": 2}, "2 releases instead of 4"),
        ({"control_releases": 2}, "2 control releases instead of 4"),
        ({"releases_of": {}}, "score 4 releases instead of 8"),
        ({"seed": 4}, "seed would change"),
        ({"mechanisms": "raw"}, "contests would change"),
    ],
)
def test_what_is_no_extension_is_refused(traces, folder, changed, said):
    kept = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    options = AuditOptions.of(**CHOSEN | SMALL | changed)
    with pytest.raises(FileError, match=said):
        prepare_audit(traces, options, folder, extend=True)
    assert {path: path.read_bytes() for path in kept} == kept
    with pytest.raises(FileError, match="by another plan"):
        prepared(traces, folder, **LARGE)


def test_how_much_is_done():
    assert not NOTHING.covers(NOTHING)
    some = Scored((("all", "a", 4, 2), ("all", CEILING, 4, 0)))
    assert some.covers(some)
    assert Scored.from_json(some.to_json()) == some
    for more in (
        Scored((("all", "a", 6, 2), ("all", CEILING, 6, 0))),
        Scored((("all", "a", 4, 3), ("all", CEILING, 4, 0))),
        Scored((("all", "a", 4, 2), ("all", "b", 4, 2), ("all", CEILING, 4, 0))),
        Scored((("all", "a", 4, 2), ("share(0.5)", "a", 4, 2), ("all", CEILING, 4, 0))),
    ):
        assert not some.covers(more)
    # A setting in which no attack applies has no ceiling.
    unused = Scored((("all", "a", 4, 2),))
    assert unused.covers(some)


@pytest.mark.parametrize(
    ("had", "have", "said"),
    [
        ({}, {"mine": "1"}, None),
        ({"mine": "1"}, {"mine": "1", "other": "2"}, None),
        ({"mine": "1"}, {"mine": "2"}, "code would change"),
    ],
)
def test_an_attack_that_is_added_brings_its_code(had, have, said):
    plan = {"targets": [1], "releases": 2, "control_releases": 0, "seed": 1}
    found = obstacle(plan | {"code": had}, plan | {"code": have})
    assert found is said is None or found.startswith(said)


def test_an_equal_plan_is_an_extension():
    plan = {"targets": [1], "releases": 2, "control_releases": 0, "seed": 1}
    assert obstacle(plan, plan) is None
