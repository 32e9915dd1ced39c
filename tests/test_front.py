"""The functions that most people need: in scripts, in notebooks, with whatever they are given."""

import inspect
import re
import subprocess
import sys
import warnings

import numpy as np
import polars as pl
import pytest

import whosthere as wt
from whosthere.attacks import LikelihoodRatio, PastRelease
from whosthere.auditing.options import AuditOptions, Block
from whosthere.knowledge import Places, visits_of_one
from whosthere.mechanisms import Laplace, Suppress
from whosthere.results import Publication

M = 40
QUICK = {"group_size": M, "attacks": "likelihood-ratio", "targets": 3, "releases": 4}
# What larger regions would change takes longer than all the rest of so small an audit.
ALONE = QUICK | {"workers": 1, "what_if": False}
THREE_LINES = """
import whosthere as wt
result = wt.audit("traces.parquet", mechanisms=["suppress(k=1)", "laplace(eps=1)"], group_size=40,
                  attacks="likelihood-ratio", targets=3, releases=4, workers=2)
"""


@pytest.fixture(scope="module", autouse=True)
def nobody_but_targets():
    """Look at nobody else closer: where people are found is no matter here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("whosthere.game.leaks.PEOPLE_TO_LOOK_AT", 3)
        yield


@pytest.fixture(scope="module")
def traces():
    return wt.simulate("milan-like", seed=5, users=300, regions=9, days=2).traces()


@pytest.fixture(scope="module")
def folder(tmp_path_factory, traces):
    """A folder with traces, as the three lines expect them."""
    folder = tmp_path_factory.mktemp("front")
    traces.save(folder / "traces.parquet")
    return folder


@pytest.fixture(scope="module")
def result(traces):
    return wt.audit(traces, mechanisms=["suppress(k=1)", "laplace(eps=1)"], **ALONE)


@pytest.fixture(scope="module")
def release(traces):
    return wt.publish(traces, "suppress(k=1)", group_size=M, seed=1).release


def _scores(result):
    """Return all that was found; how long it took is by chance."""
    return result.scores.drop("seconds", strict=False)


# The three lines


@pytest.mark.full
def test_the_three_lines_work_in_a_plain_script(folder):
    """Without a guard: workers must not run the script again. In an ordinary run, a script with an
    attack of its own shows that."""
    script = folder / "script.py"
    script.write_text(
        "print('begun')\n"
        + THREE_LINES
        + "print(len(result.verdicts), result.to_frame().height > 0)\n"
        "result.plot().savefig('plot.png')\n"
        "print(result.to_frame().to_pandas().shape[0] == result.to_frame().height)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", script.name],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["begun", "2", "True", "True"]
    assert done.stderr == ""
    assert (folder / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in folder.iterdir()) == [
        "plot.png",
        "script.py",
        "traces.parquet",
    ]


@pytest.fixture(scope="module")
def notebook(folder):
    """A notebook of the three lines, executed; what each cell shows, by kind."""
    with warnings.catch_warnings():
        # Of jupyter and zmq, which are not ours.
        warnings.simplefilter("ignore")
        import nbclient  # noqa: PLC0415
        import nbformat  # noqa: PLC0415

        lines = [THREE_LINES.strip(), "result", "result.verdicts", "result.to_frame()"]
        lines.append("result.plot()")
        book = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(line) for line in lines],
            metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        )
        client = nbclient.NotebookClient(
            book, timeout=None, resources={"metadata": {"path": str(folder)}}
        )
        client.execute()
    return book.cells


def _shown(cell):
    return {kind: text for out in cell.outputs for kind, text in out.get("data", {}).items()}


@pytest.mark.slow
def test_the_three_lines_work_in_a_notebook(notebook):
    for cell in notebook:
        assert not [out for out in cell.outputs if out.output_type in {"error", "stream"}]
    shown = [_shown(cell) for cell in notebook]
    # The bar is gone when the work is done.
    assert "<progress" not in shown[0].get("text/html", "")
    assert "<table>" in shown[1]["text/html"]
    assert "suppress(k=1)" in shown[1]["text/html"]
    assert "Verdict" in shown[2]["text/plain"]
    assert "auc" in shown[3]["text/html"]
    assert "Picture" in shown[4]["text/plain"]


@pytest.mark.slow
def test_a_plot_is_a_picture_in_a_notebook(notebook):
    assert "image/png" in _shown(notebook[4])


# What may be given


def test_the_result_is_there_to_look_at(result):
    assert len(result.verdicts) == 2
    frame = result.to_frame()
    assert {"mechanism", "group_size", "attack", "metric", "estimate"} <= set(frame.columns)
    assert frame.height == len(result.findings)
    pandas = frame.to_pandas()
    assert list(pandas.columns) == frame.columns
    assert len(pandas) == frame.height
    assert result.folder is None
    assert result.failed_tasks == 0
    figure = result.plot("auc")
    assert figure.axes


def test_everything_may_be_given_as_object_or_spec_one_or_many(folder, traces):
    """All ways to ask for the same audit give the same scores."""
    path = folder / "traces.parquet"
    suppress = wt.mechanisms.Mechanism((Suppress(1),))
    rest = {name: value for name, value in ALONE.items() if name != "attacks"}
    expected = wt.audit(traces, mechanisms="suppress(k=1)", **ALONE)
    for given, mechanisms, attacks in (
        (path, suppress, LikelihoodRatio()),
        (str(path), [suppress], ["likelihood-ratio"]),
        (traces, ("suppress(k=1)",), [LikelihoodRatio()]),
        (traces, (one for one in ["Suppress( k = 1 )"]), ("likelihood-ratio",)),
    ):
        found = wt.audit(given, mechanisms=mechanisms, attacks=attacks, **rest)
        assert _scores(found).equals(_scores(expected))
    mixed = wt.audit(
        traces,
        mechanisms=[suppress, "laplace(eps=1)", wt.mechanisms.Mechanism((Laplace(1),))],
        **ALONE,
    )
    assert len(mixed.verdicts) == 2


@pytest.mark.full
def test_the_number_of_workers_changes_nothing(folder, result):
    again = wt.audit(
        folder / "traces.parquet",
        mechanisms=["suppress(k=1)", "laplace(eps=1)"],
        workers=2,
        **QUICK,
    )
    assert _scores(again).equals(_scores(result))


def test_options_are_the_base_and_arguments_override_them(traces):
    options = AuditOptions(
        blocks=(Block(mechanisms="suppress(k=1)", group_size=M, attacks="likelihood-ratio"),),
        targets=3,
        releases=4,
    )
    plain = wt.audit(traces, plan=options, workers=1, what_if=False)
    assert plain.plan["releases"] == 4
    changed = wt.audit(traces, plan=options, mechanisms="raw", releases=6, workers=1, what_if=False)
    assert list(changed.plan["contests"]) == [f"raw, m={M}"]
    assert changed.plan["releases"] == 6
    assert changed.plan["targets"] == plain.plan["targets"]


def test_what_is_kept_is_kept_where_it_is_asked_for(traces, tmp_path):
    kept = wt.audit(traces, mechanisms="raw", out=tmp_path / "kept", workers=1, **QUICK)
    assert kept.folder == tmp_path / "kept"
    assert (kept.folder / "findings.json").exists()
    resumed = wt.audit(traces, mechanisms="raw", out=str(tmp_path / "kept"), workers=1, **QUICK)
    assert resumed.scores.equals(kept.scores)


def test_a_policy_may_be_given_in_any_form(traces, tmp_path):
    written = tmp_path / "mine.toml"
    written.write_text("[limits]\nauc = 0.61\n")
    for policy in (written, str(written), {"auc": 0.61}, wt.Policy("mine", {"auc": 0.61})):
        found = wt.audit(traces, mechanisms="raw", policy=policy, **ALONE).policy
        assert [str(limit) for limit in found.limits] == ["auc <= 0.61"]


# Publishing and attacking


def test_publish(folder, traces):
    made = wt.publish(traces, "suppress(k=1)", seed=1)
    assert isinstance(made, Publication)
    assert made.release.group_size == traces.n_users
    assert np.array_equal(made.truth, traces.counts())
    same = [
        wt.publish(given, mechanism, group_size=M, seed=3).release
        for given, mechanism in (
            (traces, "laplace(eps=1)"),
            (folder / "traces.parquet", wt.mechanisms.Mechanism((Laplace(1),))),
            (str(folder / "traces.parquet"), "Laplace(eps=1.0, unit=event)"),
        )
    ]
    assert same[0] == same[1] == same[2]


def test_attack(folder, traces, release, tmp_path):
    release.save(tmp_path / "release.parquet")
    cells = traces.trace(3)
    known = visits_of_one(cells, traces.regions, traces.epochs)
    wt.knowledge.write_target(known, tmp_path / "known.csv", traces.regions, traces.epochs)
    expected = wt.attack(release, known)
    for published in (release, tmp_path / "release.parquet", str(tmp_path / "release.parquet")):
        for target in (known, cells, cells.tolist(), tuple(cells.tolist()), tmp_path / "known.csv"):
            assert wt.attack(published, target) == expected
    assert wt.attack(release, known, LikelihoodRatio(), seed=9) == expected
    assert wt.attack(release, Places.of_one((1, 2))).p_value is None


def test_everybody_is_asked_at_once(folder, traces, release):
    found = wt.attack(release, everybody=traces)
    assert found.prior == M / traces.n_users
    one = wt.attack(release, traces.trace(5), "likelihood-ratio")
    assert found.scores[5] == pytest.approx(one.score)
    assert found.chances[5] == pytest.approx(one.posterior(found.prior))
    again = wt.attack(release, everybody=folder / "traces.parquet", prior=0.5)
    assert np.array_equal(again.scores, found.scores)
    assert again.prior == 0.5
    assert found.to_frame().columns == ["row", "score", "chance"]
    assert found.to_frame(with_ids=True)["user"].to_list() == list(traces.users)


def test_several_tables_tell_more_of_everybody(traces):
    tables = ["finest: suppress(k=2)", "epochs=1d: suppress(k=2)"]
    made = wt.publish(traces, tables=tables, group_size=M, seed=4)
    inside = np.isin(np.arange(traces.n_users), made.tables[0].group.rows)
    aucs = []
    for releases in (made.releases[:1], made.releases):
        score = wt.attack(releases, everybody=traces).scores
        aucs.append((score[inside][:, None] > score[~inside]).mean())
    assert aucs[1] > aucs[0] + 0.01


def test_attacks_get_what_they_need(folder, traces, release):
    path, cells = folder / "traces.parquet", traces.trace(3)
    quick = "groups=20, validation=10"
    one, other = (
        wt.attack(release, cells, f"knock-knock({quick})", reference=given, seed=1)
        for given in (traces, path)
    )
    assert one == other
    friends = traces.select([5, 6])
    assert wt.attack(
        release, cells, f"loc-mia({quick})", reference=path, friends=friends, seed=1
    ) == wt.attack(release, cells, f"loc-mia({quick})", reference=traces, friends=friends, seed=1)
    past = [
        PastRelease(
            wt.publish(traces, "suppress(k=1)", group_size=M, seed=seed).release, seed % 2 == 0
        )
        for seed in range(8)
    ]
    assert np.isfinite(wt.attack(release, cells, "knock-knock-past-groups", past=past).score)
    # The attacked release is an example of itself.
    spec = f"zero-knowledge({quick}, reference=100, rule=no"
    once, anew = (
        wt.attack(release, cells, f"{spec}, fit={fit})") for fit in ("per-target", "per-release")
    )
    assert once == anew


def test_recommend(traces, monkeypatch):
    monkeypatch.setattr("whosthere.search.tester._LEAST_RELEASES_TO_SEARCH", 4)
    found = wt.recommend(
        traces,
        group_size=M,
        families="suppress(k=?)",
        attacks="likelihood-ratio",
        targets=3,
        releases=4,
        policy={"auc": 1.0},
        workers=1,
    )
    assert {candidate.family for candidate in found.candidates} == {"suppress(k=?)"}
    assert found.recommended is None or found.recommended.mechanism.startswith("suppress(k=")
    assert "suppress(k=" in found._repr_html_()


# What is refused


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t, r: wt.audit(t, group_size=M), "no mechanism is given"),
        (lambda t, r: wt.audit(t, mechanisms="raw"), "no group size is given"),
        (lambda t, r: wt.audit(t, mechanisms=[], group_size=M), "no mechanism is given"),
        (lambda t, r: wt.audit(t, mechanisms="suppres(k=1)", group_size=M), "'suppress'"),
        (lambda t, r: wt.audit(t, mechanisms="raw", group_size=10**6), "too large"),
        (lambda t, r: wt.audit(t, mechanisms="raw", group_size=1), "hides nobody"),
        (lambda t, r: wt.audit(t, mechanisms="raw", group_size=2.5), "whole number"),
        (lambda t, r: wt.audit(t, mechanisms="raw", group_size=M, attacks="loc"), "no attack"),
        (lambda t, r: wt.audit(t, mechanisms="raw", group_size=M, attacks=5), "is no attack"),
        (lambda t, r: wt.audit(t, mechanisms="raw", group_size=M, knowledge="al"), "'all'"),
        (lambda t, r: wt.audit(t, mechanisms="raw", group_size=M, scale="big"), "no scale"),
        (lambda t, r: wt.audit(t, mechanisms="raw", group_size=M, seed=-1), "seed"),
        (lambda t, r: wt.audit(t, mechanisms="raw", group_size=M, releases=3), "must be even"),
        (
            lambda t, r: wt.audit(t, mechanisms="raw", group_size=M, targets=0),
            "at least one target",
        ),
        (lambda t, r: wt.audit(t, mechanisms="raw", group_size=M, policy={"acu": 1}), "'auc'"),
        (lambda t, r: wt.audit(t, mechanisms="raw", group_size=M, plan="none.toml"), "not exist"),
        (lambda t, r: wt.audit("none.parquet", mechanisms="raw", group_size=M), "not exist"),
        (lambda t, r: wt.publish(t, "raw", group_size=0), "hides nobody"),
        (lambda t, r: wt.publish(t, "raw", group_size=1), "hides nobody"),
        (lambda t, r: wt.publish(t, "raw", group_size=10**6), "cannot be chosen"),
        (lambda t, r: wt.publish(t, "nothing"), "no mechanism"),
        (lambda t, r: wt.publish(t, 5), "is no mechanism"),
        (lambda t, r: wt.publish("none.parquet", "raw"), "not exist"),
        (lambda t, r: wt.attack(r, []), "nothing is known"),
        (lambda t, r: wt.attack(r, [10**7]), "outside the release"),
        (lambda t, r: wt.attack(r, [1.5]), "numbers of cells"),
        (lambda t, r: wt.attack(r, None), "or about all"),
        (lambda t, r: wt.attack(r, [1], everybody=t), "or about all"),
        (lambda t, r: wt.attack(r, [1], prior=0.5), "is for `everybody`"),
        (lambda t, r: wt.attack(r, everybody=t, prior=1.5), "not between 0 and 1"),
        (lambda t, r: wt.attack(r, everybody=t.select(range(M))), "counts [0-9]+ people, and"),
        (lambda t, r: wt.attack(r, everybody=t.between(0, 24)), "other regions or epochs"),
        (lambda t, r: wt.attack(r, attack="knock-knock", everybody=t), "one person after the"),
        (
            lambda t, r: wt.attack(r, everybody=t.marked(np.zeros(t.cells.size, bool))),
            "nobody in the traces made a visit",
        ),
        (lambda t, r: wt.attack(r, everybody="none.parquet"), "not exist"),
        (lambda t, r: wt.attack(r, "none.csv"), "not exist"),
        (lambda t, r: wt.attack(r, [1], "knock-knock"), "needs reference traces"),
        (lambda t, r: wt.attack(r, [1], "loc-mia", reference=t), "friends"),
        (lambda t, r: wt.attack(r, [1], "knock-knock-past-groups"), "needs past releases"),
        (lambda t, r: wt.attack("none.parquet", [1]), "not exist"),
        (lambda t, r: wt.recommend(t, group_size=M, families="suppress(k=1)"), "one open"),
        (lambda t, r: wt.recommend(t, group_size=M, families=()), "no family"),
    ],
)
def test_wrong_arguments_are_refused_in_words(traces, release, call, message):
    with pytest.raises(wt.InputError, match=message):
        call(traces, release)


def test_what_failed_everywhere_is_said_once(traces, monkeypatch):
    def fails(*_given, **_words):
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(wt.attacks.LikelihoodRatio, "fit_tables", fails)
    words = {"mechanisms": "raw", "group_size": 20, "targets": 2, "releases": 2, "workers": 1}
    with pytest.raises(wt.AuditFailedError) as caught:
        wt.audit(traces, attacks="likelihood-ratio", **words)
    assert str(caught.value) == "all 2 tasks failed with RuntimeError: a fault of ours"
    assert caught.value.__notes__[0].startswith("Traceback")


def test_nothing_stays_in_the_temporary_folder(traces, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    wt.audit(traces, mechanisms="raw", workers=1, **QUICK)
    with pytest.raises(wt.InputError):
        wt.audit(traces, mechanisms="raw", group_size=10**6, workers=1)
    assert list(tmp_path.iterdir()) == []


def test_frames_are_polars(result):
    for frame in (result.to_frame(), result.scores, result.targets):
        assert isinstance(frame, pl.DataFrame)


# What is said about parameters

FUNCTIONS = [name for name in wt.__all__ if inspect.isfunction(getattr(wt, name))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_parameter_is_documented_and_no_other(name):
    function = getattr(wt, name)
    _, _, section = inspect.getdoc(function).partition("\nParameters\n----------\n")
    heads = re.findall(r"^\S.*$", re.split(r"\n\n\S+\n-+\n", section)[0], re.M)
    documented = [one for head in heads for one in head.split(", ")]
    assert sorted(documented) == sorted(inspect.signature(function).parameters)
