"""Time and memory of `whosthere ingest` on generated records.

    python benchmarks/ingest.py --records 50000000

Writes a folder of Parquet files of records (user, timestamp, lat, lon), reads it with the command
as a user would, in a process of its own, and reports records per second and peak memory as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

ROWS_A_FILE = 1_000_000
FIRST = 1_622_505_600  # 2021-06-01 UTC
SECONDS = 30 * 86_400


def write_records(folder: Path, n: int, users: int, seed: int) -> None:
    """Write records of people who come and go between a few places each, in time order."""
    rng = np.random.default_rng(seed)
    places = rng.normal([4.65, -74.1], 0.05, (users, 3, 2))
    activity = rng.lognormal(0.0, 1.0, users)
    chosen = np.cumsum(activity / activity.sum())
    names = pl.Series([f"{i:08x}" for i in rng.permutation(users)])
    folder.mkdir()
    for number, start in enumerate(range(0, n, ROWS_A_FILE)):
        size = min(ROWS_A_FILE, n - start)
        who = np.minimum(np.searchsorted(chosen, rng.random(size)), users - 1)
        where = places[who, rng.integers(0, 3, size)]
        when = (
            FIRST + np.sort(rng.integers(0, SECONDS * size // n + 1, size)) + (SECONDS * start // n)
        )
        seconds = pl.Series(np.minimum(when, FIRST + SECONDS - 1))
        pl.DataFrame(
            {
                "user": names.gather(who),
                "timestamp": pl.from_epoch(seconds, "s").dt.replace_time_zone("UTC"),
                "lat": np.ascontiguousarray(where[:, 0]),
                "lon": np.ascontiguousarray(where[:, 1]),
            }
        ).write_parquet(folder / f"{number:04d}.parquet")


def timed_ingest(records: Path, out: Path, options: list[str]) -> tuple[float, float]:
    """Run the command; return its wall time in seconds and its peak memory in GB."""
    command = [sys.executable, "-m", "whosthere", "ingest", str(records), "--out", str(out)]
    begun = time.perf_counter()
    with subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(options)}: exit code {process.returncode}")
    return time.perf_counter() - begun, used.ru_maxrss * 1024 / 1e9


def main() -> None:
    """Write, read in two ways, report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=50_000_000)
    parser.add_argument("--users", type=int, default=500_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    window = ["--from", "2021-06-01", "--to", "2021-07-01"]
    runs = {
        "grid, window given (one look and one pass)": ["--grid-km", "2", *window],
        "grid, 99 % box, mostly-inside, window from the data": [
            "--grid-km", "2", "--box-quantile", "0.99", "--mostly-inside",
        ],
        "H3 resolution 7, window given (one pass)": ["--h3", "7", *window],
    }  # fmt: skip
    report = {
        "records": arguments.records,
        "users": arguments.users,
        "seed": arguments.seed,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "runs": {},
    }
    with tempfile.TemporaryDirectory() as folder:
        records = Path(folder) / "records"
        write_records(records, arguments.records, arguments.users, arguments.seed)
        report["files_gb"] = round(sum(f.stat().st_size for f in records.iterdir()) / 1e9, 3)
        for name, options in runs.items():
            seconds, gb = timed_ingest(
                records, Path(folder) / "traces.parquet", [*options, "--force"]
            )
            report["runs"][name] = {
                "seconds": round(seconds, 1),
                "million_records_per_second": round(arguments.records / seconds / 1e6, 2),
                "peak_gb": round(gb, 2),
            }
            print(name, report["runs"][name], file=sys.stderr)
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
