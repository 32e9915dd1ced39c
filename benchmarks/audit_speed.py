"""How fast an audit goes, by the number of workers, and how long a recommendation takes.

    python benchmarks/audit_speed.py > benchmarks/results/audit_speed.json
    python benchmarks/audit_speed.py --crowd 300000

The second one times a crowd alone: what a task and a release cost besides the attacks, with groups
of a bit less than half of the people. It takes 4 GB of memory to simulate that crowd.

Times are of one run on one machine; what counts is their ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from whosthere.auditing.options import AuditOptions, merged
from whosthere.auditing.planning import make_plan
from whosthere.auditing.run import prepare_audit
from whosthere.auditing.work import chosen_workers
from whosthere.data.cities import simulate
from whosthere.game.rounds import Population
from whosthere.game.target import TargetRounds
from whosthere.search.search import prepare_search

ALL = AuditOptions.of(
    mechanisms=("raw", "suppress(k=1)", "laplace(eps=1, unit=event)"),
    group_size=1000,
    targets=4,
    releases=20,
    seed=1,
)
CHEAP = replace(merged(ALL, {"attacks": "likelihood-ratio"}), targets=40, releases=100)
# Without chance, with noise, and with visits that are dropped.
IN_A_CROWD = (
    "suppress(k=15)",
    "laplace(eps=1, unit=event)",
    "laplace(eps=1, unit=user-day, max_visits=10)",
)


def audit(traces: Path, out: Path, options: AuditOptions, workers: int) -> dict:
    prepared = prepare_audit(traces, options, out)
    plan = prepared.plan
    begun = time.perf_counter()
    prepared.run(workers=chosen_workers(workers))
    seconds = time.perf_counter() - begun
    scored = len(plan.targets) * sum(
        plan.releases_by(contest.attack) + plan.control_releases for contest in plan.contests
    )
    return {
        "attacks": [str(attack) for attack in plan.attacks],
        "workers": workers,
        "targets": len(plan.targets),
        "releases": plan.releases,
        "seconds": round(seconds, 1),
        "scores_per_second": round(scored / seconds, 1),
    }


def crowd(people: int) -> list[dict]:
    """Time tasks and releases of a crowd without any attack, in seconds."""
    traces = simulate("cdr-like", seed=1, users=people).traces()
    m = int(0.47 * traces.n_users)
    options = AuditOptions.of(
        mechanisms=IN_A_CROWD, group_size=m, targets=3, attacks="likelihood-ratio", seed=1
    )
    plan = make_plan(options, traces)
    population = Population.of(traces, plan.first_epoch)
    times = {scheme: ([], []) for scheme in plan.schemes}
    for task in plan.tasks:
        per_task, per_release = times[task.scheme]
        begun = time.perf_counter()
        scene = TargetRounds(population, plan, task)
        scene.tables[0].uniqueness()
        per_task.append(time.perf_counter() - begun)
        for i in range(4):
            begun = time.perf_counter()
            scene.optima({i: scene.test(i)})
            per_release.append(time.perf_counter() - begun)
    return [
        {
            "people": traces.n_users,
            "visits": traces.n_visits,
            "scheme": str(scheme),
            # The median: whatever is compiled, or made once for all, is in the first ones alone.
            "seconds_per_task": round(median(per_task), 3),
            "seconds_per_release": round(median(per_release), 3),
        }
        for scheme, (per_task, per_release) in times.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--crowd", type=int, metavar="PEOPLE", help="time a crowd of that size")
    people = parser.parse_args().crowd
    result = small_city() if people is None else {"crowd": crowd(people)}
    machine = {"cores": os.cpu_count(), "python": platform.python_version()}
    print(json.dumps({"machine": machine} | result, indent=2))


def small_city() -> dict:
    """Time audits and a recommendation."""
    with TemporaryDirectory() as folder:
        traces = Path(folder) / "traces.parquet"
        simulate("milan-like", seed=1).traces().save(traces)
        audits = [
            audit(traces, Path(folder) / f"{options.targets}-{workers}", options, workers)
            for options in (CHEAP, ALL)
            for workers in (1, 2)
        ]
        begun = time.perf_counter()
        prepared = prepare_search(traces, AuditOptions.of(group_size=1000, seed=1))
        found = prepared.run(workers=chosen_workers(2))
        seconds = time.perf_counter() - begun
    chosen = found.recommended
    return {
        "audits": audits,
        "recommend": {
            "seconds": round(seconds, 1),
            "trials": len(found.candidates),
            "best": [candidate.mechanism for candidate in found.best],
            "recommended": None if chosen is None else chosen.mechanism,
        },
    }


if __name__ == "__main__":
    main()
