"""Risk against weeks: a table that is published every week, scored for everybody.

    python benchmarks/weeks.py measure mibici.parquet results/weeks.csv
    python benchmarks/weeks.py measure milan-like-28.parquet results/weeks.csv --weeks 1,2,3,4
    python benchmarks/weeks.py draw results/weeks.csv docs/images/weeks.svg

`measure` reads plans/weeks.toml. For each protection and number of weeks it draws groups, publishes
them, lets the likelihood ratio score everybody with enough visits, and adds a row to the CSV file.
Rows that are there are not measured again. Scores are cut at 50 and -50. AUC and TPR at 1 % FPR are
over all people and draws; their standard errors are those of the means over draws, each of which
has another group. `guaranteed` is the mean AUC that no attacker exceeds, by differential privacy.
`eps` is the budget of all weeks together for whoever has most to lose, in the game that is played.
The picture is of the likelihood ratio as it is. The results hold the bike share with
`--attack 'likelihood-ratio(rates=rank-one)'` as well, which knows no rates by the hour of the week.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import cast

import matplotlib as mpl

mpl.use("svg")
mpl.rcParams |= {"svg.hashsalt": "whosthere", "svg.fonttype": "none", "font.size": 8}

import matplotlib.pyplot as plt
import numpy as np
import polars as pl

from whosthere.adversary.attacks import Attack, LikelihoodRatio
from whosthere.auditing.plan_file import read_plan_file
from whosthere.data.traces import Group, Traces
from whosthere.privacy.guarantees import Spent, best_test, guarantee_for_all
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.publish import publish_table
from whosthere.privacy.scheme import Layout, TableScheme
from whosthere.seeds import generator

PLAN = Path(__file__).parent / "plans" / "weeks.toml"
CUT, FPR = 50.0, 0.01
NAMES = {
    "suppress(k=1)": ("k = 1", "#0072B2", "-"),
    "suppress(k=2)": ("k = 2", "#56B4E9", "-"),
    "suppress(k=5)": ("k = 5", "#009E73", "-"),
    "random-round(to=3)": ("random rounding to 3", "#E69F00", "-"),
    "cell-key(d=5, v=3, js=2)": ("cell key", "#CC79A7", "-"),
    "laplace(eps=0.1, unit=event)": ("eps 0.1 for each visit", "#D55E00", "--"),
    "laplace(eps=1, unit=event)": ("eps 1 for each visit", "#D55E00", "-"),
    "laplace(eps=1, unit=user-day, max_visits=10)": ("eps 1 for each day", "#666666", "-"),
}


def risk(inside: np.ndarray, outside: np.ndarray) -> tuple[float, float]:
    """Return the AUC and the TPR at 1 % FPR."""
    every = np.sort(outside)
    below, up_to = (np.searchsorted(every, inside, side) for side in ("left", "right"))
    auc = float((below + up_to).mean() / 2 / every.size)
    # Where scores tie with the threshold, as many are named as the rate leaves room for.
    at = every[-max(int(FPR * every.size), 1)]
    above, ties = (outside > at).mean(), (outside == at).mean()
    share = (FPR - above) / ties
    return auc, float((inside > at).mean() + share * (inside == at).mean())


def measure(
    traces: Traces, table: TableScheme, m: int, least: int, *, seed: int, draws: int, attack: str
) -> dict[str, float | None]:
    """Score everybody in some draws of a table."""
    asked = traces.visits_per_user() >= least
    people, chosen = table.layout(traces), cast("LikelihoodRatio", Attack.parse(attack))
    who = np.flatnonzero(asked)
    scored = people.select(who)
    found: list[tuple[np.ndarray, np.ndarray]] = []
    for draw in range(draws):
        # The same people throughout, whatever is done to their counts and for how long.
        rows = generator(seed, "group", m, draw).choice(people.n_users, m, replace=False)
        rng = generator(seed, "noise", table.mechanism.content, m, draw)
        made = publish_table(Group(people, rows), table.mechanism, bounding=rng, noise=rng)
        scores = chosen.score_everybody(made.release, scored).clip(-CUT, CUT)
        is_in = np.isin(who, rows)
        found.append((scores[is_in], scores[~is_in]))
    auc, tpr = risk(*(np.concatenate(part) for part in zip(*found, strict=True)))
    by_draw = np.array([risk(*one) for one in found])
    errors = by_draw.std(axis=0, ddof=1) / np.sqrt(draws)
    promised = guarantee_for_all([(table.mechanism, people)])
    each = None if promised is None else mean_guarantee(table.mechanism, people, asked)
    return {
        "auc": auc,
        "auc_error": float(errors[0]),
        "tpr": tpr,
        "tpr_error": float(errors[1]),
        "guaranteed": each,
        "eps": None if promised is None else promised.worst.pure_eps,
    }


def mean_guarantee(mechanism: Mechanism, people: Traces, asked: np.ndarray) -> float:
    """Return the mean of largest AUCs, with whoever spends most in the place of each person."""
    spent = np.stack(mechanism.guarantee.unit.contributions(people), axis=1)
    rows, times = np.unique(spent[asked], axis=0, return_counts=True)
    most = Spent(*spent.max(axis=0).tolist())
    aucs = [best_test(mechanism, Spent(*row), most).auc for row in rows.tolist()]
    return float(np.average(aucs, weights=times))


def measure_all(path: Path, results: Path, weeks: str | None, draws: int, attack: str) -> None:
    """Measure what the results do not have yet."""
    options, traces = read_plan_file(PLAN), Traces.load(path)
    [block] = options.blocks
    times = block.weeks if weeks is None else tuple(map(int, weeks.split(",")))
    for n in times:
        for mechanism in block.mechanisms:
            key = {
                "data": path.stem,
                "mechanism": str(mechanism),
                "weeks": n,
                "draws": draws,
                "attack": attack,
            }
            rows = pl.read_csv(results) if results.exists() else pl.DataFrame()
            if not rows.is_empty() and not rows.filter(**key).is_empty():
                continue
            table = TableScheme(mechanism, Layout(times=n))
            who = block.group_size[0], options.min_visits
            found = measure(traces, table, *who, seed=options.seed, draws=draws, attack=attack)
            row = pl.DataFrame([key | found]).with_columns(pl.col("guaranteed", "eps").cast(float))
            pl.concat([rows, row], how="diagonal_relaxed").write_csv(results, float_precision=4)
            print(*key.values(), *(value and round(value, 3) for value in found.values()))


def draw(results: Path, path: Path) -> None:
    """Draw AUC and TPR against weeks, with intervals of two standard errors."""
    rows = pl.read_csv(results).filter(attack="likelihood-ratio")
    data = rows["data"].unique(maintain_order=True).to_list()
    figure, panels = plt.subplots(
        2,
        len(data),
        figsize=(3 * len(data), 5.6),
        layout="constrained",
        squeeze=False,
        sharey="row",
    )
    for (upper, lower), name in zip(panels.T, data, strict=True):
        for mechanism, (label, colour, line) in NAMES.items():
            own = rows.filter(data=name, mechanism=mechanism).sort("weeks")
            for axes, metric in ((upper, "auc"), (lower, "tpr")):
                error = 2 * own[f"{metric}_error"].to_numpy()
                axes.errorbar(own["weeks"], own[metric], error, color=colour, ls=line, marker="o",
                              ms=2.5, lw=1.2, label=label)  # fmt: skip
            if "user-day" in mechanism:
                upper.plot(own["weeks"], own["guaranteed"], ":", color=colour, lw=1.2,
                           label="guarantee of eps 1 for each day")  # fmt: skip
        for axes in (upper, lower):
            axes.set(xscale="log", xticks=sorted(set(rows.filter(data=name)["weeks"])))
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0f}")
            axes.minorticks_off()
            axes.spines[["top", "right"]].set_visible(False)
        upper.set(title=name, ylim=(0.45, 1.02))
        lower.set(xlabel="weeks", ylim=(0, 1.02))
    panels[0, 0].set_ylabel("AUC over everybody")
    panels[1, 0].set_ylabel("TPR at 1 % FPR")
    lines, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(lines, labels, frameon=False, loc="outside lower center", ncols=3)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Measure, or draw what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("measure", "draw"))
    parser.add_argument("source", type=Path, help="traces, or results to draw")
    parser.add_argument("out", type=Path, help="results, or the picture")
    parser.add_argument("--weeks", help="other numbers than those of the plan, such as 1,2,3,4")
    parser.add_argument("--draws", type=int, default=32, help="groups of each table")
    parser.add_argument("--attack", default="likelihood-ratio")
    given = parser.parse_args()
    if given.what == "draw":
        draw(given.source, given.out)
    else:
        measure_all(given.source, given.out, given.weeks, given.draws, given.attack)


if __name__ == "__main__":
    main()
