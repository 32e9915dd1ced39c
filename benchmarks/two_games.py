"""The game of one target beside the game of everybody, where both measure the same.

    whosthere simulate milan-like --seed 1 --users 3000 --out milan-like
    whosthere ingest milan-like/records.parquet --regions milan-like/regions.csv --out milan.parquet
    whosthere simulate cdr-like --seed 1 --users 3000 --out cdr-like
    whosthere ingest cdr-like/records.parquet --regions cdr-like/regions.csv \\
        --from 2021-06-02 --to 2021-06-04 --out cdr.parquet
    whosthere ingest tdrive_beijing_thinned.parquet --grid 22x23 --timezone Asia/Shanghai \\
        --from 2008-02-04 --to 2008-02-05 --out tdrive.parquet
    python benchmarks/two_games.py milan-like=milan.parquet cdr-like=cdr.parquet \\
        T-Drive=tdrive.parquet --again milan-like --trained milan-like cdr-like T-Drive \\
        --keep runs --csv benchmarks/results/two_games.csv

Both games are played by `whosthere.audit`: groups of m of N people, and everybody with the chance
m / N. Asked are people with five or more visits. The run folders in `--keep` can be resumed.

Each number is compared twice. As the audits report it: 48 people in one game, all in the other,
with the standard error that both intervals imply, by their ends that face one another. And for the
same 48 people in both games, so that it does not matter who they are; the standard error is by
resampling people, and rounds of the game of everybody, 400 times. The TPR is then that at one
threshold for both, at which 1 % of everybody who is out are false alarms. `--again` names data
on which two protections are compared once more, with another seed, so other people and groups, and
three times as many releases of each. `--trained` names those for the attacks that are
trained, on a few people, where half of all are set aside.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy.stats import norm, rankdata

import whosthere as wt
from whosthere.auditing.loading import is_finished
from whosthere.auditing.store import RunFolder
from whosthere.inference.scores import comparable_scores
from whosthere.inference.vocabulary import CEILING
from whosthere.seeds import generator

if TYPE_CHECKING:
    from collections.abc import Iterator

PROTECTIONS = (
    "raw",
    "suppress(k=1)",
    "suppress(k=2)",
    "suppress(k=5)",
    "laplace(eps=0.5, unit=event)",
    "round(to=5)",
)
SHARES = (0.25, 0.5)
ALIKE = {"min_visits": 5, "seed": 1, "what_if": False, "control_releases": 2, "workers": 1}
RATIO = {"attacks": "likelihood-ratio", "targets": 48, "reference_size": 0}
AGAIN: dict[str, Any] = {"mechanisms": ("suppress(k=2)", "suppress(k=5)"), "seed": 2}
TRAINED = {"attacks": ("knock-knock", "zero-knowledge"), "targets": 30}
TRAINED_ON = "suppress(k=1)", "suppress(k=2)"
RELEASES, ROUNDS, RESAMPLES = 20, 60, 400
METRICS = "auc", "pooled_auc", "tpr_at_fpr_1pct"
WORDS = {"auc": "AUC", "pooled_auc": "pooled", "tpr_at_fpr_1pct": "TPR at 1 %"}
_Z = float(norm.ppf(0.975))


def main() -> None:
    """Play what is not there yet, and print tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data", nargs="+", help="NAME=TRACES")
    parser.add_argument("--again", help="the name of a data set")
    parser.add_argument("--trained", nargs="*", default=(), help="names of data sets")
    parser.add_argument("--keep", type=Path, required=True)
    parser.add_argument("--csv", type=Path)
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name, traces in (one.split("=", 1) for one in given.data):
        rows += compared(name, *played(traces, given.keep / name))
        if name == given.again:
            games = played(traces, given.keep / f"{name}-again", times=3, **AGAIN)
            rows += compared(f"{name}, again", *games)
        if name in given.trained:
            games = played_trained(traces, given.keep / f"{name}-trained")
            rows += compared(f"{name}, half set aside", *games)
    table = pl.DataFrame(rows)
    if given.csv:
        table.with_columns(pl.col(pl.Float64).round(5)).write_csv(given.csv)
    show(table)


def audit(traces: str, out: Path, **chosen: Any) -> wt.AuditResult:  # noqa: ANN401
    """Return a finished audit as it is kept, or play what is missing."""
    return wt.load(out) if is_finished(out) else wt.audit(traces, out=out, **chosen)


