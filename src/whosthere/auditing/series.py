"""How risk grows while a table is published again and again, and for how long it may be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from whosthere.auditing.reasons import estimate_of, listed
from whosthere.data.epochs import Epochs, format_length, parse_length
from whosthere.inference.vocabulary import GUARANTEE, is_judged
from whosthere.privacy.scheme import PERIODS, Layout

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from whosthere.auditing.policy import Limit
    from whosthere.auditing.verdict import Verdict
    from whosthere.game.plan import Setting
    from whosthere.inference.finding import Finding


@dataclass(frozen=True)
class Series:
    """A protection of a table that is published again and again, judged after each of some times.

    Attributes
    ----------
    protection
        What is published, without how often, such as ``suppress(k=2), m=1000``.
    every
        The time that one table covers, such as ``1w``.
    covered
        How often the table can be published within the data. Nothing is known of more.
    verdicts
        By how often the table is published, from the least.
    findings
        What attacks reached, and what is guaranteed, in the settings of these verdicts.
    """

    protection: str
    every: str
    covered: int
    verdicts: Mapping[int, Verdict]
    findings: tuple[Finding, ...]

    @property
    def lasts(self) -> int:
        """How often the table may be published: accepted, and so is every smaller number tried."""
        found = 0
        for times, verdict in self.verdicts.items():
            if verdict.decision != "accept":
                break
            found = times
        return found

    def risk(self, metric: str) -> dict[int, Finding]:
        """Return the largest value that any attack reached, by how often the table is published."""
        by_times = ((times, self._known(times, metric)) for times in self.verdicts)
        judged = ((times, [one for one in own if is_judged(one.attack)]) for times, own in by_times)
        return {times: max(own, key=estimate_of) for times, own in judged if own}

    def guaranteed(self, metric: str) -> dict[int, float]:
        """Return what no attack exceeds by differential privacy, whose budgets add up over time."""
        return {
            times: estimate_of(one)
            for times in self.verdicts
            for one in self._known(times, metric)
            if one.attack == GUARANTEE
        }

    def _known(self, times: int, metric: str) -> list[Finding]:
        own = (one for one in self.findings if one.setting == self.verdicts[times].setting)
        return [one for one in own if one.metric == metric and one.estimate is not None]

    def crossed(self, limit: Limit) -> int | None:
        """Return after how many tables an estimate is first above a limit; None if never."""
        above = (
            times for times, one in self.risk(limit.metric).items() if estimate_of(one) > limit.most
        )
        return next(above, None)

    def in_time(self, times: int) -> str:
        """Write a number of tables as a time, such as ``4 weeks``."""
        return Layout(times=times, every=parse_length(self.every)).in_time

    @property
    def in_words(self) -> str:
        """For how long the table can be published, in a sentence or two."""
        lasts, every = self.lasts, PERIODS.get(self.every, self.every)
        if not lasts:
            first, verdict = next(iter(self.verdicts.items()))
            if verdict.decision == "reject":
                least = "once" if first == 1 else f"for {self.in_time(first)}"
                return f"Do not publish {self.protection} every {every}, not even {least}."
            return (
                f"Nothing shows that you can publish {self.protection} every {every}: over "
                f"{self.in_time(first)} the audit cannot tell."
            )
        verdict = self.verdicts[lasts]
        who = "" if verdict.who is None else f", as far as {verdict.who} are concerned"
        remark = "".join(f" ({one})" for one in verdict.remark)
        said = f"You can publish {self.protection} every {every} for {self.in_time(lasts)}{who}"
        return f"{said}{remark}. {self._beyond(lasts)}"

    def _beyond(self, lasts: int) -> str:
        after = next((times for times in self.verdicts if times > lasts), None)
        if after is not None:
            rejected = self.verdicts[after].decision == "reject"
            how = "it is rejected" if rejected else "the audit cannot tell"
            return f"Over {self.in_time(after)} {how}."
        if lasts == self.covered:
            return "The data cover no more, so nothing is known beyond."
        return f"More was not tried; the data cover {self.in_time(self.covered)}."

    def to_json(self) -> dict[str, Any]:
        """Return how long the protection lasts as a JSON object."""
        return {
            "protection": self.protection,
            "every": self.every,
            "covered": self.covered,
            "decisions": {str(times): one.decision for times, one in self.verdicts.items()},
            "lasts": self.lasts,
            "in_words": self.in_words,
        }


def series_of_setting(setting: Setting, epochs: Epochs) -> dict[str, Any]:
    """Return which series a setting belongs to, for the manifest; nothing where it is by itself.

    The epochs are those of the tested time.
    """
    layout = setting.scheme.tables[0].layout
    if layout.times is None:
        return {}
    tables = tuple(replace(one, layout=one.layout.all_at_once) for one in setting.scheme.tables)
    at_once = replace(setting, scheme=replace(setting.scheme, tables=tables))
    return {
        "weeks": layout.times,
        "series": {
            "protection": str(at_once),
            "every": format_length(layout.every),
            "covered": layout.most_times(epochs),
        },
    }


def series_of(
    settings: Sequence[Mapping[str, Any]], verdicts: Sequence[Verdict], findings: Sequence[Finding]
) -> tuple[Series, ...]:
    """Return the series of an audit, given the settings of its manifest."""
    judged = {one.setting: one for one in verdicts}
    real = tuple(one for one in findings if one.holds is None)
    found = []
    for (protection, every, covered), names in read_series(settings).items():
        by_times = {n: judged[name] for n, name in sorted(names.items()) if name in judged}
        own = tuple(one for one in real if one.setting in names.values())
        if by_times:
            found.append(Series(protection, every, covered, by_times, own))
    return tuple(found)


def read_series(
    settings: Sequence[Mapping[str, Any]],
) -> dict[tuple[str, str, int], dict[int, str]]:
    """Read what `series_of_setting` wrote: by series, the settings by how often is published."""
    found: dict[tuple[str, str, int], dict[int, str]] = {}
    for one in settings:
        if "series" in one:
            of = one["series"]
            every = format_length(parse_length(of["every"]))
            key = (str(of["protection"]), every, int(of["covered"]))
            found.setdefault(key, {})[int(one["weeks"])] = str(one["setting"])
    return found


def said_of_series(series: Sequence[Series]) -> list[str]:
    """Say for how long each protection lasts, those that last longest first.

    Protections that do not last at all share a sentence.
    """
    said = [one.in_words for one in sorted(series, key=lambda one: -one.lasts) if one.lasts]
    never: dict[tuple[object, ...], list[Series]] = {}
    for one in series:
        if not one.lasts:
            first, verdict = next(iter(one.verdicts.items()))
            never.setdefault((one.every, first, verdict.decision), []).append(one)
    for alike in never.values():
        names = listed([one.protection for one in alike])
        said.append(replace(alike[0], protection=names).in_words)
    return said
