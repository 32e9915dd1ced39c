"""The paper's figures of its data: marginals, activity, visits, suppression; needs matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from whosthere.auditing.plots import COLOURS, MARKERS
from whosthere.paper.description import LENGTHS, SCALES, THRESHOLDS, fitted_laws
from whosthere.paper.figures import panels

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

    from whosthere.auditing.plots import Picture
    from whosthere.paper.description import Description, Floats

_BUSIEST_FIRST = "regions, the busiest first"
_TRUTH, _BEFORE, _AFTER = "#b91c1c", "#9ca3af", COLOURS[0]


def _marginals(xlabel: str, **lines: tuple[str, Floats]) -> Picture:
    """Draw marginals over one another: before a correction, after it, and the truth."""
    figure, (axis,) = panels(1, size=(7.2, 2.6))
    colours = {"before": _BEFORE, "after": _AFTER, "truth": _TRUTH}
    for which, (label, values) in lines.items():
        axis.plot(values, color=colours[which], label=label, linewidth=1)
    axis.set(xlabel=xlabel, ylabel="share of visits")
    axis.legend(frameon=False, fontsize=8)
    return figure


def _time_marginal(found: Description) -> Picture:
    return _marginals(
        "epoch",
        before=("release, k = 1", found.suppressed_time),
        after=("log-compressed", found.compressed_time),
        truth=("truth", found.true_time),
    )


def _space_marginal(found: Description) -> Picture:
    order = np.argsort(-found.true_space)
    return _marginals(
        _BUSIEST_FIRST,
        before=("release, noise of scale 1", found.noisy_space[order]),
        after=("power-transformed", found.stretched_space[order]),
        truth=("truth", found.true_space[order]),
    )


def _activity_panel(axis: Axes, found: Description) -> None:
    seen = found.activity[found.activity > 0]
    most = int(np.quantile(seen, 0.995))
    step = max(1, most // 60)
    edges = np.arange(0.5, most + step + 0.5, step)
    axis.hist(seen, bins=edges.tolist(), density=True, color=_BEFORE, label="users")
    at = np.linspace(0.5, most, 400)
    exponential, lognormal = fitted_laws(found.activity)
    axis.plot(at, exponential.pdf(at), color=COLOURS[0], label="exponential")
    axis.plot(at, lognormal.pdf(at), color=COLOURS[1], label="lognormal")
    axis.set(xlabel="visits of a user", ylabel="density")
    axis.legend(frameon=False, fontsize=8)


def _activity(found: Description) -> Picture:
    figure, (axis,) = panels(1)
    _activity_panel(axis, found)
    return figure


def _target_visits(found: Description) -> Picture:
    figure, (axis,) = panels(1)
    axis.hist(found.target_visits, bins=25, color=_BEFORE)
    axis.set(xlabel="visits", ylabel="targets")
    return figure


def _suppressed(found: Description) -> Picture:
    figure, (axis,) = panels(1)
    axis.plot(list(THRESHOLDS), 100 * found.suppressed.mean(axis=1), color=COLOURS[0], marker="o")
    axis.set(xlabel="suppressed up to k", ylabel="non-zero entries suppressed, %", ylim=(0, 102))
    return figure


def _growing_noise(found: Description) -> Picture:
    figure, axes = panels(3)
    order = np.argsort(-found.true_space)
    for i, scale in enumerate(SCALES):
        label = f"scale {scale:g}"
        axes[0].plot(found.space_by_scale[i][order], color=COLOURS[i], linewidth=0.9, label=label)
        axes[1].plot(found.time_by_scale[i], color=COLOURS[i], linewidth=0.9)
    axes[0].set(xlabel=_BUSIEST_FIRST, ylabel="share of visits", title="Space")
    axes[1].set(xlabel="epoch", title="Time")
    axes[0].legend(frameon=False, fontsize=8)
    measured, predicted = found.convergence
    axes[2].loglog(LENGTHS, measured, color=COLOURS[0], marker=MARKERS[0], label="measured")
    axes[2].loglog(LENGTHS, predicted, color="black", linestyle=":", label="sqrt(3 / T)")
    axes[2].set(xlabel="epochs T", title="Distance from uniform, sparse counts")
    axes[2].legend(frameon=False, fontsize=8)
    for axis in axes:
        axis.title.set_fontsize(9)
    return figure


def _generator_inputs(found: Description) -> Picture:
    figure, axes = panels(4 if found.edges is not None else 3, size=(3.0, 2.6))
    order = np.argsort(-found.true_space)
    axes[0].bar(range(found.regions), found.noisy_space[order], color=_BEFORE, width=1)
    axes[0].plot(found.true_space[order], color=_TRUTH, linewidth=1)
    axes[0].set(title="Space", xlabel=_BUSIEST_FIRST, ylabel="share of visits")
    axes[1].bar(range(found.epochs), found.suppressed_time, color=_BEFORE, width=1)
    axes[1].plot(found.true_time, color=_TRUTH, linewidth=1)
    axes[1].set(title="Time", xlabel="epoch")
    _activity_panel(axes[2], found)
    axes[2].set(title="Activity", ylabel="")
    if found.edges is not None and found.positions is not None:
        x, y = found.positions.T
        for pair in found.edges:
            axes[3].plot(x[pair], y[pair], color=_BEFORE, linewidth=0.4)
        axes[3].plot(x, y, ".", color=COLOURS[0], markersize=2)
        axes[3].set(title="Delaunay triangulation", xlabel="km", aspect="equal")
    for axis in axes:
        axis.title.set_fontsize(9)
    return figure


DATA_FIGURES: dict[str, tuple[str, Callable[[Description], Picture]]] = {
    "time-marginal": (
        "Time marginal: the truth, a release with k = 1, and after log compression",
        _time_marginal,
    ),
    "space-marginal": (
        "Space marginal: the truth, a release with noise, and after the power transform",
        _space_marginal,
    ),
    "activity": ("Visits of users, with fitted laws", _activity),
    "target-visits": ("Visits of the targets", _target_visits),
    "suppressed": ("Share of the non-zero entries that is suppressed", _suppressed),
    "growing-noise": (
        "Marginals under growing noise, and their convergence where counts are strongly sparse",
        _growing_noise,
    ),
    "generator-inputs": (
        "The four inputs of the generator (the truth in red)",
        _generator_inputs,
    ),
}
"""The figures of the data: what each shows, and how it is drawn."""
