"""How often intervals on the spread of risk over people hold, where true risks are known.

    python benchmarks/everybody_distribution.py > benchmarks/results/everybody_distribution.txt

Everybody is in or out of each round by chance, and has a true AUC and a true TPR at 1 % FPR by one
threshold for all. In each repetition, panels are drawn anew, people and rounds. Percentiles and
shares above limits are those of the people of the panel. Nominal are 95 %. `missed` is the share of
panels in which a true value is outside of its interval; of all percentiles and shares, the worst is
shown first, with how far the truth was from an interval at most, then each. Scores are normal, as
the mixture takes them to be, and far from it. With `--real`, games are played with the likelihood
ratio, all rounds of a game are the truth, and some of them a panel.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

import whosthere as wt
from whosthere.auditing.loading import is_finished
from whosthere.auditing.store import RunFolder
from whosthere.inference.panel import Panel
from whosthere.inference.risk import PERCENTILES, RISKS, share_above, spread
from whosthere.inference.scores import RULED_OUT
from whosthere.seeds import generator

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LIMITS = {"auc": (0.7, 0.9), "tpr": (0.1, 0.5)}
SIZES = ((400, 20, 0.5), (400, 100, 0.9), (5000, 100, 0.5))
"""People, rounds and the chance to be in."""
_DRAWN = 2_000_000
CITIES = {"milan-like": (2000, 168), "cdr-like": (1000, 48)}
"""People and hours of real games: those of the attack, of simulated cities."""
GAMES = ((0.9, 3000, 100), (0.5, 800, 50))
"""The chance to be in, all rounds, and how many make a panel."""
PROTECTIONS = ("suppress(k=1)", "suppress(k=2)", "laplace(eps=0.5, unit=event)")


@dataclass(frozen=True)
class Scenario:
    """How noise is drawn, with what a round has in common, and how people differ.

    `noise` is for OUT scores; IN scores are shifted, and may be spread wider by a factor. If
    `certain`, a person is found for certain in a share of the IN rounds, and not at all in the
    others. In a share of the OUT rounds, each person is `ruled_out`.
    """

    name: str
    noise: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
    people: Callable[[np.random.Generator, int], np.ndarray]
    common: float = 0.0
    wider: float = 1.0
    certain: bool = False
    ruled_out: float = 0.0

    @cached_property
    def laws(self) -> tuple[np.ndarray, np.ndarray, float]:
        """OUT minus IN without shift, IN without shift, both sorted, and the true threshold."""
        rng = generator(1, self.name, "laws")
        out, in_ = (
            self.noise(rng, (_DRAWN,)) * factor + self.common * rng.normal(size=_DRAWN)
            for factor in (1, self.wider)
        )
        return (
            np.sort(out - in_),
            np.sort(in_),
            float(np.quantile(out, 1 - 0.01 / (1 - self.ruled_out))),
        )

    def truth(self, shifts: np.ndarray) -> dict[str, np.ndarray]:
        gaps, in_, threshold = self.laws
        if self.certain:
            return {"auc": (1 + shifts) / 2, "tpr": shifts + (1 - shifts) * 0.01}
        auc = self.ruled_out + (1 - self.ruled_out) * np.searchsorted(gaps, shifts) / gaps.size
        return {"auc": auc, "tpr": 1 - np.searchsorted(in_, threshold - shifts) / in_.size}

    def panel(
        self, shifts: np.ndarray, n_rounds: int, include: float, rng: np.random.Generator
    ) -> Panel:
        shape = n_rounds, shifts.size
        labels = rng.random(shape) < include
        scores = self.noise(rng, shape) * np.where(labels, self.wider, 1.0)
        scores += self.common * rng.normal(size=(n_rounds, 1))
        if self.certain:
            scores[labels & (rng.random(shape) < shifts)] += 1000
        else:
            scores += shifts * labels
        scores[~labels & (rng.random(shape) < self.ruled_out)] = RULED_OUT
        return Panel(scores.astype(np.float32), labels)


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.normal(size=shape)


def few_exposed(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.where(rng.random(n) < 0.1, 2.5, np.abs(rng.normal(0, 0.6, n)))


def smooth(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.abs(rng.normal(0, 1.2, n))


def alike(_: np.random.Generator, n: int) -> np.ndarray:
    return np.full(n, 1.2)


SCENARIOS = (
    Scenario("normal, smooth", normal, smooth),
    Scenario("normal, one in ten exposed", normal, few_exposed),
    Scenario("normal, all alike", normal, alike),
    Scenario("normal, rounds in common 0.3", normal, smooth, common=0.3),
    Scenario("normal, rounds in common 1", normal, few_exposed, common=1.0),
    Scenario("IN twice as wide", normal, few_exposed, wider=2.0),
    Scenario("Laplace", lambda rng, shape: rng.laplace(size=shape), few_exposed),
    Scenario("Student t with 3", lambda rng, shape: rng.standard_t(3, shape), few_exposed),
    Scenario("log-normal", lambda rng, shape: rng.lognormal(0, 1, shape), few_exposed),
    Scenario("gamma with 1/2", lambda rng, shape: rng.gamma(0.5, 1, shape), few_exposed),
    Scenario("OUT ruled out in 3 of 10", normal, few_exposed, ruled_out=0.3),
    Scenario("certain or not at all", normal, lambda rng, n: rng.beta(1, 3, n), certain=True),
)


def outcome(panel: Panel, truth: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return of each percentile and share whether it was missed, the width, and by how much."""
    found = {}
    for risk, true in truth.items():
        rows = [
            (low, high, np.quantile(true, q, method="inverted_cdf"))
            for q, _, low, high in spread(panel, risk).rows()
        ]
        for limit in LIMITS[risk]:
            share = share_above(panel.people, limit, risk=risk)
            rows.append((share.low, share.high, (true >= limit).mean()))
        low, high, value = np.array(rows).T
        outside = np.maximum(low - value, value - high).clip(0)
        found[risk] = np.stack([outside > 1e-9, high - low, outside])
    return found


