"""A table without traces: how well people would be found in it."""

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

import whosthere as wt
from whosthere.adversary.attacks import LikelihoodRatio
from whosthere.game import table_check
from whosthere.game.table_check import Visits, check_table
from whosthere.inference.metrics import auc

VISITS = Visits(4, 6)
START = datetime(2024, 5, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _few(monkeypatch):
    """Look for few people, which takes less time."""
    monkeypatch.setattr("whosthere.game.table_check._PEOPLE", 120)


@pytest.fixture(scope="module")
def people():
    """Return 600 people who make 5 visits in 20 regions over 48 hours, some of them busier."""
    rng = np.random.default_rng(3)
    weight = np.outer(rng.gamma(1.0, 1.0, 20), rng.gamma(2.0, 1.0, 48)).ravel()
    drawn = [rng.choice(960, 5, replace=False, p=weight / weight.sum()) for _ in range(600)]
    starts = wt.Epochs.from_json(
        {"start": "2024-05-01T00:00:00+00:00", "length": "1h", "n": 48, "timezone": "UTC"}
    )
    return wt.Traces(
        tuple(f"{i:03}" for i in range(600)),
        np.arange(0, 3001, 5),
        np.concatenate([np.sort(one) for one in drawn]).astype(np.int32),
        wt.Regions([f"r{i:02}" for i in range(20)]),
        starts,
    )


def found(checked, metric="pooled_auc"):
    return {one.setting: one.estimate for one in checked.findings if one.metric == metric}


def test_the_estimate_is_near_what_an_attack_on_the_real_people_reaches(people, monkeypatch):
    monkeypatch.setattr("whosthere.game.table_check._PEOPLE", 400)
    scores, labels, release, spec = [], [], None, "suppress(k=1)"
    for seed in range(3):
        group = np.sort(np.random.default_rng(seed).choice(600, 300, replace=False))
        release = wt.publish(people, spec, group=group, seed=seed).release
        scores.append(LikelihoodRatio().score_everybody(release, people))
        labels.append(np.isin(np.arange(600), group))
    truth = auc(np.concatenate(scores), np.concatenate(labels))
    checked = check_table(release, [VISITS])
    assert found(checked)["4 to 6"] == pytest.approx(truth, abs=0.08)
    (first, second) = checked.findings
    assert first.low < first.estimate < first.high
    assert first.n_targets >= 400
    assert second.metric == "tpr_at_fpr_1pct"


@pytest.mark.parametrize(
    ("spec", "least", "most"),
    [("raw", 0.8, 1.0), ("laplace(eps=0.01, unit=event)", 0.4, 0.6)],
)
def test_raw_counts_give_people_away_and_much_noise_hides_them(people, spec, least, most):
    release = wt.publish(people, spec, group_size=300, seed=1).release
    assert least <= found(check_table(release, [VISITS]))["4 to 6"] <= most


def test_one_who_draws_once_is_harder_to_find_than_one_who_draws_for_each_cell(people):
    """Where noise belongs to people, somebody alone in several cells draws once."""
    by_people = wt.publish(people, "sdctools-d2", group_size=150, seed=1).release
    checked = check_table(by_people, [Visits(12, 12)])
    assert found(checked)["12"] < 0.99


def test_the_same_seed_gives_the_same_and_more_visits_more_risk(people):
    release = wt.publish(people, "suppress(k=1)", group_size=500, seed=1).release
    one, same = (check_table(release, [Visits(2, 3), Visits(12, 15)], seed=5) for _ in range(2))
    assert one.to_json() == same.to_json()
    assert found(one)["2 to 3"] < found(one)["12 to 15"]
    assert one.leaks.equals(same.leaks)
    by_region = one.leaks.filter(axis="region")
    assert by_region.height == 20
    assert by_region["leak"].sum() > 0


def test_a_band_that_the_table_is_too_small_for_is_named(people):
    release = wt.publish(people, "suppress(k=1)", group_size=60, seed=1).release
    checked = check_table(release, [VISITS, Visits(35, 50)])
    assert list(found(checked)) == ["4 to 6"]
    assert "35 to 50 visits" in checked.notes[0]


@pytest.mark.parametrize(
    ("n_epochs", "bands"),
    [
        (2, ["1 to 2"]),
        (8, ["3 to 5"]),
        (24, ["3 to 5", "8 to 12", "18 to 24"]),
        (49, ["3 to 5", "8 to 12", "18 to 24"]),
        (50, ["3 to 5", "8 to 12", "18 to 24", "35 to 50"]),
    ],
)
def test_nobody_is_looked_for_who_would_be_in_two_places_at_once(n_epochs, bands):
    hours = pl.datetime_range(START, START + timedelta(hours=n_epochs - 1), "1h", eager=True)
    regions = pl.DataFrame({"region": [f"r{i}" for i in range(30)]})
    counts = np.random.default_rng(1).poisson(20, 30 * n_epochs)
    frame = regions.join(hours.alias("time").to_frame(), how="cross")
    frame = frame.with_columns(pl.Series("count", counts))
    checked = wt.check(frame, "suppress(k=4)", group_size=1000)
    assert list(found(checked)) == bands
    assert ("one region in an epoch" in str(checked.notes)) == (n_epochs < 50)
    asked = wt.check(frame, "suppress(k=4)", group_size=1000, visits=[n_epochs, n_epochs + 1])
    assert len(found(asked)) == 2
    assert f"Somebody with {n_epochs + 1} visits must be in several regions" in asked.notes[0]


def test_visits_that_a_mechanism_drops_do_not_give_people_away(people):
    """With hardly any noise, of somebody who made five visits one is counted, or all are."""
    specs = [f"laplace(eps=60, unit=user, max_visits={n})" for n in (1, 5)]
    tables = [wt.publish(people, spec, group_size=300, seed=1).release for spec in specs]
    one, five = (found(wt.check(release, visits=5, seed=2))["5"] for release in tables)
    assert one < five - 0.1


def test_people_who_meet_more_often_are_harder_to_find_under_suppression(people, monkeypatch):
    release, by_spread = wt.publish(people, "suppress(k=1)", group_size=300, seed=1).release, []
    for spread in (1e-9, 4.0):
        monkeypatch.setattr("whosthere.game.table_check._SPREAD", spread)
        by_spread.append(found(check_table(release, [Visits(5, 5)]))["5"])
    assert by_spread[1] < by_spread[0] - 0.02


def test_those_who_are_not_looked_for_have_keys_as_well(people):
    """Without keys, all of them would get the same change."""
    release = wt.publish(people, "cell-key(d=2, v=1.05)", group_size=300, seed=1).release
    rates, nobody = np.full(release.values.shape, 20.0), people.select(np.arange(0))
    published = table_check._publish(release, rates, nobody, np.random.default_rng(1))
    assert published.values.mean() == pytest.approx(20, abs=0.6)


def test_a_number_below_0_is_no_count_but_may_be_a_mark():
    """Two publishers show -1 for what they withhold."""
    marked = table(np.array([[12, -1, 0, 15]] * 5))
    with pytest.raises(wt.InputError, match=r"-1 is not a count.*withheld count"):
        wt.check(marked, "mds", visits=1)
    assert found(wt.check(marked, "mds", visits=1, reader=wt.TableReader(markers="-1")))


def table(counts):
    """Return a table of regions over hours as a frame."""
    rows = [
        {"region": f"r{i}", "time": f"2024-05-01 {hour:02}:00Z", "count": int(count)}
        for i, row in enumerate(counts)
        for hour, count in enumerate(row)
    ]
    return pl.DataFrame(rows)


def test_nothing_is_said_of_more_visits_than_there_are_cells_with_people():
    """Nobody could be drawn who makes as many, and fewer visits are found less."""
    counts = np.zeros((40, 3))
    counts[0] = 4000
    with pytest.raises(wt.InputError, match=r"too few of its 120 cells.* 20 of them"):
        wt.check(table(counts), "raw", visits=20)


@pytest.mark.parametrize("spec", ["raw", "suppress(k=4)", "laplace(eps=1)"])
def test_nothing_is_said_of_a_table_that_shows_no_count(spec):
    with pytest.raises(wt.InputError, match="no count is shown"):
        wt.check(table(np.zeros((40, 12))), spec, visits=2)


def test_a_number_of_visits_given_twice_is_looked_at_once(people):
    release = wt.publish(people, "suppress(k=1)", group_size=500, seed=1).release
    assert len(check_table(release, [VISITS, VISITS]).findings) == 2


@pytest.mark.parametrize("given", ["0", "5-3", "x", "1-2-3", "-4"])
def test_what_is_no_number_of_visits_is_refused(given):
    with pytest.raises(wt.InputError, match="visits"):
        Visits.parse(given)


def test_a_frame_needs_its_mechanism_but_hardly_its_size(people):
    release = wt.publish(people, "suppress(k=1)", group_size=500, seed=1).release
    frame = release.to_frame()
    with pytest.raises(wt.InputError, match=r"how its counts.*suppress\(k=1\)"):
        wt.check(frame)
    unsaid, said = (wt.check(frame, "suppress(k=1)", group_size=m, visits=5) for m in (None, 500))
    assert found(unsaid)["5"] == pytest.approx(found(said)["5"], abs=0.02)
    assert "1,000 are assumed" in unsaid.notes[-1]
    with pytest.raises(wt.InputError, match="release of 500 people"):
        wt.check(release, "raw")


@pytest.mark.parametrize(
    ("hours", "people_said", "is_known"),
    [(1, 1000, True), (1, 5000, False), (24, 1000, False), (1, None, False)],
)
def test_how_far_off_it_is_is_said_of_such_tables_only(hours, people_said, is_known):
    """Nothing was measured by days, of many people, or where nobody says how many there are."""
    times = [START + timedelta(hours=hours * i) for i in range(6)]
    rows = [(f"r{i}", time, (i + time.hour) % 9 + 9) for i in range(20) for time in times]
    frame = pl.DataFrame(rows, schema=["region", "time", "count"], orient="row")
    checked = wt.check(frame, "suppress(k=4)", group_size=people_said, visits=3)
    page = wt.report(checked).html
    assert ("0.10 to +0.05" in page) == is_known
    assert ("its error is unknown" in page) != is_known


def test_the_page_shows_who_where_and_when_and_escapes_what_it_read(people):
    release = wt.publish(people, "suppress(k=1)", group_size=500, seed=1).release
    frame = release.to_frame().with_columns(pl.format("<b>{}", "region").alias("region"))
    html = wt.report(wt.check(frame, "suppress(k=1)", visits=["5", "8-12"])).html
    assert "<b>r0" not in html
    assert "&lt;b&gt;r0" in html
    assert "8 to 12 visits" in html
    assert "gives no verdict" in html
    assert "Hours of the week" in html
