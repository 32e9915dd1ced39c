"""What values show of themselves: never who somebody is, nor where one person was."""

import inspect
import re
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np
import polars as pl
import pytest

import whosthere as wt
from whosthere import display, progress
from whosthere.adversary.attacks import ATTACKS
from whosthere.adversary.attacks.trained import sampler_over
from whosthere.adversary.knowledge import KNOWLEDGE
from whosthere.adversary.models import CLASSIFIERS
from whosthere.adversary.synthetic import Exponential, UnicityModel
from whosthere.attacks import (
    Attack,
    Auxiliary,
    PastRelease,
    TrainedAttack,
    View,
)
from whosthere.auditing.options import AuditOptions, Block
from whosthere.auditing.planning import make_plan
from whosthere.auditing.release_check import Exposed
from whosthere.auditing.risk import PEOPLE
from whosthere.auditing.series import Series
from whosthere.auditing.verdict import Verdict
from whosthere.game.rounds import Population
from whosthere.game.target import TargetRounds
from whosthere.inference.finding import Finding
from whosthere.knowledge import Knowledge, Places
from whosthere.mechanisms import Family, Mechanism, Suppress
from whosthere.privacy.catalogue import PRESETS
from whosthere.privacy.publish import Stays
from whosthere.privacy.scheme import Layout
from whosthere.search.coarsening import Coarsening

SECRET = "secret-user-"
M = 40
EVIL = "<script>alert('whosthere')</script>"
# Of these there is nothing to show: bases to derive from, and what is only ever a type.
BASES = {
    *("Attack", "FittedAttack", "Known", "Knowledge", "TrainedAttack", "Step", "Unit"),
    *(
        "Map",
        "AddedNoise",
        "PrivateNoise",
        "ChanceTable",
        "InputError",
        "NotApplicableError",
        "TableReader",
    ),
    *("Answer", "OneOf", "Choices", "Model", "Ptable", "Correction", "TableReader"),
    *("AuditFailedError", "NotAuditedWarning", "CityModel", "Classifier", "Value", "Habits"),
    "ArrowFrame",
    # Numbers of mechanisms, and sums over many people.
    *("Alphabet", "Span", "Member", "Guarantee", "GameGuarantee", "Randomness", "TradeOff"),
    *(
        "Audited",
        "Imported",
        "Ledger",
        "Entry",
        "FriendEntry",
        "MeanOverTargets",
        "Band",
    ),
    *("StudyResult", "Description", "Judgement", "Status"),
}


@pytest.fixture(scope="module")
def city():
    return wt.simulate("milan-like", seed=5, users=400, regions=9, days=2)


@pytest.fixture(scope="module")
def traces(city):
    """People whose ids cannot be mistaken for anything else."""
    made = city.traces()
    return replace(made, users=tuple(f"{SECRET}{i:05d}" for i in range(made.n_users)))


@pytest.fixture(scope="module")
def result(traces):
    """An audit of a named person and of whom that person knows."""
    return wt.audit(
        traces,
        mechanisms=["raw", "laplace(eps=1, unit=user-day, max_visits=2)"],
        group_size=M,
        attacks=["likelihood-ratio", "loc-mia(groups=20, validation=10)"],
        users=[traces.users[row] for row in np.argsort(traces.visits_per_user())[-3:]],
        releases=4,
        workers=1,
    )


@pytest.fixture(scope="module")
def recommendation(traces):
    return wt.recommend(
        traces, group_size=M, families="suppress(k=?)", attacks="likelihood-ratio", targets=3,
        releases=4, policy={"auc": 1.0}, workers=1,
    )  # fmt: skip


@pytest.fixture(scope="module")
def checked_release(traces):
    release = wt.publish(traces, "suppress(k=1)", seed=1).release
    return wt.check(release, traces=traces, releases=20, what_if=False)


