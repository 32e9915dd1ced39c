"""Commands in this process, as a user would type them."""

import sys
import zipfile
from datetime import date, datetime, time
from xml.sax.saxutils import escape

import pytest

from whosthere.cli import console
from whosthere.cli.main import main


@pytest.fixture
def whosthere(monkeypatch, capsys):
    """Run a command in this process; return its exit code, output and errors."""
    # Whoever imported it first decided how wide it is.
    for stream in (console.out, console.err):
        monkeypatch.setattr(stream, "width", 200)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["whosthere", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, *capsys.readouterr()

    return run


@pytest.fixture
def files(folder):
    """Give a function that returns the content of everything in the test's folder."""
    return lambda: {
        path: path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))
    }


@pytest.fixture
def refused(whosthere, files):
    """Run a command that must be refused without touching a file; return the message."""

    def run(*arguments):
        before = files()
        code, out, err = whosthere(*arguments)
        assert code == 2
        assert out == ""
        assert err.startswith("error: ")
        assert err.count("error:") == 1
        assert err.count("\n") == 1
        assert "Traceback" not in err
        assert files() == before
        return err

    return run


@pytest.fixture(scope="session")
def workbook():
    """Give a function that writes the rows of several sheets as XLSX."""
    return _write_workbook


_XML = "http://schemas.openxmlformats.org"
_MAIN = f"{_XML}/spreadsheetml/2006/main"
_OFFICE = f"{_XML}/officeDocument/2006/relationships"
_PACKAGE = f"{_XML}/package/2006"
_KINDS = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_DAY_0 = datetime(1899, 12, 30)


def _write_workbook(path, sheets):
    numbers = range(1, len(sheets) + 1)
    parts = "".join(
        f'<Override PartName="/xl/worksheets/sheet{i}.xml" ContentType="{_KINDS}.worksheet+xml"/>'
        for i in numbers
    )
    listed = "".join(
        f'<sheet name="{escape(name)}" sheetId="{i}" r:id="r{i}"/>'
        for i, name in enumerate(sheets, 1)
    )
    related = "".join(
        f'<Relationship Id="r{i}" Type="{_OFFICE}/worksheet" Target="worksheets/sheet{i}.xml"/>'
        for i in numbers
    )
    styles = "".join(f'<xf numFmtId="{number}"/>' for number in (0, 22, 14, 20))
    files = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override '
        f'PartName="/xl/workbook.xml" ContentType="{_KINDS}.sheet.main+xml"/><Override '
        f'PartName="/xl/styles.xml" ContentType="{_KINDS}.styles+xml"/>{parts}</Types>',
        "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" '
        f'Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{listed}'
        "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">{related}'
        f'<Relationship Id="s" Type="{_OFFICE}/styles" Target="styles.xml"/></Relationships>',
        "xl/styles.xml": f'<styleSheet xmlns="{_MAIN}"><cellXfs>{styles}</cellXfs></styleSheet>',
    }
    for i, rows in enumerate(sheets.values(), 1):
        body = "".join(
            f'<row r="{r}">{"".join(_cell(v, c, r) for c, v in enumerate(row))}</row>'
            for r, row in enumerate(rows, 1)
        )
        files[f"xl/worksheets/sheet{i}.xml"] = (
            f'<worksheet xmlns="{_MAIN}"><sheetData>{body}</sheetData></worksheet>'
        )
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, f'<?xml version="1.0" encoding="UTF-8"?>{text}')


def _cell(value, column, row):
    letters = ""
    while column >= 0:
        column, letter = divmod(column, 26)
        letters, column = chr(65 + letter) + letters, column - 1
    at = f'r="{letters}{row}"'
    match value:
        case None:
            return ""
        case str():
            return f'<c {at} t="inlineStr"><is><t>{escape(value)}</t></is></c>'
        case datetime():
            return f'<c {at} s="1"><v>{(value - _DAY_0).total_seconds() / 86_400!r}</v></c>'
        case date():
            return f'<c {at} s="2"><v>{(value - _DAY_0.date()).days}</v></c>'
        case time():
            return f'<c {at} s="3"><v>{(value.hour * 60 + value.minute) / 1440!r}</v></c>'
    return f"<c {at}><v>{value}</v></c>"
