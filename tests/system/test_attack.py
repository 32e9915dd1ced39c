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
    traces.save(folder / "everybody.parquet")
    traces.select(others[M:]).save(folder / "reference.parquet")
    traces.select(traces.friends.of(target)).save(folder / "friends.parquet")
    traces.select(others[:2]).between(0, 24).save(folder / "other-time.parquet")
    # Past releases with and without the target, of groups of their own.
    rng = np.random.default_rng(1)
    for i in range(8):
        rows = rng.choice(others, M - (i % 2 == 0), replace=False)
        rows = np.append(rows, target) if i % 2 == 0 else rows
        facts = Facts(traces.regions, traces.epochs, M, Mechanism())
        Release(traces.counts(rows), facts).save(folder / f"past-{i}.parquet")
    return folder


@pytest.mark.parametrize("name", ["user", "id", "MSISDN"])
def test_visits_of_many_people_are_no_target(whosthere, folder, tmp_path, name):
    known = pl.read_csv(folder / "times.csv")
    one = known.with_columns(pl.lit("u4711").alias(name))
    many = pl.concat([one, known.with_columns(pl.lit("u4712").alias(name))])
    one.write_csv(tmp_path / "one.csv")
    many.write_parquet(tmp_path / "many.parquet")
    release = folder / "with.parquet"
    assert whosthere("attack", release, "--target", tmp_path / "one.csv")[0] == 0
    code, out, err = whosthere("attack", release, "--target", tmp_path / "many.parquet")
    assert (code, out) == (2, "")
    assert f"many.parquet: holds visits of 2 people by its column '{name}'" in err
    assert "Keep the rows of one person" in err
    assert "471" not in err
    one.with_columns(User=pl.lit("a"), user=pl.lit("b")).write_csv(tmp_path / "unclear.csv")
    _, _, err = whosthere("attack", release, "--target", tmp_path / "unclear.csv")
    assert "unclear.csv: has several columns that may hold the user" in err
    assert "leave these columns out" in err


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


def _past(folder):
    """Return options that name all past releases, as a user repeats them."""
    return [
        part
        for i in range(8)
        for part in ("--past-in" if i % 2 == 0 else "--past-out", folder / f"past-{i}.parquet")
    ]


def test_the_past_is_learned_from(whosthere, folder):
    options = ["--target", folder / "epochs.csv", "--attack", "knock-knock-past-groups"]
    answer = _json(whosthere, folder / "with.parquet", *options, *_past(folder))
    assert answer["attack"] == "knock-knock-past-groups"
    assert np.isfinite(answer["score"])
    swapped = [
        {"--past-in": "--past-out", "--past-out": "--past-in"}.get(part, part)
        for part in _past(folder)
    ]
    other = _json(whosthere, folder / "with.parquet", *options, *swapped)
    assert other["score"] != answer["score"]


def test_friends_stand_in_for_the_target(whosthere, folder):
    spec = "loc-mia(groups=100, validation=20)"
    options = ["--attack", spec, "--reference", folder / "reference.parquet"]
    options += ["--friends", folder / "friends.parquet"]
    answers = [
        _json(whosthere, folder / "with.parquet", "--target", folder / name, *options)
        for name in ("epochs.csv", "places.csv")
    ]
    assert answers[0]["attack"] == spec
    # Whatever is known of the target: it is not looked at.
    assert answers[0] == answers[1]


def test_specs_are_shown_in_their_canonical_form(whosthere, folder):
    spec = "Zero-Knowledge( groups=20,validation=10, sampling=paired, FIT=per-target )"
    options = ["--target", folder / "epochs.csv", "--attack", spec]
    answer = _json(whosthere, folder / "with-noisy.parquet", *options)
    assert answer["attack"] == "zero-knowledge(groups=20, validation=10, fit=per-target)"
    # The attacked release is the example that it trains on.
    each = [*options[:3], "zero-knowledge(groups=20, validation=10)"]
    anew = _json(whosthere, folder / "with-noisy.parquet", *each)
    assert (answer["score"], answer["threshold"]) == (anew["score"], anew["threshold"])


def test_the_same_seed_gives_the_same_answer(whosthere, folder):
    spec = "zero-knowledge(groups=20, validation=10)"
    options = ["--target", folder / "epochs.csv", "--attack", spec, "--seed"]
    one, again, other = (
        _json(whosthere, folder / "with-noisy.parquet", *options, seed) for seed in (1, 1, 2)
    )
    assert one == again != other


@pytest.mark.parametrize(
    "options", [[], ["--knowledge", "share(0.3)"], ["--knowledge", "regions(top=2)"]]
)
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
    for options in (
        ["--user", "nobody"],
        ["--min-visits", "100000"],
        ["--knowledge", "share(0)"],
        ["--knowledge", "shares(0.1)"],
        ["--knowledge", "regions(top=0)"],
    ):
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


