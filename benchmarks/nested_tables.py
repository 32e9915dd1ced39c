"""Tables that nest: judged together, as a sum of terms, and by the chains of a former version.

    python benchmarks/nested_tables.py --out benchmarks/results/nested_tables.csv
    PYTHONPATH=../former/src python benchmarks/nested_tables.py --save former.npz
    python benchmarks/nested_tables.py --against former.npz --out ...

Hours and totals of them, in 23 settings: 17 of two tables and 6 of three. Each draw publishes a
group of 1,000 and scores everybody with 5 visits or more. The former version scored one person
after the other, so its scores are of some people of each kind; `--save` says of how many. All
scores are of the same releases, so differences of AUC and TPR at 1 % FPR are paired; they have
standard errors over draws. Beside them stand gains over the sum with the finer table's own rates,
and with visits that are independent. Times are in processor time on one core: a round (rates, and
everybody's scores) of all tables over one of the hours alone, in turn, the median over draws.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_variable] = "1"

import numpy as np
from sklearn.metrics import roc_auc_score

import whosthere as wt
from whosthere.adversary.attacks.base import Auxiliary, View
from whosthere.attacks import LikelihoodRatio
from whosthere.data.traces import Group
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.publish import publish_table
from whosthere.privacy.scheme import ORDINARY, Layout

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from whosthere.data.traces import Traces
    from whosthere.privacy.release import Release

NOISE = "laplace(eps=0.5, unit=event)"
SPECS = ("suppress(k=2)", "suppress(k=5)", "round(to=5)", NOISE)
CITIES = ("milan-like", "cdr-like")
DISTRICTS = Layout(regions=tuple(i // 10 for i in range(100)), counts="visits")
SETTINGS = [
    *(
        (city, counts, (Layout(epochs=24, counts=counts),), spec)
        for city in CITIES
        for counts in ("visits", "people")
        for spec in SPECS
    ),
    ("milan-like", "visits", (DISTRICTS,), SPECS[0]),
    *(
        ("milan-like", counts, tuple(Layout(epochs=n, counts=counts) for n in (4, 24)), spec)
        for counts in ("visits", "people")
        for spec in (*SPECS[:2], NOISE)
    ),
]
GROUP, USERS, DAYS, VISITS = 1000, 10_000, 3, 5
CUT = -1e6


def name_of(setting: tuple) -> str:
    """Return what a setting is called."""
    city, counts, totals, spec = setting
    cells = ["districts" if one.regions else f"{one.epochs} hours" for one in totals]
    return f"{city}: hours + {' + '.join(cells)}, {counts}, {spec}"


def draws(
    traces: Traces, layouts: Sequence[Layout], spec: str, n: int
) -> Iterator[tuple[list[Traces], list[Release], np.ndarray]]:
    """Yield people over the cells of each table, the releases, and who is in them."""
    people, mechanism = [layout(traces) for layout in layouts], Mechanism.parse(spec)
    for draw in range(n):
        rng = np.random.default_rng([draw, 1])
        rows = np.sort(rng.choice(traces.n_users, GROUP, replace=False))
        made = [
            publish_table(Group(one, rows), mechanism, bounding=rng, noise=rng).release
            for one in people
        ]
        yield people, made, np.isin(np.arange(traces.n_users), rows)


def asked_of(traces: Traces, inside: np.ndarray, n: int, draw: int) -> np.ndarray:
    """Choose so many people of each kind."""
    rng, enough = np.random.default_rng([draw, 2]), traces.visits_per_user() >= VISITS
    kinds = (np.flatnonzero(enough & (inside == kind)) for kind in (True, False))
    return np.concatenate([rng.permutation(one)[:n] for one in kinds])


def digest(releases: Sequence[Release]) -> int:
    """Return a number by which releases are told to be the same."""
    return zlib.crc32(b"".join(one.values.tobytes() for one in releases))


def former_scores(
    people: list[Traces], layouts: Sequence[Layout], releases: list[Release], asked: np.ndarray
) -> np.ndarray:
    """Score some people by the chains of the former version."""
    # Names of the former version.
    from whosthere.adversary.attacks.likelihood_ratio import Null, _lines  # noqa: PLC0415
    from whosthere.adversary.knowledge import KnownVisits  # noqa: PLC0415
    from whosthere.adversary.nested import chains  # noqa: PLC0415
    from whosthere.adversary.rates import fit_rates  # noqa: PLC0415

    lines, found = [_lines(one, fit_rates(one)) for one in releases], []
    for person in asked:
        known = [KnownVisits(one.trace(person), one.added(person)) for one in people]
        views = [
            View(release.facts, one, Auxiliary(), layout)
            for release, one, layout in zip(releases, known, layouts, strict=True)
        ]
        nulls = [
            Null.of(release, at, one.cells, np.ones(one.cells.size), added=one.added)
            for release, at, one in zip(releases, lines, known, strict=True)
        ]
        found.append(sum(c.score([nulls[i] for i in c.places]) for c in chains(views)))
    return np.maximum(found, CUT)


def tpr(labels: np.ndarray, scores: np.ndarray) -> float:
    """Return the TPR at 1 % FPR."""
    return float((scores[labels] > np.quantile(scores[~labels], 0.99)).mean())


def said(differences: np.ndarray) -> tuple[float, float]:
    """Return the mean of paired differences and its standard error."""
    error = differences.std(ddof=1) / np.sqrt(differences.size)
    return round(float(differences.mean()), 4), round(float(error), 4)


def measure(traces: Traces, setting: tuple, n: int, former: np.lib.npyio.NpzFile | None) -> dict:
    """Measure one setting."""
    # Not needed to save the scores of a former version.
    from whosthere.adversary import nested  # noqa: PLC0415
    from whosthere.adversary.scorer import Scorer  # noqa: PLC0415

    _, _, totals, spec = setting
    layouts, enough = (ORDINARY, *totals), traces.visits_per_user() >= VISITS
    rows, beside, ratios, without, scorers = [], [], [], [], None

    def with_own_rates(releases: Sequence[Release]) -> np.ndarray:
        with mock.patch.object(nested, "_ROUNDS", 0):
            return scorers[2](releases)

    def with_independent_visits(releases: Sequence[Release]) -> np.ndarray:
        with mock.patch.object(nested, "_BUNCHED", (0.0,)):
            return scorers[2](releases)

    for draw, (people, releases, inside) in enumerate(draws(traces, layouts, spec, n)):
        if scorers is None:
            views = [
                View(release.facts, one, Auxiliary(), layout)
                for release, one, layout in zip(releases, people, layouts, strict=True)
            ]
            scorers = Scorer(people[:1]), Scorer(people), LikelihoodRatio().scorer(views)
            scorers[0](releases[:1]), scorers[2](releases)
        begun = time.process_time()
        scorers[0](releases[:1])
        between = time.process_time()
        together = scorers[2](releases)
        ratios.append((time.process_time() - between) / (between - begun))
        apart, together = (np.maximum(one, CUT) for one in (scorers[1](releases), together))
        labels = inside[enough]
        both = apart[enough], together[enough]
        rows.append([[of(labels, one) for one in both] for of in (roc_auc_score, tpr)])
        without.append(
            [
                roc_auc_score(labels, np.maximum(one(releases), CUT)[enough]) - rows[-1][0][0]
                for one in (with_own_rates, with_independent_visits)
            ]
        )
        key = f"{name_of(setting)}, {draw}"
        if former is not None and f"{key}: scores" in former:
            if former[f"{key}: releases"] != digest(releases):
                raise SystemExit(f"the former version published something else: {key}")
            scores = former[f"{key}: scores"]
            asked = asked_of(traces, inside, scores.size // 2, draw)
            each = apart[asked], scores, together[asked]
            beside.append([roc_auc_score(inside[asked], one) for one in each])
    auc, at_one = np.array(rows).transpose(1, 2, 0)
    found = {"setting": name_of(setting), "draws": n, "auc_sum": round(float(auc[0].mean()), 4)}
    found["auc_gain"], found["auc_gain_error"] = said(auc[1] - auc[0])
    found["tpr_sum"] = round(float(at_one[0].mean()), 4)
    found["tpr_gain"], found["tpr_gain_error"] = said(at_one[1] - at_one[0])
    for i, name in enumerate(("own_rates", "independent_visits")):
        gains = said(np.array(without)[:, i])
        found[f"auc_gain_{name}"], found[f"auc_gain_{name}_error"] = gains
    found["times_one_table"] = round(float(np.median(ratios)), 1)
    if beside:
        of_sum, of_chains, of_trees = np.array(beside).T
        found["chains_over_sum"], found["chains_over_sum_error"] = said(of_chains - of_sum)
        found["over_chains"], found["over_chains_error"] = said(of_trees - of_chains)
        found["chains_by"] = str(former["commit"])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=6)
    parser.add_argument("--seed", type=int, default=11, help="of the cities")
    parser.add_argument("--people", type=int, default=100, help="of each kind, with --save")
    parser.add_argument("--save", help="where scores of a former version go")
    parser.add_argument("--commit", default="unknown", help="of the former version, with --save")
    parser.add_argument("--against", help="saved scores of a former version")
    parser.add_argument("--out", help="a table of results")
    parser.add_argument("--only", default="", help="settings whose name holds this")
    options = parser.parse_args()
    cities = {
        name: wt.simulate(name, seed=options.seed, users=USERS, days=DAYS).traces()
        for name in CITIES
    }
    chosen = [one for one in SETTINGS if options.only in name_of(one)]
    if options.save:
        saved: dict[str, np.ndarray] = {"commit": np.array(options.commit)}
        for setting in chosen:
            city, _, totals, spec = setting
            layouts = (ORDINARY, *totals)
            for draw, drawn in enumerate(draws(cities[city], layouts, spec, options.draws)):
                people, releases, inside = drawn
                asked = asked_of(cities[city], inside, options.people, draw)
                key = f"{name_of(setting)}, {draw}"
                saved[f"{key}: scores"] = former_scores(people, layouts, releases, asked)
                saved[f"{key}: releases"] = np.array(digest(releases))
            print(name_of(setting), flush=True)
        np.savez(options.save, **saved)
        return
    former = np.load(options.against) if options.against else None
    rows = []
    for setting in chosen:
        rows.append(measure(cities[setting[0]], setting, options.draws, former))
        print(rows[-1], flush=True)
    if options.out:
        with Path(options.out).open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
