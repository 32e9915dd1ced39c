"""The folder of an audit: begun once, continued by its equal, and refused to all others."""

import json
import random
import subprocess
import sys
from dataclasses import replace

import polars as pl
import pytest

from whosthere.adversary.attacks import LikelihoodRatio
from whosthere.auditing import manifest, store
from whosthere.auditing.manifest import CHECKSUMS, LOCK, json_object, only_one, write_json
from whosthere.auditing.options import AuditOptions
from whosthere.auditing.risk import TABLES
from whosthere.auditing.run import prepare_audit
from whosthere.auditing.store import FORMAT_VERSION, RunFolder, identity_of
from whosthere.auditing.work import ThisProcess
from whosthere.errors import FileError
from whosthere.game.plan import Contest, Plan, Setting
from whosthere.game.scoring import TaskScores
from whosthere.inference.looks import Look
from whosthere.inference.scores import SCHEMA
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.scheme import Scheme

PLAN = Plan(
    contests=tuple(
        Contest(Setting(Scheme.of(Mechanism.parse(spec), m)), LikelihoodRatio())
        for spec in ("raw", "suppress(k=1)")
        for m in (5, 9)
    ),
    targets=(7, 3, 11),
    releases=2,
    control_releases=1,
    reference_size=0,
    past_releases=0,
    first_epoch=0,
    seed=4,
)
IDENTITY = identity_of(PLAN, "a1b2")


@pytest.fixture
def folder(tmp_path):
    return RunFolder(tmp_path / "run")


@pytest.fixture
def begun(folder):
    folder.begin(IDENTITY, {})
    return folder


@pytest.fixture
def small(traces, tmp_path):
    """A small choice, and the file of its traces."""
    path = tmp_path / "traces.parquet"
    traces.save(path)
    options = AuditOptions.of(
        mechanisms=("raw", "suppress(k=1)"),
        group_size=10,
        attacks="likelihood-ratio",
        targets=3,
        releases=4,
    )
    return path, options


def strict(path):
    """Read JSON that holds neither NaN nor infinity."""

    def refuse(word):
        raise AssertionError(f"{path} holds {word}")

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


def content(path):
    if path.is_file():
        return path.read_bytes()
    return {
        str(one.relative_to(path)): one.read_bytes() if one.is_file() else None
        for one in sorted(path.rglob("*"))
    }


def task_scores(task, score=0.0):
    common = {"setting": str(task.scheme), "attack": "likelihood-ratio", "target": task.number}
    common |= {"score": score, "threshold": 0.0, "seconds": 0.1, "visits": 3}
    common |= {"uniqueness": 0.5, "ceiling": 0.9}
    rows = [
        {**common, "release": 0, "label": True, "control": False},
        {**common, "release": 1, "label": False, "control": False},
        {**common, "release": 0, "label": True, "control": True},
    ]
    return TaskScores(pl.DataFrame(rows, schema=SCHEMA))


class TestManifest:
    def test_says_what_decides_the_scores(self, begun):
        manifest = strict(begun.path / "manifest.json")
        assert manifest["plan"] == PLAN.to_json()
        assert manifest["traces"] == "a1b2"
        assert set(manifest["versions"]) == {"whosthere", "numba", "numpy", "scipy"}
        assert {"format", "begun", "machine", "python"} <= set(manifest)

    def test_beginning_again_changes_nothing(self, begun):
        before = content(begun.path)
        begun.check(IDENTITY)
        begun.begin(identity_of(PLAN, "a1b2"), {})
        assert content(begun.path) == before

    def test_what_readers_must_know_is_added_to_an_older_one(self, begun):
        known = {"targets_chosen": {"how": "by hand"}, "cautions": ["Beware."]}
        before = strict(begun.path / "manifest.json")
        begun.begin(IDENTITY, known)
        assert strict(begun.path / "manifest.json") == before | known

    def test_knows_how_often_it_was_judged(self, folder):
        """The same scores are one look; whatever differs in them is the next."""
        assert folder.look_at(PLAN) == Look(1)
        folder.begin(IDENTITY, {})
        larger = replace(PLAN, targets=(*PLAN.targets, 9))
        seen = [
            (PLAN, ()),
            (PLAN, PLAN.tasks[:1]),
            (larger, ()),
            (replace(larger, releases=PLAN.releases + 2), ()),
            (larger.with_releases_of(PLAN.attacks[0], PLAN.releases + 2), ()),
        ]
        for look, (plan, failed) in enumerate(seen, 1):
            assert folder.look_at(plan, failed) == Look(look)
            assert folder.look_at(plan, failed, note=True) == Look(look)
            assert folder.look_at(*seen[0], note=True) == Look(1)
        # The controls are about the audit, and no verdict rests on how many there are.
        assert folder.look_at(replace(PLAN, control_releases=PLAN.control_releases + 2)) == Look(1)
        assert len(strict(folder.path / "manifest.json")["looks"]) == len(seen)
        folder.begin(IDENTITY, {})
        assert folder.look_at(PLAN, PLAN.tasks[1:2]) == Look(len(seen) + 1)

    def test_an_empty_folder_will_do(self, folder):
        folder.path.mkdir()
        folder.begin(IDENTITY, {})
        assert strict(folder.path / "manifest.json")

    def test_a_folder_that_was_only_locked_will_do(self, folder):
        with only_one(folder.path):
            pass
        folder.begin(IDENTITY, {})

    def test_a_manifest_that_was_half_written_is_no_hindrance(self, folder):
        folder.path.mkdir()
        (folder.path / ".manifest.json.0a1b2c3d.part").write_text('{"plan"')
        folder.begin(IDENTITY, {})


