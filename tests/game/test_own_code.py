"""Which changes of a user's own code a plan notices."""

import dataclasses
import importlib
import sys

import pytest

from whosthere.adversary.attacks import Attack
from whosthere.adversary.knowledge import Knowledge
from whosthere.auditing.options import AuditOptions
from whosthere.auditing.planning import make_plan
from whosthere.game.own_code import own_code
from whosthere.privacy.mechanism import Mechanism

HELPERS = """
POWER = 2
NAMES = {"a", "b", "c", "d"}

def strength(count):
    return count ** POWER

def unused(count):
    return 0
"""
DEEPER = """
def mild(x):
    return x + 5
"""
MINE = """
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import ClassVar
import numpy as np
from numba import njit
import helpers
import pack.deeper
from sklearn.linear_model import LogisticRegression
from whosthere.attacks import Answer, Attack, FittedAttack
from whosthere.mechanisms import Suppress

SHIFT = 1
MODEL = LogisticRegression(C=2.0)
TABLE = np.arange(3)

@njit
def compiled(x):
    return x + 1

@lru_cache
def kept(x):
    return x + 2

def shown(answer):
    \"\"\"Only to look at.\"\"\"
    print(answer)

def threshold(n, *, least=0.5):
    inner = lambda x: max(x, least)
    return inner(n)

def score_of(cells):
    return compiled(kept(helpers.strength(len(cells)))) + SHIFT + TABLE[0]

class Milder(Suppress):
    def describe(self):
        return threshold(1)

@dataclass(frozen=True)
class Mine(Attack):
    scale: float = 1.0

    name: ClassVar[str] = "mine"
    summary: ClassVar[str] = "mine"

    def fit(self, facts, knowledge, auxiliary, *, seed):
        factor = 3
        def inner(release):
            from later import weight
            return factor * weight(MODEL.fit(release)) + pack.deeper.mild(1)
        return Fitted(knowledge.cells, inner)

@dataclass(frozen=True, eq=False)
class Fitted(FittedAttack):
    cells: object
    inner: object
    depth: int = field(default_factory=lambda: 4)

    @property
    def level(self):
        return partial(threshold, 3)()

    def score(self, release):
        return Answer(score_of(self.cells), self.level)  # as good as any
"""

LATER = """
def weight(x):
    return 7 * x
"""
SOURCES = {"helpers": HELPERS, "pack.deeper": DEEPER, "later": LATER, "mine": MINE}


