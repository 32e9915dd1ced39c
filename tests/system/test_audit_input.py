"""`whosthere audit` and `whosthere recommend`: bad input, plans from files, and whom they name."""

import json
import shutil
import socket
from dataclasses import replace

import polars as pl
import pytest

from whosthere.auditing.loading import load
from whosthere.auditing.policy import Policy
from whosthere.data.cities import simulate
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.publish import publish

PLAN = """
mechanisms = ["raw", "suppress(k=1)"]
group_size = 20
attacks = "likelihood-ratio"
targets = 3
releases = 4
seed = 5
"""
BLOCKS = """
attacks = "likelihood-ratio"
targets = 2
releases = 4

[[blocks]]
mechanisms = "raw"
group_size = [15, 20]

[[blocks]]
mechanisms = ["raw", "suppress(k=1)"]
group_size = 20
knowledge = ["all", "share(0.5)"]
"""
QUICK = "-m 20 -a likelihood-ratio --targets 3 --releases 4 --workers 1"
AUDIT = f"audit traces.parquet {QUICK} -o run"
RECOMMEND = "recommend traces.parquet -a likelihood-ratio --targets 2 --workers 1"


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """Make good and bad files; the ids of all people are to be kept secret."""
    folder = tmp_path_factory.mktemp("template")
    city = simulate("milan-like", seed=7, users=400, days=1, regions=25).traces()
    ids = tuple(f"secret-user-{i:03d}" for i in range(city.n_users))
    traces = replace(city, users=ids)
    traces.save(folder / "traces.parquet")
    publish(traces, mechanism=Mechanism()).release.save(folder / "release.parquet")
    (folder / "cut.parquet").write_bytes((folder / "traces.parquet").read_bytes()[:-30])
    write = {
        "plan.toml": PLAN,
        "unknown.toml": PLAN + "mechanism = 'raw'\n",
        "type.toml": PLAN.replace("targets = 3", "targets = 'three'"),
        "invalid.toml": "mechanisms = [",
        "odd.toml": PLAN.replace("releases = 4", "releases = 5"),
        "negative.toml": PLAN.replace("seed = 5", "seed = -5"),
        "blocks.toml": BLOCKS,
        "wrong_block.toml": BLOCKS.replace("knowledge", "knowlege"),
        "policy.toml": "[limits]\naccuracy = 0.9\n",
        "strict.toml": "[limits]\nauc = 60\n",
        "metric.toml": "[limits]\nauk = 0.6\n",
        "empty.toml": "",
        "notes.txt": "mine",
        "occupied.json": "mine",
    }
    for name, text in write.items():
        (folder / name).write_text(text)
    (folder / "theirs").mkdir()
    (folder / "theirs" / "thesis.tex").write_text("years of work")
    (folder / "hollow").mkdir()
    return folder