def test_as_long_as_nothing_is_done_the_plan_may_change(begun):
    """As after a first try whose tasks all failed."""
    (begun.path / "tasks").mkdir()
    changed = IDENTITY | {"plan": PLAN.to_json() | {"seed": 5}}
    begun.check(changed)
    begun.begin(changed, {})
    assert begun.manifest["plan"]["seed"] == 5
    with pytest.raises(FileError, match="other traces"):
        begun.check(changed | {"traces": "ffff"})
    begun.write_task(PLAN, PLAN.tasks[0], task_scores(PLAN.tasks[0]))
    with pytest.raises(FileError, match="seed 5 then, 4 now"):
        begun.check(IDENTITY)


class TestRefusals:
    @pytest.fixture
    def begun(self, begun):
        """Let one task be done."""
        begun.write_task(PLAN, PLAN.tasks[0], task_scores(PLAN.tasks[0]))
        return begun

    @pytest.fixture
    def refused(self, folder):
        """Return the message of a refusal that must leave the folder as it is."""

        def run(identity=IDENTITY):
            before = content(folder.path)
            with pytest.raises(FileError) as error:
                folder.check(identity)
            with pytest.raises(FileError):
                folder.begin(identity, {})
            assert content(folder.path) == before
            assert str(folder.path) in str(error.value)
            assert "name a new folder" in str(error.value).lower()
            return str(error.value)

        return run

    @pytest.mark.parametrize(
        ("part", "value"),
        [
            ("seed", 5),
            ("releases", 4),
            ("control_releases", 2),
            ("targets", [7, 3]),
            ("targets", [3, 7, 11]),
            ("contests", {"raw, m=5": ["knock-knock"]}),
            # Files of tasks are named by their order.
            ("contests", dict(reversed(PLAN.to_json()["contests"].items()))),
            ("code", {"mine": "0123456789abcdef"}),
            ("reference_size", 1),
            ("past_releases", 4),
            ("first_epoch", 24),
        ],
    )
    def test_another_plan(self, begun, refused, part, value):
        message = refused(IDENTITY | {"plan": PLAN.to_json() | {part: value}})
        assert "another plan" in message
        assert part in message

    def test_both_values_are_shown(self, begun, refused):
        message = refused(IDENTITY | {"plan": PLAN.to_json() | {"seed": 5}})
        assert "seed 4 then, 5 now" in message

    def test_who_the_targets_are_is_not_shown(self, begun, refused):
        for targets, said in (
            ([3, 7, 11], "targets chosen differently"),
            ([1544, 1360], "targets chosen differently"),
            ([7, 3], "targets: 3 then, 2 now"),
            ([7, 3, 11, 1544], "targets: 3 then, 4 now"),
        ):
            message = refused(IDENTITY | {"plan": PLAN.to_json() | {"targets": targets}})
            assert said in message
            assert not any(f"{row}," in message for row in (7, 3, 1544))

    def test_other_traces(self, begun, refused):
        assert "other traces" in refused(IDENTITY | {"traces": "ffff"})

    @pytest.mark.parametrize("name", ["whosthere", "numpy"])
    def test_other_software(self, begun, refused, monkeypatch, name):
        if name == "whosthere":
            monkeypatch.setattr(manifest, "__version__", "99.0")
        else:
            monkeypatch.setattr(manifest, "version", lambda _: "99.0")
        message = refused(identity_of(PLAN, "a1b2"))
        assert "other software" in message
        assert name in message
        assert "99.0" in message

    def test_a_folder_of_others(self, folder, refused):
        folder.path.mkdir()
        (folder.path / "thesis.tex").write_text("years of work")
        assert "not the folder of an audit" in refused()

    def test_a_file(self, folder, refused):
        folder.path.write_text("mine")
        refused()

    @pytest.mark.parametrize("text", ["", "{", "[1]", "null", "\x00\xff"])
    def test_a_damaged_manifest(self, folder, refused, text):
        folder.path.mkdir()
        (folder.path / "manifest.json").write_bytes(text.encode("latin-1"))
        refused()

    @pytest.mark.parametrize(
        "damage",
        [
            {"traces": None},
            {"plan": {}},
            {"versions": {}},
        ],
    )
    def test_a_manifest_of_another_shape(self, folder, begun, refused, damage):
        good = IDENTITY | {"format": FORMAT_VERSION, "looks": []}
        write_json(folder.path / "manifest.json", good)
        folder.check(IDENTITY)
        write_json(folder.path / "manifest.json", good | damage)
        refused()

    @pytest.mark.parametrize("found", [FORMAT_VERSION - 1, FORMAT_VERSION + 1, None, "2"])
    def test_another_format(self, folder, refused, found):
        folder.path.mkdir()
        write_json(folder.path / "manifest.json", IDENTITY | {"format": found})
        assert "another format" in refused()

    def test_nothing_is_run_in_a_refused_folder(self, small, tmp_path):
        out = tmp_path / "theirs"
        out.mkdir()
        (out / "notes.txt").write_text("mine")
        before = content(out)
        with pytest.raises(FileError, match="theirs"):
            prepare_audit(*small, out)
        assert content(out) == before

    def test_nothing_is_run_in_a_folder_that_became_somebody_elses(self, small, tmp_path):
        out = tmp_path / "theirs"
        prepared = prepare_audit(*small, out)
        out.mkdir()
        (out / "notes.txt").write_text("mine")
        before = content(out)

        class Nobody(ThisProcess):
            def do(self, job, tasks):
                raise AssertionError("work was begun")

        with pytest.raises(FileError, match="theirs"):
            prepared.run(workers=Nobody())
        assert content(out) == before

    def test_a_folder_that_cannot_be_made(self, small, tmp_path):
        (tmp_path / "notes.txt").write_text("mine")
        with pytest.raises(FileError, match=r"notes\.txt"):
            prepare_audit(*small, tmp_path / "notes.txt" / "run")

    def test_preparing_writes_nothing(self, small, tmp_path):
        before = content(tmp_path)
        prepared = prepare_audit(*small, tmp_path / "run", estimate=True)
        assert prepared.left == prepared.plan.tasks
        assert content(tmp_path) == before


