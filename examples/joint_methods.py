"""Methods of statistical offices that act on a whole table, each as a mechanism of one's own.

None of them has a law of single counts, so attacks that learn from examples are tried on them. Each
stands beside the protection that does the same to every count by itself.
"""

import numpy as np

import whosthere as wt


def controlled_rounding(counts, m, rng):
    """Round at random to multiples of 3, so that the total of each region moves by less than 3."""
    so_far = np.cumsum(counts, axis=1) / 3 + rng.random((len(counts), 1))
    thirds = np.diff(np.floor(so_far), axis=1, prepend=0)
    return np.minimum(3 * thirds, m).astype(int)


def complementary_suppression(counts, m, rng):
    """Hide counts of 1 to 4 and, where a region has just one of them, its next larger count.

    Otherwise the one hidden count would follow from the region's total.
    """
    hidden = (counts > 0) & (counts < 5)
    alone = hidden.sum(axis=1, keepdims=True) == 1
    others = np.where(hidden | (counts == 0), m + 1, counts)
    hidden |= alone & (others == others.min(axis=1, keepdims=True)) & (others <= m)
    return np.where(hidden, 0, counts)


def top_down(counts, m, rng):
    """Add noise to the total of each region and to its counts; then make them fit.

    This is the idea of the US Census Bureau's TopDown algorithm with two levels. The real one has
    six levels of geography, and solves a large least-squares problem instead of scaling.
    """
    totals = np.maximum(np.rint(counts.sum(axis=1) + rng.normal(0, 2, len(counts))), 0)
    noisy = np.maximum(counts + rng.normal(0, 2, counts.shape), 0) + 1e-9
    shares = noisy / noisy.sum(axis=1, keepdims=True)
    # Rounding the sums instead of the counts keeps the totals.
    so_far = np.rint(np.cumsum(totals[:, None] * shares, axis=1))
    return np.minimum(np.diff(so_far, axis=1, prepend=0), m).astype(int)


PAIRS = {
    "random-round(to=3)": controlled_rounding,
    "suppress(k=4)": complementary_suppression,
    "discrete-gaussian(rho=0.125, unit=event)": top_down,
}


OPTIONS = {
    "mechanisms": [one for cell, own in PAIRS.items() for one in (cell, wt.mechanisms.own(own))],
    "group_size": 500,
    "targets": 24,
    "releases": 10,
    "seed": 1,
}


def main(users=2000, regions=100, days=7, **options):
    traces = wt.simulate("milan-like", seed=7, users=users, regions=regions, days=days).traces()
    result = wt.audit(traces, what_if=False, **(OPTIONS | options))
    for row in result.to_frame().iter_rows(named=True):
        if row["metric"] in ("auc", "pattern_correlation"):
            within = "" if row["low"] is None else f" ({row['low']:.2f} to {row['high']:.2f})"
            print(row["mechanism"], row["attack"], row["metric"], f"{row['estimate']:.2f}{within}")
    return result


if __name__ == "__main__":
    main()
