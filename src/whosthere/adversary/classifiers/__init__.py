"""Classifiers that learn membership from labelled aggregates."""

from whosthere.adversary.classifiers.base import Classifier, Decision, youden_threshold
from whosthere.adversary.classifiers.l1 import ExactL1, Linear
from whosthere.adversary.classifiers.scikit import Forest, PaperL1, Perceptron

__all__ = [
    "CLASSIFIERS",
    "Classifier",
    "Decision",
    "ExactL1",
    "Forest",
    "Linear",
    "PaperL1",
    "Perceptron",
    "youden_threshold",
]

CLASSIFIERS: dict[str, type[Classifier]] = {
    kind.name: kind for kind in (ExactL1, PaperL1, Forest, Perceptron)
}
