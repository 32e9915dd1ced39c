"""Tables of counts made by others: what they claim is checked, what was left out is said."""

import json

import pytest

from whosthere.privacy.release import Release

TIMES = ("2024-05-01T00:00Z", "2024-05-01T01:00Z", "2024-05-01T02:00Z")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def counts(folder):
    """Give a function that writes counts.csv, of one region by default."""

    def write(*values, header="region,time,count"):
        rows = [f"a,{time},{value}" for time, value in zip(TIMES, values, strict=False)]
        (folder / "counts.csv").write_text("\n".join([header, *rows]) + "\n")

    return write


@pytest.fixture
def imported(whosthere):
    def run(*options):
        code, out, err = whosthere("import", "counts.csv", "-o", "out.parquet", "--force", *options)
        assert code == 0, err
        return Release.load("out.parquet"), out

    return run


def command(mechanism, *options):
    return ("import", "counts.csv", "-m", 100, "-M", mechanism, "-o", "out.parquet", *options)


@pytest.mark.parametrize(
    ("values", "mechanism", "options", "said", "fits"),
    [
        ((55, 58, 60), "round(to=5)", (), "line 3: a count of 58 cannot come from round", "raw"),
        ((20, 7, 30), "suppress(k=14)", (), "line 3: a count of 7 cannot come", "suppress(k=6)"),
        ((20, 7, 3), "suppress(k=14)", (), "2 counts cannot", "raw"),
        ((20, "<15", 30), "raw", ("--withheld", "<15"), "'<15' stands", "k=14, shown=mark"),
        ((20, "*", 0), "suppress(k=1)", (), "withholds nothing", "suppress(k=1, shown=mark)"),
        (
            (20, "<15", 30),
            "suppress(k=9, shown=mark)",
            ("--withheld", "<15"),
            "count of 14",
            "suppress(k=14, shown=mark)",
        ),
        ((3, 6, 7), "stats-nz", (), "line 4: a count of 7", "raw"),
    ],
)
def test_counts_that_the_mechanism_cannot_have_made(
    refused, counts, values, mechanism, options, said, fits
):
    counts(*values)
    message = refused(*command(mechanism, *options))
    assert said in message
    assert fits in message.split("would fit: ")[1]
    assert "--mechanism" in message


@pytest.mark.parametrize(
    ("values", "mechanism"),
    [
        ((55, 60, 0), "round(to=5)"),
        ((15, 0, 30), "suppress(k=14)"),
        ((1, 7, 58), "laplace(eps=1, unit=event) | suppress(k=0)"),
        ((10, 15, 0), "opensafely"),
        ((3, 6, 99), "stats-nz"),
        ((16, 0, 100), "flowkit"),
    ],
)
def test_counts_that_it_can_have_made_are_taken(imported, counts, values, mechanism):
    counts(*values)
    release, _ = imported("-m", 100, "-M", mechanism)
    assert release.counts.tolist() == [list(values)]


@pytest.mark.parametrize(
    ("mechanism", "said", "shown"),
    [("suppress(k=5)", "Guarantee: none", "none"), ("laplace(eps=1)", "unknown", "not known")],
)
def test_only_noise_leaves_a_guarantee_in_doubt(
    imported, counts, whosthere, mechanism, said, shown
):
    counts(20, 7, 30)
    _, out = imported("-m", 100, "-M", mechanism)
    assert said in out
    (row,) = [
        line
        for line in whosthere("inspect", "out.parquet")[1].splitlines()
        if "guarantee" in line and "formal" not in line and "guaranteed" not in line
    ]
    assert shown in row


def test_an_attack_refuses_an_impossible_table(refused, whosthere, counts, folder):
    """A table that was described wrongly, by an older version or by hand, proves nothing."""
    counts(0, 58, 60)
    assert whosthere(*command("raw", "-o", "ours.csv"))[0] == 0
    path = folder / "ours.csv-metadata.json"
    path.write_text(path.read_text().replace('"raw"', '"round(to=5)"'))
    (folder / "target.csv").write_text("region,epoch\na,0\n")
    message = refused("attack", "ours.csv", "--target", "target.csv")
    assert "a count of 58 cannot come from round(to=5)" in message


def test_a_prior_is_checked_before_any_work(refused, counts, folder):
    (folder / "target.csv").write_text("region,epoch\na,0\n")
    for prior in ("0", "1", "nan"):
        message = refused("attack", "none.csv", "--target", "target.csv", "--prior", prior)
        assert "a prior of" in message


