"""`whosthere recommend`: the weakest protection that passes the policy."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import typer

from whosthere.auditing.choices import SearchChoices
from whosthere.cli import console
from whosthere.cli.audit import show_prospects, traces_of
from whosthere.cli.options import (
    NOT_GOOD_ENOUGH,
    SOMETHING_FAILED,
    known_failure,
    takes,
)
from whosthere.cli.screen import WHAT_FINDS_MEANS, Line, heads_of, show_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from whosthere.search.recommendation import Candidate, Recommendation
    from whosthere.search.search import PreparedSearch


@takes(SearchChoices, once=("knowledge",))
def recommend(
    traces: list[Path],
    *,
    group_size: int,
    family: list[str] | None = None,
    coarsen: list[str] | None = None,
    check_all: bool = False,
    policy: Path | None = None,
    fail_on: str | None = None,
    out: Path | None = None,
    report: Path | None = None,
    details: bool = False,
    explain: bool = False,
    json: bool = False,
    force: bool = False,
    workers: int | None = None,
    cluster: str | None = None,
    dry_run: bool = False,
    **chosen: Unpack[SearchChoices],
) -> None:
    """Find the weakest protection that passes the policy, and show what it costs.

    Searches each family with the likelihood ratio, checks the most useful of what passes with all
    attacks, and confirms it on fresh releases before it is recommended. Shows beforehand how many
    trials there are and how long they take. With `--out`, Ctrl-C loses only the tasks that are
    running at that moment: the same command resumes the search.

    Example: `whosthere recommend traces.parquet --group-size 1000 --seed 1 --out search
    --report choice.html`, or `whosthere recommend records/ -m 1000`
    """
    from whosthere.auditing.options import AuditOptions
    from whosthere.auditing.policy import Policy
    from whosthere.auditing.work import chosen_workers
    from whosthere.data.files import refuse_existing
    from whosthere.reporting.report import recommendation_report, refuse_page
    from whosthere.search.search import DEFAULT_FAMILIES, prepare_search
    from whosthere.search.tester import TrialFailedError

    known_failure(fail_on, ("nothing",))
    if report is not None:
        refuse_page(report, force=force)
        refuse_existing(report, force=force, inputs=traces)
    options = AuditOptions.of(group_size=group_size, **chosen)
    judged_by = Policy.of(policy)
    talk = not json
    with traces_of(traces, out, talk=talk) as (path, _):
        with console.trying("Checking the search, and trying each attack to estimate the time ..."):
            prepared = prepare_search(
                path,
                options,
                families=tuple(family or DEFAULT_FAMILIES),
                coarsen=tuple(coarsen or ()),
                check_all=check_all,
                out=out,
                # What is compiled for a try need not be compiled by each worker.
                estimate=talk or dry_run or workers != 1,
            )
        if talk:
            if dry_run or details:
                _show_search(prepared)
            _show_cost(prepared, workers, cluster)
            plan, always = prepared.terms.any_plan, dry_run or details
            show_prospects("search", plan, prepared.look, judged_by, always=always)
        if dry_run:
            if json:
                console.print_json(prepared.to_json())
            return
        try:
            with console.progress(one_bar=True) as move:
                doers = chosen_workers(cluster or workers)
                found = prepared.run(policy=judged_by, workers=doers, on_progress=move)
        except TrialFailedError as error:
            console.complain(str(error).strip().splitlines()[-1])
            raise typer.Exit(SOMETHING_FAILED) from None
    if report is not None:
        recommendation_report(found).save(report, force=force)
    written = [path for path in (out, report) if path is not None]
    show = partial(_show, found, written, details=details, explain=explain)
    console.result(found.to_json(), show, json=json)
    if fail_on and found.recommended is None:
        raise typer.Exit(NOT_GOOD_ENOUGH)


def _show_search(prepared: PreparedSearch) -> None:
    rows, plan = [], prepared.terms.any_plan
    for family in prepared.terms.families:
        values = ", ".join(choice.partition("=")[2] for choice, _ in family.members())
        rows.append((family.template, f"{family.parameter}: {values}"))
    larger = [one.words or "as it is" for one in prepared.terms.coarsenings]
    if len(larger) > 1:
        rows.append(("each of them over", "\n".join(larger)))
    chosen = f"{len(plan.targets)}, {plan.choice}"
    rows.append(("targets", f"{chosen}, and others for the confirmation"))
    rows.append(("attacks in the check", "\n".join(map(str, prepared.terms.attacks))))
    console.table("What will be searched, from weak to strong", ("", ""), rows)


def _show_cost(prepared: PreparedSearch, workers: int | None, cluster: str | None) -> None:
    plan = prepared.terms.any_plan
    console.say(*plan.cautions, begin="Note: ")
    if prepared.kept:
        console.say(f"Trials already begun: {prepared.kept}. Finished tasks are not repeated.")
    if prepared.cost is None:
        return
    time = console.expected(prepared.cost.seconds, len(plan.tasks), workers, cluster)
    most = prepared.trials_to_search + prepared.trials_at_last
    console.say(
        f"At most {most} trials (search {prepared.trials_to_search}, check and confirmation "
        f"{prepared.trials_at_last}), {time}, {prepared.cost.memory}. A check or a confirmation "
        "that fails adds about three trials."
    )


_LEGEND = (
    "Risk is that of the strongest attack tried, with 95 % intervals. Cells kept: share of the "
    "visited cells published above 0. Relative error: mean over visited cells. Pattern "
    "correlation: of published and true counts, 1 is the same pattern and 0 is none. *: tried with "
    "every attack chosen, others with the likelihood ratio alone. Useless: less is left than the "
    "floors of the policy ask for. Confirmation: the protection above on fresh releases of people "
    "drawn anew."
)


def _show(found: Recommendation, written: Sequence[Path], *, details: bool, explain: bool) -> None:
    """Print what a search found; the first screen last, so that it is what a terminal shows."""
    if details:
        _show_details(found)
    if explain:
        console.say(_LEGEND)
    _show_front(found)
    show_lines([*_lines(found)])
    chosen = found.recommended
    if chosen is None:
        console.say(f"{found.why_nothing} passes the policy {found.policy.name!r}.")
        console.say(
            "Try other families, larger groups, larger regions or longer epochs, such as with "
            "--coarsen regions=4 or --coarsen epochs=4h,1d."
        )
    else:
        console.say(
            f"Recommended: {chosen.name}. Of the protections that pass, it preserves the "
            "pattern over regions and epochs best. Its numbers are those of the confirmation."
        )
    console.say(WHAT_FINDS_MEANS, *(f"Written: {path}" for path in written))


def _lines(found: Recommendation) -> Iterator[Line]:
    """Return for each family what passes and is weakest, or the strongest that was tried.

    Where several cells or groups were tried, that is what keeps most, or else has the least risk.
    """
    for family in dict.fromkeys(candidate.family for candidate in found.candidates):
        own = [candidate for candidate in found.candidates if candidate.family == family]
        passing = [one for one in found.best if one.family == family]
        best = sorted(passing, key=lambda one: (one.confirmed, one.pattern_kept))[-1:]
        strongest = {one.ladder: one for one in own}.values()
        failed = [one for one in own if one.confirmation is not None and not one.confirmed]
        for one in [*failed, *(best or [min(strongest, key=lambda one: one.risk)])]:
            if one.confirmation is not None:
                note = "confirmed on fresh releases" if one.confirmed else "not confirmed"
            else:
                note = "no confirmation was tried" if one.passes else "the strongest tried"
            yield Line(one.last_verdict, one.last_findings, found.policy, one.name, note)


def _show_front(found: Recommendation) -> None:
    """Print what no other candidate beats, from the least risk to the most."""
    from whosthere.auditing.result import shown
    from whosthere.reporting.words import outcome

    front, n = found.front, len(found.candidates)
    if len(front) > 1:
        console.say(f"Less risk costs pattern. Of {n} tried, no other beats these in both:")
        console.say(
            *(
                f"  mean AUC {shown(one.auc)}  pattern {one.kept:.2f}  {one.name} "
                f"({outcome(one.last_verdict)})"
                for one in front
            )
        )


def _show_details(found: Recommendation) -> None:
    from whosthere.inference.vocabulary import OF_UTILITY
    from whosthere.search.recommendation import CHOSEN_BECAUSE_IT_PASSED

    metrics = found.policy.metrics_to_show
    for ladder in dict.fromkeys(candidate.ladder for candidate in found.candidates):
        own = [candidate for candidate in found.candidates if candidate.ladder == ladder]
        rows = [row for candidate in own for row in _rows(candidate, metrics)]
        console.table(ladder, ("", "verdict", *heads_of(metrics)), rows)
        left = [
            (candidate.choice, *(candidate.utility.get(name) for name in OF_UTILITY))
            for candidate in own
        ]
        console.table("Left to publish", ("", *heads_of(OF_UTILITY)), left)
    for candidate in found.candidates:
        if candidate.confirmation is not None:
            note = "confirmed on fresh releases" if candidate.confirmed else "not confirmed"
            _show_verdict(candidate, note)
    if found.recommended is not None:
        console.say(CHOSEN_BECAUSE_IT_PASSED)
    console.say(*found.cautions, begin="Note: ")


def _show_verdict(candidate: Candidate, note: str) -> None:
    verdict = candidate.last_verdict
    about = f"{verdict.headline}  ({note})"
    console.verdict(verdict.decision, about, useless=candidate.useless)
    console.say(*verdict.reasons)


def _rows(candidate: Candidate, metrics: Sequence[str]) -> Iterator[list[str]]:
    """Return a row of what the search found, and one of the confirmation."""
    from whosthere.auditing.result import shown

    useless = "\n(useless)" if candidate.useless else ""
    yield [
        candidate.choice,
        candidate.verdict.decision + ("*" if candidate.checked else "") + useless,
        *(shown(candidate.strongest(metric), between="\n") for metric in metrics),
    ]
    if candidate.confirmation is not None:
        found = (candidate.strongest(metric, confirmed=True) for metric in metrics)
        numbers = (shown(one, between="\n") for one in found)
        yield ["confirmation", candidate.confirmation.decision, *numbers]
