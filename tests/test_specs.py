"""The one grammar of specs, on attacks: reading, writing, and saying what is wrong."""

from dataclasses import dataclass, field, fields
from typing import ClassVar

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from whosthere import specs
from whosthere.adversary.attacks import (
    ATTACKS,
    Attack,
    ContradictionRule,
    KnockKnock,
    KnockKnockPastGroups,
    LikelihoodRatio,
    LocMia,
    LogLikelihood,
    ZeroKnowledge,
)
from whosthere.adversary.classifiers import L1
from whosthere.adversary.models import CLASSIFIERS, Forest, L1Paper, Mlp, classifier
from whosthere.errors import SpecError

positive = st.floats(1e-300, 1e300)
whole = st.integers(1, 2**30)
even = st.integers(1, 2**29).map(lambda n: 2 * n)
classifiers = st.one_of(
    st.builds(L1, positive, positive, st.booleans()),
    st.builds(L1Paper, positive, positive, whole),
    st.builds(Forest, whole),
    st.builds(Mlp, whole),
)
activities = st.sampled_from(["exponential", "constant"]) | st.floats(0, 5).map(
    lambda sigma: f"lognormal:{sigma!r}"
)


def _some(**values):
    """Return strategies of keyword arguments, each of which may be left out."""
    return st.fixed_dictionaries({}, optional=values)


thresholds = {"threshold": st.sampled_from(["roc", "middle"])}
training = thresholds | {
    "sampling": st.sampled_from(["paired", "independent"]),
    "classifier": classifiers,
    "groups": even,
    "validation_groups": even,
}
zero = training | {
    "reference_size": st.none() | st.integers(2, 2**30),
    "marginals": st.sampled_from(["paper", "mechanism", "empirical"]),
    "activity": activities,
    "positions": st.booleans(),
    "rule": st.booleans(),
    "fit_on": st.sampled_from(["per-release", "per-target", "per-target-in"]),
}
PARAMETERS = {
    LikelihoodRatio: {"rates": st.sampled_from(["near", "low-rank", "rank-one"])},
    ContradictionRule: {},
    LogLikelihood: {"validation_groups": even},
    KnockKnockPastGroups: thresholds
    | {
        "classifier": classifiers,
        "held_out": st.floats(0, 1, exclude_min=True, exclude_max=True),
    },
    LocMia: training,
    KnockKnock: training | {"rule": st.booleans()},
    ZeroKnowledge: zero,
}
attacks = st.one_of(
    *(
        _some(**given).map(lambda chosen, kind=kind: kind(**chosen))
        for kind, given in PARAMETERS.items()
    )
)


def test_all_attacks_and_parameters_are_tried_here():
    assert {kind.make for kind in ATTACKS.kinds.values()} == set(PARAMETERS)
    for kind, given_ in PARAMETERS.items():
        assert {one.name for one in fields(kind)} == set(given_)
    assert set(CLASSIFIERS.kinds) == {"l1", "l1-paper", "forest", "mlp"}


@given(attacks)
def test_what_is_written_reads_back(chosen):
    text = str(chosen)
    assert Attack.parse(text) == chosen
    assert str(Attack.parse(text)) == text
    odd = specs.write(chosen).upper().replace(" ", "").replace("(", " ( ").replace(",", " ,\n")
    assert Attack.parse(odd) == chosen


@given(attacks)
def test_defaults_are_left_out(chosen):
    """Exactly the parameters that differ from their defaults are written, each once."""
    written = specs.Catalogue.of("attack", type(chosen)).read_chain(specs.write(chosen))[0]
    keys = [key for key, _ in written.arguments or ()]
    differ = [
        one.key
        for one in specs.parameters_of(type(chosen))
        if getattr(chosen, one.field) != one.default
    ]
    assert keys == differ
    assert written.arguments != ()


def test_canonical_forms():
    for written, canonical in {
        "Knock-Knock": "knock-knock",
        "knock-knock()": "knock-knock",
        "knock-knock(groups=400, sampling=paired)": "knock-knock",
        "knock-knock(classifier=l1)": "knock-knock",
        "knock-knock(classifier=l1(c=1))": "knock-knock",
        "knock-knock(classifier=forest(trees=50))": "knock-knock(classifier=forest(trees=50))",
        "knock-knock(classifier=forest(trees=200))": "knock-knock(classifier=forest)",
        "knock-knock(rule=no,groups=10)": "knock-knock(groups=10, rule=no)",
        "log-likelihood(validation=0100)": "log-likelihood",
        "knock-knock-past-groups(classifier=l1(tolerance=0.00001))": (
            "knock-knock-past-groups(classifier=l1(tolerance=1e-5))"
        ),
    }.items():
        assert str(Attack.parse(written)) == canonical


