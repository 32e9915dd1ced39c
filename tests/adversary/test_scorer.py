"""The scorer: everybody by one pass, one person as one row, leaks and p-values by the same."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import poisson

import whosthere
from whosthere.adversary import attacks
from whosthere.adversary.attacks import Auxiliary, LikelihoodRatio
from whosthere.adversary.attacks.base import View
from whosthere.adversary.count_tables import count_tables
from whosthere.adversary.knowledge import Knowledge
from whosthere.adversary.levels import fitted_levels, likeliest_law
from whosthere.adversary.rates import RANK_ONE, fit_rates
from whosthere.adversary.scorer import Asked, Scorer, Table, table_for
from whosthere.adversary.suspects import visits_of_one
from whosthere.data.cities import simulate
from whosthere.data.epochs import Epochs
from whosthere.data.flows import Pairs
from whosthere.data.regions import Regions
from whosthere.data.traces import Group
from whosthere.inference.scores import RULED_OUT
from whosthere.privacy.facts import Facts
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.publish import publish_table
from whosthere.privacy.release import Release
from whosthere.privacy.scheme import ORDINARY, Layout

M = 500
SPECS = (
    "raw",
    "suppress(k=2)",
    "round(to=5)",
    "laplace(eps=1, unit=event)",
    "gaussian(eps=1, delta=1e-6, unit=event) | suppress(k=1)",
)
PLAIN = LikelihoodRatio(rates="rank-one")


def _facts(n_regions, n_epochs, spec):
    start = datetime(2021, 6, 1, tzinfo=UTC)
    return Facts(
        Regions([f"r{i}" for i in range(n_regions)]),
        Epochs(start, timedelta(hours=1), n_epochs),
        M,
        Mechanism.parse(spec),
    )


def _release(true, spec, rng):
    facts = _facts(*true.shape, spec)
    counts = np.minimum(true, M).astype(np.int32)
    return Release(facts.mechanism.apply(counts, M, rng), facts)


def _city(rng, n_regions, n_epochs, median=1.5, spread=1.0):
    """Rates whose lines have normal logarithms of levels."""
    return median * np.outer(rng.lognormal(0, spread, n_regions), rng.lognormal(0, 0.3, n_epochs))


def _answer(release, cells, attack=LikelihoodRatio()):  # noqa: B008 - a value
    known = visits_of_one(cells, release.regions, release.epochs)
    return attack.fit(release.facts, known, Auxiliary(), seed=0).score(release)


# One pass over everybody


@pytest.fixture(scope="module")
def city():
    people = simulate("milan-like", seed=5, users=600, regions=16, days=3).traces()
    # The first two made no visit.
    return people.marked(_person(people) > 1)


def _person(people):
    return np.repeat(np.arange(people.n_users), np.diff(people.indptr))


def _flows(people):
    """Take visits for trips from the region to the next one."""
    region, epoch = np.divmod(people.cells, people.epochs.n)
    cells = (region * 16 + (region + epoch) % 16) * people.epochs.n + epoch
    cells = cells[np.lexsort((cells, _person(people)))].astype(np.int32)
    return replace(people, cells=cells, regions=Pairs(people.regions))


LAYOUTS = {
    "hours": ORDINARY,
    "flows": _flows,
    "few regions": Layout(regions=tuple(i % 4 for i in range(16))),
    "visits a day": Layout(epochs=24, counts="visits"),
}
SETTINGS = [
    *(("hours", spec) for spec in SPECS),
    ("hours", "suppress(k=4, shown=mark)"),
    ("hours", "cell-key(d=5, v=3, js=2)"),
    ("hours", "laplace(eps=3, unit=user-day, max_visits=2)"),
    ("flows", "suppress(k=1)"),
    ("few regions", "raw"),
    ("visits a day", "suppress(k=2)"),
    ("visits a day", "laplace(eps=1, unit=user-day, max_visits=3)"),
]
KNOWN = ("all", "share(0.4)", "regions(top=2)")


def _published(city, where, spec):
    people, rng = LAYOUTS[where](city), np.random.default_rng(1)
    group = Group(people, np.arange(0, people.n_users, 2))
    return people, publish_table(group, Mechanism.parse(spec), bounding=rng, noise=rng).release


def _plainly(table, rows):
    """Scores and what each visit adds, person by person and line by line, in double precision."""
    line_of = table.lines.places() // table.lines.cells.shape[1]
    chance = rows.chance if rows.chance.size else np.ones(rows.cells.size)
    symbols, log_rates = table.at(rows.cells)
    nodes = table.levels.nodes[line_of[rows.cells]]

    def ratios(of_one):
        found = np.empty(nodes.shape)
        for q in range(nodes.shape[1]):
            for n in np.unique(rows.added):
                own = rows.added == n
                tables = of_one if n == 1 else table.tables_of(int(n))
                found[own, q] = tables.log_ratio_of(symbols[own], log_rates[own] + nodes[own, q])
        with np.errstate(divide="ignore"):
            return np.log1p(chance[:, None] * np.expm1(found))

    def scores_by(terms):
        scores, each = np.zeros(rows.indptr.size - 1), np.empty(rows.cells.size)
        for line, person in {*zip(line_of[rows.cells].tolist(), rows.person.tolist(), strict=True)}:
            own = (line_of[rows.cells] == line) & (rows.person == person)
            log_weight = table.levels.log_weight[line]
            with np.errstate(invalid="ignore"):
                after = log_weight + terms[own].sum(axis=0)
                score = logsumexp(after)
                ends = np.exp(log_weight), np.exp(after - score)
                added = sum((weight * terms[own]).sum(axis=1) for weight in ends) / 2
            scores[person] += score
            out = np.isneginf(score)
            each[own] = terms[own].max(axis=1) if out else added + (score - added.sum()) / own.sum()
        return scores, each

    draws = [
        log_chance + scores_by(ratios(replace(table.tables, log_ratio=of_draw.T)))[0]
        for log_chance, of_draw in table.tables.draws
    ]
    scores, each = scores_by(ratios(table.tables))
    return (logsumexp(draws, axis=0) if draws else scores), each


@pytest.mark.parametrize("rule", KNOWN)
@pytest.mark.parametrize(("where", "spec"), SETTINGS)
def test_everybody_is_scored_as_the_formula_says(city, where, spec, rule):
    """Visits, shares of them and places, weights, bounds, keys, marks; all of it for everybody."""
    people, release = _published(city, where, spec)
    known = Knowledge.parse(rule).of(people, np.random.default_rng(2)).select(np.arange(0, 60))
    table = table_for(known, release)
    rows = table.rows(known)
    asked = Asked.of(rows, table.lines)
    expected, terms = _plainly(table, rows)
    np.testing.assert_allclose(table.score(asked), expected, rtol=1e-5, atol=1e-5)
    assert np.abs(expected[:2]).max() < 1e-9
    # The largest of many terms decides about no more than single precision can tell.
    np.testing.assert_allclose(table.by_visit(asked), terms, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rule", KNOWN)
@pytest.mark.parametrize("attack", [LikelihoodRatio(), PLAIN], ids=str)
def test_one_person_is_one_row(city, attack, rule):
    for where, spec in SETTINGS[::3]:
        people, release = _published(city, where, spec)
        known = Knowledge.parse(rule).of(people, np.random.default_rng(2))
        together = attack.score_everybody(release, known)
        for row in (0, 5, 17, 200):
            one = attack.fit(release.facts, known.select([row]), Auxiliary(), seed=0)
            assert one.score(release).score == pytest.approx(together[row], rel=1e-6, abs=1e-6)


def test_nothing_else_scores_a_person():
    """The attack knows no kernel: whoever wants a quick path for one finds none."""
    room = Path(whosthere.__file__).parent
    sources = {path: path.read_text(encoding="utf-8") for path in room.rglob("*.py")}
    assert "kernels" not in sources[room / "adversary/attacks/likelihood_ratio.py"]
    assert [path.name for path, text in sources.items() if "kernels.score_rows" in text] == [
        "evidence.py"
    ]


def test_scores_of_several_tables_add_up_and_one_is_enough_to_rule_out(city):
    tables = [_published(city, *one) for one in (("hours", "suppress(k=2)"), ("hours", "raw"))]
    releases = [release for _, release in tables]
    scorer = Scorer([people for people, _ in tables])
    each = [LikelihoodRatio().score_everybody(release, city) for release in releases]
    out = np.any([one == RULED_OUT for one in each], axis=0)
    assert 0 < out.sum() < out.size
    for _ in range(2):
        together = scorer(releases)
        assert (together[out] == RULED_OUT).all()
        np.testing.assert_allclose(together[~out], np.sum(each, axis=0)[~out])


def test_people_elsewhere_are_refused(city):
    _, release = _published(city, "hours", "raw")
    with pytest.raises(attacks.NotApplicableError, match="outside the release"):
        LikelihoodRatio().score_everybody(release, city.between(0, 24))


# What scores are


def _by_definition(release, cells):
    """The score by a plain sum over 500 levels of each line, with nothing of tables."""
    table = Table.of(release)
    lines, tables = table.lines, table.tables
    symbols, log_rates = lines.take(release.symbols, -1), lines.take(table.rates.base)
    levels, n = np.linspace(-9, 9, 500), np.arange(M)
    visited = np.zeros(release.counts.size, bool)
    visited[cells] = True
    said = np.zeros((2, len(symbols), levels.size))
    for line, i in np.ndindex(symbols.shape):
        others = poisson.pmf(n, np.exp(log_rates[line, i] + levels)[:, None])
        there = visited[lines.cells[line, i]]
        value = lines.take(release.values)[line, i]
        for within in (0, 1):
            law = release.mechanism.pmf(np.array([value]), n + within * there, M).reshape(-1)
            said[within, line] += np.log(np.maximum(others @ law, 1e-300))
    level = fitted_levels(log_rates)[:, None] + levels
    centre, spread = likeliest_law(symbols, log_rates, tables)
    # The level of a visited line: weighted by itself.
    prior = -(((level - centre) / spread) ** 2) / 2 + level
    by_line = logsumexp(said[1] + prior, axis=1) - logsumexp(said[0] + prior, axis=1)
    return by_line.sum()


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("shape", [(40, 1), (1, 40), (30, 4), (4, 30)], ids=str)
def test_scores_are_those_of_the_definition(rng, spec, shape):
    rates = _city(rng, *shape) if shape[0] > shape[1] else _city(rng, *shape[::-1]).T
    cells = np.sort(rng.choice(rates.size, 6, replace=False))
    true = rng.poisson(rates)
    true.reshape(-1)[cells] += 1
    release = _release(true, spec, rng)
    assert _answer(release, cells).score == pytest.approx(_by_definition(release, cells), abs=0.02)


@pytest.mark.parametrize("spec", SPECS)
def test_a_turned_table_says_the_same(rng, spec):
    """But for what is counted around: regions are alike in other ways than epochs."""
    attack = LikelihoodRatio(rates="low-rank")
    release = _release(rng.poisson(_city(rng, 25, 6)), spec, rng)
    turned = Release(np.ascontiguousarray(release.counts.T), _facts(6, 25, spec))
    cells = np.sort(rng.choice(150, 10, replace=False))
    region, epoch = np.divmod(cells, 6)
    scores = [
        _answer(one, known, attack).score
        for one, known in ((release, cells), (turned, epoch * 25 + region))
    ]
    assert scores[0] == pytest.approx(scores[1], abs=0.02)


def _people(rng, busy, n, visits=12):
    """People who go to lines of one cell in proportion to their levels."""
    share = busy / busy.sum()
    return [np.sort(rng.choice(busy.size, visits, replace=False, p=share)) for _ in range(n)]


@pytest.mark.parametrize(
    ("spec", "turned"),
    [
        pytest.param("raw", False, marks=pytest.mark.full),
        ("raw", True),
        ("suppress(k=2)", False),
        pytest.param("suppress(k=2)", True, marks=pytest.mark.full),
        ("laplace(eps=1, unit=event)", False),
        pytest.param("laplace(eps=1, unit=event)", True, marks=pytest.mark.full),
    ],
)
def test_posteriors_hold_where_every_cell_is_a_line(rng, spec, turned, full):
    """150 people (400 in full), half of them in: of posteriors near p a share near p is in,
    for those who go where people go. False alarm rate below 1e-5 a case (5 standard errors)."""
    busy = np.exp(rng.normal(0.4, 1.0, 2000))
    shape = (1, 2000) if turned else (2000, 1)
    n = 400 if full else 150
    people = _people(rng, busy, n)
    said, truth = [], []
    for _ in range(3 if full else 1):
        inside = rng.random(n) < 0.5
        # Those who are asked about come on top of all others, who are many more.
        true = rng.poisson(busy)
        counts_with = true.copy()
        for cells in (cells for cells, is_in in zip(people, inside, strict=True) if is_in):
            counts_with[cells] += 1
        for cells, is_in in zip(people, inside, strict=True):
            alone = true.copy()
            alone[cells] += is_in
            release = _release(alone.reshape(shape), spec, rng)
            said.append(_answer(release, cells, PLAIN).posterior())
            truth.append(is_in)
    said, truth = np.array(said), np.array(truth)
    for low, high in ((0, 0.1), (0.1, 0.35), (0.35, 0.65), (0.65, 0.9), (0.9, 1)):
        own = (said >= low) & (said <= high)
        if own.sum() > 10:
            spread = np.sqrt((said[own] * (1 - said[own])).sum()) + 0.5
            assert abs(truth[own].sum() - said[own].sum()) < 5 * spread


def test_few_epochs_no_longer_explain_themselves_away(rng):
    """Places of very different levels, one epoch, small counts hidden: people in and out are told
    apart over everybody, which rates fitted to single counts cannot."""
    busy = np.exp(rng.normal(0.4, 1.0, 2000))
    people = _people(rng, busy, 200, visits=25)
    scores, plain, labels = [], [], []
    for i, cells in enumerate(people):
        true = rng.poisson(busy)
        true[cells] += i % 2
        release = _release(true.reshape(-1, 1), "suppress(k=2)", rng)
        scores.append(_answer(release, cells).score)
        tables = count_tables(release.mechanism, M)
        log_rates = fit_rates(release).base.reshape(-1)[cells]
        plain.append(tables.log_ratio_of(release.counts.reshape(-1)[cells], log_rates).sum())
        labels.append(i % 2 == 1)
    assert _auc(scores, labels) > _auc(plain, labels) + 0.05


def _auc(scores, labels):
    inside, outside = (np.array(scores)[np.array(labels) == kind] for kind in (True, False))
    return (inside[:, None] > outside).mean()


# P-values


@pytest.mark.parametrize("spec", [*SPECS, "laplace(eps=2, unit=user-day, max_visits=1)"])
def test_p_values_are_those_of_all_counts(rng, spec):
    """Two cells that are known: all of their counts one by one. By the bound, either of them was
    counted. Twice the standard error is added to what is simulated; it may be too small by chance,
    and by the steps of the tables."""
    rates = _city(rng, 60, 2)
    mechanism, n, values = Mechanism.parse(spec), np.arange(M), np.arange(120)
    cells = np.argsort(rates.ravel())[[70, 90]]
    for more in (0, 3, 8):
        true = rng.poisson(rates)
        true.reshape(-1)[cells] += more
        release = _release(true, spec, rng)
        answer, table = _answer(release, cells, PLAIN), Table.of(release, RANK_ONE)
        if answer.is_certain:
            continue
        chances, totals, seen = np.ones((1, 1)), np.zeros((1, 1)), 0.0
        for cell, axis in zip(cells, (0, 1), strict=True):
            line = np.argmax((table.lines.cells == cell).any(axis=1))
            value = release.values.reshape(-1)[cell]
            log_rates = table.rates.base.reshape(-1)[cell] + table.levels.nodes[line]
            others = poisson.pmf(n, np.exp(log_rates)[:, None])
            # What the line's other counts say.
            weight = np.exp(table.levels.log_weight[line])
            weight /= np.maximum(others @ mechanism.pmf(value, n, M), 1e-300)
            without, within = (
                weight @ others @ mechanism.pmf(values, np.minimum(n + one, M)[:, None], M)
                for one in (0, 1)
            )
            if mechanism.bounds_visits:
                within = (without + within) / 2
            with np.errstate(divide="ignore", invalid="ignore"):
                score = np.log(within) - np.log(without)
            seen = seen + score[value]
            totals = totals + np.expand_dims(score, 1 - axis)
            chances = chances * np.expand_dims(without / weight.sum(), 1 - axis)
        exact = chances[totals >= seen - 1e-6].sum()
        # Where scores are bounded, a far tail is seen by few of 2^15 draws.
        most = 1.25 * exact + 6 * np.sqrt(exact / 2**15) * mechanism.bounds_visits
        assert 0.9 * exact <= answer.p_value <= most + 1e-9


def test_far_tails_are_seen(rng):
    """Forty visits that nobody else makes, counted as they are: a chance of far below 1e-6."""
    rates = np.full((50, 40), 0.05)
    cells = np.arange(0, 2000, 50)
    true = rng.poisson(rates)
    true.reshape(-1)[cells] += 1
    release = _release(true, "laplace(eps=3, unit=event)", rng)
    answer = _answer(release, cells)
    assert 0 < answer.p_value < 1e-9
    # By Markov's inequality, a likelihood ratio of e^s has a chance of e^-s at most.
    assert answer.p_value < 1.3 * np.exp(-answer.score)


@pytest.mark.parametrize(
    ("where", "spec", "rule"),
    [
        ("hours", "suppress(k=1)", "regions"),
        ("visits a day", "raw", "all"),
        ("hours", "cell-key(d=5, v=3)", "all"),
    ],
)
def test_no_p_value_is_claimed_where_none_is_known(city, where, spec, rule):
    people, release = _published(city, where, spec)
    row = int(np.argmax(people.visits_per_user()))
    known = Knowledge.parse(rule).of(people.select([row]), None)
    fitted = LikelihoodRatio().fit(release.facts, known, Auxiliary(), seed=0)
    assert fitted.score(release).p_value is None
    several = LikelihoodRatio().fit_tables([View(release.facts, known, Auxiliary())] * 2, seed=0)
    assert several.score_tables([release] * 2).p_value is None
