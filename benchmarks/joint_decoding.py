"""How much more somebody finds who has everybody's traces: joint decoding and the likelihood ratio.

    whosthere simulate milan-like --seed 1 --out city
    whosthere ingest city/records.parquet --regions city/regions.csv --out traces.parquet
    python benchmarks/joint_decoding.py traces.parquet

Every release holds a quarter of the first 4,000 people. AUC and TPR at 1 % FPR are those of all
people with five or more visits together in one release. Means and errors are over releases.
"""

import argparse

import numpy as np
from sklearn.metrics import roc_auc_score, roc_curve

import whosthere as wt

PEOPLE, GROUP, LEAST_VISITS = 4000, 1000, 5
MECHANISMS = (
    "suppress(k=1)",
    "suppress(k=2)",
    "suppress(k=3)",
    "suppress(k=5)",
    "round(to=5)",
    "random-round(to=3)",
    "laplace(eps=0.5, unit=event)",
    "laplace(eps=1, unit=event)",
    "laplace(eps=1, unit=event) | suppress(k=1)",
    "laplace(eps=5, unit=user-day, max_visits=10)",
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("traces")
    parser.add_argument("--releases", type=int, default=16)
    given = parser.parse_args()
    people = wt.Traces.load(given.traces).select(np.arange(PEOPLE))
    asked = people.visits_per_user() >= LEAST_VISITS
    attacks = wt.attacks.LikelihoodRatio(), wt.attacks.JointDecoding()
    print("| protection | likelihood ratio | joint decoding |\n|---|---|---|")
    for mechanism in MECHANISMS:
        found = []
        for seed in range(given.releases):
            made = wt.publish(people, mechanism, group_size=GROUP, seed=seed)
            inside = np.isin(np.arange(PEOPLE), made.group.rows)[asked]
            for attack in attacks:
                scores = attack.score_everybody(made.release, people)[asked]
                false, true, _ = roc_curve(inside, scores)
                found.append((roc_auc_score(inside, scores), np.interp(0.01, false, true)))
        numbers = np.array(found).reshape(given.releases, len(attacks), 2)
        error = numbers.std(axis=0, ddof=1) / np.sqrt(given.releases)
        cells = [
            " / ".join(f"{mean:.3f} ± {off:.3f}" for mean, off in zip(*one, strict=True))
            for one in zip(numbers.mean(axis=0), error, strict=True)
        ]
        print(f"| `{mechanism}` | {' | '.join(cells)} |".replace(") | s", ") \\| s"), flush=True)


if __name__ == "__main__":
    main()
