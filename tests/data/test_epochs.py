"""Time slots: local days, summer time, and finding the epoch of a moment."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whosthere.data.epochs import (
    Epochs,
    format_length,
    from_micros,
    parse_length,
    to_micros,
)
from whosthere.errors import FileError, InputError

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
# The clocks of the last three change at midnight, which comes twice in Havana.
ZONES = ["UTC", "Europe/Rome", "Australia/Lord_Howe", "Africa/Cairo", "America/Santiago",
         "America/Havana"]  # fmt: skip


@given(st.datetimes(datetime(1980, 1, 1), datetime(2090, 1, 1)))
def test_micros_are_exact_both_ways(naive):
    moment = naive.replace(tzinfo=UTC)
    assert from_micros(to_micros(moment)) == moment


@pytest.mark.parametrize("text", ["15min", "1h", "36h", "1d", "1w", "90s"])
def test_lengths_round_trip(text):
    length = parse_length(text)
    assert parse_length(format_length(length)) == length


@pytest.mark.parametrize("text", ["", "h", "0h", "1.5h", "1 hour", "-1h", "1y", "9" * 20 + "h"])
def test_bad_lengths_are_refused(text):
    with pytest.raises(InputError, match="length of time"):
        parse_length(text)


def test_days_follow_the_local_calendar():
    start = datetime(2013, 11, 1, tzinfo=ZoneInfo("Europe/Rome"))
    epochs = Epochs.between(start, start + timedelta(days=7), length=HOUR, timezone="Europe/Rome")
    assert epochs.n == 168
    assert epochs.days.tolist() == [h // 24 for h in range(168)]
    assert epochs.n_days == 7


def test_the_day_of_a_clock_change_has_25_hours():
    start = datetime(2013, 10, 26, tzinfo=ZoneInfo("Europe/Rome"))
    end = datetime(2013, 10, 29, tzinfo=ZoneInfo("Europe/Rome"))
    epochs = Epochs.between(start, end, length=HOUR, timezone="Europe/Rome")
    assert np.bincount(epochs.days).tolist() == [24, 25, 24]


@given(
    first=st.datetimes(datetime(2000, 1, 1), datetime(2030, 1, 1)),
    span=st.timedeltas(timedelta(0), timedelta(days=40)),
    length=st.sampled_from([timedelta(minutes=15), HOUR, DAY, 3 * DAY]),
    name=st.sampled_from([*ZONES, "Asia/Kathmandu"]),
)
def test_covering_epochs_hold_both_ends(first, span, length, name):
    first = first.replace(tzinfo=UTC)
    epochs = Epochs.covering(first, first + span, length=length, timezone=name)
    ends = epochs.index_of(np.array([to_micros(first), to_micros(first + span)]))
    assert ends[0] == 0
    assert ends[1] == epochs.n - 1


def test_epochs_end_where_the_clock_shows_an_hour_again():
    rome = ZoneInfo("Europe/Rome")
    start, end = (datetime(2024, 10, 27, hour, tzinfo=rome, fold=1) for hour in (0, 2))
    assert Epochs.between(start, end, length=HOUR, timezone="Europe/Rome").n == 3


def test_moments_outside_have_no_epoch(epochs):
    start, end = to_micros(epochs.start), to_micros(epochs.end)
    found = epochs.index_of(np.array([start - 1, start, end - 1, end]))
    assert found.tolist() == [-1, 0, 71, -1]


@given(
    first=st.datetimes(datetime(2023, 1, 1), datetime(2024, 12, 31)),
    n=st.integers(1, 500),
    k=st.integers(1, 9),
    name=st.sampled_from(ZONES),
)
def test_days_begin_at_local_midnight(first, n, k, name):
    there = ZoneInfo(name)
    epochs = Epochs(first.replace(tzinfo=there), k * DAY, n, name)
    days = [first.date() + i * k * DAY for i in range(n + 1)]
    assert [start.date() for start in epochs.local_starts] == days[:-1]
    bounds = np.array([to_micros(epochs.start_of(i)) for i in range(n + 1)])
    for micros, day in zip(bounds.tolist(), days, strict=True):
        before = from_micros(micros - 1).astimezone(there)
        assert before.date() == day - DAY
    assert epochs.index_of(bounds).tolist() == [*range(n), -1]
    assert epochs.index_of(bounds - 1).tolist() == [-1, *range(n)]
    part = epochs.part(n // 3, n - n // 3)
    assert np.array_equal(part.starts, epochs.starts[n // 3 :])


@pytest.mark.parametrize("name", ZONES)
@pytest.mark.parametrize("minutes", [30, 60])
def test_joined_to_days_short_epochs_are_those_of_their_days(name, minutes):
    start = datetime(2024, 1, 1, 5, tzinfo=ZoneInfo(name))
    short = Epochs.between(start, start + 400 * DAY, length=timedelta(minutes=minutes),
                           timezone=name)  # fmt: skip
    if name == "Australia/Lord_Howe" and minutes == 60:  # whose clocks move by half an hour
        with pytest.raises(InputError, match="whole epochs of 1h: the epoch from 2024-04-"):
            short.slots(DAY)
        return
    assert np.array_equal(short.slots(DAY), short.days)
    joined = short.joined(24 * 60 // minutes)
    assert joined == Epochs.covering(start, from_micros(to_micros(short.end) - 1), length=DAY,
                                     timezone=name)  # fmt: skip
    assert short.n_whole(DAY) == joined.n - 1


@pytest.mark.parametrize("length", [HOUR, DAY, 36 * HOUR])
def test_json_round_trip(length):
    epochs = Epochs(datetime(2024, 3, 30, tzinfo=UTC), length, 5, "Europe/Rome")
    assert Epochs.from_json(epochs.to_json()) == epochs


@pytest.mark.parametrize(
    ("start", "timezone", "same"),
    [
        ("2024-03-29T23:00:00+00:00", "Europe/Rome", False),
        ("2024-04-29T22:00:00+00:00", "Europe/Rome", True),
        ("2024-04-30T03:00:00+00:00", "Europe/Rome", False),
        ("2024-03-29T00:00:00+00:00", "Africa/Accra", True),
    ],
)
def test_days_of_earlier_versions_are_read_where_they_are_the_same(start, timezone, same):
    described = {"start": start, "length": "1d", "n": 4, "timezone": timezone}
    if same:
        epochs = Epochs.from_json(described)
        assert epochs.to_json() == described | {"end": epochs.end.isoformat()}
        assert (np.diff(epochs.starts) == np.timedelta64(1, "D")).all()
        return
    with pytest.raises(FileError, match=r"an earlier version.* made it. Make it again"):
        Epochs.from_json(described)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Epochs(datetime(2020, 1, 1), HOUR, 1), "no time zone"),
        (lambda: Epochs(datetime(2020, 1, 1, tzinfo=UTC), HOUR, 0), "at least one epoch"),
        (lambda: Epochs(datetime(2020, 1, 1, tzinfo=UTC), HOUR, 1, "Rome"), "time zone"),
        (lambda: Epochs(datetime(2020, 1, 1, tzinfo=UTC), -HOUR, 1), "whole number of seconds"),
        (
            lambda: Epochs.between(
                datetime(2020, 1, 2, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC), length=HOUR
            ),
            "ends .* before it starts",
        ),
    ],
)
def test_bad_epochs_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("day", "name"), [((1, 1, 1), "America/Lima"), ((9999, 12, 31, 23), "UTC")]
)
def test_epochs_beyond_the_calendar_are_refused(day, name):
    moment = datetime(*day, tzinfo=UTC)
    with pytest.raises(InputError, match="not within the years 1 to 9999"):
        Epochs.covering(moment, moment, length=HOUR, timezone=name)


def test_arrays_are_values(epochs):
    for array in (epochs.days, epochs.weeks):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5
    with pytest.raises(ValueError, match="read-only"):
        epochs.starts[0] = epochs.starts[1]


@given(st.data())
def test_a_part_is_a_slice(data):
    # Summer time ends in Rome in the night to 27 October.
    whole = Epochs(datetime(2013, 10, 25, 15, tzinfo=UTC), HOUR, 90, "Europe/Rome")
    first = data.draw(st.integers(0, 89))
    n = data.draw(st.integers(1, 90 - first))
    part = whole.part(first, n)
    assert np.array_equal(part.starts, whole.starts[first : first + n])
    days = whole.days[first : first + n]
    assert np.array_equal(part.days, days - days[0])


@pytest.mark.parametrize(("first", "n"), [(-1, 2), (0, 0), (0, 73), (72, 1), (70, 3)])
def test_a_part_outside_is_refused(epochs, first, n):
    with pytest.raises(InputError, match="not among these 72"):
        epochs.part(first, n)


def test_epochs_show_in_one_line(epochs):
    assert repr(epochs) == "<Epochs: 72 epochs of 1h from 2013-11-01 00:00 Europe/Rome>"
    assert "Europe/Rome" in epochs._repr_html_()
