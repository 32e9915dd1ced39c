"""Traces: counts are conserved, nothing is mutated, files read back equal."""

import itertools
import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from whosthere.data.epochs import Epochs
from whosthere.data.ledger import Entry, FriendEntry, Ledger
from whosthere.data.neighbours import as_graph
from whosthere.data.regions import Regions
from whosthere.data.traces import Traces
from whosthere.display import facts_table
from whosthere.errors import FileError, GroupError, InputError


def _same(a, b):
    return (
        a.users == b.users
        and np.array_equal(a.indptr, b.indptr)
        and np.array_equal(a.cells, b.cells)
        and a.regions == b.regions
        and a.epochs == b.epochs
        and a.ledger == b.ledger
        and _pairs(a) == _pairs(b)
    )


def _pairs(traces):
    """Return who are friends by id, None where that is not known."""
    if traces.friends is None:
        return None
    return {frozenset(traces.users[i] for i in pair) for pair in traces.friends.pairs()}


@pytest.fixture
def befriended(traces, rng):
    """Give the traces 60 friendships."""
    return replace(traces, friends=as_graph(rng.integers(0, 40, (60, 2)), 40))


def _dense(traces):
    dense = np.zeros((traces.n_users, traces.n_cells), int)
    for row in range(traces.n_users):
        dense[row, traces.trace(row)] = 1
    return dense


def test_counts_are_the_sum_of_the_traces(traces, rng):
    dense = _dense(traces)
    rows = rng.choice(40, 15, replace=False)
    assert np.array_equal(traces.counts(rows).ravel(), dense[rows].sum(axis=0))
    assert traces.counts().sum() == traces.n_visits == traces.visits_per_user().sum()


def test_counts_of_disjoint_groups_add_up(traces):
    assert np.array_equal(
        traces.counts(np.arange(20)) + traces.counts(np.arange(20, 40)), traces.counts()
    )


@pytest.mark.parametrize("m", [0, 1, 20, 21, 30, 39, 40])
def test_large_groups_are_counted_like_small_ones(traces, rng, m):
    """Above half of the people the others are counted, which must not be seen."""
    dense = _dense(traces)
    rows = rng.permutation(40)[:m]
    assert np.array_equal(traces.counts(rows).ravel(), dense[rows].sum(axis=0))
    twice = np.concatenate([rows, rows])
    assert np.array_equal(traces.counts(twice), 2 * traces.counts(rows))


def test_counts_belong_to_who_asked(traces):
    for rows in (None, np.arange(39), np.arange(3)):
        counts = traces.counts(rows)
        counts += 1
        assert np.array_equal(traces.counts(rows), counts - 1)


def test_sums_are_over_each_trace(traces, rng):
    values = rng.normal(size=traces.n_cells)
    rows = rng.permutation(40)[:15]
    assert traces.sums(values, rows) == pytest.approx(_dense(traces)[rows] @ values)
    assert traces.sums(values, np.repeat(rows, 2)).tolist() == [
        one for one in traces.sums(values, rows) for _ in range(2)
    ]
    busy = int(np.argmax(traces.visits_per_user()))
    cell = traces.trace(busy)[2]
    values[cell] = -np.inf
    been_there = _dense(traces)[:, cell] == 1
    assert np.array_equal(np.isneginf(traces.sums(values, np.arange(40))), been_there)


def test_selecting_keeps_each_trace(traces, rng):
    rows = rng.permutation(40)[:11]
    chosen = traces.select(rows)
    assert chosen.users == tuple(traces.users[i] for i in rows)
    assert np.array_equal(_dense(chosen), _dense(traces)[rows])


def test_visits_per_day_add_up(traces):
    daily = traces.visits_per_period(traces.epochs.days)
    assert daily.shape == (40, traces.epochs.n_days)
    assert np.array_equal(daily.sum(axis=1), traces.visits_per_user())


@pytest.mark.parametrize("per_day", [True, False])
def test_bounding_drops_only_what_is_too_much(traces, per_day):
    before = traces.cells.copy()
    periods = traces.epochs.days if per_day else np.zeros(traces.epochs.n, np.int32)
    bounded = traces.bounded(5, periods, np.random.default_rng(1))
    again = traces.bounded(5, periods, np.random.default_rng(1))
    assert _same(bounded, again)
    assert np.array_equal(traces.cells, before)
    assert (_dense(bounded) <= _dense(traces)).all()
    visits = traces.visits_per_period(periods)
    assert np.array_equal(bounded.visits_per_period(periods), np.minimum(visits, 5))


def test_file_round_trip(traces, tmp_path):
    ledger = Ledger(10, 3, (Entry("because", 2, 1),), 8, 2)
    kept = Traces(traces.users, traces.indptr, traces.cells, traces.regions, traces.epochs, ledger)
    kept.save(tmp_path / "t.parquet")
    assert _same(Traces.load(tmp_path / "t.parquet"), kept)


