"""How well an attacker knows its targets, as specs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whosthere import specs
from whosthere.adversary.knowledge import (
    KNOWLEDGE,
    All,
    Knowledge,
    Regions,
    Share,
)
from whosthere.errors import SpecError

FAMILIAR = st.one_of(
    st.just(All()),
    st.floats(0, 1, exclude_min=True).map(Share),
    st.builds(Regions, st.none() | st.integers(1, 10**6), st.sampled_from(["greedy", "random"])),
)


@given(FAMILIAR, FAMILIAR)
def test_what_is_written_reads_back(one, other):
    assert Knowledge.parse(str(one)) == one
    assert Knowledge.parse(str(one).upper().replace("(", " ( ")) == one
    assert Knowledge.parse(one) is one
    assert (specs.content(one) == specs.content(other)) == (one == other)


def test_canonical_forms():
    for written, canonical in {
        "ALL": "all",
        "all()": "all",
        "share(share=0.10)": "share(0.1)",
        "regions()": "regions",
        "regions(guess=greedy)": "regions",
        "regions(guess=random,top=2)": "regions(top=2, guess=random)",
    }.items():
        assert str(Knowledge.parse(written)) == canonical
    for kind in KNOWLEDGE.kinds.values():
        assert str(Knowledge.parse(kind.example)) == kind.example
        assert kind.summary


def test_a_share_of_one_is_one_thing_however_it_is_written():
    """An int and a float that are equal must share their random numbers."""
    assert specs.content(Share(1)) == specs.content(Knowledge.parse("share(1.0)"))


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ("", ["expected a knowledge, found the end", "Known: all, share, regions"]),
        ("al", ["no knowledge 'al'", "Did you mean 'all'?", "character 1"]),
        ("shares(0.1)", ["Did you mean 'share'?"]),
        ("region(top=2)", ["Did you mean 'regions'?"]),
        ("share", ["share is missing", "share(0.1)"]),
        ("share(0)", ["share of 0", "above 0 and at most 1"]),
        ("share(1.1)", ["share of 1.1", "at most 1"]),
        ("share(nan)", ["share of nan"]),
        ("share(half)", ["share must be a number, not 'half'", "character 7"]),
        ("share(0.1, 0.2)", ["'share' is given twice", "character 12"]),
        ("regions(2)", ["'2' stands without a key", "regions(top=2)"]),
        ("regions(tp=2)", ["no parameter 'tp'", "Did you mean 'top'?", "character 9"]),
        ("regions(top=0)", ["0 regions are nothing to know"]),
        ("regions(top=two)", ["top must be a whole number"]),
        ("regions(guess=gredy)", ["no guess 'gredy'", "Did you mean 'greedy'?", "character 9"]),
        ("all(1)", ["'1' stands without a key"]),
        ("all | share(0.1)", ["expected '(' or the end, found '|'"]),
    ],
)
def test_bad_specs_say_what_is_wrong_and_where(text, fragments):
    with pytest.raises(SpecError) as caught:
        Knowledge.parse(text)
    for fragment in [*fragments, "character"]:
        assert fragment in str(caught.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Share(0),
        lambda: Share(-0.1),
        lambda: Share(float("nan")),
        lambda: Regions(top=0),
        lambda: Regions(guess="wild"),
        lambda: Knowledge.parse(0.1),
    ],
)
def test_bad_values_are_refused_in_python_too(make):
    with pytest.raises(SpecError):
        make()
