"""Reading mechanisms from text and writing them back."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from whosthere.errors import SpecError
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.noise import DiscreteLaplace, Gaussian, Laplace
from whosthere.privacy.rounding import RandomRound, Round, Suppress
from whosthere.privacy.units import Event, User, UserDay

whole = st.integers(1, 5000)
units = st.one_of(st.just(Event()), whole.map(UserDay), whole.map(User))
epsilons = st.floats(1e-3, 1e3) | st.integers(1, 100)
maps = st.one_of(st.integers(0, 2**30).map(Suppress), st.integers(1, 2**30).map(Round))
chances = st.one_of(
    st.integers(1, 2**30).map(RandomRound),
    st.builds(Laplace, epsilons, units),
    st.builds(DiscreteLaplace, epsilons, units),
    st.builds(Gaussian, st.floats(1e-2, 100), st.floats(1e-12, 0.99), units),
)
some = [st.lists(maps, max_size=2), st.lists(chances, max_size=1), st.lists(maps, max_size=2)]
mechanisms = st.tuples(*some).map(
    lambda parts: Mechanism([step for part in parts for step in part])
)


@pytest.mark.parametrize(
    ("text", "expected", "printed"),
    [
        ("raw", (), "raw"),
        ("suppress(k=1)", (Suppress(1),), None),
        ("round(to=5)", (Round(5),), None),
        ("random-round(to=3)", (RandomRound(3),), None),
        ("laplace(eps=1, unit=event)", (Laplace(1),), None),
        ("laplace(eps=1)", (Laplace(1),), "laplace(eps=1, unit=event)"),
        ("laplace(eps=1, unit=user-day, max_visits=10)", (Laplace(1, UserDay(10)),), None),
        ("laplace(max_visits=50,unit=user,eps=1.50)", (Laplace(1.5, User(50)),), None),
        ("discrete-laplace(eps=0.1, unit=event)", (DiscreteLaplace(0.1),), None),
        ("gaussian(eps=1, delta=1e-6, unit=event)", (Gaussian(1, 1e-6, Event()),), None),
        ("gaussian(eps=2)", (Gaussian(2),), "gaussian(eps=2, delta=1e-6, unit=event)"),
        (" LAPLACE ( EPS = 1 )|Suppress(K=1) ", (Laplace(1), Suppress(1)), None),
        ("raw | suppress(k=2) | raw()", (Suppress(2),), "suppress(k=2)"),
        ("flowkit", (Suppress(15),), "suppress(k=15)"),
        ("MDS", (Suppress(9, "mark"),), "suppress(k=9, shown=mark)"),
        ("stats-nz", (RandomRound(3),), "random-round(to=3)"),
        ("opensafely", (Suppress(7), Round(5)), "suppress(k=7) | round(to=5)"),
        (
            "laplace(eps=1)|opensafely",
            (Laplace(1), Suppress(7), Round(5)),
            "laplace(eps=1, unit=event) | suppress(k=7) | round(to=5)",
        ),
    ],
)
def test_specs(text, expected, printed):
    mechanism = Mechanism.parse(text)
    assert mechanism.steps == expected
    if printed is not None:
        assert str(mechanism) == printed
    assert Mechanism.parse(str(mechanism)) == mechanism


@given(mechanisms)
def test_what_is_printed_reads_back(mechanism):
    text = str(mechanism)
    assert Mechanism.parse(text) == mechanism
    assert Mechanism.parse(text.upper().replace(" ", "  ")) == mechanism
    assert str(Mechanism.parse(text)) == text


words = st.sampled_from(["laplace", "gaussian", "suppress", "raw", "flowkit", "user", "event"])
keys = st.sampled_from(["eps", "delta", "k", "unit", "max_visits"])
marks = st.sampled_from(["(", ")", "|", ",", "=", " "])
numbers = st.sampled_from(["1", "nan", "1e999", "-3", "²", "9" * 5000])


@given(st.text() | st.lists(words | keys | marks | numbers, max_size=30).map("".join))
@example("laplace(eps=1" + "0" * 400 + ")")
@example("suppress(k=" + "9" * 5000 + ")")
@example("İ(ﬁ=٣)")
@example("\x00")
def test_any_text_is_read_or_refused(text):
    try:
        mechanism = Mechanism.parse(text)
    except SpecError as error:
        assert len(str(error)) < 2000  # noqa: PT017 - what matters is that nothing else is raised
    else:
        assert Mechanism.parse(str(mechanism)) == mechanism


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ("", ["expected a mechanism, found the end", "Known: raw"]),
        ("   ", ["expected a mechanism, found the end"]),
        ("|", ["expected a mechanism, found '|'"]),
        ("suppress(k=1) |", ["character 16", "expected a mechanism, found the end"]),
        ("suppress(k=1) round(to=5)", ["character 15", "expected '|', found 'round'"]),
        ("lapalce(eps=1)", ["no mechanism 'lapalce'", "Did you mean 'laplace'?", "character 1:"]),
        ("suppress(k=1) | rond(to=5)", ["Did you mean 'round'?", "character 17"]),
        ("laplace(esp=1)", ["no parameter 'esp'", "Did you mean 'eps'?", "character 9"]),
        ("laplace(eps=1, unit=userday, max_visits=3)", ["no unit 'userday'", "'user-day'?"]),
        ("laplace", ["eps is missing", "laplace(eps=1"]),
        ("laplace()", ["eps is missing"]),
        ("suppress", ["k is missing", "suppress(k=1)"]),
        ("laplace(eps=1, unit=user)", ["max_visits is missing", "unit=user, max_visits=10"]),
        ("laplace(eps=1, unit=user-day)", ["max_visits is missing"]),
        ("laplace(eps=1, max_visits=3)", ["unit=event takes no max_visits", "Leave it out"]),
        ("laplace(eps=1, eps=2)", ["'eps' is given twice"]),
        ("laplace(eps=1, delta=1e-6)", ["laplace has no parameter 'delta'"]),
        ("suppress(k=1, to=5)", ["suppress has no parameter 'to'"]),
        ("flowkit(k=1)", ["flowkit has no parameter 'k'", "Write flowkit"]),
        ("laplace(eps=one)", ["eps must be a number, not 'one'"]),
        ("suppress(k=1.5)", ["k must be a whole number, not '1.5'"]),
        ("suppress(k=-1)", ["k must lie between 0 and", "not -1"]),
        ("round(to=0)", ["to must lie between 1 and"]),
        ("laplace(eps=0)", ["eps must be positive and finite, not 0"]),
        ("laplace(eps=-1)", ["eps must be positive and finite, not -1"]),
        ("laplace(eps=nan)", ["eps must be positive and finite, not nan"]),
        ("laplace(eps=1e999)", ["eps must be positive and finite, not inf"]),
        ("gaussian(eps=1, delta=1)", ["delta must be between 0 and 1, not 1"]),
        ("gaussian(eps=1, delta=nan)", ["delta must be between 0 and 1"]),
        ("laplace(eps=1, unit=user, max_visits=0)", ["max_visits must lie between 1 and"]),
        ("laplace(eps=1e-20)", ["adds noise of scale 1e+20"]),
        ("laplace(eps=1", ["expected ',' or ')', found the end"]),
        ("laplace(eps=1))", ["expected '|', found ')'"]),
        ("laplace(eps=1,)", ["expected a parameter of laplace, found ')'"]),
        ("laplace(1)", ["'1' stands without a key"]),
        ("laplace(eps=)", ["expected a value for 'eps', found ')'"]),
        ("laplace(eps 1)", ["expected '=', found '1'"]),
        ("laplace eps=1", ["expected '(' or '|', found 'eps'"]),
        ("laplace((eps=1))", ["expected a parameter of laplace, found '('"]),
    ],
)
def test_bad_specs_say_what_is_wrong_and_where(text, fragments):
    with pytest.raises(SpecError) as caught:
        Mechanism.parse(text)
    message = str(caught.value)
    assert "character" in message
    for fragment in fragments:
        assert fragment in message


def test_long_texts_are_shortened():
    with pytest.raises(SpecError, match=r"\.\.\.") as caught:
        Mechanism.parse("raw |" * 5000)
    assert len(str(caught.value)) < 700
