"""Reading TOML files: what is given comes back checked, and every mistake with its place."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from datetime import datetime
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from whosthere.auditing.toml import Several, TomlTable, read_toml
from whosthere.errors import FileError, InputError


class Part(TomlTable):
    size: int = 0
    group_sizes: Several[int] = ()


class Options(TomlTable):
    city: str = "here"
    targets: int = 50
    level: float = 0.95
    positive: Annotated[int, Field(gt=0)] = 1
    attacks: Several[str] = ()
    seeds: Several[int] = ()
    limits: dict[str, float] | None = None
    start: datetime | None = None
    blocks: Several[Part] = ()


@pytest.fixture
def read(tmp_path):
    def read(text):
        path = tmp_path / "plan.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_toml(path, Options)

    return read


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("# nothing but a comment", {}),
        ('city = "milan"', {"city": "milan"}),
        ("targets = 7", {"targets": 7}),
        ("targets = 50", {"targets": 50}),
        ("level = 0.9", {"level": 0.9}),
        ("level = 1", {"level": 1.0}),
        ('attacks = ["a", "b"]', {"attacks": ["a", "b"]}),
        ('attacks = "a"', {"attacks": ["a"]}),
        ("attacks = []", {"attacks": []}),
        ("seeds = 1", {"seeds": [1]}),
        ("start = 2024-05-01T10:00:00", {"start": datetime(2024, 5, 1, 10)}),
        ("[limits]\nauc = 1\neps = 2.5", {"limits": {"auc": 1.0, "eps": 2.5}}),
        ("limits.auc = 0.6", {"limits": {"auc": 0.6}}),
        ("[[blocks]]\nsize = 2\n[[blocks]]", {"blocks": [{"size": 2}, {}]}),
        ("[blocks]\ngroup_sizes = 2", {"blocks": [{"group_sizes": [2]}]}),
        (b"\xef\xbb\xbftargets = 7\r\nlevel = 0.5\r\n", {"targets": 7, "level": 0.5}),
        ('city = "Zürich"', {"city": "Zürich"}),
    ],
)
def test_only_what_is_given_comes_back(read, text, expected):
    found = read(text).model_dump(exclude_unset=True)
    assert found == expected
    assert {key: type(value) for key, value in found.items()} == {
        key: type(value) for key, value in expected.items()
    }


@pytest.mark.parametrize(
    ("text", "place", "found"),
    [
        ("city = 3", "city should be", "found 3"),
        ('targets = "ten"', "targets should be", "found 'ten'"),
        ("targets = true", "targets should be", "found true"),
        ("targets = 2.0", "targets should be", "found 2.0"),
        ("targets = [1]", "targets should be", "found a list"),
        ("[targets]", "targets should be", "found a table"),
        ("level = false", "level should be", "found false"),
        pytest.param(f"level = 1{'0' * 400}", "level should be", "found 1000", id="too large"),
        ("level = 2024-05-01", "level should be", "found 2024-05-01"),
        ("level = 10:00:00", "level should be", "found 10:00:00"),
        ("positive = 0", "positive should be greater than 0", "found 0"),
        ('attacks = ["a", 2]', "attacks, number 2 should be", "found 2"),
        ("attacks = 2", "attacks, number 1 should be", "found 2"),
        ("attacks = {}", "attacks, number 1 should be", "found a table"),
        ("seeds = [true]", "seeds, number 1 should be", "found true"),
        ("limits = 0.6", "limits should be", "found 0.6"),
        ('limits.auc = "x"', "limits.auc should be", "found 'x'"),
        ("limits.auc.b = 1", "limits.auc should be", "found a table"),
        ('start = "May"', "start should be", "found 'May'"),
        ("start = 10:00:00", "start should be", "found 10:00:00"),
        ("blocks = [{}, 3]", "blocks, number 2 should be", "found 3"),
        ("[[blocks]]\n[[blocks]]\nsize = 'x'", "blocks, number 2, size should be", "found 'x'"),
        ("blocks.group_sizes = [1, 2.5]", "number 1, group_sizes, number 2 should", "found 2.5"),
        ("target = 3", "there is no key 'target'", "Did you mean 'targets'? Known: city, targets"),
        ("[plan]\ntargets = 3", "there is no key 'plan'", "Known: city, targets"),
        ("Targets = 3", "there is no key 'Targets'", "Did you mean 'targets'?"),
        ("blocks.group_size = 1", "'group_size' in blocks, number 1", "'group_sizes'? Known: size"),
        ("targets = ", "is not valid TOML: Invalid value (at end of document)", "key = value"),
        ("targets = 1\ncity = milan", "(at line 2, column 8)", "text in double quotes"),
        ("targets = 1\ntargets = 2\n", "Cannot overwrite a value (at line 2", "key = value"),
        pytest.param(f"targets = {'1' * 5000}", "is not valid TOML", "key =", id="digits"),
        pytest.param(f"seeds = {'[' * 10_000}", "is not valid TOML", "key =", id="brackets"),
        pytest.param(f"city{'.a' * 10_000} = 1", "city should be", "found a table", id="dots"),
    ],
)
def test_mistakes_name_file_place_and_what_was_found(read, tmp_path, text, place, found):
    with pytest.raises(InputError) as error:
        read(text)
    message = str(error.value)
    assert message.startswith(f"{tmp_path / 'plan.toml'}: ")
    assert place in message
    assert found in message
    assert len(message.splitlines()) == 1


def test_long_values_are_cut(read):
    with pytest.raises(InputError, match="xxx") as error:
        read(f'targets = "{"x" * 10_000}"')
    assert len(error.value.problem) < 200


def test_other_encodings(read):
    with pytest.raises(FileError, match=r"is not text in UTF-8\. Save it as"):
        read('city = "Zürich"'.encode("latin-1"))


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("none.toml", "does not exist"),
        ("", "is a folder"),
        ("x" * 5000, r"cannot be used \(File name too long\)\."),
    ],
)
@pytest.mark.parametrize("kind", [str, lambda path: path])
def test_no_file(tmp_path, name, problem, kind):
    with pytest.raises(FileError, match=problem):
        read_toml(kind(tmp_path / name), Options)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_forbidden_file(tmp_path):
    path = tmp_path / "plan.toml"
    path.touch(mode=0o000)
    with pytest.raises(FileError, match="permission denied"):
        read_toml(path, Options)


@given(st.binary(max_size=40) | st.text("tars=[]\"'1.{}\n#", max_size=40).map(str.encode))
def test_whatever_the_file_holds(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_bytes(content)
    with suppress(InputError):
        assert isinstance(read_toml(path, Options), Options)


def test_pydantic_is_not_loaded_without_need():
    code = "import sys, whosthere, whosthere.cli.main; sys.exit('pydantic' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
