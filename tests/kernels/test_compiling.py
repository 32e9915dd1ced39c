"""Kernels hold nothing that the compiler takes long for: whoever waits for it sees nothing yet.

What was measured, processor time on a machine of two cores: an array assigned to a slice 1.3 s, the
first time in a process; a search in an array 0.2 s; a part compiled anew for each whole number
that is written out where it is called, 0.03 to 2.6 s.
"""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import whosthere
import whosthere.kernels
from whosthere.kernels.compiling import said_once

SOURCES = sorted(Path(whosthere.kernels.__file__).parent.glob("*.py"))
COMPILED = {"njit", "kernel", "part"}
# Numbers and types, what makes an array, and what takes a number.
QUICK = {"NDArray", "bool_", "float32", "float64", "inf", "int32", "int64", "uint16", "uint32"}
QUICK |= {"uint64", "floating", "integer", "empty", "full", "ones", "zeros"}
QUICK |= {"abs", "exp", "expm1", "isfinite", "isinf", "log", "log1p", "sign", "sqrt"}
QUICK |= {"int8", "unsignedinteger", "complex128"}


def compiled():
    for path in SOURCES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and COMPILED & {
                name.id
                for decorator in node.decorator_list
                for name in ast.walk(decorator)
                if isinstance(name, ast.Name)
            }:
                yield pytest.param(node, id=f"{path.stem}.{node.name}")


FUNCTIONS = list(compiled())
NAMES = {function.values[0].name for function in FUNCTIONS}


def is_part_of_array(target):
    return isinstance(target, ast.Subscript) and any(
        isinstance(node, ast.Slice) for node in ast.walk(target.slice)
    )


@pytest.mark.parametrize("function", FUNCTIONS)
def test_kernels_hold_nothing_that_compiles_slowly(function):
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "np":
            assert node.attr in QUICK, f"line {node.lineno}: np.{node.attr}"
        if isinstance(node, ast.Assign) and any(map(is_part_of_array, node.targets)):
            assert isinstance(node.value, ast.Constant), f"line {node.lineno}: an array assigned"
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) in NAMES:
            numbers = [one for one in node.args if isinstance(one, ast.Constant | ast.UnaryOp)]
            whole = [one for one in numbers if isinstance(ast.literal_eval(one), int)]
            assert not whole, f"line {node.lineno}: a whole number handed to {node.func.id}"


def test_all_kernels_are_looked_at():
    assert len(FUNCTIONS) > 50


def test_compiling_is_said_once():
    said = []
    with said_once(said.append):
        for _ in range(2):
            numba.njit(lambda number: number + 1)(1)
    assert said == ["Compiling for this machine, once: about 10 s ..."]
    with said_once(said.append):
        pass
    numba.njit(lambda number: number + 2)(1)
    assert len(said) == 1


READ_ONLY = """
import os, tempfile
import numpy as np
from whosthere.kernels.compiling import said_once
from whosthere.kernels.rows import group_by_row
with said_once(print):
    group_by_row(np.array([1, 0], np.int32), np.array([1, 2], np.int32), 2)
[folder] = os.listdir(tempfile.gettempdir())
assert os.path.join(tempfile.gettempdir(), folder) == os.environ["NUMBA_CACHE_DIR"]
assert os.stat(os.environ["NUMBA_CACHE_DIR"]).st_mode & 0o777 == 0o700
"""


def test_an_installation_that_cannot_be_written_to(tmp_path):
    """A temporary folder keeps what is compiled, and somebody says so."""
    package = Path(whosthere.__file__).parent
    copy = tmp_path / "installed" / package.name
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    # Folders that nobody can make, not even an administrator.
    (copy / "kernels" / "__pycache__").write_text("")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    nowhere = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR"), "/dev/null/none")
    done = subprocess.run(
        [sys.executable, "-c", READ_ONLY],
        env=os.environ | nowhere | {"PYTHONPATH": str(copy.parent), "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Nothing that is compiled can be kept; set NUMBA_CACHE_DIR" in done.stdout
    assert list(temporary.iterdir()) == []


def test_the_demo_shows_what_a_newcomer_waits_for():
    """Nothing that learns, which took most of two minutes; both times are printed apart."""
    demo = Path(__file__).parents[2].joinpath("Makefile").read_text(encoding="utf-8")
    assert "zero-knowledge" not in demo
    assert "The installation took" in demo
    assert "The demo took" in demo
