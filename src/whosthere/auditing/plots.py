"""Pictures of what an audit found; needs the `plot` extra."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from whosthere.errors import InputError, suggestion
from whosthere.inference.scores import comparable_scores
from whosthere.inference.vocabulary import CEILING, METRICS, NOT_ATTACKS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    import polars as pl

    from whosthere.arrays import Floats
    from whosthere.auditing.result import AuditResult

# Colour-blind safe (Okabe and Ito), the ceiling in black.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = "oDs^vP"
_PANELS_IN_A_ROW = 3


class Picture(Figure):
    """A figure that notebooks can show, whether or not they were set up for matplotlib."""

    def _repr_png_(self) -> bytes:
        drawn = io.BytesIO()
        self.savefig(drawn, format="png", dpi=120)
        return drawn.getvalue()

    def write(self, path: Path, ending: str) -> None:
        """Write the figure as ``svg`` or ``png``; the same figure always gives the same file."""
        # Text stays text: smaller, and readable by programs.
        with rc_context({"svg.hashsalt": "whosthere", "svg.fonttype": "none"}):
            metadata = {"Date": None} if ending == "svg" else {"Software": None}
            self.savefig(path, format=ending, dpi=160, metadata=metadata)


def draw(result: AuditResult, what: str) -> Picture:
    """Draw a metric, or one of the other pictures by its name."""
    pictures = {"roc": _draw_roc, "people": _draw_people}
    return pictures[what](result) if what in pictures else _draw_findings(result, what, pictures)


def _draw_roc(result: AuditResult) -> Picture:
    """Draw how many people each attack finds at which rate of false alarms, over all asked."""
    everybody = result.everybody.curves

    def line(rows: pl.DataFrame) -> tuple[Floats, Floats]:
        asked = everybody.filter(setting=rows["setting"][0], attack=rows["attack"][0])
        if asked.is_empty():
            return _roc(rows)
        return asked["fpr"].to_numpy(), asked["tpr"].to_numpy()

    figure = _panels(result.scores, line)
    guessing = np.linspace(0, 1, 500) ** 2
    for axis in figure.axes:
        axis.plot(guessing, guessing, color="#999999", linestyle=":", linewidth=1)
        # Few false alarms are what an attacker wants.
        axis.set_xscale("symlog", linthresh=0.01, linscale=0.5)
        axis.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="false-alarm rate", ylabel="share found")
    return figure


def _roc(rows: pl.DataFrame) -> tuple[Floats, Floats]:
    from sklearn.metrics import roc_curve  # noqa: PLC0415 - slow to import

    false_alarms, found, _ = roc_curve(rows["label"].to_numpy(), comparable_scores(rows))
    return false_alarms, found


def _draw_people(result: AuditResult) -> Picture:
    """Draw the AUC of each attack on each target, from who is found best to who is found least."""
    figure = _panels(result.targets, _by_person)
    for axis in figure.axes:
        axis.axhline(0.5, color="#999999", linestyle=":", linewidth=1)
        axis.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="share of targets", ylabel="AUC")
    return figure


def _by_person(rows: pl.DataFrame) -> tuple[Floats, Floats]:
    # The last one's step has an end too.
    values = rows["auc"].sort(descending=True).to_numpy()
    return np.arange(rows.height + 1) / rows.height, np.append(values, values[-1])


def _panels(table: pl.DataFrame, line: Callable[[pl.DataFrame], tuple[Floats, Floats]]) -> Picture:
    """Draw a line for each attack, in a panel for each setting."""
    if not table.width:
        raise InputError("nothing was scored, as every task failed", fix="log.txt says why")
    settings = table.partition_by("setting", maintain_order=True)
    attacks = list(dict.fromkeys(table["attack"]))
    wide = min(len(settings), _PANELS_IN_A_ROW)
    tall = -(-len(settings) // wide)
    figure = Picture(figsize=(1 + 3.5 * wide, 1 + 3 * tall), layout="constrained")
    for i, own in enumerate(settings):
        axis = figure.add_subplot(tall, wide, i + 1, title=own["setting"][0])
        axis.title.set_fontsize("small")
        for rows in own.partition_by("attack", maintain_order=True):
            name = rows["attack"][0]
            colour = "black" if name == CEILING else COLOURS[attacks.index(name) % len(COLOURS)]
            axis.step(*line(rows), where="post", color=colour, linewidth=1.2, label=name)
        axis.spines[["top", "right"]].set_visible(False)
    named = {
        label: drawn
        for axis in figure.axes
        for drawn, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        named.values(), named, loc="outside lower center", ncols=min(len(named), 3), frameon=False
    )
    return figure


def _draw_findings(result: AuditResult, metric: str, pictures: Iterable[str]) -> Picture:
    """Draw a metric of every attack in every setting, with intervals and the policy's limit."""
    found = [one for one in result.findings if one.metric == metric and one.estimate is not None]
    if not found:
        drawable = (one.metric for one in result.findings if one.estimate is not None)
        known = dict.fromkeys([*pictures, *drawable])
        raise InputError(f"no {metric!r} was measured", fix=suggestion(metric, known))
    settings = list(dict.fromkeys(str(one.setting) for one in found))
    attacks = sorted(
        dict.fromkeys(one.attack for one in found), key=lambda name: name in NOT_ATTACKS
    )
    figure = Picture(
        figsize=(8, 1.5 + 0.22 * len(settings) * (len(attacks) + 1)), layout="constrained"
    )
    axis = figure.subplots()
    for i, attack in enumerate(attacks):
        own = [one for one in found if one.attack == attack]
        rows = [settings.index(one.setting) + (i + 0.5) / len(attacks) * 0.8 - 0.4 for one in own]
        values = [float(one.estimate or 0) for one in own]
        below = [v - (v if o.low is None else o.low) for v, o in zip(values, own, strict=True)]
        above = [(v if o.high is None else o.high) - v for v, o in zip(values, own, strict=True)]
        is_ceiling = attack == CEILING
        axis.errorbar(
            values,
            rows,
            xerr=(below, above),
            fmt="|" if is_ceiling else MARKERS[i % len(MARKERS)],
            color="black" if is_ceiling else COLOURS[i % len(COLOURS)],
            markersize=5,
            elinewidth=1,
            label=attack,
        )
    for limit in result.policy.limits:
        if limit.metric == metric:
            axis.axvline(limit.most, color="#b91c1c", linestyle="--", linewidth=1, label="limit")
    axis.set_yticks(range(len(settings)), settings)
    axis.invert_yaxis()
    axis.set_xlabel(METRICS[metric].words)
    axis.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    return figure
