"""The floor of 5 people under true numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whosthere.data.floor import LEAST_PEOPLE, class_ends, hidden_places, in_fives, rounded_up

numbers = st.lists(st.integers(0, 3000), min_size=1, max_size=80).map(np.array)


class TestClasses:
    @given(numbers)
    def test_hold_enough_people_each(self, values):
        ends = class_ends(values)
        assert (np.diff(ends) > 0).all()
        shown = np.array([rounded_up(value, ends) for value in values])
        assert (shown >= values).all()
        times = np.unique_counts(shown).counts
        assert times.min() >= min(LEAST_PEOPLE, values.size)

    @given(numbers)
    def test_ends_are_round_or_shared(self, values):
        for end in class_ends(values).tolist():
            is_round = len(str(end).rstrip("0")) <= 1 or str(end).rstrip("0") in {"12", "15", "25"}
            assert is_round or np.count_nonzero(values == end) >= LEAST_PEOPLE

    @given(numbers)
    def test_the_last_is_not_far_above_the_largest(self, values):
        most = values.max()
        assert most <= class_ends(values)[-1] <= max(most * 4 / 3, 1)

    def test_what_many_share_is_exact(self):
        assert class_ends(np.array([1] * 9 + [7] * 5)).tolist() == [1, 7]
        assert class_ends(np.array([1] * 9 + [7] * 4)).tolist() == [8]
        assert class_ends(np.array([1] * 9 + [2] * 6 + [137])).tolist() == [1, 150]


class TestHiddenPlaces:
    @pytest.mark.parametrize(
        ("people", "hidden"),
        [
            ((9, 7, 5), []),
            ((9, 7, 0), [2]),
            ((9, 7, 4), [1, 2]),
            ((9, 3, 4), [1, 2]),
            ((9, 2, 1, 1), [0, 1, 2, 3]),
        ],
    )
    def test_what_is_hidden_is_about_enough_people(self, people, hidden):
        place = np.repeat(np.arange(len(people)), people)
        found = hidden_places(place, np.arange(place.size), len(people))
        assert np.flatnonzero(found).tolist() == hidden

    def test_the_same_few_people_in_many_places(self):
        place = np.append(np.repeat([1, 2, 3], 2), np.zeros(6, np.int64))
        person = np.append([0, 1] * 3, np.arange(2, 8))
        assert hidden_places(place, person, 4).all()


@pytest.mark.parametrize(("people", "said"), [(0, 0), (1, 5), (5, 5), (6, 10), (998, 1000)])
def test_in_fives(people, said):
    assert in_fives(people) == said
