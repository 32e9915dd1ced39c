"""The solver against others, and the threshold against its definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.preprocessing import StandardScaler

from whosthere import specs
from whosthere.adversary.attacks.trained import THRESHOLD_RULES, youden_threshold
from whosthere.adversary.classifiers import (
    CLASSIFIERS,
    ExactL1,
    Forest,
    PaperL1,
    Perceptron,
    classifier,
)
from whosthere.errors import InputError
from whosthere.kernels import CountMatrix


def single(by_group):
    return CountMatrix.single(by_group.T.copy())


def _problem(rng, n, p, signal, dtype=np.uint8):
    labels = np.arange(n) % 2 == 0
    counts = rng.poisson(rng.gamma(1, 2, p), (n, p))
    counts[np.ix_(labels, rng.choice(p, max(1, p // 20)))] += signal
    counts[:, : p // 10] = 4  # cells that never change
    return counts.astype(dtype), labels


def _objective(counts, labels, decision, c=1.0):
    """Compute what is minimised from the weights alone."""
    scaler = StandardScaler().fit(counts.astype(float))
    w = np.zeros(counts.shape[1])
    w[decision.cells] = decision.weights * scaler.scale_[decision.cells]
    b = decision.offset + decision.weights @ scaler.mean_[decision.cells]
    margins = scaler.transform(counts.astype(float)) @ w + b
    signs = np.where(labels, 1.0, -1.0)
    return np.abs(w).sum() + abs(b) + c * np.logaddexp(0, -signs * margins).sum()


@pytest.mark.parametrize("signal", [0, 1, 4])
@pytest.mark.parametrize(("n", "p"), [(40, 30), (60, 700), (100, 3000)])
@pytest.mark.parametrize("c", [0.05, 1.0, 10.0])
def test_the_optimum_is_that_of_liblinear_at_tight_tolerance(rng, n, p, c, signal):
    counts, labels = _problem(rng, n, p, signal)
    ours = ExactL1(c=c, tolerance=1e-7).fit(single(counts), labels)
    x = StandardScaler().fit_transform(counts.astype(float))
    theirs = LogisticRegression(l1_ratio=1, solver="liblinear", C=c, tol=1e-10, max_iter=20_000)
    theirs.fit(x, labels)
    signs = np.where(labels, 1.0, -1.0)
    weights = np.append(theirs.coef_[0], theirs.intercept_)
    margins = x @ weights[:-1] + weights[-1]
    expected = np.abs(weights).sum() + c * np.logaddexp(0, -signs * margins).sum()
    assert ours.objective == pytest.approx(_objective(counts, labels, ours, c), rel=1e-9)
    assert ours.objective <= expected * (1 + 1e-7)
    assert ours.objective == pytest.approx(expected, rel=1e-4)


def test_plain_counts_have_the_optimum_of_liblinear_too(rng):
    counts, labels = _problem(rng, 60, 400, 1)
    ours = ExactL1(tolerance=1e-7, standardise=False).fit(single(counts), labels)
    theirs = LogisticRegression(l1_ratio=1, solver="liblinear", C=1, tol=1e-10, max_iter=20_000)
    theirs.fit(counts.astype(float), labels)
    signs = np.where(labels, 1.0, -1.0)

    def objective(weights, offset):
        margins = counts @ weights + offset
        return np.abs(weights).sum() + abs(offset) + np.logaddexp(0, -signs * margins).sum()

    weights = np.zeros(counts.shape[1])
    weights[ours.cells] = ours.weights
    assert ours.objective == pytest.approx(objective(weights, ours.offset), rel=1e-9)
    expected = objective(theirs.coef_[0], theirs.intercept_[0])
    assert ours.objective == pytest.approx(expected, rel=1e-4)


def test_the_usual_tolerance_is_close_to_the_optimum(rng):
    counts, labels = _problem(rng, 200, 5000, 1)
    usual = ExactL1().fit(single(counts), labels)
    tight = ExactL1(tolerance=1e-8).fit(single(counts), labels)
    assert usual.objective == pytest.approx(tight.objective, rel=1e-6)
    assert usual.cells.size <= 200


def test_no_condition_of_the_optimum_is_violated_by_more_than_the_tolerance(rng):
    """In double precision, whatever precision the solver works in."""
    for tolerance in (1e-3, 1e-6):
        counts, labels = _problem(rng, 200, 3000, 1)
        found = ExactL1(tolerance=tolerance).fit(single(counts), labels)
        x = StandardScaler().fit_transform(counts.astype(float))
        signs = np.where(labels, 1.0, -1.0)
        slopes = -signs / (1 + np.exp(signs * found(counts[:, found.cells])))
        gradient = slopes @ x
        used = np.isin(np.arange(3000), found.cells)
        assert np.abs(gradient[~used]).max() < 1 + 1.1 * tolerance + 1e-5
        off = np.abs(gradient[found.cells] + np.sign(found.weights))
        assert off.max() < tolerance


def test_both_solvers_give_the_same_auc_within_noise(rng):
    """Scores of 400 further aggregates; their AUC has a standard error of about 0.02."""
    counts, labels = _problem(rng, 600, 1000, 2)
    fits = [kind().fit(single(counts[:200]), labels[:200]) for kind in (ExactL1, PaperL1)]
    aucs = [roc_auc_score(labels[200:], fit(counts[200:][:, fit.cells])) for fit in fits]
    assert aucs[0] == pytest.approx(aucs[1], abs=0.01)


@pytest.mark.parametrize("name", CLASSIFIERS.kinds)
def test_every_classifier_finds_a_clear_signal(rng, name):
    counts, labels = _problem(rng, 200, 60, 6)
    decision = classifier(name).fit(single(counts[:150]), labels[:150])
    scores = decision(counts[150:][:, decision.cells])
    assert np.isfinite(scores).all()
    assert roc_auc_score(labels[150:], scores) > 0.95


def test_constant_counts_teach_nothing():
    counts = np.full((10, 5), 3, np.uint8)
    decision = ExactL1().fit(single(counts), np.arange(10) % 2 == 0)
    assert decision.cells.size == 0
    assert decision(counts[:, decision.cells]).tolist() == [0.0] * 10


def test_order_of_cells_and_rows_does_not_matter(rng):
    counts, labels = _problem(rng, 80, 400, 2)
    rows, cells = rng.permutation(80), rng.permutation(400)
    one = ExactL1(tolerance=1e-8).fit(single(counts), labels)
    two = ExactL1(tolerance=1e-8).fit(single(counts[rows][:, cells].copy()), labels[rows])
    assert one.objective == pytest.approx(two.objective, rel=1e-8)


@given(
    st.lists(st.tuples(st.integers(-5, 5), st.booleans()), min_size=2).filter(
        lambda rows: {label for _, label in rows} == {True, False}
    )
)
def test_the_threshold_maximises_youdens_j(rows):
    scores = np.array([s for s, _ in rows], float)
    labels = np.array([label for _, label in rows])

    def j(threshold):
        return (scores[labels] > threshold).mean() - (scores[~labels] > threshold).mean()

    for rule in THRESHOLD_RULES:
        found = youden_threshold(scores, labels, rule)
        assert j(found) == pytest.approx(max(j(t) for t in np.arange(-6.5, 7)))


@given(
    st.lists(st.tuples(st.integers(-5, 5), st.booleans()), min_size=2).filter(
        lambda rows: {label for _, label in rows} == {True, False}
    )
)
def test_the_roc_rule_is_that_of_scikit_learn(rows):
    scores, labels = np.array([s for s, _ in rows], float), np.array([y for _, y in rows])
    false, true, thresholds = roc_curve(labels, scores)
    theirs = thresholds[np.argmax(np.round(true - false, 9))]
    assert np.array_equal(scores >= theirs, scores > youden_threshold(scores, labels, "roc"))


@pytest.mark.parametrize(
    "make",
    [
        lambda: ExactL1(c=0.0),
        lambda: ExactL1(c=float("nan")),
        lambda: ExactL1(tolerance=-1.0),
        lambda: PaperL1(c=float("inf")),
        lambda: PaperL1(most_iterations=0),
        lambda: Forest(trees=0),
        lambda: Forest(trees=2.5),
        lambda: Perceptron(hidden=0),
        lambda: classifier("forest(trees=-1)"),
        lambda: classifier(5),
    ],
)
def test_parameters_that_make_no_sense_are_refused(make):
    with pytest.raises(InputError):
        make()


def test_equal_numbers_are_the_same_classifier():
    assert ExactL1(c=2) == classifier("l1(c=2)")
    assert specs.content(ExactL1(c=2)) == specs.content(classifier("l1(c=2.0)"))