def played(
    traces: str,
    folder: Path,
    times: int = 1,
    **chosen: Any,  # noqa: ANN401
) -> tuple[wt.AuditResult, list[wt.AuditResult]]:
    """Play both games with the likelihood ratio, with so many times the releases."""
    n = wt.Traces.load(traces).n_users
    common: dict[str, Any] = ALIKE | RATIO | {"mechanisms": PROTECTIONS} | chosen
    asked = [
        audit(traces, everybody=True, include=share, releases=times * ROUNDS,
              out=Path(f"{folder}-everybody-{share:g}"), **common)
        for share in SHARES
    ]  # fmt: skip
    sizes = [round(share * n) for share in SHARES]
    one = audit(traces, group_size=sizes, releases=times * RELEASES,
                out=Path(f"{folder}-target"), **common)  # fmt: skip
    return one, asked


def played_trained(traces: str, folder: Path) -> tuple[wt.AuditResult, list[wt.AuditResult]]:
    """Play both games with trained attacks, who attack the same people in both."""
    people = wt.Traces.load(traces)
    aside = people.n_users // 2
    common: dict[str, Any] = ALIKE | TRAINED | {"mechanisms": TRAINED_ON, "reference_size": aside}
    common |= {"releases": RELEASES}
    asked = audit(traces, everybody=True, include=SHARES[1],
                  out=Path(f"{folder}-everybody"), **common)  # fmt: skip
    users = [people.users[row] for row in asked.plan["targets"]]
    del common["targets"]
    one = audit(traces, group_size=round(SHARES[1] * (people.n_users - aside)), users=users,
                out=Path(f"{folder}-target"), **common)  # fmt: skip
    return one, [asked]


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores and labels of people in releases, shape (n_releases, n_people), by ascending row."""

    people: np.ndarray
    scores: np.ndarray
    labels: np.ndarray

    def of(self, people: np.ndarray) -> Scored:
        at = np.searchsorted(self.people, people)
        return Scored(people, self.scores[:, at], self.labels[:, at])

    def resampled(self, people: np.ndarray, rng: np.random.Generator | None) -> Scored:
        """Take people by their places, and releases at random."""
        n = len(self.scores)
        rounds = np.arange(n) if rng is None else rng.integers(n, size=n)
        at = np.ix_(rounds, people)
        return Scored(self.people[people], self.scores[at], self.labels[at])


def scores_of(result: wt.AuditResult) -> dict[tuple[str, str], Scored]:
    """Return all test scores of an audit by setting and attack: of everybody, or of targets."""
    assert result.folder is not None
    scores, _ = RunFolder(result.folder).read_tasks()
    found = {}
    for (setting, attack), some in scores.tests.group_by("setting", "attack", maintain_order=True):
        if some["score"].null_count():
            continue
        rows = some.sort("release", "target")
        people = np.unique(rows["target"].to_numpy())
        # As precise as those of everybody, so that equal scores are equal.
        each = comparable_scores(rows).astype(np.float32), rows["label"].to_numpy()
        found[setting, attack] = Scored(people, *(one.reshape(-1, people.size) for one in each))
    for key, asked in scores.everybody.items():
        panel = asked.tests()
        found[key] = Scored(asked.people().to_numpy(), panel.scores, panel.labels)
    return found


def compared(
    name: str, one: wt.AuditResult, asked: list[wt.AuditResult]
) -> Iterator[dict[str, Any]]:
    """Yield a row for each protection, group size, attack and metric."""
    found = {(f.setting, f.attack, f.metric): f for f in one.findings}
    targets = scores_of(one)
    for result in asked:
        everybody = scores_of(result)
        beside = {(f.setting, f.attack, f.metric): f for f in result.findings}
        for key, in_target in targets.items():
            if key not in everybody:
                continue
            same, errors, false = of_the_same(in_target, everybody[key], key)
            for metric in METRICS:
                row = {"data": name, "setting": key[0], "attack": key[1], "metric": metric}
                for game, of in (("target", found), ("everybody", beside)):
                    finding = of[*key, metric]
                    row |= {game: finding.estimate, f"{game}_low": finding.low,
                            f"{game}_high": finding.high}  # fmt: skip
                row |= {"of_same": same[metric], "of_same_error": errors[metric],
                        "false_alarms": false if metric == METRICS[-1] else None}  # fmt: skip
                yield row | implied(row)


def implied(row: dict[str, Any]) -> dict[str, Any]:
    """Return the difference of what is reported, and the standard error that intervals imply."""
    names = [f"{game}{end}" for game in ("target", "everybody") for end in ("", "_low", "_high")]
    values = [row[name] for name in names]
    if None in values:
        return {"difference": None, "error": None}
    one, one_low, one_high, other, other_low, other_high = values
    facing = one_high - one, other - other_low
    if one > other:
        facing = one - one_low, other_high - other
    return {"difference": one - other, "error": float(np.hypot(*facing)) / _Z}


def of_the_same(
    one: Scored, everybody: Scored, key: tuple[str, str]
) -> tuple[dict[str, float], dict[str, float], float]:
    """Return differences for the same people, their errors, and the false alarms of one target."""
    same = everybody.of(one.people)
    threshold = float(np.quantile(everybody.scores[~everybody.labels], 0.99, method="higher"))
    rng, n = generator(1, "resampled", *key), one.people.size
    measured = [measures(one, threshold), measures(same, threshold)]
    drawn = []
    for _ in range(RESAMPLES):
        people = rng.integers(n, size=n)
        both = one.resampled(people, None), same.resampled(people, rng)
        of_one, of_all = (measures(some, threshold) for some in both)
        drawn.append(of_one - of_all)
    differences = dict(zip(METRICS, measured[0] - measured[1], strict=True))
    errors = dict(zip(METRICS, np.nanstd(drawn, axis=0), strict=True))
    return differences, errors, float((one.scores[~one.labels] > threshold).mean())


def measures(of: Scored, threshold: float) -> np.ndarray:
    """Return the mean AUC, the AUC over all, and the share of IN above a threshold."""
    each = areas(rankdata(of.scores, axis=0), of.labels)
    pooled = areas(rankdata(of.scores).reshape(-1, 1), of.labels.reshape(-1, 1))
    found = (of.scores[of.labels] > threshold).mean()
    return np.array([np.nanmean(each), pooled[0], found])


def areas(ranks: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the AUC of each column, given the ranks in it; none where a label does not occur."""
    n_in = labels.sum(axis=0)
    above = (ranks * labels).sum(axis=0) - n_in * (n_in + 1) / 2
    pairs = n_in * (len(labels) - n_in)
    return np.divide(above, pairs, out=np.full(n_in.size, np.nan), where=pairs > 0)


