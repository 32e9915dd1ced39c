"""Asking who is in a release, as an attacker would."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from whosthere.cli import console
from whosthere.display import counted
from whosthere.errors import GroupError, InputError

if TYPE_CHECKING:
    from whosthere.adversary.attacks import Answer
    from whosthere.adversary.everybody import ScoresOfEverybody


def target(
    traces: Path,
    *,
    user: str | None = None,
    min_visits: int = 10,
    knowledge: str = "all",
    seed: int = 0,
    out: Path,
    json: bool = False,
    force: bool = False,
) -> None:
    """Write what an attacker is assumed to know of one person, for `whosthere attack`.

    If the traces are real, so are the visits in this file: protect it as you protect the traces.

    Example: `whosthere target traces.parquet --knowledge 'share(0.1)' --seed 3 --out target.csv`
    """
    import numpy as np

    from whosthere.adversary.knowledge import Knowledge
    from whosthere.adversary.suspects import Places
    from whosthere.adversary.targets import write_target
    from whosthere.data.files import refuse_existing
    from whosthere.data.traces import Traces
    from whosthere.seeds import generator

    known_of = Knowledge.parse(knowledge)
    refuse_existing(out, force=force, inputs=(traces,))
    everybody = Traces.load(traces)
    rng = generator(seed, "target")
    if user is not None:
        row = everybody.row_of(user)
    else:
        eligible = np.flatnonzero(everybody.visits_per_user() >= min_visits)
        if not eligible.size:
            raise GroupError(
                f"nobody has {min_visits} visits",
                fix=f"Give --min-visits {int(everybody.visits_per_user().max())} or less",
            )
        row = int(rng.choice(eligible))
    known = known_of.of(everybody.select([row]), rng)
    write_target(known, out, everybody.regions, everybody.epochs, force=force)
    if json:
        numbers = {"visits": known.cells.size, "visits_in_all": everybody.trace(row).size}
        console.print_json({"file": str(out), "known": str(known_of), **numbers})
        return
    if not isinstance(known, Places):
        visits = counted(everybody.trace(row).size, "visit")
        console.say(f"Known: {known.cells.size} of {visits}.")
    else:
        places = counted(known.regions.size, "region")
        console.say(f"Known: {places}, without times.")
    console.say(f"Written: {out}")


def attack(
    release: list[Path],
    *,
    target: Path | None = None,
    everybody: Path | None = None,
    tables: list[str] = [],  # noqa: B006 - typer asks for a list
    spec: str = "likelihood-ratio",
    reference: Path | None = None,
    friends: Path | None = None,
    past_in: list[Path] | None = None,
    past_out: list[Path] | None = None,
    guess: str = "greedy",
    prior: float | None = None,
    seed: int = 0,
    out: Path | None = None,
    with_ids: bool = False,
    json: bool = False,
    force: bool = False,
) -> None:
    """Ask whether one person is in a release, as an attacker would; or everybody at once.

    Prints a score, the decision at the attacker's own threshold, and what that means. Several
    releases are taken for tables of the same people, and attacked together. A single answer says
    little about how good an attack is: `whosthere audit` tries many.

    With --everybody, all people of a file of traces are asked. The scores go to a private file, by
    the row of each person in the traces; the screen only says how many are found.

    Example: `whosthere attack release.parquet --target target.csv`, or
    `whosthere attack release.parquet --everybody traces.parquet --out scores.parquet`
    """
    from whosthere.adversary.attacks import Attack, PastRelease
    from whosthere.adversary.everybody import refuse_scores
    from whosthere.adversary.targets import read_target
    from whosthere.front import releases as front
    from whosthere.privacy.release import Release

    if prior is not None and not 0 < prior < 1:
        raise InputError(f"a prior of {prior:g} is not between 0 and 1", fix="Try 0.5")
    if (target is None) == (everybody is None):
        problem = "an attack asks about one person (`target`), or about all (`everybody`)"
        raise InputError(problem, fix="Give one of the two")
    chosen = Attack.parse(spec)
    if everybody is not None:
        if friends or past_in or past_out:
            raise InputError("friends and past releases are for attacks on one person (`target`)")
        if out is None:
            raise InputError("scores of everybody need a file (`out`)", fix="Name one")
        refuse_scores(out, force=force, inputs=(*release, everybody, reference))
        with console.working(f"Attacking with {chosen} ..."):
            scores = front.attack(
                release,
                attack=chosen,
                everybody=everybody,
                tables=tables,
                reference=reference,
                prior=prior,
            )
        scores.save(out, with_ids=with_ids, force=force)
        found = {"file": str(out), **scores.to_json()}
        console.result(found, partial(_show_everybody, scores, out), json=json)
        return
    if out is not None or with_ids:
        raise InputError("a file of scores is for `everybody`", fix="Leave it out (`out`)")
    counts, prior = [Release.load(path) for path in release], 0.5 if prior is None else prior
    finest = max(counts, key=lambda one: one.facts.n_cells)
    known = read_target(cast("Path", target), finest.regions, finest.epochs, guess=guess)
    past = [PastRelease(Release.load(path), target_in=True) for path in past_in or ()]
    past += [PastRelease(Release.load(path), target_in=False) for path in past_out or ()]
    with console.working(f"Attacking with {chosen} ..."):
        answer = front.attack(
            counts,
            known,
            chosen,
            tables=tables,
            reference=reference,
            friends=friends,
            past=past,
            seed=seed,
        )
    found = {"attack": str(chosen), **answer.to_json(prior=prior)}
    console.result(found, partial(_show, answer, prior), json=json)


def _show_everybody(scores: ScoresOfEverybody, out: Path) -> None:
    console.say(
        f"{len(scores.users):,} people asked, {scores.group_size:,} in the release. Chance of "
        f"being in before: {scores.prior:.3g}."
    )
    rows: list[list[object]] = []
    for one in scores.found():
        alarms, few = f"{100 * one.false_alarms:g} %", one.people is None
        rows.append([alarms, *(["fewer than 5", "", ""] if few else one[1:])])
    heads = ("false alarms", "called in", "right", "of all who are in")
    console.table("Who is found, as the attacker expects", heads, rows)
    console.say(
        "These shares hold as far as the attack's model does. How many really are found, is what "
        "an audit measures."
    )
    console.say(f"Written: {out}")


def _show(answer: Answer, prior: float) -> None:
    if answer.is_certain:
        console.say(
            "Decision: OUT, with certainty.",
            "The target visited a place and time at which nobody was counted.",
        )
        return
    console.say(f"Decision: {'IN' if answer.says_in else 'OUT'}")
    console.say(f"Score {answer.score:.3f}, threshold {answer.threshold:.3f} (higher means in).")
    console.say(*answer.explain(prior=prior))