HOLD = """
import sys
from pathlib import Path
from whosthere.auditing.manifest import only_one
with only_one(Path(sys.argv[1])):
    print("in", flush=True)
    sys.stdin.read()
"""


class TestAlone:
    def test_one_process_at_a_time(self, begun):
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(begun.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with holder:
            try:
                assert holder.stdout.readline() == "in\n"
                before = content(begun.path)
                with pytest.raises(FileError, match="at work") as error, only_one(begun.path):
                    raise AssertionError("two at work")
                assert str(begun.path) in str(error.value)
                assert "Wait" in str(error.value)
                assert content(begun.path) == before
            finally:
                holder.kill()
        # A killed process leaves no trace.
        with only_one(begun.path):
            pass

    def test_freed_by_an_error(self, begun):
        with pytest.raises(RuntimeError), only_one(begun.path):
            raise RuntimeError
        with only_one(begun.path):
            pass


class TestTasks:
    def test_finished_are_those_that_were_written(self, begun):
        assert begun.finished(PLAN) == set()
        done = set(PLAN.tasks[::2])
        for task in done:
            begun.write_task(PLAN, task, task_scores(task))
        assert begun.finished(PLAN) == done

    def test_half_written_ones_are_not_there(self, begun):
        task = PLAN.tasks[0]
        begun.write_task(PLAN, task, task_scores(task))
        (whole,) = (begun.path / "tasks").iterdir()
        half = whole.with_name(f".{whole.name}.0a1b2c3d.part")
        half.write_bytes(whole.read_bytes()[:50])
        whole.unlink()
        assert begun.finished(PLAN) == set()
        kept = begun.collect(PLAN)
        assert (kept.tests.height, kept.controls.height) == (0, 0)

    def test_order_of_writing_leaves_no_trace(self, tmp_path):
        collected = []
        for seed in range(3):
            folder = RunFolder(tmp_path / str(seed))
            folder.begin(IDENTITY, {})
            tasks = list(PLAN.tasks)
            random.Random(seed).shuffle(tasks)
            for task in tasks:
                folder.write_task(PLAN, task, task_scores(task, score=task.number))
            collected.append(folder.collect(PLAN))
        for other in collected[1:]:
            assert collected[0].tests.equals(other.tests)
            assert collected[0].controls.equals(other.controls)

    def test_tests_and_controls_are_kept_apart(self, begun):
        for task in PLAN.tasks:
            begun.write_task(PLAN, task, task_scores(task))
        kept = begun.collect(PLAN)
        tests, controls = kept.tests, kept.controls
        assert tests.height == 2 * len(PLAN.tasks)
        assert controls.height == len(PLAN.tasks)
        assert tests.columns == controls.columns == list(SCHEMA)[:-1]
        settings = list(dict.fromkeys(tests["setting"].to_list()))
        assert settings == [str(setting) for setting in PLAN.settings]

    def test_writing_a_task_again_replaces_it(self, begun):
        task = PLAN.tasks[0]
        for score in (1.0, 2.0):
            begun.write_task(PLAN, task, task_scores(task, score))
        assert begun.collect(PLAN).tests["score"].to_list() == [2.0, 2.0]


class TestRun:
    def test_all_that_is_written_is_strict_json(self, small, tmp_path):
        out = tmp_path / "run"
        result = prepare_audit(*small, out).run()
        findings = strict(out / "findings.json")
        assert findings == [finding.to_json() for finding in result.findings]
        # With so few releases, some metrics have no value: null, not NaN.
        assert any(finding["estimate"] is None for finding in findings)
        verdicts = strict(out / "verdicts.json")
        settings = list(result.plan["contests"])
        assert [one["setting"] for one in verdicts["verdicts"]] == settings
        assert verdicts["failed_tasks"] == 0
        assert strict(out / "manifest.json") == result.manifest

    def test_what_is_written_is_what_is_returned(self, small, tmp_path):
        out = tmp_path / "run"
        result = prepare_audit(*small, out).run()
        assert pl.read_parquet(out / "scores.parquet").equals(result.scores)
        assert pl.read_parquet(out / "targets.parquet").equals(result.targets)
        controls = pl.read_parquet(out / "control.parquet")
        assert controls.columns == result.scores.columns
        assert controls.height == result.n_tasks * result.plan["control_releases"]
        kept = {path.name for path in out.iterdir()} - {"tasks", LOCK}
        assert kept | {store.KEPT} == set(store.RESULTS) - {f"{one}.parquet" for one in TABLES}

    def test_what_is_done_is_not_done_again(self, small, tmp_path):
        out = tmp_path / "run"
        first = prepare_audit(*small, out).run()
        seen, progress = [], []

        class Watched(ThisProcess):
            def do(self, job, tasks):
                seen.extend(tasks)
                return super().do(job, tasks)

        target = first.plan["targets"][1]
        (out / "tasks" / f"target-{target}-scheme-1.parquet").unlink()
        prepared = prepare_audit(*small, out)
        again = prepared.run(workers=Watched(), on_progress=lambda *step: progress.append(step))
        assert [(task.number, task.scheme) for task in seen] == [(target, prepared.plan.schemes[1])]
        assert prepared.left == tuple(seen)
        assert progress == [("tasks", 5, 6), ("tasks", 6, 6)]
        assert (again.findings, again.verdicts) == (first.findings, first.verdicts)
        assert again.scores.drop("seconds").equals(first.scores.drop("seconds"))
        assert prepare_audit(*small, out).left == ()

    def test_changed_traces_are_refused(self, small, traces, tmp_path):
        path, _ = small
        out = tmp_path / "run"
        prepare_audit(*small, out).run()
        before = content(out)
        traces.select(range(39, -1, -1)).save(path, force=True)
        with pytest.raises(FileError, match="other traces, or the traces have changed"):
            prepare_audit(*small, out)
        assert content(out) == before

    def test_a_damaged_task_is_named(self, small, tmp_path):
        out = tmp_path / "run"
        prepare_audit(*small, out).run()
        damaged = next((out / "tasks").iterdir())
        damaged.write_bytes(b"PAR1")
        with pytest.raises(FileError, match=damaged.name) as error:
            prepare_audit(*small, out).run()
        assert "delete it, and repeat the command" in str(error.value)
        damaged.unlink()
        assert not prepare_audit(*small, out).run().failed_tasks

    def test_without_a_control(self, small, tmp_path):
        path, options = small
        out = tmp_path / "run"
        result = prepare_audit(path, replace(options, control_releases=0), out).run()
        assert result.trusted is None
        assert strict(out / "verdicts.json")["trusted"] is None
        controls = pl.read_parquet(out / "control.parquet")
        assert controls.height == 0
        assert controls.schema == result.scores.schema
        assert result.verdicts


class TestJson:
    @pytest.mark.parametrize("value", [float("nan"), float("inf")])
    def test_no_number_that_is_none(self, tmp_path, value):
        path = tmp_path / "one.json"
        write_json(path, {"a": 1})
        with pytest.raises(ValueError, match="Out of range"):
            write_json(path, {"a": value})
        assert json_object(path) == {"a": 1}
        assert {one.name for one in tmp_path.iterdir()} == {"one.json", CHECKSUMS}
