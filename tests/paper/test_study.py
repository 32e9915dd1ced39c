"""A whole study, small: what it writes, that it resumes, and what it refuses."""

import json
import shutil
from functools import cache

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import whosthere as wt
from whosthere.auditing.manifest import only_one
from whosthere.auditing.work import Outcome, ThisProcess
from whosthere.errors import FileError, InputError
from whosthere.paper import description, figures
from whosthere.paper.results import published
from whosthere.paper.study import prepare_study


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    path = tmp_path_factory.mktemp("city") / "a|b<i>.parquet"
    wt.simulate("milan-like", seed=5, users=750, regions=9, days=1).traces().save(path)
    return path


@pytest.fixture(scope="module", autouse=True)
def the_theorem_is_checked_once():
    """It has nothing to do with the traces, and takes as long as a small study."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(description, "_convergence", cache(description._convergence))
        yield


def prepared(traces, out, *names, **chosen):
    usual = {"scale": "smoke", "targets": 2, "group_size": 100, "min_visits": 2}
    return prepare_study(names, out, dataset=str(traces), **usual | chosen)


@pytest.fixture(scope="module")
def whole(traces, tmp_path_factory):
    """Give the folder of a whole study, its result, and what was reported meanwhile."""
    made, seen = tmp_path_factory.mktemp("study"), []
    result = prepared(traces, made, "ssc").run(
        workers=ThisProcess(), figures=False, on_progress=lambda *step: seen.append(step[0])
    )
    return made, result, seen


@pytest.fixture(scope="module")
def folder(whole):
    """Give a study that is not to be changed."""
    return whole[0]


class Interrupted(ThisProcess):
    """Stops after a few tasks, as a user might."""

    def do(self, job, tasks):
        for i, outcome in enumerate(super().do(job, tasks)):
            if i == 4:
                raise KeyboardInterrupt
            yield outcome


def test_nobody_looks_closer_at_the_smallest_scale(whole):
    folder, _, seen = whole
    assert set(seen) == {"tasks"}
    assert not (folder / "ssc" / "leaks.parquet").exists()
    assert (folder / "ssc" / "report.html").exists()


def test_what_is_written(traces, tmp_path, full, monkeypatch):
    if not full:
        # All of them are drawn where every experiment runs.
        some = {name: figures.DATA_FIGURES[name] for name in ("time-marginal", "generator-inputs")}
        monkeypatch.setattr(figures, "DATA_FIGURES", some)
    seen = []
    looking = {"scale": "quick", "releases": 2}
    result = prepared(traces, tmp_path, "ssc", "no-positions", **looking).run(
        workers=ThisProcess(), on_progress=lambda *step: seen.append(step)
    )
    tasks = [step[1:] for step in seen if step[0] == "tasks"]
    assert (tasks[0], tasks[-1]) == ((0, 20), (20, 20))
    assert ("leaks", 12, 12) in seen
    written = pl.read_csv(tmp_path / "results.csv", schema_overrides={"value": pl.String})
    assert written.columns[:8] == published().columns
    assert set(written["experiment"]) == {"ssc", "no-positions"}
    assert set(written["metric"]) == {"auc", "accuracy"}
    assert "ceiling" in set(written["attack"])
    assert set(written["targets"]) == {2}
    by_target = pl.read_parquet(tmp_path / "targets.parquet")
    assert by_target["target"].unique().sort().to_list() == [1, 2]
    page = (tmp_path / "README.md").read_text()
    assert r"on a\|b\<i\>" in page
    assert "figures/ssc.svg" in page
    # Two targets decide nothing but what the data look like.
    assert {about for about, _ in result.judgements} == {"data"}
    assert "2 targets can decide nothing" in page
    for name in ("ssc", "no-positions", "time-marginal", "generator-inputs"):
        for ending in ("svg", "png"):
            assert (tmp_path / "figures" / f"{name}.{ending}").stat().st_size > 1000
    files = [tmp_path / "README.md", *sorted((tmp_path / "figures").iterdir())]
    before = [file.read_bytes() for file in files]
    prepared(traces, tmp_path, "ssc", **looking).run(workers=ThisProcess())
    assert [file.read_bytes() for file in files] == before


def test_an_interrupted_study_resumes_to_the_same(traces, whole, tmp_path):
    folder, result, _ = whole
    with pytest.raises(KeyboardInterrupt):
        prepared(traces, tmp_path, "ssc").run(workers=Interrupted(), figures=False)
    again = prepared(traces, tmp_path, "ssc")
    assert again.n_left == 12 - 4
    resumed = again.run(workers=ThisProcess(), figures=False)
    assert resumed.targets.equals(result.targets)
    pages = [(path / "README.md").read_text() for path in (folder, tmp_path)]
    assert pages[0] == pages[1]
    assert prepared(traces, tmp_path, "ssc").n_left == 0


def test_experiments_join_those_that_are_there(traces, folder, tmp_path):
    """But two studies do not work in one folder: they would write the same results, of one
    another's experiments."""
    there = shutil.copytree(folder, tmp_path / "study")
    first, second = prepared(traces, there, "synthetic-size"), prepared(traces, there, "ssc")

    class Joined(ThisProcess):
        def do(self, job, tasks):
            with pytest.raises(FileError, match="another study is at work in this folder"):
                second.run(workers=ThisProcess(), figures=False)
            return super().do(job, tasks)

    joined = first.run(workers=Joined(), figures=False)
    both = second.run(workers=ThisProcess(), figures=False)
    for found in (joined, both):
        assert set(found.results["experiment"]) == {"ssc", "synthetic-size"}


