"""The trained attacks as one would write them down: numpy, scipy.sparse and scikit-learn.

Nothing of whosthere is in here. People are rows of a sparse matrix, noise comes from
`Generator.laplace`, the classifier is StandardScaler and liblinear on floats with the paper's
settings. A group is added up one trace after the other, or at once where `at_once` is set, which is
what somebody would do who has looked where the time goes. Benchmarks compare with both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_matrix
from scipy.spatial import Delaunay
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_curve
from sklearn.preprocessing import StandardScaler

N_TRAINING, N_VALIDATION, N_HAUNTS = 400, 100, 10
Publish = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def suppress(k: int) -> Publish:
    """Publish counts up to k as 0."""
    return lambda counts, _: np.where(counts <= k, 0, counts)


def laplace(scale: float, m: int) -> Publish:
    """Add noise, round down, and stay within 0 and m."""
    return lambda counts, rng: np.clip(np.floor(counts + rng.laplace(0, scale, counts.shape)), 0, m)


@dataclass(frozen=True)
class Game:
    """Who is looked for, and how groups are published; `at_once` says how they are added up."""

    target: csr_matrix
    m: int
    publish: Publish
    at_once: bool = False


@dataclass(frozen=True)
class Habits:
    """Where and when people are seen, how often, and which regions lie next to each other."""

    space: np.ndarray
    time: np.ndarray
    mean: float
    next_to: list[set[int]]


@dataclass(frozen=True)
class Learned:
    """A classifier with its scaler and threshold."""

    scaler: StandardScaler
    model: LogisticRegression
    threshold: float

    def score(self, counts: np.ndarray) -> float:
        """Return the score of a release, above 0 if it is called in."""
        scaled = self.scaler.transform(counts.reshape(1, -1))
        return float(self.model.decision_function(scaled)[0]) - self.threshold


def add_up(people: csr_matrix, rows: np.ndarray, *, at_once: bool) -> np.ndarray:
    """Count the people in some rows, shape (n_cells,)."""
    if at_once:
        return np.asarray(people[rows].sum(axis=0)).ravel()
    total = people[rows[0]]
    for row in rows[1:]:
        total = total + people[row]
    return total.toarray().ravel()


def learn(people: csr_matrix, game: Game, rng: np.random.Generator) -> Learned:
    """Train on paired groups of the people with and without the target, and tune a threshold."""
    rows, labels = [], []
    for _ in range(N_TRAINING // 2):
        group = rng.choice(people.shape[0], game.m, replace=False)
        others = add_up(people, group[:-1], at_once=game.at_once)
        seed = rng.integers(2**63)
        for label, last in ((1, game.target), (0, people[group[-1]])):
            counts = others + last.toarray().ravel()
            rows.append(game.publish(counts, np.random.default_rng(seed)))
            labels.append(label)
    training = np.array(rows, dtype=np.float64)
    scaler = StandardScaler().fit(training)
    model = LogisticRegression(l1_ratio=1, solver="liblinear", C=1.0, tol=1e-4, max_iter=100)
    model.fit(scaler.transform(training), labels)
    rows, labels = [], []
    for i in range(N_VALIDATION):
        group = rng.choice(people.shape[0], game.m, replace=False)
        counts = add_up(people, group[:-1], at_once=game.at_once)
        counts = counts + (game.target if i % 2 else people[group[-1]]).toarray().ravel()
        rows.append(game.publish(counts, rng))
        labels.append(i % 2)
    scores = model.decision_function(scaler.transform(np.array(rows, dtype=np.float64)))
    false, true, thresholds = roc_curve(labels, scores)
    return Learned(scaler, model, float(thresholds[1:][np.argmax((true - false)[1:])]))


def zero_knowledge(
    counts: np.ndarray,
    positions: np.ndarray,
    game: Game,
    rng: np.random.Generator,
    *,
    correct: Callable[[np.ndarray], np.ndarray],
    n_people: int = 5000,
) -> float:
    """Score one release (n_regions, n_epochs) by people who are made up from it."""
    space, time = (correct(counts.sum(axis=axis) / max(counts.sum(), 1)) for axis in (1, 0))
    empty = game.publish(np.zeros(counts.size), rng).sum()
    mean = max((counts.sum() - empty) / game.m, 1.0)
    habits = Habits(space, time, mean, _neighbours(positions))
    for _ in range(5):
        everybody = add_up(_made_up(game.m, habits, rng), np.arange(game.m), at_once=game.at_once)
        missing = (counts.sum() - game.publish(everybody, rng).sum()) / game.m
        habits = replace(habits, mean=max(habits.mean + missing, 1.0))
    return learn(_made_up(n_people, habits, rng), game, rng).score(counts)


def compressed(shares: np.ndarray) -> np.ndarray:
    """Make shares more even, as the paper does under suppression."""
    values = np.log1p(shares / shares[shares > 0].min())
    return values / values.sum()


def stretched(shares: np.ndarray) -> np.ndarray:
    """Make shares less even, as the paper does under noise."""
    power, values = 1.0, shares
    while values.var() < 1 / (3 * shares.size**2) and power < 100:
        power += 0.01
        values = shares**power / (shares**power).sum()
    return values


def _neighbours(positions: np.ndarray) -> list[set[int]]:
    found: list[set[int]] = [set() for _ in positions]
    for corners in Delaunay(positions).simplices:
        for a in corners:
            found[a] |= {int(b) for b in corners if b != a}
    return found


def _made_up(n: int, habits: Habits, rng: np.random.Generator) -> csr_matrix:
    space, time = habits.space, habits.time
    rows, cells = [], []
    for person in range(n):
        haunts = [int(rng.choice(space.size, p=space))]
        around = set(habits.next_to[haunts[0]])
        while len(haunts) < min(N_HAUNTS, space.size) and around:
            chosen = sorted(around)[rng.integers(len(around))]
            haunts.append(chosen)
            around = (around | habits.next_to[chosen]) - set(haunts)
        visits = max(round(rng.exponential(habits.mean)), 1)
        shares = space[haunts] / space[haunts].sum() if space[haunts].sum() else None
        regions = rng.choice(haunts, visits, p=shares)
        epochs = rng.choice(time.size, visits, p=time)
        visited = np.unique(regions * time.size + epochs)
        rows.append(np.full(visited.size, person))
        cells.append(visited)
    where = np.concatenate(rows), np.concatenate(cells)
    return csr_matrix((np.ones(where[0].size), where), shape=(n, space.size * time.size))
