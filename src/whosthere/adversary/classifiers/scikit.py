"""Classifiers of scikit-learn: the paper's own, and two that are not linear.

They need the `learn` extra.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from whosthere import specs
from whosthere.adversary.classifiers.base import Classifier, Decision
from whosthere.errors import MissingExtraError
from whosthere.privacy.parameters import check_integer, check_positive

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.kernels.count_matrix import CountMatrix


@dataclass(frozen=True, eq=False)
class Pipeline(Decision):
    """A fitted scikit-learn model over all cells."""

    cells: NDArray[np.int64]
    model: Any

    def __call__(self, counts: NDArray[np.integer]) -> NDArray[np.float64]:
        if hasattr(self.model, "decision_function"):
            return np.asarray(self.model.decision_function(counts))
        # The log of the odds, kept finite where a model is certain.
        chance = np.clip(self.model.predict_proba(counts)[:, 1], 1e-12, 1 - 1e-12)
        return np.asarray(np.log(chance / (1 - chance)))


@dataclass(frozen=True)
class PaperL1(Classifier):
    """Logistic regression as the paper trains it: liblinear with scikit-learn's defaults.

    It stops at a tolerance of 1e-4 or after 100 iterations, often before its optimum.
    """

    c: float = specs.parameter(specs.NUMBER, "weight of the loss", default=1.0)
    tolerance: float = specs.parameter(specs.NUMBER, "where to stop", default=1e-4)
    most_iterations: int = specs.parameter(
        specs.WHOLE, "iterations at most", default=100, key="iterations"
    )
    name: ClassVar[str] = "l1-paper"
    summary: ClassVar[str] = (
        "the paper's own: the same by liblinear, which may stop before its optimum"
    )

    def __post_init__(self) -> None:
        for name in ("c", "tolerance"):
            object.__setattr__(self, name, check_positive(getattr(self, name), name))
        most = check_integer(self.most_iterations, "iterations", least=1)
        object.__setattr__(self, "most_iterations", most)

    def fit(self, counts: CountMatrix, labels: NDArray[np.bool_]) -> Pipeline:
        model = _part("linear_model").LogisticRegression(
            l1_ratio=1,
            solver="liblinear",
            C=self.c,
            tol=self.tolerance,
            max_iter=self.most_iterations,
            random_state=0,
        )
        return _fitted(model, counts, labels)


@dataclass(frozen=True)
class Forest(Classifier):
    """A random forest."""

    trees: int = specs.parameter(specs.WHOLE, "how many trees", default=200)
    name: ClassVar[str] = "forest"
    summary: ClassVar[str] = "a random forest"

    def __post_init__(self) -> None:
        object.__setattr__(self, "trees", check_integer(self.trees, "trees", least=1))

    def fit(self, counts: CountMatrix, labels: NDArray[np.bool_]) -> Pipeline:
        model = _part("ensemble").RandomForestClassifier(self.trees, random_state=0)
        model.fit(counts.dense(), labels)
        return Pipeline(np.arange(counts.shape[1]), model)


@dataclass(frozen=True)
class Perceptron(Classifier):
    """A neural network with one hidden layer."""

    hidden: int = specs.parameter(specs.WHOLE, "hidden neurons", default=100)
    name: ClassVar[str] = "mlp"
    summary: ClassVar[str] = "a neural network with one hidden layer"

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", check_integer(self.hidden, "hidden", least=1))

    def fit(self, counts: CountMatrix, labels: NDArray[np.bool_]) -> Pipeline:
        model = _part("neural_network").MLPClassifier((self.hidden,), random_state=0)
        return _fitted(model, counts, labels)


def _fitted(
    model: Any,  # noqa: ANN401 - any scikit-learn classifier
    counts: CountMatrix,
    labels: NDArray[np.bool_],
) -> Pipeline:
    pipeline = _part("pipeline").make_pipeline(_part("preprocessing").StandardScaler(), model)
    with warnings.catch_warnings():
        # Stopping early is part of the paper's settings.
        warnings.simplefilter("ignore", _part("exceptions").ConvergenceWarning)
        pipeline.fit(counts.dense().astype(np.float64), labels)
    return Pipeline(np.arange(counts.shape[1]), pipeline)


def _part(name: str) -> Any:  # noqa: ANN401 - scikit-learn has no types
    """Import a part of scikit-learn, which is optional and slow to import."""
    try:
        return import_module(f"sklearn.{name}")
    except ImportError as error:
        raise MissingExtraError("This classifier", "learn") from error
