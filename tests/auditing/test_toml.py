"""Reading TOML files: what is given comes back checked, and every mistake is told how to fix."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from typing import Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whosthere.auditing.toml import checked_table
from whosthere.errors import FileError, InputError


@dataclass(frozen=True)
class Options:
    city: str = "here"
    targets: int = 50
    level: float = 0.95
    quick: bool = False
    attacks: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    budgets: tuple[float, ...] = ()
    limits: dict[str, float] | None = None
    group: int | None = None
    folder: Optional[str] = None  # noqa: UP045 - the old spelling must work too


@dataclass(frozen=True)
class Unsupported:
    pair: tuple[int, str]
    either: int | str | None
    anything: object


@pytest.fixture
def read(tmp_path):
    def read(text, kind=Options):
        path = tmp_path / "plan.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return checked_table(path, kind)

    return read


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("# nothing but a comment", {}),
        ('city = "milan"', {"city": "milan"}),
        ("targets = 7\nquick = true", {"targets": 7, "quick": True}),
        ("level = 0.9", {"level": 0.9}),
        ("level = 1", {"level": 1.0}),
        ('attacks = ["a", "b"]', {"attacks": ("a", "b")}),
        ('attacks = "a"', {"attacks": ("a",)}),
        ("attacks = []", {"attacks": ()}),
        ("seeds = [1, 2]", {"seeds": (1, 2)}),
        ("seeds = 1", {"seeds": (1,)}),
        ("budgets = [1, 2.5]", {"budgets": (1.0, 2.5)}),
        ("budgets = 2", {"budgets": (2.0,)}),
        ("group = 3", {"group": 3}),
        ('folder = "out"', {"folder": "out"}),
        ("[limits]\nauc = 1\neps = 2.5", {"limits": {"auc": 1.0, "eps": 2.5}}),
        ("limits.auc = 0.6", {"limits": {"auc": 0.6}}),
        (b"\xef\xbb\xbftargets = 7\r\ngroup = 3\r\n", {"targets": 7, "group": 3}),
        ('city = "Zürich"', {"city": "Zürich"}),
    ],
)
def test_only_what_is_given_comes_back(read, text, expected):
    found = read(text)
    assert found == expected
    assert [type(value) for value in found.values()] == [type(v) for v in expected.values()]


def test_derived_seeds_become_floats(read):
    found = read("level = 1\nbudgets = [1, 2]\nlimits.auc = 1")
    values = [found["level"], *found["budgets"], found["limits"]["auc"]]
    assert {type(value) for value in values} == {float}


@pytest.mark.parametrize(
    ("text", "problem", "fix"),
    [
        ("city = 3", "city is the number 3, not text", 'Write it like city = "some text".'),
        (
            'targets = "ten"',
            "targets is the text 'ten', not a whole number",
            "Write it like targets = 10.",
        ),
        ("targets = true", "targets is true, not a whole number", "targets = 10"),
        ("targets = 2.0", "targets is the number 2.0, not a whole number", "targets = 10"),
        ("targets = [1]", "targets is a list, not a whole number", "targets = 10"),
        ("level = false", "level is false, not a number", "level = 0.5"),
        pytest.param(f"level = 1{'0' * 400}", "not a number", "level = 0.5", id="too large"),
        ("level = 2024-05-01", "level is a date or time, not a number", "level = 0.5"),
        ("quick = 1", "quick is the number 1, not true or false", "quick = true"),
        ("[quick]", "quick is a table, not true or false", "quick = true"),
        (
            'attacks = ["a", 2]',
            "attacks, item 2, is the number 2, not text",
            'attacks = ["some text"]',
        ),
        ("attacks = 2", "attacks is the number 2, not a list of texts", 'attacks = ["some text"]'),
        ("seeds = [true]", "seeds, item 1, is true, not a whole number", "seeds = [10]"),
        ("seeds = 1.5", "seeds is the number 1.5, not a list of whole numbers", "seeds = [10]"),
        ("budgets = [[1]]", "budgets, item 1, is a list, not a number", "budgets = [0.5]"),
        ('group = "all"', "group is the text 'all', not a whole number", "group = 10"),
        ("folder = 1", "folder is the number 1, not text", "folder ="),
        ("limits = 0.6", "limits is the number 0.6, not a table of numbers", "{ name = 0.5 }"),
        ('limits.auc = "x"', "limits.auc is the text 'x', not a number", "limits.auc = 0.5"),
        ("limits.auc.b = 1", "limits.auc is a table, not a number", "limits.auc = 0.5"),
        ("target = 3", "there is no key 'target'", "Did you mean 'targets'? Known: city, targets"),
        ("[plan]\ntargets = 3", "there is no key 'plan'", "Known: city, targets"),
        ("Targets = 3", "there is no key 'Targets'", "Did you mean 'targets'?"),
        ("targets = ", "is not valid TOML: Invalid value (at end of document)", "key = value"),
        ("quick = true\ncity = milan", "(at line 2, column 8)", "text in double quotes"),
        ("targets = 1\ntargets = 2\n", "Cannot overwrite a value (at line 2", "key = value"),
        pytest.param(f"targets = {'1' * 5000}", "is not valid TOML", "key =", id="digits"),
        pytest.param(f"seeds = {'[' * 10_000}", "is not valid TOML", "key =", id="brackets"),
    ],
)
def test_mistakes_name_file_key_and_fix(read, tmp_path, text, problem, fix):
    with pytest.raises(InputError) as error:
        read(text)
    message = str(error.value)
    assert message.startswith(f"{tmp_path / 'plan.toml'}: ")
    assert problem in message
    assert fix in message
    assert len(message.splitlines()) == 1


def test_long_values_are_cut(read):
    with pytest.raises(InputError) as error:
        read(f'targets = "{"x" * 10_000}"')
    assert len(error.value.problem) < 150


def test_other_encodings(read):
    with pytest.raises(FileError, match=r"is not text in UTF-8\. Save it as"):
        read('city = "Zürich"'.encode("latin-1"))


def test_missing_file(tmp_path):
    with pytest.raises(FileError, match=r"none\.toml: does not exist"):
        checked_table(tmp_path / "none.toml", Options)


def test_folder(tmp_path):
    with pytest.raises(FileError, match="is a folder"):
        checked_table(tmp_path, Options)


def test_path_that_no_system_takes(tmp_path):
    with pytest.raises(FileError, match="cannot be read"):
        checked_table(tmp_path / ("x" * 5000), Options)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_forbidden_file(tmp_path):
    path = tmp_path / "plan.toml"
    path.touch(mode=0o000)
    with pytest.raises(FileError, match="permission denied"):
        checked_table(path, Options)


@pytest.mark.parametrize("text", ["pair = [1, 2]", "either = 1", "anything = 1"])
def test_unsupported_annotations_are_a_mistake_of_ours(read, text):
    with pytest.raises(TypeError):
        read(text, Unsupported)


@given(st.binary(max_size=40) | st.text("tars=[]\"'1.{}\n#", max_size=40).map(str.encode))
def test_whatever_the_file_holds(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_bytes(content)
    with suppress(InputError):
        assert Options(**checked_table(path, Options))
