"""A verdict on the very release that is to go out, by whoever has the traces behind it.

Who in it would be found is asked by `whosthere.game.release_check`. The limits are those of a
policy that one release can be judged by: the share of people found at a rate of false alarms, and
the AUC over everybody. Where it is not accepted, coarser publications of the same people are tried
in the same way.

Whom an attacker finds is kept by row in `people`, for the publisher alone. Everything else holds
numbers about 5 people or more: how many are found is rounded to multiples of 5, outwards where it
is an end of an interval.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from whosthere.adversary.attacks import Attack
from whosthere.adversary.attacks.base import AttackOnEverybody
from whosthere.auditing.verdict import Decision, Verdict
from whosthere.data.epochs import format_length
from whosthere.data.files import existing, for_sheets, new_file
from whosthere.data.floor import LEAST_PEOPLE, in_fives
from whosthere.display import facts_table, in_one_line, stacked
from whosthere.errors import GroupError, InputError
from whosthere.game.counted import FEWEST_TABLES, Counted, counted_people
from whosthere.game.release_check import Scored, leaks_in, score
from whosthere.inference.finding import Finding
from whosthere.inference.looks import FIRST_LOOK, Errors
from whosthere.inference.metrics import TAIL, pooled_auc
from whosthere.inference.vocabulary import METRICS, RATES, STRONGEST, is_judged
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.publish import given_rows
from whosthere.privacy.scheme import ORDINARY, Layout, Scheme, TableScheme
from whosthere.privacy.tables import as_release
from whosthere.privacy.utility import utility
from whosthere.seeds import check_seed
from whosthere.specs import whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike

    from whosthere.arrays import Ints64
    from whosthere.auditing.policy import Limit, Policy
    from whosthere.data.frames import AnyPath
    from whosthere.data.traces import Traces
    from whosthere.game.release_check import Found
    from whosthere.privacy.release import Release
    from whosthere.privacy.tables import TableReader
    from whosthere.progress import Move

AT = "tpr_at_fpr_1pct"
"""Who is found is said at this rate of false alarms."""
POOLED = "pooled_auc"
"""How well people are told apart by one threshold for all, whichever it is."""
# Tables that are made anew where nobody says how many.
_TABLES = 50
# What coarser publications join, and how many times the least count is withheld as well.
_TIMES = (2, 4)


class Exposed(NamedTuple):
    """How many people an attack finds at one false alarm in a hundred, in multiples of 5.

    `chance` of them it would name if they were not in, and `again` is the share whom it finds in
    other tables made in the same way.
    """

    attack: str
    people: int
    low: int
    high: int
    chance: float
    again: float

    @property
    def beyond_chance(self) -> tuple[float, float, float]:
        """How many are found because they are in, with the ends of the interval."""
        least, found, most = (max(n - self.chance, 0.0)
                              for n in (self.low, self.people, self.high))  # fmt: skip
        return found, least, most


@dataclass(frozen=True, eq=False, repr=False)
class ReleaseCheck:
    """Who would be found in a release, and what to do about it."""

    releases: tuple[Release, ...]
    """The tables, with what is public about them."""
    policy: Policy
    verdict: Verdict
    """What the policy says of the release."""
    exposed: tuple[Exposed, ...]
    """How many people each attack finds in it."""
    coarser: tuple[Verdict, ...]
    """What the policy says of coarser publications of the same people; none if it accepts."""
    findings: tuple[Finding, ...]
    """What the verdicts rest on; the setting says what was published."""
    leaks: pl.DataFrame
    """Where and when people are found, with the columns `whosthere.game.leaks.LEAKS`."""
    people: pl.DataFrame
    """Who is found, by row of the traces, for the publisher alone: `attack`, `score`; the score on
    the table `without` that person; the `chance` of such a score for somebody who is not in; and in
    which share of other tables made in the same way the person is found `again`."""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """What makes wrong whatever is found, in sentences."""

    def save_people(
        self, path: Path, *, users: Sequence[str] | None = None, force: bool = False
    ) -> None:
        """Write who is found as CSV that only its owner may read; with ids if they are given."""
        table = self.people
        if users is not None:
            ids = pl.Series("user", [users[row] for row in table["row"]], pl.String)
            table = table.select("row", for_sheets(ids), pl.exclude("row"))
        with new_file(path, force=force) as temporary:
            table.write_csv(temporary)

    def to_json(self) -> dict[str, Any]:
        """Return everything that names nobody, but the leaks, as a JSON object."""
        return {
            "verdict": self.verdict.to_json(),
            "exposed": [one._asdict() | {"beyond_chance": one.beyond_chance}
                        for one in self.exposed],
            "coarser": [one.to_json() for one in self.coarser],
            "policy": self.policy.to_json(),
            "group_size": self.releases[0].group_size,
            "mechanisms": [str(one.mechanism) for one in self.releases],
            "warnings": list(self.warnings),
            "notes": list(self.notes),
            "findings": [one.to_json() for one in self.findings],
        }  # fmt: skip

    def __repr__(self) -> str:
        return in_one_line("ReleaseCheck", f"{self.verdict.setting}: {self.verdict.decision}")

    def _repr_html_(self) -> str:
        found = {
            f"found by {one.attack}": f"about {one.people:,} ({one.low:,} to {one.high:,}), "
            f"{one.chance:,.0f} to be expected by chance"
            for one in self.exposed
        }
        return stacked(self.verdict._repr_html_(), facts_table("People", found))


def attacks_of(given: Sequence[Attack | str]) -> tuple[AttackOnEverybody, ...]:
    """Return attacks that score everybody at once and need nothing but the traces."""
    attacks = dict.fromkeys(map(Attack.parse, given))
    fitting = [one for one in attacks
               if isinstance(one, AttackOnEverybody) and one.uses <= {"everybody"}]  # fmt: skip
    for one in attacks:
        if one not in fitting:
            problem = f"{one} cannot score everybody in a release from the release alone"
            raise InputError(problem, fix=f"Use {STRONGEST} here, and audit with the other")
    return tuple(fitting)


def check_release(
    given: Sequence[Any],
    everybody: Traces,
    *,
    mechanism: Mechanism | str | None = None,
    group_size: int | None = None,
    reader: TableReader | None = None,
    group: ArrayLike | AnyPath | None = None,
    tables: Sequence[str] = (),
    attacks: Sequence[Attack | str] = (STRONGEST,),
    policy: Policy,
    releases: int | None = None,
    what_if: bool = True,
    seed: int = 0,
    on_progress: Move,
) -> ReleaseCheck:
    """Judge tables of the same people, given these; arguments are as for `whosthere.check`."""
    chosen, rows = attacks_of(attacks), _rows_in(everybody, group)
    if rows.size < FEWEST_TABLES:
        raise GroupError(
            f"a release of {rows.size} people is too small to be judged by itself (`group`)",
            fix=f"Give at least {FEWEST_TABLES} people, or audit the protection",
        )
    read = [
        as_release(one, mechanism=mechanism, group_size=group_size, reader=reader, people=rows.size)
        for one in given
    ]
    counted, published = counted_people([one.release for one in read], everybody, rows, tables)
    n_tables = min(_TABLES, rows.size) if releases is None else whole(releases, "`releases`")
    if not FEWEST_TABLES <= n_tables <= rows.size:
        raise InputError(
            f"{n_tables} tables cannot be made anew, each without other people (`releases`)",
            fix=f"Give {FEWEST_TABLES} or more, and at most as many as there are people",
        )
    counted.refuse_others(published, check_seed(seed))
    judge = _Judge(policy, tuple(map(str, chosen)))

    def scored(
        of: Counted, at_hand: Sequence[Release] | None, n_tables: int, what: str
    ) -> list[Scored]:
        return score(
            of, chosen, at_hand, n_tables=n_tables, seed=seed, on_progress=on_progress, what=what
        )

    here = scored(counted, published, n_tables, "tables without people")
    found = [one.found(RATES[AT], (TAIL, TAIL)) for one in here]
    each = list(zip(judge.attacks, here, found, strict=True))
    setting = str(Scheme(counted.tables, rows.size))
    findings = judge.findings(setting, here)
    verdict = judge.verdict(setting, counted, findings, _left(counted, published, ORDINARY))
    coarser, of_coarser = [], []
    others = coarser_ones(counted, published) if what_if and verdict.decision != "accept" else ()
    for i, (name, other, layout) in enumerate(others, 1):
        scores = scored(other, None, FEWEST_TABLES, f"tables of coarser publication {i}")
        left = _left(counted, other.published(rows, seed, "kept").releases, layout)
        own = judge.findings(name, scores)
        coarser.append(judge.verdict(name, other, own, left))
        of_coarser += own
    return ReleaseCheck(
        tuple(published),
        policy,
        verdict,
        tuple(_exposed(name, one, at, rows.size) for name, one, at in each),
        tuple(coarser),
        (*findings, *of_coarser),
        leaks_in(counted, published, n_tables=FEWEST_TABLES, seed=seed),
        pl.concat(_who(name, one, at, rows) for name, one, at in each),
        tuple(note for one in read for note in one.notes),
        tuple(warning for one in read for warning in one.warnings),
    )


def _rows_in(everybody: Traces, group: ArrayLike | AnyPath | None) -> Ints64:
    """Return the rows of a group that is given as such, or as a file of ids; by default all."""
    if group is None:
        return np.arange(everybody.n_users)
    if not isinstance(group, str | os.PathLike):
        return everybody.checked(given_rows(group, None))
    ids = existing(Path(group)).read_text(encoding="utf-8", errors="replace").splitlines()
    row = {user: i for i, user in enumerate(everybody.users)}
    named = [one for one in map(str.strip, ids) if one in row or one not in {"", "user"}]
    unknown = sum(one not in row for one in named)
    if unknown:
        problem = f"{unknown:,} of {len(named):,} ids are not in the traces"
        raise InputError(problem, where=group, fix="Write one id in each line")
    if not named or len(set(named)) < len(named):
        problem = "names somebody twice" if named else "names nobody"
        raise InputError(problem, where=group, fix="Write the id of each person once")
    return given_rows([row[one] for one in named], None)


def _exposed(name: str, scored: Scored, found: Found, m: int) -> Exposed:
    again = _upwards(float(scored.again(found.threshold).mean()), m) / m
    ends = _downwards(found.low, m), _upwards(found.high, m)
    return Exposed(name, _upwards(found.share, m), *ends, found.false_alarms * m, again)


def _upwards(share: float, m: int) -> int:
    return min(in_fives(round(share * m)), m)


def _downwards(share: float, m: int) -> int:
    return round(share * m) // LEAST_PEOPLE * LEAST_PEOPLE


def _who(name: str, scored: Scored, found: Found, rows: Ints64) -> pl.DataFrame:
    who = np.flatnonzero(scored.here > found.threshold)
    return pl.DataFrame(
        {
            "row": rows[who],
            "attack": [name] * who.size,
            "score": scored.here[who].astype(np.float64),
            "without": scored.without[who],
            "chance": scored.chance(scored.here[who]),
            "again": scored.again(found.threshold)[who],
        },
        schema_overrides={"attack": pl.String},
    ).sort("score", descending=True)


@dataclass(frozen=True)
class _Judge:
    """A policy, and the attacks whose findings it judges."""

    policy: Policy
    attacks: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.limits:
            raise InputError(
                "the policy limits nothing that one release can be judged by (`policy`)",
                fix=f"Limit one of {', '.join((*RATES, POOLED))}",
            )

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The limits that one release can be judged by."""
        return tuple(one for one in self.policy.limits if one.metric in {*RATES, POOLED})

    def findings(self, setting: str, several: Sequence[Scored]) -> list[Finding]:
        """Measure what each attack finds."""
        n_judged = max(len(self.limits) * sum(map(is_judged, self.attacks)), 1)
        errors = Errors.at(FIRST_LOOK, n_judged=n_judged)
        limited, found = {one.metric for one in self.limits}, []
        for name, scored in zip(self.attacks, several, strict=True):
            m, n_in, n_out = scored.n_people, scored.here.size, int(scored.left_out.sum())
            for metric in (one for one in RATES if one in {AT, *limited}):
                shown = scored.found(RATES[metric], (TAIL, TAIL))
                decides = scored.found(RATES[metric], (errors.low, errors.high))
                (low, high), ends = ((_downwards(one.low, m) / m, _upwards(one.high, m) / m)
                                     for one in (shown, decides))  # fmt: skip
                share = _upwards(shown.share, m) / m
                one = Finding(setting, name, metric, share, low, high, m, n_in, n_out)
                found.append(replace(one, low_to_decide=ends[0], high_to_decide=ends[1]))
            found.append(self._pooled(setting, name, scored, errors))
        return found

    def _pooled(self, setting: str, name: str, scored: Scored, errors: Errors) -> Finding:
        out, m = scored.left_out, scored.n_people
        person = np.broadcast_to(np.arange(m), out.shape)
        is_in = np.arange(m) if scored.here.size == m else person[~out]
        scores = np.concatenate([scored.here, scored.anew[out]])
        labels = np.arange(scores.size) < scored.here.size
        one = pooled_auc(scores, labels, np.concatenate([is_in, person[out]]), errors=errors)
        rests_on = m, scored.here.size, int(out.sum())
        return Finding(
            setting, name, POOLED, one.value, one.low, one.high, *rests_on, one.note,
            None, one.low_to_decide, one.high_to_decide,
        )  # fmt: skip

    def verdict(
        self,
        setting: str,
        counted: Counted,
        findings: Sequence[Finding],
        left: Mapping[str, float],
    ) -> Verdict:
        """Say what the policy makes of findings, given what is left of the true counts."""
        most = {one.metric: one.most for one in self.limits}
        judged = [one for one in findings if one.metric in most and is_judged(one.attack)]
        broken = [one for one in judged if one.at_least > most[one.metric]]
        unsure = [one for one in judged if one.at_most > most[one.metric]]
        decision: Decision = "reject" if broken else "cannot tell" if unsure else "accept"
        reasons = [_reason(one, most[one.metric]) for one in broken or unsure or judged]
        if decision == "accept" and STRONGEST not in self.attacks:
            decision, reasons = "cannot tell", [f"It was not attacked by {STRONGEST}."]
        scheme = Scheme(counted.tables, counted.rows.size)
        at = {one.attack: one.estimate or 0.0 for one in findings if one.metric == AT}
        return Verdict(
            setting,
            decision,
            tuple(reasons),
            strongest=max(at, key=lambda name: at[name]),
            left=left,
            useless=any(left.get(one.metric, 1.0) < one.least for one in self.policy.keep),
            knows="all their visits",
            group_size=scheme.group_size,
            protection=scheme.in_words,
        )