@pytest.fixture(scope="module")
def values(city, traces, result, recommendation, checked_release):
    """Everything that a user may have at hand, by name."""
    target = int(np.argmax(traces.visits_per_user()))
    made = wt.publish(traces, "suppress(k=1)", group_size=M, seed=1)
    raw = wt.publish(traces, "raw", group_size=M, seed=1).release
    known = traces.select([target])
    past = [
        PastRelease(wt.publish(traces, "raw", group_size=M, seed=seed).release, seed % 2 == 0)
        for seed in range(8)
    ]
    auxiliary = Auxiliary(traces, traces.select([1, 2, 3]), past, raw, everybody=traces)
    options = AuditOptions.of(
        mechanisms="suppress(k=1)", group_size=M, attacks="likelihood-ratio", targets=3, releases=4
    )
    plan = make_plan(options, traces)
    task = plan.tasks[0]
    scene = TargetRounds(Population.of(traces), plan, task)
    counts = traces.counts()
    model = UnicityModel(
        counts.sum(axis=1), counts.sum(axis=0), Exponential(3.0), traces.regions, traces.epochs
    )
    found = {
        "query": wt.Query("SELECT 'u01' AS user", "postgresql://me:secret@host/db"),
        "city": city,
        "people": city.people,
        "traces": traces,
        "one trace": traces.select([target]),
        "friends": traces.friends,
        "regions": traces.regions,
        "epochs": traces.epochs,
        "publication": made,
        "published table": made.only,
        "group": made.group,
        "release": made.release,
        "facts": made.release.facts,
        "ledger": made.release.ledger,
        "utility": wt.utility(made.release.counts, made.truth),
        "mechanism": Mechanism.parse("laplace(eps=1, unit=user, max_visits=3) | round(to=5)"),
        "family": Family("suppress(k=?)"),
        "coarsening": (coarser := Coarsening("epochs=2h", Layout(epochs=2))),
        "layout": coarser.layout,
        "checked table": wt.check(made.release, visits=2),
        "checked release": checked_release,
        "exposed": checked_release.exposed[0],
        "presets": dict(PRESETS),
        "known visits": known,
        "known regions": Places.of_one((3, 5)),
        "auxiliary": auxiliary,
        "view": View(raw.facts, known, auxiliary),
        "past release": past[0],
        "sampler": sampler_over(traces, raw.facts, known, np.random.default_rng(0)),
        "synthetic people": model.generate(20, np.random.default_rng(0)),
        "result": result,
        "findings": result.findings,
        "finding": result.findings[0],
        "verdicts": result.verdicts,
        "verdict": result.verdicts[0],
        "table of findings": result.to_frame(),
        "scores": result.scores,
        "targets": result.targets,
        "policy": result.policy,
        "limits": (*result.policy.limits, *result.policy.keep),
        "choice of targets": result.choice,
        "together": result.together,
        "what if": result.what_if,
        "series": Series("raw", "1w", 1, {1: result.verdicts[0]}, result.findings),
        "stays": Stays(np.arange(M), np.zeros(M, int), np.ones(M, int), timedelta(weeks=1)),
        "scheme of a table": task.scheme.tables[0],
        "report": wt.report(result),
        "plan": plan,
        "task": task,
        "contest": plan.contests[0],
        "setting": plan.settings[0],
        "rounds": scene,
        "table": scene.tables[0],
        "round": scene.test(0),
        "population": scene.population,
        "knowledge of a scene": scene.known(Knowledge.parse("share(0.5)"))[0],
        "auxiliary of a scene": scene.tables[0].auxiliary(
            frozenset({"reference", "friends", "example"})
        ),
        "recommendation": recommendation,
        "candidate": recommendation.candidates[0],
        "block": Block(mechanisms="raw", group_size=M),
        "options": wt.AuditOptions.of(mechanisms="raw", group_size=M),
        "answer": wt.attack(made.release, known),
        "scores of everybody": (everybody := wt.attack(made.release, everybody=traces)),
        "found people": everybody.found(),
        "found at": everybody.found()[0],
        "everybody's risk": _risk(traces.n_users),
    }
    for name, kind in CLASSIFIERS.kinds.items():
        found[f"classifier {name}"] = kind.make()
    for kind in KNOWLEDGE.kinds.values():
        found[f"knowledge {kind.example}"] = Knowledge.parse(kind.example)
    for name, kind in ATTACKS.kinds.items():
        small = {"groups": 20, "validation_groups": 10}
        chosen = kind.make(**small) if issubclass(kind.make, TrainedAttack) else Attack.parse(name)
        found[f"attack {name}"] = chosen
        found[f"fitted {name}"] = chosen.fit(raw.facts, known, auxiliary, seed=0)
    once = Attack.parse("zero-knowledge(groups=20, validation=10, fit=per-target, rule=no)")
    found["fitted once"] = once.fit(raw.facts, known, auxiliary, seed=0)
    return {name: value for name, value in found.items() if value is not None}


