"""Clean records, written in messy ways: what is read means the same, or is refused or noted.

The same ones each time: 40 folders, and 2,000 with --full. What a folder should give is found by
Python's own csv module from the clean original, which no code of ours ever reads.
"""

import csv
import gzip
import io
import random
import re
import unicodedata
import zipfile
from collections import Counter
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import polars as pl
import pytest
import typer

from whosthere.cli.main import app
from whosthere.data.traces import Traces

COMMAND = typer.main.get_command(app)
ROME = ZoneInfo("Europe/Rome")
USERS = {
    "phones": lambda i: str(32470000000 + 7 * i),
    "numbers": lambda i: str(i + 3),
    "hashes": lambda i: f"{(i + 1) * 0x9E3779B97F4A7C15 % 2**64:016x}",
    "names": lambda i: f"Zoé {i}, née",
}
REGIONS = {
    "numbers": lambda i: str(101 + i),
    "names": lambda i: ("Évry", "Köln", "L'Aquila", "=A1", "a-b", "r0c1")[i],
    "pairs": lambda i: f"{7 + i // 3}-{100 + i}",
}


# The clean original, and what it says


def clean_records(rng):
    """Return the text of a CSV file: a few people on a few days, in two to six places."""
    start = datetime(2024, rng.choice([3, 5, 10]), rng.choice([1, 9, 26]), tzinfo=UTC)
    user, region = rng.choice(list(USERS.values())), rng.choice(list(REGIONS.values()))
    n_places = rng.randint(2, 6)
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["user", "time", "region", "lon", "lat"])
    for _ in range(rng.randint(20, 60)):
        place = rng.randrange(n_places)
        moment = start + timedelta(seconds=rng.randrange(5 * 86_400))
        row = [user(rng.randrange(8)), moment.isoformat(), region(place)]
        writer.writerow([*row, 9 + place / 8, 45 + place / 16])
    return out.getvalue()


def meaning(text):
    """Return who was where in which hour."""
    rows = csv.DictReader(io.StringIO(text))
    return {
        (
            row["user"],
            row["region"],
            datetime.fromisoformat(row["time"]).replace(minute=0, second=0),
        )
        for row in rows
    }


def plain(name):
    """Write an id such that forms of one are equal."""
    return unicodedata.normalize("NFC", name).strip().lower().lstrip("0")