def test_withheld_cells_are_kept_apart_from_zeros(imported, counts, whosthere):
    counts(20, "<15", 0)
    for out in ("out.parquet", "out.csv"):
        code, said, err = whosthere(
            *command("suppress(k=14, shown=mark)", "--withheld", "<15", "-o", out, "--force")
        )
        assert code == 0, err
        assert "1 withheld" in said
        release = Release.load(out)
        assert release.counts.tolist() == [[20, 0, 0]]
        assert release.withheld.tolist() == [[False, True, False]]
        assert "withheld cells" in whosthere("inspect", out)[1]


def test_marks_of_an_imported_table_give_a_visitor_away(whosthere, folder):
    """Somebody alone in ten cells of a table with <10: marks say in, zeros say nothing."""
    times = [f"2024-05-01T{hour:02}:00Z" for hour in range(24)]
    visited = [(f"r{i}", 2 * i) for i in range(10)]
    rows = [
        f"r{i},{time},{'<10' if (f'r{i}', hour) in visited else 0}"
        for i in range(10)
        for hour, time in enumerate(times)
    ]
    (folder / "counts.csv").write_text("\n".join(["region,time,count", *rows, ""]))
    known = "\n".join(["region,epoch", *(f"{region},{hour}" for region, hour in visited), ""])
    (folder / "target.csv").write_text(known)
    marking = "suppress(k=9, shown=mark)"
    code, said, err = whosthere(*command(marking, "--withheld", "<10"))
    assert code == 0, err
    assert "10 withheld" in said
    code, said, err = whosthere("attack", "out.parquet", "--target", "target.csv", "--json")
    assert code == 0, err
    found = json.loads(said)
    assert found["decision"] == "in"
    assert found["score"] > 5


@pytest.mark.parametrize(
    "text",
    [
        "region,time,count\nTotal,{0},99\na,{0},4\na,{1},5\nb,{0},6\nALL,{1},5\n",
        "region,{0},{1},Total\na,4,5,9\nb,6,0,6\nGrand total,10,5,15\n",
        "region;{0};{1};name\na;4;5;x\nb;6;;y\n",
    ],
)
def test_totals_and_wide_tables_are_recognised(imported, folder, text):
    (folder / "counts.csv").write_text(text.format(*TIMES))
    release, said = imported("-m", 100, "-M", "raw")
    assert release.regions.ids == ("a", "b")
    assert release.counts.tolist() == [[4, 5], [6, 0]]
    assert "Note: left out" in said


def test_dates_and_hours_in_columns_of_their_own(imported, folder):
    (folder / "counts.csv").write_text(
        "region,date,hour,count\na,30/04/2024,0,4\na,01/05/2024,1,5\n"
    )
    release, _ = imported("-m", 100, "-M", "raw", "--tz", "Africa/Accra", "--epoch", "1h")
    assert release.epochs.n == 26
    assert release.counts.sum() == 9


def test_counts_with_marks_between_thousands(imported, refused, folder):
    def write(*values):
        rows = "".join(f'a,{t},"{v}"\n' for t, v in zip(TIMES, values, strict=False))
        (folder / "counts.csv").write_text("region,time,count\n" + rows)

    write("1,234", "12")
    message = refused(*command("raw", "-m", 9999))
    assert "--thousands" in message
    release, _ = imported("-m", 9999, "-M", "raw", "--thousands", ",")
    assert release.counts.tolist() == [[1234, 12]]
    write("1,234,567", "1,234", "3")
    assert imported("-m", 9999999, "-M", "raw")[0].counts.tolist() == [[1234567, 1234, 3]]
    write("1 234", "1'234", "3")
    assert imported("-m", 9999, "-M", "raw")[0].counts.tolist() == [[1234, 1234, 3]]
    write("1.5", "3")
    assert "'1.5' is not a count" in refused(*command("raw", "--force"))


def test_messages_about_wide_tables_are_one_screen(refused, folder):
    names = ",".join(f"column_{i}" for i in range(500))
    (folder / "counts.csv").write_text(f"{names}\n{'1,' * 499}1\n")
    for options in ((), ("--region-column", "colum_3"), ("--wide",)):
        message = refused(*command("raw", *options))
        assert len(message) < 1_500
        assert "500 in all" in message or "is not a time" in message