def test_traces_are_made_by_one_study_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr("whosthere.paper.study.made_traces", lambda *_: None)
    with only_one(tmp_path, "study"), pytest.raises(FileError, match="another study is at work"):
        prepared("milan-like", tmp_path, "ssc")


def test_a_study_grows(traces, tmp_path):
    def study(targets, folder, **how):
        return wt.reproduce(
            "partial-trace",
            dataset=str(traces),
            scale="smoke",
            targets=targets,
            group_size=100,
            min_visits=2,
            workers=1,
            figures=False,
            out=tmp_path / folder,
            **how,
        )

    study(1, "grown")
    with pytest.raises(InputError, match="`extend`"):
        study(2, "grown")
    grown = study(2, "grown", extend=True)
    assert_frame_equal(grown.targets, study(2, "at once").targets)


def test_from_python(traces, tmp_path):
    result = wt.reproduce(
        "synthetic-size",
        targets=1,
        dataset=str(traces),
        out=tmp_path,
        scale="smoke",
        group_size=100,
        min_visits=2,
        workers=1,
        figures=False,
    )
    attacks = result.results["attack"].unique(maintain_order=True).to_list()
    assert attacks[0] == "zero-knowledge(reference=1250)"
    assert not (tmp_path / "figures").exists()


class Failing(ThisProcess):
    """Fails at some tasks."""

    def __init__(self, fails):
        super().__init__()
        self._fails = fails

    def do(self, job, tasks):
        for i, outcome in enumerate(super().do(job, tasks)):
            yield Outcome(outcome.task, None, "broken") if self._fails(i) else outcome


class TestTasksThatFail:
    def test_the_results_rest_on_the_others(self, traces, tmp_path):
        failed = []
        result = prepared(traces, tmp_path, "ssc").run(
            workers=Failing(lambda i: i in {4, 9}),
            on_failure=lambda name, task, why: failed.append((name, why)),
            figures=False,
        )
        assert failed == [("ssc", "broken")] * 2
        assert sorted(set(result.results["targets"])) == [1, 2]
        page = (tmp_path / "README.md").read_text()
        assert "| 2 (2 tasks **failed**) | 2 |" in page

    def test_nothing_is_written_of_nothing(self, traces, tmp_path):
        with pytest.raises(InputError, match="every task failed"):
            prepared(traces, tmp_path, "ssc").run(workers=Failing(lambda _: True), figures=False)
        assert not (tmp_path / "results.csv").exists()

    def test_one_that_failed_altogether_does_not_stop_the_next(self, traces, tmp_path):
        result = prepared(traces, tmp_path, "ssc", "synthetic-size", targets=1).run(
            workers=FailingFirst(), figures=False
        )
        assert set(result.results["experiment"]) == {"synthetic-size"}


