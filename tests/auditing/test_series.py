"""For how long a table can be published again and again, and what is said of it."""

import json
from dataclasses import replace

import pytest

import whosthere as wt
from whosthere.auditing.loading import load
from whosthere.auditing.policy import Limit
from whosthere.auditing.series import Series, said_of_series
from whosthere.auditing.verdict import Verdict
from whosthere.cli.screen import show_audit
from whosthere.errors import FileError
from whosthere.inference.finding import Finding

A, R, U = "accept", "reject", "cannot tell"
LIMIT = Limit("auc", 0.6)


def series(decisions, aucs=(), *, protection="raw, m=9", every="1w", covered=8, **about):
    """Return a series with decisions by how often it is published, and a mean AUC of each."""
    verdicts = {n: Verdict(f"raw over {n}, m=9", one, (), **about) for n, one in decisions.items()}
    findings = tuple(
        Finding(verdict.setting, attack, "auc", auc - less, None, None, 9, 9, 9)
        for verdict, auc in zip(verdicts.values(), aucs, strict=False)
        for attack, less in (("likelihood-ratio", 0.0), ("knock-knock", 0.1))
    )
    return Series(protection, every, covered, verdicts, findings)


@pytest.mark.parametrize(
    ("decisions", "lasts", "said"),
    [
        ({1: A, 2: A, 4: R}, 2, "every week for 2 weeks. Over 4 weeks it is rejected."),
        ({1: A, 2: U, 4: A}, 1, "every week for 1 week. Over 2 weeks the audit cannot tell."),
        ({1: A, 8: A}, 8, "for 8 weeks. The data cover no more, so nothing is known beyond."),
        ({1: A, 4: A}, 4, "for 4 weeks. More was not tried; the data cover 8 weeks."),
        ({1: R, 2: A}, 0, "Do not publish raw, m=9 every week, not even once."),
        ({2: R}, 0, "Do not publish raw, m=9 every week, not even for 2 weeks."),
        ({1: U, 2: R}, 0, "over 1 week the audit cannot tell."),
    ],
)
def test_it_lasts_as_long_as_all_is_accepted(decisions, lasts, said):
    found = series(decisions)
    assert found.lasts == lasts
    assert found.in_words.endswith(said)
    assert found.in_words.startswith("You can publish raw, m=9 every week") == bool(lasts)


def test_what_must_not_be_overlooked_is_said():
    found = series({1: A}, who="people with 20 or more visits", useless=True, every="2d")
    assert "every 2d for 1 period of 2d, as far as people with 20 or more visits" in found.in_words
    assert "(safe, but useless)" in found.in_words


def test_the_largest_of_all_attacks_is_what_crosses_a_limit():
    found = series({1: A, 2: A, 4: R}, (0.52, 0.61, 0.7))
    assert [one.estimate for one in found.risk("auc").values()] == [0.52, 0.61, 0.7]
    assert found.crossed(LIMIT) == 2
    assert found.crossed(Limit("auc", 0.7)) is None
    assert found.crossed(Limit("accuracy", 0.7)) is None


def test_the_longest_come_first_and_what_never_lasts_shares_a_sentence():
    each = [
        series({1: R}, protection="a"),
        series({1: A, 2: R}, protection="b"),
        series({1: A, 2: A}, protection="c"),
        series({1: R}, protection="d"),
        series({1: U}, protection="e"),
    ]
    said = said_of_series(each)
    assert [one.split(" every ")[0] for one in said] == [
        "You can publish c",
        "You can publish b",
        "Do not publish a and d",
        "Nothing shows that you can publish e",
    ]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("series")
    people = wt.simulate("milan-like", seed=7, users=200, days=3, regions=9).traces()
    wt.audit(
        people,
        mechanisms=("raw", "suppress(k=50)"),
        group_size=10,
        weeks=(1, 3),
        every="1d",
        turnover=0.2,
        attacks="likelihood-ratio",
        targets=4,
        releases=4,
        what_if=False,
        policy={"auc": 0.99},
        out=folder / "run",
        workers=1,
    )
    return folder / "run"


class TestAudit:
    def test_each_number_has_its_verdict_and_the_result_says_how_long(self, run):
        found = load(run)
        raw, empty = found.series
        assert (raw.protection, raw.every, raw.covered) == ("raw, m=10", "1d", 3)
        assert list(raw.verdicts) == list(empty.verdicts) == [1, 3]
        assert raw.verdicts[1].setting == "raw over 1 day, m=10"
        assert found.to_frame()["weeks"].unique().sort().to_list() == [1, 3]
        assert found.n_tasks == 2 * 2 * 4
        assert [one["lasts"] for one in found.to_json()["series"]] == [raw.lasts, empty.lasts]
        assert json.loads((run / "verdicts.json").read_text())["series"] == [
            one.to_json() for one in found.series
        ]

    def test_the_report_shows_risk_against_time_first(self, run):
        page = (run / "report.html").read_text()
        first = page[: page.index("Which protection to choose")]
        assert "If it is published again and again" in first
        assert first.count("days published") == 1
        assert "20 % of the other people are replaced" in first
        assert "More than one release" not in page

    def test_the_terminal_says_it(self, run, capsys):
        show_audit(load(run))
        assert "every day" in " ".join(capsys.readouterr().out.split())

    def test_a_damaged_manifest_is_refused(self, run, tmp_path):
        there = tmp_path / "run"
        there.mkdir()
        for file in run.iterdir():
            if file.is_file():
                (there / file.name).write_bytes(file.read_bytes())
        manifest = json.loads((there / "manifest.json").read_text())
        manifest["settings"][0]["series"]["every"] = "soon"
        (there / "manifest.json").write_text(json.dumps(manifest))
        with pytest.raises(FileError, match="damaged"):
            load(there)


def test_audits_of_one_table_have_no_series(run):
    found = load(run)
    plain = [
        {name: value for name, value in one.items() if name not in {"weeks", "series"}}
        for one in found.manifest["settings"]
    ]
    one = replace(found, manifest={**found.manifest, "settings": plain})
    assert one.series == ()
    assert "series" not in one.to_json()
    assert "weeks" not in one.to_frame().columns
