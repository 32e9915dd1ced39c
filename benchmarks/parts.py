"""What each part of a zero-knowledge attack costs as things grow.

    python benchmarks/parts.py --out docs/images/parts.svg > benchmarks/results/parts.json

One attack on one release of a simulated city, by processor time of one core: the search for the
mean, synthetic people, groups to learn from, the solver, and the groups that tune the threshold.
One thing grows at a time: cells, people in a group, reference, groups to learn from. Beside the
times stands what writing and reading the groups' counts alone would take at the speed at which this
machine copies memory, and what drawing 16 random bits for the noise of each would take.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_variable] = "1"

import matplotlib as mpl
import numpy as np

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "whosthere"
mpl.rcParams["svg.fonttype"] = "none"

from typing import TYPE_CHECKING

from matplotlib import pyplot as plt

from whosthere import kernels
from whosthere.adversary.classifiers import L1
from whosthere.adversary.groups import GroupSampler
from whosthere.adversary.marginals import estimate_marginals
from whosthere.adversary.synthetic import UnicityModel, parse_activity
from whosthere.data.cities import simulate
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.publish import publish

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SPECS = ("suppress(k=1)", "laplace(eps=1, unit=event)")
USUAL = {"regions": 100, "m": 1000, "reference": 5000, "groups": 400}
GROWS = {
    "regions": (25, 100, 400, 900),
    "m": (250, 500, 1000, 2000),
    "reference": (2500, 5000, 10_000, 20_000),
    "groups": (100, 200, 400, 800),
}
WORDS = {
    "regions": "regions (x 168 hours)",
    "m": "people in a group",
    "reference": "people made up",
    "groups": "groups to learn from",
}
PARTS = ("mean", "people", "groups", "solver", "tuning")
COLOURS = ("#56B4E9", "#009E73", "#D55E00", "#0072B2", "#999999")


def measure(spec: str, regions: int, m: int, reference: int, groups: int) -> dict[str, float]:
    """Return the milliseconds of each part, the best of three."""
    traces = simulate("milan-like", seed=1, users=8000, regions=regions, days=7).traces()
    mechanism = Mechanism.parse(spec)
    release = publish(traces, mechanism=mechanism, group_size=m, seed=1).release
    target = traces.trace(int(np.argsort(traces.visits_per_user())[-50]))
    runs = [dict(_parts(release, target, reference, groups)) for _ in range(4)][1:]
    best = {part: min(run[part] for run in runs) for part in PARTS}
    cells = groups // 2 * traces.n_cells
    noisy = mechanism.random_steps != ()
    return best | {
        "memory_alone": 1e3 * 2 * cells / _bytes_a_second(),
        "noise_alone": 1e3 * cells / 4 / _words_a_second() if noisy else 0.0,
    }


def _parts(release, target, reference: int, groups: int) -> Iterator[tuple[str, float]]:
    rng = np.random.default_rng(1)
    m = release.group_size
    seconds, found = _timed(lambda: estimate_marginals(release, rng=rng))
    yield "mean", seconds
    activity = parse_activity("exponential", found.mean_visits)
    model = UnicityModel(
        found.space, found.time, activity, release.facts.regions, release.facts.epochs
    )
    seconds, people = _timed(lambda: model.generate(reference, rng))
    yield "people", seconds
    sampler = GroupSampler(people, target, m, release.mechanism)
    seconds, made = _timed(lambda: sampler.sample(groups, "paired", rng))
    yield "groups", seconds
    seconds, decision = _timed(lambda: L1().fit(made.counts, made.labels))
    yield "solver", seconds
    seconds, _ = _timed(lambda: sampler.sample(100, "independent", rng, cells=decision.cells))
    yield "tuning", seconds


def _timed(work: Callable) -> tuple[float, object]:
    begun = time.process_time()
    with kernels.one_thread():
        result = work()
    return 1e3 * (time.process_time() - begun), result


def _bytes_a_second() -> float:
    """Return how fast memory is copied that no cache holds."""
    source = np.ones(200_000_000, np.uint8)
    copy = np.empty_like(source)
    seconds = []
    for _ in range(3):
        begun = time.process_time()
        np.copyto(copy, source)
        seconds.append(time.process_time() - begun)
    return 2 * source.size / min(seconds)


def _words_a_second() -> float:
    """Return how fast a good generator makes 64 random bits."""
    source = np.random.SFC64(1)
    source.random_raw(1_000_000)
    begun = time.process_time()
    source.random_raw(5_000_000)
    return 5_000_000 / (time.process_time() - begun)


def draw(report: dict, path: Path) -> None:
    """Draw the parts as stacked areas, one panel for each thing that grows."""
    figure, panels = plt.subplots(
        len(SPECS), len(GROWS), figsize=(11, 5.6), layout="constrained", sharex="col"
    )
    for row, spec in zip(panels, SPECS, strict=True):
        for axes, (what, sizes) in zip(row, GROWS.items(), strict=True):
            found = [report[spec][what][str(size)] for size in sizes]
            axes.stackplot(
                sizes,
                [[one[part] for one in found] for part in PARTS],
                colors=COLOURS,
                labels=PARTS,
            )
            limit = [one["memory_alone"] + one["noise_alone"] for one in found]
            axes.plot(sizes, limit, "k:", label="counts and noise at the machine's limit")
            axes.set(xlim=(sizes[0], sizes[-1]), ylim=(0, None))
            axes.spines[["top", "right"]].set_visible(False)
        row[0].set_ylabel(f"{spec}\nms")
    for axes, what in zip(panels[-1], GROWS, strict=True):
        axes.set_xlabel(WORDS[what])
    lines, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(lines, labels, frameon=False, loc="outside upper center", ncols=6, fontsize=8)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Measure, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    report = {
        spec: {
            what: {str(size): measure(spec, **USUAL | {what: size}) for size in sizes}
            for what, sizes in GROWS.items()
        }
        for spec in SPECS
    }
    print(json.dumps(report, indent=2))
    if options.out:
        draw(report, options.out)


if __name__ == "__main__":
    main()
