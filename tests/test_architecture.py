"""The layout is the architecture: imports only point down the rooms of docs/architecture.md."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import whosthere

ROOT = Path(__file__).parent.parent


def test_imports_only_point_down():
    checked = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


def test_public_names_are_there_and_few():
    for name in whosthere.__all__:
        assert getattr(whosthere, name) is not None
    assert len(whosthere.__all__) == len(set(whosthere.__all__)) <= 32
    assert set(whosthere.__all__) == _names_in_the_stub()
    assert set(whosthere.__all__) <= set(dir(whosthere))


def _names_in_the_stub():
    """Return the names that type checkers and editors see."""
    stub = ast.parse((ROOT / "src/whosthere/__init__.pyi").read_text(encoding="utf-8"))
    # A type checker takes a name that is imported for a public one only if it is `A as A`.
    return {alias.asname for node in stub.body for alias in node.names}


@pytest.mark.parametrize("module", ["attacks", "knowledge", "mechanisms", "regions", "results"])
def test_public_modules_hand_on_all_that_they_import(module):
    """Type checkers take a name that is imported for a public one only if it is `A as A`."""
    tree = ast.parse((ROOT / f"src/whosthere/{module}.py").read_text(encoding="utf-8"))
    _, *imports = tree.body
    for name in (name for statement in imports for name in statement.names):
        assert name.asname == name.name
        assert getattr(getattr(whosthere, module), name.name) is not None


def test_functions_stay_functions_whatever_else_is_imported():
    """A module of the same name would take the place of a function once it is imported."""
    code = (
        "import importlib, pkgutil, types, whosthere\n"
        "import whosthere.auditing.run, whosthere.privacy.publish, whosthere.privacy.utility\n"
        "import whosthere.adversary.attacks, whosthere.search.search\n"
        "import whosthere.reporting.report, whosthere.cli.views\n"
        "for found in pkgutil.iter_modules(whosthere.__path__):\n"
        "    if found.name != '__main__': importlib.import_module(f'whosthere.{found.name}')\n"
        "names = ('audit', 'attack', 'publish', 'recommend', 'simulate', 'utility',\n"
        "         'read_records', 'report', 'load', 'reproduce')\n"
        "for name in names:\n"
        "    found = getattr(whosthere, name)\n"
        "    assert isinstance(found, types.FunctionType), found\n"
        "for name in ('attacks', 'knowledge', 'mechanisms', 'regions', 'results'):\n"
        "    assert isinstance(getattr(whosthere, name), types.ModuleType)\n"
    )
    _run(code)


HEAVY = {
    *("numpy", "polars", "pyarrow", "scipy", "numba", "pydantic", "loky", "sklearn", "matplotlib"),
    *("pandas", "distributed", "IPython", "jinja2"),
}
HELP = (
    "import sys; sys.argv = ['whosthere', *{arguments}, '--help']\n"
    "from whosthere.cli.main import main\n"
    "try: main()\n"
    "except SystemExit as ended: assert not ended.code\n"
)


@pytest.mark.parametrize(
    "code",
    ["import whosthere", "import whosthere; dir(whosthere); whosthere.__version__"]
    + [HELP.format(arguments=given) for given in ([], ["audit"], ["attack"], ["attacks"])],
    ids=["import", "dir", "help", "help audit", "help attack", "help attacks"],
)
def test_what_answers_at_once_loads_nothing_heavy(code):
    # For the help of a single command, typer itself looks at pydantic.
    heavy = HEAVY - {"pydantic"} if "*['a" in code else HEAVY
    _run(f"{code}\nimport sys\nheavy = {heavy} & set(sys.modules)\nassert not heavy, heavy\n")


def _run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_public_methods_say_what_they_are_for_unless_they_override():
    classes = {}
    for path in (ROOT / "src/whosthere").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                classes.setdefault(node.name, []).append(node)

    def inherited(node):
        names = {getattr(base, "id", getattr(base, "attr", None)) for base in node.bases}
        above = [parent for name in names for parent in classes.get(name, []) if parent is not node]
        return {item.name for parent in above for item in parent.body if _is_method(item)}.union(
            *map(inherited, above)
        )

    silent = [
        f"{node.name}.{item.name}"
        for found in classes.values()
        for node in found
        if not node.name.startswith("_")
        for item in node.body
        if _is_method(item)
        and not item.name.startswith("_")
        and ast.get_docstring(item) is None
        and item.name not in inherited(node)
    ]
    assert not silent


def _is_method(node):
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
