"""The figures of a study, drawn like the paper's: of each experiment, and of its data.

They need matplotlib.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from whosthere.auditing.plots import COLOURS, MARKERS, Picture
from whosthere.display import told
from whosthere.inference.vocabulary import CEILING
from whosthere.paper.description import LENGTHS, SCALES, THRESHOLDS, Description, fitted_laws
from whosthere.paper.experiments import KK, LR, MADE_UP, ZK, Series, named
from whosthere.paper.results import Numbers, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes

    from whosthere.arrays import Floats

_PANEL, _SINGLE = (3.6, 2.9), (5.2, 3.1)
# Width of a letter in a legend, and of the mark before it, in inches.
_LETTER, _MARK = 0.065, 0.6
_NAMES = {KK: "Knock-Knock", ZK: "Zero Auxiliary Knowledge", LR: "Likelihood ratio"}
_STYLES = {KK: 0, ZK: 1, LR: 2}
_BARS: dict[str, Any] = {"markersize": 4, "linewidth": 1.2, "capsize": 2}
_PARAMETERS = told("whosthere.paper", "figures")["parameters"]
_BUSIEST_FIRST = "regions, the busiest first"
_TRUTH, _BEFORE, _AFTER = "#b91c1c", "#9ca3af", COLOURS[0]


def draw(name: str, series: Sequence[Series], numbers: Numbers) -> Picture:
    """Draw what an experiment found."""
    if name == "group-size-dp":
        return _group_size_dp(series, numbers)
    if name == "synthetic-size":
        return _synthetic_size(numbers)
    figure, axes = _panels(len(series))
    for axis, one in zip(axes, series, strict=True):
        _curves(axis, one, numbers)
        axis.set_title(one.name, fontsize=9)
    for axis in axes[1:]:
        axis.set_ylabel("")
    _legend(figure, axes)
    return figure


def _panels(n: int, *, size: tuple[float, float] | None = None) -> tuple[Picture, list[Axes]]:
    """Return a figure with panels side by side."""
    size = size or (_PANEL if n > 1 else _SINGLE)
    figure = Picture(figsize=(size[0] * n + 0.4, size[1] + 0.6), layout="constrained")
    axes = list(np.atleast_1d(figure.subplots(1, n)))
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8)
    return figure, axes


def _curves(axis: Axes, series: Series, numbers: Numbers) -> None:
    """Draw the mean AUC of every attack over the points of a series, with standard errors."""
    values = numbers.values(series.name)
    attacks = numbers.values(series.name, "attack")
    joined = series.parameter != "mechanism"
    shown = [one for one in attacks if one != CEILING]
    # An attack has always the same marker, and each of its variants another one.
    order = list(dict.fromkeys((*_STYLES, *shown)))
    for i, attack in enumerate(shown):
        means, errors = _means(numbers, series.name, values, attack)
        places = np.arange(len(values)) + (0 if joined else (i - (len(shown) - 1) / 2) * 0.12)
        name, _, rest = attack.partition("(")
        axis.errorbar(
            places,
            means,
            yerr=errors,
            **_BARS,
            label=named(attack, _NAMES),
            color=COLOURS[_STYLES.get(name, 3)],
            marker=MARKERS[order.index(attack) % len(MARKERS)],
            linestyle=("--" if rest else "-") if joined else "none",
            markerfacecolor="white" if rest else None,
        )
    if CEILING in attacks:
        means, _ = _means(numbers, series.name, values, CEILING)
        axis.plot(
            means, color="black", linestyle=":" if joined else "none", marker="_", label=CEILING
        )
    axis.set_xticks(range(len(values)), values, rotation=0 if joined else 20)
    if not joined:
        axis.set_xlim(-0.5, len(values) - 0.5)
    axis.set_xlabel(_PARAMETERS[series.parameter], fontsize=9)
    _auc_axis(axis)


def _auc_axis(axis: Axes) -> None:
    axis.axhline(0.5, color="grey", linewidth=0.7)
    axis.set_ylim(0.45, 1.02)
    axis.set_ylabel("mean AUC", fontsize=9)


def _means(
    numbers: Numbers, series: str, values: Sequence[str], attack: str
) -> tuple[list[float], list[float]]:
    """Return mean and standard error of the AUC at each value; not a number where none is."""
    found = [numbers.aucs(Place(series, value, attack))[0] for value in values]
    means = [float(one.mean()) if one.size else math.nan for one in found]
    errors = [
        float(one.std(ddof=1)) / math.sqrt(one.size) if one.size > 1 else 0.0 for one in found
    ]
    return means, errors


def _legend(figure: Picture, axes: Sequence[Axes]) -> None:
    found = {
        label: handle
        for axis in axes
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    # What bounds them all comes last.
    labels = sorted(found, key=lambda label: label == CEILING)
    longest = max(len(label) for label in labels)
    figure.legend(
        [found[label] for label in labels],
        labels,
        loc="outside lower center",
        ncols=max(1, int(figure.get_figwidth() / (_LETTER * longest + _MARK))),
        frameon=False,
        fontsize=8,
    )


def _group_size_dp(series: Sequence[Series], numbers: Numbers) -> Picture:
    """Draw a curve for each size of groups, as the paper does, for the two attacks without aid."""
    figure, axes = _panels(2)
    for axis, attack in zip(axes, (ZK, LR), strict=True):
        for i, one in enumerate(series):
            values = numbers.values(one.name)
            if not values:
                continue
            means, errors = _means(numbers, one.name, values, attack)
            label = f"m = {one.points[0].group_size}"
            style = _BARS | {"color": COLOURS[i], "marker": MARKERS[i], "label": label}
            axis.errorbar(range(len(values)), means, yerr=errors, **style)
            axis.set_xticks(range(len(values)), values)
        axis.set_title(_NAMES[attack], fontsize=9)
        axis.set_xlabel(_PARAMETERS["epsilon"], fontsize=9)
        _auc_axis(axis)
    _legend(figure, axes)
    return figure


def _synthetic_size(numbers: Numbers) -> Picture:
    """Draw the AUC over the number of people that are made up."""
    figure, (axis,) = _panels(1)
    (value, *_) = numbers.values("synthetic-size")
    pairs = [_means(numbers, "synthetic-size", [value], one) for one in MADE_UP.values()]
    means, errors = [mean for (mean,), _ in pairs], [error for _, (error,) in pairs]
    style = _BARS | {"color": COLOURS[1], "marker": MARKERS[1], "label": _NAMES[ZK]}
    axis.errorbar(list(MADE_UP), means, yerr=errors, **style)
    (level,), _ = _means(numbers, "synthetic-size", [value], LR)
    axis.axhline(level, color=COLOURS[_STYLES[LR]], linewidth=1.2, label=_NAMES[LR])
    axis.set_xscale("log")
    axis.set_xticks(list(MADE_UP), [f"{n:,}" for n in MADE_UP])
    axis.minorticks_off()
    axis.set_xlabel("synthetic people", fontsize=9)
    axis.set_ylabel("mean AUC", fontsize=9)
    _legend(figure, [axis])
    return figure


def _marginals(xlabel: str, **lines: tuple[str, Floats]) -> Picture:
    """Draw marginals over one another: before a correction, after it, and the truth."""
    figure, (axis,) = _panels(1, size=(7.2, 2.6))
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
    figure, (axis,) = _panels(1)
    _activity_panel(axis, found)
    return figure


def _target_visits(found: Description) -> Picture:
    figure, (axis,) = _panels(1)
    axis.hist(found.target_visits, bins=25, color=_BEFORE)
    axis.set(xlabel="visits", ylabel="targets")
    return figure


def _suppressed(found: Description) -> Picture:
    figure, (axis,) = _panels(1)
    axis.plot(list(THRESHOLDS), 100 * found.suppressed.mean(axis=1), color=COLOURS[0], marker="o")
    axis.set(xlabel="suppressed up to k", ylabel="non-zero entries suppressed, %", ylim=(0, 102))
    return figure


def _growing_noise(found: Description) -> Picture:
    figure, axes = _panels(3)
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
    figure, axes = _panels(4 if found.edges is not None else 3, size=(3.0, 2.6))
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


DATA_FIGURES: dict[str, Callable[[Description], Picture]] = {
    "time-marginal": _time_marginal,
    "space-marginal": _space_marginal,
    "activity": _activity,
    "target-visits": _target_visits,
    "suppressed": _suppressed,
    "growing-noise": _growing_noise,
    "generator-inputs": _generator_inputs,
}
"""How the figures of the data are drawn."""
