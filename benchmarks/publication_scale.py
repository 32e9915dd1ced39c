"""Time and memory of the likelihood ratio on a publication of three tables, at scale.

    python benchmarks/publication_scale.py --weeks 16 --regions 500 --group 20000

Traces are drawn at random, as where people go does not matter to the time. Hours, region-days and
region-weeks count visits and add up. A part of the time is that of compiling: run it twice.
"""

import argparse
import resource
import time
from datetime import UTC, datetime, timedelta

import numpy as np

from whosthere.adversary.attacks import Auxiliary, LikelihoodRatio
from whosthere.adversary.attacks.base import View
from whosthere.data.epochs import Epochs
from whosthere.data.regions import Regions
from whosthere.data.traces import Group, Traces
from whosthere.privacy.facts import Facts
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.publish import publish_table
from whosthere.privacy.scheme import ORDINARY, Layout

LAYOUTS = {
    "hours": ORDINARY,
    "days": Layout(epochs=24, counts="visits"),
    "weeks": Layout(epochs=168, counts="visits"),
}


def people(n: int, regions: int, weeks: int, visits: int, rng: np.random.Generator) -> Traces:
    """Return people who go to a few regions each, more often by day."""
    hours = weeks * 168
    busy = 0.2 + np.sin(np.pi * np.clip((np.arange(hours) % 24 - 6) / 18, 0, 1))
    home = rng.zipf(1.6, (n, 4)) % regions
    size = n * visits
    person = np.repeat(np.arange(n), visits)
    region = home[person, rng.integers(4, size=size)]
    epoch = rng.choice(hours, size, p=busy / busy.sum())
    key = np.unique(person * np.int64(regions * hours) + region * hours + epoch)
    starts = np.searchsorted(key, np.arange(n + 1) * np.int64(regions * hours))
    epochs = Epochs(datetime(2021, 6, 7, tzinfo=UTC), timedelta(hours=1), hours)
    cells = (key % (regions * hours)).astype(np.int32)
    names = Regions([f"r{i}" for i in range(regions)])
    return Traces(tuple(map(str, range(n))), starts, cells, names, epochs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, usual in (("weeks", 16), ("regions", 500), ("group", 20_000), ("visits", 100)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--spec", default="suppress(k=5)")
    parser.add_argument("--releases", type=int, default=2)
    parser.add_argument("--save", help="where to write the traces, for an audit of them")
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    n = options.group + options.group // 4
    traces = people(n, options.regions, options.weeks, options.visits, rng)
    if options.save:
        traces.save(options.save)
    mechanism = Mechanism.parse(options.spec)
    laid = [layout(traces) for layout in LAYOUTS.values()]
    target = n - 1
    views = [
        View(
            Facts.of(one, options.group, mechanism),
            one.select([target]),
            Auxiliary(),
            layout,
        )
        for one, layout in zip(laid, LAYOUTS.values(), strict=True)
    ]
    attack = LikelihoodRatio().fit_tables(views, seed=0)
    for i in range(options.releases):
        # Somebody who is in is never ruled out, which would save time.
        rows = np.append(np.sort(rng.choice(n - 1, options.group - 1, replace=False)), target)
        begun = time.process_time()
        made = [
            publish_table(Group(one, rows), mechanism, bounding=rng, noise=rng).release
            for one in laid
        ]
        published = time.process_time()
        attack.score_tables(made)
        scored = time.process_time()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"release {i}: published in {published - begun:.1f} s, scored in "
            f"{scored - published:.1f} s of one core, {peak:.2f} GB at most",
            flush=True,
        )


if __name__ == "__main__":
    main()
