"""Releases: making one, reading one of another program, and asking who is in it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer

from whosthere.cli import console
from whosthere.cli.options import NOT_GOOD_ENOUGH, known_failure, with_options, with_parameters
from whosthere.display import counted
from whosthere.errors import GroupError, InputError

if TYPE_CHECKING:
    from whosthere.adversary.attacks import Answer
    from whosthere.adversary.everybody import ScoresOfEverybody
    from whosthere.auditing.release_check import ReleaseCheck
    from whosthere.game.table_check import TableCheck
    from whosthere.reporting.sections.parts import Table


def release(
    ctx: typer.Context,
    traces: Path,
    *,
    mechanism: str | None = None,
    tables: list[str] = [],  # noqa: B006 - typer asks for a list
    group_size: int | None = None,
    weeks: int | None = None,
    every: str | None = None,
    seed: int | None = None,
    audit: Path | None = None,
    out: Path,
    json: bool = False,
    force: bool = False,
) -> None:
    """Count a group of users per region and epoch, protect the counts, and write them.

    Prints what is guaranteed, and how much of the truth the release keeps. Do not give a seed for
    anything that is published: seeds can be guessed, and the noise then subtracted. A release with
    a seed is a trial without any guarantee. Several tables are files of their own, such as
    release-1.parquet.

    Example: `whosthere release city/traces.parquet --group-size 1000
    --mechanism 'laplace(eps=1, unit=event) | suppress(k=1)' --audit run --out release.parquet`
    """
    from whosthere.auditing.acceptance import (
        acceptance,
        judged_again,
        not_audited,
        too_little_left,
    )
    from whosthere.auditing.manifest import fingerprint
    from whosthere.data.traces import Traces
    from whosthere.inference.vocabulary import UTILITY_WORDS
    from whosthere.privacy.publish import publish, refuse_one_person
    from whosthere.privacy.scheme import Scheme
    from whosthere.privacy.table_words import tables_of
    from whosthere.privacy.utility import utility

    files = numbered(out, max(len(tables), 1))
    for file in files:
        refuse_release(file, force=force, inputs=(traces,))
    everybody = Traces.load(traces)
    chosen = tables_of(tables, mechanism, everybody, weeks=weeks, every=every)
    refuse_one_person(everybody, group_size)
    audited, warning = None, f"{not_audited(group_size, everybody)}."
    if audit is not None:
        found = judged_again(audit)
        audited = acceptance(found, chosen, group_size, everybody, fingerprint(traces))
        warning = too_little_left(found, Scheme(chosen, group_size or everybody.n_users))
    made = publish(everybody, tables=chosen, group_size=group_size, seed=seed, audited=audited)
    for table, file in zip(made.tables, files, strict=True):
        table.release.save(file, force=force)
    if json:
        described = [
            {
                "file": str(file),
                "group_size": one.release.group_size,
                "mechanism": str(one.release.mechanism),
                **({"cells": how.layout.written} if tables else {}),
                "guarantee": None if one.release.ledger is None else one.release.ledger.to_json(),
                "audit": None if audited is None else asdict(audited),
                "visits_dropped": one.share_dropped,
                "utility": asdict(utility(one.release.people, one.truth)),
            }
            for one, how, file in zip(made.tables, chosen, files, strict=True)
        ]
        console.print_json({"tables": described} if tables else described[0])
        return
    for one, how, file in zip(made.tables, chosen, files, strict=True):
        of_what = how.written if tables else str(how.mechanism)
        console.say(f"{counted(one.release.group_size, 'user')}, {of_what}")
        console.say(one.release.describe())
        if one.release.ledger is not None:
            console.table("What the release guarantees", ("", ""), one.release.ledger.rows())
        measured = asdict(utility(one.release.people, one.truth))
        rows: list[tuple[str, object]] = [
            (UTILITY_WORDS[name], value) for name, value in measured.items()
        ]
        if one.share_dropped:
            rows.insert(0, ("share of visits dropped by bounding", one.share_dropped))
        console.table("What the release keeps of the truth", ("measure", "value"), rows)
        say_written(file)
    ledgers = [release.ledger for release in made.releases]
    if len(files) > 1 and all(ledger and ledger.states_guarantee for ledger in ledgers):
        console.say("All tables are of the same people, so their budgets (eps, delta) add up.")
    if audited is not None:
        console.say(f"Audit: {audited}.")
    if warning:
        console.say(f"Warning: {with_options(warning, ctx)}")


def numbered(out: Path, n: int) -> list[Path]:
    """Return the files of n tables: the one named, or with a number before its ending."""
    if n == 1:
        return [out]
    return [out.with_name(f"{out.stem}-{i}{out.suffix}") for i in range(1, n + 1)]


def refuse_release(out: Path, *, force: bool, inputs: Sequence[Path | None]) -> None:
    """Refuse to write a release where one of its files may not be written."""
    from whosthere.data.files import refuse_existing
    from whosthere.privacy.release import description_path

    for path in (out, description_path(out)) if out.suffix == ".csv" else (out,):
        refuse_existing(path, force=force, inputs=inputs)


def say_written(out: Path) -> None:
    """Say where a release is, and which file belongs to it."""
    from whosthere.privacy.release import description_path

    console.say(f"Written: {out}")
    if out.suffix == ".csv":
        console.say(f"Written: {description_path(out)}, its description. Keep both together.")


def _reading(
    *,
    wide: bool | None = None,
    epoch: str | None = None,
    timezone: str | None = None,
    time_format: str | None = None,
    clock_change: str = "refuse",
    regions: Path | None = None,
    markers: list[str] = [],  # noqa: B006 - typer asks for a list
    zeros: list[str] = [],  # noqa: B006
    thousands: str | None = None,
    sheet: str | None = None,
    header_row: int | None = None,
    date: str | None = None,
    encoding: str | None = None,
    region_column: str | None = None,
    time_column: str | None = None,
    date_column: str | None = None,
    count_column: str | None = None,
) -> None:
    """Declare the options of reading a table, which are the words of a `TableReader`."""


def reads_tables(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of reading a table, in place of its last parameter."""
    options = inspect.signature(_reading, eval_str=True).parameters.values()
    return with_parameters(command, 4, options)


