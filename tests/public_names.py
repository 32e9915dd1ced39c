"""Every public name in use, for `mypy --strict` (`make types`): no `Any`, no cast, no ignore.

tests/test_public_face.py sees that no name is missing. Nothing here is run.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

import whosthere as wt

if TYPE_CHECKING:
    from numpy.typing import NDArray


def data() -> wt.Traces:
    """Places, times, records and simulated cities."""
    print(wt.__version__)
    epochs = wt.Epochs(datetime(2024, 1, 1, tzinfo=UTC), timedelta(hours=1), 24)
    regions: wt.Regions = wt.regions.read_regions("regions.csv")
    cells: int = len(regions) * len(epochs)
    ways: list[wt.regions.Partition] = [
        wt.regions.Grid(1),
        wt.regions.GridShape(10, 10),
        wt.regions.H3Cells(8),
        wt.regions.NearestAntenna(regions),
        wt.regions.RegionIds(regions),
        wt.regions.ThroughAntennas(regions, wt.regions.Polygons(Path("areas.geojson"))),
    ]
    pairs: wt.Regions = wt.regions.Pairs(regions)
    print(len(pairs))
    source = wt.Query("SELECT * FROM records", "sqlite:///records.db")
    traces = wt.read_records(source, regions=ways[0], min_visits=2, user_column="who")
    frame: wt.ArrowFrame = traces.to_frame()
    print(wt.read_records(frame, grid_km=1, epoch="1h", timezone="Europe/Rome"))
    ledger: wt.results.Ledger | None = traces.ledger
    if ledger is not None:
        entries: tuple[wt.results.Entry, ...] = ledger.entries
        friends: wt.results.FriendEntry | None = ledger.friends
        print(cells, len(entries), friends)
    return traces


def city(model: wt.CityModel | str = "milan-like") -> wt.Traces:
    made: wt.results.City = wt.simulate(model, users=1000)
    people: wt.results.Residents = made.people
    known: wt.results.Neighbours = made.friends()
    print(len(people), known.pairs().shape)
    return made.traces()


def publish(traces: wt.Traces) -> wt.Release:
    made: wt.results.Publication = wt.publish(traces, "laplace(eps=1)", group_size=100, seed=1)
    table: wt.results.PublishedTable = made.only
    stays: wt.results.Stays | None = table.stays
    assert stays is None
    group: wt.results.Group = table.group
    kept: wt.results.Utility = wt.utility(made.release.counts, made.truth)
    print(group.n_users, kept.visits_kept)
    ledger: wt.results.GuaranteeLedger | None = made.release.ledger
    by: wt.results.Audited | None = made.release.audited
    if ledger is not None and by is not None:
        randomness: wt.results.Randomness = ledger.randomness
        print(randomness.value, by.audit)
    mechanism = wt.mechanisms.Mechanism.parse("suppress(k=3)")
    read: wt.results.Imported = wt.TableReader().read("t.csv", group_size=9, mechanism=mechanism)
    return read.release


def protect() -> list[wt.mechanisms.Mechanism]:
    """Steps, units, families and what they guarantee."""
    units: list[wt.mechanisms.Unit] = [
        wt.mechanisms.Event(),
        wt.mechanisms.UserDay(max_visits=3),
        wt.mechanisms.User(max_visits=3),
        wt.mechanisms.UserWeek(max_visits=3, max_regions=2),
        wt.mechanisms.UserPeriod(max_visits=3, days=2),
    ]
    noise: list[wt.mechanisms.PrivateNoise] = [
        wt.mechanisms.Laplace(1.0, unit=units[0]),
        wt.mechanisms.DiscreteLaplace(1.0, unit=units[1]),
        wt.mechanisms.Gaussian(1.0, unit=units[2]),
        wt.mechanisms.DiscreteGaussian(0.5, unit=units[3]),
    ]
    added: list[wt.mechanisms.AddedNoise] = [*noise]
    maps: list[wt.mechanisms.Map] = [wt.mechanisms.Suppress(3), wt.mechanisms.Round(5), Cap(9)]
    maps += [wt.mechanisms.Floor(4), wt.mechanisms.RoundBySize(((15, 10),)), wt.mechanisms.Scale(2)]
    chance: wt.mechanisms.ChanceTable = wt.mechanisms.RandomRound(3)
    keyed: list[wt.mechanisms.ChanceTable] = [
        wt.mechanisms.CellKey(5, 3, 2),
        wt.mechanisms.Ptable("changes.csv"),
    ]
    few = wt.mechanisms.Choices(np.zeros((1, 1), np.int32), np.ones((1, 1)))
    steps: list[wt.mechanisms.Step] = [*added, *maps, chance, *keyed]
    print(few.results.shape, wt.mechanisms.Correction.NONE is steps[0].correction)
    family = wt.mechanisms.Family("suppress(k=?)")
    members: tuple[wt.results.Member, ...] = family.members()
    mechanism = wt.mechanisms.Mechanism(tuple(steps))
    values: wt.results.Alphabet = mechanism.alphabet(100)
    promised: wt.results.Guarantee | None = mechanism.guarantee
    in_game: wt.results.GameGuarantee | None = wt.mechanisms.game_guarantee(
        mechanism, units_of_target=1, units_of_other=1
    )
    if in_game is not None:
        curve: wt.results.TradeOff = in_game.curve
        print(curve, promised, values.lowest)
    return [mechanism, members[0].mechanism, wt.mechanisms.own(halved, name="halved")]


def halved(counts: NDArray[np.int32], m: int, rng: np.random.Generator) -> NDArray[np.int32]:
    return np.minimum(counts // 2, m + 0 * rng.integers(2)).astype(np.int32)


@dataclass(frozen=True)
class Cap(wt.mechanisms.Map):
    """A step of one's own."""

    at: int = wt.mechanisms.parameter(wt.mechanisms.WHOLE, "the largest count")
    share: float = wt.mechanisms.parameter(wt.mechanisms.NUMBER, "of what is left", default=1.0)

    name: ClassVar[str] = "cap"

    def apply(self, values: NDArray[np.int32], within: wt.mechanisms.Span) -> NDArray[np.int32]:
        return np.minimum(values, min(self.at, within.highest))

    @property
    def window(self) -> tuple[int, int]:
        return 0, self.at

    def describe(self) -> str:
        return f"Counts above {self.at} are published as {self.at}."


