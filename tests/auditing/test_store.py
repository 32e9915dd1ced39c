"""The folder of an audit: begun once, continued by its equal, and refused to all others."""

import json
import random
import subprocess
import sys

import pyarrow as pa
import pytest

from whosthere.auditing import store
from whosthere.auditing.plan import Plan, PlanOptions, make_plan
from whosthere.auditing.run import run_audit
from whosthere.auditing.scores import SCHEMA
from whosthere.auditing.setting import Setting
from whosthere.auditing.store import RunFolder, identity_of, json_object, write_json
from whosthere.auditing.work import ThisProcess
from whosthere.errors import FileError
from whosthere.privacy.mechanism import Mechanism

PLAN = Plan(
    settings=tuple(
        Setting(Mechanism.parse(spec), m) for spec in ("raw", "suppress(k=1)") for m in (5, 9)
    ),
    attacks=("likelihood-ratio",),
    targets=(7, 3, 11),
    releases=2,
    control_releases=1,
    reference_size=0,
    seed=4,
)
IDENTITY = identity_of(PLAN, "a1b2")


@pytest.fixture
def folder(tmp_path):
    return RunFolder(tmp_path / "run")


@pytest.fixture
def begun(folder):
    folder.begin(IDENTITY)
    return folder


@pytest.fixture
def small(traces, tmp_path):
    """A small plan, and the file of its traces."""
    path = tmp_path / "traces.parquet"
    traces.save(path)
    options = PlanOptions(
        mechanisms=("raw", "suppress(k=1)"),
        group_sizes=(10,),
        attacks=("likelihood-ratio",),
        targets=3,
        releases=4,
    )
    return make_plan(options, traces), path


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


def unit_table(unit, score=0.0):
    common = {"setting": str(unit.setting), "attack": "likelihood-ratio", "target": unit.target}
    common |= {"score": score, "threshold": 0.0, "seconds": 0.1, "visits": 3}
    common |= {"uniqueness": 0.5, "ceiling": 0.9}
    rows = [
        {**common, "release": 0, "label": True, "control": False},
        {**common, "release": 1, "label": False, "control": False},
        {**common, "release": 0, "label": True, "control": True},
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


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
        begun.begin(identity_of(PLAN, "a1b2"))
        assert content(begun.path) == before

    def test_an_empty_folder_will_do(self, folder):
        folder.path.mkdir()
        folder.begin(IDENTITY)
        assert strict(folder.path / "manifest.json")

    def test_a_folder_that_was_only_locked_will_do(self, folder):
        with folder.alone():
            pass
        folder.begin(IDENTITY)

    def test_a_manifest_that_was_half_written_is_no_hindrance(self, folder):
        folder.path.mkdir()
        (folder.path / ".manifest.json.0a1b2c3d.part").write_text('{"plan"')
        folder.begin(IDENTITY)


class TestRefusals:
    @pytest.fixture
    def refused(self, folder):
        """Return the message of a refusal that must leave the folder as it is."""

        def run(identity=IDENTITY):
            before = content(folder.path)
            with pytest.raises(FileError) as error:
                folder.check(identity)
            with pytest.raises(FileError):
                folder.begin(identity)
            assert content(folder.path) == before
            assert str(folder.path) in str(error.value)
            assert "Name a new folder" in str(error.value)
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
            ("attacks", ["knock-knock"]),
            ("settings", ["raw, m=5"]),
            ("reference_size", 1),
        ],
    )
    def test_another_plan(self, begun, refused, part, value):
        message = refused(IDENTITY | {"plan": PLAN.to_json() | {part: value}})
        assert "another plan" in message
        assert part in message

    def test_both_values_are_shown(self, begun, refused):
        message = refused(IDENTITY | {"plan": PLAN.to_json() | {"seed": 5}})
        assert "seed 4 then, 5 now" in message

    def test_other_traces(self, begun, refused):
        assert "other traces" in refused(IDENTITY | {"traces": "ffff"})

    @pytest.mark.parametrize("name", ["whosthere", "numpy"])
    def test_other_software(self, begun, refused, monkeypatch, name):
        if name == "whosthere":
            monkeypatch.setattr(store, "__version__", "99.0")
        else:
            monkeypatch.setattr(store, "version", lambda _: "99.0")
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
            {"plan": None},
            {"plan": "raw"},
            {"versions": 3},
        ],
    )
    def test_a_manifest_of_another_shape(self, folder, refused, damage):
        folder.path.mkdir()
        write_json(folder.path / "manifest.json", IDENTITY | damage)
        refused()

    def test_nothing_is_run_in_a_refused_folder(self, small, tmp_path):
        plan, path = small
        out = tmp_path / "theirs"
        out.mkdir()
        (out / "notes.txt").write_text("mine")
        before = content(out)

        class Nobody(ThisProcess):
            def do(self, job, units):
                raise AssertionError("work was begun")

        with pytest.raises(FileError, match="theirs"):
            run_audit(plan, path, out, workers=Nobody())
        assert content(out) == before

    def test_a_folder_that_cannot_be_made(self, small, tmp_path):
        plan, path = small
        (tmp_path / "notes.txt").write_text("mine")
        with pytest.raises(FileError, match=r"notes\.txt"):
            run_audit(plan, path, tmp_path / "notes.txt" / "run")


