"""Time of one likelihood-ratio attack on one release, the fit of the rates included.

    python benchmarks/likelihood_speed.py
    python benchmarks/likelihood_speed.py --everybody crowd.parquet

On one core. The tables of a mechanism are made once, before the first release; their time is
shown beside. The national release is drawn from Poisson rates: 10,000 regions x 720 hours, a
million people with 117 visits each. --everybody scores all people of a traces file on one release
of 20,000 of them. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_variable] = "1"

from datetime import UTC, datetime, timedelta

import numpy as np

from whosthere.adversary.attacks import Auxiliary, LikelihoodRatio
from whosthere.adversary.suspects import visits_of_one
from whosthere.data.cities import simulate
from whosthere.data.epochs import Epochs
from whosthere.data.regions import Regions
from whosthere.data.traces import Traces
from whosthere.privacy.facts import Facts
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.publish import publish
from whosthere.privacy.release import Release

SPECS = (
    "raw",
    "suppress(k=1)",
    "laplace(eps=1, unit=event)",
    "laplace(eps=1, unit=event) | suppress(k=1)",
    "laplace(eps=5, unit=user-day, max_visits=20)",
)
SEED = 1


def releases_of(case: str, spec: str, n: int) -> tuple[list[Release], Traces]:
    """Make releases and what is known of somebody."""
    mechanism = Mechanism.parse(spec)
    rng = np.random.default_rng(SEED)
    if case == "national":
        weights = rng.lognormal(0, 1.5, 10_000)[:, None] * rng.lognormal(0, 0.5, 720)
        rates = weights * (117e6 / weights.sum())
        counts = np.minimum(rng.poisson(rates), 10**6).astype(np.int32)
        epochs = Epochs(datetime(2021, 6, 1, tzinfo=UTC), timedelta(hours=1), 720)
        regions = Regions([str(i) for i in range(10_000)])
        published = mechanism.apply(counts, 10**6, rng)
        chosen = rng.choice(rates.size, 117, replace=False, p=(rates / rates.sum()).ravel())
        release = Release(published, Facts(regions, epochs, 10**6, mechanism))
        return [release] * n, visits_of_one(chosen, regions, epochs)
    traces = simulate(case, seed=SEED).traces()
    target = int(np.argsort(traces.visits_per_user())[traces.n_users * 3 // 4])
    made = [publish(traces, mechanism=mechanism, group_size=1000, seed=i).release for i in range(n)]
    return made, traces.select([target])


def measure(case: str, spec: str) -> dict[str, float]:
    """Time the tables, then each release; the best and the middle one."""
    releases, known = releases_of(case, spec, 3 if case == "national" else 20)
    facts = releases[0].facts
    begun = time.perf_counter()
    fitted = LikelihoodRatio().fit(facts, known, Auxiliary(), seed=SEED)
    tables = time.perf_counter() - begun
    fitted.score(releases[0])
    times = []
    for release in releases:
        begun = time.perf_counter()
        fitted.score(release)
        times.append(time.perf_counter() - begun)
    return {
        "best_ms": round(min(times) * 1e3, 3),
        "median_ms": round(float(np.median(times)) * 1e3, 3),
        "tables_ms": round(tables * 1e3, 1),
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, 2),
    }


def everybody(path: str, spec: str) -> dict[str, float]:
    """Time everybody's score on one release."""
    traces = Traces.load(path)
    release = publish(traces, mechanism=spec, group_size=20_000, seed=SEED).release
    attack = LikelihoodRatio()
    attack.score_everybody(release, traces.select(range(10)))  # compiles, and makes the tables
    begun = time.perf_counter()
    attack.score_everybody(release, traces)
    seconds = time.perf_counter() - begun
    return {"seconds": round(seconds, 2), "visits_a_second": round(traces.n_visits / seconds)}


def main() -> None:
    """Measure every case in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs=2, metavar=("CASE", "SPEC"))
    parser.add_argument("--everybody", metavar="TRACES")
    options = parser.parse_args()
    if options.everybody:
        print(json.dumps({spec: everybody(options.everybody, spec) for spec in SPECS}, indent=2))
        return
    if options.only:
        print(json.dumps(measure(*options.only)))
        return
    report: dict = {"python": platform.python_version(), "seed": SEED, "attacks": {}}
    for case in ("milan-like", "cdr-like", "national"):
        for spec in SPECS:
            done = subprocess.run(
                [sys.executable, __file__, "--only", case, spec],
                check=True,
                capture_output=True,
                text=True,
            )
            report["attacks"][f"{case}, {spec}"] = json.loads(done.stdout)
            print(case, spec, done.stdout.strip(), file=sys.stderr)
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