@pytest.fixture
def folder(template, tmp_path, monkeypatch):
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# What is typed, what the message must name, and how it must help.
WRONG = [
    # traces
    (f"audit none.parquet {QUICK} -M raw -o run", "none.parquet", "Check the path"),
    (f"audit hollow {QUICK} -M raw -o run", "hollow", "Expected extensions: .csv"),
    (f"audit release.parquet {QUICK} -M raw -o run", "release.parquet", "not a traces file"),
    (f"audit cut.parquet {QUICK} -M raw -o run", "cut.parquet", "copy it again"),
    (f"audit notes.txt {QUICK} -M raw -o run", "notes.txt", "Expected: .csv"),
    ("recommend none.parquet -m 20", "none.parquet", "Check the path"),
    ("recommend release.parquet -m 20", "release.parquet", "not a traces file"),
    # plans and policies
    ("audit traces.parquet --plan none.toml -o run", "none.toml", "Check the path"),
    ("audit traces.parquet --plan hollow -o run", "hollow", "Name a file"),
    ("audit traces.parquet --plan invalid.toml -o run", "invalid.toml", "key = value"),
    ("audit traces.parquet --plan unknown.toml -o run", "unknown.toml", "'mechanisms'?"),
    ("audit traces.parquet --plan type.toml -o run", "type.toml", "targets should be"),
    ("audit traces.parquet --plan wrong_block.toml -o run", "wrong_block.toml", "'knowledge'?"),
    ("audit traces.parquet --plan odd.toml -o run", "odd.toml: the number", "must be even"),
    (
        "audit traces.parquet --plan negative.toml -o run",
        "seed",
        "0",
    ),
    (f"{AUDIT} -M raw --policy none.toml", "none.toml", "Check the path"),
    (f"{AUDIT} -M raw --policy empty.toml", "empty.toml", "such as auc"),
    (f"{AUDIT} -M raw --policy strict.toml", "strict.toml", "from 0 to 1"),
    (f"{AUDIT} -M raw --policy metric.toml", "metric.toml", "Did you mean 'auc'?"),
    (f"{RECOMMEND} -m 20 --policy metric.toml", "metric.toml", "Did you mean 'auc'?"),
    (f"{RECOMMEND} -m 20 --policy invalid.toml", "invalid.toml", "key = value"),
    # what to measure
    (f"{AUDIT} -M supress(k=1)", "'supress'", "Did you mean 'suppress'?"),
    (f"{AUDIT} -M suppress(k=-1)", "k must lie between 0", "0 or more"),
    (AUDIT, "no mechanism", "suppress(k=1)"),
    ("audit traces.parquet -M raw -o run", "no group size", "1000"),
    (f"{AUDIT} -M raw -m 1", "a group of 1", "at least 2"),
    (f"{AUDIT} -M raw -m 500", "groups of 500", "group size (--group-size) of 117"),
    (f"{AUDIT} -M raw -m 100 -a knock-knock", "groups of 100", "leave out knock-knock"),
    (f"{AUDIT} -M raw -a knock-nock", "'knock-nock'", "Did you mean 'knock-knock'?"),
    (f"{AUDIT} -M raw -a zero-knowledge(groops=4)", "'groops'", "Did you mean 'groups'?"),
    (f"{AUDIT} -M raw -a zero-knowledge(groups=5)", "5 groups", "even number"),
    (f"{AUDIT} -M raw --knowledge much", "'much'", "all, share, regions"),
    (f"{AUDIT} -M raw --knowledge share(2)", "a share of 2", "at most 1"),
    (f"{AUDIT} -M raw -a zero-knowledge(sampling=pared)", "'pared'", "'paired'?"),
    (f"{AUDIT} -M raw -a knock-knock-past-groups --past-releases 5", "5 past", "even number"),
    (f"{AUDIT} -M raw --test-from 2031-01-01", "2031-01-01", "within them"),
    (f"{AUDIT} -M raw --control-releases -1", "control releases", "got -1"),
    (f"{AUDIT} -M raw --seed -1", "seed", "not -1"),
    (f"{AUDIT} -M raw --min-visits 0", "visits", "got 0"),
    (f"{AUDIT} -M raw --scale papr", "'papr'", "'paper'?"),
    (f"{AUDIT} -M raw --releases 7", "got 7", "must be even"),
    (f"{AUDIT} -M raw --releases-of likelihood-ratio=7", "got 7", "must be even"),
    (
        f"{AUDIT} -M raw --releases-of likelihod-ratio=8",
        "'likelihod-ratio' (--releases-of)",
        "Did you mean 'likelihood-ratio'?",
    ),
    (f"{AUDIT} -M raw --releases-of likelihood-ratio", "likelihood-ratio", "likelihood-ratio=200"),
    (f"{AUDIT} -M raw --releases-of =8", "'=8'", "likelihood-ratio=200"),
    (f"{AUDIT} -M raw --targets 900", "900 targets", "Ask for 118 targets"),
    (f"{AUDIT} -M raw --min-visits 7 --targets 9", "7 visits", "Ask for 5 visits"),
    (f"{AUDIT} -M raw --user nobody", "not in these traces", "spelling"),
    (f"{AUDIT} -M raw --reference-size 117", "reference of 117", "58"),
    # families
    (RECOMMEND, "--group-size", "such as 1000"),
    (f"{RECOMMEND} -m 20 -F suppress(k=1)", "suppress(k=1)", "Write one ?"),
    (f"{RECOMMEND} -m 20 -F suppress(k=?)|round(to=?)", "suppress(k=?)", "Write one ?"),
    (f"{RECOMMEND} -m 20 -F supress(k=?)", "'supress'", "Did you mean 'suppress'?"),
    (f"{RECOMMEND} -m 500", "groups of 500", "group size (--group-size) of 117"),
    (f"{RECOMMEND} -m 20 -a knock-nock", "'knock-nock'", "'knock-knock'?"),
    (f"{RECOMMEND} -m 20 --releases 7", "got 7", "must be even"),
    # outputs
    (f"audit traces.parquet {QUICK} -M raw -o theirs", "theirs", "Name a new folder"),
    (f"audit traces.parquet {QUICK} -M raw -o notes.txt", "notes.txt", "Name a new folder"),
    (f"{RECOMMEND} -m 20 -o occupied.json", "occupied.json", "Name a new folder"),
    (f"{RECOMMEND} -m 20 -o notes.txt/found.json", "notes.txt", "may write to"),
    (
        f"audit traces.parquet {QUICK} -M raw -o notes.txt/run",
        "notes.txt",
        "folder",
    ),
]