KIND: wt.mechanisms.Value = wt.mechanisms.WHOLE


@dataclass(frozen=True)
class Sum(wt.attacks.Attack):
    """An attack of one's own."""

    share: float = wt.attacks.parameter(wt.attacks.NUMBER, default=1.0)
    visits: int = wt.attacks.parameter(wt.attacks.WHOLE, "how many", default=1)
    loud: bool = wt.attacks.parameter(wt.attacks.YES_NO, "or not", default=False)
    way: str = wt.attacks.parameter(wt.attacks.OneOf(("a", "b")), "how", default="a")

    name: ClassVar[str] = "sum"
    summary: ClassVar[str] = "adds up the counts where the target was"
    uses = frozenset({"example"})

    def fit(
        self,
        facts: wt.attacks.Facts,
        knowledge: wt.knowledge.Known,
        auxiliary: wt.attacks.Auxiliary,
        *,
        seed: int,
    ) -> wt.attacks.FittedAttack:
        if not knowledge.cells.size:
            raise wt.attacks.NotApplicableError("nothing is known")
        view = wt.attacks.View(facts, knowledge, auxiliary)
        print(view.facts.group_size, seed)
        fitted = FittedSum(knowledge.cells)

        def score(release: wt.Release) -> float:
            return fitted.score(release).score

        return wt.attacks.calibrated(score, facts, knowledge, auxiliary, seed=seed, groups=40)


@dataclass(frozen=True, eq=False)
class FittedSum(wt.attacks.FittedAttack):
    cells: NDArray[np.int32]

    def score(self, release: wt.Release) -> wt.attacks.Answer:
        there = release.counts.reshape(-1)[self.cells]
        score = wt.attacks.RULED_OUT if there.min() == 0 else float(there.sum())
        return wt.attacks.Answer(score, threshold=0.0, calibrated=score)


def attack(release: wt.Release, traces: wt.Traces) -> wt.attacks.Answer:
    models: list[wt.attacks.Classifier] = [
        wt.attacks.L1(),
        wt.attacks.L1Paper(),
        wt.attacks.Forest(),
        wt.attacks.Mlp(),
    ]
    trained: list[wt.attacks.TrainedAttack] = [
        wt.attacks.KnockKnock(classifier=models[0]),
        wt.attacks.ZeroKnowledge(),
        wt.attacks.LocMia(),
    ]
    attacks: list[wt.attacks.Attack] = [
        *trained,
        wt.attacks.KnockKnockPastGroups(),
        wt.attacks.LikelihoodRatio(),
        wt.attacks.LogLikelihood(),
        wt.attacks.ContradictionRule(),
        Sum(),
    ]
    past = [wt.attacks.PastRelease(release, target_in=True)]
    known = wt.knowledge.read_target("target.csv", release.regions, release.epochs)
    wt.knowledge.write_target(known, "again.csv", release.regions, release.epochs)
    chance: float | None = wt.attack(release, known, seed=1).posterior(prior=0.5)
    answer = wt.attack(release, known, attacks[0], reference=traces, past=past)
    if isinstance(answer, wt.attacks.LikelihoodAnswer):
        print(chance, answer.posterior(prior=0.5))
    scores: wt.results.ScoresOfEverybody = wt.attack(release, everybody=traces, prior=0.1)
    scores.save("scores.csv", with_ids=True)
    at: wt.results.FoundAt = scores.found([0.01])[0]
    print(at.people, scores.chances[0], scores.to_frame()["score"])
    kind: wt.attacks.Value = wt.attacks.WHOLE
    print(kind.words)
    checked: wt.results.TableCheck = wt.check(release, visits="8-12")
    print([one.estimate for one in checked.findings])
    judged: wt.results.ReleaseCheck = wt.check(release, traces=traces, group=[1, 2, 3])
    exposed: tuple[wt.results.Exposed, ...] = judged.exposed
    print(judged.verdict.decision, exposed[0].people, judged.people.height)
    judged.save_people(Path("people.csv"))
    return wt.attack(release, traces.trace(0), wt.attacks.Attack.parse("knock-knock"))


