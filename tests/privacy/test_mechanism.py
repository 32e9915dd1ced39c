"""Publishing counts, and the exact chance of what is published."""

from __future__ import annotations

import math

import numpy as np
import pytest

from whosthere.errors import InputError, SpecError
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.noise import DiscreteLaplace, Gaussian, Laplace
from whosthere.privacy.rounding import Round, Suppress
from whosthere.privacy.step import Correction
from whosthere.privacy.units import Event, Guarantee, User

M = 23


def table(mechanism, m=M):
    """P(published | true) as a matrix, a row for each true count."""
    counts = np.arange(m + 1)
    return mechanism.pmf(counts, counts[:, None], m)


def test_the_seed_decides():
    mechanism, counts = Mechanism.parse("laplace(eps=1)"), np.arange(24).reshape(4, 6)
    one, other = (mechanism.apply(counts, M, np.random.default_rng(8)) for _ in range(2))
    assert np.array_equal(one, other)


def test_log_pmf_goes_on_where_pmf_underflows():
    mechanism = Mechanism.parse("laplace(eps=1)")
    steps = mechanism.log_pmf([5000, 4000], 10, 100_000)
    assert steps[1] - steps[0] == pytest.approx(1000)
    assert mechanism.pmf(5000, 10, 100_000) == 0
    assert Mechanism.parse("suppress(k=3)").log_pmf(2, 2, 10) == -np.inf


@pytest.mark.parametrize("eps", [0.01, 0.5, 1, 3, 20])
@pytest.mark.parametrize("kind", [Laplace, DiscreteLaplace])
@pytest.mark.parametrize("after", [(), (Suppress(2),), (Round(5), Suppress(7))])
def test_one_visit_changes_no_chance_by_more_than_eps(kind, eps, after):
    counts = np.arange(41)
    logs = Mechanism((kind(eps), *after)).log_pmf(counts, counts[:, None], 40)
    possible = (logs > -np.inf).all(axis=0)
    most = np.abs(np.diff(logs[:, possible], axis=0)).max()
    assert most <= eps + 1e-9
    assert after or most >= eps - 1e-9


@pytest.mark.parametrize("kind", [Laplace, DiscreteLaplace])
def test_a_whole_person_changes_no_chance_by_more_than_eps(kind):
    """A person of 10 visits moves ten cells by one: ten times the change of one cell."""
    counts = np.arange(41)
    logs = Mechanism((kind(1.5, User(10)),)).log_pmf(counts, counts[:, None], 40)
    assert 10 * np.abs(np.diff(logs, axis=0)).max() == pytest.approx(1.5)


@pytest.mark.parametrize(("eps", "delta"), [(0.3, 1e-5), (1, 1e-6), (1, 0.05), (6, 1e-3)])
def test_gaussian_stays_within_delta(eps, delta):
    found = table(Mechanism((Gaussian(eps, delta),)), 90)
    for one, other in ((found[:-1], found[1:]), (found[1:], found[:-1])):
        excess = np.maximum(one - math.exp(eps) * other, 0).sum(axis=1)
        assert excess.max() <= delta * (1 + 1e-9)
        assert excess.max() > delta / 100


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("raw", None),
        ("suppress(k=3)", None),
        ("suppress(k=3) | laplace(eps=1)", None),
        ("laplace(eps=2) | suppress(k=1)", Guarantee(2, 0, Event())),
        ("gaussian(eps=1, unit=user, max_visits=9)", Guarantee(1, 1e-6, User(9))),
        ("random-round(to=3)", None),
    ],
)
def test_guarantee(spec, expected):
    assert Mechanism.parse(spec).guarantee == expected