def _reason(one: Finding, most: float) -> str:
    value = "" if one.estimate is None else f" is {one.estimate:.3f},"
    ends = f"surely between {max(one.at_least, 0):.3f} and {min(one.at_most, 1):.3f}"
    return f"{METRICS[one.metric].words} of {one.attack}{value} {ends}; the limit is {most:g}."


def _left(base: Counted, releases: Sequence[Release], layout: Layout) -> Mapping[str, float]:
    """Return what is kept of the true counts of the release at hand, by a table over its cells."""
    if len(base.tables) > 1:
        return {}
    [people], [release] = base.everybody, releases
    published = layout.spread(release.people, people.epochs)
    kept = utility(published, people.counts(base.rows))
    found = {
        "pattern_correlation": kept.pattern_correlation or 0.0,
        "cells_kept": kept.cells_kept,
        "visits_kept": kept.visits_kept,
        "relative_error": kept.mean_relative_error,
    }
    return {name: value for name, value in found.items() if value is not None}


class Coarser(NamedTuple):
    """A coarser publication of the same people, by the cells that it has of those at hand."""

    setting: str
    counted: Counted
    layout: Layout = ORDINARY


def coarser_ones(counted: Counted, releases: Sequence[Release]) -> Iterator[Coarser]:
    """Yield coarser publications: larger regions, longer epochs, more withheld; or fewer tables.

    None depends on who is found: that would tell of them.
    """
    tables, m = counted.tables, counted.rows.size
    if len(tables) > 1:
        for left_out in range(len(tables)):
            kept = [i for i in range(len(tables)) if i != left_out]
            fewer = tuple(tables[i] for i in kept)
            over = tuple(counted.everybody[i] for i in kept)
            yield Coarser(str(Scheme(fewer, m)), Counted(fewer, over, counted.rows))
        return
    [table], [people], [release] = tables, counted.everybody, releases
    layouts: dict[str, Layout] = {}
    for times in _TIMES:
        with suppress(InputError):
            layouts[f"regions={times}"] = Layout(people.regions.in_groups_of(times))
    for times in filter(people.epochs.n.__ge__, _TIMES):
        layouts[f"epochs={format_length(times * people.epochs.length)}"] = Layout(epochs=times)
    for words, layout in layouts.items():
        made = TableScheme(table.mechanism, replace(layout, counts=table.layout.counts))
        with suppress(InputError):
            laid = made.layout(people)
            made.check(people.epochs, laid.most_added)
            larger = Counted((made,), (laid,), counted.rows)
            yield Coarser(f"{table}, {words}, m={m}", larger, made.layout)
    least = int(release.values[release.values > 0].min(initial=release.facts.most_count))
    for times in _TIMES:
        with suppress(InputError):
            more = Mechanism.parse(f"suppress(k={times * least - 1})").steps
            stronger = replace(table, mechanism=Mechanism((*release.mechanism.steps, *more)))
            yield Coarser(str(Scheme((stronger,), m)), replace(counted, tables=(stronger,)))