def _risk(n, **about):
    person = range(n)
    columns = {name: about.get(name) for name in PEOPLE} | {"person": person}
    return wt.results.EverybodysRisk(pl.DataFrame(columns, PEOPLE))


def _texts(value):
    """Return all that a value shows: on a terminal, in a log, in a notebook."""
    shown = [repr(value), str(value), f"{value}"]
    if hasattr(value, "_repr_html_"):
        shown.append(value._repr_html_())
    return shown


def _leaks(text, traces):
    """Return what a text says about persons: their ids, or three of their visits in a row."""
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    shown = set(zip(numbers, numbers[1:], numbers[2:], strict=False))
    found = [SECRET] if SECRET in text else []
    for row in range(traces.n_users):
        own = traces.trace(row).tolist()
        found += [three for three in zip(own, own[1:], own[2:], strict=False) if three in shown]
    return found


def test_leaks_are_found(traces):
    target = int(np.argmax(traces.visits_per_user()))
    own = traces.trace(target)
    for text in (traces.users[3], repr(own), repr(own.tolist()), repr(own[2:6]), f"<{own}>"):
        assert _leaks(text, traces)
    assert not _leaks("<Traces: 151 users, 514 visits, 9 regions, 48 epochs of 1h>", traces)


def test_no_value_shows_who_somebody_is_or_was_where(values, traces):
    leaking = {
        name: found
        for name, value in values.items()
        for text in _texts(value)
        if (found := _leaks(text, traces)[:3])
    }
    assert not leaking


def test_options_do_not_show_whom_to_attack(traces):
    options = wt.AuditOptions.of(mechanisms="raw", group_size=M, users=traces.users[3])
    assert not [text for text in _texts(options) if _leaks(text, traces)]


def test_every_public_kind_of_value_is_looked_at(values):
    """A class that is added to the public names must be added here too."""
    seen = {base.__name__ for value in _flat(values.values()) for base in type(value).__mro__}
    public = {
        found.__name__
        for module in (wt, wt.attacks, wt.knowledge, wt.mechanisms, wt.results)
        for name in dir(module)
        if inspect.isclass(found := getattr(module, name))
    }
    seen |= {type(step).__name__ for step in _every_step()}
    seen |= {type(step.unit).__name__ for step in _every_step()}
    assert public - seen - BASES == set()


def _every_step():
    texts = (
        "suppress(k=1) | round(to=5) | floor(at=4) | round-by-size(bands=15/10) | scale(by=2)",
        "cell-key(d=5, v=3)",
        "random-round(to=3)",
        "laplace(eps=1)",
        "discrete-gaussian(rho=1, unit=user-week, max_visits=3)",
        "discrete-gaussian(rho=1, unit=user-period, max_visits=3, days=2)",
        "discrete-laplace(eps=1, unit=user, max_visits=3)",
        "gaussian(eps=1, unit=user-day, max_visits=2)",
    )
    return [step for text in texts for step in Mechanism.parse(text).steps]


def _flat(found):
    for value in found:
        yield value
        if isinstance(value, tuple):
            yield from value


def test_answers_and_errors_name_nobody(traces):
    with pytest.raises(wt.InputError) as caught:
        traces.row_of(f"{SECRET}99999")
    assert SECRET not in str(caught.value)
    with pytest.raises(wt.InputError) as caught:
        wt.audit(traces, mechanisms="raw", group_size=M, users=[f"{SECRET}99999"], workers=1)
    assert SECRET not in str(caught.value)


