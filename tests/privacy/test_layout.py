"""Larger regions and longer epochs: the same people, and no visit where nobody was."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from whosthere.data.epochs import Epochs, to_micros
from whosthere.data.regions import Regions
from whosthere.data.traces import Traces
from whosthere.errors import InputError
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.scheme import Layout, TableScheme

MERGED = (0, 1, 0, 2, 1, 1, 0)


def visits(traces):
    """Return who was where and when, as pairs of region and epoch."""
    return [
        {divmod(int(cell), traces.epochs.n) for cell in traces.trace(row)}
        for row in range(traces.n_users)
    ]


@pytest.mark.parametrize("merged", [None, MERGED, (0,) * 7])
@pytest.mark.parametrize("joined", [1, 4, 5, 72, 100])
def test_every_visit_moves_to_its_new_cell(traces, merged, joined):
    coarse = Layout(merged, joined)(traces)
    new = range(7) if merged is None else merged
    assert visits(coarse) == [
        {(new[region], epoch // joined) for region, epoch in own} for own in visits(traces)
    ]
    assert coarse.users == traces.users
    for row in range(coarse.n_users):
        assert (np.diff(coarse.trace(row)) > 0).all()


def test_nothing_to_change_changes_nothing(traces):
    same = Layout()(traces)
    assert same is traces


def test_merged_regions_lie_in_the_middle(regions):
    merged = regions.merged(MERGED)
    assert merged.ids == ("r0+r2+r6", "r1+r4+r5", "r3")
    assert merged.lon[0] == pytest.approx(regions.lon[[0, 2, 6]].mean())
    assert merged.lat[2] == regions.lat[3]
    assert not Regions(["a", "b"]).merged([0, 0]).have_positions


@pytest.mark.parametrize("bad", [(0, 1), (0, 0, 0, 0, 0, 0, 2), (-1, 0, 0, 0, 0, 0, 0), ()])
def test_numbers_that_say_nothing_are_refused(regions, bad):
    with pytest.raises(InputError):
        regions.merged(bad)


@pytest.mark.parametrize("bad", [0, -3])
def test_epochs_cannot_be_joined_to_none(epochs, bad):
    with pytest.raises(InputError, match="cannot be joined"):
        epochs.joined(bad)


def test_joined_epochs_cover_the_same_time(epochs):
    joined = epochs.joined(5)
    assert (joined.start, joined.length, joined.n) == (epochs.start, timedelta(hours=5), 15)
    assert joined.end >= epochs.end


class TestClockChange:
    """Summer time began in Rome on 31 March 2024, a Sunday, which had 23 hours."""

    ROME = ZoneInfo("Europe/Rome")

    def traces(self, length, start, regions, rng):
        epochs = Epochs.covering(start, start + timedelta(days=21), length=length,
                                 timezone="Europe/Rome")  # fmt: skip
        micros = to_micros(start) + rng.integers(0, 21 * 86400, 400) * 1_000_000
        cells = np.unique(rng.integers(0, 7, 400) * epochs.n + epochs.index_of(micros))
        return Traces(("u",), np.array([0, cells.size]), cells.astype(np.int32), regions, epochs)

    @pytest.mark.parametrize("hour", [0, 5])
    def test_hours_joined_to_days_are_the_days_of_records(self, regions, hour):
        start = datetime(2024, 3, 25, hour, tzinfo=self.ROME)
        hourly, daily = (
            self.traces(timedelta(hours=n), start, regions, np.random.default_rng(1))
            for n in (1, 24)
        )
        table = TableScheme(
            Mechanism.parse("laplace(eps=1, unit=user-day, max_visits=3)"), Layout(epochs=24)
        )
        joined = table.layout(hourly)
        table.check(hourly.epochs, joined.most_added)
        assert joined.epochs == daily.epochs
        assert np.array_equal(joined.cells, daily.cells)
        assert np.bincount(hourly.epochs.slots(timedelta(days=1)))[6] == 23

    def test_weeks_end_at_midnight(self, regions, rng):
        hourly = self.traces(timedelta(hours=1), datetime(2024, 3, 25, 5, tzinfo=self.ROME),
                             regions, rng)  # fmt: skip
        sizes = [Layout(times=n).n_covered(hourly.epochs) for n in (1, 2)]
        assert sizes == [7 * 24 - 5 - 1, 14 * 24 - 5 - 1]
        assert Layout().most_times(hourly.epochs) == 3
        with pytest.raises(InputError, match=r"epochs of 2d .* do not end with the 1 week"):
            table = TableScheme(Mechanism.parse("raw"), Layout(epochs=48, times=1))
            table.check(hourly.epochs.part(0, sizes[0]), 1)

    def test_longer_epochs_reach_over_midnight_afterwards(self, regions, rng):
        long = self.traces(timedelta(hours=6), datetime(2024, 3, 25, tzinfo=self.ROME), regions,
                           rng)  # fmt: skip
        with pytest.raises(InputError, match=r"of 1d .* of 6h: the epoch from 2024-03-31 19:00"):
            Layout(epochs=4)(long)


def test_hours_of_the_week_are_local():
    """The clocks go back on a Sunday at 03:00, so that 02:00 comes twice."""
    start = datetime(2013, 10, 26, 22, tzinfo=UTC)
    epochs = Epochs(start, timedelta(hours=1), 30, "Europe/Rome")
    hours = epochs.hours_of_week.tolist()
    assert hours[:5] == [144, 145, 146, 146, 147]
    assert hours[25:27] == [0, 1]
    halves = Epochs(start, timedelta(minutes=30), 4, "Europe/Rome")
    assert halves.hours_of_week.tolist() == [144, 144, 145, 145]


@pytest.mark.parametrize("merged", [None, MERGED])
@pytest.mark.parametrize("joined", [1, 5, 72])
def test_spread_counts_lie_evenly_over_the_cells_they_came_from(traces, merged, joined):
    layout = Layout(merged, joined)
    coarse = layout(traces).counts()
    spread = layout.spread(coarse, traces.epochs)
    assert spread.shape == traces.counts().shape
    assert spread.sum() == pytest.approx(coarse.sum())
    region = np.arange(7) if merged is None else np.array(merged)
    for (row, epoch), value in np.ndenumerate(coarse):
        own = spread[np.ix_(region == row, np.arange(72) // joined == epoch)]
        assert np.allclose(own, value / own.size)
