"""How fast an audit goes, by the number of workers, and how long a recommendation takes.

    python benchmarks/audit_speed.py > benchmarks/results/audit_speed.json

Times are of one run on one machine; what counts is their ratio.
"""

from __future__ import annotations

import json
import os
import platform
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from whosthere.auditing.options import AuditOptions
from whosthere.auditing.run import prepare_audit
from whosthere.auditing.search import recommend
from whosthere.auditing.work import local_workers
from whosthere.data.cities import simulate

ALL = AuditOptions.of(
    mechanisms=("raw", "suppress(k=1)", "laplace(eps=1, unit=event)"),
    group_sizes=1000,
    targets=4,
    releases=20,
    seed=1,
)
CHEAP = replace(ALL.with_block(attacks="likelihood-ratio"), targets=40, releases=100)


def audit(traces: Path, out: Path, options: AuditOptions, workers: int) -> dict:
    prepared = prepare_audit(traces, options, out)
    plan = prepared.plan
    begun = time.perf_counter()
    prepared.run(workers=local_workers(workers))
    seconds = time.perf_counter() - begun
    scored = len(plan.contests) * len(plan.targets) * (plan.releases + plan.control_releases)
    return {
        "attacks": [str(attack) for attack in plan.attacks],
        "workers": workers,
        "targets": len(plan.targets),
        "releases": plan.releases,
        "seconds": round(seconds, 1),
        "scores_per_second": round(scored / seconds, 1),
    }


def main() -> None:
    with TemporaryDirectory() as folder:
        traces = Path(folder) / "traces.parquet"
        simulate("milan-like", seed=1).traces().save(traces)
        audits = [
            audit(traces, Path(folder) / f"{options.targets}-{workers}", options, workers)
            for options in (CHEAP, ALL)
            for workers in (1, 2)
        ]
        begun = time.perf_counter()
        found = recommend(
            traces, AuditOptions.of(group_sizes=1000, seed=1), workers=local_workers(2)
        )
        seconds = time.perf_counter() - begun
    chosen = found.recommended
    result = {
        "machine": {"cores": os.cpu_count(), "python": platform.python_version()},
        "audits": audits,
        "recommend": {
            "seconds": round(seconds, 1),
            "trials": len(found.candidates),
            "best": [candidate.mechanism for candidate in found.best],
            "recommended": None if chosen is None else chosen.mechanism,
        },
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
