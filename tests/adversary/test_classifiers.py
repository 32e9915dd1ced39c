"""The solver against others, and the threshold against its definition."""

import pickle

import cloudpickle
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import AdaBoostClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from whosthere import rounds, simulate, specs
from whosthere.adversary.attacks import KnockKnock
from whosthere.adversary.attacks.trained import THRESHOLD_RULES, youden_threshold
from whosthere.adversary.classifiers import L1
from whosthere.adversary.models import CLASSIFIERS, Forest, L1Paper, Mlp, classifier
from whosthere.errors import InputError
from whosthere.game.own_code import own_code
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
    ours = L1(c=c, tolerance=1e-7).fit(single(counts), labels)
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
    ours = L1(tolerance=1e-7, standardise=False).fit(single(counts), labels)
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
    usual = L1().fit(single(counts), labels)
    tight = L1(tolerance=1e-8).fit(single(counts), labels)
    assert usual.objective == pytest.approx(tight.objective, rel=1e-6)
    assert usual.cells.size <= 200


def test_no_condition_of_the_optimum_is_violated_by_more_than_the_tolerance(rng):
    """In double precision, whatever precision the solver works in."""
    for tolerance in (1e-3, 1e-6):
        counts, labels = _problem(rng, 200, 3000, 1)
        found = L1(tolerance=tolerance).fit(single(counts), labels)
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
    fits = [kind().fit(single(counts[:200]), labels[:200]) for kind in (L1, L1Paper)]
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
    decision = L1().fit(single(counts), np.arange(10) % 2 == 0)
    assert decision.cells.size == 0
    assert decision(counts[:, decision.cells]).tolist() == [0.0] * 10


def test_order_of_cells_and_rows_does_not_matter(rng):
    counts, labels = _problem(rng, 80, 400, 2)
    rows, cells = rng.permutation(80), rng.permutation(400)
    one = L1(tolerance=1e-8).fit(single(counts), labels)
    two = L1(tolerance=1e-8).fit(single(counts[rows][:, cells].copy()), labels[rows])
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
    assert np.array_equal(scores >= theirs, scores > youden_threshold(scores, labels))


@pytest.mark.parametrize(
    "make",
    [
        lambda: L1(c=0.0),
        lambda: L1(c=float("nan")),
        lambda: L1(tolerance=-1.0),
        lambda: L1Paper(c=float("inf")),
        lambda: L1Paper(most_iterations=0),
        lambda: Forest(trees=0),
        lambda: Forest(trees=2.5),
        lambda: Mlp(hidden=0),
        lambda: classifier("forest(trees=-1)"),
        lambda: classifier(5),
    ],
)
def test_parameters_that_make_no_sense_are_refused(make):
    with pytest.raises(InputError):
        make()


def test_equal_numbers_are_the_same_classifier():
    assert L1(c=2) == classifier("l1(c=2)")
    assert specs.content(L1(c=2)) == specs.content(classifier("l1(c=2.0)"))


class Nearest:
    """A model without scikit-learn: how much closer a group is to those that are in."""

    def __init__(self, shrink=1.0, random_state=None):
        self.shrink, self.random_state = shrink, random_state

    def fit(self, counts, labels):
        assert counts.dtype == np.float64
        self.middles = [counts[labels == kind].mean(axis=0) for kind in (False, True)]
        self.seen = self.random_state
        return self

    def decision_function(self, counts):
        out, inside = (((counts - middle) ** 2).sum(axis=1) for middle in self.middles)
        return self.shrink * (out - inside)


