"""Published tables written in many messy ways: what is read is the clean original, or refused.

Each table is made clean, then written as people publish tables, and imported with the options that
its user would know of, sometimes without one of them. What is read must equal the clean table, or
the command must refuse it. The only difference that a note may explain is that a region without
any count is missing.

Always the same tables: 40, and 2,000 with --full. How they ended is printed.
"""

import csv
import gzip
import io
import itertools
import random
import sys
from collections import Counter
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest
import typer

from whosthere.cli.main import app, main
from whosthere.privacy.release import Release

COMMAND = typer.main.get_command(app)
NAMES = ["North", "South", "Zürich", "Zone 1", "Zone 01", "007", "7", "A, B", 'St. "Ann"', "x",
         "n/a zone", "Saint-Étienne", "=SUM(A1)", "Total area", "12:00 Club", "2024"]  # fmt: skip
DASHES = ("-", "\u2013")
ZONES = ["UTC", "Europe/Rome", "America/Bogota", "Asia/Kolkata"]
LENGTHS = {"15min": 15, "30min": 30, "1h": 60, "6h": 360, "1d": 1440}
USUAL = {
    "region": ["region", "Zone", "AREA", "cell_id", "Location"],
    "time": ["time", "Timestamp", "epoch_start", "date_time"],
    "date": ["date", "DATE", "day"],
    "clock": ["hour", "time", "Time of day"],
    "count": ["count", "people", "Users", "n", "Visits"],
}
UNUSUAL = {"region": "Gemeinde", "time": "Beginn", "date": "Tag", "clock": "Uhr", "count": "Anzahl"}
TITLES = [
    "Table 3",
    "Visitors by zone and hour, May 2024",
    "unit: people; see notes",
    "",
    "Confidential",
]
NOTES = ["Source: Statistics Office", "(a) Estimated", "* fewer than 10", "", "© 2024", "Notes:"]


