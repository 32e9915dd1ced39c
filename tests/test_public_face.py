"""The public face: what is public is said in one place, and nothing else is needed to use it."""

import ast
import functools
import inspect
import itertools
import re
import sys
import textwrap
import types
import typing
from enum import Enum
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import whosthere as wt
from whosthere import specs
from whosthere.adversary.attacks import ATTACKS
from whosthere.adversary.knowledge import KNOWLEDGE
from whosthere.adversary.models import CLASSIFIERS
from whosthere.privacy.catalogue import STEPS
from whosthere.privacy.units import UNITS

ROOT = Path(__file__).parent.parent
MODULES = [name for name in wt.__all__ if isinstance(getattr(wt, name), types.ModuleType)]
PUBLIC = {f"wt.{name}": getattr(wt, name) for name in wt.__all__ if name not in MODULES} | {
    f"wt.{module}.{name}": found
    for module in MODULES
    for name, found in vars(getattr(wt, module)).items()
    if not name.startswith("_")
}
# Of these, what they take or return is of no use to anybody else: docs/reference/api.md calls them
# inner. They may change at any time.
INNER = {
    *("AuditOptions.contests", "Block.contests", "Block.tables", "Query.open"),
    *("Classifier.fit", "L1.moments", "LikelihoodAnswer.simulate"),
    *("TrainedAttack.train", "TrainedAttack.learn", "TrainedAttack.learn_from"),
    *("ZeroKnowledge.estimated", "ZeroKnowledge.learn_from"),
    *("Value.read", "Value.write", "OneOf.read", "parameter.kind"),
    *("AtRandom.tabulated", "AddedNoise.tabulated", "RandomRound.tabulated", "Step.trade_off"),
    *("Mechanism.law", "Mechanism.tabulated"),
    *("Partition.locator", "CellKey.changes", "Ptable.changes"),
}
# As for `dataclasses.field`, what they give is of the type of the field.
OF_ANY_TYPE = {"parameter.default", "parameter.return"}


@functools.cache
def names_in(module):
    """Return what annotations in a module may name, also what only type checkers import."""
    names = dict(vars(sys.modules[module]))
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            exec(compile(ast.Module(node.body, []), module, "exec"), names)
    return names


@functools.cache
def everything():
    ours = [name for name in sys.modules if name.startswith("whosthere.") and "kernels" not in name]
    return {name: found for module in ours for name, found in names_in(module).items()}


def types_in(annotation, names):
    """Return the classes in an annotation, and Any unless that stands in an array or for JSON."""
    if isinstance(annotation, typing.ForwardRef):
        annotation = annotation.__forward_arg__
    if isinstance(annotation, str):
        # `"A" | None` is fine for type checkers, and a mistake when it is run.
        parts = [
            ast.unparse(part) for part in _alternatives(ast.parse(annotation, mode="eval").body)
        ]
        if len(parts) > 1:
            return [one for part in parts for one in types_in(part, names)]
        # What an alias of another module stands for is named there.
        return types_in(eval(annotation, {**everything(), **names}), names)
    if annotation is typing.Any or (
        isinstance(annotation, type) and not typing.get_origin(annotation)
    ):
        return [annotation]
    origin, inside = typing.get_origin(annotation), typing.get_args(annotation)
    is_json = inside[:2] == (str, typing.Any)
    if origin in {np.ndarray, typing.Literal} or annotation == npt.ArrayLike or is_json:
        return []
    if origin is typing.Annotated:
        inside = inside[:1]
    found = [one for part in inside for one in (part if isinstance(part, list) else [part])]
    return [origin, *(one for part in found for one in types_in(part, names))]


def _alternatives(node):
    if isinstance(node, ast.BinOp):
        return [*_alternatives(node.left), *_alternatives(node.right)]
    return [node]


def annotated(thing):
    """Return what a public name has annotations for: label, annotation, names."""
    if inspect.isfunction(thing):
        function = inspect.unwrap(thing)
        for name, annotation in function.__annotations__.items():
            yield f"{thing.__name__}.{name}", annotation, names_in(function.__module__)
    elif inspect.isclass(thing):
        for base in thing.__mro__:
            if not base.__module__.startswith("whosthere"):
                continue
            names = names_in(base.__module__)
            for name, annotation in inspect.get_annotations(base).items():
                if not name.startswith("_"):
                    yield f"{base.__name__}.{name}", annotation, names
            for name, found in vars(base).items():
                function = getattr(found, "__func__", getattr(found, "fget", found))
                function = getattr(function, "func", function)
                if not inspect.isfunction(function) or (name[0] == "_" and name != "__init__"):
                    continue
                # What a dataclass makes of its fields was looked at with these.
                if function.__code__.co_filename != "<string>":
                    for annotation in function.__annotations__.values():
                        yield f"{base.__name__}.{name}", annotation, names