class TestOwnModels:
    def test_an_estimator_is_taken_as_it_is(self, rng):
        counts, labels = _problem(rng, 200, 60, 6)
        for model in (
            GaussianNB(),
            SVC(),
            make_pipeline(StandardScaler(), MLPClassifier((8,), max_iter=500)),
            Nearest(),
        ):
            before = vars(model).copy()
            decision = classifier(model).fit(single(counts[:150]), labels[:150], 7)
            scores = decision(counts[150:][:, decision.cells])
            assert roc_auc_score(labels[150:], scores) > 0.9
            assert vars(model) == before

    @pytest.mark.parametrize(
        ("model", "text"),
        [
            (MLPClassifier(), "MLPClassifier()"),
            (
                MLPClassifier((8, 4), alpha=0.1),
                "MLPClassifier(alpha=0.1, hidden_layer_sizes=[8, 4])",
            ),
            (MLPClassifier(random_state=np.random.RandomState(3)), "MLPClassifier()"),
            (MLPClassifier(random_state=3), "MLPClassifier(random_state=3)"),
            (
                make_pipeline(StandardScaler(), SVC(C=2)),
                "Pipeline(steps=[['standardscaler', StandardScaler()], ['svc', SVC(C=2)]])",
            ),
            (Nearest(), "Nearest()"),
            (Nearest(shrink=2.0), "Nearest(shrink=2.0)"),
            (AdaBoostClassifier(SVC(C=2)), "AdaBoostClassifier(estimator=SVC(C=2))"),
        ],
    )
    def test_it_is_known_by_class_and_parameters(self, model, text):
        attack = KnockKnock(classifier=model)
        assert str(attack) == f"knock-knock(classifier={text})"
        assert attack == KnockKnock(
            classifier=clone(model) if hasattr(model, "get_params") else model
        )
        assert attack == pickle.loads(cloudpickle.dumps(attack))
        assert hash(attack) == hash(KnockKnock(classifier=model))
        assert attack != KnockKnock(classifier=GaussianNB())

    def test_two_that_hold_different_things_are_two(self):
        """A parameter that is kept under another name is in no name of a result."""

        class Hidden(Nearest):
            def __init__(self, much):
                super().__init__()
                self.inside = much

        one, other = (KnockKnock(classifier=Hidden(much)) for much in (1, 2))
        assert str(one) == str(other)
        assert one == KnockKnock(classifier=Hidden(1)) != other

    def test_a_model_of_a_users_own_is_part_of_the_identity(self):
        class Changed(Nearest):
            def decision_function(self, counts):
                return -super().decision_function(counts)

        Changed.__name__ = Changed.__qualname__ = "Nearest"
        codes = [own_code(KnockKnock(classifier=kind())) for kind in (Nearest, Nearest, Changed)]
        assert codes[0] == codes[1] != codes[2]
        assert own_code(KnockKnock(classifier=SVC())) is None

    def test_what_it_draws_belongs_to_the_seed(self, rng):
        counts, labels = _problem(rng, 60, 20, 2)
        scores = [
            classifier(MLPClassifier((4,), max_iter=20)).fit(single(counts), labels, seed)(counts)
            for seed in (1, 1, 2)
        ]
        assert (scores[0] == scores[1]).all()
        assert (scores[0] != scores[2]).any()
        seeds = [
            classifier(Nearest(random_state=given)).fit(single(counts), labels, 5).model.seen
            for given in (None, 9)
        ]
        assert seeds == [5, 9]
        steps = make_pipeline(StandardScaler(), SVC(random_state=4), memory=None)
        assert classifier(steps).fit(single(counts), labels, 5).model[-1].random_state == 4

    @pytest.mark.parametrize("given", [MLPClassifier, StandardScaler(), 5, None, object(), len])
    def test_what_cannot_decide_is_refused(self, given):
        with pytest.raises(InputError, match="is no classifier"):
            KnockKnock(classifier=given)

    @pytest.mark.parametrize(
        "wrong",
        [lambda n: np.zeros((n, 1)), lambda n: np.full(n, np.nan), lambda n: np.zeros(n + 1)],
    )
    def test_wrong_answers_are_refused(self, rng, wrong):
        class Wrong(Nearest):
            def decision_function(self, counts):
                return wrong(len(counts))

        counts, labels = _problem(rng, 20, 5, 2)
        with pytest.raises(InputError, match="Wrong returned"):
            classifier(Wrong()).fit(single(counts), labels)(counts)

    def test_an_audit_by_one(self):
        traces = simulate("milan-like", seed=7, users=200, days=1, regions=9).traces()
        words = {"mechanisms": "raw", "group_size": 20, "targets": 2, "releases": 2, "seed": 1}
        attacks = [
            KnockKnock(classifier=MLPClassifier((4,), max_iter=20), groups=20),
            "likelihood-ratio",
        ]
        one, two = (
            [round_.score(attacks[0]).score for round_ in rounds(traces, attacks=attacks, **words)]
            for _ in range(2)
        )
        assert one == two
        assert len(set(one)) > 1
