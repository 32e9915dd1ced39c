"""What sections are made of: findings to look up, tables to read and sort, panels of pictures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from whosthere.auditing.verdict import Verdict
from whosthere.inference.finding import Finding
from whosthere.inference.vocabulary import (
    CEILING,
    GUARANTEE,
    METRICS,
    NOT_ATTACKS,
    UTILITY,
    is_judged,
)
from whosthere.reporting.words import number, outcome, shortened, texts, words_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from whosthere.auditing.policy import Policy
    from whosthere.reporting.charts.risk import Protection
    from whosthere.reporting.charts.svg import Chart

KEPT = "pattern_correlation"
"""The measure of utility that risk is drawn against: 1 keeps all, 0 nothing."""
_TO = "\N{NARROW NO-BREAK SPACE}\N{EN DASH}\N{NARROW NO-BREAK SPACE}"
_WIDEST = 24
"""Letters that a line of one column is given on paper, at most."""
_SHORT = 11
"""Letters of a text that is to stand in one line."""
_BOLD = 1.2
"""How wide bold letters are, in letters."""


@dataclass(frozen=True, eq=False)
class Lookup:
    """The findings of an audit by setting, attack and metric."""

    findings: Sequence[Finding]

    @cached_property
    def _by_place(self) -> dict[tuple[str, str, str], Finding]:
        return {(one.setting, one.attack, one.metric): one for one in self.findings}

    @cached_property
    def attacks(self) -> tuple[str, ...]:
        """All real attacks, each once."""
        names = (one.attack for one in self.findings)
        return tuple(dict.fromkeys(n for n in names if n not in NOT_ATTACKS))

    def attacks_in(self, setting: str) -> tuple[str, ...]:
        """Return the real attacks of a setting."""
        there = {one.attack for one in self.findings if one.setting == setting}
        return tuple(attack for attack in self.attacks if attack in there)

    def find(self, setting: str, attack: str, metric: str) -> Finding | None:
        """Return a finding, None where it was not measured."""
        return self._by_place.get((setting, attack, metric))

    def value(self, setting: str, attack: str, metric: str) -> float | None:
        """Return the estimate of a finding."""
        found = self.find(setting, attack, metric)
        return None if found is None else found.estimate

    def largest(self, setting: str, metric: str) -> Finding | None:
        """Return the largest value that decides, of a real attack; None where none has one."""
        judged = filter(is_judged, self.attacks_in(setting))
        found = (self.find(setting, attack, metric) for attack in judged)
        known = [one for one in found if one is not None and one.estimate is not None]
        return max(known, key=lambda one: one.estimate or 0.0, default=None)

    def riskiest(self, settings: Iterable[str], most: int) -> frozenset[str]:
        """Return the settings in which attacks do best: at most so many, but at least one."""
        aucs = {setting: self.largest(setting, "auc") for setting in settings}
        risk = {setting: (auc and auc.estimate) or 0.0 for setting, auc in aucs.items()}
        return frozenset(sorted(risk, key=lambda name: -risk[name])[: max(most, 1)])

    def bounds(self, setting: str, metric: str) -> dict[str, float]:
        """Return the lines that bound all attacks, by name, as far as they are known."""
        known = {line: self.value(setting, line, metric) for line in (CEILING, GUARANTEE)}
        return {line: value for line, value in known.items() if value is not None}

    def kept(self, setting: str) -> float | None:
        """Return what a setting keeps, from 0 to 1; None where that is not known."""
        value = self.value(setting, UTILITY, KEPT)
        return None if value is None else min(max(value, 0.0), 1.0)


class Head(NamedTuple):
    """The head of a column, and what the policy asks of it.

    `term` is the entry of the glossary that explains it.
    """

    words: str
    term: str | None = None
    numeric: bool = True
    asked: str = ""

    @property
    def lines(self) -> tuple[str, ...]:
        """The words in two lines of about the same length, neither of which is to be broken."""
        words = self.words.split()
        halves = [(" ".join(words[:i]), " ".join(words[i:])) for i in range(1, len(words))]
        return min(halves, key=lambda two: max(map(len, two)), default=(self.words,))


class Cell(NamedTuple):
    """What stands in a cell: a value, and below it its interval, or what must not be overlooked.

    `sort` is what the column is sorted by, where None comes last, and `note` why there is no value,
    or what else to know. A decision, or `useless`, is shown in its colour.
    """

    text: str
    detail: str = ""
    sort: float | str | None = None
    note: str | None = None
    decision: str | None = None


@dataclass(frozen=True)
class Table:
    """Rows below heads; each row begins with what it is about."""

    caption: str
    heads: tuple[Head, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @classmethod
    def of(
        cls, caption: str, heads: Iterable[Head | str], rows: Iterable[Iterable[Shown]]
    ) -> Table:
        """Return a table of whatever can be shown; heads of columns of texts are texts."""
        return cls(
            caption,
            tuple(one if isinstance(one, Head) else Head(one, numeric=False) for one in heads),
            tuple(tuple(map(cell, row)) for row in rows),
        )

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """The notes of all cells, each once."""
        cells = (cell for row in self.rows for cell in row)
        return tuple(dict.fromkeys(cell.note for cell in cells if cell.note))

    @cached_property
    def shares(self) -> tuple[float, ...]:
        """The share of the width of paper that each column is given, by counting letters."""
        letters = [
            _letters(head.words, [row[column] for row in self.rows])
            for column, head in enumerate(self.heads)
        ]
        return tuple(each / sum(letters) for each in letters)


def _letters(head: str, cells: Iterable[Cell]) -> float:
    """Return how long the lines of a column should be: its longest word, or half of a long text."""
    words = [_BOLD * len(word) for word in head.split()]
    for cell in cells:
        text = [f"\N{CHECK MARK} {cell.text}"] if cell.decision else cell.text.split()
        size = _BOLD if cell.decision else 1
        # What is said of a decision may take two lines.
        below, whole = len(cell.detail), len(cell.text)
        words += [below / 2 if cell.decision else below, max(whole / 2, min(whole, _SHORT))]
        words += [size * len(word) for word in text]
    return 1 + min(max(words), _WIDEST)


PROTECTION = Head("protection", "setting", numeric=False)
ATTACK = Head("attack", "attack", numeric=False)


def metric_heads(metrics: Iterable[str], policy: Policy | None = None) -> tuple[Head, ...]:
    """Return the heads of columns of metrics, with what a policy asks of them."""
    short: dict[str, str] = texts()["short"]
    asked = {} if policy is None else asked_by(policy)
    return tuple(
        Head(short.get(metric, words_of(metric)), metric, asked=asked.get(metric, ""))
        for metric in metrics
    )


def asked_by(policy: Policy) -> dict[str, str]:
    """Return what a policy asks of metrics, as short as heads are."""
    signs = {"at most": "\N{LESS-THAN OR EQUAL TO}", "at least": "\N{GREATER-THAN OR EQUAL TO}"}
    asked = ((metric, said.rpartition(" ")) for metric, said in policy.in_words())
    return {metric: f"{signs[sign]} {value}" for metric, (sign, _, value) in asked}


Shown: TypeAlias = Cell | Finding | Verdict | str | int | float | None
"""What can stand in a table: a number without an interval is a float, how many is an int."""


def cell(value: Shown) -> Cell:
    """Return what a table shows of a value; None is shown as a dash."""
    match value:
        case Cell():
            return value
        case Finding():
            shown = span_cell(value.estimate, value.low, value.high)
            unknown = Cell("not resolvable")
            return (unknown if value.estimate is None else shown)._replace(note=value.note)
        case Verdict():
            shown_as = outcome(value)
            said: dict[str, str] = texts()["decisions"][shown_as]
            # That it is useless need not be said twice.
            known = value.remark if shown_as == "useless" else ()
            more = (said["so"], *(one for one in value.qualifiers if one not in known))
            detail = " ".join(f"({shortened(one)})" for one in more if one)
            return Cell(said["words"], detail, sort=shown_as, decision=shown_as)
        case str():
            words = shortened(value)
            return Cell(words, sort=words)
        case int():
            return Cell(f"{value:,}", sort=float(value))
        case _:
            return span_cell(value, None, None)


def span_cell(value: float | None, low: float | None, high: float | None) -> Cell:
    """Return a number, with its interval where it has one."""
    if value is None:
        return Cell("\N{EN DASH}")
    interval = "" if low is None or high is None else f"{low:.2f}{_TO}{high:.2f}"
    return Cell(number(value), interval, sort=value)


def protection_cell(number: int, name: str) -> Cell:
    """Return a protection with its number, which it is sorted by."""
    return Cell(f"{number}  {shortened(name)}", sort=float(number))


class Panel(NamedTuple):
    """Pictures of one protection, and perhaps of one attack, that a reader can choose.

    `figures` are pictures by the names of their captions in the texts. The numbers are those of
    the protection and of the attack in all tables, from 1; 0 where it is about all attacks.
    """

    number: int
    setting: str
    figures: Mapping[str, Chart]
    table: Table | None = None
    attack_number: int = 0
    attack: str = ""


def axis_ends(
    metric: str, rows: Sequence[Protection], limit: float | None = None
) -> tuple[float, float]:
    """Return the ends of the axis of a metric: all that is possible, or all that was found."""
    dots = [dot for row in rows for dot in row.dots]
    if METRICS[metric].largest > 1:
        found = [*(row.bounds.get(CEILING) for row in rows), *(dot.high for dot in dots), limit]
        known = [value for value in found if value is not None]
        return 0.0, 1.1 * max(1.0, *(dot.estimate for dot in dots), *known)
    lowest = min(dot.estimate if dot.low is None else dot.low for dot in dots)
    is_auc = "auc" in metric and "share" not in metric
    return (0.4 if is_auc and lowest >= 0.4 else 0.0), 1.0