@reads_tables
def import_(
    ctx: typer.Context,
    counts: list[Path],
    *,
    group_size: int,
    mechanism: list[str],
    out: Path,
    json: bool = False,
    force: bool = False,
    **reading: Any,  # noqa: ANN401 - the words of a reader
) -> None:
    """Read tables of counts made by another program as releases.

    Missing rows are 0. Withheld counts are marked. --mechanism says how the counts were protected;
    counts that it cannot have published are refused. Several tables of the same people become
    files of their own, such as release-1.parquet.

    Example: `whosthere import counts.csv --group-size 20000 --mechanism flowkit
    --timezone Africa/Accra --out release.parquet`
    """
    from whosthere.privacy.mechanism import Mechanism
    from whosthere.privacy.tables import TableReader

    files, done = numbered(out, len(counts)), [Mechanism.parse(one) for one in mechanism]
    if len(done) not in {1, len(counts)}:
        problem = f"{len(counts)} tables have {len(done)} mechanisms (`mechanism`)"
        raise InputError(problem, fix="Give one for all of them, or one for each in their order")
    for file in files:
        refuse_release(file, force=force, inputs=(*counts, reading["regions"]))
    reader, each = TableReader(**reading), done if len(done) > 1 else done * len(counts)
    imported = [
        reader.read(table, group_size=group_size, mechanism=one)
        for table, one in zip(counts, each, strict=True)
    ]
    for one, file in zip(imported, files, strict=True):
        one.release.save(file, force=force)
    if json:
        described = [
            {
                "file": str(file),
                "regions": len(one.release.regions),
                "epochs": one.release.epochs.to_json(),
                "nonzero_cells": int((one.release.counts > 0).sum()),
                "withheld_cells": one.n_withheld,
                "notes": list(one.notes),
            }
            for one, file in zip(imported, files, strict=True)
        ]
        console.print_json({"tables": described} if len(files) > 1 else described[0])
        return
    for one, file in zip(imported, files, strict=True):
        release = one.release
        console.say(
            f"{counted(len(release.regions), 'region')}, {release.epochs}, "
            f"{counted(int((release.counts > 0).sum()), 'cell')} with somebody in them, "
            f"{one.n_withheld:,} withheld"
        )
        for note in one.notes:
            console.say(f"Note: {with_options(note, ctx)}.")
        console.say(
            "Guarantee: none, as the mechanism gives none."
            if release.mechanism.guarantee is None
            else "Guarantee: unknown. Whether the noise of another program can be relied on is not "
            "in its table."
        )
        say_written(file)


