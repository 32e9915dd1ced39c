"""Classifiers that learn membership from labelled aggregates.

L1 logistic regression is solved at its optimum, over all cells at once. Hundreds of aggregates over
hundreds of thousands of cells would be gigabytes as standardised floats. So the gradient of all
cells is one weighted column sum of the integer counts, standardised afterwards: (sum of slope *
count - mean * sum of slopes) / deviation. An optimum exists with no more weights than aggregates,
so only a working set of cells is copied out as floats and solved. One pass over all cells then
shows which were missing; it ends when none violates the optimality conditions by more than the
tolerance.

The others are scikit-learn's, which need the `learn` extra, or a user's own.
"""

from __future__ import annotations

import re
import warnings
from abc import ABC, abstractmethod
from copy import deepcopy
from dataclasses import dataclass, field
from inspect import signature
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from whosthere import kernels, specs
from whosthere.errors import InputError, SpecError, optional, quote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from whosthere.kernels.count_matrix import CountMatrix

# Cells that join the set to work on each time, at least; later on as many as are in use.
_LEAST_ROOM = 128
_MOST_ROUNDS = 60
# How exact the working set is solved, as a share of the worst violation outside of it.
_COARSENESS = 0.3
# Tolerances from which on single precision is far more exact than needed.
_FINE = 3e-4


class Decision(ABC):
    """A fitted classifier: higher scores mean that the target is more likely in.

    `cells` are those that it looks at, shape (k,); it never needs any other.
    """

    cells: NDArray[np.int64]

    @abstractmethod
    def __call__(self, counts: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return a score for each row of the counts of its cells, shape (n, k) -> (n,)."""


@dataclass(frozen=True)
class Classifier(ABC):
    """A way to learn from labelled aggregates."""

    name: ClassVar[str]
    summary: ClassVar[str]

    def __post_init__(self) -> None:
        """Check the parameters."""
        specs.check_parameters(self)

    def __str__(self) -> str:
        return specs.write(self)

    @abstractmethod
    def fit(self, counts: CountMatrix, labels: NDArray[np.bool_], seed: int = 0) -> Decision:
        """Learn from the counts of n groups and labels of shape (n,)."""


@dataclass(frozen=True, eq=False)
class Linear(Decision):
    """A weighted sum of the counts of a few cells, and an offset.

    `objective` is the value of what was minimised, at the weights found.
    """

    cells: NDArray[np.int64]
    weights: NDArray[np.float64]
    offset: float
    objective: float

    def __call__(self, counts: NDArray[np.integer]) -> NDArray[np.float64]:
        return np.asarray(counts.astype(np.float64) @ self.weights + self.offset)


@dataclass(frozen=True)
class L1(Classifier):
    """Minimise  ||w||_1 + |b| + C * sum log(1 + exp(-y (x w + b)))  over the cells.

    The objective is that of liblinear, which penalises the intercept b too. The tolerance is the
    largest violation of the optimality conditions (the penalty's slope is 1). Standardised counts
    are deviations from the mean of their cell, so that the penalty treats quiet and busy cells
    alike.
    """

    c: float = specs.parameter(specs.POSITIVE, "weight of the loss", default=1.0)
    tolerance: float = specs.parameter(specs.POSITIVE, "largest violation allowed", default=1e-3)
    standardise: bool = specs.parameter(
        specs.YES_NO, "whether counts are standardised, or taken as they are", default=True
    )
    name: ClassVar[str] = "l1"
    summary: ClassVar[str] = "logistic regression with an L1 penalty, at its optimum"

    def fit(self, counts: CountMatrix, labels: NDArray[np.bool_], seed: int = 0) -> Linear:  # noqa: ARG002
        n = len(labels)
        signs = np.where(labels, 1.0, -1.0)
        mean, scale = self.moments(counts)
        if not self.standardise:
            mean, scale = np.zeros_like(mean), np.ones_like(scale)
        coarse_mean, coarse_scale = mean.astype(np.float32), scale.astype(np.float32)
        # What is worked on: first the intercept, a feature that is always 1, then some cells.
        precision = np.float32 if self.tolerance >= _FINE else np.float64
        cells, weights, features = np.empty(0, np.int64), np.zeros(1), np.ones((1, n), precision)
        margins = np.zeros(n)
        finest = 0.3 * self.tolerance
        reached = np.inf
        for _ in range(_MOST_ROUNDS):
            slope = -self.c * signs / (1.0 + np.exp(signs * margins))
            gradient = np.abs(kernels.standardised_sums(counts, slope, coarse_mean, coarse_scale))
            # Single precision is enough to rank cells; those worked on are known more exactly.
            gradient[cells] = 0.0
            missing = np.flatnonzero(gradient > 1.0 + self.tolerance)
            if not missing.size and reached <= finest:
                break
            worst = float(gradient[missing].max(initial=1.0)) - 1.0
            if missing.size:
                # Cells in use stay, and about as many that miss a weight most join.
                kept = weights != 0
                kept[0] = True
                room = max(int(kept.sum()), _LEAST_ROOM)
                if missing.size > room:
                    missing = missing[np.argpartition(-gradient[missing], room)[:room]]
                cells = np.concatenate([cells[kept[1:]], missing])
                weights = np.concatenate([weights[kept], np.zeros(missing.size)])
                new = np.empty((missing.size, n), precision)
                kernels.standardised_cells(counts, missing, mean, scale, new)
                features = np.concatenate([features[kept], new])
            # As long as cells are missing that matter, there is no use in being much more exact.
            reached = max(finest, _COARSENESS * worst)
            margins = kernels.minimise(features, signs, self.c, weights, reached)
        else:
            warnings.warn("the classifier did not reach its optimum", stacklevel=2)
        objective = np.abs(weights).sum() + self.c * np.logaddexp(0.0, -signs * margins).sum()
        # From weights of standardised cells, the intercept's first, to weights of plain counts.
        order = np.argsort(cells)
        used = order[weights[1:][order] != 0]
        cells, per_person = cells[used], weights[1:][used] / scale[cells[used]]
        offset = float(weights[0] - per_person @ mean[cells])
        return Linear(cells, per_person, offset, float(objective))

    def moments(self, counts: CountMatrix) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return mean and deviation of each cell, by which counts are standardised."""
        return moments(counts.shape[0], *kernels.cell_sums(counts))


def moments(
    n: int, total: NDArray[np.float64], squares: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and deviation of each cell; a constant cell gets 1, and so becomes all zero."""
    mean = total / n
    # Whole numbers below 2**53: the variance of a constant cell is exactly zero.
    variance = (n * squares - total * total) / (n * n)
    return mean, np.sqrt(np.where(variance > 0, variance, 1.0))


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
