"""What the likelihood ratio makes of publishers' rules where rates are known.

One table, somebody with 30 known visits, every cell Poisson with the same rate of others. Prints
the AUC by rate as a Markdown table, from the laws of the product alone: no rates are fitted.

    python benchmarks/practice_table.py --draws 100000
"""

from __future__ import annotations

import argparse

import numpy as np

from whosthere import kernels
from whosthere.adversary.count_tables import count_tables
from whosthere.privacy.mechanism import Mechanism

VISITS, M = 30, 1000
RATES = (0.3, 1, 3, 10, 30, 100)
RULES = (
    "raw",
    "suppress(k=4)",
    "suppress(k=4, shown=mark)",
    "multimno",
    "flowkit",
    "round(to=5)",
    "stats-nz",
    "statcan",
    "ons-10-5",
    "census-drb",
    "sdctools-d2",
    "sdctools-d5",
    "google-county",
)
_BLOCK = 5000


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--draws", type=int, default=4000, help="with the person, and without")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument(
        "--keys-by-cell", action="store_true", help="draw for each cell where people have keys"
    )
    given = options.parse_args()
    print("| rate of others |", " | ".join(map(str, RATES)), "|")
    print("|---" * (len(RATES) + 1) + "|")
    for rule in RULES:
        rng = np.random.default_rng(given.seed)
        found = [area(rule, rate, given.draws, rng, by_cell=given.keys_by_cell) for rate in RATES]
        print(f"| {rule} |", " | ".join(f"{one:.3f}" for one in found), "|", flush=True)


def area(
    rule: str, rate: float, draws: int, rng: np.random.Generator, *, by_cell: bool = False
) -> float:
    """Return the AUC of the exact ratio between so many draws with and without the person."""
    mechanism = Mechanism.parse(rule)
    tables = count_tables(mechanism, M)
    scores = []
    for inside in (True, False):
        of_side = []
        for first in range(0, draws, _BLOCK):
            n = min(_BLOCK, draws - first)
            others = np.minimum(rng.poisson(rate, (n, VISITS)), M - 1)
            counts = (others + inside).astype(np.int32)
            noise = mechanism.draw(counts.shape, rng)
            if tables.draws and inside and not by_cell:
                # Wherever nobody else is, the person's own key decides.
                noise = (np.where(others == 0, rng.random((n, 1)), noise[0]),)
            published = mechanism.publish(counts, noise, M)
            symbols = mechanism.alphabet(M).symbols(published).reshape(-1)
            at = np.full(symbols.size, np.log(rate)), np.arange(symbols.size)
            nodes = np.zeros((symbols.size, 1))
            ratios = [(0.0, tables.of_ratios)] if by_cell else tables.of_draws()
            by_draw = [
                chance
                + kernels.log_ratios_at_nodes(symbols, *at, nodes, *of)[:, 0].reshape(n, -1).sum(1)
                for chance, of in ratios
            ]
            of_side.append(np.logaddexp.reduce(by_draw, axis=0))
        scores.append(np.concatenate(of_side))
    # What rules the person out is the lowest of all.
    return auc(*(np.maximum(one, -1e9) for one in scores))


def auc(with_person: np.ndarray, without: np.ndarray) -> float:
    """Return the chance that a score with the person is the higher one, ties counting half."""
    ordered = np.sort(without)
    below = np.searchsorted(ordered, with_person, "left")
    upto = np.searchsorted(ordered, with_person, "right")
    return float((below + upto).mean() / 2 / without.size)


if __name__ == "__main__":
    main()
