"""The experiments are plans that can be made, and hold every number that was published."""

from dataclasses import replace

import pytest

from whosthere.auditing.planning import make_plan
from whosthere.errors import InputError
from whosthere.paper.datasets import LIKE, PRESETS, find_dataset, made_traces
from whosthere.paper.experiments import EXPERIMENTS, Size, named_experiments, size_of
from whosthere.paper.outcome import notes_on
from whosthere.paper.results import published

SIZE = Size(targets=3, releases=2, control_releases=0)


@pytest.fixture(scope="module")
def milan():
    return made_traces(PRESETS["milan-like"], None)


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=lambda one: one.name)
def test_every_experiment_is_a_plan(milan, experiment):
    dataset = PRESETS["milan-like"]
    plan = make_plan(experiment.options(dataset, milan.n_users, SIZE, seed=1), milan)
    settings = [str(setting) for *_, setting in experiment.places(dataset, milan.n_users)]
    assert sorted(map(str, plan.settings)) == sorted(set(settings))
    assert experiment.question.endswith("?")
    assert all(visits >= 10 for visits in milan.visits_per_user()[list(plan.targets)])


@pytest.mark.parametrize("like", LIKE)
def test_every_published_number_has_its_place(like):
    """The paper's 4,840 and 11,000 people; groups of 3,000 are for the larger data only."""
    n_users = {"milan": 5_000, "cdr": 11_000}[like]
    measured = {
        (series.name, series.parameter, point.value, attack)
        for experiment in EXPERIMENTS.values()
        for series, point, _ in experiment.places(LIKE[like], n_users)
        for attack in series.attacks
    }
    rows = published().filter(published()["dataset"] == like)
    wanted = set(rows.select("experiment", "parameter", "value", "attack").iter_rows())
    assert len(wanted) >= 60
    assert wanted <= measured


def test_groups_that_are_too_large_are_left_out():
    small = EXPERIMENTS["group-size"].fitting(LIKE["milan"], 5_000)
    assert [point.group_size for point in small[0].points] == [100, 500, 1000, 2000]
    large = EXPERIMENTS["group-size"].fitting(LIKE["cdr"], 11_000)
    assert [point.group_size for point in large[0].points] == [100, 500, 1000, 2000, 3000]
    with pytest.raises(
        InputError, match=r"ssc needs groups of 1,000: of 300 people, 149 .* groups of 148"
    ):
        EXPERIMENTS["ssc"].options(LIKE["milan"], 300, SIZE, seed=1)


def test_the_likelihood_ratio_stands_beside_the_papers_attacks():
    for experiment in EXPERIMENTS.values():
        if experiment.in_paper:
            for series in experiment.series:
                assert "likelihood-ratio" in series.attacks


def test_notes_are_about_series():
    names = [one.name for e in EXPERIMENTS.values() for one in e.series]
    assert sum(bool(notes_on(name, "milan")) for name in names) == 9
    milan, cdr = (notes_on("dp-user-day", like) for like in ("milan", "cdr"))
    assert set(cdr) & set(milan)
    assert set(cdr) ^ set(milan)
    assert not any("Milan" in note for note in cdr)
    assert notes_on("fit", "milan") == []


def test_names():
    assert [one.name for one in named_experiments(["dp-event", "ssc", "ssc"])] == [
        "ssc",
        "dp-event",
    ]
    assert len(named_experiments(["all"])) == len(EXPERIMENTS)
    with pytest.raises(InputError, match=r"no experiment 'scc'.*'ssc'"):
        named_experiments(["scc"])
    with pytest.raises(InputError, match="no experiment is named"):
        named_experiments([])


def test_datasets(tmp_path):
    dataset, path = find_dataset(dataset="cdr-like")
    assert (dataset.like, dataset.max_visits, path) == ("cdr", 20, None)
    assert dataset.reference_among(11_000) == 5000
    assert find_dataset(dataset="cdr-like", like="cdr")[0] == dataset
    with pytest.raises(InputError, match="numbers of cdr, not those of milan"):
        find_dataset(dataset="cdr-like", like="milan")
    with pytest.raises(InputError, match="no data set 'rome'"):
        find_dataset(dataset="cdr-like", like="rome")
    file = tmp_path / "own.parquet"
    file.touch()
    dataset, path = find_dataset(dataset=str(file), like="cdr")
    assert (dataset.name, dataset.like, dataset.min_visits, path) == ("own", "cdr", 1, file)
    real = tmp_path / "social-pulse-milano.geojson"
    real.write_text('{"features": [{"geomPoint.geom": {}}]}')
    dataset, path = find_dataset(dataset=str(real))
    assert (dataset.name, dataset.like, dataset.min_visits, path) == ("milan", "milan", 10, real)
    with pytest.raises(InputError, match="numbers of milan, not those of cdr"):
        find_dataset(dataset=str(real), like="cdr")
    with pytest.raises(InputError, match="no data set 'nowhere', and no such file"):
        find_dataset(dataset="nowhere")
    with pytest.raises(InputError, match="no data set 'rome'"):
        find_dataset(dataset=str(file), like="rome")


def test_sizes():
    assert size_of("paper") == (50, 100, 10, True)
    assert size_of() == size_of("quick")
    assert size_of("quick", targets=7, releases=4) == (7, 4, 2, True)
    with pytest.raises(InputError, match=r"no scale 'papre'.*'paper'"):
        size_of("papre")
    with pytest.raises(InputError, match="at least 1 target, not 0"):
        size_of("quick", targets=0)
    with pytest.raises(InputError, match="at least 2 releases of each target, not 0"):
        size_of("quick", releases=0)


def test_a_number_that_was_asked_for_is_not_replaced():
    small = replace(LIKE["milan"], group_size=100)
    assert small.reference_among(1000) == 499
    large = replace(small, reference_size=950)
    assert large.reference_among(1000) == 950
    with pytest.raises(InputError, match=r"of 1,000 people, 950 are the reference"):
        EXPERIMENTS["ssc"].options(large, 1000, SIZE, seed=1)
