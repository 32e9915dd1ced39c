"""Rates by the hour of the week: the likelihood ratio with and without, on the same releases.

    whosthere ingest mibici_2016_jan_apr.parquet --region-column station \
        --timezone America/Mexico_City --epoch 1h --out bikes.parquet
    python benchmarks/weekly_rates.py bikes.parquet --weeks 17 --visits 20

Every draw publishes a group and scores everybody with so many visits. Differences have standard
errors over draws. Scores are cut at 50.
"""

import argparse

import numpy as np
from sklearn.metrics import roc_auc_score, roc_curve

import whosthere as wt
from whosthere.adversary.rates import factors, hours_of_week, low_rank
from whosthere.adversary.scorer import Scorer
from whosthere.data.traces import Group
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.publish import publish_table
from whosthere.privacy.scheme import Layout

SPECS = (
    "suppress(k=1)",
    "suppress(k=2)",
    "suppress(k=5)",
    "random-round(to=3)",
    "laplace(eps=0.1, unit=event)",
    "laplace(eps=1, unit=event)",
)
CUT = 50.0


def measures(labels: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """Return AUC and TPR at 1 % FPR over everybody."""
    false, true, _ = roc_curve(labels, values)
    return roc_auc_score(labels, values), true[false <= 0.01].max()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("traces")
    for name, usual in (("weeks", 4), ("group", 1000), ("draws", 4), ("visits", 20)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--spec", action="append", help="instead of the usual ones")
    options = parser.parse_args()
    traces = wt.Traces.load(options.traces)
    asked = traces.visits_per_user() >= options.visits
    traces = Layout(times=options.weeks)(traces)
    print("| | without | with | difference |")
    print("|---|---|---|---|")
    for spec in options.spec or SPECS:
        by_draw = []
        for draw in range(options.draws):
            rng = np.random.default_rng(draw)
            rows = np.sort(rng.choice(traces.n_users, options.group, replace=False))
            group, mechanism = Group(traces, rows), Mechanism.parse(spec)
            release = publish_table(group, mechanism, bounding=rng, noise=rng).release
            labels = np.isin(np.arange(traces.n_users), rows)[asked]
            found, without = [], (factors, low_rank)
            for parts in (without, (*without, hours_of_week)):
                scores = Scorer([traces], parts)([release])
                found.append(measures(labels, np.clip(scores, -CUT, CUT)[asked]))
            by_draw.append(found)
        means, more = np.mean(by_draw, axis=0), np.diff(by_draw, axis=1)[:, 0]
        error = more.std(axis=0, ddof=1) / np.sqrt(len(more))
        shown = " | ".join(f"{auc:.3f} / {tpr:.2f}" for auc, tpr in means)
        gained = zip(more.mean(axis=0), error, strict=True)
        said = " / ".join(f"{mean:+.4f} ± {one:.4f}" for mean, one in gained)
        print(f"| `{spec}` | {shown} | {said} |", flush=True)


if __name__ == "__main__":
    main()
