"""How sure the findings are: curves, controls, all numbers, and what attackers estimate."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from whosthere.auditing.reasons import FOUND
from whosthere.display import counted
from whosthere.inference.scores import comparable_scores
from whosthere.inference.vocabulary import CEILING, EXCESS, GUARANTEE, MUST_BE, UTILITY
from whosthere.reporting.charts.people import Curve, RocChart, Scatter
from whosthere.reporting.charts.svg import Chart, Key
from whosthere.reporting.sections import parts
from whosthere.reporting.sections.parts import ATTACK, PROTECTION, Head, Lookup, Panel, Table
from whosthere.reporting.words import shortened, words_of
from whosthere.seeds import generator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whosthere.arrays import Bools, Floats, Ints64
    from whosthere.auditing.result import AuditResult


RATES = np.union1d(np.linspace(0, 1, 51), np.geomspace(1e-4, 1, 49))
"""The false positive rates that curves are drawn at."""
_RESAMPLES = 200
_SHOWN = (
    *("auc", "pooled_auc", "accuracy", "tpr_at_fpr_10pct", FOUND),
    *("tpr_at_fpr_01pct", "share_auc_90", "empirical_eps", "empirical_eps_ceiling"),
)
_MOST_PANELS, _MOST_POINTS = 12, 200


class Sure(NamedTuple):
    """ROC curves of each protection, tables, and what attackers estimate against the truth."""

    curves: tuple[Panel, ...]
    attacks: Table
    controls: Table | None
    estimated: tuple[Panel, ...]


def sure_section(audit: AuditResult) -> Sure:
    """Return how sure the findings are."""
    found = Lookup(audit.findings)
    numbers = {verdict.setting: i for i, verdict in enumerate(audit.verdicts, 1)}
    chosen = found.riskiest(numbers, _MOST_PANELS)
    curves, estimated = [], []
    for setting, i in numbers.items():
        roc = _roc_charts(audit, found, setting)
        marginals = _marginal_charts(audit, setting) if setting in chosen else {}
        curves += [Panel(i, shortened(setting), roc)] if roc else []
        estimated += [Panel(i, shortened(setting), marginals)] if marginals else []
    return Sure(tuple(curves), _attacks(audit, found, numbers), _controls(audit), tuple(estimated))


def _roc_charts(audit: AuditResult, found: Lookup, setting: str) -> dict[str, Chart]:
    if not audit.scores.width:
        return {}
    here = audit.scores.filter(pl.col("setting") == setting)
    of_everybody = audit.everybody.curves.filter(setting=setting)
    seed = int(audit.plan["seed"])
    curves, n_out = [], 1
    for name in (*found.attacks_in(setting), CEILING):
        style = "ceiling" if name == CEILING else f"s{found.attacks.index(name) % 6}"
        key, asked = Key(shortened(name), style), of_everybody.filter(attack=name)
        if not asked.is_empty():
            ends = (asked[end].fill_null(asked["tpr"]).to_numpy() for end in ("low", "high"))
            curves.append(Curve(key, asked["fpr"].to_numpy(), asked["tpr"].to_numpy(), *ends))
            n_out = max(n_out, round(1 / asked["fpr"][0]))
            continue
        rows = here.filter(pl.col("attack") == name)
        n_in, without = int(rows["label"].sum()), int((~rows["label"]).sum())
        if n_in and without:
            curves.append(roc_curve(rows, key, seed=seed))
            n_out = max(n_out, without)
    if not curves:
        return {}
    title = f"ROC curves of {counted(len(curves), 'attack')} against {shortened(setting)}"
    smallest = min(max(10.0 ** -math.floor(math.log10(n_out)), 1e-4), 0.1)
    linear = RocChart(title, tuple(curves), found.value(setting, GUARANTEE, FOUND), None)
    logarithmic = replace(linear, title=f"{title}, logarithmic axes", smallest=smallest)
    return {"linear": linear, "logarithmic": logarithmic}


def roc_curve(rows: pl.DataFrame, key: Key, *, seed: int) -> Curve:
    """Return how many people one attack finds at each rate of false alarms, over all targets.

    The band holds 95 % of the curves of resamples of the targets, each with all of its releases.
    """
    scores, labels = comparable_scores(rows), rows["label"].to_numpy()
    _, target = np.unique(rows["target"].to_numpy(), return_inverse=True)
    order = np.argsort(-scores, kind="stable")
    # A threshold cannot lie between equal scores.
    last = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))
    labels, target = labels[order], target[order]
    n_targets = int(target.max()) + 1
    rng = generator(seed, "band of a curve")
    draws = rng.multinomial(n_targets, np.full(n_targets, 1 / n_targets), size=_RESAMPLES)
    curves = np.stack([_found(labels, weight[target], last) for weight in draws])
    low, high = np.percentile(curves, (2.5, 97.5), axis=0)
    middle = _found(labels, np.ones(labels.size, np.int64), last)
    return Curve(key, RATES, middle, np.minimum(low, middle), np.maximum(high, middle))


def _found(labels: Bools, weights: Ints64, last: NDArray[np.intp]) -> Floats:
    """Return the share of people found at each rate, of releases with weights, best score first."""
    tp, fp = np.cumsum(weights * labels)[last], np.cumsum(weights * ~labels)[last]
    rates = np.append(0.0, fp / max(int(fp[-1]), 1))
    found = np.append(0.0, tp / max(int(tp[-1]), 1))
    return np.asarray(found[np.searchsorted(rates, RATES + 1e-12, side="right") - 1])


def _attacks(audit: AuditResult, found: Lookup, numbers: dict[str, int]) -> Table:
    """Return every attack in every setting, and the lines that bound them."""
    places = dict.fromkeys(
        (one.setting, one.attack)
        for one in audit.findings
        if one.holds is None and one.attack != UTILITY and one.setting in numbers
    )
    ranks = {name: rank for rank, name in enumerate((*found.attacks, CEILING, GUARANTEE))}
    heads = (
        *(PROTECTION, ATTACK, *parts.metric_heads(_SHOWN), Head("targets", "target")),
        *(Head("releases with", "release"), Head("releases without", "release")),
    )
    rows = []
    for setting, attack in sorted(places, key=lambda at: (numbers[at[0]], ranks[at[1]])):
        own = [found.find(setting, attack, metric) for metric in _SHOWN]
        sample = next((one for one in own if one is not None), None)
        sizes = (sample.n_targets, sample.n_in, sample.n_out) if sample else ("", "", "")
        rows.append((parts.protection_cell(numbers[setting], setting), attack, *own, *sizes))
    return Table.of("Every attack against every protection, with 95 % intervals.", heads, rows)


def _controls(audit: AuditResult) -> Table | None:
    controls = [one for one in audit.findings if one.holds is not None]
    if not controls:
        return None
    control = Head("control", "control", numeric=False)
    rows = (
        (
            *(one.setting, one.attack, words_of(one.metric), replace(one, note=None)),
            parts.Cell("0 or less" if one.metric == EXCESS else f"{MUST_BE[one.metric]:g}"),
            "yes" if one.holds else "NO",
        )
        for one in controls
    )
    return Table.of(
        "The controls. Their intervals hold for all of them together (99 %).",
        (PROTECTION, ATTACK, control, Head("found"), Head("must be"), "holds"),
        rows,
    )


def _marginal_charts(audit: AuditResult, setting: str) -> dict[str, Chart]:
    charts: dict[str, Chart] = {}
    if audit.marginals.is_empty():
        return charts
    here = audit.marginals.filter(pl.col("setting") == setting).drop_nulls(["truth", "estimated"])
    for axis, words in (("region", "regions"), ("hour", "hours of the week")):
        rows = here.filter(pl.col("axis") == axis)
        # Some of many, from the largest to the smallest.
        rows = rows.sort("truth").gather_every(-(-rows.height // _MOST_POINTS) or 1)
        points = tuple(
            (truth, estimated, f"true {truth:.2%}, estimated {estimated:.2%}")
            for truth, estimated in rows.select("truth", "estimated").iter_rows()
        )
        if points:
            title = f"Estimated against true shares of {words}, {shortened(setting)}"
            x, y = f"true share of visits, {words}", "estimated share"
            charts[axis] = Scatter(title, x, y, points, diagonal=True)
    return charts