def test_the_same_traces_give_the_same_bytes(traces, tmp_path):
    for name in "ab":
        traces.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_arrays_are_values(traces):
    with pytest.raises(ValueError, match="read-only"):
        traces.cells[0] = 1


def test_rows_that_are_not_there_are_refused(traces):
    for row in (40, -1):
        for look in (traces.counts, traces.select):
            with pytest.raises(GroupError, match=r"must lie in 0\.\.39"):
                look([row])
        with pytest.raises(GroupError, match=r"must lie in 0\.\.39"):
            traces.trace(row)


def test_neither_a_mask_nor_an_id_is_a_row(traces):
    """A mask would be the rows 0 and 1, many times over."""
    mask = traces.visits_per_user() > 3
    for wrong in (mask, [1.7], ["u07"], [None]):
        with pytest.raises(GroupError, match=r"flatnonzero.*row_of") as caught:
            traces.select(wrong)
        assert "u07" not in str(caught.value)
    with pytest.raises(GroupError, match="row_of"):
        traces.trace("u07")
    assert traces.select([]).n_users == 0
    assert traces.select(np.flatnonzero(mask)).n_users == mask.sum()


def test_an_error_never_names_a_user(traces):
    with pytest.raises(GroupError) as caught:
        traces.row_of("somebody")
    assert "somebody" not in str(caught.value)
    assert traces.row_of("u07") == 7


def test_too_many_cells_are_refused(epochs):
    many = Regions([str(i) for i in range(50_000)])
    long = Epochs(epochs.start, epochs.length, 50_000)
    with pytest.raises(InputError, match="more than"):
        Traces((), np.zeros(1, np.int64), np.zeros(0, np.int32), many, long)


@pytest.mark.parametrize("keep", [0, 7, 200, -1])
def test_truncated_files_are_refused(traces, tmp_path, keep):
    path = tmp_path / "t.parquet"
    traces.save(path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(FileError, match=r"not a whole Parquet file"):
        Traces.load(path)


def test_other_programs_files_are_refused(traces, tmp_path):
    path = tmp_path / "t.parquet"
    traces.save(path)
    table = pl.read_parquet(path)
    table.write_parquet(path)
    with pytest.raises(FileError, match="of another program"):
        Traces.load(path)
    later = {"whosthere": json.dumps({"kind": "traces", "format": 99})}
    table.write_parquet(path, metadata=later)
    with pytest.raises(FileError, match="Upgrade"):
        Traces.load(path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda table: table.drop("user"),
        lambda table: table.drop("cells"),
        lambda table: table.with_columns(cells=pl.lit(1)),
        lambda table: table.with_columns(pl.col("cells").cast(pl.List(pl.Int64))),
        lambda table: table.with_columns(cells=pl.lit([None], dtype=pl.List(pl.Int32))),
        lambda table: table.with_columns(cells=pl.lit(None, dtype=pl.List(pl.Int32))),
        lambda table: table.with_columns(user=pl.lit(None, dtype=pl.String)),
        lambda table: table.with_columns(friends=pl.lit([40], dtype=pl.List(pl.Int32))),
        lambda table: table.with_columns(friends=pl.lit([-1], dtype=pl.List(pl.Int32))),
        lambda table: table.with_columns(friends=pl.lit("u01")),
    ],
)
def test_damaged_files_are_refused(traces, tmp_path, damage):
    path = tmp_path / "t.parquet"
    traces.save(path)
    head = {"whosthere": pl.read_parquet_metadata(path)["whosthere"]}
    damage(pl.read_parquet(path)).write_parquet(path, metadata=head)
    with pytest.raises(FileError, match="damaged traces file"):
        Traces.load(path)


@pytest.mark.parametrize(
    ("users", "rows", "weights", "problem"),
    [
        (("a", "a", "a"), ([1], [], [1]), None, "several users with the same id"),
        (("a", "b", "c"), ([5], [], [2, 2]), None, "a cell twice"),
        (("a", "b", "c"), ([7, 3], [], [2]), None, "not in order"),
        (("a", "b", "c"), ([], [], [504]), None, "outside its regions"),
        (("a", "b", "c"), ([-1], [], []), None, "outside its regions"),
        (("a", "b", "c"), ([3], [], [3]), (1, 3), "less or more"),
        (("a", "b", "c"), ([3], [], [3]), (0, 2), "less or more"),
        (("c", "a", "b"), ([5, 7], [], [2, 503]), None, None),
        (("c", "a", "b"), ([], [5, 7], [7]), (1, 2, 2), None),
    ],
)
def test_what_traces_never_are_is_refused(regions, epochs, tmp_path, users, rows, weights, problem):
    indptr, cells = np.cumsum([0, *map(len, rows)]), np.concatenate(rows).astype(np.int32)
    given = None if weights is None else np.array(weights, np.int32)
    made = Traces(users, indptr, cells, regions, epochs, weights=given, most_added=2)
    made.save(tmp_path / "t")
    if problem is None:
        assert _same(Traces.load(tmp_path / "t"), made)
        return
    with pytest.raises(FileError, match=rf"t: .*{problem}.*Make it again"):
        Traces.load(tmp_path / "t")