def test_descriptions_by_hand():
    assert Mechanism.parse("opensafely").describe() == (
        "Counts of 7 or fewer are published as 0. Counts are rounded to the nearest multiple of 5. "
        "Nothing is left to chance, so no formal guarantee is given."
    )
    text = Mechanism.parse("gaussian(eps=1, unit=user, max_visits=30)").describe()
    assert text.startswith("At most 30 visits of each person are counted")
    assert text.endswith(
        "This is differential privacy with eps 1 and delta 1e-6 for adding or removing one user. "
        "The group's size is public, so somebody else is counted instead of a person left out. "
        "Whoever knows everything else can raise the odds that a person is in the data by a "
        "factor of at most e^1.455 = 4.3, except with a chance of at most 3.8e-05."
    )
    text = Mechanism.parse("laplace(eps=1, unit=user, max_visits=50)").describe()
    assert text.endswith("a person is in the data by a factor of at most e^2 = 7.4.")
    text = Mechanism.parse("laplace(eps=70, unit=user, max_visits=50)").describe()
    assert text.endswith("e^140 = 6.3e+60. That is hardly any protection.")
    text = Mechanism.parse("laplace(eps=1.5, unit=user, max_visits=50)").describe()
    assert text.endswith("e^3 = 20. That is weak protection.")
    text = Mechanism.parse("laplace(eps=1)").describe()
    assert "that one visit of a person took place by a factor of at most e^1 = 2.7. " in text
    assert text.endswith("for each visit of theirs, and of whoever is counted in their place.")
    assert "unchanged" in Mechanism().describe()
    text = Mechanism.parse("random-round(to=3)").describe()
    assert text.endswith("follows no privacy budget, so no formal guarantee is given.")
    text = Mechanism.parse("suppress(k=3) | laplace(eps=1)").describe()
    assert text.endswith("Noise does not come first, so no formal guarantee is given.")


@pytest.mark.parametrize(
    ("spec", "changes", "correction", "units"),
    [
        ("raw", False, Correction.NONE, ()),
        ("suppress(k=0) | round(to=1) | raw", False, Correction.NONE, ()),
        ("round(to=5)", True, Correction.NONE, ()),
        ("random-round(to=3)", True, Correction.NONE, ()),
        ("suppress(k=1) | round(to=5)", True, Correction.COMPRESS, ()),
        ("suppress(k=1) | laplace(eps=1)", True, Correction.STRETCH, (Event(),)),
        ("laplace(eps=1, unit=user, max_visits=9)", True, Correction.STRETCH, (User(9),)),
    ],
)
def test_what_others_need_to_know(spec, changes, correction, units):
    mechanism = Mechanism.parse(spec)
    assert mechanism.changes_counts == changes
    assert mechanism.correction == correction
    assert mechanism.units == units
    assert mechanism.bounds_visits == any(unit != Event() for unit in units)


def test_content_tells_mechanisms_apart_and_nothing_else():
    same = ["laplace(eps=1)", "raw | LAPLACE(unit=event, eps=1.0)"]
    assert len({Mechanism.parse(spec).content for spec in same}) == 1
    units = ["unit=user, max_visits=10", "unit=user-day, max_visits=10", "unit=event"]
    assert len({Mechanism.parse(f"laplace(eps=1, {unit})").content for unit in units}) == 3


def test_steps_must_be_steps():
    with pytest.raises(SpecError, match="not a step"):
        Mechanism(("laplace",))


@pytest.mark.parametrize("counts", [[-1, 0], [0, M + 1]])
def test_counts_outside_the_group_are_refused(counts):
    mechanism = Mechanism.parse("laplace(eps=1)")
    for call in (
        lambda: mechanism.apply(counts, M, np.random.default_rng(0)),
        lambda: mechanism.pmf(counts, 0, M),
        lambda: mechanism.pmf(0, counts, M),
    ):
        with pytest.raises(InputError, match=f"must lie in 0..{M}"):
            call()


def test_other_nonsense_is_refused():
    mechanism = Mechanism.parse("laplace(eps=1)")
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="whole numbers"):
        mechanism.apply([0.5], M, rng)
    with pytest.raises(InputError, match="a group must have"):
        mechanism.apply([0], 0, rng)
    with pytest.raises(InputError, match="needs 1 arrays of noise, not 0"):
        mechanism.publish([0], (), M)


def test_marks_after_noise_keep_the_guarantee():
    assert Mechanism.parse("laplace(eps=2) | suppress(k=1, shown=mark)").guarantee.eps == 2


def test_marks_must_make_sense():
    with pytest.raises(SpecError, match="zeros=mark needs shown=mark"):
        Suppress(3, zeros="mark")
    with pytest.raises(SpecError, match="no shown 'star'"):
        Suppress(3, "star")
    assert str(Suppress(3, "mark")) == "suppress(k=3, shown=mark)"
    assert Mechanism((Suppress(3, "mark"),)) != Mechanism((Suppress(3),))