def test_the_example_of_the_grammar():
    text = (
        "zero-knowledge(reference=2500, sampling=independent, marginals=mechanism, "
        "activity=lognormal:1.2, classifier=l1-paper, groups=200, positions=no, rule=no, "
        "fit=per-target)"
    )
    assert Attack.parse(text) == ZeroKnowledge(
        reference_size=2500,
        sampling="independent",
        marginals="mechanism",
        activity="lognormal:1.2",
        classifier=L1Paper(),
        groups=200,
        positions=False,
        rule=False,
        fit_on="per-target",
    )


def test_nested_specs():
    chosen = Attack.parse("knock-knock(classifier=forest(trees=50), groups=20)")
    assert chosen == KnockKnock(classifier=Forest(50), groups=20)
    assert chosen == KnockKnock(classifier="forest(trees=50)", groups=20)
    assert str(chosen) == "knock-knock(classifier=forest(trees=50), groups=20)"


@given(classifiers)
def test_classifiers_read_back(chosen):
    assert classifier(str(chosen)) == chosen
    assert classifier(chosen) is chosen


def test_text_given_in_python_is_made_canonical():
    assert ZeroKnowledge(activity=" Lognormal:1.2 ") == ZeroKnowledge(activity="lognormal:1.2")
    assert str(ZeroKnowledge(activity="Exponential")) == "zero-knowledge"


# What is refused


words = st.sampled_from([*ATTACKS.kinds, *CLASSIFIERS.kinds, "paired", "no", "per-target"])
keys = st.sampled_from(["groups", "classifier", "activity", "fit", "rule", "c", "trees"])
marks = st.sampled_from(["(", ")", "|", ",", "=", " ", ":"])
numbers = st.sampled_from(["2", "nan", "inf", "1e999", "-3", "²", "9" * 4000, "9" * 5000, "1_0"])


@given(st.text() | st.lists(words | keys | marks | numbers, max_size=30).map("".join))
@example("knock-knock(classifier=l1(c=nan))")
@example("knock-knock(groups=" + "9" * 4000 + ")")
@example("knock-knock(classifier=forest(trees=" + "9" * 4000 + "))")
@example("zero-knowledge(activity=lognormal:" + "9" * 5000 + ")")
@example("knock-knock(classifier=" * 1000)
@example("0" * 3000 + "(")
@example("zero-knowledge(activity=" + "a" * 3000 + ")")
@example("zero-knowledge(activity=lognormal:" + "a" * 3000 + ")")
@example("knock-knock(" + "a" * 3000 + "=" + "b" * 3000 + ")")
@example("knock-knock(sampling=" + "b" * 3000 + ")")
@example("log-likelihood(validation=3)")
@example("İ(ﬁ=٣)")
@example("\x00")
def test_any_text_is_read_or_refused(text):
    try:
        chosen = Attack.parse(text)
    except SpecError as error:
        assert len(str(error)) < 2000  # noqa: PT017 - what matters is that nothing else is raised
    else:
        assert Attack.parse(str(chosen)) == chosen


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ("", ["expected an attack, found the end", "Known: likelihood-ratio", "character 1:"]),
        ("  ", ["expected an attack, found the end", "character 3"]),
        ("knock-knok", ["no attack 'knock-knok'", "Did you mean 'knock-knock'?", "character 1:"]),
        (" zero-knowlege", ["Did you mean 'zero-knowledge'?", "character 2"]),
        ("knock-knock(group=20)", ["no parameter 'group'", "Did you mean 'groups'?", "ter 13"]),
        (
            "knock-knock(groups=20, smapling=paired)",
            ["no parameter 'smapling'", "Did you mean 'sampling'?", "character 24"],
        ),
        (
            "knock-knock(groups=20, sampling=pared)",
            ["no sampling 'pared'", "Did you mean 'paired'?", "character 24"],
        ),
        (
            "knock-knock(classifier=forst)",
            ["no classifier 'forst'", "Did you mean 'forest'?", "character 13"],
        ),
        (
            "knock-knock(classifier=forest(tree=5))",
            ["forest has no parameter 'tree'", "Did you mean 'trees'?", "character 31"],
        ),
        ("zero-knowledge(marginals=mechanim)", ["Did you mean 'mechanism'?", "character 16"]),
        ("zero-knowledge(fit=per-targt)", ["Did you mean 'per-target'?", "character 16"]),
        ("zero-knowledge(activity=exponentail)", ["Did you mean 'exponential'?", "character 16"]),
        ("zero-knowledge(activity=lognormal)", ["lognormal:1.2"]),
        ("zero-knowledge(positions=maybe)", ["positions must be yes or no, not 'maybe'"]),
        ("contradiction-rule(groups=2)", ["has no parameter 'groups'", "Write contradiction-rule"]),
        ("likelihood-ratio(rates=rank-two)", ["Did you mean 'rank-one'?"]),
        ("knock-knock(groups=many)", ["groups must be a whole number, not 'many'"]),
        ("knock-knock(groups=forest(trees=2))", ["'forest(trees=2)' is not a plain value"]),
        ("knock-knock(groups=3)", ["3 groups cannot be balanced", "even number"]),
        ("log-likelihood(validation=3)", ["3 groups cannot be balanced"]),
        ("knock-knock(classifier=forest(trees=0))", ["trees must lie between 1 and"]),
        ("knock-knock(classifier=l1(c=nan))", ["c must be positive and finite, not nan"]),
        ("knock-knock(20)", ["'20' stands without a key", "character 13"]),
        ("knock-knock(groups=2, groups=4)", ["'groups' is given twice", "character 23"]),
        ("knock-knock(groups=2", ["expected ',' or ')', found the end"]),
        ("knock-knock(groups=2))", ["expected the end, found ')'", "character 22"]),
        ("knock-knock | loc-mia", ["found '|'", "character 13"]),
        ("knock-knock(groups=)", ["expected a value for 'groups', found ')'"]),
        ("raw", ["no attack 'raw'"]),
        ("a(" * 30, ["too many parentheses"]),
    ],
)
def test_bad_specs_say_what_is_wrong_and_where(text, fragments):
    with pytest.raises(SpecError) as caught:
        Attack.parse(text)
    for fragment in [*fragments, "character"]:
        assert fragment in str(caught.value)


