"""Records of a database, by a query that DuckDB runs; needs the `sql` extra."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from whosthere.data.files import existing
from whosthere.data.reading.source import BATCH_ROWS, Source
from whosthere.errors import InputError, RecordsError, optional, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SERVER = "whosthere_server"
_SERVERS = ("postgres://", "postgresql://")
_MISSING_EXTENSION = re.compile(r'(?:^|using ")INSTALL (\w+)["; ]', re.MULTILINE)
ZONE = "UTC"
"""Of times that are moments. A database keeps no zone with them, and the machine's is no better."""
_OF_VALUES = ("Conversion Error", "Invalid Input Error")
_QUOTED = re.compile(r"""(['"]).*\1""")
_IN_ZONE = f"SET GLOBAL TimeZone = '{ZONE}'"


@dataclass(frozen=True)
class Query:
    """A query whose rows are records."""

    # An address may hold a password, and a query the ids of users.
    sql: str = field(repr=False)
    """A SELECT, in the words of DuckDB."""
    database: str | None = field(default=None, repr=False)
    """A file of DuckDB or SQLite, or the address of a PostgreSQL server, such as
    ``postgresql://user@host/name``. None for queries that name files themselves."""

    def open(self) -> Source:
        """Ask the database for the columns of the query."""
        connection = self._connect()
        with _asking():
            statements = connection.extract_statements(self.sql)
            if [one.type.name for one in statements] != ["SELECT"]:
                raise InputError(
                    "the query is not a single SELECT", where="`sql`", fix="Write one SELECT"
                )
            asked = _asked(connection, self.sql, is_server=self._is_server)
            schema = dict(pl.DataFrame(asked.limit(0).to_arrow_table()).schema)
        return QuerySource(
            path=Path("the query"),
            schema=schema,
            connection=connection,
            sql=self.sql,
            is_server=self._is_server,
        )

    @property
    def _is_server(self) -> bool:
        return (self.database or "").startswith(_SERVERS)

    def _connect(self) -> Any:  # noqa: ANN401 - duckdb is untyped where it is missing
        duckdb, _ = _modules()
        # Extensions would be downloaded while data are read.
        config = {"autoinstall_known_extensions": "false"}
        if self.database is None or self._is_server:
            with _asking():
                connection = duckdb.connect(config=config)
                connection.execute(_IN_ZONE)
                if self.database is not None:
                    _attach(connection, self.database)
                return connection
        with _asking(self.database):
            path = existing(Path(self.database))
            connection = duckdb.connect(str(path), read_only=True, config=config)
            return connection.execute(_IN_ZONE)


@dataclass(frozen=True, eq=False, kw_only=True)
class QuerySource(Source):
    """The rows of a query, which stream: memory does not grow with their number."""

    connection: Any
    sql: str
    is_server: bool = False

    def batches(self, chosen: Sequence[pl.Expr]) -> Iterator[pl.DataFrame]:
        with _asking():
            for batch in self._asked.to_arrow_reader(BATCH_ROWS):
                yield pl.DataFrame(batch).select(chosen)

    def head(self, n: int) -> pl.DataFrame:
        with _asking():
            return pl.DataFrame(self._asked.limit(n).to_arrow_table())

    @property
    def _asked(self) -> Any:  # noqa: ANN401
        return _asked(self.connection, self.sql, is_server=self.is_server)


def _asked(connection: Any, sql: str, *, is_server: bool) -> Any:  # noqa: ANN401
    """Return the rows of a query, which are not read yet."""
    cursor = connection.cursor()
    return (cursor.execute(f"USE {_SERVER}") if is_server else cursor).sql(sql)


def _modules() -> tuple[Any, Any]:
    """Return DuckDB, and pyarrow by which it hands rows over."""
    duckdb, arrow = (
        optional(one, "Reading from a database", "sql") for one in ("duckdb", "pyarrow")
    )
    return duckdb, arrow


def _attach(connection: Any, url: str) -> None:  # noqa: ANN401
    connection.execute("LOAD postgres")
    quoted = url.replace("'", "''")
    connection.execute(f"ATTACH '{quoted}' AS {_SERVER} (TYPE postgres, READ_ONLY)")
    connection.execute(f"USE {_SERVER}")


@contextmanager
def _asking(where: str = "`sql`") -> Iterator[None]:
    """Turn what the database refuses into a message for the user."""
    duckdb, pyarrow = _modules()
    # Rows come by pyarrow, with errors of its own, and of kinds at which polars may panic.
    others = (pyarrow.ArrowException, pl.exceptions.PolarsError, OSError)
    try:
        yield
    except BaseException as error:
        panics = type(error).__name__ == "PanicException"
        if not (panics or isinstance(error, (duckdb.Error, *others))):
            raise
        if panics or isinstance(error, pl.exceptions.PolarsError):
            fix = "Give each column a name of its own, and cast it to VARCHAR, DOUBLE or TIMESTAMP"
            raise RecordsError("has columns that cannot be read", where=where, fix=fix) from error
        if extension := _MISSING_EXTENSION.search(str(error)):
            raise RecordsError(
                f"DuckDB needs its extension {extension[1]} for this, which is not installed",
                where=where,
                fix="Install it once, with a connection to the internet: "
                f"python -c \"import duckdb; duckdb.sql('INSTALL {extension[1]}')\"",
            ) from error
        raise RecordsError(
            f"the database refused ({_reason(str(error))})",
            where=where,
            fix="Correct the query or the address",
        ) from error


def _reason(text: str) -> str:
    """Return the first line of what a database said, without addresses and passwords."""
    line = next((line for line in text.splitlines() if line.strip()), "no reason given")
    if "://" in line or "password" in line.lower():
        return "the connection failed"
    if line.startswith(_OF_VALUES):  # a value may be somebody's id
        line = _QUOTED.sub("...", line)
    return " ".join(shown(word) for word in line.rstrip(".").split())
