"""The benchmark of everybody at scale, on a small scale: killed, resumed, and nothing changed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "everybody_scale.py"
SMALL = (
    "--people=800",
    "--include=0.5",
    "--regions=40",
    "--releases=20",
    "--kill-at=2",
    "--compare",
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")


@pytest.mark.full
def test_an_audit_of_everybody_that_is_killed_finds_the_same(tmp_path):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path), *SMALL], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    found = json.loads(done.stdout)
    first, second = found["audits"]
    assert first["killed"]
    assert not second["killed"]
    # Four blocks of five releases, and one of controls.
    assert (first["tasks_done"], second["tasks_done"]) == (2, 5)
    assert found["same_as_uninterrupted"]
    assert 0.1 < second["gb_main"] <= second["gb_together"] + 0.5 < 4
    everybody = found["findings"]["likelihood-ratio: pooled_auc"]
    assert 0.5 < everybody["low"] <= everybody["estimate"] <= everybody["high"] < 1