HOLD = """
import sys
from pathlib import Path
from whosthere.auditing.store import RunFolder
with RunFolder(Path(sys.argv[1])).alone():
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
                with pytest.raises(FileError, match="at work") as error, begun.alone():
                    raise AssertionError("two at work")
                assert str(begun.path) in str(error.value)
                assert "Wait" in str(error.value)
                assert content(begun.path) == before
            finally:
                holder.kill()
        # A killed process leaves no trace.
        with begun.alone():
            pass

    def test_freed_by_an_error(self, begun):
        with pytest.raises(RuntimeError), begun.alone():
            raise RuntimeError
        with begun.alone():
            pass


class TestUnits:
    def test_finished_are_those_that_were_written(self, begun):
        assert begun.finished(PLAN) == set()
        done = set(PLAN.units[::2])
        for unit in done:
            begun.write_unit(PLAN, unit, unit_table(unit))
        assert begun.finished(PLAN) == done

    def test_half_written_ones_are_not_there(self, begun):
        unit = PLAN.units[0]
        begun.write_unit(PLAN, unit, unit_table(unit))
        (whole,) = (begun.path / "units").iterdir()
        half = whole.with_name(f".{whole.name}.0a1b2c3d.part")
        half.write_bytes(whole.read_bytes()[:50])
        whole.unlink()
        assert begun.finished(PLAN) == set()
        tests, controls = begun.collect(PLAN)
        assert (tests.num_rows, controls.num_rows) == (0, 0)

    def test_order_of_writing_leaves_no_trace(self, tmp_path):
        collected = []
        for seed in range(3):
            folder = RunFolder(tmp_path / str(seed))
            folder.begin(IDENTITY)
            units = list(PLAN.units)
            random.Random(seed).shuffle(units)
            for unit in units:
                folder.write_unit(PLAN, unit, unit_table(unit, score=unit.target))
            collected.append(folder.collect(PLAN))
        for other in collected[1:]:
            assert all(a.equals(b) for a, b in zip(collected[0], other, strict=True))

    def test_tests_and_controls_are_kept_apart(self, begun):
        for unit in PLAN.units:
            begun.write_unit(PLAN, unit, unit_table(unit))
        tests, controls = begun.collect(PLAN)
        assert tests.num_rows == 2 * len(PLAN.units)
        assert controls.num_rows == len(PLAN.units)
        assert tests.column_names == controls.column_names == SCHEMA.names[:-1]
        settings = list(dict.fromkeys(tests["setting"].to_pylist()))
        assert settings == [str(setting) for setting in PLAN.settings]

    def test_writing_a_unit_again_replaces_it(self, begun):
        unit = PLAN.units[0]
        for score in (1.0, 2.0):
            begun.write_unit(PLAN, unit, unit_table(unit, score))
        assert begun.collect(PLAN)[0]["score"].to_pylist() == [2.0, 2.0]


class TestRun:
    def test_all_that_is_written_is_strict_json(self, small, tmp_path):
        plan, path = small
        out = tmp_path / "run"
        result = run_audit(plan, path, out)
        findings = strict(out / "findings.json")
        assert findings == [finding.to_json() for finding in result.findings]
        # With so few releases, some metrics have no value: null, not NaN.
        assert any(finding["estimate"] is None for finding in findings)
        verdicts = strict(out / "verdicts.json")
        assert [one["setting"] for one in verdicts["verdicts"]] == list(map(str, plan.settings))
        assert verdicts["failed_units"] == 0
        assert strict(out / "manifest.json")["plan"] == plan.to_json()

    def test_what_is_done_is_not_done_again(self, small, tmp_path):
        plan, path = small
        out = tmp_path / "run"
        first = run_audit(plan, path, out)
        seen, progress = [], []

        class Watched(ThisProcess):
            def do(self, job, units):
                seen.extend(units)
                return super().do(job, units)

        gone = out / "units" / f"target-{plan.targets[1]}-setting-1.parquet"
        gone.unlink()
        again = run_audit(
            plan, path, out, workers=Watched(), on_progress=lambda *step: progress.append(step)
        )
        assert [(unit.target, unit.setting) for unit in seen] == [
            (plan.targets[1], plan.settings[1])
        ]
        assert progress == [(5, 6), (6, 6)]
        assert again == first

    def test_changed_traces_are_refused(self, small, traces, tmp_path):
        plan, path = small
        out = tmp_path / "run"
        run_audit(plan, path, out)
        before = content(out)
        traces.select(range(39, -1, -1)).save(path, force=True)
        with pytest.raises(FileError, match="other traces, or the traces have changed"):
            run_audit(plan, path, out)
        assert content(out) == before


class TestJson:
    @pytest.mark.parametrize("value", [float("nan"), float("inf")])
    def test_no_number_that_is_none(self, tmp_path, value):
        path = tmp_path / "one.json"
        write_json(path, {"a": 1})
        with pytest.raises(ValueError, match="Out of range"):
            write_json(path, {"a": value})
        assert json_object(path) == {"a": 1}
        assert [one.name for one in tmp_path.iterdir()] == ["one.json"]
