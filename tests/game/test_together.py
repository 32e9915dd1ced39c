"""What an audit says of people who share most of their visits with somebody else."""

import json
from dataclasses import replace

import numpy as np
import pytest

import whosthere as wt
from whosthere.auditing import run
from whosthere.auditing.loading import load
from whosthere.data.floor import LEAST_PEOPLE
from whosthere.game.together import RARE, Band, Together, together
from whosthere.reporting.report import recommendation_report
from whosthere.reporting.sections.overview import overview
from whosthere.reporting.sections.people import who_section

ALIKE = "share more than half of them with one other person"
QUICK = {"mechanisms": "raw", "group_size": 40, "attacks": "likelihood-ratio", "targets": 3}


@pytest.fixture(scope="module")
def strangers():
    return wt.simulate("milan-like", seed=3, users=600, days=7).traces()


@pytest.fixture(scope="module")
def households(strangers):
    """Each four people have the same trace."""
    made = strangers.select(np.repeat(np.arange(0, 600, 4), 4))
    return replace(made, users=tuple(f"{i:04d}" for i in range(600)))


def audited(traces, out):
    return wt.audit(traces, releases=4, workers=1, what_if=False, out=out, **QUICK)


class TestNumbers:
    def test_households_are_found_and_strangers_are_not(self, strangers, households):
        assert together(households).share == 1
        assert together(strangers).share < RARE
        assert not together(households).is_rare
        assert together(strangers).is_rare

    def test_no_number_about_few_people(self, strangers):
        """Whatever number of pairs there are, of whatever activity."""
        order = np.argsort(-strangers.visits_per_user())
        for n in range(12):
            rows = np.append(np.arange(600), order[10 : 10 + n])
            made = strangers.select(rows)
            found = together(replace(made, users=tuple(map(str, range(rows.size)))))
            for band in found.bands:
                assert band.people >= LEAST_PEOPLE
                assert band.sharing is None or band.sharing >= LEAST_PEOPLE
                rest = band.people - (band.sharing or 0)
                assert rest == 0 or rest >= LEAST_PEOPLE
            known = sum(band.sharing or 0 for band in found.bands)
            assert found.share == known / found.people

    def test_nor_about_few_who_go_alone(self, households):
        """One of each fourth household that has many visits is there without the others."""
        busy = np.flatnonzero(households.visits_per_user() >= 5)
        for n in range(1, 8):
            alone = busy[: 4 * n].reshape(n, 4)[:, 1:]
            found = together(households.select(np.setdiff1d(np.arange(600), alone)))
            assert found.share > 0.8
            for band in found.bands:
                rest = band.people - (band.sharing or 0)
                assert rest == 0 or rest >= LEAST_PEOPLE

    def test_what_chance_explains_is_rare(self):
        assert Together((Band(5, 100, 60, 0.59),)).is_rare
        assert not Together((Band(5, 100, 60, 0.57),)).is_rare
        assert Together((Band(5, 1000, 19, 0.0), Band(10, 5, None, 0.0))).is_rare
        assert Together().is_rare

    def test_round_trip(self, households):
        found = together(households)
        assert Together.read(json.loads(json.dumps(found.to_json()))) == found
        assert Together.read(None) is Together.read([{"x": 1}]) is Together.read([3]) is None


class TestAudits:
    def test_verdict_and_report_say_so_where_it_is_not_rare(self, households, tmp_path):
        result = audited(households, tmp_path)
        assert ALIKE in result.cautions[-1]
        assert "easier to find" in result.cautions[-1]
        kept_audit = load(tmp_path)
        assert any(ALIKE in said for said in overview(kept_audit).warnings)
        assert who_section(kept_audit).together is not None
        page = (tmp_path / "report.html").read_text()
        assert "People who go together" in page
        # However many cards there are.
        assert page.count(ALIKE) == 1
        kept = json.loads((tmp_path / "manifest.json").read_text())["together"]
        assert Together.read(kept) == together(households)
        assert json.loads((tmp_path / "verdicts.json").read_text())["together"] == kept

    def test_nothing_where_it_is_rare(self, strangers, tmp_path):
        result = audited(strangers, tmp_path)
        kept_audit = load(tmp_path)
        assert who_section(kept_audit).together is None
        for said in (*result.cautions, *overview(kept_audit).warnings):
            assert ALIKE not in said
        assert "People who go together" not in (tmp_path / "report.html").read_text()

    def test_it_is_measured_once(self, households, tmp_path, monkeypatch):
        before = audited(households, tmp_path)
        monkeypatch.setattr(run, "together", None)
        again = audited(households, tmp_path)
        assert again.together == before.together
        assert again.verdicts == before.verdicts

    def test_a_recommendation_says_so(self, households, monkeypatch):
        monkeypatch.setattr("whosthere.search.tester._LEAST_RELEASES_TO_SEARCH", 4)
        found = wt.recommend(
            households,
            group_size=40,
            families="suppress(k=?)",
            targets=3,
            workers=1,
            attacks="likelihood-ratio",
            releases=4,
        )
        assert ALIKE in found.cautions[-1]
        assert recommendation_report(found).html.count(ALIKE) == 1
