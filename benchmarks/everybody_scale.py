"""Time and memory of an audit of everybody, killed once and resumed.

    python benchmarks/everybody_scale.py scale --kill-at 10
    python benchmarks/everybody_scale.py small --people 5000 --regions 300 --kill-at 2 --compare

A simulated city of a million people with 30 visits each, 10,000 regions and a week of hours, is
audited by the likelihood ratio alone. A folder keeps the traces and the audit, which resumes. With
`--kill-at` the audit is killed (SIGKILL) once so many tasks are done, and begun again. With
`--compare` it is done once more without interruption, and both must have found the same.

Memory is what the system says of each process (`/proc`, so on Linux alone): the most that each one
held, and the most that all held together, where what they share is counted for each.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

import whosthere as wt
from whosthere.auditing.store import RunFolder
from whosthere.data.city.models import CITIES

# Makes 30 visits a week of each person on average where there are 10,000 regions.
SESSIONS_A_WEEK = 27.3
SECONDS_BETWEEN_LOOKS = 0.5
RESULTS = ("everybody/*.parquet", "tasks/*.parquet", "people.parquet", "findings.json")


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    for name, usual in (("people", 10**6), ("regions", 10_000), ("epochs", 168)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--releases", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--mechanism", default="suppress(k=2)")
    parser.add_argument("--include", type=float, default=0.9)
    parser.add_argument("--kill-at", type=int, metavar="TASKS", default=0)
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--part", choices=("simulate", "audit"), help="used by itself")
    parser.add_argument("--out", type=Path, help="used by itself")
    given = parser.parse_args()
    if given.part == "simulate":
        simulate(given)
    elif given.part == "audit":
        audit(given)
    else:
        print(json.dumps(benchmark(given), indent=2))


def traces_of(given: argparse.Namespace) -> Path:
    return given.folder / f"{given.people}-{given.regions}-{given.epochs}.parquet"


def simulate(given: argparse.Namespace) -> None:
    """Make the traces; who knows whom matters to nobody here."""
    model = replace(CITIES["cdr-like"], sessions_a_week=SESSIONS_A_WEEK)
    days = -(-given.epochs // 24)
    city = wt.simulate(model, seed=1, users=given.people, regions=given.regions, days=days)
    replace(city.traces(), friends=None).between(0, given.epochs).save(traces_of(given), force=True)


def audit(given: argparse.Namespace) -> None:
    """Audit everybody, as a user would; killed right after so many tasks if that is asked for."""
    write = RunFolder.write_task

    def write_and_be_killed(self: RunFolder, *task: Any) -> None:  # noqa: ANN401
        write(self, *task)
        if tasks_done(self.path) == given.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    RunFolder.write_task = write_and_be_killed  # type: ignore[method-assign]
    wt.audit(
        traces_of(given),
        mechanisms=given.mechanism,
        everybody=True,
        include=given.include,
        releases=given.releases,
        attacks="likelihood-ratio",
        workers=given.workers,
        seed=1,
        what_if=False,
        out=given.out,
    )


def tasks_done(run: Path) -> int:
    return sum(1 for _ in run.glob("tasks/[!.]*.parquet"))


def benchmark(given: argparse.Namespace) -> dict:
    """Simulate, audit with one interruption, and say what it took."""
    given.folder.mkdir(parents=True, exist_ok=True)
    if not traces_of(given).exists():
        _started(given, "simulate").wait()
    run, load = given.folder / "run", os.getloadavg()
    watched = []
    if given.kill_at:
        watched.append(watch(given, run, kill_at=given.kill_at))
    watched.append(watch(given, run))
    found = {
        "machine": {"cores": os.cpu_count(), "python": platform.python_version()},
        "load_before_and_after": [round(load[0], 1), round(os.getloadavg()[0], 1)],
        "mechanism": given.mechanism,
        "include": given.include,
        "releases": given.releases,
        "workers": given.workers,
        "traces": wt.Traces.load(traces_of(given)).about_json(),
        "audits": [one.to_json() for one in watched],
        "seconds_in_all": round(sum(one.seconds for one in watched), 1),
        "processor_seconds_in_all": round(sum(one.processor_seconds for one in watched), 1),
        "folder_gb": round(sum(one.stat().st_size for one in run.rglob("*.*")) / 1e9, 3),
        "findings": _findings(run),
    }
    if given.compare:
        watch(given, run.with_name("uninterrupted"))
        found["same_as_uninterrupted"] = same(run, run.with_name("uninterrupted"))
    return found


@dataclass
class Watched:
    """What an audit took, with the memory of each process and of all together, in bytes."""

    seconds: float = 0.0
    processor_seconds: float = 0.0
    killed: bool = False
    tasks: int = 0
    seconds_until_tasks: float = 0.0
    most_of_each: dict[int, int] = field(default_factory=dict)
    most_of_all: int = 0

    def to_json(self) -> dict:
        """Say it, with the main process first."""
        main, *workers = self.most_of_each.values()
        return {
            "killed": self.killed,
            "tasks_done": self.tasks,
            "seconds": round(self.seconds, 1),
            "seconds_until_last_task": round(self.seconds_until_tasks, 1),
            "processor_seconds": round(self.processor_seconds, 1),
            "gb_main": round(main / 1e9, 2),
            "gb_workers": sorted(
                (round(one / 1e9, 2) for one in workers if one > 1e8), reverse=True
            ),
            "gb_together": round(self.most_of_all / 1e9, 2),
        }


def watch(given: argparse.Namespace, run: Path, *, kill_at: int = 0) -> Watched:
    """Run the audit, which may be killed once so many tasks are done, and look at its processes."""
    found, begun = Watched(), time.perf_counter()
    process = _started(given, "audit", "--out", str(run), f"--kill-at={kill_at}")
    used: dict[int, float] = {}
    ended = False
    while not ended:
        family = _family(process.pid)
        found.most_of_all = max(found.most_of_all, sum(map(_memory, family)))
        for pid in family:
            most = _most_memory(pid)
            found.most_of_each[pid] = max(most, found.most_of_each.get(pid, 0))
            used[pid] = max(_processor_seconds(pid), used.get(pid, 0.0))
        ended = process.poll() is not None
        if tasks_done(run) > found.tasks:
            found.tasks, found.seconds_until_tasks = tasks_done(run), time.perf_counter() - begun
        time.sleep(0 if ended else SECONDS_BETWEEN_LOOKS)
    found.killed = process.returncode == -signal.SIGKILL and kill_at > 0
    while any(Path(f"/proc/{pid}").exists() for pid in used):
        time.sleep(SECONDS_BETWEEN_LOOKS)
    if process.returncode and not found.killed:
        raise SystemExit(f"the audit failed with {process.returncode}")
    found.seconds, found.processor_seconds = time.perf_counter() - begun, sum(used.values())
    return found


def _started(given: argparse.Namespace, part: str, *more: str) -> subprocess.Popen[bytes]:
    options = [
        f"--{name}={getattr(given, name)}"
        for name in ("people", "regions", "epochs", "releases", "workers", "mechanism", "include")
    ]
    command = [sys.executable, __file__, str(given.folder), "--part", part, *options, *more]
    return subprocess.Popen(command, stdout=sys.stderr)


def _family(pid: int) -> list[int]:
    """Return a process and all that it started, itself first."""
    found = [pid]
    for one in found:
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            found += [int(child) for child in _text(task).split()]
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""  # it has ended


def _most_memory(pid: int) -> int:
    """Return the most memory that a process held so far, in bytes."""
    lines = [line.split() for line in _text(Path(f"/proc/{pid}/status")).splitlines()]
    return next((int(line[1]) * 1024 for line in lines if line[0] == "VmHWM:"), 0)


def _memory(pid: int) -> int:
    """Return the memory that a process holds now, in bytes."""
    return int((_text(Path(f"/proc/{pid}/statm")) or "0 0").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _processor_seconds(pid: int) -> float:
    fields = _text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def _findings(run: Path) -> dict[str, dict]:
    known = json.loads((run / "findings.json").read_text())
    return {
        f"{one['attack']}: {one['metric']}": {
            name: one[name] for name in ("estimate", "low", "high")
        }
        for one in known
        if one["estimate"] is not None
    }


def same(run: Path, other: Path) -> bool:
    """Tell whether two run folders hold the same scores and findings, besides times."""
    names = [sorted(str(one.relative_to(at)) for kind in RESULTS for one in at.glob(kind))
             for at in (run, other)]  # fmt: skip
    return names[0] == names[1] and all(_same_file(run / one, other / one) for one in names[0])


def _same_file(one: Path, other: Path) -> bool:
    if one.suffix == ".json":
        return json.loads(one.read_text()) == json.loads(other.read_text())
    return (
        pl.read_parquet(one)
        .drop("seconds", strict=False)
        .equals(pl.read_parquet(other).drop("seconds", strict=False))
    )


if __name__ == "__main__":
    main()