class FailingFirst(Failing):
    """Fails at all of the first experiment."""

    def __init__(self):
        super().__init__(lambda _: True)

    def do(self, job, tasks):
        yield from super().do(job, tasks)
        self._fails = lambda _: False


class InterruptedLater(ThisProcess):
    """Stops in the second experiment."""

    n = 0

    def do(self, job, tasks):
        self.n += 1
        if self.n == 2:
            raise KeyboardInterrupt
        yield from super().do(job, tasks)


def test_what_is_finished_is_written_before_the_next_begins(traces, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        prepared(traces, tmp_path, "synthetic-size", "no-positions", targets=1).run(
            workers=InterruptedLater(), figures=False
        )
    page = (tmp_path / "README.md").read_text()
    assert "### synthetic-size: " in page
    assert "### no-positions: " not in page


class TestOneFolderIsOfOneStudy:
    def test_nor_by_one_rule_for_thresholds(self, traces, folder, tmp_path):
        """Accuracies by another one would not compare; a reader can tell which it was."""
        there = shutil.copytree(folder, tmp_path / "study")
        assert "Accuracies are by `threshold=roc`" in (there / "README.md").read_text()
        record = json.loads((there / "study.json").read_text())
        assert record["threshold"] == "roc"
        (there / "study.json").write_text(json.dumps(record | {"threshold": "middle"}))
        with pytest.raises(FileError, match="threshold middle then, roc now"):
            prepared(traces, there, "ssc")

    @pytest.mark.parametrize(
        ("numbers", "said"),
        [
            ({"group_size": 50}, "group size 100 then, 50 now"),
            ({"min_visits": 3}, "minimum visits 2 then, 3 now"),
            ({"max_visits": 5}, "visits a day 10 then, 5 now"),
            ({"reference_size": 500}, "reference size the usual then, 500 now"),
        ],
    )
    def test_other_numbers_are_refused(self, traces, folder, numbers, said):
        before = (folder / "README.md").read_bytes()
        with pytest.raises(FileError, match=said):
            prepared(traces, folder, "solver", **numbers)
        assert (folder / "README.md").read_bytes() == before

    def test_other_data_are_refused(self, folder):
        with pytest.raises(FileError, match="study of another file"):
            prepared("milan-like", folder, "solver")

    def test_an_unknown_origin_is_refused(self, traces, tmp_path):
        (tmp_path / "ssc").mkdir()
        with pytest.raises(FileError, match=r"no study.json"):
            prepared(traces, tmp_path, "solver")

    def test_traces_that_only_have_the_name_of_a_city_are_refused(self, traces, tmp_path):
        (tmp_path / "milan-like.parquet").write_bytes(traces.read_bytes())
        with pytest.raises(FileError, match="does not hold the traces of milan-like"):
            prepared("milan-like", tmp_path, "ssc")

    def test_the_same_traces_are_taken(self, tmp_path):
        for _ in range(2):
            prepared("milan-like", tmp_path, "ssc")


def test_experiments_for_more_people_are_left_out_of_all(traces, tmp_path):
    # Groups of 90 at most, where the smallest of one experiment have 100.
    numbers = {"group_size": 50, "reference_size": 91, "targets": 2}
    with pytest.raises(InputError, match=r"group-size needs groups of 100.*Leave it out"):
        prepared(traces, tmp_path, "ssc", "group-size", **numbers)
    some = prepared(traces, tmp_path, "all", **numbers)
    assert "ssc" in {one.name for one in some.audits}
    assert [one.name for one in some.left_out] == ["group-size", "group-size-dp"]
