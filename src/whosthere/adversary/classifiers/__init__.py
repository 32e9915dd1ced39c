"""Classifiers that learn membership from labelled aggregates."""

from __future__ import annotations

from typing import cast

from whosthere import specs
from whosthere.adversary.classifiers.base import Classifier, Decision
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
    "classifier",
]

CLASSIFIERS = specs.Catalogue.of("classifier", ExactL1, PaperL1, Forest, Perceptron)


def classifier(given: Classifier | str) -> Classifier:
    """Return the classifier that a spec describes; a classifier is returned as it is."""
    return given if isinstance(given, Classifier) else cast("Classifier", CLASSIFIERS.parse(given))
