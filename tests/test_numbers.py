"""Whole numbers of any kind are taken wherever Python's own are, and what is no seed is refused."""

import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

import whosthere as wt
from whosthere import specs
from whosthere.auditing.options import AuditOptions, Block
from whosthere.paper.study import prepare_study

SMALL = {"group_size": 40, "attacks": "likelihood-ratio", "targets": 2, "releases": 4, "seed": 3}
ALONE = {"mechanisms": "suppress(k=1)", "workers": 1, "what_if": False}


@pytest.fixture(scope="module")
def traces():
    return wt.simulate("milan-like", users=300, regions=9, days=2).traces()


def as_numpy(given, kind):
    return {name: kind(n) if isinstance(n, int) else n for name, n in given.items()}


@pytest.mark.parametrize("kind", [np.int64, np.uint8])
def test_an_audit_takes_any_whole_numbers(traces, tmp_path, kind):
    chosen = SMALL | {"control_releases": 2, "min_visits": 1, "past_releases": 4, "workers": 1}
    usual = wt.audit(traces, **ALONE | chosen, releases_of={"likelihood-ratio": 6})
    found = wt.audit(
        traces,
        **ALONE | as_numpy(chosen, kind),
        releases_of={"likelihood-ratio": kind(6)},
        out=tmp_path / "run",
    )
    assert found.scores.drop("seconds").equals(usual.scores.drop("seconds"))
    assert wt.load(tmp_path / "run").plan == found.plan == usual.plan


def test_so_does_all_else(traces, tmp_path):
    numbers = np.arange(60)
    assert AuditOptions.of(group_size=numbers[[40, 50]], seed=numbers[3]) == AuditOptions.of(
        group_size=(40, 50), seed=3
    )
    sizes = {"users": 300, "regions": 9, "days": 2, "seed": 1}
    cities = [wt.simulate("milan-like", **given) for given in (sizes, as_numpy(sizes, np.int32))]
    assert cities[0].records().equals(cities[1].records())
    assert type(cities[1].seed) is int
    made = [wt.publish(traces, "laplace(eps=1)", group_size=n, seed=n) for n in (40, numbers[40])]
    assert made[0].release == made[1].release
    made[1].release.save(tmp_path / "release.parquet")
    answers = [wt.attack(made[0].release, traces.trace(0), seed=n) for n in (4, numbers[4])]
    assert answers[0] == answers[1]
    epochs = wt.Epochs(datetime(2024, 1, 1, tzinfo=UTC), timedelta(hours=1), numbers[24])
    assert json.dumps(epochs.to_json())
    assert len(epochs) == 24


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (wt.knowledge.Regions(top=2), wt.knowledge.Regions(top=np.int64(2))),
        (wt.knowledge.Share(0.5), wt.knowledge.Share(np.float32(0.5))),
        (wt.mechanisms.Suppress(3), wt.mechanisms.Suppress(np.int8(3))),
        (wt.mechanisms.Laplace(0.5), wt.mechanisms.Laplace(np.float64(0.5))),
        (wt.attacks.KnockKnock(groups=20), wt.attacks.KnockKnock(groups=np.int64(20))),
    ],
    ids=str,
)
def test_a_spec_is_the_same_whatever_the_kind_of_number(one, other):
    assert str(one) == str(other)
    assert specs.content(one) == specs.content(other)


@pytest.mark.parametrize(
    "seed",
    [np.random.default_rng(1), np.random.SeedSequence(1), 1.0, True, "1", -1],
    ids=lambda seed: type(seed).__name__,
)
def test_what_is_no_seed_is_refused_everywhere(traces, tmp_path, seed):
    release = wt.publish(traces, "raw", group_size=40, seed=1).release
    for call in (
        lambda: wt.audit(traces, **ALONE | SMALL | {"seed": seed}),
        lambda: wt.recommend(traces, **SMALL | {"seed": seed}),
        lambda: wt.AuditOptions(seed=seed),
        lambda: wt.publish(traces, "raw", group_size=40, seed=seed),
        lambda: wt.attack(release, traces.trace(0), seed=seed),
        lambda: wt.simulate("milan-like", seed=seed),
        lambda: prepare_study(["ssc"], tmp_path / "study", seed=seed),
    ):
        with pytest.raises(wt.InputError, match="the seed must be a whole number from 0, not"):
            call()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["targets", "releases", "control_releases", "reference_size"])
@pytest.mark.parametrize("value", [2.0, "2", True, np.array([2])], ids=repr)
def test_what_is_no_whole_number_is_refused(traces, name, value):
    with pytest.raises(wt.InputError, match=f"`{name}` must be a whole number"):
        AuditOptions(**{name: value})
    with pytest.raises(wt.InputError, match="`releases_of` likelihood-ratio must be"):
        AuditOptions(releases_of={"likelihood-ratio": value})
    with pytest.raises(wt.InputError, match="the number of epochs must be a whole number"):
        wt.Epochs(datetime(2024, 1, 1, tzinfo=UTC), timedelta(hours=1), value)
    if not isinstance(value, np.ndarray):
        with pytest.raises(wt.InputError, match="the group size must be a whole number"):
            Block(group_size=value)
        with pytest.raises(wt.InputError, match="the group size must be a whole number"):
            wt.publish(traces, "raw", group_size=value)
