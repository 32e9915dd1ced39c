"""What may be chosen for a study: declared once, for Python and the command line.

Nothing heavy is imported here, so that the help of the command appears at once.
"""

from typing import TypedDict


class StudyChoices(TypedDict, total=False):
    """What may be chosen for a study; None stands for what was not chosen."""

    dataset: str | None
    like: str | None
    scale: str | None
    targets: int | None
    releases: int | None
    group_size: int | None
    min_visits: int | None
    reference_size: int | None
    max_visits: int | None
    seed: int | None
