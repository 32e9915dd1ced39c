"""`whosthere attack`: one attack on one release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from whosthere.cli import console
from whosthere.cli.options import Json


def attack(
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="Published counts.")],
    *,
    target: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="What is known of the target: region and timestamp (or epoch number) per row, "
            "or only regions.",
        ),
    ],
    name: Annotated[
        str,
        typer.Option(
            "--attack",
            "-a",
            metavar="NAME",
            help="likelihood-ratio, zero-knowledge, contradiction-rule; with --reference also "
            "knock-knock, likelihood-ratio-reference, log-likelihood.",
        ),
    ] = "likelihood-ratio",
    reference: Annotated[
        Path | None,
        typer.Option(
            metavar="TRACES",
            help="Real traces of others, without the target, for attacks that need them.",
        ),
    ] = None,
    guess: Annotated[
        str,
        typer.Option(help="How visits are made of regions without times: greedy or random."),
    ] = "greedy",
    classifier: Annotated[
        str | None,
        typer.Option(help="For trained attacks: l1 (default), l1-paper, forest or mlp."),
    ] = None,
    sampling: Annotated[
        str | None,
        typer.Option(help="For trained attacks: paired (default) or independent groups."),
    ] = None,
    prior: Annotated[
        float, typer.Option(help="For likelihood-ratio: probability of being in, beforehand.")
    ] = 0.5,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same answer.")] = 0,
    json: Json = False,
) -> None:
    """Ask whether one person is in a release, as an attacker would.

    Prints a score, the decision at the attacker's own threshold, and what that means. A single
    answer says little about how good an attack is: that takes many targets and releases.

    Example: `whosthere attack release.parquet --target target.csv`
    """
    from whosthere.adversary.attacks import (
        RULED_OUT,
        Auxiliary,
        LikelihoodAnswer,
        NotApplicableError,
        attack_named,
    )
    from whosthere.adversary.knowledge import parse_guess
    from whosthere.adversary.targets import read_target
    from whosthere.data.traces import Traces
    from whosthere.privacy.release import Release

    chosen = attack_named(name, classifier=classifier, sampling=sampling)
    if not chosen.uses <= {"reference"}:
        raise NotApplicableError(
            f"{name} needs friends or past releases, which a command cannot give it",
            fix="Use it from Python, or use another attack",
        )
    published = Release.load(release)
    known = read_target(target, published.regions, published.epochs, guess=parse_guess(guess))
    auxiliary = Auxiliary(None if reference is None else Traces.load(reference))
    facts = published.facts
    chosen.check(facts, known, auxiliary)
    with console.working(f"Attacking with {name} ..."):
        answer = chosen.fit(facts, known, auxiliary, seed=seed).score(published)
    ruled_out = answer.score == RULED_OUT
    likelihood = answer if isinstance(answer, LikelihoodAnswer) else None
    if json:
        facts_of_answer = {
            "attack": name,
            "score": answer.score,
            "threshold": answer.threshold,
            "decision": "in" if answer.says_in else "out",
            "certain": ruled_out,
        }
        if likelihood is not None:
            posterior = 0.0 if ruled_out else likelihood.posterior(prior)
            facts_of_answer |= {"p_value": likelihood.p_value, "posterior": posterior}
        console.print_json(facts_of_answer)
        return
    if ruled_out:
        console.say("Decision: OUT, with certainty.")
        console.say("The target visited a place and time at which nobody was counted.")
        return
    console.say(f"Decision: {'IN' if answer.says_in else 'OUT'}")
    console.say(f"Score {answer.score:.3f}, threshold {answer.threshold:.3f} (higher means in).")
    if likelihood is not None:
        console.say(
            f"Probability of being in, from {prior:g} before: {likelihood.posterior(prior):.3f}."
        )
        if likelihood.p_value is not None:
            console.say(
                f"Chance of such a score for somebody who is out: {likelihood.p_value:.3g}."
            )
        console.say(
            "Both hold as far as the model does: other people's visits independent, their rate a "
            "factor of the place times one of the hour. The decision may be wrong: how often it "
            "is, is what an audit over many people measures."
        )
        return
    console.say(
        "The score ranks releases against one another; it is no probability. The decision is "
        "the attacker's best guess and may be wrong: how often it is, is what an audit over "
        "many people measures."
    )
