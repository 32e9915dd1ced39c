"""ROC curves with bands over people, from scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whosthere.inference.scores import comparable_scores
from whosthere.reporting.charts.roc import Curve
from whosthere.seeds import generator

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

RATES = np.union1d(np.linspace(0, 1, 51), np.geomspace(1e-4, 1, 49))
"""The false positive rates that curves are drawn at."""
_RESAMPLES = 200


def roc_curve(rows: pl.DataFrame, *, name: str, class_: str, seed: int) -> Curve:
    """Return how many people are found at each rate of false alarms, over all targets together.

    The band holds 95 % of the curves of resamples of the targets, each with all of its releases.

    Parameters
    ----------
    rows
        The test scores of one attack in one setting.
    seed
        Of the resamples.
    """
    scores, labels = comparable_scores(rows), rows["label"].to_numpy()
    _, target = np.unique(rows["target"].to_numpy(), return_inverse=True)
    order = np.argsort(-scores, kind="stable")
    # A threshold cannot lie between equal scores.
    last = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))
    labels, target = labels[order], target[order]
    n_targets = int(target.max()) + 1
    rng = generator(seed, "band of a curve")
    draws = rng.multinomial(n_targets, np.full(n_targets, 1 / n_targets), size=_RESAMPLES)
    curves = np.stack([_found(labels, weight[target], last) for weight in draws])
    low, high = np.percentile(curves, (2.5, 97.5), axis=0)
    middle = _found(labels, np.ones(labels.size, np.int64), last)
    return Curve(name, class_, RATES, middle, np.minimum(low, middle), np.maximum(high, middle))


def _found(labels: NDArray[np.bool_], weights: NDArray[np.int64], last: NDArray[np.intp]) -> Floats:
    """Return the share of people found at each rate, of releases with weights, best score first."""
    tp, fp = np.cumsum(weights * labels)[last], np.cumsum(weights * ~labels)[last]
    rates = np.append(0.0, fp / max(int(fp[-1]), 1))
    found = np.append(0.0, tp / max(int(tp[-1]), 1))
    return np.asarray(found[np.searchsorted(rates, RATES + 1e-12, side="right") - 1])
