"""The experiments are plans that can be made, and hold every number that was published."""

import pytest

from whosthere.auditing.planning import make_plan
from whosthere.errors import InputError
from whosthere.paper.datasets import LIKE, PRESETS, find_dataset, simulated_traces
from whosthere.paper.experiments import EXPERIMENTS, chosen, places
from whosthere.paper.notes import notes_on
from whosthere.paper.results import published

SIZE = {"targets": 3, "releases": 2, "control_releases": 0, "seed": 1}


@pytest.fixture(scope="module")
def milan():
    return simulated_traces("milan-like")


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=lambda one: one.name)
def test_every_experiment_is_a_plan(milan, experiment):
    dataset = PRESETS["milan-like"]
    plan = make_plan(experiment.options(dataset, milan.n_users, **SIZE), milan)
    settings = [setting for *_, setting in places(experiment, dataset, milan.n_users)]
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
        for series, point, _ in places(experiment, LIKE[like], n_users)
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
        EXPERIMENTS["ssc"].options(LIKE["milan"], 300, **SIZE)


def test_the_likelihood_ratio_stands_beside_the_papers_attacks():
    for experiment in EXPERIMENTS.values():
        if experiment.in_paper:
            for series in experiment.series(LIKE["milan"]):
                assert "likelihood-ratio" in series.attacks


def test_notes_are_about_series():
    names = [one.name for e in EXPERIMENTS.values() for one in e.series(LIKE["milan"])]
    assert sum(bool(notes_on(name, "milan")) for name in names) == 9
    milan, cdr = (notes_on("dp-user-day", like) for like in ("milan", "cdr"))
    assert set(cdr) < set(milan)
    assert not any("Milan" in note for note in cdr)
    assert notes_on("fit", "milan") == ()


def test_names():
    assert [one.name for one in chosen(["dp-event", "ssc", "ssc"])] == ["ssc", "dp-event"]
    assert len(chosen(["all"])) == len(EXPERIMENTS)
    with pytest.raises(InputError, match=r"no experiment 'scc'.*'ssc'"):
        chosen(["scc"])
    with pytest.raises(InputError, match="no experiment is named"):
        chosen([])


def test_datasets(tmp_path):
    dataset, path = find_dataset("cdr-like")
    assert (dataset.like, dataset.max_visits, path) == ("cdr", 20, None)
    assert dataset.reference_among(11_000) == 5000
    assert find_dataset("cdr-like", like="cdr")[0] == dataset
    with pytest.raises(InputError, match="numbers of cdr, not those of milan"):
        find_dataset("cdr-like", like="milan")
    with pytest.raises(InputError, match="no data set 'rome'"):
        find_dataset("cdr-like", like="rome")
    file = tmp_path / "own.parquet"
    file.touch()
    dataset, path = find_dataset(str(file), like="cdr")
    assert (dataset.name, dataset.like, dataset.min_visits, path) == ("own", "cdr", 1, file)
    real = tmp_path / "social-pulse-milano.geojson"
    real.write_text('{"features": [{"geomPoint.geom": {}}]}')
    dataset, path = find_dataset(str(real))
    assert (dataset.name, dataset.like, dataset.min_visits, path) == ("milan", "milan", 10, real)
    with pytest.raises(InputError, match="numbers of milan, not those of cdr"):
        find_dataset(str(real), like="cdr")
    with pytest.raises(InputError, match="no data set 'nowhere', and no such file"):
        find_dataset("nowhere")
    with pytest.raises(InputError, match="no data set 'rome'"):
        find_dataset(str(file), like="rome")
    with pytest.raises(InputError, match="no city 'rome'"):
        simulated_traces("rome")
