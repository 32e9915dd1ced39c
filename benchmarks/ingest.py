"""Time and memory of `whosthere ingest` on generated records.

    python benchmarks/ingest.py --records 50000000

Writes a folder of Parquet files of records (user, timestamp, lat, lon, region), reads it with the
command as a user would, in a process of its own, and reports records per second and peak memory as
JSON. Beside it, in turns, runs a bare query for the distinct pairs (user, cell) of the same files,
which checks and writes nothing: by polars, and by DuckDB where that is installed.

    python benchmarks/ingest.py --records 50000000 --sql

writes the same records to a DuckDB file too, and reads them by `ingest --sql` beside the folder of
Parquet files, in turns: all rows, and the distinct rows that the database finds by itself.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS_A_FILE = 1_000_000
FIRST = 1_622_505_600  # 2021-06-01 UTC
SECONDS = 30 * 86_400
REGIONS = 500
WINDOW = ["--from", "2021-06-01", "--to", "2021-07-01"]
RUNS = {
    "grid, window given (one look and one pass)": (["--grid-km", "2", *WINDOW], "grid"),
    "region ids, window given (one pass)": (WINDOW, "ids"),
    "H3 resolution 7, window given (one pass)": (["--h3", "7", *WINDOW], None),
}  # fmt: skip
# Squares of 0.018 degrees are 2 km wide; ids are a letter and a number.
POLARS = """
import polars as pl
region = {{
    "grid": ((pl.col("lat") - 4) / 0.018).cast(pl.Int32) * 100
    + ((pl.col("lon") + 75) / 0.018).cast(pl.Int32),
    "ids": pl.col("region").str.slice(1).cast(pl.Int32),
}}[{kind!r}]
hour = ((pl.col("timestamp").dt.epoch("s") - {first}) // 3600).cast(pl.Int32)
pairs = pl.scan_parquet({folder!r}).select("user", cell=region * 720 + hour).unique()
print(pairs.collect(engine="streaming").height)
"""
DUCKDB = """
import duckdb
region = {{
    "grid": "((lat - 4) / 0.018)::int * 100 + ((lon + 75) / 0.018)::int",
    "ids": "substr(region, 2)::int",
}}[{kind!r}]
hour = "((epoch(timestamp)::bigint - {first}) // 3600)::int"
pairs = f"select distinct user, ({{region}}) * 720 + {{hour}} as cell from '{folder}/*.parquet'"
print(duckdb.sql(f"select count(*) from ({{pairs}})").fetchone())
"""


def write_records(folder: Path, n: int, users: int, seed: int) -> None:
    """Write records of people who come and go between a few places each, in time order."""
    rng = np.random.default_rng(seed)
    places = rng.normal([4.65, -74.1], 0.05, (users, 3, 2))
    activity = rng.lognormal(0.0, 1.0, users)
    chosen = np.cumsum(activity / activity.sum())
    names = pl.Series([f"{i:08x}" for i in rng.permutation(users)])
    regions = pl.Series([f"a{i:04d}" for i in range(REGIONS)])
    folder.mkdir()
    for number, start in enumerate(range(0, n, ROWS_A_FILE)):
        size = min(ROWS_A_FILE, n - start)
        who = np.minimum(np.searchsorted(chosen, rng.random(size)), users - 1)
        which = rng.integers(0, 3, size)
        where = places[who, which]
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
                "region": regions.gather((3 * who + which) * 7919 % REGIONS),
            }
        ).write_parquet(folder / f"{number:04d}.parquet")


def timed(command: list[str]) -> tuple[float, float]:
    """Run a command; return its wall time in seconds and its peak memory in GB."""
    begun = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")
    return time.perf_counter() - begun, used.ru_maxrss * 1024 / 1e9


def write_database(records: Path, database: Path) -> None:
    """Copy the records to a table of a DuckDB file."""
    import duckdb  # noqa: PLC0415 - optional

    with duckdb.connect(str(database)) as connection:
        connection.execute(f"CREATE TABLE records AS SELECT * FROM '{records}/*.parquet'")


def apart(write: Callable[..., None], *arguments: object) -> None:
    """Write something in a process of its own.

    The peak memory of a command counts what its parent held when it started the command.
    """
    process = multiprocessing.get_context("spawn").Process(target=write, args=arguments)
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(f"{write.__name__}: exit code {process.exitcode}")


def sql_runs(records: Path, database: Path, out: Path) -> dict[str, list[str]]:
    """Return the commands that read the same records from files and from a database."""
    ingest = [sys.executable, "-m", "whosthere", "ingest"]
    written = ["--out", str(out), "--force", *WINDOW]
    from_database = ["--database", str(database), "--sql"]
    rows = "SELECT user, timestamp, region FROM records"
    distinct = (
        "SELECT DISTINCT user, date_trunc('hour', timestamp) AS timestamp, region FROM records"
    )
    return {
        "Parquet files": [*ingest, str(records), *written],
        "--sql, all rows": [*ingest, *from_database, rows, *written],
        "--sql, distinct rows": [*ingest, *from_database, distinct, *written],
    }


def bare_queries(folder: Path, kind: str | None) -> dict[str, list[str]]:
    """Return the commands that only find the distinct pairs, by the program that does it."""
    if kind is None:
        return {}
    programs = {"polars": POLARS, "duckdb": DUCKDB}
    return {
        f"bare {name}": [
            sys.executable, "-c", program.format(kind=kind, first=FIRST, folder=str(folder)),
        ]
        for name, program in programs.items()
        if importlib.util.find_spec(name)
    }  # fmt: skip


def measure(commands: dict[str, list[str]], repeats: int) -> dict[str, tuple[float, float]]:
    """Run commands in turns; return the best time and the largest memory of each."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(repeats):
        for name, command in commands.items():
            taken[name].append(timed(command))
    return {
        name: (min(s for s, _ in runs), max(gb for _, gb in runs)) for name, runs in taken.items()
    }


def main() -> None:
    """Write, read in several ways, report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=50_000_000)
    parser.add_argument("--users", type=int, default=500_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sql", action="store_true", help="A database beside the files.")
    arguments = parser.parse_args()
    report = {
        "records": arguments.records,
        "users": arguments.users,
        "seed": arguments.seed,
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "runs": {},
    }
    with tempfile.TemporaryDirectory() as folder:
        records, out = Path(folder) / "records", Path(folder) / "traces.parquet"
        apart(write_records, records, arguments.records, arguments.users, arguments.seed)
        report["files_gb"] = round(sum(f.stat().st_size for f in records.iterdir()) / 1e9, 3)
        if arguments.sql:
            database = Path(folder) / "records.duckdb"
            apart(write_database, records, database)
            report["database_gb"] = round(database.stat().st_size / 1e9, 3)
            found = measure(sql_runs(records, database, out), arguments.repeats)
            report["runs"] = {
                name: {
                    "seconds": round(seconds, 1),
                    "million_records_per_second": round(arguments.records / seconds / 1e6, 2),
                    "peak_gb": round(gb, 2),
                }
                for name, (seconds, gb) in found.items()
            }
            print(json.dumps(report, indent=2))
            return
        ingest = [sys.executable, "-m", "whosthere", "ingest", str(records)]
        for name, (options, kind) in RUNS.items():
            commands = {
                "ingest": [*ingest, "--out", str(out), "--force", *options],
                **bare_queries(records, kind),
            }
            found = measure(commands, arguments.repeats)
            seconds, gb = found.pop("ingest")
            report["runs"][name] = {
                "seconds": round(seconds, 1),
                "million_records_per_second": round(arguments.records / seconds / 1e6, 2),
                "peak_gb": round(gb, 2),
                **{
                    bare: {
                        "seconds": round(bare_seconds, 1),
                        "peak_gb": round(bare_gb, 2),
                        "ingest_takes_times": round(seconds / bare_seconds, 2),
                    }
                    for bare, (bare_seconds, bare_gb) in found.items()
                },
            }
            print(name, report["runs"][name], file=sys.stderr)
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
