"""Time, memory and AUC of the trained attacks: this code, that of before, and a plain pipeline.

    python benchmarks/trained_speed.py > benchmarks/results/trained_speed.json
    python benchmarks/trained_speed.py --auc > benchmarks/results/trained_auc.json
    python benchmarks/trained_speed.py --crowd crowd.parquet --group-size 140000

One zero-knowledge attack on one release, and one knock-knock attack on one target with all of its
groups, m = 1000, each on one core in a process of its own that has compiled and loaded everything.
"before" is the commit before groups were made in two ways only, with its own copy of this script.
"plain" is straightforward.py, which adds up groups trace by trace, and "at once" the same with sums
of sparse rows. Times are processor seconds, the best of a few; what counts is their ratio. --crowd
makes one zero-knowledge attack on one release of many people. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_variable] = "1"

import numpy as np
from scipy.sparse import csr_matrix

import straightforward as plain
from whosthere.adversary.attacks import Auxiliary, KnockKnock, ZeroKnowledge
from whosthere.data.cities import simulate
from whosthere.data.traces import Traces
from whosthere.privacy.facts import Facts
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.publish import publish
from whosthere.privacy.release import Release

ROOT = Path(__file__).resolve().parent.parent
BEFORE = "bb4c7409"
CITIES = ("milan-like", "cdr-like")
SPECS = ("suppress(k=1)", "laplace(eps=1, unit=event)")
ATTACKS = ("zero-knowledge", "knock-knock")
REFERENCE = {"milan-like": 2500, "cdr-like": 2400}
M, SEED = 1000, 1
Score = Callable[[Release], float]


class Case:
    """A target in a city, others to learn from, and releases with and without the target."""

    def __init__(self, city: str, spec: str, target: int | None = None, **sizes: int) -> None:
        self.traces = simulate(city, seed=SEED, **sizes).traces()
        self.spec = spec
        by_visits = np.argsort(self.traces.visits_per_user())
        self.target = int(by_visits[self.traces.n_users * 3 // 4]) if target is None else target
        others = np.random.default_rng(SEED).permutation(self.traces.n_users)
        others = others[others != self.target]
        n_reference = min(REFERENCE[city], others.size // 2)
        self.reference, self.pool = others[:n_reference], others[n_reference:]
        self.m = min(M, n_reference - 1)
        self.mechanism = Mechanism.parse(spec)
        self.facts = Facts(self.traces.regions, self.traces.epochs, self.m, self.mechanism)

    def release(self, i: int) -> Release:
        """Publish a group; even ones hold the target."""
        rng = np.random.default_rng((SEED, i))
        rows = rng.choice(self.pool, self.m, replace=False)
        rows[-1] = self.target if i % 2 == 0 else rows[-1]
        counts = self.mechanism.apply(self.traces.counts(rows), self.m, rng)
        return Release(counts, self.facts)

    def ours(self, attack: str) -> Score:
        """Return a function that scores a release, prepared by knock-knock only."""
        known = self.traces.select([self.target])
        kinds = {"zero-knowledge": ZeroKnowledge, "knock-knock": KnockKnock}
        auxiliary = Auxiliary()
        if attack == "knock-knock":
            auxiliary = Auxiliary(self.traces.select(self.reference))
        fitted = kinds[attack](rule=False).fit(self.facts, known, auxiliary, seed=SEED)
        return lambda release: fitted.score(release).score

    def plain(self, attack: str, *, at_once: bool) -> Score:
        """Return the same by the plain pipeline."""

        def rows_of(rows: np.ndarray) -> csr_matrix:
            chosen = self.traces.select(rows)
            ones = np.ones(chosen.cells.size)
            return csr_matrix((ones, chosen.cells, chosen.indptr), (len(rows), chosen.n_cells))

        suppressing = "suppress" in self.spec
        publish = plain.suppress(1) if suppressing else plain.laplace(1.0, self.m)
        game = plain.Game(rows_of(np.array([self.target])), self.m, publish, at_once)
        rng = np.random.default_rng(SEED)
        if attack == "knock-knock":
            learned = plain.learn(rows_of(self.reference), game, rng)
            return lambda release: learned.score(release.counts)
        correct = plain.compressed if suppressing else plain.stretched
        positions = self.traces.regions.positions_km
        return lambda release: plain.zero_knowledge(
            release.counts, positions, game, rng, correct=correct
        )


def attack_once(case: Case, attack: str, who: str) -> float:
    """Attack one release; return the seconds it took."""
    release = case.release(0)
    begun = time.process_time()
    if who in {"ours", "before"}:
        case.ours(attack)(release)
    else:
        case.plain(attack, at_once=who == "at once")(release)
    return time.process_time() - begun


def only(who: str, city: str, spec: str, attack: str) -> dict[str, float]:
    """Measure one case in this process, on one processor."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    if who in {"ours", "before"}:
        attack_once(Case("milan-like", spec, users=2100), attack, who)  # compiles and loads
    repeats = (5 if city == "milan-like" else 3) if who in {"ours", "before"} else 1
    case = Case(city, spec)
    seconds = min(attack_once(case, attack, who) for _ in range(repeats))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    return {"seconds": round(seconds, 4), "peak_gb": round(peak, 2)}


def in_own_process(source: Path, *arguments: str) -> Any:  # noqa: ANN401 - any JSON
    """Run the script of a checkout in a fresh process; return what it prints."""
    script = source / "benchmarks" / Path(__file__).name
    paths = os.pathsep.join([str(source / "src"), str(script.parent)])
    done = subprocess.run(
        [sys.executable, str(script), *arguments],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": paths},
    )
    return json.loads(done.stdout)


