"""How well an attacker knows its targets, as specs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whosthere import specs
from whosthere.adversary.knowledge import (
    KNOWLEDGE,
    All,
    Knowledge,
    KnownRegions,
    KnownVisits,
    Regions,
    Share,
)
from whosthere.errors import SpecError

N_EPOCHS = 24
TRACES = st.lists(st.integers(0, 500), min_size=1, unique=True).map(sorted)


def _of(spec, trace, seed=0):
    rng = np.random.default_rng(seed)
    return Knowledge.parse(spec).of(np.array(trace, np.int32), N_EPOCHS, rng)


@given(TRACES, st.integers(0, 100), st.floats(0.001, 1), st.floats(0.001, 1))
def test_a_smaller_share_is_a_part_of_a_larger_one(trace, seed, one, other):
    less, more = sorted((one, other))
    known = [set(_of(Share(share), trace, seed).certain.tolist()) for share in (less, more)]
    assert known[0] <= known[1] <= set(trace)


def test_a_tenth_is_a_part_of_a_half():
    trace = list(range(100, 200))
    tenth, half = (set(_of(spec, trace).certain.tolist()) for spec in ("share(0.1)", "share(0.5)"))
    assert (len(tenth), len(half)) == (10, 50)
    assert tenth < half


@given(TRACES)
def test_all_is_everything(trace):
    assert _of("all", trace).certain.tolist() == trace
    assert _of("share(1)", trace).certain.tolist() == trace


@given(TRACES, st.integers(1, 5))
def test_regions_are_the_most_visited_ones(trace, top):
    known = _of(f"regions(top={top})", trace).places(N_EPOCHS)
    visits = np.bincount(np.array(trace) // N_EPOCHS)
    assert len(known) == min(top, np.count_nonzero(visits))
    others = np.delete(visits, known)
    assert min(visits[list(known)]) >= max(others, default=0)
    assert list(visits[list(known)]) == sorted(visits[list(known)], reverse=True)


def test_two_regions():
    trace = [3 * 24 + 1, 3 * 24 + 2, 3 * 24 + 9, 5 * 24 + 2, 5 * 24 + 3, 7 * 24]
    known = _of("regions(top=2, guess=random)", trace)
    assert isinstance(known, KnownRegions)
    assert (known.regions, known.guess) == ((3, 5), "random")
    assert _of("regions", trace).places(N_EPOCHS) == (3, 5, 7)
    assert isinstance(_of("share(0.2)", trace), KnownVisits)


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
