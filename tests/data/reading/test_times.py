"""Every usual form of a timestamp gives the same exact moment."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whosthere.data.epochs import to_micros
from whosthere.data.reading.times import (
    CLOCK_CHANGES,
    SKIPPED,
    TWICE,
    TimeReader,
    time_form,
    to_utc_micros,
)
from whosthere.errors import InputError, RecordsError

MOMENT = datetime(2021, 6, 15, 13, 45, 10, tzinfo=UTC)
MICROS = to_micros(MOMENT)
SECONDS = MICROS // 1_000_000


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([SECONDS]),
        pl.Series([SECONDS], dtype=pl.Int32),
        pl.Series([float(SECONDS)]),
        pl.Series([SECONDS * 1_000]),
        pl.Series([MICROS]),
        pl.Series([MICROS * 1_000]),
        pl.Series([str(SECONDS)]),
        pl.Series([str(SECONDS * 1_000)]),
        pl.Series(["2021-06-15T13:45:10Z"]),
        pl.Series(["2021-06-15 13:45:10+00:00"]),
        pl.Series(["2021-06-15T15:45:10+0200"]),
        pl.Series(["2021-06-15T08:45:10.000000-05:00"]),
        pl.Series([" 2021-06-15T13:45:10Z "]),
        pl.Series([MOMENT]),
        pl.Series([MOMENT]).dt.convert_time_zone("America/Bogota"),
        pl.Series([MOMENT]).dt.cast_time_unit("ms"),
    ],
    ids=lambda c: f"{c.dtype} {c[0]}",
)
def test_moments_that_know_their_zone(column):
    assert to_utc_micros(column, None).to_list() == [MICROS]


@pytest.mark.parametrize(
    "column",
    [
        pl.Series(["2021-06-15T08:45:10"]),
        pl.Series(["2021-06-15 08:45:10"]),
        pl.Series([datetime(2021, 6, 15, 8, 45, 10)]),
    ],
    ids=lambda c: str(c.dtype),
)
def test_local_times_need_a_zone(column):
    assert to_utc_micros(column, "America/Bogota").to_list() == [MICROS]
    with pytest.raises(RecordsError, match=r"no time zone.*such as Europe/Rome"):
        to_utc_micros(column, None)


def test_dates_and_minutes():
    column = pl.Series(["2021-06-15", "2021-06-15 08:45", "2021-06-15T08:45:10"])
    day = to_micros(datetime(2021, 6, 15, tzinfo=ZoneInfo("America/Bogota")))
    found = to_utc_micros(column, "America/Bogota").to_list()
    assert found == [day, MICROS - 10_000_000, MICROS]
    assert to_utc_micros(column.head(1).str.to_date(), "America/Bogota").to_list() == [day]


@given(
    st.lists(
        st.datetimes(datetime(1975, 1, 1), datetime(2099, 1, 1)),
        min_size=1,
        max_size=5,
    ),
    st.integers(-14 * 4, 14 * 4),
)
def test_iso_text_of_any_offset(moments, quarters):
    offset = timezone(timedelta(minutes=15 * quarters))
    moments = [m.replace(tzinfo=offset) for m in moments]
    column = pl.Series([m.isoformat() for m in moments])
    assert to_utc_micros(column, None).to_list() == [to_micros(m) for m in moments]


def test_what_is_not_a_time_becomes_null():
    column = pl.Series(["2021-06-15T13:45:10Z", "yesterday", None, "2021-13-45T00:00:00Z"])
    assert to_utc_micros(column, None).to_list() == [MICROS, None, None, None]
    assert to_utc_micros(pl.Series([float("nan"), float("inf"), 1.5e9]), None).to_list() == [
        None,
        None,
        1_500_000_000_000_000,
    ]


def test_a_skipped_hour_becomes_null():
    column = pl.Series(["2021-03-28 02:30:00", "2021-03-28 03:30:00"])
    assert to_utc_micros(column, "Europe/Rome").is_null().to_list() == [True, False]


def test_mixed_zones_are_refused():
    column = pl.Series(["2021-06-15T13:45:10Z", "2021-06-15T13:45:10"])
    with pytest.raises(RecordsError, match="with and without a time zone"):
        to_utc_micros(column, "Europe/Rome")


def test_other_types_are_refused():
    with pytest.raises(RecordsError, match="Boolean"):
        to_utc_micros(pl.Series([True]), None)


@given(
    st.lists(st.datetimes(datetime(1995, 1, 1), datetime(2095, 1, 1)), min_size=1, max_size=5),
    st.sampled_from(
        ["%d/%m/%Y %H:%M:%S", "%Y%m%d%H%M%S", "%H:%M:%S %m-%d-%Y", "%d %b %Y %H:%M:%S"]
    ),
)
def test_patterns_read_what_they_write(moments, pattern):
    moments = [moment.replace(microsecond=0) for moment in moments]
    column = pl.Series([moment.strftime(pattern) for moment in moments])
    read = TimeReader(timezone="UTC", form=time_form(pattern)).read(column).micros
    assert read.to_list() == [to_micros(moment.replace(tzinfo=UTC)) for moment in moments]


@given(st.datetimes(datetime(1995, 1, 1), datetime(2035, 1, 1)), st.sampled_from(CLOCK_CHANGES))
def test_a_clock_change_touches_only_its_own_hours(moment, how):
    """Python's own rules for local times agree: a time exists, twice, or not at all."""
    moment = moment.replace(microsecond=0)
    zone = ZoneInfo("Europe/Rome")
    first, second = (moment.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    utc = [to_micros(one.astimezone(UTC)) for one in (first, second)]
    moments = TimeReader(timezone="Europe/Rome", clock_change=how).read(pl.Series([moment]))
    if utc[0] == utc[1]:
        assert moments.micros.to_list() == [utc[0]]
        assert not moments.problems
    elif how in {"earlier", "later"}:
        assert moments.micros[0] == (min(utc) if how == "earlier" else max(utc))
    else:
        assert moments.micros[0] is None
        assert set(moments.problems) == {TWICE if utc[0] < utc[1] else SKIPPED}


@pytest.mark.parametrize("text", ["", "often", "%", "%Q", "%H:%M", "%Y"])
def test_what_is_no_form_is_refused(text):
    with pytest.raises(InputError):
        time_form(text)