@pytest.mark.parametrize("n", [0, 1])
def test_few_or_no_users_read_back(n, regions, epochs, tmp_path):
    friends = as_graph(np.zeros((0, 2), np.int64), n)
    few = Traces(("u",)[:n], np.zeros(n + 1), np.zeros(0), regions, epochs, friends=friends)
    few.save(tmp_path / "t.parquet")
    assert _same(Traces.load(tmp_path / "t.parquet"), few)


def test_changing_the_source_changes_nothing(traces):
    indptr, cells = traces.indptr.copy(), traces.cells.copy()
    made = Traces(traces.users, indptr, cells, traces.regions, traces.epochs)
    view = Traces(traces.users, indptr[:], cells[:], traces.regions, traces.epochs)
    indptr[1:-1] = 0
    cells[:] = 0
    for each in (made, view):
        assert _same(each, traces)
    assert indptr.flags.writeable
    assert cells.flags.writeable


def test_results_share_no_memory_that_can_be_written_to(befriended, rng, tmp_path):
    befriended.save(tmp_path / "t")
    results = [
        befriended.select([3, 1]),
        befriended.bounded(2, befriended.epochs.days, rng),
        befriended.between(5, 9),
        Traces.load(tmp_path / "t"),
    ]
    for result in results:
        for array in (result.indptr, result.cells, result.friends.indptr, result.friends.indices):
            while isinstance(array, np.ndarray):
                assert not array.flags.writeable
                array = array.base  # noqa: PLW2901 - what is a view of what


def test_no_user_is_shown(befriended):
    shown = repr(befriended)
    n = befriended.friends.n_edges
    assert shown == (
        f"<Traces: 40 users, {befriended.n_visits:,} visits, {n} friendships, "
        f"7 regions, {befriended.epochs}>"
    )
    html = befriended._repr_html_()
    assert f"{befriended.n_visits:,}" in html
    assert not any(user in shown + html + str(befriended) for user in befriended.users)
    assert "friend" not in repr(replace(befriended, friends=None))


def test_html_is_escaped():
    assert "<script>" not in facts_table("<script>", {"<script>": "<script>"})


# Friends


def test_friends_are_kept_in_files(befriended, tmp_path):
    entry = FriendEntry(9, 3, 2, 4)
    befriended = replace(befriended, ledger=Ledger(1, 1, (), 1, 1, entry))
    befriended.save(tmp_path / "t.parquet")
    assert _same(Traces.load(tmp_path / "t.parquet"), befriended)


def test_selecting_keeps_friendships_among_the_selected(befriended, rng):
    chosen = befriended.select(rng.permutation(40)[:23])
    expected = {pair for pair in _pairs(befriended) if pair <= set(chosen.users)}
    assert _pairs(chosen) == expected
    assert 0 < len(expected) < len(_pairs(befriended))


def test_bounding_and_windows_keep_friendships(befriended, rng):
    assert _pairs(befriended.bounded(1, np.zeros(befriended.epochs.n, np.int32), rng)) == _pairs(
        befriended
    )
    assert _pairs(befriended.between(0, 1)) == _pairs(befriended)


def test_a_graph_of_other_people_is_refused(traces):
    with pytest.raises(InputError, match="39 people does not fit 40 users"):
        replace(traces, friends=as_graph(np.zeros((0, 2), np.int64), 39))


# Windows


@pytest.mark.parametrize("edges", [(0, 72), (0, 1, 71, 72), (0, 24, 48, 72), (0, 13, 50, 51, 72)])
def test_windows_share_the_visits_out(traces, edges):
    windows = [traces.between(a, b - a) for a, b in itertools.pairwise(edges)]
    assert sum(window.n_visits for window in windows) == traces.n_visits
    assert np.array_equal(
        sum(window.visits_per_user() for window in windows), traces.visits_per_user()
    )
    for window, (a, b) in zip(windows, itertools.pairwise(edges), strict=True):
        assert window.users == traces.users
        assert window.regions == traces.regions
        assert np.array_equal(window.epochs.starts, traces.epochs.starts[a:b])
        assert np.array_equal(window.counts(), traces.counts()[:, a:b])
        rows = [3, 17, 39]
        assert np.array_equal(window.counts(rows), traces.counts(rows)[:, a:b])
        for row in range(traces.n_users):
            assert (np.diff(window.trace(row)) > 0).all()