def know(traces: wt.Traces) -> list[wt.knowledge.Known]:
    rules: list[wt.knowledge.Knowledge] = [
        wt.knowledge.All(),
        wt.knowledge.Share(0.1),
        wt.knowledge.Regions(top=2),
        wt.knowledge.Knowledge.parse("all"),
    ]
    rng = np.random.default_rng(1)
    habits = wt.knowledge.Habits(np.full(24, 1 / 24), 3.0)
    places = wt.knowledge.Places.of_one((1, 2))
    print(places.trace(habits, rng), places.regions, places.cells)
    visits = wt.knowledge.visits_of_one([3, 7], traces.regions, traces.epochs)
    return [visits, places, *(rule.of(traces, rng) for rule in rules)]


def study(traces: wt.Traces, model: wt.attacks.Model) -> float:
    """An audit's rounds one by one, with groups and a model of one's own."""

    def some(rng: np.random.Generator, people: NDArray[np.int64], n: int) -> NDArray[np.int64]:
        return rng.permutation(people)[:n]

    mine, best = wt.attacks.KnockKnock(classifier=model), -1e9
    for one in wt.rounds(traces, group_size=40, attacks=mine, groups=some):
        drawn: wt.results.Round = one
        best = max(best, drawn.score(mine).score, drawn.ceiling or 0.0)
    return best + wt.publish(traces, "raw", group=[1, 2], seed=1).release.group_size


def audit(traces: wt.Traces) -> wt.results.AuditResult:
    """Audits, and all that their results hold."""
    days = wt.results.TableScheme(wt.mechanisms.Mechanism(), wt.results.Layout(epochs=24))
    known = wt.knowledge.Share(0.5)
    block = wt.Block("suppress(k=1)", 500, known, attacks=Sum(), tables=["finest", days])
    plan = wt.AuditOptions(blocks=(block,), targets=10)
    policy = wt.Policy("ours", {"auc": 0.6})
    limits: tuple[wt.results.Limit, ...] = policy.limits
    floors: tuple[wt.results.Floor, ...] = policy.keep
    try:
        result = wt.audit(traces, plan=plan, policy=policy, group_size=[40, 50], seed=1)
    except (wt.AuditFailedError, wt.InputError):
        result = wt.load("run")
    verdicts: tuple[wt.results.Verdict, ...] = result.verdicts
    findings: tuple[wt.results.Finding, ...] = result.findings
    choice: wt.results.TargetChoice | None = result.choice
    together: wt.results.Together | None = result.together
    bands: tuple[wt.results.Band, ...] = () if together is None else together.bands
    series: tuple[wt.results.Series, ...] = result.series
    everybody: wt.results.EverybodysRisk = result.everybody
    print(everybody.people, everybody.spread, everybody.groups, everybody.named)
    print([(one.lasts, one.in_words, one.risk("auc"), one.crossed(limits[0])) for one in series])
    what_if: tuple[wt.results.WhatIf, ...] = result.what_if
    before: wt.results.MeanOverTargets = what_if[0].before
    print(limits, floors, verdicts, findings, choice, bands, before)
    page: wt.results.Report = wt.report(result)
    page.save("report.html")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", wt.NotAuditedWarning)
        print(wt.publish(traces, "raw", group_size=40, audit=result))
    return result


def search(traces: wt.Traces) -> wt.results.Candidate | None:
    found: wt.results.Recommendation = wt.recommend(traces, group_size=40, out="search")
    larger: wt.results.Coarsening = found.front[0].coarsening
    layout: wt.results.Layout = larger.layout
    print(layout(traces), larger.words)
    return found.recommended


def repeat() -> wt.results.Description:
    study: wt.results.StudyResult = wt.reproduce("ssc", out="study", scale="smoke", workers=1)
    judged: list[wt.results.Judgement] = [one for _, one in study.judgements]
    print([one.claim for one in judged if one.status is wt.results.Status.HELD])
    return study.description
