"""What was tried on several tables and not kept, on the releases of the product.

    python benchmarks/tables_variants.py keys milan.parquet --spec 'cell-key(d=5, v=3, js=2)'
    python benchmarks/tables_variants.py dispersion milan.parquet --spec 'suppress(k=2)'
    python benchmarks/tables_variants.py turnover small.parquet --spec 'suppress(k=1)'

`keys`: hours and 4 hours with the same keys. "one draw" lets somebody who is alone draw once for
both tables, instead of once for each; "fresh keys" publishes the same people with other keys in
each table. `dispersion`: days in which every visit counts, with negative binomial counts of the
others, whose variance is so many times their mean, in place of Poisson ones. Both score everybody
with 5 or more visits. `turnover`: knock-knock over 4 weeks with 25 % of the others replaced from
each to the next, trained on groups of the same people and on groups that change like the
publication's (12 targets x 20 releases; `whosthere.simulate("milan-like", users=1500, seed=5,
regions=16, days=28)`). AUC / TPR at 1 % FPR; differences
have standard errors over draws or targets.
"""

import argparse
from collections.abc import Iterator

import numpy as np
import polars as pl
from scipy.special import gammaln, softmax
from sklearn.metrics import roc_auc_score, roc_curve

import whosthere as wt
from whosthere import kernels
from whosthere.adversary import components, count_tables, groups
from whosthere.adversary.attacks import LikelihoodRatio
from whosthere.adversary.scorer import Asked, Table
from whosthere.data.traces import Group, Traces
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.publish import publish, publish_table
from whosthere.privacy.release import Release
from whosthere.privacy.scheme import Layout, TableScheme

CUT, M, VISITS, WEEKS, TURNOVER = 50.0, 1000, 5, 4, 0.25
DISPERSIONS = (1.5, 2.2, 3.0)
poisson = count_tables._poisson


def of_table(release: Release, people: Traces) -> np.ndarray:
    """Return the log chance of each draw that somebody has, with the score given it."""
    table = Table.of(release)
    asked = Asked.of(table.rows(people), table.lines)
    return np.stack(
        [
            log_chance + table._evidence(asked, ratios).score(*asked.rows)
            for log_chance, ratios in table.tables.of_draws()
        ],
        axis=1,
    )


def log_sums(logs: np.ndarray) -> np.ndarray:
    """Return the logarithm of the sum of each row of numbers that are given as logarithms."""
    return np.logaddexp.reduce(logs, axis=1)


def keys(traces: Traces, asked: np.ndarray, spec: str, draw: int) -> Iterator[tuple]:
    layouts, mechanism = (Layout(), Layout(epochs=4)), Mechanism.parse(spec)
    tables = [TableScheme(mechanism, one) for one in layouts]
    made = publish(traces, tables=tables, group_size=M, seed=draw)
    rows, rng = made.tables[0].group.rows, np.random.default_rng(draw)
    fresh = [
        publish_table(Group(one(traces), rows), mechanism, bounding=rng, noise=rng).release
        for one in layouts
    ]
    is_in = np.isin(asked, rows)
    for name, releases in (("shared keys", made.releases), ("fresh keys", fresh)):
        people = [one(traces).select(asked) for one in layouts]
        found = [of_table(*one) for one in zip(releases, people, strict=True)]
        yield f"{name}, sum of terms", is_in, sum(log_sums(one) for one in found)
        # The chance of a draw counts once.
        chances = [log_chance for log_chance, _ in _draws(mechanism, releases[0])]
        yield f"{name}, one draw", is_in, log_sums(sum(found) - np.array(chances))


def _draws(mechanism: Mechanism, release: Release) -> list:
    return count_tables.count_tables(mechanism, release.facts.most_count).of_draws()


def dispersion(traces: Traces, asked: np.ndarray, spec: str, draw: int) -> Iterator[tuple]:
    days, rng = Layout(epochs=24, counts="visits")(traces), np.random.default_rng(draw)
    rows = np.sort(rng.choice(traces.n_users, M, replace=False))
    mechanism = Mechanism.parse(spec)
    release = publish_table(Group(days, rows), mechanism, bounding=rng, noise=rng).release
    people = days.select(asked)
    for times in (1.0, *DISPERSIONS):
        count_tables._poisson = poisson if times == 1 else _negative_binomial(times)
        count_tables.count_tables.cache_clear()
        components.completion.cache_clear()
        values = LikelihoodRatio().score_everybody(release, people)
        yield f"variance {times:g} times the mean", np.isin(asked, rows), values


