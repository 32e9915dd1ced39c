"""Classifiers of scikit-learn, which need the `learn` extra, and a user's own."""

from __future__ import annotations

import re
import warnings
from copy import deepcopy
from dataclasses import dataclass, field
from inspect import signature
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from whosthere import specs
from whosthere.adversary.classifiers import L1, Classifier, Decision
from whosthere.errors import InputError, SpecError, optional, quote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from whosthere.kernels.count_matrix import CountMatrix


@dataclass(frozen=True, eq=False)
class Learned(Decision):
    """A fitted model over all cells."""

    cells: NDArray[np.int64]
    model: Any

    @classmethod
    def by(cls, model: Any, counts: CountMatrix, labels: NDArray[np.bool_]) -> Learned:  # noqa: ANN401
        """Let a model of scikit-learn, or with the same methods, learn from all counts."""
        with warnings.catch_warnings():
            # Stopping early is part of the paper's settings.
            warnings.filterwarnings("ignore", category=UserWarning, module="sklearn")
            model.fit(counts.dense().astype(np.float64), labels)
        return cls(np.arange(counts.shape[1]), model)

    def __call__(self, counts: NDArray[np.integer]) -> NDArray[np.float64]:
        given = counts.astype(np.float64)
        if hasattr(self.model, "decision_function"):
            return self._checked(self.model.decision_function(given), (len(given),))
        # The log of the odds, kept finite where a model is certain.
        chances = self._checked(self.model.predict_proba(given), (len(given), 2))
        chance = np.clip(chances[:, 1], 1e-12, 1 - 1e-12)
        return np.asarray(np.log(chance / (1 - chance)))

    def _checked(self, found: object, shape: tuple[int, ...]) -> NDArray[np.float64]:
        numbers = np.asarray(found, np.float64)
        if numbers.shape != shape or not np.isfinite(numbers).all():
            raise InputError(
                f"{type(self.model).__name__} returned an array of shape {numbers.shape}, or "
                f"numbers that are not finite, for {shape[0]} groups",
                fix="decision_function returns a number for each group, predict_proba two",
            )
        return numbers


@dataclass(frozen=True)
class L1Paper(Classifier):
    """Logistic regression as the paper trains it: liblinear with scikit-learn's defaults.

    It stops at a tolerance of 1e-4 or after 100 iterations, often before its optimum.
    """

    c: float = specs.parameter(specs.POSITIVE, "weight of the loss", default=1.0)
    tolerance: float = specs.parameter(specs.POSITIVE, "where to stop", default=1e-4)
    most_iterations: int = specs.parameter(
        specs.at_least(1), "iterations at most", default=100, key="iterations"
    )
    name: ClassVar[str] = "l1-paper"
    summary: ClassVar[str] = (
        "the paper's own: the same by liblinear, which may stop before its optimum"
    )

    def fit(self, counts: CountMatrix, labels: NDArray[np.bool_], seed: int = 0) -> Learned:  # noqa: ARG002
        model = _part("linear_model").LogisticRegression(
            l1_ratio=1,
            solver="liblinear",
            C=self.c,
            tol=self.tolerance,
            max_iter=self.most_iterations,
            random_state=0,
        )
        return Learned.by(_standardised(model), counts, labels)


@dataclass(frozen=True)
class Forest(Classifier):
    """A random forest."""

    trees: int = specs.parameter(specs.at_least(1), "how many trees", default=200)
    name: ClassVar[str] = "forest"
    summary: ClassVar[str] = "a random forest"

    def fit(self, counts: CountMatrix, labels: NDArray[np.bool_], seed: int = 0) -> Learned:  # noqa: ARG002
        model = _part("ensemble").RandomForestClassifier(self.trees, random_state=0)
        return Learned.by(model, counts, labels)


@dataclass(frozen=True)
class Mlp(Classifier):
    """A neural network with one hidden layer."""

    hidden: int = specs.parameter(specs.at_least(1), "hidden neurons", default=100)
    name: ClassVar[str] = "mlp"
    summary: ClassVar[str] = "a neural network with one hidden layer"

    def fit(self, counts: CountMatrix, labels: NDArray[np.bool_], seed: int = 0) -> Learned:  # noqa: ARG002
        model = _part("neural_network").MLPClassifier((self.hidden,), random_state=0)
        return Learned.by(_standardised(model), counts, labels)