@pytest.mark.parametrize(("typed", "named", "fix"), WRONG)
def test_wrong_input_is_refused_in_one_message(refused, typed, named, fix):
    message = refused(*typed.split(" "))
    assert named in message
    assert fix in message


@pytest.mark.parametrize(
    "typed",
    [
        f"{AUDIT} -M raw --workers 0",
        f"{AUDIT} -M raw --workers many",
        f"{AUDIT} -M raw --mechanisms raw",
        f"{AUDIT} -M raw --target secret-user-001",
        f"{AUDIT} -M raw --sampling paired",
        f"{AUDIT} -M raw --test-from tomorrow",
        f"audit traces.parquet {QUICK} -M raw",
        f"audit {QUICK} -M raw -o run",
        f"{RECOMMEND} -m 20 --workers 0",
        f"{RECOMMEND} -m many",
    ],
)
def test_wrong_usage_is_refused(whosthere, folder, typed, files):
    before = files()
    code, out, err = whosthere(*typed.split())
    assert code == 2
    assert out == ""
    assert err.startswith("error: ")
    assert err.endswith("--help\n")
    assert files() == before


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("audit -o run", "error: missing argument 'TRACES|RECORDS'. See: whosthere audit --help"),
        ("audit x --bogus 1 -o run", "error: no such option: --bogus"),
        ("audit x --targets many -o run", "error: invalid value for '--targets': "),
        ("nothing", "error: no such command 'nothing'. See: whosthere --help"),
        ("--nothing", "error: no such option: --nothing. See: whosthere --help"),
    ],
)
def test_wrong_usage_is_one_message_like_any_other(whosthere, typed, said):
    code, out, err = whosthere(*typed.split())
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(said)


def test_folders_in_place_of_traces_are_named(whosthere, folder):
    (folder / "old").mkdir()
    (folder / "old" / "manifest.json").write_text("{}")
    code, _, err = whosthere("audit", "old", "-m", "20", "-M", "raw", "-o", "run")
    assert (code, "error: old: is the folder of an audit. Name the traces" in err) == (2, True)
    code, _, err = whosthere("recommend", "old", "-m", "20")
    assert (code, "error: old: is the folder of an audit. Name the traces" in err) == (2, True)


