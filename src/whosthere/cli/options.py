"""Options that several commands have in common."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from whosthere.auditing.work import Workers

Force = Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Seed = Annotated[
    int | None,
    typer.Option("--seed", min=0, help="The same seed gives the same result, bit for bit."),
]
MechanismSpec = Annotated[
    str,
    typer.Option(
        "--mechanism",
        "-M",
        metavar="SPEC",
        help="What is done to the counts, such as 'suppress(k=1)' or "
        "'laplace(eps=1, unit=event) | suppress(k=1)'. See: whosthere mechanisms.",
    ),
]
RegionsTable = Annotated[
    Path | None,
    typer.Option(
        "--regions", metavar="FILE", help="Table of regions: region and, if known, lon and lat."
    ),
]
Timezone = Annotated[
    str | None,
    typer.Option(
        "--timezone",
        "--tz",
        metavar="ZONE",
        help="Local time zone, such as Europe/Rome: for times without a zone, and for days.",
    ),
]
GroupSizes = Annotated[
    list[int] | None,
    typer.Option("--group-size", "-m", help="People in a release; can be repeated."),
]
Attacks = Annotated[
    list[str] | None,
    typer.Option(
        "--attack",
        "-a",
        metavar="NAME",
        help="knock-knock, zero-knowledge, likelihood-ratio (these by default), "
        "likelihood-ratio-reference, contradiction-rule, log-likelihood; can be repeated.",
    ),
]
MinVisits = Annotated[
    int | None, typer.Option(min=1, help="Attack people with at least as many visits; default 1.")
]
ReferenceSize = Annotated[
    int | None,
    typer.Option(
        help="People an attacker has real traces of; default half of all if an attack uses them."
    ),
]
PolicyFile = Annotated[
    Path | None,
    typer.Option("--policy", metavar="FILE", help="TOML file with the limits to judge by."),
]
WorkerCount = Annotated[
    int | None,
    typer.Option("--workers", min=1, help="Processes to use; default one for each processor."),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS", help="Use a running Dask cluster, such as tcp://10.0.0.1:8786."
    ),
]


def worker_count(given: int | None) -> int:
    """Return how many processes to use: those given, or one for each processor we may use."""
    import os

    if given is not None:
        return given
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable else os.cpu_count() or 1


def chosen_workers(n: int, cluster: str | None) -> Workers:
    """Return who does the work: a cluster where one is named, else processes of this machine."""
    from whosthere.auditing.cluster import DaskCluster
    from whosthere.auditing.run import local_workers

    return local_workers(n) if cluster is None else DaskCluster(cluster)