@pytest.fixture
def fingerprint(tmp_path, monkeypatch):
    """Return the fingerprint of the attack in a user's modules, with something replaced."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def of(before="", after="", *, value="mine.Mine()"):
        (tmp_path / "pack").mkdir(exist_ok=True)
        (tmp_path / "pack" / "__init__.py").touch()
        for name, source in SOURCES.items():
            changed = source.replace(before, after) if before else source
            (tmp_path / f"{name.replace('.', '/')}.py").write_text(changed)
        forget()
        assert not before or before in "".join(SOURCES.values())
        importlib.invalidate_caches()
        return own_code(eval(value, {"mine": importlib.import_module("mine")}))

    def forget():
        for name in ("pack", *SOURCES):
            sys.modules.pop(name, None)

    yield of
    forget()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("count ** POWER", "count * POWER"),
        ("POWER = 2", "POWER = 3"),
        ("SHIFT = 1", "SHIFT = 2"),
        ("np.arange(3)", "np.arange(1, 4)"),
        ("return x + 1", "return x - 1"),
        ("return x + 2", "return x - 2"),
        ("max(x, least)", "min(x, least)"),
        ("least=0.5", "least=0.6"),
        ("partial(threshold, 3)", "partial(threshold, 4)"),
        ("+ SHIFT + TABLE", "- SHIFT + TABLE"),
        ("Answer(score_of", "Answer(-score_of"),
        ("Fitted(knowledge.cells, inner)", "Fitted(knowledge.cells[1:], inner)"),
        ("factor = 3", "factor = 4"),
        ("return factor *", "return factor +"),
        ("lambda: 4", "lambda: 5"),
        ("return x + 5", "return x + 6"),
        ("return 7 * x", "return 8 * x"),
        ("C=2.0", "C=3.0"),
        ("scale: float = 1.0", "scale: float = 2.0"),
    ],
)
def test_whatever_a_score_rests_on_is_noticed(fingerprint, before, after):
    assert fingerprint(before, after) != fingerprint()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("as good as any", "a comment"),
        ("SHIFT = 1", "\n\n\nSHIFT = 1"),
        ("return 0", "return 1"),
        ("print(answer)", "print(repr(answer))"),
    ],
)
def test_nothing_else_is(fingerprint, before, after):
    assert fingerprint(before, after) == fingerprint() is not None


def test_that_it_was_sent_to_a_worker_is_not_noticed(fingerprint):
    copied = "[__import__('copy').copy(mine.Mine()), mine.Mine()][1]"
    assert fingerprint(value=copied) == fingerprint()


def test_own_parts_of_what_is_ours_are_noticed(fingerprint):
    value = "__import__('whosthere').mechanisms.Mechanism((mine.Milder(1),))"
    assert fingerprint(value=value) is not None
    assert fingerprint("max(x, least)", "min(x, least)", value=value) != fingerprint(value=value)


def test_ours_have_none():
    assert own_code(Attack.parse("zero-knowledge")) is None
    assert own_code(Mechanism.parse("laplace(eps=1, unit=event) | suppress(k=1)")) is None
    assert own_code(Knowledge.parse("share(0.1)")) is None


def test_code_without_a_file(monkeypatch):
    """As in a notebook, whose kernel is installed; and the same whenever it is run again."""
    launcher = "lib/site-packages/ipykernel_launcher.py"
    monkeypatch.setattr(sys.modules["__main__"], "__file__", launcher, raising=False)

    def of(source):
        space = {"__name__": "__main__"}
        exec(source, space)
        return own_code(space["Two"]())

    source = "W = {{'a', 'b', 'c'}}\ndef f(x): return x in {{'u', 'v', 'w'}}, {}\nclass Two:\n"
    source += "    def score(self): return f(W)\n"
    assert of(source.format(1)) == of(source.format(1)) != of(source.format(2))


def test_a_plan_tells_them_all(traces, fingerprint):
    fingerprint()
    mine = importlib.import_module("mine").Mine()
    options = AuditOptions.of(
        mechanisms="raw", group_size=8, attacks=[mine, "likelihood-ratio"], targets=3, releases=4
    )
    assert make_plan(options, traces).to_json()["code"] == {"mine": own_code(mine)}


@pytest.mark.parametrize("how", ["exec", "type", "make_dataclass"])
def test_a_class_that_is_made_on_the_fly_is_a_users(how):
    """It has no module, or that of what made it: Python's own."""

    def made(add):
        names = {"add": add}
        exec("def fit(self, *given, seed): return add + 1", names)
        parts = {"name": "mine", "summary": "", "fit": names["fit"]}
        if how == "type":
            return type("Mine", (Attack,), parts)()
        if how == "make_dataclass":
            return dataclasses.make_dataclass("Mine", [], bases=(Attack,), namespace=parts)()
        names = {"Attack": Attack, "add": add}
        text = "class Mine(Attack):\n    name = 'mine'\n    def fit(self, *given, seed): return add"
        exec(text, names)
        return names["Mine"]()

    first = own_code(made(1))
    assert first is not None
    assert first == own_code(made(1)) != own_code(made(2))


def test_a_table_of_changes_is_noticed_when_it_changes(tmp_path):
    """A folder belongs to what the table held, and not to its name."""
    path, found = tmp_path / "changes.csv", set()
    for chance in (0.25, 0.5):
        path.write_text(f"i,v,p\n1,0,{chance}\n1,1,{1 - chance}\n")
        found.add(own_code(Mechanism.parse(f"ptable({path}) | suppress(k=2)")))
    assert None not in found
    assert len(found) == 2