def inner(label, thing):
    names = [base.__name__ for base in thing.__mro__] if inspect.isclass(thing) else []
    _, _, method = label.partition(".")
    return label in INNER or any(f"{name}.{method}" in INNER for name in names)


@pytest.mark.parametrize("name", PUBLIC)
def test_whatever_a_public_name_takes_or_returns_is_public(name):
    public = {id(found) for found in PUBLIC.values()}
    thing = PUBLIC[name]
    for label, annotation, names in annotated(thing):
        for found in types_in(annotation, names):
            if typing.is_typeddict(found) or inner(label, thing):
                continue
            assert found is not typing.Any or label in OF_ANY_TYPE, label
            ours = getattr(found, "__module__", "").startswith("whosthere")
            assert not ours or id(found) in public, f"{label}: {found.__qualname__} is not public"


def test_every_inner_name_is_there():
    there = {label for thing in PUBLIC.values() for label, _, _ in annotated(thing)}
    assert there >= INNER | OF_ANY_TYPE


# Names


def test_a_name_is_in_one_place():
    places = {}
    for name in PUBLIC:
        places.setdefault(id(PUBLIC[name]), []).append(name)
    twice = {tuple(name.rpartition(".")[2] for name in names) for names in places.values()}
    # What says what the parameters of a spec are is for attacks and for mechanisms.
    shared = {"NUMBER", "WHOLE", "Value", "parameter"}
    assert {names[0] for names in twice if len(names) > 1} == shared


@pytest.mark.parametrize("catalogue", [ATTACKS, KNOWLEDGE, CLASSIFIERS], ids=lambda one: one.noun)
def test_a_class_is_called_like_its_spec(catalogue):
    for name, kind in catalogue.kinds.items():
        assert kebab(kind.make) == name
        assert kind.make in PUBLIC.values()


def test_so_are_steps_and_units():
    for kind in (*STEPS, *UNITS.values()):
        assert kebab(kind) == kind.name
        assert kind in PUBLIC.values()


def kebab(kind):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", kind.__name__).lower()


def test_every_public_name_is_in_the_reference():
    text = (ROOT / "docs/reference/api.md").read_text(encoding="utf-8")
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    said = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", text))))
    assert [name for name in PUBLIC if name.rpartition(".")[2] not in said] == []


def test_the_typed_script_uses_every_public_name():
    """`make types` has mypy look at it; here only that nothing is left out."""
    script = ast.parse((ROOT / "tests/public_names.py").read_text(encoding="utf-8"))
    used = {ast.unparse(node) for node in ast.walk(script) if isinstance(node, ast.Attribute)}
    assert set(PUBLIC) - used == set()


# What is said about parameters


BUILT = [
    name
    for name, found in PUBLIC.items()
    if (inspect.isclass(found) or inspect.isfunction(found)) and not name.startswith("wt.results.")
]


@pytest.mark.parametrize("name", BUILT)
def test_every_parameter_is_documented(name):
    thing = PUBLIC[name]
    if inspect.isclass(thing) and issubclass(thing, Exception | Enum):
        return
    taken = {one for one in inspect.signature(thing).parameters if one not in {"args", "kwargs"}}
    assert taken - documented(thing) == set()


def documented(thing):
    """Return the parameters that are explained in docstrings, at fields, or for specs."""
    if inspect.isfunction(thing):
        _, _, section = inspect.getdoc(thing).partition("\nParameters\n----------\n")
        heads = re.findall(r"^\S.*$", re.split(r"\n\n\S+\n-+\n", section)[0], re.MULTILINE)
        return {name for head in heads for name in head.split(", ")}
    # A city has forty, which have a page of their own.
    page = (ROOT / "docs/explanation/cities.md").read_text(encoding="utf-8")
    found = set(re.findall(r"`(\w+)`", page)) if thing is wt.CityModel else set()
    for base in thing.__mro__:
        if base.__module__.startswith("whosthere"):
            found |= set(re.findall(r"\w+", base.__doc__ or ""))
            found |= {one.field for one in specs.parameters_of(base) if one.meaning}
            body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0].body
            found |= {
                field.target.id
                for field, text in itertools.pairwise(body)
                if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
            }
    return found