def in_traces(traces):
    starts = [start.replace(tzinfo=UTC) for start in traces.epochs.starts.tolist()]
    n = traces.epochs.n
    return {
        (user, traces.regions.ids[cell // n], starts[cell % n])
        for row, user in enumerate(traces.users)
        for cell in traces.cells[traces.indptr[row] : traces.indptr[row + 1]].tolist()
    }


def as_meant(visits):
    """Return visits such that forms of one id are equal."""
    return {(plain(user), plain(region), hour) for user, region, hour in visits}


def same(found, expected):
    """Tell whether two readings mean the same, of as many people and places."""
    for role in (0, 1):
        if len({visit[role] for visit in found}) != len({visit[role] for visit in expected}):
            return False
    return as_meant(found) == as_meant(expected)


# The mess. Each has the words that may explain why something else was read, or nothing at all.


def local(pattern):
    return lambda moment: moment.astimezone(ROME).strftime(pattern)


DATE_AND_CLOCK = "date and clock"
NO_TIME = ("is not a time", "without a valid time")
TWICE = ("exists twice", "that exist twice")
ORDER = (*TWICE, "no other date decides")
BOTH_ORDERS = {"with the day first", "with the month first"}
# Each form of time: how it is written, whether it needs a zone, and such words.
TIMES = {
    "iso": (lambda moment: moment.isoformat(), False, ()),
    "zulu": (lambda moment: moment.strftime("%Y-%m-%d %H:%M:%SZ"), False, ()),
    "offset": (lambda moment: moment.astimezone(ROME).isoformat(), False, ()),
    "fraction": (lambda moment: moment.strftime("%Y%m%dT%H%M%S.123Z"), False, ()),
    "unix": (lambda moment: str(int(moment.timestamp())), False, ()),
    "milliseconds": (lambda moment: str(int(moment.timestamp() * 1000)), False, ()),
    "float": (lambda moment: f"{moment.timestamp():.1f}", False, ()),
    "rounded": (lambda moment: f"{moment.timestamp():.3E}", False, NO_TIME),
    "serial": (
        lambda moment: f"{moment.timestamp() / 86_400 + 25_569:.6f}",
        False,
        ("the times are numbers",),
    ),
    "digits": (lambda moment: moment.strftime("%Y%m%d%H%M%S"), False, ("read in two ways",)),
    "short year": (local("%d/%m/%y %H:%M"), True, NO_TIME),
    "naive": (local("%Y-%m-%dT%H:%M:%S"), True, TWICE),
    "slashes": (local("%Y/%m/%d %H:%M"), True, TWICE),
    "noon": (local("%Y-%m-%d %I:%M:%S %p"), True, TWICE),
    "day first": (local("%d.%m.%Y %H:%M:%S"), True, ORDER),
    "month first": (local("%m/%d/%Y %H:%M"), True, ORDER),
    DATE_AND_CLOCK: (local("%Y-%m-%d %H:%M"), True, TWICE),
}
NUMBERS = re.compile(r"\d+")
STRANGE = ("is not in the regions table", "in a region that is not in the table")
# Each form of ids: how one is written, what may come of it.
IDS = {
    "plain": (lambda name: name, ()),
    "float": (lambda name: f"{name}.0" if NUMBERS.fullmatch(name) else name, ()),
    "decimals": (lambda name: f"{name}.00" if NUMBERS.fullmatch(name) else name, ()),
    "rounded": (
        lambda name: f"{float(name):.2E}" if NUMBERS.fullmatch(name) else name,
        ("was rounded",),
    ),
    "spaces": (lambda name: f"{name} ", ("spaces or quotes",)),
    "zeros": (
        lambda name: f"00{name}" if NUMBERS.fullmatch(name) else name,
        ("leading zeros",),
    ),
    "upper": (lambda name: name.upper(), ("upper and lower case",)),
    "NFD": (lambda name: unicodedata.normalize("NFD", name), ("Unicode form",)),
}
NAMES = {
    "user": ["user", "MSISDN", "uid", "caid", "Subscriber-ID"],
    "time": ["timestamp", "tracked_at", "utc_timestamp", "Event Time", "datetime"],
    "region": ["region", "CELL_ID", "cell", "Zone-ID"],
    "lon": ["lon", "Longitude", "lng"],
    "lat": ["lat", "Latitude", "Y"],
}
FORMATS = ("csv", "csv", "csv.gz", "zip", "ndjson", "parquet")
ENCODINGS = ("utf-8", "utf-8", "utf-8-sig", "latin-1", "utf-16")


class Mess:
    """A folder of the same records, the options to read it by, and what may come of that."""

    def __init__(self, rng, text, folder):
        self.rng = rng
        self.folder = folder
        self.rows = list(csv.DictReader(io.StringIO(text)))
        self.allowed = set()
        self.options = []
        self.by_points = rng.random() < 0.25
        self.said = []

    def may(self, what, outcomes):
        self.said.append(what)
        self.allowed.update(outcomes)

    def explained(self, said):
        """Tell whether what was said explains why something else was read, or nothing."""
        # Nothing is left where all files or rows had one of the other problems.
        words = {"no file can be read", "no row can be used"} if self.allowed else set()
        words |= BOTH_ORDERS if self.has_both_orders else set()
        return any(word in said for word in self.allowed | words)

    @property
    def has_both_orders(self):
        """Whether some dates have the day first, and others the month."""
        return {"day first", "month first"} <= set(self.said)

    @property
    def may_mislead(self):
        """Whether visits may be read that nobody made, and not only fewer than were made."""
        return self.has_both_orders or any(what.endswith("is cut") for what in self.said)

    def write(self):
        """Write the folder and choose the options."""
        rng, rows = self.rng, self.rows
        if self.by_points or rng.random() < 0.2:
            places = {row["region"]: (row["lon"], row["lat"]) for row in rows}
            write, _ = IDS[rng.choice(["plain", "float"])]
            table = [("id", "lon", "lat"), *((write(name), *at) for name, at in places.items())]
            with (self.folder / "places.csv").open("w", newline="") as file:
                csv.writer(file).writerows(table)
            self.options += ["--antennas" if self.by_points else "--regions", "places.csv"]
        form, special = self.form(), rng.random()
        if special < 0.1:
            self.by_user(rows, form)
        elif special < 0.2:
            self.by_date(rows, form)
        else:
            self.in_parts(self.parts(rows, by_day=special < 0.4), form)
        for option in ("--drop-invalid", "--skip-bad-files"):
            if rng.random() < 0.2:
                self.options.append(option)

    def parts(self, rows, by_day):
        """Choose which records are in which file."""
        rng = self.rng
        if not by_day:
            rng.shuffle(rows)
            n = rng.randint(1, 3)
            return [rows[i::n] for i in range(n)]
        days = sorted({row["time"][:10] for row in rows})
        parts = [[row for row in rows if row["time"][:10] == day] for day in days]
        if len(days) > 2 and rng.random() < 0.4:
            del parts[rng.randrange(1, len(parts) - 1)]
            self.may("a day is missing", ["days have no visit", "epochs have no visit"])
        return parts

    def in_parts(self, parts, form):
        """Write a file for each part, all in one form or each in its own."""
        alike = self.rng.random() < 0.5
        for number, part in enumerate(parts):
            form = form if alike else self.form()
            self.file(f"{number}", part, form)
        self.around(parts[0], form)

    def by_user(self, rows, form):
        """Write a folder for each user."""
        self.options.append("--user-from-path")
        users = sorted({row["user"] for row in rows})
        if len(users) == 1:
            self.may("one user", ["not one for each user"])
        form["ids"]["user"], form["twice"] = ["plain"], False
        for user in users:
            (self.folder / "records" / user).mkdir()
            part = [row for row in rows if row["user"] == user]
            for half in (0, 1):
                if part[half::2]:
                    self.file(f"{user}/{half}", part[half::2], form, without=form["names"]["user"])

    def by_date(self, rows, form):
        """Write a folder for each date, which its files do not have."""
        form["time"] = DATE_AND_CLOCK
        parts = {}
        for row in rows:
            day = datetime.fromisoformat(row["time"]).astimezone(ROME).strftime("%Y-%m-%d")
            parts.setdefault(day, []).append(row)
        for day, part in parts.items():
            (self.folder / "records" / f"date={day}").mkdir()
            self.file(f"date={day}/0", part, form, without="date")

    def form(self):
        """Choose how a file is written."""
        rng = self.rng
        messy = rng.random() < 0.45
        time = rng.choice(list(TIMES)) if messy else rng.choice(["iso", "zulu", "unix"])
        forms = list(IDS) if messy else ["plain"]
        ids = {role: rng.choices(forms, k=rng.randint(1, 2)) for role in ("user", "region")}
        return {
            "time": time,
            "ids": ids,
            "format": rng.choice(FORMATS),
            "names": {role: rng.choice(names) for role, names in NAMES.items()},
            "separator": rng.choice(",;\t|"),
            "encoding": rng.choice(ENCODINGS),
            "line end": rng.choice(["\n", "\n", "\r\n"]),
            "comma": rng.random() < 0.3,
            "text points": rng.random() < 0.3,
            "two columns": rng.random() < 0.5,
            "as numbers": rng.random() < 0.5,
            "order": rng.random(),
            "decoys": rng.random() < 0.5,
            "twice": rng.random() < 0.05,
            "again": rng.random() < 0.2,
        }

    def columns(self, rows, form):
        """Return the columns of a file: names, and a text for each row."""
        names, ids = form["names"], form["ids"]
        write, needs_zone, outcomes = TIMES[form["time"]]
        self.may(form["time"], outcomes)
        times = [write(datetime.fromisoformat(row["time"])) for row in rows]
        if needs_zone and "--timezone" not in self.options:
            self.options += ["--timezone", "Europe/Rome"]
        made = {names["user"]: self.ids(rows, "user", ids["user"])}
        if form["time"] == DATE_AND_CLOCK:
            made["date"], made["time"] = ([text.split()[i] for text in times] for i in (0, 1))
        else:
            made[names["time"]] = times
        if self.by_points and form["text points"]:
            made["geom"] = [f"POINT ({row['lon']} {row['lat']})" for row in rows]
        elif self.by_points:
            for axis in ("lon", "lat"):
                comma = form["comma"] and form["separator"] != ","
                made[names[axis]] = [row[axis].replace(".", "," if comma else ".") for row in rows]
        elif form["two columns"] and re.fullmatch(r"\d+-\d+", rows[0]["region"]):
            of_id, _ = IDS["float" if form["as numbers"] else "plain"]
            for at, name in enumerate(("LAC", "CI")):
                made[name] = [of_id(row["region"].split("-")[at]) for row in rows]
        else:
            made[names["region"]] = self.ids(rows, "region", ids["region"])
        if form["decoys"]:
            made["Remarks"] = [self.rng.choice(["", "ok", 'two\nlines, "quoted"']) for _ in rows]
            made["duration"] = [str(i) for i in range(len(rows))]
        order = list(made)
        random.Random(form["order"]).shuffle(order)
        return {name: made[name] for name in order}

    def ids(self, rows, role, forms):
        """Write ids in one form after the other."""
        texts = [row[role] for row in rows]
        for form in forms:
            write, outcomes = IDS[form]
            texts = [write(text) for text in texts]
            # Other forms than numbers with decimals are not those of a table of regions.
            strange = STRANGE if role == "region" and outcomes else ()
            self.may(f"{role} {form}", (*outcomes, *strange))
        return texts

    def file(self, name, rows, form, without=None):
        """Write a file, and maybe spoil it."""
        if form["again"]:
            rows = rows + rows[: len(rows) // 2]
        columns = self.columns(rows, form)
        columns.pop(without, None)
        kind = form["format"]
        path = self.folder / "records" / f"{name}.{kind}"
        if kind == "parquet":
            pl.DataFrame(columns).select(self.typed(columns, form)).write_parquet(path)
        elif kind == "ndjson":
            table = pl.DataFrame(columns).select(self.typed(columns, form, with_times=False))
            content = table.write_ndjson().encode()
            path.write_bytes(self.spoiled(content, kind, path))
        else:
            text = self.text(columns, form)
            encoding = form["encoding"]
            try:
                content = text.encode(encoding)
            except UnicodeEncodeError:
                content = text.encode("utf-8")
            if kind == "csv.gz":
                content = gzip.compress(content)
            elif kind == "zip":
                packed = io.BytesIO()
                with zipfile.ZipFile(packed, "w") as archive:
                    archive.writestr("0.csv", content)
                content = packed.getvalue()
            path.write_bytes(self.spoiled(content, kind, path))

    def typed(self, columns, form, *, with_times=True):
        """Return columns as numbers, and as datetimes, where that is possible."""
        names, exprs = form["names"], []
        for name in columns:
            expr = pl.col(name)
            whole = all(NUMBERS.fullmatch(text) for text in columns[name])
            if form["as numbers"] and whole and not any(t.startswith("0") for t in columns[name]):
                expr = expr.cast(pl.Int64 if form["comma"] else pl.Float64)
            elif with_times and name == names["time"] and form["time"] == "zulu":
                expr = expr.str.to_datetime(time_zone="UTC")
            exprs.append(expr)
        return exprs

    def text(self, columns, form):
        header = list(columns)
        if form["twice"]:
            # Another column of the name of one that matters.
            header[header.index("Remarks") if "Remarks" in header else -1] = form["names"]["user"]
            self.may("a name twice", ["several columns", "has no column"])
        out = io.StringIO()
        end = form["line end"]
        writer = csv.writer(out, delimiter=form["separator"], lineterminator=end)
        writer.writerows([header, *zip(*columns.values(), strict=True)])
        return out.getvalue()

    def spoiled(self, content, kind, path):
        """Return the bytes of a file, now and then without the last of them."""
        if self.rng.random() > 0.06 or len(content) < 60:
            return content
        cut = self.rng.randrange(len(content) // 2, len(content) - 3)
        named = str(path.relative_to(self.folder))
        self.may(f"{kind} is cut", [named, f"{path.name} does not end with a line end"])
        while kind in {"csv", "ndjson"} and set(content[cut - 2 : cut]) & set(b"\r\n"):
            cut += 1
        return content[:cut]

    def around(self, rows, form):
        """Put other things into the folder."""
        folder, rng = self.folder / "records", self.rng
        chance = rng.random()
        if chance < 0.1:
            # As after copying links instead of what they lead to.
            file = rng.choice(sorted(folder.iterdir()))
            file.unlink()
            file.symlink_to("nowhere.csv")
            self.may("a broken link", ["leads nowhere"])
        elif chance < 0.2:
            (folder / "void.csv").write_text("")
            self.may("an empty file", ["is empty"])
        elif chance < 0.3:
            (folder / "header.csv").write_text("user,time,region,lon,lat\n")
        elif chance < 0.4:
            (folder / "notes.txt").write_text("Not records.")
        elif chance < 0.5:
            self.file("copy", rows, form)
        elif chance < 0.6:
            text = "user,time,region,lon,lat\n,2024-05-28T10:00:00Z,x,9,45\n"
            (folder / "spoiled.csv").write_text(text)
            self.may("a row without a user", ["column 'user': is empty"])


@pytest.mark.slow
def test_what_is_read_means_the_same(full, whosthere, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(typer.main, "get_command", lambda _: COMMAND)
    ends = Counter()
    for seed in range(2_000 if full else 40):
        folder = tmp_path / str(seed)
        (folder / "records").mkdir(parents=True)
        monkeypatch.chdir(folder)
        rng = random.Random(seed)
        clean = clean_records(rng)
        mess = Mess(rng, clean, folder)
        mess.write()
        code, out, err = whosthere("ingest", "records", "-o", "out.parquet", *mess.options)
        about = (seed, mess.said, mess.options, out, err)
        assert code in {0, 2}, about
        if code == 2:
            assert mess.explained(err), about
            ends["refused"] += 1
            continue
        found, expected = in_traces(Traces.load("out.parquet")), meaning(clean)
        if same(found, expected):
            ends["the same"] += 1
            continue
        assert mess.explained(out), about
        assert mess.may_mislead or as_meant(found) <= as_meant(expected), about
        ends["explained"] += 1
    with capsys.disabled():
        print(f"\nmessy folders: {dict(ends)}")
    assert ends["the same"] > 0.3 * ends.total()
