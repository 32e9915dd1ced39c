"""What may be chosen for a study: declared once, for Python and the command line.

Nothing heavy is imported here, so that the help of the command appears at once.
"""

from typing import Annotated, TypedDict

from whosthere.auditing.choices import Choice


class StudyChoices(TypedDict, total=False):
    """What may be chosen for a study; None stands for what was not chosen."""

    dataset: Annotated[
        str | None,
        Choice(
            str,
            "milan-like (default) or cdr-like (simulated), a file from `whosthere ingest`, or the "
            "real social-pulse-milano.geojson.",
            metavar="NAME|FILE",
        ),
    ]
    like: Annotated[
        str | None,
        Choice(
            str,
            "For a file: the paper's data set whose numbers are used and compared with, milan "
            "(default) or cdr.",
        ),
    ]
    scale: Annotated[
        str | None,
        Choice(
            str,
            "smoke (2 targets, 2 releases each), quick (50, 20; default) or paper (50, 100: the "
            "sizes of the paper's Table 2).",
        ),
    ]
    targets: Annotated[int | None, Choice(int, "Another number of targets.")]
    releases: Annotated[int | None, Choice(int, "Another number of test releases per target.")]
    group_size: Annotated[
        int | None, Choice(int, "People in a release.", flags=("--group-size", "-m"))
    ]
    min_visits: Annotated[int | None, Choice(int, "Attack people with at least this many visits.")]
    reference_size: Annotated[
        int | None, Choice(int, "People that knock-knock has real traces of.")
    ]
    max_visits: Annotated[int | None, Choice(int, "Visits counted a day under user-day noise.")]
    seed: Annotated[int | None, Choice(int, "The same seed gives the same scores; default 0.")]
