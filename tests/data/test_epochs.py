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
from whosthere.errors import InputError

HOUR = timedelta(hours=1)


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
    length=st.sampled_from([timedelta(minutes=15), HOUR, timedelta(days=1)]),
    name=st.sampled_from(["UTC", "Europe/Rome", "America/Bogota", "Asia/Kathmandu"]),
)
def test_covering_epochs_hold_both_ends(first, span, length, name):
    first = first.replace(tzinfo=UTC)
    epochs = Epochs.covering(first, first + span, length=length, timezone=name)
    ends = epochs.index_of(np.array([to_micros(first), to_micros(first + span)]))
    assert ends[0] == 0
    assert ends[1] == epochs.n - 1


def test_moments_outside_have_no_epoch(epochs):
    start, end = to_micros(epochs.start), to_micros(epochs.end)
    found = epochs.index_of(np.array([start - 1, start, end - 1, end]))
    assert found.tolist() == [-1, 0, 71, -1]


def test_json_round_trip(epochs):
    assert Epochs.from_json(epochs.to_json()) == epochs


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
