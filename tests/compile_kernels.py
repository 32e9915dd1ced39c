"""Compile the kernels by using them, before several processes that test would each compile them."""

from pathlib import Path
from tempfile import TemporaryDirectory

import whosthere as wt
from whosthere.cli.main import app

NAMES = ("records.parquet", "regions.csv", "traces.parquet")
FEW = "groups=20, validation=10"


def main() -> None:
    """Read records, audit some of the people in them, and describe them."""
    with TemporaryDirectory() as folder:
        city = wt.simulate("milan-like", seed=1, users=300, regions=9, days=1)
        city.write(folder)
        records, regions, out = (Path(folder, name) for name in NAMES)
        app(
            ["ingest", f"{records}", "--regions", f"{regions}", "--out", f"{out}"],
            standalone_mode=False,
        )
    wt.audit(
        city.traces(),
        mechanisms=["suppress(k=1)", "laplace(eps=1, unit=user-day, max_visits=2)"],
        group_size=20,
        attacks=[
            f"knock-knock({FEW})",
            f"knock-knock({FEW}, sampling=independent)",
            f"zero-knowledge({FEW}, reference=100)",
            f"zero-knowledge({FEW}, reference=100, fit=per-target)",
            "likelihood-ratio",
            "log-likelihood",
        ],
        targets=2,
        releases=4,
        workers=1,
    )


main()
