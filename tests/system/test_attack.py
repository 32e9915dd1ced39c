"""`whosthere attack`, as a user types it."""

import json

import numpy as np
import polars as pl
import pytest

from whosthere.adversary.targets import read_target
from whosthere.data.cities import simulate
from whosthere.data.traces import Traces
from whosthere.privacy.facts import Facts
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.release import Release

M = 120


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A raw release with somebody in it, one without, and what is known of that person."""
    folder = tmp_path_factory.mktemp("attack")
    traces = simulate("milan-like", seed=5, users=900, regions=9, days=3).traces()
    target = int(np.argmax(traces.visits_per_user()))
    others = np.setdiff1d(np.arange(traces.n_users), target)
    for name, rows in {
        "with": np.append(others[: M - 1], target),
        "without": others[:M],
    }.items():
        for ending, spec in {"": "raw", "-noisy": "laplace(eps=3, unit=event)"}.items():
            mechanism = Mechanism.parse(spec)
            counts = mechanism.apply(traces.counts(rows), M, np.random.default_rng(0))
            release = Release(counts, Facts(traces.regions, traces.epochs, M, mechanism))
            release.save(folder / f"{name}{ending}.parquet")
    region, epoch = np.divmod(traces.trace(target), traces.epochs.n)
    known = pl.DataFrame(
        {"region": [traces.regions.ids[r] for r in region], "epoch": epoch.astype(int)}
    )
    known.write_csv(folder / "epochs.csv")
    times = pl.Series(traces.epochs.starts[epoch]).dt.replace_time_zone("UTC")
    known.select("region", timestamp=times.dt.strftime("%Y-%m-%dT%H:%M:%SZ")).write_csv(
        folder / "times.csv"
    )
    known.select("region").write_csv(folder / "places.csv")
    traces.select(others[M:]).save(folder / "reference.parquet")
    return folder


def _json(whosthere, *arguments):
    code, out, err = whosthere("attack", *arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


@pytest.mark.parametrize("attack", ["zero-knowledge", "knock-knock", "contradiction-rule"])
def test_a_member_is_found_and_another_ruled_out(whosthere, folder, attack):
    options = ["--target", folder / "epochs.csv", "--attack", attack]
    options += ["--reference", folder / "reference.parquet"]
    inside = _json(whosthere, folder / "with.parquet", *options)
    outside = _json(whosthere, folder / "without.parquet", *options)
    assert inside["decision"] == "in"
    assert outside["decision"] == "out"
    assert outside["certain"]
    assert inside["score"] > outside["score"]


def test_times_and_epoch_numbers_say_the_same(whosthere, folder):
    answers = [
        _json(whosthere, folder / "with-noisy.parquet", "--target", folder / name)
        for name in ("times.csv", "epochs.csv")
    ]
    assert answers[0] == answers[1]


@pytest.mark.parametrize("options", [[], ["--share", "0.3"], ["--regions-only"]])
def test_what_is_known_can_be_written_and_used(whosthere, folder, tmp_path, options):
    out = tmp_path / "target.csv"
    reference = folder / "reference.parquet"
    code, said, err = whosthere("target", reference, "--min-visits", "4", "--out", out, *options)
    assert (code, err) == (0, "")
    assert not any(user in said + out.read_text() for user in Traces.load(reference).users)
    _json(whosthere, folder / "with.parquet", "--target", out)


def test_a_named_person_is_written_whole(whosthere, folder, tmp_path):
    traces = Traces.load(folder / "reference.parquet")
    whosthere("target", folder / "reference.parquet", "--user", traces.users[7], "--out",
              tmp_path / "t.csv")  # fmt: skip
    known = read_target(tmp_path / "t.csv", traces.regions, traces.epochs)
    assert np.array_equal(known.cells, traces.trace(7))


def test_targets_that_do_not_exist_are_refused(whosthere, folder, tmp_path):
    for options in (["--user", "nobody"], ["--min-visits", "100000"], ["--share", "0"]):
        code, _, err = whosthere(
            "target", folder / "reference.parquet", "--out", tmp_path / "t.csv", *options
        )
        assert code == 2
        assert "error:" in err
        assert "nobody has" in err or "nobody" not in err
        assert not (tmp_path / "t.csv").exists()


@pytest.mark.parametrize(
    ("attack", "words"),
    [("zero-knowledge", "no probability"), ("likelihood-ratio", "Probability of being in")],
)
def test_words_say_what_the_answer_means(whosthere, folder, attack, words):
    options = ["--target", folder / "times.csv", "--attack", attack]
    code, out, _ = whosthere("attack", folder / "with-noisy.parquet", *options)
    assert code == 0
    assert "Decision: " in out
    assert words in out
    assert "may be wrong" in out


def test_a_prior_moves_the_posterior(whosthere, folder):
    options = ["--target", folder / "times.csv", "--prior"]
    low, high = (
        _json(whosthere, folder / "with-noisy.parquet", *options, prior)["posterior"]
        for prior in ("0.001", "0.9")
    )
    assert low < high


def test_places_without_times(whosthere, folder):
    for guess in ("greedy", "random"):
        options = ["--target", folder / "places.csv", "--guess", guess]
        assert _json(whosthere, folder / "with.parquet", *options)["decision"] in {"in", "out"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["with.parquet", "--target", "epochs.csv", "--attack", "knock-knok"], "knock-knock"),
        (["with.parquet", "--target", "epochs.csv", "--attack", "knock-knock"], "reference traces"),
        (["with.parquet", "--target", "none.csv"], "does not exist"),
        (["none.parquet", "--target", "epochs.csv"], "does not exist"),
        (["reference.parquet", "--target", "epochs.csv"], "a traces file"),
        (["with.parquet", "--target", "elsewhere.csv"], "row 1: region 'Z'"),
        (["with.parquet", "--target", "late.csv"], "row 2"),
        (["with.parquet", "--target", "hollow.csv"], "no rows"),
        (["with.parquet", "--target", "nameless.csv"], "no column for the region"),
        (["with.parquet", "--target", "places.csv", "--guess", "wild"], "greedy"),
        (["with.parquet", "--target", "epochs.csv", "--prior", "2"], "a prior of 2"),
        (["with.parquet", "--target", "epochs.csv", "--attack", "loc-mia"], "from Python"),
        (
            ["with-noisy.parquet", "--target", "epochs.csv", "--attack", "contradiction-rule"],
            "only sound",
        ),
    ],
)
def test_bad_input_is_refused(whosthere, folder, monkeypatch, arguments, message):
    monkeypatch.chdir(folder)
    first = Traces.load("reference.parquet").regions.ids[0]
    for name, text in {
        "elsewhere.csv": "region,epoch\nZ,1\n",
        "late.csv": f"region,epoch\n{first},1\n{first},100000\n",
        "hollow.csv": "region,epoch\n",
        "nameless.csv": "thing,epoch\na,1\n",
    }.items():
        (folder / name).write_text(text)
    code, _, err = whosthere("attack", *arguments)
    assert code == 2
    assert "error:" in err
    assert "Traceback" not in err
    assert message in err