@given(st.data())
def test_every_typo_is_answered_with_what_was_meant(data):
    """One letter less in a name, a key or a choice of some attack."""
    kind = data.draw(st.sampled_from([KnockKnock, ZeroKnowledge, LocMia]))
    text = str(kind(**{name: data.draw(values) for name, values in _words_of(kind).items()}))
    meant = data.draw(st.sampled_from([w for w in _letters(text) if len(w) > 3]))
    drop = data.draw(st.integers(0, len(meant) - 1))
    wrong = meant[:drop] + meant[drop + 1 :]
    place = text.index(meant)
    with pytest.raises(SpecError) as caught:
        Attack.parse(text[:place] + wrong + text[place + len(meant) :])
    assert f"Did you mean {meant!r}?" in str(caught.value)
    assert "character" in str(caught.value)


def _words_of(kind):
    """Return the parameters of an attack that take one of a few words, at unusual values."""
    chosen = {"sampling": st.just("independent"), "classifier": st.just(Forest())}
    more = {"marginals": st.just("mechanism"), "fit_on": st.just("per-target")}
    return chosen | more if kind is ZeroKnowledge else chosen


def _letters(text):
    return text.replace("(", " ").replace(")", " ").replace(",", " ").replace("=", " ").split()


@pytest.mark.parametrize("given", [5, None, 0.1, ["knock-knock"], b"knock-knock"])
def test_what_is_no_text_is_refused(given):
    with pytest.raises(SpecError, match="is no attack"):
        Attack.parse(given)


# What keys of random numbers are made of


@given(attacks, attacks)
def test_content_tells_values_apart_and_nothing_else(one, other):
    assert (specs.content(one) == specs.content(other)) == (one == other)
    assert specs.content(Attack.parse(str(one))) == specs.content(one)


def _kind(**parameter):
    @dataclass(frozen=True)
    class Thing:
        size: int = specs.parameter(specs.WHOLE, "how large", **{"default": 3, **parameter})
        inner: object = field(default=None)
        name: ClassVar[str] = "thing"

    return Thing


def test_content_does_not_depend_on_how_a_spec_is_written():
    plain, renamed, always, bare = (
        _kind(**how) for how in ({}, {"key": "magnitude"}, {"always": True}, {"bare": True})
    )
    written = {specs.write(kind(size=5)) for kind in (plain, renamed, bare)}
    assert written == {"thing(size=5)", "thing(magnitude=5)", "thing(5)"}
    assert specs.write(always(size=3)) == "thing(size=3)"
    assert len({specs.content(kind(size=5)) for kind in (plain, renamed, always, bare)}) == 1
    assert len({specs.content(kind(size=3)) for kind in (plain, renamed, always, bare)}) == 1
    assert specs.content(plain(size=5)) != specs.content(plain(size=6))


def test_content_does_not_depend_on_parameters_that_came_later():
    @dataclass(frozen=True)
    class Thing:
        colour: str = "red"
        size: int = specs.parameter(specs.WHOLE, "how large", default=3)
        inner: object = None
        name: ClassVar[str] = "thing"

    assert specs.content(Thing(size=5)) == specs.content(_kind()(size=5))
    assert specs.content(Thing(size=5, colour="blue")) != specs.content(_kind()(size=5))


def test_content_looks_into_nested_values():
    thing = _kind()
    one, other = (specs.content(thing(inner=thing(size=size))) for size in (5, 6))
    assert one != other
    # A value is not mistaken for the text of another one.
    assert specs.content(thing(inner="5")) != specs.content(thing(inner=5))


@given(st.floats(allow_nan=False) | st.integers(-(10**30), 10**30))
def test_numbers_are_written_shortly_and_read_back_exactly(value):
    assert type(value)(specs.format_number(value)) == value


def test_numbers_as_people_write_them():
    found = [specs.format_number(n) for n in (1.0, 0.5, 1e-6, 2.5e20, 10)]
    assert found == ["1", "0.5", "1e-6", "2.5e+20", "10"]
