"""The chance of a wrong verdict, over all looks at an audit."""

from itertools import accumulate

import numpy as np
import pytest

from whosthere.inference.looks import ERROR, FIRST_ERRORS, FIRST_LOOK, Errors, Look
from whosthere.inference.mean_bound import upper_bound

LOOKS = (55, 75, 110, 160, 230, 330, 470, 670)


def test_half_for_the_first_and_never_more_than_there_is():
    spent = list(accumulate(Look(number).spends for number in range(1, 60)))
    assert spent[0] == ERROR / 2
    assert spent == sorted(spent)
    assert all(total <= ERROR for total in spent)
    # Nothing is wasted either.
    assert spent[-1] == pytest.approx(ERROR)


def test_attacks_and_limits_share_the_error_of_a_rejection():
    assert Errors.at(FIRST_LOOK) == FIRST_ERRORS == Errors(ERROR / 2, ERROR / 2)
    shared = Errors.at(Look(3), n_judged=12)
    assert shared.high == ERROR / 8
    assert shared.low == pytest.approx(ERROR / 8 / 12)


def test_confirmations_share_the_error_of_a_look():
    look = Look(2, shared=9)
    assert 9 * look.error == pytest.approx(look.spends)
    assert look.spends == Look(2).error
    assert look.next == Look(3, shared=9)


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
    assert accepted_at_some_look(lambda number: Look(number).error, rng) <= 16


def test_without_spending_this_would_be_seen(rng):
    assert accepted_at_some_look(lambda _: ERROR, rng) > 16