def _standardised(model: Any) -> Any:  # noqa: ANN401 - scikit-learn has no types
    return _part("pipeline").make_pipeline(_part("preprocessing").StandardScaler(), model)


class Model(Protocol):
    """What can learn: every classifier of scikit-learn, and whatever has the same methods.

    Besides `fit` it has ``decision_function(counts)``, with a score for each group, shape (n,), or
    ``predict_proba(counts)``, with the chances of being out and in, shape (n, 2). It is copied
    before it learns. Each parameter or attribute ``random_state`` that is no whole number gets a
    seed of its own.
    """

    def fit(self, counts: NDArray[np.float64], labels: NDArray[np.bool_], /) -> object:
        """Learn from the counts of groups, shape (n, n_cells), and whether the target is in."""


@dataclass(frozen=True)
class OwnModel(Classifier):
    """A model that a user gave, known by its class and its parameters."""

    text: str
    kind: type
    state: str = field(repr=False)
    parameters: Mapping[str, Any] = field(compare=False, repr=False)
    model: Any = field(compare=False, repr=False)

    name: ClassVar[str] = "own"
    summary: ClassVar[str] = "a model of a user's own"

    @classmethod
    def of(cls, model: object) -> OwnModel:
        """Take a model, or refuse what is none."""
        methods = [hasattr(model, name) for name in ("decision_function", "predict_proba")]
        if isinstance(model, type) or not hasattr(model, "fit") or not any(methods):
            raise SpecError(
                f"{quote(str(model))} is no classifier",
                fix="Give a name, or an object with `fit` and `decision_function` or "
                "`predict_proba`, such as MLPClassifier()",
            )
        # Two that differ in more than their parameters are two, though both are called the same.
        state = "" if hasattr(model, "get_params") else _text(vars(model))
        return cls(_text(model), type(model), state, _parameters(model), model)

    def __str__(self) -> str:
        return self.text

    def fit(self, counts: CountMatrix, labels: NDArray[np.bool_], seed: int = 0) -> Learned:
        return Learned.by(self._fresh(seed), counts, labels)

    def _fresh(self, seed: int) -> Any:  # noqa: ANN401 - any model
        """Return a copy that has learned nothing, with a seed where it has none."""
        if not hasattr(self.model, "get_params"):
            model = deepcopy(self.model)
            if not isinstance(getattr(model, "random_state", 0), Integral):
                model.random_state = seed
            return model
        model = _part("base").clone(self.model)
        params = model.get_params()
        seeds = [name for name in params if name.split("__")[-1] == "random_state"]
        unset = {name: seed for name in seeds if not isinstance(params[name], Integral)}
        return model.set_params(**unset)


def _parameters(model: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return what a model was made with, where it differs from the defaults of its class."""
    given = model.get_params(deep=False) if hasattr(model, "get_params") else vars(model)
    usual = {one.name: one.default for one in signature(type(model)).parameters.values()}
    # Of whatever else a model holds, nobody knows whether it was given.
    names = given.keys() if hasattr(model, "get_params") else given.keys() & usual.keys()
    return {
        name: given[name]
        for name in sorted(names)
        if _text(given[name]) != _text(usual.get(name))
        and (name != "random_state" or isinstance(given[name], Integral))
    }


def _text(value: Any) -> str:  # noqa: ANN401
    """Write a parameter, the same in every process: models by class and parameters."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_text, value))}]"
    if hasattr(value, "fit") and not isinstance(value, type):
        inside = ", ".join(f"{name}={_text(one)}" for name, one in _parameters(value).items())
        return f"{type(value).__name__}({inside})"
    named = getattr(value, "__qualname__", None)
    return named or " ".join(re.sub(r" at 0x\w+", "", repr(value)).split())


def _part(name: str) -> Any:  # noqa: ANN401 - scikit-learn has no types
    """Import a part of scikit-learn, which is optional and slow to import."""
    return optional(f"sklearn.{name}", "This classifier", "learn")


CLASSIFIERS = specs.Catalogue.of("classifier", L1, L1Paper, Forest, Mlp)


def classifier(given: Classifier | Model | str) -> Classifier:
    """Return the classifier that a spec describes, or a user's model as one."""
    if isinstance(given, Classifier):
        return given
    return CLASSIFIERS.parse(given) if isinstance(given, str) else OwnModel.of(given)
