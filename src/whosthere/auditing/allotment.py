"""How many test releases each attack scores: cheap attacks can afford more of them than dear ones.

Releases have numbers, and every attack begins with number 0. So what two attacks both score are
the first releases, as many as the one with fewer scores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from whosthere.adversary.attacks import attack
from whosthere.errors import InputError, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from whosthere.adversary.attacks import Attack


def check_balanced(releases: int, *, of: str = "") -> None:
    """Refuse a number of releases of which not exactly half can hold the target."""
    if releases < 2 or releases % 2:
        whose = f" of {of}" if of else ""
        raise InputError(
            f"the number of releases{whose} must be even and at least 2, got {releases}"
        )


def allotted(
    attacks: Iterable[Attack],
    usual: int,
    *,
    by_scale: Mapping[str, int],
    given: Mapping[str, int],
) -> dict[str, int]:
    """Return how many releases each attack scores, by its spec.

    Parameters
    ----------
    attacks
        All attacks of an audit.
    usual
        The number for those that nobody names.
    by_scale, given
        Numbers by a spec, which holds for one attack, or by a bare name, which holds for all of its
        variants whose spec is not named. What was given goes first, and must name attacks of the
        audit.
    """
    specs = {str(one): one.name for one in attacks}
    canonical = {_canonical(key, specs): n for key, n in given.items()}
    return {
        spec: next(
            (of[key] for of in (canonical, by_scale) for key in (spec, name) if key in of), usual
        )
        for spec, name in specs.items()
    }


def _canonical(key: str, specs: Mapping[str, str]) -> str:
    """Return the spec or the name that a user's key stands for, or refuse it."""
    known = {*specs, *specs.values()}
    if key in known:
        return key
    # The user's own attacks can be named, but not parsed.
    try:
        spec = str(attack(key))
    except InputError:
        spec = key
    if spec in known:
        return spec
    raise InputError(
        f"releases are given for {key!r} (`releases_of`), which is none of the attacks",
        fix=suggestion(key, sorted(known)),
    )