@pytest.mark.slow
@pytest.mark.parametrize("command", [f"{AUDIT} -M raw", f"{RECOMMEND} -m 20"])
def test_a_cluster_that_does_not_answer(whosthere, folder, monkeypatch, command, files):
    pytest.importorskip("distributed")
    monkeypatch.setattr("whosthere.auditing.work._SECONDS_TO_CONNECT", 1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    before = files()
    code, _, err = whosthere(*command.split(), "--cluster", address)
    assert code == 2
    assert f"no Dask scheduler answers at {address}" in err
    assert "dask scheduler" in err
    assert "Traceback" not in err
    assert files() == before


def test_dry_run_says_all_and_writes_nothing(whosthere, folder, files):
    before = files()
    code, out, err = whosthere(*AUDIT.split(), "-M", "raw", "-M", "suppress(k=1)", "--dry-run")
    assert (code, err) == (0, "")
    for said in ("suppress(k=1), m=20", "likelihood-ratio", "6 tasks, about"):
        assert said in out
    assert "worker" in out
    assert files() == before


def _scores(folder):
    tables = [pl.read_parquet(folder / f"{name}.parquet") for name in ("scores", "control")]
    return [table.drop("seconds").rows() for table in tables]


def _manifest(folder):
    return json.loads((folder / "manifest.json").read_text())


def test_a_plan_is_the_same_from_a_file_and_from_options(whosthere, folder):
    from_file = "audit traces.parquet --plan plan.toml --workers 1 -o a"
    assert whosthere(*from_file.split())[0] == 0
    options = f"audit traces.parquet {QUICK} -M raw -M suppress(k=1) --seed 5 -o b"
    assert whosthere(*options.split())[0] == 0
    assert _manifest(folder / "a")["plan"] == _manifest(folder / "b")["plan"]
    assert _scores(folder / "a") == _scores(folder / "b")


def test_options_go_before_the_file(whosthere, folder):
    typed = "audit traces.parquet --plan plan.toml --workers 1 -o run"
    changed = "--seed 6 -M round(to=5) -m 15 --targets 2"
    assert whosthere(*typed.split(), *changed.split())[0] == 0
    plan = _manifest(folder / "run")["plan"]
    assert plan["contests"] == {"round(to=5), m=15": ["likelihood-ratio"]}
    assert (plan["seed"], len(plan["targets"]), plan["releases"]) == (6, 2, 4)


def test_a_number_of_targets_goes_before_names_in_the_file(whosthere, folder):
    (folder / "named.toml").write_text(PLAN + 'users = ["secret-user-001"]\n')
    typed = "audit traces.parquet --plan named.toml --targets 2 --workers 1 -o run"
    assert whosthere(*typed.split())[0] == 0
    assert len(_manifest(folder / "run")["plan"]["targets"]) == 2


def test_a_name_goes_before_a_number_in_the_file(whosthere, folder):
    typed = "audit traces.parquet --plan plan.toml --user secret-user-001 --workers 1 -o run"
    assert whosthere(*typed.split())[0] == 0
    assert _manifest(folder / "run")["plan"]["targets"] == [1]


def test_blocks_are_measured_together(whosthere, folder):
    typed = "audit traces.parquet --plan blocks.toml --workers 1 -o run"
    assert whosthere(*typed.split())[0] == 0
    settings = [
        "raw, m=15",
        "raw, m=20",
        "raw, m=20, knows share(0.5)",
        "suppress(k=1), m=20",
        "suppress(k=1), m=20, knows share(0.5)",
    ]
    plan = _manifest(folder / "run")["plan"]
    assert plan["contests"] == {setting: ["likelihood-ratio"] for setting in settings}
    scores = pl.read_parquet(folder / "run" / "scores.parquet")
    assert scores.group_by("setting", "attack").len().sort("setting", "attack").rows() == [
        (setting, attack, 2 * 4)
        for setting in settings
        for attack in ("ceiling", "likelihood-ratio")
    ]


def test_options_go_before_every_block(whosthere, folder):
    typed = "audit traces.parquet --plan blocks.toml --workers 1 -o run -m 10 --knowledge all"
    assert whosthere(*typed.split())[0] == 0
    assert list(_manifest(folder / "run")["plan"]["contests"]) == [
        "raw, m=10",
        "suppress(k=1), m=10",
    ]


def test_variants_of_an_attack(whosthere, folder):
    variants = [
        "zero-knowledge(groups=20, validation=10, reference=60)",
        "zero-knowledge(sampling=independent, groups=20, validation=10, reference=60)",
    ]
    typed = "audit traces.parquet -m 20 --targets 1 --releases 4 --workers 1 -M raw -o run"
    code, _, err = whosthere(*typed.split(), "-a", variants[0], "-a", variants[1])
    assert code == 0, err
    [attacks] = _manifest(folder / "run")["plan"]["contests"].values()
    assert attacks == variants
    scores = pl.read_parquet(folder / "run" / "scores.parquet")
    assert set(scores["attack"]) == {*variants, "ceiling"}


def test_without_a_control(whosthere, folder):
    code, out, err = whosthere(*AUDIT.split(), "-M", "raw", "--control-releases", "0")
    assert code == 0, err
    assert "There was no control" in out
    assert pl.read_parquet(folder / "run" / "control.parquet").height == 0
    assert json.loads((folder / "run" / "verdicts.json").read_text())["trusted"] is None


def test_the_same_command_goes_on_and_another_is_refused(whosthere, folder, files):
    command = [*AUDIT.split(), "-M", "raw", "--seed", "1"]
    assert whosthere(*command)[0] == 0
    first = _scores(folder / "run")
    code, out, _ = whosthere(*command)
    assert code == 0
    assert "All tasks (3) are done already" in out
    assert _scores(folder / "run") == first
    before = files()
    code, _, err = whosthere(*command[:-1], "2")
    assert code == 2
    assert "seed 1 then, 2 now" in err
    assert files() == before


def _texts(folder):
    """Return all that can be read in a folder, tables included."""
    for path in folder.rglob("*"):
        if path.suffix == ".parquet":
            table = pl.read_parquet(path)
            yield f"{table.schema}{pl.read_parquet_metadata(path)}{table.to_dicts()}"
        if path.is_file():
            yield path.read_bytes().decode("latin-1")
        yield path.name


@pytest.mark.parametrize("named", [(), ("--user", "secret-user-017")])
def test_nobody_is_named(whosthere, folder, named):
    code, out, err = whosthere(*AUDIT.split(), "-M", "raw", "-M", "suppress(k=1)", *named)
    assert code == 0
    assert "secret-user" not in out + err
    assert (folder / "run" / "findings.json").exists()
    assert not any("secret-user" in text for text in _texts(folder / "run"))


def test_nobody_is_named_by_a_recommendation(whosthere, folder):
    command = f"{RECOMMEND} -m 20 -F suppress(k=?) --policy policy.toml -o found"
    code, out, err = whosthere(*command.split())
    assert code == 0
    assert "secret-user" not in out + err + (folder / "found" / "recommendation.json").read_text()
    code, out, _ = whosthere(*command.split(), "--json")
    assert code == 0
    assert json.loads(out) == json.loads((folder / "found" / "recommendation.json").read_text())


def test_what_is_left_to_publish_stands_beside_the_risk(folder, whosthere):
    typed = f"audit traces.parquet {QUICK} -M raw -M suppress(k=30) -o run"
    code, shown, _ = whosthere(*typed.split(), "--details")
    assert code == 0
    assert shown.count("Left to publish") == 2
    for head in ("visits kept", "cells kept", "relative error", "pattern correlation"):
        assert head in shown
    emptied, whole = "pattern correlation 0.00", "pattern correlation 1.00, relative error 0.00"
    (line,) = [one for one in shown.splitlines() if "suppress(k=30), m=20  (" in one]
    assert "useless" in line
    assert emptied in line
    (line,) = [one for one in shown.splitlines() if "raw, m=20  (" in one]
    assert "useless" not in line
    assert whole in line
    verdicts = json.loads((folder / "run" / "verdicts.json").read_text())["verdicts"]
    assert [one["useless"] for one in verdicts] == [False, True]
    findings = json.loads((folder / "run" / "findings.json").read_text())
    kept = [one for one in findings if (one["attack"], one["metric"]) == ("utility", "cells_kept")]
    assert [one["estimate"] for one in kept] == [1, 0]


def test_floors_of_a_policy_are_kept_with_the_verdicts(folder, whosthere):
    (folder / "ours.toml").write_text("limits.auc = 0.9\n[keep]\nvisits_kept = 1.0")
    typed = f"audit traces.parquet {QUICK} -M raw -M suppress(k=1) -o run --policy ours.toml"
    assert whosthere(*typed.split())[0] == 0
    judged = load(folder / "run")
    assert judged.policy == Policy("ours", {"auc": 0.9}, keep={"visits_kept": 1.0})
    assert [one.useless for one in judged.verdicts] == [False, True]
    (folder / "ours.toml").write_text("limits.auc = 0.9\n[keep]\nrelative_error = 1.0")
    code, _, err = whosthere(*typed.split())
    assert code == 2
    assert "ours.toml" in err
    assert "relative_error cannot have a floor" in err


def test_what_coarser_tables_would_change_is_shown_unless_it_is_not_wanted(folder, whosthere):
    typed = f"audit traces.parquet {QUICK} -M raw -o run".split()
    code, shown, _ = whosthere(*typed, "--details")
    assert code == 0
    assert "What if" in shown
    assert "epochs of 4h" in shown
    written = json.loads((folder / "run" / "what_if.json").read_text())
    assert {one["setting"] for one in written} == {"raw, m=20"}
    without = [*typed[:-1], "other", "--no-what-if", "--details"]
    code, shown, _ = whosthere(*without)
    assert code == 0
    assert "What if" not in shown
    assert not (folder / "other" / "what_if.json").exists()
    assert not (folder / "other" / "what_if.json").exists()
