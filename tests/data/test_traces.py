"""Traces: counts are conserved, nothing is mutated, files read back equal."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from whosthere.data.epochs import Epochs
from whosthere.data.ledger import Entry, Ledger
from whosthere.data.regions import Regions
from whosthere.data.traces import Traces
from whosthere.errors import FileError, GroupError, InputError


def _same(a, b):
    return (
        a.users == b.users
        and np.array_equal(a.indptr, b.indptr)
        and np.array_equal(a.cells, b.cells)
        and a.regions == b.regions
        and a.epochs == b.epochs
        and a.ledger == b.ledger
    )


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
    bounded = traces.bounded(5, per_day=per_day, rng=np.random.default_rng(1))
    again = traces.bounded(5, per_day=per_day, rng=np.random.default_rng(1))
    assert _same(bounded, again)
    assert np.array_equal(traces.cells, before)
    assert (_dense(bounded) <= _dense(traces)).all()
    periods = traces.epochs.days if per_day else np.zeros(traces.epochs.n, np.int32)
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
    for rows in ([40], [-1]):
        with pytest.raises(GroupError):
            traces.counts(rows)


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


def test_files_of_others_are_refused(traces, tmp_path):
    path = tmp_path / "t.parquet"
    traces.save(path)
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({}), path)
    with pytest.raises(FileError, match="of another program"):
        Traces.load(path)
    later = {b"whosthere": json.dumps({"kind": "traces", "format": 99}).encode()}
    pq.write_table(table.replace_schema_metadata(later), path)
    with pytest.raises(FileError, match="Upgrade"):
        Traces.load(path)


def test_visits_outside_the_cells_are_refused(traces, tmp_path):
    few = Regions(traces.regions.ids[:2])
    Traces(traces.users, traces.indptr, traces.cells, few, traces.epochs).save(tmp_path / "t")
    with pytest.raises(FileError, match="outside its regions"):
        Traces.load(tmp_path / "t")
