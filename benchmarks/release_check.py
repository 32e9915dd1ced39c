"""How well `whosthere check RELEASE TRACES` is calibrated: blocks left out beside single people.

A release of everybody is checked several times with other seeds, and other numbers of tables. The
truth is the threshold of nulls on tables without one person each, all others in. Prints for each
protection and number of tables, over seeds, the share found, the ends of its interval, and the
share of such nulls that exceed the threshold, which should be 1 %.

    python benchmarks/release_check.py
"""

from __future__ import annotations

import numpy as np

import whosthere as wt
from whosthere.adversary.attacks import LikelihoodRatio
from whosthere.game.counted import Counted
from whosthere.game.release_check import score
from whosthere.privacy.scheme import TableScheme

PROTECTIONS = (
    "suppress(k=1)",
    "suppress(k=2)",
    "suppress(k=4)",
    "sdctools-d2",
    "laplace(eps=0.5, unit=event)",
)
N, TABLES, SEEDS, TAILS = 1000, (20, 50, 100), range(5), (0.025, 0.025)


def main() -> None:
    """Compare and print."""
    traces, attack = wt.simulate("milan-like", seed=7, users=N).traces(), LikelihoodRatio()
    everybody = np.arange(N)
    for spec in PROTECTIONS:
        release = wt.publish(traces, spec, seed=3).release
        counted = Counted((TableScheme(release.mechanism),), (traces,), everybody)
        nulls = np.empty(N)
        for i in everybody:
            made = counted.published(np.delete(everybody, i), 9, "one", int(i))
            nulls[i] = attack.score_everybody(made.releases[0], traces.select([i]))[0]
        found = attack.score_everybody(release, traces) > np.sort(nulls)[-10]
        print(f"{spec}: {found.mean():.3f} by single people")
        for n in TABLES:
            rows = []
            for seed in SEEDS:
                [scored] = score(
                    counted, [attack], [release], n_tables=n, seed=seed,
                    on_progress=lambda *_: None,
                )  # fmt: skip
                one = scored.found(0.01, TAILS)
                rows.append((one.share, one.low, one.high, (nulls > one.threshold).mean()))
            mean, spread = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1)
            print(
                f"  {n} tables:", *(f"{a:.4f} ± {b:.4f}" for a, b in zip(mean, spread, strict=True))
            )


if __name__ == "__main__":
    main()
