"""Pictures of what an audit found; needs the `plot` extra."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from matplotlib import rc_context
from matplotlib.figure import Figure

from whosthere.errors import InputError, suggestion
from whosthere.inference.vocabulary import CEILING, METRICS, NOT_ATTACKS

if TYPE_CHECKING:
    from pathlib import Path

    from whosthere.auditing.result import AuditResult

# Colour-blind safe (Okabe and Ito), the ceiling in black.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = "oDs^vP"


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


def draw_findings(result: AuditResult, metric: str = "auc") -> Picture:
    """Draw a metric of every attack in every setting, with intervals and the policy's limit."""
    found = [one for one in result.findings if one.metric == metric and one.estimate is not None]
    if not found:
        known = dict.fromkeys(one.metric for one in result.findings)
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