@reads_tables
def check(
    ctx: typer.Context,
    counts: list[Path],
    *,
    mechanism: str | None = None,
    group_size: int | None = None,
    group: Path | None = None,
    tables: list[str] = [],  # noqa: B006 - typer asks for a list
    attacks: list[str] = [],  # noqa: B006
    visits: list[str] = [],  # noqa: B006
    releases: int | None = None,
    seed: int = 0,
    policy: Path | None = None,
    fail_on: str | None = None,
    what_if: bool = True,
    people: Path | None = None,
    with_ids: bool = False,
    out: Path | None = None,
    json: bool = False,
    force: bool = False,
    **reading: Any,  # noqa: ANN401 - the words of a reader
) -> None:
    """Find out how well people would be found in a published table.

    From the TABLE alone, this is an estimate without a verdict, and needs no personal data: people
    are drawn from rates that are fitted to the table. With the TRACES of the people whom it counts
    after it, it is a verdict on this very table: how many of them would be found at one false alarm
    in a hundred, where, and which coarser tables would pass. Several tables before TRACES are
    attacked together.

    Example: `whosthere check counts.csv --mechanism 'suppress(k=4)' --out check.html`, or
    `whosthere check release.parquet traces.parquet --people found.csv --fail-on reject`
    """
    from whosthere import front
    from whosthere.auditing.policy import Policy
    from whosthere.auditing.release_check import check_release
    from whosthere.cli.audit import FAILS_ON, traces_of
    from whosthere.data.files import refuse_existing
    from whosthere.data.traces import Traces
    from whosthere.inference.vocabulary import STRONGEST
    from whosthere.privacy.release import is_release
    from whosthere.privacy.tables import TableReader
    from whosthere.reporting.report import check_report, refuse_page, release_check_report

    fails = FAILS_ON.get(known_failure(fail_on, FAILS_ON) or "", ())
    for one in filter(None, (out, people)):
        refuse_existing(one, force=force, inputs=counts)
    if out is not None:
        refuse_page(out, force=force)
    reader = TableReader(**reading)
    if len(counts) == 1:
        needy = {"group": group, "tables": tables, "attacks": attacks, "releases": releases,
                 "policy": policy, "fail_on": fail_on, "people": people}  # fmt: skip
        for name in (name for name, given in needy.items() if given):
            fix = "Name them after the table, or leave it out"
            raise InputError(f"`{name}` needs the traces of the people", fix=fix)
        with console.working("Looking for people ..."):
            found = front.check(
                counts[0],
                mechanism,
                group_size=group_size,
                visits=visits,
                reader=reader,
                seed=seed,
            )
        if out is not None:
            check_report(found).save(out, force=force)
        console.result(found.to_json(), partial(_show_check, found, out, ctx), json=json)
        return
    *published, last = counts
    if visits:
        raise InputError("`visits` is for a table without traces", fix="Leave it out")
    if with_ids and people is None:
        raise InputError("`with_ids` is about the file of people", fix="Name it (`people`)")
    if is_release(last):
        fix = "Name the traces of the people last"
        raise InputError("is a release, and no traces", where=last, fix=fix)
    judged_by = Policy.of(policy)
    with traces_of([last], None, talk=not json) as (path, read), console.progress() as move:
        everybody = Traces.load(path) if read is None else read
        checked = check_release(
            published,
            everybody,
            mechanism=mechanism,
            group_size=group_size,
            reader=reader,
            group=group,
            tables=tables,
            attacks=attacks or (STRONGEST,),
            policy=judged_by,
            releases=releases,
            what_if=what_if,
            seed=seed,
            on_progress=move,
        )
    if out is not None:
        release_check_report(checked).save(out, force=force)
    if people is not None:
        checked.save_people(people, users=everybody.users if with_ids else None, force=force)
    written = tuple(filter(None, (out, people)))
    console.result(checked.to_json(), partial(_show_checked, checked, written, ctx), json=json)
    if checked.verdict.decision in fails:
        raise typer.Exit(NOT_GOOD_ENOUGH)


def _show_check(found: TableCheck, out: Path | None, ctx: typer.Context) -> None:
    from whosthere.reporting.sections.table_check import risk_table
    from whosthere.reporting.words import texts

    _show_table(risk_table(found))
    console.say(texts()["check"]["estimate"], texts()["check"]["off"])
    for note in found.notes:
        console.say(f"Note: {with_options(note, ctx)}.")
    if out is not None:
        console.say(f"Written: {out}")


def _show_checked(found: ReleaseCheck, written: Sequence[Path], ctx: typer.Context) -> None:
    from whosthere.reporting.sections.release_check import exposed_table, verdicts_table

    console.verdict(found.verdict.decision, found.verdict.headline, useless=found.verdict.useless)
    for sentence in found.verdict.reasons:
        console.beneath(sentence, indent=4)
    _show_table(exposed_table(found))
    if found.coarser:
        _show_table(verdicts_table(found))
    for note in found.notes:
        console.say(f"Note: {with_options(note, ctx)}.")
    for file in written:
        console.say(f"Written: {file}")


def _show_table(table: Table) -> None:
    rows = [[f"{cell.text}  {cell.detail}".rstrip() for cell in row] for row in table.rows]
    console.table(table.caption, [head.words for head in table.heads], rows)


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
    known = known_of.of(everybody.trace(row), everybody.epochs.n, rng)
    write_target(known, out, everybody.regions, everybody.epochs, force=force)
    if json:
        numbers = {"visits": known.certain.size, "visits_in_all": everybody.trace(row).size}
        console.print_json({"file": str(out), "known": str(known_of), **numbers})
        return
    if known.certain.size:
        visits = counted(everybody.trace(row).size, "visit")
        console.say(f"Known: {known.certain.size} of {visits}.")
    else:
        places = counted(len(known.places(everybody.epochs.n)), "region")
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
    from whosthere import front
    from whosthere.adversary.attacks import Attack, PastRelease
    from whosthere.adversary.everybody import refuse_scores
    from whosthere.adversary.targets import read_target
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
