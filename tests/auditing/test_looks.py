"""The chance of a wrong verdict, over all looks at an audit."""

from itertools import accumulate

import numpy as np
import pytest

from whosthere.auditing.looks import ERROR, FIRST_LOOK, Errors, error_of_look
from whosthere.auditing.mean_bound import upper_bound
from whosthere.errors import InputError

LOOKS = (55, 75, 110, 160, 230, 330, 470, 670)


def test_half_for_the_first_and_never_more_than_there_is():
    spent = list(accumulate(map(error_of_look, range(1, 60))))
    assert spent[0] == ERROR / 2
    assert spent == sorted(spent)
    assert all(total <= ERROR for total in spent)
    # Nothing is wasted either.
    assert spent[-1] == pytest.approx(ERROR)


def test_attacks_and_limits_share_the_error_of_a_rejection():
    assert Errors.at(1) == FIRST_LOOK == Errors(ERROR / 2, ERROR / 2)
    shared = Errors.at(3, n_judged=12)
    assert shared.high == error_of_look(3)
    assert shared.low == pytest.approx(error_of_look(3) / 12)


def test_refusals():
    for look in (0, -1):
        with pytest.raises(InputError, match="counted from 1"):
            error_of_look(look)
    with pytest.raises(InputError, match="at least one limit"):
        Errors.at(1, n_judged=0)


def accepted_at_some_look(error, rng):
    """Return how many of 300 audits accept a mean AUC just above 0.6 at one look or another."""
    accepted = 0
    # One person in five is always found, and nobody else.
    for people in np.where(rng.random((300, LOOKS[-1])) < 0.2002, 1.0, 0.5):
        seen = ((look, people[:size]) for look, size in enumerate(LOOKS, 1))
        accepted += any(upper_bound(aucs, 1.0, error(look)) <= 0.6 for look, aucs in seen)
    return accepted


def test_extending_until_it_accepts_is_wrong_no_more_often(rng):
    """In at most 2.5 %: more than 16 of 300 would be so by chance for one seed in 500."""
    assert accepted_at_some_look(error_of_look, rng) <= 16


def test_without_spending_this_would_be_seen(rng):
    assert accepted_at_some_look(lambda _: ERROR, rng) > 16