# What comes from files is shown as text


@dataclass(frozen=True)
class _Evil(Suppress):
    def __str__(self):
        return EVIL


@pytest.fixture(scope="module")
def evil_values(city, traces, result, recommendation, checked_release):
    """Values whose texts hold a script: in a region's id, a mechanism, a name, a reason."""
    regions = wt.Regions([f"{EVIL}{i}" for i in range(len(traces.regions))])
    evil = replace(traces, regions=regions)
    made = wt.publish(evil, Mechanism((_Evil(1),)), group_size=M, seed=1)
    verdict = Verdict(EVIL, "accept", (EVIL,), EVIL)
    finding = Finding(EVIL, EVIL, "auc", 0.5, 0.4, 0.6, 3, 4, 4, EVIL)
    candidate = replace(
        recommendation.candidates[0], family=EVIL, choice=EVIL, mechanism=EVIL, verdict=verdict
    )
    return {
        "city": replace(city, name=EVIL, regions=regions),
        "regions": regions,
        "traces": evil,
        "publication": made,
        "release": made.release,
        "utility": wt.utility(made.release.counts, made.truth),
        "epochs": traces.epochs,
        "policy": wt.Policy(EVIL, {"auc": 0.6}),
        "scores of everybody": wt.results.ScoresOfEverybody(EVIL, 2, 0.5, (EVIL,), np.array([0.5])),
        "everybody's risk": _risk(5, setting=EVIL, attack=EVIL),
        "verdict": verdict,
        "checked release": replace(
            checked_release, verdict=verdict, exposed=(Exposed(EVIL, 5, 0, 5, 1.0, 0.1),)
        ),
        "result": replace(result, verdicts=(verdict,), findings=(finding,)),
        "recommendation": replace(recommendation, candidates=(candidate,), best=(candidate,)),
        "recommended": replace(
            recommendation,
            candidates=(candidate,),
            best=(replace(candidate, confirmation=verdict),),
        ),
    }


def test_nothing_that_is_shown_in_a_notebook_is_run(evil_values):
    shown = {
        name: value._repr_html_()
        for name, value in evil_values.items()
        if hasattr(value, "_repr_html_")
    }
    assert {"city", "traces", "release", "policy", "verdict", "result", "recommendation"} <= set(
        shown
    )
    for name, html in shown.items():
        assert "<script" not in html, name
        assert "alert('" not in html, name
    for name in ("city", "release", "policy", "verdict", "result", "recommendation"):
        assert "&lt;script" in shown[name], name


def test_every_value_with_html_is_looked_at_for_scripts(evil_values, values):
    looked_at = {type(value) for value in evil_values.values()}
    with_html = {
        type(value)
        for value in _flat(values.values())
        if hasattr(value, "_repr_html_") and type(value).__module__.startswith("whosthere")
    }
    assert with_html <= looked_at


def test_pieces_of_html_escape_whatever_comes_in():
    for made in (
        display.table((EVIL,), [[EVIL]], titles=(f'"{EVIL}',)),
        display.facts_table(EVIL, {EVIL: EVIL}),
        display.paragraph(EVIL, strong=EVIL),
    ):
        assert "<script" not in made
        assert '""' not in made


def test_the_bar_of_a_notebook_escapes_what_is_done(monkeypatch):
    """The mechanism that is tried is a part of it."""
    ipython = pytest.importorskip("IPython.display")
    shown = []

    class Handle:
        def update(self, html):
            shown.append(html.data)

    monkeypatch.setattr(ipython, "display", lambda *_, **__: Handle())
    monkeypatch.setattr(progress, "in_notebook", lambda: True)
    with progress.progress() as move:
        move(EVIL, 1, 3)
        move(EVIL, 1, None)
        move(EVIL, 3, 3)
    assert "&lt;script" in shown[0]
    assert not any("<script" in html for html in shown)
    assert shown[-1] == ""