def test_everybody_is_asked_at_once_and_nobody_is_named(whosthere, folder, tmp_path):
    options = ["--everybody", folder / "everybody.parquet"]
    out = tmp_path / "scores.parquet"
    code, said, err = whosthere("attack", folder / "with-noisy.parquet", *options, "--out", out)
    assert (code, err) == (0, "")
    traces = Traces.load(folder / "everybody.parquet")
    assert not any(user in said for user in traces.users)
    assert f"{traces.n_users} people asked, 120 in the release" in said
    assert "1 %" in said
    assert out.stat().st_mode & 0o777 == 0o600
    scores = pl.read_parquet(out)
    assert scores.columns == ["row", "score", "chance"]
    # The first 119 people are in, and the most active person.
    inside = np.arange(traces.n_users) < M - 1
    inside[np.argmax(traces.visits_per_user())] = True
    assert scores["chance"].to_numpy()[inside].mean() > scores["chance"].to_numpy()[~inside].mean()
    code, _, err = whosthere("attack", folder / "with-noisy.parquet", *options, "--out", out)
    assert code == 2
    assert "exists already" in err
    table = tmp_path / "scores.csv"
    more = ["--out", table, "--with-ids", "--prior", "0.5", "--json"]
    code, said, err = whosthere("attack", folder / "with-noisy.parquet", *options, *more)
    assert (code, err) == (0, "")
    found = json.loads(said)
    assert (found["file"], found["people"], found["prior"]) == (str(table), traces.n_users, 0.5)
    assert [one["false_alarms"] for one in found["found"]] == [0.01, 0.001]
    named = pl.read_csv(table)
    assert named["user"].to_list() == list(traces.users)
    assert named["score"].to_numpy() == pytest.approx(scores["score"].to_numpy())
    assert table.stat().st_mode & 0o777 == 0o600


def test_too_few_people_to_be_counted_are_not(whosthere, folder, tmp_path):
    """Somebody who is found among four is not told of."""
    traces = Traces.load(folder / "everybody.parquet")
    traces.select(np.arange(4)).save(tmp_path / "few.parquet")
    facts = Facts(traces.regions, traces.epochs, 2, Mechanism())
    Release(traces.counts([0, 1]), facts).save(tmp_path / "two.parquet")
    options = ["--everybody", tmp_path / "few.parquet", "--out", tmp_path / "scores.csv"]
    _, said, _ = whosthere("attack", tmp_path / "two.parquet", *options)
    assert said.count("fewer than 5") == 2


def test_places_without_times(whosthere, folder):
    for guess in ("greedy", "random"):
        options = ["--target", folder / "places.csv", "--guess", guess]
        assert _json(whosthere, folder / "with.parquet", *options)["decision"] in {"in", "out"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("with.parquet --target epochs.csv --attack knock-knok", "knock-knock"),
        ("with.parquet --target epochs.csv --attack knock-knock", "reference traces"),
        ("with.parquet --target none.csv", "does not exist"),
        ("none.parquet --target epochs.csv", "does not exist"),
        ("reference.parquet --target epochs.csv", "a traces file"),
        ("with.parquet --target elsewhere.csv", "row 1: region 'Z'"),
        ("with.parquet --target late.csv", "row 2"),
        ("with.parquet --target hollow.csv", "no rows"),
        ("with.parquet --target nameless.csv", "no column for the region"),
        ("with.parquet --target places.csv --guess wild", "greedy"),
        ("with.parquet --target epochs.csv --prior 2", "a prior of 2"),
        ("with.parquet --target epochs.csv --attack loc-mia", "friends"),
        (
            "with.parquet --target epochs.csv --attack loc-mia --friends friends.parquet",
            "needs reference traces",
        ),
        (
            "with.parquet --target epochs.csv --attack loc-mia --friends other-time.parquet "
            "--reference reference.parquet",
            "other regions or epochs",
        ),
        (
            "with.parquet --target epochs.csv --attack knock-knock --reference friends.parquet",
            "at least 121 reference traces",
        ),
        (
            "with.parquet --target epochs.csv --attack knock-knock --reference none.parquet",
            "does not exist",
        ),
        (
            "with.parquet --target epochs.csv --attack knock-knock-past-groups",
            "needs past releases",
        ),
        (
            "with.parquet --target epochs.csv --attack knock-knock-past-groups "
            "--past-in past-0.parquet --past-in past-2.parquet",
            "not 2 and 0",
        ),
        (
            "with-noisy.parquet --target epochs.csv --attack knock-knock-past-groups "
            "--past-in past-0.parquet --past-out past-1.parquet",
            "made in the same way",
        ),
        (
            "with.parquet --target epochs.csv --attack knock-knock(group=20)",
            "Did you mean 'groups'?",
        ),
        (
            "with.parquet --target epochs.csv --attack knock-knock(classifier=forest(trees=0))",
            "trees must lie between",
        ),
        ("with.parquet --target epochs.csv --attack loc-mia(groups=3)", "balanced"),
        ("with-noisy.parquet --target epochs.csv --attack contradiction-rule", "only sound"),
        ("with.parquet", "(--target), or about all (--everybody)"),
        ("with.parquet --target epochs.csv --everybody everybody.parquet", "Give one of the two"),
        ("with.parquet --target epochs.csv --out scores.csv", "is for --everybody"),
        ("with.parquet --everybody everybody.parquet", "need a file (--out)"),
        ("with.parquet --everybody everybody.parquet --out scores.txt", "Use .parquet or .csv"),
        ("with.parquet --everybody everybody.parquet --out with.parquet", "is an input"),
        ("with.parquet --everybody everybody.parquet --out s.csv --prior 0", "a prior of 0"),
        (
            "with.parquet --everybody everybody.parquet --out s.csv --attack knock-knock "
            "--reference reference.parquet",
            "one person after the other",
        ),
        (
            "with.parquet --everybody everybody.parquet --out s.csv --friends friends.parquet",
            "on one person (--target)",
        ),
        (
            "with.parquet --everybody other-time.parquet --out s.csv",
            "other regions or epochs",
        ),
        ("with.parquet --everybody with.parquet --out s.csv", "a release file"),
        ("with.parquet --everybody friends.parquet --out s.csv", "counts 120 people, and there"),
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
    code, out, err = whosthere("attack", *arguments.split())
    assert code == 2
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert message in err
