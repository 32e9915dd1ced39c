"""Mean AUC and accuracy of attacks on the same releases, as a Markdown table.

    python benchmarks/compare_attacks.py --data milan-like --out scores.jsonl
    python benchmarks/compare_attacks.py --data traces.parquet --group-size 500 --out scores.jsonl

Each target gets a reference and a test pool that share nobody, and balanced, independent test
releases that all attacks are judged on. Zero-knowledge attacks are fitted anew on every release.
Results are kept line by line in --out; the same command goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import time

# One thread for each worker; set before numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from whosthere.adversary.attacks import (
    Auxiliary,
    Facts,
    FittedAttack,
    KnockKnock,
    LikelihoodRatio,
    LikelihoodRatioWithReference,
    Training,
    ZeroKnowledge,
)
from whosthere.adversary.knowledge import KnownVisits
from whosthere.auditing.omniscient import omniscient_over_releases
from whosthere.data.cities import simulate
from whosthere.data.traces import Traces
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.release import Release

if TYPE_CHECKING:
    from collections.abc import Callable

SETTINGS = (
    "raw",
    "suppress(k=1)",
    "suppress(k=2)",
    "suppress(k=3)",
    "laplace(eps=0.1, unit=event)",
    "laplace(eps=0.5, unit=event)",
    "laplace(eps=1, unit=event)",
    "laplace(eps=5, unit=event)",
    "laplace(eps=1, unit=event) | suppress(k=1)",
    "laplace(eps=1, unit=user-day, max_visits=BOUND)",
    "laplace(eps=5, unit=user-day, max_visits=BOUND)",
    "laplace(eps=10, unit=user-day, max_visits=BOUND)",
)
ATTACKS = {
    "KK": KnockKnock(),
    "KK independent": KnockKnock(Training(sampling="independent")),
    "ZK": ZeroKnowledge(),
    "ZK independent": ZeroKnowledge(Training(sampling="independent")),
    "LR": LikelihoodRatio(),
    "LR with reference": LikelihoodRatioWithReference(),
    "ZK, mechanism": ZeroKnowledge(marginals="mechanism"),
}
# Not an attack: the best AUC that any attacker can reach on these releases.
CEILING = "ceiling"


@cache
def population(data: str, seed: int) -> Traces:
    """Simulate a city or load traces, once per process."""
    return Traces.load(data) if data.endswith(".parquet") else simulate(data, seed=seed).traces()


def chosen_targets(traces: Traces, least_visits: int, n: int, seed: int) -> list[int]:
    """Choose targets at random among those with enough visits."""
    eligible = np.flatnonzero(traces.visits_per_user() >= least_visits)
    return np.random.default_rng([seed, 1]).choice(eligible, n, replace=False).tolist()


def score_target(task: dict) -> list[dict]:
    """Score all attacks on one target in one setting."""
    seed, target = task["seed"], task["target"]
    traces = population(task["data"], seed)
    mechanism = Mechanism.parse(task["setting"])
    rng = np.random.default_rng([seed, 2, target])
    others = np.setdiff1d(rng.permutation(traces.n_users), target, assume_unique=True)
    reference, pool = np.split(others, [task["reference_size"]])
    everybody = mechanism.bound(traces.select(np.append(pool, target)), rng).traces
    releases, labels, others = test_releases(everybody, mechanism, task["m"], task["releases"], rng)
    known = KnownVisits(traces.trace(target))
    auxiliary = Auxiliary(traces.select(reference))
    common = {"setting": task["setting"], "target": target, "visits": int(known.cells.size)}
    facts = releases[0].facts
    rows = []
    for name in task["attacks"]:
        if name != CEILING:
            fit = partial(ATTACKS[name].fit, facts, known, auxiliary, seed=seed)
            rows.append({**common, "attack": name, **judged(fit, releases, labels)})
    if CEILING in task["attacks"]:
        best = omniscient_over_releases(mechanism, others, task["m"]).pooled.auc
        rows.append({**common, "attack": CEILING, "auc": best})
    return rows


def judged(fit: Callable[[], FittedAttack], releases: list[Release], labels: np.ndarray) -> dict:
    """Fit an attack, score the releases, and compare with the truth."""
    begun = time.perf_counter()
    fitted = fit()
    answers = [fitted.score(release) for release in releases]
    seconds = time.perf_counter() - begun
    right = [a.says_in == label for a, label in zip(answers, labels, strict=True)]
    scores = np.array([answer.score for answer in answers])
    return {"auc": auc(scores, labels), "accuracy": float(np.mean(right)), "seconds": seconds}


def test_releases(
    everybody: Traces, mechanism: Mechanism, m: int, n: int, rng: np.random.Generator
) -> tuple[list[Release], np.ndarray, np.ndarray]:
    """Make independent releases, every other one with the target, who comes last.

    Returns the releases, whether the target is in each, and the true counts of the others in
    the cells that the target contributes to, shape (n, n_cells).
    """
    target = everybody.n_users - 1
    labels = np.arange(n) % 2 == 0
    releases, others = [], []
    for inside in labels:
        group = rng.choice(target, m - inside, replace=False)
        others.append(everybody.counts(group).reshape(-1)[everybody.trace(target)])
        rows = np.append(group, target) if inside else group
        counts = mechanism.apply(everybody.counts(rows), m, rng)
        releases.append(Release(counts, Facts(everybody.regions, everybody.epochs, m, mechanism)))
    return releases, labels, np.array(others)


def auc(scores: np.ndarray, labels: np.ndarray) -> float:
    """Return the chance that a release with the target scores above one without, ties half."""
    difference = scores[labels][:, None] - scores[~labels]
    return float((difference > 0).mean() + 0.5 * (difference == 0).mean())


def table(rows: list[dict], settings: list[str], attacks: list[str]) -> str:
    """Write means and standard errors over targets as Markdown: AUC, then accuracy."""
    lines = [f"| setting | {' | '.join(attacks)} |", "|---" * (len(attacks) + 1) + "|"]
    for setting in settings:
        cells = []
        for attack in attacks:
            mine = [r for r in rows if (r["setting"], r["attack"]) == (setting, attack)]
            cells.append(
                " / ".join(
                    f"{np.mean(v):.3f} ± {np.std(v, ddof=1) / np.sqrt(len(v)):.3f}"
                    for v in ([r[k] for r in mine if k in r] for k in ("auc", "accuracy"))
                    if len(v) > 1
                )
            )
        shown = setting.replace("|", "\\|")
        lines.append(f"| `{shown}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="milan-like", help="a simulated city, or traces")
    parser.add_argument("--targets", type=int, default=30)
    parser.add_argument("--releases", type=int, default=20, help="per target, half of them in")
    parser.add_argument("--group-size", type=int, default=1_000)
    parser.add_argument("--reference-size", type=int, help="default: half of the users")
    parser.add_argument("--min-visits", type=int, default=10, help="of a target")
    parser.add_argument("--bound", type=int, default=10, help="on visits a day, for user-day")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--attacks", nargs="+", default=["KK", "ZK", "LR", CEILING])
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS))
    parser.add_argument("--out", type=Path, required=True, help="scores, one JSON object a line")
    options = parser.parse_args()
    settings = [s.replace("BOUND", str(options.bound)) for s in options.settings]

    done = [json.loads(line) for line in options.out.open()] if options.out.exists() else []
    finished = {(r["setting"], r["target"], r["attack"]) for r in done}
    traces = population(options.data, options.seed)
    common = {
        "data": options.data,
        "seed": options.seed,
        "m": options.group_size,
        "releases": options.releases,
        "reference_size": options.reference_size or traces.n_users // 2,
    }
    tasks = [
        {
            **common,
            "target": target,
            "setting": setting,
            "attacks": [a for a in options.attacks if (setting, target, a) not in finished],
        }
        for target in chosen_targets(traces, options.min_visits, options.targets, options.seed)
        for setting in settings
    ]
    with (
        ProcessPoolExecutor(options.workers) as pool,
        options.out.open("a", encoding="utf-8") as out,
    ):
        for future in as_completed(pool.submit(score_target, t) for t in tasks if t["attacks"]):
            for row in future.result():
                done.append(row)
                out.write(json.dumps(row) + "\n")
            out.flush()
    print(table(done, settings, options.attacks))


if __name__ == "__main__":
    main()
