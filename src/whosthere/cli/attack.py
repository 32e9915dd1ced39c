"""`whosthere attack`: one attack on one release."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from whosthere.cli import console
from whosthere.cli.options import Json
from whosthere.errors import InputError

if TYPE_CHECKING:
    from whosthere.adversary.attacks import Answer

_needed = partial(typer.Option, rich_help_panel="What some attacks need besides")


def attack(
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="Published counts.")],
    *,
    target: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="What is known of the target: region and timestamp (or epoch number) per row, "
            "or only regions. From `whosthere target`.",
        ),
    ],
    spec: Annotated[
        str,
        typer.Option("--attack", "-a", metavar="SPEC", help="Who attacks. See: whosthere attacks."),
    ] = "likelihood-ratio",
    reference: Annotated[
        Path | None, _needed(metavar="TRACES", help="Real traces of others, without the target.")
    ] = None,
    friends: Annotated[
        Path | None, _needed(metavar="TRACES", help="Real traces of the target's friends.")
    ] = None,
    past_in: Annotated[
        list[Path] | None,
        _needed(metavar="RELEASE", help="A past release with the target. Can be repeated."),
    ] = None,
    past_out: Annotated[
        list[Path] | None,
        _needed(metavar="RELEASE", help="A past release without the target. Can be repeated."),
    ] = None,
    guess: Annotated[
        str,
        typer.Option(help="How visits are guessed from regions without times: greedy or random."),
    ] = "greedy",
    prior: Annotated[
        float, typer.Option(help="For likelihood-ratio: prior probability that the target is in.")
    ] = 0.5,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same answer.")] = 0,
    json: Json = False,
) -> None:
    """Ask whether one person is in a release, as an attacker would.

    Prints a score, the decision at the attacker's own threshold, and what that means. A single
    answer says little about how good an attack is: `whosthere audit` tries many.

    Example: `whosthere attack release.parquet --target target.csv`
    """
    from whosthere import front
    from whosthere.adversary.attacks import PastRelease
    from whosthere.adversary.attacks import attack as parse_attack
    from whosthere.adversary.targets import read_target
    from whosthere.privacy.release import Release

    if not 0 < prior < 1:
        raise InputError(f"a prior of {prior:g} is not between 0 and 1", fix="Try 0.5")
    chosen, published = parse_attack(spec), Release.load(release)
    known = read_target(target, published.regions, published.epochs, guess=guess)
    past = [PastRelease(Release.load(path), target_in=True) for path in past_in or ()]
    past += [PastRelease(Release.load(path), target_in=False) for path in past_out or ()]
    with console.working(f"Attacking with {chosen} ..."):
        answer = front.attack(
            published, known, chosen, reference=reference, friends=friends, past=past, seed=seed
        )
    if json:
        console.print_json({"attack": str(chosen), **answer.to_json(prior=prior)})
    else:
        _show(answer, prior)


def _show(answer: Answer, prior: float) -> None:
    # First of all, for it may refuse the prior.
    sentences = answer.explain(prior=prior)
    if answer.is_certain:
        console.say("Decision: OUT, with certainty.")
        console.say("The target visited a place and time at which nobody was counted.")
        return
    console.say(f"Decision: {'IN' if answer.says_in else 'OUT'}")
    console.say(f"Score {answer.score:.3f}, threshold {answer.threshold:.3f} (higher means in).")
    for sentence in sentences:
        console.say(sentence)
