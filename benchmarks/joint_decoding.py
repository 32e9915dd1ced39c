"""How much more somebody finds who has everybody's traces, and how much is left to find.

    whosthere simulate milan-like --seed 1 --users 6500 --out city
    whosthere ingest city/records.parquet --regions city/regions.csv --out traces.parquet
    python benchmarks/joint_decoding.py traces.parquet
    python benchmarks/joint_decoding.py traces.parquet --show knowing
    python benchmarks/joint_decoding.py traces.parquet --show expected

Plays rounds of the game of everybody: 2,500 people are set aside as knock-knock's reference, and
each of the other 4,000 is in with chance 1/4. AUC and TPR at 1 % FPR are those of all people with
five or more visits together in one release; means and standard errors are over releases.
Knock-knock attacks some of them one by one: its numbers are over all of its calibrated scores, with
errors by leaving out one person after the other. With `knowing`, joint decoding is told of most
people whether they are in, and asked about the others, until everybody was asked. With `expected`,
what the attacks themselves expect at 1 % of false alarms stands beside what happened.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import rankdata

from whosthere.adversary.attacks import JointDecoding, KnockKnock, LikelihoodRatio
from whosthere.adversary.attacks.joint_decoding import decode
from whosthere.adversary.everybody import ScoresOfEverybody
from whosthere.data.traces import Traces
from whosthere.game.everybody import EverybodyGame, set_aside
from whosthere.game.plan import Contest, Plan, Setting
from whosthere.game.rounds import Population, Task
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.scheme import Scheme
from whosthere.seeds import generator

if TYPE_CHECKING:
    from whosthere.arrays import Bools, Floats
    from whosthere.game.everybody import EverybodyRounds

REFERENCE, GAME, SEED = 2500, EverybodyGame(include=0.25, min_visits=5), 1
MECHANISMS = (
    "suppress(k=1)",
    "suppress(k=2)",
    "suppress(k=3)",
    "suppress(k=5)",
    "round(to=5)",
    "random-round(to=3)",
    "laplace(eps=0.5, unit=event)",
    "laplace(eps=1, unit=event)",
    "laplace(eps=1, unit=event) | suppress(k=1)",
    "laplace(eps=5, unit=user-day, max_visits=10)",
)
# Into so many parts people are split, to ask one after the other and be told of the others.
PARTS = (1, 2, 4, 10, 100)
SURE = 60.0


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("traces")
    parser.add_argument("--releases", type=int, default=24)
    parser.add_argument("--targets", type=int, default=40, help="of knock-knock")
    parser.add_argument("--mechanisms", nargs="*", default=MECHANISMS)
    parser.add_argument("--show", choices=SHOWN, default="compared")
    given = parser.parse_args()
    people = Traces.load(given.traces)
    show, heads = SHOWN[given.show]
    print("| protection |", " | ".join(heads), "|")
    print("|---" * (len(heads) + 1) + "|")
    for mechanism in given.mechanisms:
        cells = show(people, mechanism, given.releases, given.targets)
        print(f"| `{mechanism}` |".replace(" | s", " \\| s"), " | ".join(cells), "|", flush=True)


def rounds_of(people: Traces, mechanism: str, releases: int, targets: int) -> EverybodyRounds:
    """Return the rounds of the game of everybody under a mechanism."""
    n = people.n_users - REFERENCE
    scheme = Scheme.of(Mechanism.parse(mechanism), GAME.group_size(n))
    asked = people.visits_per_user() >= GAME.min_visits
    asked[set_aside(SEED, people.n_users, REFERENCE)] = False
    chosen = generator(SEED, "targets").permutation(np.flatnonzero(asked))[:targets]
    attacks = LikelihoodRatio(), KnockKnock(), JointDecoding()
    plan = Plan(
        contests=tuple(Contest(Setting(scheme), one) for one in attacks),
        targets=tuple(map(int, np.sort(chosen))),
        releases=releases,
        control_releases=0,
        reference_size=REFERENCE,
        past_releases=0,
        first_epoch=0,
        seed=SEED,
        game=GAME,
    )
    return GAME.rounds(Population.of(people), plan, Task(0, scheme, "block"))


def compared(people: Traces, mechanism: str, releases: int, targets: int) -> list[str]:
    """Return what each attack finds in the same releases, and the ceiling."""
    rounds = rounds_of(people, mechanism, releases, targets)
    by_ratio, by_knock, by_joint = rounds.players(rounds.plan.contests)
    everybody = people.select(rounds.people)
    found, knocked, decoded, seconds = [], [], [], []
    for i in range(releases):
        drawn = rounds.test(i)
        label = drawn.labels_of(rounds.everybody)
        begun = time.perf_counter()
        joint = by_joint.said(drawn).everybody
        seconds.append(time.perf_counter() - begun)
        decoded.append(decode(drawn.publication.releases, [everybody]))
        scores = by_ratio.said(drawn).everybody, joint, rounds.optimum_of_everybody(drawn)
        found.append([measured(one, label) for one in scores])
        said = by_knock.answers(drawn)
        knocked.append([(drawn.labels[row], one.calibrated) for row, one in said.items()])
    ratio, joint, ceiling = (shown(one) for one in np.array(found).swapaxes(0, 1))
    at_rest = sum(one.is_at_rest for one in decoded)
    took = f"{np.median([one.rounds for one in decoded]):.0f} (at rest: {at_rest} of {releases})"
    return [ratio, jackknifed(np.array(knocked)), joint, took, f"{np.mean(seconds):.2f}", ceiling]


def knowing(people: Traces, mechanism: str, releases: int, targets: int) -> list[str]:
    """Return what joint decoding finds that is told of some people whether they are in."""
    rounds = rounds_of(people, mechanism, releases, targets)
    everybody, asked = people.select(rounds.people), np.isin(rounds.people, rounds.everybody)
    n = rounds.people.size
    found = []
    for i in range(releases):
        drawn = rounds.test(i)
        inside, each = drawn.included[rounds.people], []
        for parts in PARTS:
            part, score = generator(SEED, "told", i).permutation(n) % parts, np.zeros(n)
            for one in range(parts):
                before = np.where(inside, SURE, -SURE)
                before[part == one] = np.log(GAME.include / (1 - GAME.include))
                known = decode(drawn.publication.releases, [everybody], log_odds=before)
                score[part == one] = known.score[part == one]
            each.append(measured(score[asked], inside[asked]))
        each.append(measured(rounds.optimum_of_everybody(drawn), inside[asked]))
        found.append(each)
    return [shown(one) for one in np.array(found).swapaxes(0, 1)]


def expected(people: Traces, mechanism: str, releases: int, targets: int) -> list[str]:
    """Return what attacks expect of those whom they call in at 1 % of false alarms, and what is."""
    rounds = rounds_of(people, mechanism, releases, targets)
    everybody, n = people.select(rounds.people), rounds.people.size
    found: list[list[tuple[float, float, float]]] = []
    for i in range(releases):
        drawn = rounds.test(i)
        inside, release = drawn.included[rounds.people], drawn.publication.release
        for attack in (LikelihoodRatio(), JointDecoding()):
            scores = attack.score_everybody(release, everybody)
            m = release.group_size
            said = ScoresOfEverybody(str(attack), m, m / n, everybody.users, scores).found([0.01])[
                0
            ]
            called = np.argsort(-scores, kind="stable")[: said.people or 0]
            right = inside[called]
            found.append([(said.right or np.nan, right.mean(), (~right).sum() / (~inside).sum())])
    by_attack = np.array(found).reshape(releases, 2, 3).swapaxes(0, 1)
    return [cell for one in by_attack for cell in shown(one).split(" / ")]


def measured(scores: Floats, label: Bools) -> tuple[float, float]:
    """Return AUC and TPR at 1 % FPR."""
    inside = np.count_nonzero(label)
    above = rankdata(scores)[label].sum() - inside * (inside + 1) / 2
    # Of those who are out, the share of false alarms that a threshold allows is interpolated.
    thresholds = np.unique(scores)
    ends = [
        np.append(np.searchsorted(np.sort(scores[who]), thresholds) / who.sum(), 1.0)
        for who in (~label, label)
    ]
    false, true = (1 - one[::-1] for one in ends)
    return above / inside / (label.size - inside), np.interp(0.01, false, true)


def shown(by_release: Floats) -> str:
    """Write means over releases with their errors."""
    error = by_release.std(axis=0, ddof=1) / np.sqrt(len(by_release))
    return written(by_release.mean(axis=0), error)


def jackknifed(said: Floats) -> str:
    """Write the same of some people's scores over all releases, shape (releases, people, 2)."""
    n = said.shape[1]
    label, score = said[..., 0].astype(bool), said[..., 1]
    kept = [np.arange(n) != i for i in range(n)]
    values = measured(score.reshape(-1), label.reshape(-1))
    without = [measured(score[:, one].reshape(-1), label[:, one].reshape(-1)) for one in kept]
    return written(values, np.sqrt((n - 1) * np.var(without, axis=0)))


def written(values: Floats | tuple[float, float], errors: Floats) -> str:
    """Write numbers with their errors."""
    return " / ".join(f"{value:.3f} ± {off:.3f}" for value, off in zip(values, errors, strict=True))


SHOWN = {
    "compared": (
        compared,
        ["likelihood ratio", "knock-knock", "joint decoding", "rounds", "seconds", "ceiling"],
    ),
    "knowing": (knowing, [*(f"told of {1 - 1 / n:.0%}" for n in PARTS), "ceiling"]),
    "expected": (
        expected,
        [
            f"{name}: {what}"
            for name in ("likelihood ratio", "joint decoding")
            for what in ("right, expected", "right", "false alarms")
        ],
    ),
}

if __name__ == "__main__":
    main()
