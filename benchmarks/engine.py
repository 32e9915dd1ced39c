"""The engine of the likelihood ratio: time by part, and scores beside those of another version.

    python benchmarks/engine.py city.parquet --group 2500
    python benchmarks/engine.py tdrive.parquet --group 2500
    python benchmarks/engine.py --drawn 20000
    python benchmarks/engine.py --drawn 1000000
    PYTHONPATH=../former/src python benchmarks/engine.py city.parquet --save former.npz
    python benchmarks/engine.py city.parquet --against former.npz

People are drawn over 10,000 regions x 168 hours, with 30 visits each. On one core, in processor
time, the least of a few releases. Beside the pass over everybody's visits stands what the memory
bus allows: the time that it takes to read as many bytes one after the other. Scores are compared on
the same releases; differences of AUC and TPR at 1 % FPR have standard errors over releases.
"""

from __future__ import annotations

import argparse
import functools
import os
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_variable] = "1"

import numpy as np
from sklearn.metrics import roc_auc_score

import whosthere as wt
from whosthere.attacks import LikelihoodRatio
from whosthere.data.epochs import Epochs
from whosthere.data.regions import Regions
from whosthere.data.traces import Group, Traces
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.publish import publish_table
from whosthere.privacy.scheme import ORDINARY, Layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SPECS = ("raw", "suppress(k=2)", "laplace(eps=1, unit=event)")
USER_DAY = "laplace(eps=1, unit=user-day, max_visits=3)"
VISITS = Layout(epochs=3, counts="visits")
SETTINGS = [
    (ORDINARY, "raw"),
    (ORDINARY, "laplace(eps=0.2, unit=event)"),
    (ORDINARY, "suppress(k=2)"),
    (ORDINARY, "random-round(to=5)"),
    (ORDINARY, "suppress(k=5, shown=mark)"),
    (ORDINARY, USER_DAY),
    (ORDINARY, "cell-key(d=2, v=1.05, js=1)"),
    (VISITS, "suppress(k=2)"),
    (VISITS, USER_DAY),
]
CUT = -1e6


def released(people: Traces, spec: str, m: int, seed: int) -> tuple[wt.Release, np.ndarray]:
    """Publish a group, and tell who is in it."""
    rng = np.random.default_rng([1, seed])
    rows = np.sort(rng.choice(people.n_users, m, replace=False))
    group, mechanism = Group(people, rows), Mechanism.parse(spec)
    made = publish_table(group, mechanism, bounding=rng, noise=rng)
    return made.release, np.isin(np.arange(people.n_users), rows)


def drawn(n: int, visits: int = 30, n_regions: int = 10_000, n_epochs: int = 168) -> Traces:
    """Draw people who mostly stay near a home of theirs."""
    rng = np.random.default_rng(2)
    home = np.sort(rng.integers(0, n_regions, n))[:, None]
    region = rng.integers(0, n_regions, (n, visits))
    region = np.where(rng.random((n, visits)) < 0.8, home + region % 3, region) % n_regions
    cells = region * n_epochs + rng.integers(0, n_epochs, (n, visits))
    cells.sort(axis=1)
    new = np.ones(cells.shape, np.bool_)
    new[:, 1:] = cells[:, 1:] != cells[:, :-1]
    epochs = Epochs(datetime(2021, 6, 7, tzinfo=UTC), timedelta(hours=1), n_epochs)
    indptr = np.append(0, np.cumsum(new.sum(axis=1)))
    regions = Regions([f"r{i}" for i in range(n_regions)])
    return Traces(("",) * n, indptr, cells[new].astype(np.int32), regions, epochs)


def seconds(make: Callable[[], object], times: int) -> float:
    """Return the least processor time of some calls."""
    found = []
    for _ in range(times):
        begun = time.process_time()
        make()
        found.append(time.process_time() - begun)
    return min(found)


