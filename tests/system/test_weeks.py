"""`--weeks`, `--every` and `--turnover` on the command line."""

import json

import pytest

import whosthere as wt

QUICK = ("-m", "20", "-M", "raw", "-a", "likelihood-ratio", "--targets", "2", "--releases", "2")


@pytest.fixture(scope="module")
def made():
    return wt.simulate("milan-like", seed=2, users=100, regions=4, days=3).traces()


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made.save("traces.parquet")
    return tmp_path


def planned(whosthere, *more):
    """Return the plan of a dry run."""
    dry = ("--json", "--dry-run", "--workers", "1", "--out", "run")
    code, out, err = whosthere("audit", "traces.parquet", *QUICK, *more, *dry)
    assert (code, err) == (0, "")
    return json.loads(out)


def test_numbers_with_commas_or_one_by_one_are_the_same_plan(whosthere, folder):
    plan = planned(whosthere, "--weeks", "1,3", "--every", "1d", "--turnover", "0.1")
    assert list(plan["contests"]) == ["raw over 1 day, m=20", "raw over 3 days, m=20"]
    assert plan["game"] == "target(turnover=0.1)"
    again = planned(whosthere, "--weeks", "3", "--weeks", "1", "--every", "1d", "--turnover", ".1")
    assert again == plan


def test_plan_files_have_them_by_block(whosthere, folder):
    (folder / "plan.toml").write_text(
        'every = "1d"\n[[blocks]]\nmechanisms = "raw"\nweeks = [1, 2]\n'
        '[[blocks]]\nmechanisms = "suppress(k=1)"\n'
    )
    given = ("--plan", "plan.toml", *QUICK[:2], *QUICK[4:], "--json", "--dry-run")
    code, out, _ = whosthere("audit", "traces.parquet", *given, "--workers", "1", "--out", "run")
    assert code == 0
    assert list(json.loads(out)["contests"]) == [
        "raw over 1 day, m=20",
        "raw over 2 days, m=20",
        "suppress(k=1), m=20",
    ]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--weeks", "1,2"), "the data cover 0 weeks, less than the 1 week asked for (--weeks)"),
        (
            ("--weeks", "4", "--every", "1d"),
            "cover 3 days, less than the 4 days asked for (--weeks)",
        ),
        (("--weeks", "1,x"), "'x' is no whole number (--weeks)"),
        (("--weeks", "0"), "(--weeks)"),
        (("--weeks", "1", "--every", "soon"), "'soon' is not a length of time"),
        (("--every", "1d"), "--every is about tables"),
        (("--weeks", "1", "--turnover", "2"), "a share of 2.0 cannot change (--turnover)"),
        (
            ("-m", "50", "--weeks", "3", "--every", "1d", "--turnover", ".9"),
            "Give a smaller share (--turn",
        ),
        (
            ("--weeks", "2,3", "--every", "1d", "--table", "epochs=2d"),
            "epochs of 2d (--table) do not end with the 3 days asked for (--weeks)",
        ),
    ],
)
def test_what_cannot_be_is_refused(refused, folder, more, said):
    assert said in refused("audit", "traces.parquet", *QUICK, *more, "--out", "run")


def test_a_unit_longer_than_a_table_is_refused(refused, folder):
    how = ("-m", "20", "-M", "laplace(eps=1, unit=user-week, max_visits=3)")
    told = refused("audit", "traces.parquet", *how, "--weeks", "2", "--every", "1d", "--out", "run")
    assert "unit=user-week spans 7 days" in told
    assert "(--every)" in told


def test_recommend_finds_what_lasts(whosthere, refused, folder, monkeypatch):
    monkeypatch.setattr("whosthere.search.tester._LEAST_RELEASES_TO_SEARCH", 4)
    (folder / "policy.toml").write_text('name = "easy"\n[limits]\nauc = 0.999\n')
    base = ("recommend", "traces.parquet", "-m", "20", "-F", "suppress(k=?)", "--targets", "3",
            "-a", "likelihood-ratio", "--releases", "4", "--workers", "1", "--every", "1d",
            "--policy", "policy.toml")  # fmt: skip
    assert "the data cover 3 days" in refused(*base, "--weeks", "5")
    code, out, _ = whosthere(*base, "--weeks", "2", "--out", "search", "--report", "page.html")
    assert code == 0
    found = json.loads((folder / "search/recommendation.json").read_text())
    verdicts = [one["verdict"]["setting"] for one in found["candidates"]]
    assert all(one.endswith("over 2 days, m=20") for one in verdicts)
    if found["recommended"] is not None:
        assert "It lasts for 2 days" in " ".join(out.split())
        assert found["published_for"] == "2 days"
        assert "It lasts for 2 days" in (folder / "page.html").read_text()
