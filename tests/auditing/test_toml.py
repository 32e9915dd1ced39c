"""Reading TOML files: what is given comes back checked, and every mistake says how to fix it."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from datetime import date, datetime
from typing import Annotated, Literal, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, ValidationError, field_validator

from whosthere.auditing.toml import Several, TomlTable, read_toml
from whosthere.errors import FileError, InputError


class Options(TomlTable):
    city: str = "here"
    targets: int = 50
    level: float = 0.95
    quick: bool = False
    attacks: Several[str] = ()
    seeds: Several[int] = ()
    budgets: Several[float] = ()
    limits: dict[str, float] | None = None
    group: int | None = None
    folder: Optional[str] = None  # noqa: UP045 - the old spelling must work too
    optional: Several[str] | None = None
    plain: tuple[int, ...] = ()
    scale: Literal["quick", "paper"] = "quick"
    start: datetime | date | None = None


class Block(TomlTable):
    size: int
    group_sizes: Several[int] = ()
    limits: dict[str, float] | None = None


class Blocks(TomlTable):
    blocks: tuple[Block, ...] = ()
    several: Several[Block] = ()
    one: Block | None = None


class Required(TomlTable):
    city: str
    attacks: Several[str]
    part: Block


class Plain(BaseModel):
    """A model of somebody who knows nothing of TomlTable."""

    targets: int = 0


class RequiredPair(TomlTable):
    pair: tuple[int, str]


class Ruled(TomlTable):
    """Rules and types that are not of the usual kind."""

    positive: Annotated[int, Field(gt=0)] = 1
    even: int = 0
    odd: int = 1
    either: int | str | None = None
    pair: tuple[int, str] | None = None

    @field_validator("even")
    @classmethod
    def _check_even(cls, value):
        if value % 2:
            raise InputError(f"{value} is not even", fix="Add 1")
        return value

    @field_validator("odd")
    @classmethod
    def _check_odd(cls, value):
        if value % 2 == 0:
            raise ValueError("must be odd")
        return value


@pytest.fixture
def read(tmp_path):
    def read(text, model=Options):
        path = tmp_path / "plan.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_toml(path, model)

    return read


def given_by(model):
    return {key: getattr(model, key) for key in model.model_fields_set}


def refused(read, text, model):
    with pytest.raises(InputError) as error:
        read(text, model)
    return error.value


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
        ('optional = "a"', {"optional": ("a",)}),
        ("plain = [1]", {"plain": (1,)}),
        ('scale = "paper"', {"scale": "paper"}),
        ("start = 2024-05-01", {"start": date(2024, 5, 1)}),
        ("start = 2024-05-01T10:00:00", {"start": datetime(2024, 5, 1, 10)}),
        ("[limits]\nauc = 1\neps = 2.5", {"limits": {"auc": 1.0, "eps": 2.5}}),
        ("limits.auc = 0.6", {"limits": {"auc": 0.6}}),
        (b"\xef\xbb\xbftargets = 7\r\ngroup = 3\r\n", {"targets": 7, "group": 3}),
        ('city = "Zürich"', {"city": "Zürich"}),
    ],
)
def test_only_what_is_given_comes_back(read, text, expected):
    found = given_by(read(text))
    assert found == expected
    assert {key: type(value) for key, value in found.items()} == {
        key: type(value) for key, value in expected.items()
    }


def test_defaults_stand_for_what_is_not_given(read):
    assert read("") == Options()
    assert read("targets = 50").model_fields_set == {"targets"}


def test_what_was_read_cannot_be_changed(read):
    with pytest.raises(ValidationError):
        read("targets = 7").targets = 8


def test_tables_are_strict_without_a_file_too():
    assert Options(attacks=["a", "b"]).attacks == ("a", "b")
    for mistake in ({"targets": "7"}, {"target": 7}):
        with pytest.raises(ValidationError):
            Options(**mistake)


def test_whole_numbers_become_floats(read):
    found = read("level = 1\nbudgets = [1, 2]\nlimits.auc = 1")
    values = [found.level, *found.budgets, found.limits["auc"]]
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
        ("level = 2024-05-01", "level is the date 2024-05-01, not a number", "level = 0.5"),
        ("level = 10:00:00", "level is the time 10:00:00, not a number", "level = 0.5"),
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
        (
            "optional = 3",
            "optional is the number 3, not a list of texts",
            'optional = ["some text"]',
        ),
        (
            "optional = [3]",
            "optional, item 1, is the number 3, not text",
            'optional = ["some text"]',
        ),
        ("attacks = {}", "attacks is a table, not a list of texts", 'attacks = ["some text"]'),
        ("attacks = [{}]", "attacks, item 1, is a table, not text", 'attacks = ["some text"]'),
        ("plain = 1", "plain is the number 1, not a list of whole numbers", "plain = [10]"),
        ('scale = "large"', "scale is the text 'large', not 'quick' or 'paper'", 'scale = "quick"'),
        ('start = "May"', "start is the text 'May', not a date", "start = 2024-05-31"),
        ("start = 10:00:00", "start is the time 10:00:00, not a date", "start = 2024-05-31"),
        ("target = 3", "there is no key 'target'", "Did you mean 'targets'? Known: city, targets"),
        ("[plan]\ntargets = 3", "there is no key 'plan'", "Known: city, targets"),
        ("Targets = 3", "there is no key 'Targets'", "Did you mean 'targets'?"),
        ("targets = ", "is not valid TOML: Invalid value (at end of document)", "key = value"),
        ("quick = true\ncity = milan", "(at line 2, column 8)", "text in double quotes"),
        ("targets = 1\ntargets = 2\n", "Cannot overwrite a value (at line 2", "key = value"),
        pytest.param(f"targets = {'1' * 5000}", "is not valid TOML", "key =", id="digits"),
        pytest.param(f"seeds = {'[' * 10_000}", "is not valid TOML", "key =", id="brackets"),
        pytest.param(f"city{'.a' * 10_000} = 1", "is not valid TOML", "key =", id="dots"),
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


@pytest.mark.parametrize(
    ("text", "problem", "fix"),
    [
        ("blocks = 3", "blocks is the number 3, not a list of tables", "Write it like [[blocks]]"),
        ("[blocks]", "blocks is a table, not a list of tables", "Write it like [[blocks]]"),
        (
            "blocks = [3]",
            "blocks, item 1, is the number 3, not a table",
            "Write it like [[blocks]]",
        ),
        ("one = 3", "one is the number 3, not a table", "Write it like [one]"),
        (
            "several = 3",
            "several is the number 3, not a list of tables",
            "Write it like [[several]]",
        ),
        (
            '[[blocks]]\nsize = 1\n[[blocks]]\nsize = "x"',
            "blocks, table 2, size is the text 'x', not a whole number",
            "Write it like size = 10",
        ),
        (
            "[[blocks]]\nsize = 1\n[[blocks]]\nsize = 1\ngroup_sizes = [1, 2.5]",
            "blocks, table 2, group_sizes, item 2, is the number 2.5, not a whole number",
            "Write it like group_sizes = [10]",
        ),
        (
            "[[blocks]]\nsize = 1\n[[blocks]]\nsize = 1\ngroup_sizes = 2.5",
            "blocks, table 2, group_sizes is the number 2.5, not a list of whole numbers",
            "Write it like group_sizes = [10]",
        ),
        (
            "[[blocks]]\nsize = 1\nlimits.auc = true",
            "blocks, table 1, limits.auc is true, not a number",
            "Write it like limits.auc = 0.5",
        ),
        (
            "[[blocks]]\nsize = 1\n[[blocks]]\nsize = 1\ngroup_size = 1",
            "there is no key 'group_size' in blocks, table 2",
            "Did you mean 'group_sizes'? Known: size, group_sizes, limits",
        ),
        (
            "[[blocks]]\ngroup_sizes = 1",
            "the key 'size' is missing in blocks, table 1",
            "Add a line such as size = 10",
        ),
        ("[one]\nsize = false", "one.size is false, not a whole number", "one.size = 10"),
        ("[one]", "the key 'size' is missing in one", "Add a line such as size = 10"),
        ("[one]\nsizes = 1", "there is no key 'sizes' in one", "Did you mean 'size'?"),
        ("[several]\nsize = 1.5", "several.size is the number 1.5, not a", "several.size = 10"),
    ],
)
def test_nested_tables_are_named_by_their_place(read, text, problem, fix):
    error = refused(read, text, Blocks)
    assert problem in error.problem
    assert fix in error.fix


def test_nested_tables(read):
    text = "several.size = 1\n[[blocks]]\nsize = 2\n[[blocks]]\nsize = 3\n[one]\nsize = 4"
    found = read(text, Blocks)
    assert found.several == (Block(size=1),)
    assert found.blocks == (Block(size=2), Block(size=3))
    assert found.one == Block(size=4)
    assert found.blocks[0].model_fields_set == {"size"}


@pytest.mark.parametrize(
    ("text", "problem", "fix"),
    [
        ("", "the key 'city' is missing", 'Add a line such as city = "some text"'),
        (
            'city = "x"',
            "the key 'attacks' is missing",
            'Add a line such as attacks = ["some text"]',
        ),
        ('city = "x"\nattacks = []', "the key 'part' is missing", "Add a line such as [part]"),
        # The misspelling explains what is missing, so it comes first.
        ('citi = "x"', "there is no key 'citi'", "Did you mean 'city'? Known: city, attacks, part"),
    ],
)
def test_missing_keys(read, text, problem, fix):
    error = refused(read, text, Required)
    assert (error.problem, error.fix) == (problem, fix)


@pytest.mark.parametrize(
    ("text", "problem", "fix"),
    [
        ("positive = 0", "positive is the number 0, but should be greater than 0", None),
        ("odd = 2", "odd is the number 2, but must be odd", None),
        ("even = 3", "3 is not even", "Add 1"),
        ("either = 1.5", "either is the number 1.5, but should be a valid integer", None),
        ("pair = [1, 2]", "pair, item 2, is the number 2, but should be a valid string", None),
    ],
)
def test_rules_of_a_model_are_reported_in_their_own_words(read, text, problem, fix):
    error = refused(read, text, Ruled)
    assert (error.problem, error.fix) == (problem, fix)


def test_missing_key_of_a_type_without_an_example(read):
    error = refused(read, "", RequiredPair)
    assert (error.problem, error.fix) == ("the key 'pair' is missing", None)


def test_other_models_are_read_strictly_too(read):
    assert read("targets = 3", Plain).targets == 3
    assert "not a whole number" in refused(read, 'targets = "3"', Plain).problem


def test_paths_as_text(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text("targets = 3")
    assert read_toml(str(path), Options) == read_toml(path, Options)
    with pytest.raises(FileError, match=r"none\.toml: does not exist"):
        read_toml(str(tmp_path / "none.toml"), Options)


def test_long_values_are_cut(read):
    with pytest.raises(InputError) as error:
        read(f'targets = "{"x" * 10_000}"')
    assert error.value.problem == f"targets is the text '{'x' * 60}...', not a whole number"
    with pytest.raises(InputError) as error:
        read(f'targets = "{"x" * 60}"')
    assert error.value.problem == f"targets is the text '{'x' * 60}', not a whole number"


def test_other_encodings(read):
    with pytest.raises(FileError, match=r"is not text in UTF-8\. Save it as"):
        read('city = "Zürich"'.encode("latin-1"))


def test_missing_file(tmp_path):
    with pytest.raises(FileError, match=r"none\.toml: does not exist"):
        read_toml(tmp_path / "none.toml", Options)


def test_folder(tmp_path):
    with pytest.raises(FileError, match="is a folder"):
        read_toml(tmp_path, Options)


def test_path_that_no_system_takes(tmp_path):
    with pytest.raises(FileError, match=r"cannot be used \(File name too long\)\."):
        read_toml(tmp_path / ("x" * 5000), Options)


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
