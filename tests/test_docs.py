"""Every example of the documentation, run in the order in which a reader meets it.

A block of code with a name after its language, as in ```` ```toml plan.toml ````, is written to a
file of that name. A block after ``<!-- not run: WHY -->`` is left out, and commands after
``<!-- exit code 2 -->`` must end with it. A block that names files under ``benchmarks/`` takes
hours, so that its commands are only parsed. Without --full, people, targets and releases are fewer
than what the page says, and commands after ``<!-- with --full: WHY -->`` are only parsed.
"""

import json
import re
import shlex
import shutil
import sys
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import pytest
import typer

import whosthere as wt
from whosthere.auditing.options import Scale
from whosthere.auditing.plan_file import read_plan_file
from whosthere.auditing.policy import Policy
from whosthere.auditing.result import AuditResult
from whosthere.auditing.verdict import Verdict
from whosthere.cli.main import app, main
from whosthere.data.cities import simulate
from whosthere.inference.finding import Finding

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MEASURED = [ROOT / "CHANGELOG.md", *sorted((ROOT / "benchmarks").glob("*.md"))]
GENERATED = {"cdr-like", "mibici", "milan-like", "tdrive"}  # written by whosthere paper
LONGEST = 15_000
FENCE = re.compile(r"```(\w*) *(.*)")
MARK = re.compile(r"<!-- (not run|with --full|exit code 2)(: \S.*)? -->")
PROMPT = re.compile(r"(\$ )?(?=whosthere )")
INLINE = re.compile(r"`(whosthere [^`]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
COMMANDS = typer.main.get_command(app).commands
# What examples have at most, by their options.
MOST = {"users": 1100, "group-size": 200, "targets": 3, "releases": 4, "past-releases": 10}
NUMBER = re.compile(rf"\b({'|'.join(MOST).replace('-', '[-_]')})(=| )(\d[\d_]*)")


def smaller(text):
    """Return commands or code with fewer people, targets and releases."""

    def limited(found):
        name, sign, number = found.groups()
        return f"{name}{sign}{min(int(number), MOST[name.replace('_', '-')])}"

    return NUMBER.sub(limited, text)


def name_of(page):
    return page.relative_to(ROOT).as_posix()


pages = pytest.mark.parametrize("page", PAGES, ids=name_of)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; `line` is that of its fence, from 1."""

    language: str
    name: str
    text: str
    line: int
    mark: str

    @property
    def is_measurement(self):
        return "benchmarks/" in self.text

    def commands(self):
        """Return the arguments of every `whosthere` command."""
        lines = iter(self.text.splitlines())
        for line in lines:
            prompt = PROMPT.match(line)
            if prompt:
                command = line[prompt.end() :]
                while command.endswith("\\"):
                    command = f"{command[:-1]} {next(lines)}"
                yield shlex.split(command, comments=True)[1:]


def blocks_of(page):
    lines = page.read_text(encoding="utf-8").splitlines()
    start = None
    for i, line in enumerate(lines):
        if not line.startswith("```"):
            continue
        if start is None:
            start = i
            continue
        language, name = FENCE.fullmatch(lines[start]).groups()
        mark = MARK.fullmatch(lines[start - 1]) if start else None
        text = "\n".join(lines[start + 1 : i]) + "\n"
        yield Block(language, name, text, start + 1, mark[1] if mark else "")
        start = None
    assert start is None, f"{page.name}:{start + 1} opens a block that is not closed"


def parse(arguments):
    """Parse a command without running it; anything wrong is raised."""
    name, *rest = arguments
    COMMANDS[name].make_context(name, rest)


class Reader:
    """Somebody who does all that a page says, in one folder, one namespace and one shell."""

    def __init__(self, folder, monkeypatch, capsys, *, full):
        self.folder, self.monkeypatch, self.capsys = folder, monkeypatch, capsys
        self.full = full
        self.prepared = {path.name for path in folder.iterdir()}
        self.namespace = {"__name__": "__main__"}

    def do(self, block, place):
        if block.name:
            (self.folder / block.name).write_text(block.text, encoding="utf-8")
        if block.language == "toml":
            self.read_toml(block)
        elif block.language == "json":
            json.loads(block.text)
        elif block.language == "python":
            # So that a traceback shows the line of the page.
            text = block.text if self.full else smaller(block.text)
            code = compile("\n" * block.line + text, place, "exec")
            exec(code, self.namespace)
            audits = [one for one in self.namespace.values() if isinstance(one, AuditResult)]
            assert not any(one.failed_tasks for one in audits), place
        for arguments in block.commands():
            parse([*arguments])
            if not (block.is_measurement or (block.mark == "with --full" and not self.full)):
                self.run(arguments, place, 2 if block.mark == "exit code 2" else 0)

    def read_toml(self, block):
        path = self.folder / (block.name or "unnamed.toml")
        path.write_text(block.text, encoding="utf-8")
        (Policy.read if "limits" in tomllib.loads(block.text) else read_plan_file)(path)

    def run(self, arguments, place, code):
        self._make_room(arguments)
        if not self.full:
            arguments = shlex.split(smaller(shlex.join(arguments)))
        self.monkeypatch.setattr(sys, "argv", ["whosthere", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = self.capsys.readouterr()
        told = f"{place}: {shlex.join(arguments)}\n{said.out}{said.err}"
        assert (ended.value.code or 0) == code, told

    def _make_room(self, arguments):
        """Take away what was prepared once the page itself makes it."""
        made = set(arguments) & self.prepared
        for name in made if "--out" in arguments else ():
            if arguments[arguments.index("--out") + 1] == name:
                path = self.folder / name
                shutil.rmtree(path) if path.is_dir() else path.unlink()
                self.prepared.discard(name)


@pytest.fixture(scope="module")
def city(tmp_path_factory, full):
    """A folder with a small city and its traces, under the names that pages use."""
    folder = tmp_path_factory.mktemp("city")
    users = 2400 if full else 1100
    city = simulate("milan-like", seed=7, users=users, regions=16, days=2)
    city.write(folder / "city")
    city.traces().save(folder / "traces.parquet")
    return folder


@pytest.fixture
def reader(city, tmp_path, monkeypatch, capsys, full):
    # The scale that is used where nothing is said, so that examples need not give numbers.
    small = {"quick": Scale(targets=2, releases=4), "paper": Scale(targets=2, releases=6)}
    monkeypatch.setattr("whosthere.auditing.options.SCALES", small)
    monkeypatch.setenv("COLUMNS", "200")
    # No processes to start; nothing else changes.
    monkeypatch.setattr("whosthere.auditing.work.usable_processors", lambda: 1)
    monkeypatch.setattr("whosthere.kernels.threads.usable_processors", lambda: 1)
    if not full:
        monkeypatch.setattr("whosthere.search.tester._LEAST_RELEASES_TO_SEARCH", 4)
    shutil.copytree(city, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return Reader(tmp_path, monkeypatch, capsys, full=full)


@pytest.mark.slow
@pages
def test_examples_run(page, reader):
    for block in blocks_of(page):
        if block.mark != "not run":
            reader.do(block, f"{name_of(page)}:{block.line}")


@pages
def test_commands_within_sentences_exist(page):
    for text in INLINE.findall(page.read_text(encoding="utf-8")):
        name, *rest = shlex.split(text)[1:]
        if name.startswith("-"):
            continue
        assert name in COMMANDS, text
        options = {option for one in COMMANDS[name].params for option in one.opts}
        assert {word for word in rest if word.startswith("-")} <= options, text


def found_in_pages(pattern):
    """Return the lines, which are paragraphs, that match in any page."""
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    return [line for text in texts for line in text.splitlines() if re.search(pattern, line)]


def test_the_files_of_an_audit_are_described_as_they_are():
    blocks = [one for page in PAGES for one in blocks_of(page) if one.language == "json"]
    examples = [json.loads(one.text) for one in blocks]
    (example,) = [one for one in examples if "metric" in one and "estimate" in one]
    assert set(example) == {field.name for field in fields(Finding)}
    (paragraph,) = found_in_pages("^`verdicts.json` holds")
    assert {field.name for field in fields(Verdict)} <= set(re.findall(r"`(\w+)`", paragraph))


def test_every_default_limit_is_named():
    words = ("mean AUC", "AUC over everybody", "1 % ", "0.9 or more|all but exposed")
    assert len(words) == len(Policy.default().limits)
    text = (ROOT / "docs" / "how-to" / "set-limits.md").read_text("utf-8")
    (paragraph,) = re.findall("^.*[Ff]our default limits.*$", text, re.MULTILINE)
    assert all(re.search(one, paragraph) for one in words)


def anchors_of(page):
    """Return what a link can point to, as GitHub makes it of the headings."""
    text = page.read_text(encoding="utf-8")
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES + MEASURED, ids=name_of)
def test_links_lead_somewhere(page):
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        if "://" in path:
            continue
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), link
        assert not anchor or anchor in anchors_of(found), link


@pytest.mark.parametrize("page", PAGES + MEASURED, ids=name_of)
def test_no_page_is_long(page):
    assert page.parent.name in GENERATED or page.stat().st_size <= LONGEST


def test_the_architecture_names_files_that_are_there():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[\w-]+/)*[\w.-]+(?:\.py|\.pyi|\.toml|/))`", text))
    roots = (ROOT / "src" / "whosthere", ROOT)
    missing = [one for one in named if not any((root / one).exists() for root in roots)]
    assert not missing, missing


def test_the_example_with_pytorch_fits_what_is_said_beside_it(monkeypatch):
    """Without PyTorch: whatever it is asked for stands for itself."""
    monkeypatch.setitem(sys.modules, "torch", MagicMock())
    [block] = [one for one in blocks_of(ROOT / "docs/how-to/study.md") if "torch" in one.text]
    namespace = {"__name__": "torch_example", "wt": wt}
    exec(block.text, namespace)
    assert str(namespace["mine"]) == "knock-knock(classifier=Net(hidden=20))"
    net = namespace["mine"].classifier._fresh(seed=7)
    net.fit(np.zeros((4, 3)), np.array([True, False, True, False]))
    sys.modules["torch"].manual_seed.assert_called_once_with(7)
    assert net.decision_function(np.zeros((2, 3))) is not None
