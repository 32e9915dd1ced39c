"""Tables that nest: hours and region-days, judged together and as a sum of terms.

    whosthere simulate milan-like --users 10000 --seed 1 --out city
    whosthere ingest city/records.parquet --regions city/regions.csv --out milan.parquet
    python benchmarks/nested_tables.py milan.parquet --group 1000
    python benchmarks/nested_tables.py milan.parquet --distinct --hours 4 --hours 24

Every draw publishes a group, and scores as many people of it as others. Both scores are of the same
releases; differences have standard errors over draws.
"""

import argparse

import numpy as np
from sklearn.metrics import roc_auc_score, roc_curve

import whosthere as wt
from whosthere.adversary.attacks.base import Auxiliary, View
from whosthere.adversary.nested import Null, chains
from whosthere.adversary.scorer import Asked, Table
from whosthere.data.traces import Group
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.publish import publish_table
from whosthere.privacy.scheme import ORDINARY, Layout

SPECS = ["suppress(k=1)", "suppress(k=2)", "suppress(k=5)", "round(to=5)"]
NOISE = "laplace(eps=0.5, unit=event)"
CUT = 50.0


def scores(
    layouts: list,
    people: list,
    rows: np.ndarray,
    asked: np.ndarray,
    *,
    spec: str,
    rng: np.random.Generator,
) -> np.ndarray:
    """Publish some people, and return scores of others by table, and of the tables together."""
    mechanism = Mechanism.parse(spec)
    made = [
        publish_table(Group(one, rows), mechanism, bounding=rng, noise=rng).release
        for one in people
    ]
    tables = [Table.of(release) for release in made]
    found = []
    for person in asked:
        known = [one.select([person]) for one in people]
        views = [
            View(release.facts, one, Auxiliary(), layout)
            for release, one, layout in zip(made, known, layouts, strict=True)
        ]
        nulls = [
            Null(table, Asked.of(table.rows(one), table.lines))
            for table, one in zip(tables, known, strict=True)
        ]
        alone = [float(null.table.score(null.asked)[0]) for null in nulls]
        together = sum(chain.score([nulls[i] for i in chain.places]) for chain in chains(views))
        found.append([*alone, sum(alone), together])
    return np.clip(np.array(found), -CUT, CUT)


def measures(labels: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """Return AUC and TPR at 1 % FPR over everybody."""
    false, true, _ = roc_curve(labels, values)
    return roc_auc_score(labels, values), true[false <= 0.01].max()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("traces")
    parser.add_argument("--group", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=6)
    parser.add_argument("--people", type=int, default=300, help="asked of each kind in a draw")
    parser.add_argument("--visits", type=int, default=5, help="the fewest of those asked")
    parser.add_argument("--hours", type=int, action="append", help="epochs of a total; 24")
    parser.add_argument("--distinct", action="store_true", help="totals of distinct people")
    parser.add_argument("--spec", action="append", help="instead of the usual ones")
    options = parser.parse_args()
    traces = wt.Traces.load(options.traces)
    counts = "people" if options.distinct else "visits"
    layouts = [ORDINARY, *(Layout(epochs=n, counts=counts) for n in options.hours or [24])]
    people = [layout(traces) for layout in layouts]
    eligible = np.flatnonzero(traces.visits_per_user() >= options.visits)
    totals = " | ".join(f"{layout.epochs} hours" for layout in layouts[1:])
    print(f"| | hours | {totals} | sum of terms | together | together - sum |")
    print("|---" * (len(layouts) + 4) + "|")
    for spec in options.spec or [*SPECS, NOISE]:
        by_draw = []
        for draw in range(options.draws):
            rng = np.random.default_rng(draw)
            rows = np.sort(rng.choice(traces.n_users, options.group, replace=False))
            inside = np.isin(eligible, rows)
            asked = [rng.permutation(eligible[one])[: options.people] for one in (inside, ~inside)]
            labels = np.repeat([1, 0], [one.size for one in asked])
            found = scores(layouts, people, rows, np.concatenate(asked), spec=spec, rng=rng)
            by_draw.append([measures(labels, column) for column in found.T])
        means = np.mean(by_draw, axis=0)
        more = np.array(by_draw)[:, -1] - np.array(by_draw)[:, -2]
        error = more.std(axis=0, ddof=1) / np.sqrt(len(more))
        shown = " | ".join(f"{auc:.3f} / {tpr:.2f}" for auc, tpr in means)
        said = " / ".join(
            f"{d:+.4f} ± {e:.4f}" for d, e in zip(more.mean(axis=0), error, strict=True)
        )
        print(f"| `{spec}` | {shown} | {said} |", flush=True)


if __name__ == "__main__":
    main()
