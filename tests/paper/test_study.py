"""A whole study, small: what it writes, that it resumes, and what it refuses."""

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import whosthere as wt
from whosthere.auditing.work import ThisProcess
from whosthere.errors import InputError
from whosthere.paper.datasets import find_dataset
from whosthere.paper.experiments import chosen
from whosthere.paper.results import published
from whosthere.paper.study import Size, prepare_study, size_of

SIZE = Size(targets=3, releases=2, control_releases=0, closer_look=False)


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    path = tmp_path_factory.mktemp("city") / "a|b<i>.parquet"
    wt.simulate("milan-like", seed=5, users=2000, regions=16, days=2).traces().save(path)
    return path


def prepared(traces, out, *names, size=SIZE):
    dataset, path = find_dataset(str(traces))
    dataset = dataset.with_numbers(group_size=100, min_visits=2)
    return prepare_study(chosen(names), dataset, out, traces=path, size=size, seed=1)


class Interrupted(ThisProcess):
    """Stops after a few tasks, as a user might."""

    def do(self, job, tasks):
        for i, outcome in enumerate(super().do(job, tasks)):
            if i == 4:
                raise KeyboardInterrupt
            yield outcome


def test_nobody_looks_closer_at_the_smallest_scale(traces, tmp_path):
    seen = []
    prepared(traces, tmp_path, "ssc", size=size_of("smoke")).run(
        workers=ThisProcess(), figures=False, on_progress=lambda *step: seen.append(step[0])
    )
    assert set(seen) == {"tasks"}
    assert not (tmp_path / "ssc" / "leaks.parquet").exists()
    assert (tmp_path / "ssc" / "report.html").exists()


def test_what_is_written(traces, tmp_path):
    seen = []
    looking = SIZE._replace(closer_look=True)
    result = prepared(traces, tmp_path, "ssc", "no-positions", size=looking).run(
        workers=ThisProcess(), on_progress=lambda *step: seen.append(step)
    )
    tasks = [step[1:] for step in seen if step[0] == "tasks"]
    assert (tasks[0], tasks[-1]) == ((0, 30), (30, 30))
    assert ("closer looks", 18, 18) in seen
    written = pl.read_csv(tmp_path / "results.csv", schema_overrides={"value": pl.String})
    assert written.columns[:8] == published().columns
    assert set(written["experiment"]) == {"ssc", "no-positions"}
    assert set(written["metric"]) == {"auc", "accuracy"}
    assert "ceiling" in set(written["attack"])
    assert set(written["targets"]) == {3}
    by_target = pl.read_parquet(tmp_path / "targets.parquet")
    assert by_target["target"].unique().sort().to_list() == [1, 2, 3]
    page = (tmp_path / "README.md").read_text()
    assert r"on a\|b\<i\>" in page
    assert "figures/ssc.svg" in page
    assert {one.status.value for _, one in result.judgements[4:]} == {"cannot tell"}
    for name in ("ssc", "no-positions", "time-marginal", "generator-inputs"):
        for ending in ("svg", "png"):
            assert (tmp_path / "figures" / f"{name}.{ending}").stat().st_size > 1000
    files = [tmp_path / "README.md", *sorted((tmp_path / "figures").iterdir())]
    before = [file.read_bytes() for file in files]
    prepared(traces, tmp_path, "ssc").run(workers=ThisProcess())
    assert [file.read_bytes() for file in files] == before


def test_an_interrupted_study_resumes_to_the_same(traces, tmp_path):
    whole = prepared(traces, tmp_path / "a", "ssc").run(workers=ThisProcess(), figures=False)
    with pytest.raises(KeyboardInterrupt):
        prepared(traces, tmp_path / "b", "ssc").run(workers=Interrupted(), figures=False)
    again = prepared(traces, tmp_path / "b", "ssc")
    assert again.n_left == 18 - 4
    resumed = again.run(workers=ThisProcess(), figures=False)
    assert resumed.targets.equals(whole.targets)
    pages = [(tmp_path / name / "README.md").read_text() for name in "ab"]
    assert pages[0] == pages[1]
    assert prepared(traces, tmp_path / "b", "ssc").n_left == 0


def test_experiments_join_those_that_are_there(traces, tmp_path):
    prepared(traces, tmp_path, "ssc").run(workers=ThisProcess(), figures=False)
    both = prepared(traces, tmp_path, "no-positions").run(workers=ThisProcess(), figures=False)
    assert set(both.results["experiment"]) == {"ssc", "no-positions"}


def test_a_study_grows(traces, tmp_path):
    def study(targets, folder, **how):
        return wt.reproduce(
            "partial-trace",
            dataset=str(traces),
            scale="smoke",
            targets=targets,
            group_size=100,
            min_visits=2,
            workers=ThisProcess(),
            figures=False,
            out=tmp_path / folder,
            **how,
        )

    study(2, "grown")
    with pytest.raises(InputError, match="Ask for it to be extended"):
        study(3, "grown")
    grown = study(3, "grown", extend=True)
    assert_frame_equal(grown.targets, study(3, "at once").targets)


def test_sizes():
    assert size_of("paper") == (50, 100, 10, True)
    assert size_of("quick", targets=7, releases=4) == (7, 4, 2, True)
    with pytest.raises(InputError, match=r"no scale 'papre'.*'paper'"):
        size_of("papre")


def test_from_python(traces, tmp_path):
    result = wt.reproduce(
        "synthetic-size",
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