def parts(people: Traces, release: wt.Release, times: int) -> Iterator[tuple[str, float]]:
    """Yield the seconds that each part of a score takes."""
    # Not needed to save the scores of a former version.
    from whosthere.adversary.levels import Levels  # noqa: PLC0415
    from whosthere.adversary.rates import USUAL, Rates, Seen  # noqa: PLC0415
    from whosthere.adversary.scorer import Asked, Scorer, Table  # noqa: PLC0415

    scorer = Scorer([people])
    scorer([release])  # compiles, and makes the tables of the mechanism
    table = Table.of(release)
    rows, lines = table.rows(people), table.lines
    yield "people in order, once", seconds(lambda: Asked.of(rows, lines), 1)
    yield "a release", seconds(lambda: scorer([release]), times)
    so_far = Rates(*[np.zeros(release.symbols.shape)] * 2)
    for part in USUAL:
        seen = Seen(release)
        yield part.__name__, seconds(functools.partial(part, seen, so_far), times)
        so_far = part(seen, so_far)
    at = lines.take(release.symbols, -1), lines.take(table.rates.base), table.tables
    yield "levels", seconds(lambda: Levels.of(*at, relative=lines.are_relative), times)
    asked, ratios = Asked.of(rows, lines), table.tables.of_ratios
    yield "ratios by place", seconds(lambda: table._evidence(asked, ratios), times)
    evidence = table._evidence(asked, ratios)
    yield "the pass", seconds(lambda: evidence.score(*asked.rows), times)
    # A place, and what is looked up there: ratios, the largest of them, and the line.
    n_bytes = asked.places.size * (4 + evidence.ratios.shape[1] * 4 + 8 + 4)
    some = np.ones(2**26, np.float32)
    yield "memory bus", seconds(some.max, times) * n_bytes / some.nbytes
    yield "what each visit adds", seconds(lambda: table.by_visit(asked), times)


def tpr(labels: np.ndarray, scores: np.ndarray) -> float:
    """Return the TPR at 1 % FPR."""
    return float((scores[labels] > np.quantile(scores[~labels], 0.99)).mean())


def scores_of(traces: Traces, m: int, n: int) -> dict[str, np.ndarray]:
    """Return scores and labels of everybody by setting, and the seconds that a release took."""
    found = {}
    for layout, spec in SETTINGS:
        people, name, took = layout(traces), f"{spec}, {layout.written}", []
        for i in range(n):
            release, labels = released(people, spec, m, i)
            begun = time.process_time()
            scores = LikelihoodRatio().score_everybody(release, people)
            took.append(time.process_time() - begun)
            found[f"{name}|{i}"] = np.stack([np.maximum(scores, CUT), labels])
        found[f"{name}|seconds"] = np.array(min(took))
    return found


def compare(former: dict[str, np.ndarray], now: dict[str, np.ndarray], n: int) -> None:
    """Print how scores differ."""
    print(
        "| | AUC | AUC, more | TPR, more | scores differ, at most | ruled out, others | ms, now |"
    )
    print("|---|---|---|---|---|---|---|")
    for name in dict.fromkeys(one.split("|")[0] for one in now):
        aucs, more, apart, out, others = [], [], [], 0, 0
        for i in range(n):
            (old, labels), (new, _) = former[f"{name}|{i}"], now[f"{name}|{i}"]
            inside, was_in, is_in = labels > 0, old > CUT, new > CUT
            aucs.append(roc_auc_score(inside, old))
            more.append([f(inside, new) - f(inside, old) for f in (roc_auc_score, tpr)])
            apart.append(np.abs(old - new)[was_in & is_in])
            out += np.count_nonzero(~was_in)
            others += np.count_nonzero(was_in != is_in)
        means, errors = np.mean(more, axis=0), np.std(more, axis=0, ddof=1) / n**0.5
        said = " | ".join(f"{a:+.1e} ± {e:.0e}" for a, e in zip(means, errors, strict=True))
        before, after = (1e3 * float(one[f"{name}|seconds"]) for one in (former, now))
        gap = np.concatenate(apart)
        print(
            f"| {name} | {np.mean(aucs):.4f} | {said} | {np.median(gap):.0e}, {gap.max():.0e} | "
            f"{out}, {others} | {before:.1f}, {after:.1f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("traces", nargs="?")
    parser.add_argument("--group", type=int, help="a quarter of the people by default")
    parser.add_argument("--releases", type=int, default=5)
    parser.add_argument("--drawn", type=int, help="draw so many people instead of reading traces")
    parser.add_argument("--save", help="keep scores here, for another version to compare")
    parser.add_argument("--against", help="scores that another version saved")
    options = parser.parse_args()
    n = options.releases
    people = drawn(options.drawn) if options.drawn else wt.Traces.load(options.traces)
    m = options.group or people.n_users // 4
    if options.save:
        np.savez(options.save, **scores_of(people, m, n))
    elif options.against:
        compare(dict(np.load(options.against)), scores_of(people, m, n), n)
    else:
        print(f"{people.n_users:,} people, {people.n_visits:,} visits, {people.shape}, m = {m:,}")
        for spec in SPECS:
            release, _ = released(people, spec, m, 0)
            found = [f"{name} {1e3 * took:.2f}" for name, took in parts(people, release, n)]
            print(f"{spec}, in ms: {', '.join(found)}", flush=True)


if __name__ == "__main__":
    main()
