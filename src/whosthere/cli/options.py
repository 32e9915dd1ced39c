"""Options that several commands have in common."""

from __future__ import annotations

import re
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
TimeFormat = Annotated[
    str | None,
    typer.Option(
        "--time-format",
        metavar="FORM",
        help="How times are written: iso, unix, day-first, month-first, or a pattern such as "
        "'%Y%m%d%H%M'. Found out where only one reading is possible.",
    ),
]
ClockChange = Annotated[
    str,
    typer.Option(
        "--clock-change",
        metavar="HOW",
        help="Local times that do not exist or exist twice: refuse, drop, earlier or later.",
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
        metavar="SPEC",
        help="Who attacks, such as likelihood-ratio or 'zero-knowledge(sampling=independent)'; "
        "can be repeated. By default knock-knock, zero-knowledge and likelihood-ratio. "
        "See: whosthere attacks.",
    ),
]
Knowledge = typer.Option(
    metavar="SPEC",
    help="What is known of a target: all (default), 'share(0.1)' of the visits, regions, or "
    "'regions(top=2)'. See: whosthere attacks.",
)
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


def with_options(message: str, context: typer.Context) -> str:
    """Return a message in which parameters of functions are named as options of the command.

    Messages name them in backquotes. What the command has no option for stays as it is.
    """
    names = {one.name: one.opts for one in context.command.params}

    def option(found: re.Match[str]) -> str:
        name = re.sub(r"columns\.(\w+)", r"\1_column", found[1])
        options = [names[one][0] for one in _OPTIONS_OF.get(name, (name,)) if one in names]
        return " and ".join(options) or found[0]

    return re.sub(r"`([\w.]+)`", option, message)


_OPTIONS_OF = {"past": ("past_in", "past_out")}
"""Parameters of functions that are several options."""


def refuse_useless(**pairs: tuple[object, object]) -> None:
    """Refuse options that do nothing without another one.

    Parameters
    ----------
    pairs
        For each option, by its name with ``_`` for ``-``: its value and that of the option it
        needs, whose name follows after ``__``.
    """
    from whosthere.errors import InputError

    for names, (given, needed) in pairs.items():
        option, other = (f"--{name.replace('_', '-')}" for name in names.split("__"))
        if given is not None and needed is None:
            raise InputError(
                f"{option} does nothing without {other}", fix=f"Give {other} too, or leave it out"
            )


def worker_count(given: int | None) -> int:
    """Return how many processes to use: those given, or one for each processor we may use."""
    from whosthere.kernels.threads import usable_processors

    return usable_processors() if given is None else given


def chosen_workers(n: int, cluster: str | None) -> Workers:
    """Return who does the work: a cluster where one is named, else processes of this machine."""
    from whosthere.auditing.cluster import DaskCluster
    from whosthere.auditing.work import local_workers

    return local_workers(n) if cluster is None else DaskCluster(cluster)


def numbers_by_name(given: list[str] | None) -> dict[str, int] | None:
    """Read texts such as ``likelihood-ratio=200``; a spec before the number may hold ``=`` too."""
    from whosthere.errors import InputError

    if given is None:
        return None
    numbers = {}
    for text in given:
        found = re.fullmatch(r"\s*(.*\S)\s*=\s*(-?[0-9]+)\s*", text)
        if found is None:
            raise InputError(
                f"{text!r} is no name with a whole number", fix="Write it like likelihood-ratio=200"
            )
        numbers[found[1]] = int(found[2])
    return numbers


def given_only(**options: object) -> dict[str, object]:
    """Return the options that were given; those left out have None."""
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in options.items()
        if value is not None
    }
