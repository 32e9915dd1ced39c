"""Time and memory of one zero-knowledge attack on one release, beside a plain scikit-learn one.

    python benchmarks/attack_speed.py

Each attack runs on one core in a process of its own, after a first one on a small city that
compiles and loads everything. The plain pipeline differs in the classifier alone: StandardScaler
and liblinear on a dense matrix of floats, with the paper's settings. Prints JSON.
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

import numpy as np

from whosthere.adversary.attacks import Auxiliary, ZeroKnowledge
from whosthere.adversary.knowledge import KnownVisits
from whosthere.data.cities import simulate
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.publish import publish

SETTINGS = {
    "milan-like": (
        "raw",
        "suppress(k=1)",
        "laplace(eps=1, unit=event)",
        "laplace(eps=5, unit=user-day, max_visits=10)",
    ),
    "cdr-like": (
        "raw",
        "suppress(k=1)",
        "laplace(eps=1, unit=event)",
        "laplace(eps=5, unit=user-day, max_visits=20)",
    ),
}
SEED = 1


def attack_once(city: str, spec: str, classifier: str, **sizes: int) -> float:
    """Attack one release of 1000 people (fewer in a small city); return the seconds it took."""
    traces = simulate(city, seed=SEED, **sizes).traces()
    target = int(np.argsort(traces.visits_per_user())[traces.n_users * 3 // 4])
    m = min(1000, traces.n_users // 2)
    release = publish(traces, mechanism=Mechanism.parse(spec), group_size=m, seed=SEED).release
    attack = ZeroKnowledge(classifier=classifier, rule=False)
    known = KnownVisits(traces.trace(target))
    begun = time.perf_counter()
    attack.fit(release.facts, known, Auxiliary(), seed=SEED).score(release)
    return time.perf_counter() - begun


def in_own_process(city: str, spec: str, classifier: str) -> dict[str, float]:
    """Run one attack in a fresh process."""
    done = subprocess.run(
        [sys.executable, __file__, "--only", city, spec, classifier],
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)


def main() -> None:
    """Measure all, or one in this process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs=3, metavar=("CITY", "SPEC", "CLASSIFIER"))
    options = parser.parse_args()
    if options.only:
        city, spec, classifier = options.only
        attack_once("milan-like", spec, classifier, users=2100)  # as many people, far fewer cells
        seconds = attack_once(city, spec, classifier)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
        print(json.dumps({"seconds": round(seconds, 3), "peak_gb": round(peak, 2)}))
        return
    report: dict = {"python": platform.python_version(), "seed": SEED, "attacks": {}}
    for city, specs in SETTINGS.items():
        for spec in specs:
            ours, plain = (in_own_process(city, spec, c) for c in ("l1", "l1-paper"))
            ratio = round(plain["seconds"] / ours["seconds"], 1)
            report["attacks"][f"{city}, {spec}"] = {"ours": ours, "plain": plain, "ratio": ratio}
            print(city, spec, ours, plain, ratio, file=sys.stderr)
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
