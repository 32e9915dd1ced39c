"""Mean AUC and accuracy of the paper's attacks on the simulated cities, as a Markdown table.

    python benchmarks/attack_table.py --city milan-like --targets 20 --releases 40

Each target gets a reference and a test pool that share nobody, and balanced, independent test
releases that all attacks are judged on. Zero-knowledge is trained anew on every release. Results
are kept line by line in --out; the same command goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import time

# One thread for each worker; set before numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from whosthere.adversary.attacks import Auxiliary, Facts, KnockKnock, Training, ZeroKnowledge
from whosthere.adversary.knowledge import KnownVisits
from whosthere.data.cities import simulate
from whosthere.data.traces import Traces
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.release import Release

CITIES = {"milan-like": (2_500, 10, 10), "cdr-like": (5_000, 1, 20)}
SETTINGS = ("raw", "suppress(k=1)", "laplace(eps=1, unit=event)", "user-day")
ATTACKS = {"KK": KnockKnock(), "ZK": ZeroKnowledge()}


def mechanism_of(setting: str, city: str) -> Mechanism:
    """Return the mechanism of a setting; a day's visits are bounded as in the paper."""
    if setting != "user-day":
        return Mechanism.parse(setting)
    return Mechanism.parse(f"laplace(eps=5, unit=user-day, max_visits={CITIES[city][2]})")


@cache
def population(city: str, seed: int) -> Traces:
    """Simulate a city once per process."""
    return simulate(city, seed=seed).traces()


def chosen_targets(traces: Traces, least_visits: int, n: int, seed: int) -> list[int]:
    """Choose targets at random among those with enough visits."""
    eligible = np.flatnonzero(traces.visits_per_user() >= least_visits)
    return np.random.default_rng([seed, 1]).choice(eligible, n, replace=False).tolist()


def score_target(task: dict) -> list[dict]:
    """Score all attacks on one target in one setting."""
    city, seed, target = task["city"], task["seed"], task["target"]
    traces = population(city, seed)
    mechanism = mechanism_of(task["setting"], city)
    rng = np.random.default_rng([seed, 2, target])
    others = np.setdiff1d(rng.permutation(traces.n_users), target, assume_unique=True)
    reference = traces.select(others[: CITIES[city][0]])
    pool = others[CITIES[city][0] :]
    everybody = mechanism.bound(traces.select(np.append(pool, target)), rng).traces
    releases, labels = test_releases(everybody, mechanism, task["m"], task["releases"], rng)
    known = KnownVisits(traces.trace(target))
    rows = []
    for attack_name in task["attacks"]:
        for sampling in ("paired", "independent"):
            attack = replace(ATTACKS[attack_name], training=Training(sampling=sampling))
            begun = time.perf_counter()
            fitted = attack.fit(Facts.of(releases[0]), known, Auxiliary(reference), seed=seed)
            answers = [fitted.score(release) for release in releases]
            scores = np.array([answer.score for answer in answers])
            rows.append(
                {
                    **{k: task[k] for k in ("city", "setting", "target")},
                    "attack": attack_name,
                    "sampling": sampling,
                    "visits": int(known.cells.size),
                    "auc": auc(scores, labels),
                    "accuracy": float(
                        np.mean(
                            [a.says_in == label for a, label in zip(answers, labels, strict=True)]
                        )
                    ),
                    "seconds": time.perf_counter() - begun,
                }
            )
    return rows


def test_releases(
    everybody: Traces, mechanism: Mechanism, m: int, n: int, rng: np.random.Generator
) -> tuple[list[Release], np.ndarray]:
    """Make independent releases, every other one with the target, who comes last."""
    target = everybody.n_users - 1
    labels = np.arange(n) % 2 == 0
    releases = []
    for inside in labels:
        group = rng.choice(target, m - inside, replace=False)
        rows = np.append(group, target) if inside else group
        counts = mechanism.apply(everybody.counts(rows), m, rng)
        releases.append(Release(counts, m, everybody.regions, everybody.epochs, mechanism))
    return releases, labels


def auc(scores: np.ndarray, labels: np.ndarray) -> float:
    """Return the chance that a release with the target scores above one without, ties half."""
    difference = scores[labels][:, None] - scores[~labels]
    return float((difference > 0).mean() + 0.5 * (difference == 0).mean())


def table(rows: list[dict], city: str) -> str:
    """Write means and standard errors over targets as Markdown."""
    lines = [
        "| setting | attack | sampling | AUC | accuracy | seconds a target |",
        "|---|---|---|---|---|---|",
    ]
    for setting in SETTINGS:
        for attack in ATTACKS:
            for sampling in ("paired", "independent"):
                mine = [
                    r
                    for r in rows
                    if (r["setting"], r["attack"], r["sampling"]) == (setting, attack, sampling)
                ]
                if mine:
                    cells = [
                        f"{np.mean(v):.3f} ± {np.std(v, ddof=1) / np.sqrt(len(v)):.3f}"
                        for v in ([r[metric] for r in mine] for metric in ("auc", "accuracy"))
                    ]
                    seconds = np.mean([r["seconds"] for r in mine])
                    spec = mechanism_of(setting, city)
                    lines.append(
                        f"| `{spec}` | {attack} | {sampling} "
                        f"| {' | '.join(cells)} | {seconds:.1f} |"
                    )
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--city", choices=CITIES, default="milan-like")
    parser.add_argument("--targets", type=int, default=20)
    parser.add_argument("--releases", type=int, default=40, help="per target, half of them in")
    parser.add_argument("--group-size", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--attacks", nargs="+", default=list(ATTACKS))
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS))
    parser.add_argument("--out", type=Path, required=True, help="scores, one JSON object a line")
    options = parser.parse_args()

    done = [json.loads(line) for line in options.out.open()] if options.out.exists() else []
    finished = {(r["setting"], r["target"], r["attack"]) for r in done}
    traces = population(options.city, options.seed)
    targets = chosen_targets(traces, CITIES[options.city][1], options.targets, options.seed)
    tasks = [
        {
            "city": options.city,
            "seed": options.seed,
            "target": target,
            "setting": setting,
            "m": options.group_size,
            "releases": options.releases,
            "attacks": [a for a in options.attacks if (setting, target, a) not in finished],
        }
        for target in targets
        for setting in options.settings
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
    print(table(done, options.city))


if __name__ == "__main__":
    main()
