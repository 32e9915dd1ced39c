"""`whosthere check`: a table from the web, read with the options of `import`."""

import json

import pytest


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Write a table of 12 regions over 24 hours; counts of 1 and 2 are marked."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("whosthere.game.table_check._PEOPLE", 40)
    rows = ["place;when;people"]
    for region in range(12):
        for hour in range(24):
            count = (region * 7 + hour * 5) % 11 * (region % 4 + 1) // 2
            shown = "<3" if 0 < count < 3 else count
            rows.append(f"r{region};2024-05-01 {hour:02}:00Z;{shown}")
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    return (
        "t.csv",
        "--region-column",
        "place",
        "--time-column",
        "when",
        "--count-column",
        "people",
    )


MARKED = ("--withheld", "<3", "-M", "suppress(k=2, shown=mark)")


def test_a_table_is_checked_and_a_page_is_written(whosthere, table, tmp_path):
    code, out, err = whosthere("check", *table, *MARKED, "--visits", 4, "-o", "c.html", "--json")
    assert code == 0, err
    said = json.loads(out)
    assert [one["visits"] for one in said["findings"]] == ["4", "4"]
    assert "verdict" not in said
    assert "gives no verdict" in (tmp_path / "c.html").read_text()
    code, out, err = whosthere("check", *table, *MARKED, "--visits", 4, "-o", "c.html")
    assert code == 2
    assert "--force" in err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--withheld", "<3"), "suppress(k=2, shown=mark)"),
        ((*MARKED, "--visits", "many"), "is no number of visits"),
        ((*MARKED, "--visits", "500"), "Give smaller numbers of visits (--visits)"),
        ((*MARKED, "-m", "5"), "group"),
        ((*MARKED, "-o", "page.txt"), ".html"),
    ],
)
def test_what_cannot_be_checked_is_said_in_one_message(whosthere, table, options, said):
    code, _, err = whosthere("check", *table, *options)
    assert code == 2
    assert said in err
    assert "Traceback" not in err
