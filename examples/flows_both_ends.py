"""A rule of flow publishers: trips between two places are shown where both are busy enough.

It depends on the counts of other pairs, so it has no law of single counts, and is a mechanism of
one's own. It stands beside rules for each count by itself.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import whosthere as wt

MORE_THAN = 15


def both_ends(pairs):
    """Return the rule for some pairs of places: each end has more trips than the threshold."""
    n = len(pairs.places)

    def show_between_busy_places(counts, m, rng):
        busy = np.ones_like(counts, dtype=bool)
        for ends in (pairs.origins, pairs.destinations):
            trips = np.zeros((n, counts.shape[1]), dtype=np.int64)
            np.add.at(trips, ends, counts)
            busy &= (trips > MORE_THAN)[ends]
        return np.where(busy, counts, 0)

    return show_between_busy_places


OPTIONS = {
    "attacks": ["knock-knock", "likelihood-ratio"],
    "group_size": 1000,
    "targets": 24,
    "min_visits": 5,
    "releases": 10,
    "seed": 1,
}


def trips_of_a_city(users, regions, days):
    """Return trips between visits of a simulated city, by day."""
    city = wt.simulate("cdr-like", seed=7, users=users, regions=regions, days=days)
    with TemporaryDirectory() as folder:
        city.write(folder)
        records, places = Path(folder) / "records.parquet", Path(folder) / "regions.csv"
        return wt.read_records(records, regions=places, epoch="1d", flows="visits(max_gap=6h)")


def main(users=4000, regions=16, days=7, **options):
    trips = trips_of_a_city(users, regions, days)
    rule = both_ends(trips.regions)
    mechanisms = [
        "raw",
        wt.mechanisms.own(rule),
        wt.mechanisms.own(rule, then=f"suppress(k={MORE_THAN})"),
        f"suppress(k={MORE_THAN})",
    ]
    result = wt.audit(trips, mechanisms=mechanisms, what_if=False, **(OPTIONS | options))
    for row in result.to_frame().iter_rows(named=True):
        if row["metric"] in ("auc", "pattern_correlation"):
            within = "" if row["low"] is None else f" ({row['low']:.2f} to {row['high']:.2f})"
            print(row["mechanism"], row["attack"], row["metric"], f"{row['estimate']:.2f}{within}")
    return result


if __name__ == "__main__":
    main()