def simulated(scenario: Scenario, size: tuple[int, int, float], seed: int) -> dict[str, np.ndarray]:
    n_people, n_rounds, include = size
    rng = generator(seed, scenario.name, *map(str, size))
    shifts = scenario.people(rng, n_people)
    return outcome(scenario.panel(shifts, n_rounds, include, rng), scenario.truth(shifts))


def played(city: str, include: float, n_rounds: int, folder: Path) -> dict[str, Panel]:
    """Return the scores of everybody in all rounds of a game, by protection."""
    n_people, epochs = CITIES[city]
    out = folder / f"{city}-{include:g}"
    if not is_finished(out):
        people = wt.simulate(city, seed=1, users=n_people).traces()
        wt.audit(
            replace(people, friends=None).between(0, epochs),
            mechanisms=PROTECTIONS, attacks="likelihood-ratio", everybody=True, include=include,
            releases=n_rounds, targets=2, reference_size=0, control_releases=2, what_if=False,
            workers=1, seed=1, out=out,
        )  # fmt: skip
    scores, _ = RunFolder(out).read_tasks()
    asked = {setting: one for (setting, attack), one in scores.everybody.items()
             if attack == "likelihood-ratio"}  # fmt: skip
    return {setting.split(", m=")[0]: one.tests() for setting, one in asked.items()}


def spread_by_noise(values: np.ndarray, variances: np.ndarray) -> tuple[np.ndarray, float]:
    """Return values drawn together by as much as their noise spreads them, and this share."""
    kept = np.sqrt(max(1 - variances.mean() / values.var(), 0))
    return values.mean() + kept * (values - values.mean()), 1 - kept


def real(folder: Path, only: str) -> None:
    """Divide the rounds of each game among panels; what all of them together say is the truth."""
    for city, (include, n_all, n_rounds) in product(CITIES, GAMES):
        if only not in city:
            continue
        for protection, panel in played(city, include, n_all, folder).items():
            people = panel.people
            rate = people.found() / people.n_in
            auc, by_auc = spread_by_noise(people.measured[:, 0], people.measured[:, 3])
            tpr, by_tpr = spread_by_noise(rate, rate * (1 - rate) / people.n_in)
            print(f"{protection}: truth drawn together by {by_auc:.1%} (AUC), {by_tpr:.1%} (TPR); "
                  f"percentiles {np.quantile(auc, PERCENTILES).round(2)}, "
                  f"{np.quantile(tpr, PERCENTILES).round(2)}")  # fmt: skip
            parts = [slice(i, i + n_rounds) for i in range(0, n_all, n_rounds)]
            each = [outcome(Panel(panel.scores[one], panel.labels[one]), {"auc": auc, "tpr": tpr})
                    for one in parts]  # fmt: skip
            show(f"{city}, {protection}"[:30], (panel.n_people, n_rounds, include), each)


def show(name: str, size: tuple[int, int, float], each: list[dict[str, np.ndarray]]) -> None:
    for risk in RISKS:
        missed, width, _ = np.mean([one[risk] for one in each], axis=0)
        worst, n = missed.max(), len(each)
        furthest = max(one[risk][2].max() for one in each)
        error = np.sqrt(max(worst * (1 - worst), 1 / n) / n)
        limits = " ".join(f"{limit}: {rate:4.0%}" for limit, rate in
                          zip(LIMITS[risk], missed[len(PERCENTILES) :], strict=True))  # fmt: skip
        shown = " ".join(f"{rate:5.0%}" for rate in missed[: len(PERCENTILES)])
        widths = " ".join(f"{one:.2f}" for one in width)
        print(f"{name:<30}{size[0]:>7,}{size[1]:>7}{size[2]:>5} {risk}   {worst:>5.0%} ± "
              f"{error:.0%} by {furthest:.3f}    {shown}  {limits}    {widths}",
              flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--only", default="", help="scenarios whose names contain this")
    parser.add_argument("--real", type=Path, metavar="FOLDER", help="play real games, kept there")
    options = parser.parse_args()
    n, begun = options.repetitions, time.perf_counter()
    of = " --real FOLDER" if options.real else f" --repetitions {n}"
    print(f"python benchmarks/everybody_distribution.py{of}")
    print(f"{'scenario':<30}{'people':>7}{'rounds':>7}{'in':>5} risk  worst missed, by at most  "
          + " ".join(f"{'p' + format(100 * q, 'g'):>5}" for q in PERCENTILES)
          + "  shares above          mean width of each")  # fmt: skip
    if options.real:
        real(options.real, options.only)
    else:
        for scenario in (one for one in SCENARIOS if options.only in one.name):
            for size in SIZES:
                show(scenario.name, size, [simulated(scenario, size, seed) for seed in range(n)])
    print(f"{time.perf_counter() - begun:.0f} s, Python {platform.python_version()}, "
          f"numpy {np.__version__}")  # fmt: skip


if __name__ == "__main__":
    main()
