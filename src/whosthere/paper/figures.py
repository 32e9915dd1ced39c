"""The figures of the study, one for each experiment, drawn like the paper's; needs matplotlib."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from whosthere.auditing.plots import COLOURS, MARKERS, Picture
from whosthere.inference.vocabulary import CEILING
from whosthere.paper.experiments import KK, LR, MADE_UP, NOISY_GROUP_SIZES, ZK, named
from whosthere.paper.results import Place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from whosthere.paper.experiments import Series
    from whosthere.paper.results import Numbers

_PANEL, _SINGLE = (3.6, 2.9), (5.2, 3.1)
# Width of a letter in a legend, and of the mark before it, in inches.
_LETTER, _MARK = 0.065, 0.6
_NAMES = {KK: "Knock-Knock", ZK: "Zero Auxiliary Knowledge", LR: "Likelihood ratio"}
_STYLES = {KK: 0, ZK: 1, LR: 2}
_PARAMETERS = {
    "k": "suppressed up to k",
    "epsilon": "privacy budget \N{GREEK SMALL LETTER EPSILON}",
    "share": "share of the visits that is known",
    "group_size": "people in a release, m",
    "known_regions": "known regions",
    "mechanism": "",
}


def draw(name: str, series: Sequence[Series], numbers: Numbers) -> Picture:
    """Draw what an experiment found."""
    special = {"group-size-dp": _group_size_dp, "synthetic-size": _synthetic_size}
    if name in special:
        return special[name](numbers)
    figure, axes = panels(len(series))
    for axis, one in zip(axes, series, strict=True):
        _curves(axis, one, numbers)
        axis.set_title(one.name, fontsize=9)
    for axis in axes[1:]:
        axis.set_ylabel("")
    _legend(figure, axes)
    return figure


def panels(n: int, *, size: tuple[float, float] | None = None) -> tuple[Picture, list[Axes]]:
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
    values = [
        v for v in (point.value for point in series.points) if v in numbers.values(series.name)
    ]
    attacks = numbers.attacks(series.name)
    joined = series.parameter != "mechanism"
    shown = [one for one in attacks if one != CEILING]
    for i, attack in enumerate(shown):
        means, errors = _means(numbers, series.name, values, attack)
        places = np.arange(len(values)) + (0 if joined else (i - (len(shown) - 1) / 2) * 0.12)
        name, _, rest = attack.partition("(")
        _line(
            axis,
            places,
            (means, errors),
            label=named(attack, _NAMES),
            color=COLOURS[_STYLES.get(name, 3)],
            marker=_marker(attack, shown),
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


def _line(
    axis: Axes,
    places: Sequence[float] | NDArray[np.floating],
    found: tuple[Sequence[float], Sequence[float]],
    **style: Any,  # noqa: ANN401 - as matplotlib has it
) -> None:
    """Draw means with their standard errors."""
    means, errors = found
    axis.errorbar(places, means, yerr=errors, markersize=4, linewidth=1.2, capsize=2, **style)


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


def _marker(attack: str, attacks: Sequence[str]) -> str:
    """Return the marker of an attack: always the same, and another one for each variant."""
    variants = [one for one in attacks if one not in _STYLES]
    place = _STYLES[attack] if attack in _STYLES else len(_STYLES) + variants.index(attack)
    return MARKERS[place % len(MARKERS)]


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


def _group_size_dp(numbers: Numbers) -> Picture:
    """Draw a curve for each size of groups, as the paper does, for the two attacks without aid."""
    figure, axes = panels(2)
    for axis, attack in zip(axes, (ZK, LR), strict=True):
        for i, m in enumerate(NOISY_GROUP_SIZES):
            series = f"group-size-dp-m{m}"
            values = numbers.values(series)
            if not values:
                continue
            found = _means(numbers, series, values, attack)
            style = {"color": COLOURS[i], "marker": MARKERS[i], "label": f"m = {m}"}
            _line(axis, range(len(values)), found, **style)
            axis.set_xticks(range(len(values)), values)
        axis.set_title(_NAMES[attack], fontsize=9)
        axis.set_xlabel(_PARAMETERS["epsilon"], fontsize=9)
        _auc_axis(axis)
    _legend(figure, axes)
    return figure


def _synthetic_size(numbers: Numbers) -> Picture:
    """Draw the AUC over the number of people that are made up."""
    figure, (axis,) = panels(1)
    (value, *_) = numbers.values("synthetic-size")
    pairs = [_means(numbers, "synthetic-size", [value], f"{ZK}(reference={n})") for n in MADE_UP]
    found = [mean for (mean,), _ in pairs], [error for _, (error,) in pairs]
    style = {"color": COLOURS[_STYLES[ZK]], "marker": MARKERS[1], "label": _NAMES[ZK]}
    _line(axis, MADE_UP, found, **style)
    (level,), _ = _means(numbers, "synthetic-size", [value], LR)
    axis.axhline(level, color=COLOURS[_STYLES[LR]], linewidth=1.2, label=_NAMES[LR])
    axis.set_xscale("log")
    axis.set_xticks(MADE_UP, [f"{n:,}" for n in MADE_UP])
    axis.minorticks_off()
    axis.set_xlabel("synthetic people", fontsize=9)
    axis.set_ylabel("mean AUC", fontsize=9)
    _legend(figure, [axis])
    return figure
