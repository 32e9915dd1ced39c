"""Schemes: one table without ceremony, or several of the same people."""

from datetime import timedelta

import numpy as np
import pytest

from whosthere.data.traces import Group
from whosthere.errors import InputError
from whosthere.game.rounds import Population
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.publish import Publication, publish_table
from whosthere.privacy.scheme import ORDINARY, Layout, Scheme, TableScheme

RAW, SUPPRESSED = Mechanism.parse("raw"), Mechanism.parse("suppress(k=1)")
DAYS = Layout(epochs=24)


def test_one_table_is_named_by_its_mechanism():
    scheme = Scheme.of(SUPPRESSED, 12)
    assert scheme.tables == (TableScheme(SUPPRESSED, ORDINARY),)
    assert (str(scheme), scheme.how) == ("suppress(k=1), m=12", "suppress(k=1)")
    assert scheme.key == (SUPPRESSED.content, 12)


def test_several_tables_are_all_named():
    scheme = Scheme((TableScheme(RAW), TableScheme(SUPPRESSED, DAYS)), 12)
    assert str(scheme) == "finest: raw + 24 epochs joined: suppress(k=1), m=12"
    assert scheme.mechanisms == (RAW, SUPPRESSED)


def test_schemes_that_differ_in_their_cells_share_random_numbers_and_no_name():
    hours, days = Scheme.of(RAW, 12), Scheme((TableScheme(RAW, DAYS),), 12)
    assert hours.key == days.key
    assert str(hours) != str(days)


def test_each_layout_is_made_once(traces):
    people = Population.of(traces)
    assert people.under(ORDINARY) is people
    assert people.under(DAYS) is people.under(Layout(epochs=24))


def test_a_publication_of_several_tables_has_a_release_of_each(traces, rng):
    rows = np.arange(10)
    tables = tuple(
        publish_table(Group(one, rows), RAW, bounding=rng, noise=rng)
        for one in (traces, DAYS(traces))
    )
    made = Publication(tables)
    hours, days = made.releases
    assert hours.counts.shape == traces.shape
    assert days.counts.shape == DAYS(traces).shape
    for ask in ("only", "release", "truth", "share_dropped"):
        with pytest.raises(InputError, match="2 tables"):
            getattr(made, ask)
    assert Publication(tables[:1]).release is hours


def test_a_table_of_visits_adds_up_and_one_of_people_does_not(traces):
    days, people = Layout(epochs=24, counts="visits")(traces), DAYS(traces)
    by_day = np.add.reduceat(traces.counts(), np.arange(0, traces.epochs.n, 24), axis=1)
    assert (days.counts() == by_day).all()
    assert (days.cells == people.cells).all()
    assert (people.counts() <= by_day).all()
    assert days.most_added == 24 >= days.weights.max()


def test_what_is_published_again_covers_the_time_so_far(traces):
    two_days = Layout(times=2, every=timedelta(days=1))
    assert (two_days(traces).counts() == traces.counts()[:, :48]).all()
    assert str(two_days) == "2 days"
    assert str(Layout(times=4)) == "4 weeks"
    with pytest.raises(InputError, match="cover 0 weeks, less than the 1,000 weeks asked for"):
        Layout(times=1000)(traces)


def test_several_tables_over_some_time_name_it_once():
    tables = [Layout(times=4), Layout(epochs=24, times=4)]
    alike = Scheme(tuple(TableScheme(RAW, one) for one in tables), 12)
    assert alike.how == "raw over finest + 24 epochs joined over 4 weeks"
    other = Scheme((TableScheme(RAW, tables[0]), TableScheme(SUPPRESSED, tables[1])), 12)
    assert other.how == "finest: raw + 24 epochs joined: suppress(k=1) over 4 weeks"
    assert other.in_words.endswith(", 4 weeks")