def _negative_binomial(times: float):
    def chances(n: np.ndarray, rates: np.ndarray) -> np.ndarray:
        size = (rates / (times - 1))[:, None]
        logs = gammaln(n + size) - gammaln(size) - gammaln(n + 1.0) + n * np.log(1 - 1 / times)
        return softmax(logs, axis=1)

    return chances


def turnover(path: str, spec: str) -> None:
    """Train knock-knock on groups of the same people, and on groups that change."""
    found = []
    for share in (0.0, TURNOVER):
        groups.GroupSampler.is_one_by_one = True  # type: ignore[assignment,method-assign]
        groups.GroupSampler.one_by_one = _changing(share)  # type: ignore[method-assign]
        result = wt.audit(
            path, mechanisms=spec, group_size=100, weeks=WEEKS, turnover=TURNOVER, targets=12,
            releases=20, control_releases=0, attacks="knock-knock", min_visits=10,
            reference_size=700, what_if=False, workers=1, seed=1,
        )  # fmt: skip
        found.append(result.targets.sort("target").select(pl.col("auc")).to_series().to_numpy())
    more = found[1] - found[0]
    error = more.std(ddof=1) / np.sqrt(more.size)
    print(f"same people {found[0].mean():.4f}, like the publication {found[1].mean():.4f}, "
          f"difference {more.mean():+.4f} ± {error:.4f}")  # fmt: skip


def _changing(share: float):
    def make(self, chosen, cells, table=None):  # noqa: ARG001
        reference, m = self.reference, self.most_count
        there = np.zeros((reference.n_users + 1, reference.n_cells), np.uint8)
        there[
            np.repeat(np.arange(reference.n_users), np.diff(reference.indptr)), reference.cells
        ] = 1
        there[-1, self.target] = 1
        there = there.reshape(-1, *reference.shape)
        alphabet, weeks = (
            self.mechanism.alphabet(m),
            np.array_split(np.arange(reference.epochs.n), WEEKS),
        )
        wanted = np.arange(reference.n_cells) if cells is None else cells
        made = np.empty((wanted.size, len(chosen)), np.min_scalar_type(alphabet.size - 1))
        for i, (seed, rows) in enumerate(chosen):
            rng = np.random.default_rng(seed)
            others, last = rows[:-1].copy(), reference.n_users if i % 2 == 0 else rows[-1]
            new = rng.permutation(np.setdiff1d(np.arange(reference.n_users), rows))
            counts, n = np.empty(reference.shape, np.int32), round(share * others.size)
            for week, epochs in enumerate(weeks):
                if week and n:
                    leave = rng.choice(others.size, n, replace=False)
                    others[leave] = new[(week - 1) * n : week * n]
                counted = np.append(others, last)
                counts[:, epochs] = there[counted][:, :, epochs].sum(axis=0)
            noise = self.mechanism.draw(reference.shape, np.random.default_rng(seed))
            published = self.mechanism.publish(counts, noise, m)
            made[:, i] = alphabet.symbols(published).reshape(-1)[wanted]
        labels = np.arange(len(chosen)) % 2 == 0
        return groups.Aggregates(kernels.CountMatrix.single(made), labels)

    return make


def measures(labels: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """Return AUC and TPR at 1 % FPR over everybody."""
    false, true, _ = roc_curve(labels, values)
    return roc_auc_score(labels, values), true[false <= 0.01].max()


def main() -> None:
    """Print what a variant does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("keys", "dispersion", "turnover"))
    parser.add_argument("traces")
    parser.add_argument("--spec", required=True)
    parser.add_argument("--draws", type=int, default=4)
    options = parser.parse_args()
    if options.what == "turnover":
        turnover(options.traces, options.spec)
        return
    traces = wt.Traces.load(options.traces)
    asked = np.flatnonzero(traces.visits_per_user() >= VISITS)
    variant = {"keys": keys, "dispersion": dispersion}[options.what]
    found: dict[str, list[tuple[float, float]]] = {}
    for draw in range(options.draws):
        for name, is_in, values in variant(traces, asked, options.spec, draw):
            found.setdefault(name, []).append(measures(is_in, values.clip(-CUT, CUT)))
    first = np.array(next(iter(found.values())))
    print(f"`{options.spec}`\n\n| | AUC / TPR | difference from the first |\n|---|---|---|")
    for name, each in found.items():
        more = np.array(each) - first
        (auc, tpr), (less, more_tpr) = np.mean(each, axis=0), more.mean(axis=0)
        errors = more.std(axis=0, ddof=1) / np.sqrt(len(more))
        print(f"| {name} | {auc:.3f} / {tpr:.3f} | {less:+.4f} ± {errors[0]:.4f} / "
              f"{more_tpr:+.3f} ± {errors[1]:.3f} |")  # fmt: skip


if __name__ == "__main__":
    main()