def test_the_whole_window_is_the_traces(traces):
    assert _same(traces.between(0, 72), traces)


@pytest.mark.parametrize(("first", "n"), [(-1, 3), (70, 3), (0, 0)])
def test_windows_outside_the_epochs_are_refused(traces, first, n):
    with pytest.raises(InputError, match="not among these 72"):
        traces.between(first, n)


def test_weights_are_added_up_and_go_where_their_visits_go(traces, rng):
    weights = rng.integers(1, 9, traces.n_visits).astype(np.int32)
    heavy = replace(traces, weights=weights, most_added=8)
    rows = np.array([7, 3, 11])
    expected = np.zeros(traces.n_cells, np.int64)
    for row in rows:
        np.add.at(expected, traces.trace(row), heavy.added(row))
    assert np.array_equal(heavy.counts(rows).reshape(-1), expected)
    assert np.array_equal(heavy.select(rows).counts(), heavy.counts(rows))
    assert heavy.counts().sum() == weights.sum()
    part = heavy.between(0, traces.epochs.n // 2)
    assert part.counts().sum() == heavy.counts()[:, : traces.epochs.n // 2].sum()
    assert heavy.visits_per_user()[7] == np.sum(heavy.added(7))
    assert heavy.n_visits == weights.sum()
    assert traces.added(3) == 1
    with pytest.raises(InputError, match="weights"):
        replace(traces, weights=weights[:-1])


def test_bounding_drops_single_visits_of_a_cell(traces, rng):
    """So that what a person adds to all cells together is bounded, wherever the visits are."""
    heavy = replace(traces, weights=np.full(traces.n_visits, 8, np.int32), most_added=8)
    period = (np.arange(72) // 24).astype(np.int32)
    before = heavy.visits_per_period(period)
    bounded = heavy.bounded(5, period, rng)
    assert np.array_equal(bounded.visits_per_period(period), np.minimum(before, 5))
    assert bounded.weights.min() >= 1
    assert (bounded.counts() <= heavy.counts()).all()


def test_weights_are_saved_and_go_through_frames(traces, rng, tmp_path):
    weights = rng.integers(1, 9, traces.n_visits).astype(np.int32)
    heavy = replace(traces.between(0, 72), weights=weights, most_added=9)
    heavy.save(tmp_path / "heavy.parquet")
    loaded = Traces.load(tmp_path / "heavy.parquet")
    frame = heavy.to_frame()
    again = Traces.from_frame(frame, regions=heavy.regions, epochs=heavy.epochs)
    for one in (loaded, again):
        assert np.array_equal(one.counts(), heavy.counts())
        assert np.array_equal(one.weights, heavy.weights)
    assert loaded.most_added == 9
    assert again.most_added == weights.max()
    assert frame["weight"].sum() == weights.sum()


def test_traces_go_to_frames_and_back(traces):
    """Also somebody without a visit, in any order, and as pandas has them."""
    part = traces.between(0, 3)
    assert (part.visits_per_user() == 0).any()
    for one in (part, replace(part, epochs=replace(part.epochs, timezone="Europe/Rome"))):
        frame = one.to_frame()
        assert frame.columns == ["user", "region", "epoch_start"]
        assert frame["epoch_start"].dtype.time_zone == one.epochs.timezone
        assert frame["region"].drop_nulls().len() == one.n_visits
        known = {"regions": one.regions, "epochs": one.epochs}
        for same in (frame, frame.reverse(), pl.concat([frame, frame]), frame.lazy()):
            assert _same(Traces.from_frame(same, **known), one)
        pytest.importorskip("pandas")
        assert _same(Traces.from_frame(frame.to_pandas(), **known), one)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows.drop("user"), "no column user"),
        (lambda rows: rows.drop("epoch_start"), "no column epoch_start"),
        (lambda rows: rows.with_columns(user=None), "does not hold a text in every row"),
        (lambda rows: rows.with_columns(region=pl.lit("secret")), "row 0 is of none"),
        (lambda rows: rows.with_columns(region=None), "row 0 is of none"),
        (lambda rows: rows.with_columns(pl.col("epoch_start").dt.offset_by("1s")), "row 0 is of"),
        (lambda rows: rows.cast({"epoch_start": pl.Datetime("us")}), "datetimes with a zone"),
        (lambda rows: rows.cast({"epoch_start": pl.String}), "datetimes with a zone"),
    ],
)
def test_rows_that_are_no_visits_are_refused(traces, change, message):
    rows = change(traces.to_frame().drop_nulls())
    with pytest.raises(InputError, match=message) as caught:
        Traces.from_frame(rows, regions=traces.regions, epochs=traces.epochs)
    assert "secret" not in str(caught.value)
