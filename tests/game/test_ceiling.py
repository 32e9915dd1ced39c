"""Ceiling and guarantee of small audits: what attacks cannot exceed."""

from functools import cache

import numpy as np
import polars as pl
import pytest
from scipy.stats import t as student

from whosthere.auditing.options import AuditOptions
from whosthere.auditing.run import prepare_audit
from whosthere.data.cities import simulate
from whosthere.inference.metrics import auc_by_target
from whosthere.inference.vocabulary import CEILING, GUARANTEE

# Each comparison of means below fails by chance in at most this share of seeds.
FALSE_ALARM = 1e-4
EVENT = "laplace(eps=1, unit=event)"
USER = "laplace(eps=2, unit=user, max_visits=3)"
CHOSEN = {
    "group_size": 20,
    "attacks": ("likelihood-ratio", "contradiction-rule", "log-likelihood"),
    "targets": 24,
    "releases": 30,
    "seed": 3,
}
# What is only compared with its own ceiling needs no attack that takes long.
OF_USER = CHOSEN | {"attacks": "log-likelihood"}
SUPPRESSED = ["suppress(k=1)", pytest.param("suppress(k=2)", marks=pytest.mark.full)]


@pytest.fixture(scope="module")
def city():
    return simulate("milan-like", seed=7, users=400, days=1, regions=25).traces()


@pytest.fixture(scope="module")
def audited(city, tmp_path_factory):
    """Give a function that audits a mechanism, and looks no closer."""
    folder = tmp_path_factory.mktemp("audits")
    city.save(folder / "traces.parquet")

    def run(mechanism, **chosen):
        options = AuditOptions.of(mechanisms=mechanism, **chosen)
        out = folder / f"{len(list(folder.iterdir()))}"
        return prepare_audit(folder / "traces.parquet", options, out).run(leaks=False)

    return run


@pytest.fixture(scope="module")
def result(audited):
    return cache(lambda mechanism: audited(mechanism, **(OF_USER if mechanism == USER else CHOSEN)))


def aucs_of(result, attack):
    """Return the AUC of each target, by ascending row."""
    own = result.scores.filter(pl.col("attack") == attack)
    columns = (own[name].to_numpy() for name in ("score", "label", "target"))
    return auc_by_target(*columns)[1]


def reach(differences):
    """Return how far the mean of paired differences may be from its expectation."""
    error = differences.std(ddof=1) / np.sqrt(differences.size)
    return student.isf(FALSE_ALARM / 2, differences.size - 1) * error + 1e-9


@pytest.mark.parametrize("mechanism", [*SUPPRESSED, EVENT])
def test_no_attack_is_above_the_ceiling(result, mechanism):
    audit = result(mechanism)
    best = aucs_of(audit, CEILING)
    attacks = set(audit.scores["attack"]) - {CEILING}
    assert "likelihood-ratio" in attacks
    for attack in attacks:
        above = aucs_of(audit, attack) - best
        assert above.mean() <= reach(above)


class TestGuarantee:
    def test_user_level_noise_has_one_and_nothing_exceeds_it(self, result):
        audit = result(USER)
        rows = {one.metric: one.estimate for one in audit.findings if one.attack == GUARANTEE}
        assert rows["odds_factor"] >= 1
        above = aucs_of(audit, CEILING) - rows["auc"]
        assert above.mean() <= reach(above)
        (verdict,) = audit.verdicts
        assert "odds" in verdict.guaranteed[0]

    def test_it_is_about_everybody_and_not_about_the_targets(self, city, result):
        """The person with most visits, in whose place the next one is counted, decides."""
        counted = np.sort(np.minimum(city.visits_per_user(), 3))
        rows = {one.metric: one for one in result(USER).findings if one.attack == GUARANTEE}
        most = np.exp(2 / 3 * counted[-2:].sum())
        assert rows["odds_factor"].estimate == pytest.approx(most)
        assert {one.n_targets for one in rows.values()} == {city.n_users}

    @pytest.mark.parametrize("mechanism", SUPPRESSED)
    def test_suppression_has_none(self, result, mechanism):
        audit = result(mechanism)
        assert not any(one.attack == GUARANTEE for one in audit.findings)
        assert "guarantees nothing" in audit.verdicts[0].guaranteed[0]