def show(table: pl.DataFrame) -> None:
    """Print a table of attacks for each data set, how many differ, and the ceilings."""
    for of, title in ((pl.col("attack") != CEILING, ""), (pl.col("attack") == CEILING, "ceiling")):
        shown = table.filter(of)
        for (name,), rows in shown.group_by("data", maintain_order=True):
            heads = [f"{WORDS[metric]}: {game}" for metric in METRICS[: 2 if title else 3]
                     for game in ("groups", "everybody", "same people")]  # fmt: skip
            print(f"\n**{name}** {title}\n\n| attack | setting |", " | ".join(heads), "|")
            print("|---" * (len(heads) + 2) + "|")
            for (setting, attack), some in rows.group_by("setting", "attack", maintain_order=True):
                cells = [cell for row in some.head(len(heads) // 3).to_dicts()
                         for cell in in_words(row)]  # fmt: skip
                print(f"| {attack} | `{setting}` |", " | ".join(cells), "|")
        print()
        for attack, own in shown.group_by("attack", maintain_order=True):
            for metric in METRICS[: 2 if title else 3]:
                some = own.filter(metric=metric)
                for what, error in (("difference", "error"), ("of_same", "of_same_error")):
                    print(*attack, metric, summed_up(some, what, error))


def in_words(row: dict[str, Any]) -> tuple[str, str, str]:
    """Write both values, and the difference for the same people; in bold beyond two errors."""
    values = ("-" if row[game] is None else f"{row[game]:.3f}" for game in ("target", "everybody"))
    text = f"{row['of_same']:+.3f} ± {row['of_same_error']:.3f}"
    is_far = abs(row["of_same"]) > 2 * row["of_same_error"]
    return (*values, f"**{text}**" if is_far else text)


def summed_up(rows: pl.DataFrame, what: str, error: str) -> str:
    """Say how many differences exceed two standard errors."""
    known = rows.drop_nulls([what, error]).filter((pl.col(error) > 0) | (pl.col(what) != 0))
    z, n = (known[what] / known[error]).to_numpy(), known.height
    if not n:
        return f"{what}: none"
    return (f"{what}: {np.count_nonzero(np.abs(z) > 2)} of {n} beyond 2 errors "
            f"(expected {n * 2 * norm.sf(2):.1f}), mean z {z.mean():+.2f}, spread {z.std():.2f}, "
            f"mean difference {known[what].mean():+.4f}")  # fmt: skip


if __name__ == "__main__":
    main()