@contextmanager
def code_of_before() -> Iterator[Path]:
    """Check out the commit to compare with, for a while."""
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder) / "before"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run(
            [*git, "add", "--detach", str(before), BEFORE], check=True, stdout=sys.stderr
        )
        try:
            yield before
        finally:
            subprocess.run([*git, "remove", "--force", str(before)], check=True)


def speed(*, with_plain: bool) -> dict:
    """Measure all cases."""
    report: dict = {"python": platform.python_version(), "m": M, "before": BEFORE, "attacks": {}}
    who_all = ("before", "ours", "at once", "plain") if with_plain else ("before", "ours")
    with code_of_before() as before:
        for case in ((c, s, a) for c in CITIES for s in SPECS for a in ATTACKS):
            found = {
                who: in_own_process(before if who == "before" else ROOT, "--only", who, *case)
                for who in who_all
            }
            ours = found["ours"]["seconds"]
            ratios = {w: round(found[w]["seconds"] / ours, 1) for w in found if w != "ours"}
            report["attacks"][", ".join(case)] = {**found, "times_ours": ratios}
            print(*case, found, ratios, file=sys.stderr)
    return report


class Sample(NamedTuple):
    """How many targets are attacked, and how many releases of each."""

    targets: int
    releases: int


SAMPLES = {
    "zero-knowledge": {"before": Sample(40, 24), "plain": Sample(8, 12)},
    "knock-knock": {"before": Sample(120, 40), "plain": Sample(8, 12)},
}
"""How much is compared with each: knock-knock learns once for a target, zero-knowledge for each
release, and the plain pipeline takes its time."""


def aucs(*, with_plain: bool) -> dict:
    """Compare the AUCs of this code with others, on releases of the same groups."""
    report: dict = {"before": BEFORE, "attacks": {}}
    with code_of_before() as before:
        for spec, attack in ((s, a) for s in SPECS for a in ATTACKS):
            found = {}
            for other, sample in SAMPLES[attack].items():
                if other == "plain" and not with_plain:
                    continue
                source = before if other == "before" else ROOT
                sizes = map(str, sample)
                case = (spec, attack, *sizes)
                theirs = in_own_process(source, "--aucs", other, *case)
                ours = in_own_process(ROOT, "--aucs", "ours", *case)
                apart = np.subtract(ours, theirs)
                found[other] = {
                    **sample._asdict(),
                    "ours": round(float(np.mean(ours)), 3),
                    "theirs": round(float(np.mean(theirs)), 3),
                    "difference": round(float(apart.mean()), 3),
                    "standard_error": round(float(apart.std(ddof=1) / np.sqrt(apart.size)), 3),
                }
            report["attacks"][f"{spec}, {attack}"] = found
            print(spec, attack, found, file=sys.stderr)
    return report


def aucs_of(who: str, spec: str, attack: str, n_targets: int, n_releases: int) -> list[float]:
    """Attack releases of some targets in this process; return the AUC on each of the targets."""
    everybody = simulate("milan-like", seed=SEED).traces()
    by_visits = np.argsort(everybody.visits_per_user())
    targets = by_visits[(np.linspace(0.6, 0.95, n_targets) * (everybody.n_users - 1)).astype(int)]
    inside = np.arange(n_releases) % 2 == 0
    found = []
    for target in targets.tolist():
        case = Case("milan-like", spec, target)
        score = case.plain(attack, at_once=True) if who == "plain" else case.ours(attack)
        scores = np.array([score(case.release(i)) for i in range(n_releases)])
        above = scores[inside][:, None] - scores[~inside]
        found.append(float(((above > 0) + 0.5 * (above == 0)).mean()))
    return found


def crowd(path: Path, m: int) -> dict[str, float]:
    """Attack one release of a crowd."""
    traces = Traces.load(path)
    mechanism = Mechanism.parse("laplace(eps=1, unit=event)")
    release = publish(traces, mechanism=mechanism, group_size=m, seed=SEED).release
    target = int(np.argsort(traces.visits_per_user())[traces.n_users * 3 // 4])
    known = traces.select([target])
    begun = time.process_time()
    ZeroKnowledge().fit(release.facts, known, Auxiliary(), seed=SEED).score(release)
    seconds = time.process_time() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    return {"m": m, "processor_seconds": round(seconds, 1), "peak_gb": round(peak, 2)}


def main() -> None:
    """Measure all, or one case in this process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs=4, metavar=("WHO", "CITY", "SPEC", "ATTACK"))
    parser.add_argument("--auc", action="store_true", help="compare AUCs instead of times")
    parser.add_argument("--aucs", nargs=5, metavar=("WHO", "SPEC", "ATTACK", "N", "N"))
    parser.add_argument("--quick", action="store_true", help="leave out the plain pipeline")
    parser.add_argument("--crowd", type=Path, metavar="TRACES", help="attack one large release")
    parser.add_argument("--group-size", type=int, default=140_000)
    options = parser.parse_args()
    if options.crowd:
        print(json.dumps(crowd(options.crowd, options.group_size)))
        return
    if options.only:
        print(json.dumps(only(*options.only)))
        return
    if options.aucs:
        who, spec, attack, *sizes = options.aucs
        print(json.dumps(aucs_of(who, spec, attack, *map(int, sizes))))
        return
    print(json.dumps((aucs if options.auc else speed)(with_plain=not options.quick), indent=2))


if __name__ == "__main__":
    main()