class Table:
    """A clean table, and a way to write it."""

    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.zone = rng.choice(ZONES)
        self.length = rng.choice(list(LENGTHS))
        self.hides = rng.choice([0, 0, 4, 9, 14])
        # Some days around changes of the clock in Rome.
        days = [date(2024, 3, 30), date(2024, 3, 31), date(2024, 10, 27)]
        days += [date(2024, m, rng.randint(1, 28)) for m in (1, 5, 12) for _ in range(3)]
        self.day = rng.choice(days)
        step = timedelta(minutes=LENGTHS[self.length])
        one_day = rng.random() < 0.5 and self.length != "1d"
        n = rng.randint(2, int(timedelta(days=1) / step)) if one_day else rng.randint(2, 40)
        first = 0 if not one_day else rng.randint(0, int(timedelta(days=1) / step) - n)
        midnight = datetime.combine(self.day, time(), ZoneInfo(self.zone))
        # On the clock where epochs are days, which may have 23 hours; else as time passes.
        self.times = [
            midnight + (first + i) * step
            if self.length == "1d"
            else (midnight.astimezone(UTC) + (first + i) * step).astimezone(ZoneInfo(self.zone))
            for i in range(n)
        ]
        one_day &= all(moment.date() == self.day for moment in self.times)
        self.one_day = one_day
        self.regions = rng.sample(NAMES, rng.randint(1, 5))
        most = rng.choice([12, 40, 1_500, 20_000, 1_200_000 * (not self.hides)])
        self.counts = {
            (region, i): rng.choice([0, rng.randint(0, most), rng.randint(0, 20)])
            for region in self.regions
            for i in range(n)
        }
        # Hours in which nobody was anywhere, which a table may leave out if it has spans.
        self.empty = set(rng.choice([(), (), range(1, n, 2), rng.sample(range(n), n // 3)]))
        self.counts |= {(region, i): 0 for region in self.regions for i in self.empty}
        self.options = ["-m", max(*self.counts.values(), 50), "-M"]
        self.options += [f"suppress(k={self.hides}, shown=mark)" if self.hides else "raw"]

    def hidden(self, count):
        return 0 < count <= self.hides

    @property
    def truth(self):
        """What a reader must find: all counts but 0, None where they are withheld."""
        return {
            (region, self.times[i].astimezone(UTC)): None
            if self.hidden(count) or not count
            else count
            for (region, i), count in self.counts.items()
            if count
        }

    def write(self, folder, workbook):
        """Write the table in some messy way; return the file, and fill in the options."""
        rng = self.rng
        self.kind = rng.choice(["csv", "csv", "csv", "csv.gz", "tsv", "xlsx", "xlsx", "parquet"])
        self.typed = self.kind in {"xlsx", "parquet"}
        self.told = rng.random() < 0.8
        self.names = {role: rng.choice(names) for role, names in USUAL.items()}
        if rng.random() < 0.2:
            self.names = dict(UNUSUAL)
        self._choose_numbers()
        rows = self._wide() if rng.random() < 0.5 else self._long()
        return self._save(rows, folder, workbook)

    def tell(self, *options, always=False):
        """Give options, as a user would who knows the table, or one who does not."""
        if always or self.told or self.rng.random() < 0.7:
            self.options += options

    def _choose_numbers(self):
        rng = self.rng
        self.mark = rng.choice([f"<{self.hides + 1}", f"< {self.hides + 1}", f"\u2264{self.hides}",
                                "*", "suppressed", "x", "(c)"])  # fmt: skip
        if self.hides and self.mark in {"x", "(c)"}:
            self.tell("--withheld", self.mark)
        self.thousands = rng.choice(["", "", "", ",", ".", " ", "\u202f", "'"])
        if self.thousands in {",", "."}:
            self.tell("--thousands", self.thousands)
        self.zero = rng.choice(["0", "0", "", "0.0", *DASHES])
        if self.zero in DASHES:
            self.tell("--zero", self.zero)

    def _number(self, count):
        if self.hidden(count):
            return self.mark
        if not count:
            return self.zero
        if self.thousands:
            return f"{count:,}".replace(",", self.thousands)
        if self.kind == "xlsx":
            return count
        return str(count)

    def _moments(self):
        """Return a function from moments to cells of a time, in one column or two."""
        rng = self.rng
        forms = ["iso", "offset", "unix", "day-first", "month-first", "pattern", "date and clock"]
        forms += ["clock"] * 3 * self.one_day + ["cells", "two cells"] * (self.kind == "xlsx")
        self.form = rng.choice(forms)
        if self.form not in {"offset", "unix"}:
            self.options += ["--tz", self.zone]
        elif rng.random() < 0.5:
            self.tell("--tz", self.zone)
        if self.form in {"day-first", "month-first"}:
            self.tell("--time-format", self.form)
        if self.form == "pattern":
            self.options += ["--time-format", "%Y%m%d%H%M"]
        if self.form == "clock":
            self.tell("--date", self.times[0].date().isoformat())
        clocks = ["%H:%M", "%H:%M", "%I:%M %p", "H", "Hh", "Hh-Hh", "%H:%M-%H:%M", "H-H"]
        self.clock = rng.choice(clocks)
        return {
            "iso": lambda t: t.strftime(rng.choice(["%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S"])),
            "offset": lambda t: t.isoformat(),
            "unix": lambda t: str(int(t.timestamp())),
            "day-first": lambda t: t.strftime("%d/%m/%Y %H:%M"),
            "month-first": lambda t: t.strftime("%m/%d/%Y %H:%M"),
            "pattern": lambda t: t.strftime("%Y%m%d%H%M"),
            "cells": lambda t: t.replace(tzinfo=None),
        }.get(self.form)

    @property
    def listed(self):
        """Which epochs the table names."""
        form = self.clock if LENGTHS[self.length] % 60 == 0 or "M" in self.clock else ""
        spans = "-" in form and self.form in {"clock", "date and clock"}
        return [i for i in range(len(self.times)) if not (spans and i in self.empty)]

    def _clock(self, moment):
        end = moment + timedelta(minutes=LENGTHS[self.length])
        whole = LENGTHS[self.length] % 60 == 0
        until = 24 if end.date() > moment.date() and not end.hour else end.hour
        forms = {
            "H": f"{moment.hour}",
            "Hh": f"{moment.hour}h",
            "Hh-Hh": f"{moment.hour}h-{until}h",
            "H-H": f"{moment.hour}-{until}",
            "%I:%M %p": f"{moment:%I:%M %p}",
            "%H:%M-%H:%M": f"{moment:%H:%M} - {until:02}:{end:%M}",
        }
        form = self.clock if whole or "M" in self.clock else "%H:%M"
        return forms.get(form, f"{moment:%H:%M}")

    def _long(self):
        rng = self.rng
        written = self._moments()
        if written is not None:
            times, cells = ["time"], lambda t: [written(t)]
        elif self.form == "clock":
            times, cells = ["clock"], lambda t: [self._clock(t)]
        elif self.form == "two cells":
            times, cells = ["date", "clock"], lambda t: [t.date(), time(t.hour, t.minute)]
        else:
            day = rng.choice(["%Y-%m-%d", "%d.%m.%Y", "%Y%m%d"])
            times, cells = ["date", "clock"], lambda t: [t.strftime(day), self._clock(t)]
            if day == "%d.%m.%Y":
                self.tell("--time-format", "day-first")
        columns = ["region", *times, "count"]
        rng.shuffle(columns)
        rows = []
        for region, i in itertools.product(self.regions, self.listed):
            row = dict(zip(times, cells(self.times[i]), strict=True))
            row |= {"region": region, "count": self._number(self.counts[region, i])}
            rows.append([row[name] for name in columns])
        if rng.random() < 0.4 and self.day.month not in {3, 10}:
            rng.shuffle(rows)
        if rng.random() < 0.2:
            at = columns.index("region")
            total = ["Total" if i == at else row for i, row in enumerate(rows[0])]
            rows.append(total)
        if rng.random() < 0.3:
            columns.append("remark")
            rows = [[*row, rng.choice(["", "ok", "a"])] for row in rows]
        self.first = columns.index("region")
        if self.names == UNUSUAL:
            for role in columns[:]:
                if role != "remark":
                    option = "time" if role == "clock" else role
                    self.tell(f"--{option}-column", UNUSUAL[role])
        return [[self.names.get(one, one) for one in columns], *rows]

    def _wide(self):
        rng = self.rng
        written = self._moments()
        if written is None and self.form != "clock":
            self.form, written = "iso", lambda t: f"{t:%Y-%m-%d %H:%M}"
        if self.form == "clock":
            written = self._clock
        if self.form in {"unix", "pattern"} or rng.random() < 0.1:
            self.tell("--wide", always=True)
        heads = [written(self.times[i]) for i in self.listed]
        rows = [
            [region, *(self._number(self.counts[region, i]) for i in self.listed)]
            for region in self.regions
        ]
        head = [self.names["region"], *heads]
        if self.names == UNUSUAL:
            self.tell("--region-column", UNUSUAL["region"])
        if rng.random() < 0.2:
            head.append("Total")
            rows = [[*row, "99"] for row in rows]
        if rng.random() < 0.2:
            rows.append(["Total", *["99"] * (len(head) - 1)])
        self.first = 0
        return [head, *rows]

    def _save(self, rows, folder, workbook):
        rng = self.rng
        if rng.random() < 0.3:
            self.tell("--epoch", self.length)
        if self.kind == "parquet" and len(set(rows[0])) < len(rows[0]):
            self.kind = "csv"
        path = folder / f"t.{self.kind}"
        if self.kind == "parquet":
            head, *body = rows
            texts = [[None if cell == "" else str(cell) for cell in row] for row in body]
            pl.DataFrame(texts, schema=dict.fromkeys(map(str, head), pl.String), orient="row"
                         ).write_parquet(path)  # fmt: skip
            return path
        width = len(rows[0])
        above = (
            [[title] for title in rng.sample(TITLES, rng.randint(1, 3))]
            if rng.random() < 0.4
            else []
        )
        below = [[*[""] * self.first, note] for note in rng.sample(NOTES, rng.randint(0, 3))]
        if above:
            self.tell("--header-row", len(above) + 1)
        if rng.random() < 0.2:
            rows.insert(rng.randint(1, len(rows)), [""] * width)
        rows = [*above, *rows, *below]
        if self.kind == "xlsx":
            cells = [[_cell(cell, rng) for cell in row] for row in rows]
            sheets = {"May": cells}
            if rng.random() < 0.4:
                sheets = {"About": [["Read me"]], **sheets}
                self.tell("--sheet", rng.choice(["May", "2"]))
            workbook(path, sheets)
            return path
        text = io.StringIO()
        writer = csv.writer(
            text,
            delimiter="\t" if self.kind == "tsv" else rng.choice(",;|"),
            quoting=rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
            lineterminator=rng.choice(["\n", "\r\n"]),
        )
        writer.writerows(rows)
        if rng.random() < 0.1:
            text.write("Source: own, 2024, see www.example.org; all rights\n")
        encoding = rng.choice(["utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1250"])
        try:
            raw = text.getvalue().encode(encoding)
        except UnicodeEncodeError:
            encoding, raw = "utf-8", text.getvalue().encode()
        if encoding == "cp1250":
            self.tell("--encoding", encoding, always=True)
        path.write_bytes(gzip.compress(raw) if self.kind.endswith("gz") else raw)
        return path


def _cell(value, rng):
    """Return what a workbook has for a text: nothing, or a number where it is one."""
    if value == "":
        return None
    is_whole = isinstance(value, str) and value.isdecimal() and not value.startswith("0")
    return int(value) if is_whole and rng.random() < 0.9 else value


def run(*arguments):
    """Run a command in this process; return its exit code, output and errors."""
    sys.argv = ["whosthere", *map(str, arguments)]
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


def found_in(release):
    starts = [moment.replace(tzinfo=UTC) for moment in release.epochs.starts.tolist()]
    found = {}
    for i, region in enumerate(release.regions.ids):
        for j in np.flatnonzero(release.values[i]):
            hidden = release.withheld is not None and release.withheld[i, j]
            found[region, starts[j]] = None if hidden else int(release.values[i, j])
    return found


@pytest.mark.slow
def test_what_is_imported_is_the_clean_table(tmp_path, monkeypatch, workbook, full, capsys):
    pytest.importorskip("fastexcel", reason="the extra sheets is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setattr(typer.main, "get_command", lambda _: COMMAND)
    ends = Counter()
    for seed in range(2_000 if full else 40):
        table = Table(seed)
        path = table.write(tmp_path, workbook)
        code = run("import", path.name, *table.options, "-o", "out.parquet", "--force")
        said, error = capsys.readouterr()
        about = (seed, path.name, table.options, said, error)
        assert code in {0, 2}, about
        assert "Traceback" not in error, about
        if code:
            assert "`" not in error, about
            ends["refused, told" if table.told else "refused"] += 1
            path.unlink()
            continue
        release = Release.load("out.parquet")
        assert found_in(release) == table.truth, about
        minutes = release.epochs.length // timedelta(minutes=1)
        assert minutes == LENGTHS[table.length], about
        missing = set(table.regions) - set(release.regions.ids)
        assert set(release.regions.ids) <= set(table.regions), about
        if missing:
            assert "without any count" in said, about
            assert not any(region in missing for region, _ in table.truth), about
        ends["noted" if missing else "equal"] += 1
        path.unlink()
    with capsys.disabled():
        print(f"\nfuzzed imports: {dict(ends)}")
    assert ends["equal"] > 0.5 * ends.total()
