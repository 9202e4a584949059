"""The databases that the contract of sources is held against: how each takes a table with rows."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar, Protocol

import pyarrow as pa

from dovetail.changelog.lookup import Key, Row, Rows
from dovetail.changelog.schema import Column
from dovetail.dictionaries.definition.definition import SourceSpec
from dovetail.dictionaries.definition.options import Parameter
from dovetail.dictionaries.outside.outside import Outside
from dovetail.dictionaries.resources import Resources
from tests.servers import Server, clickhouse, mariadb, postgresql

INSTANT = pa.timestamp("us", tz="UTC")


class Backend(Protocol):
    """A place that keeps tables."""

    def put(self, table: str, columns: Sequence[Column], key: Sequence[str], rows: Sequence[Row]) -> SourceSpec:
        """A new table with ``rows``, and the source that reads it."""
        ...

    @property
    def resources(self) -> Resources: ...


_MYSQL = {
    pa.string(): "VARCHAR(40)",
    pa.int64(): "BIGINT",
    pa.int32(): "INT",
    pa.uint64(): "BIGINT UNSIGNED",
    pa.bool_(): "TINYINT(1)",
    pa.float64(): "DOUBLE",
    pa.decimal128(10, 2): "DECIMAL(10,2)",
    pa.date32(): "DATE",
    INSTANT: "DATETIME(6)",
    pa.binary(): "VARBINARY(40)",
}
_POSTGRESQL = _MYSQL | {
    pa.uint64(): "NUMERIC(20,0)",
    pa.bool_(): "BOOLEAN",
    pa.float64(): "DOUBLE PRECISION",
    INSTANT: "TIMESTAMPTZ",
    pa.binary(): "BYTEA",
}
_SQLITE = _MYSQL | {pa.string(): "TEXT", pa.uint64(): "TEXT", INSTANT: "TEXT", pa.binary(): "BLOB"}
_CLICKHOUSE = {
    pa.string(): "String",
    pa.int64(): "Int64",
    pa.int32(): "Int32",
    pa.uint64(): "UInt64",
    pa.bool_(): "UInt8",
    pa.float64(): "Float64",
    pa.decimal128(10, 2): "Decimal(10,2)",
    pa.date32(): "Date",
    INSTANT: "DateTime('UTC')",
    pa.binary(): "String",
}


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _with_backslashes(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'").replace("\0", "\\0") + "'"


def literal(value: Any, text: Callable[[str], str] = _text, blob: str = "X'{}'", zone: str = "") -> str:
    """``value`` in SQL."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case int() | float() | Decimal():
            return str(value)
        case bytes():
            return blob.format(value.hex())
        case datetime():
            return text(value.strftime("%Y-%m-%d %H:%M:%S") + zone)
        case date():
            return text(value.isoformat())
    return text(str(value))


@dataclass
class SqlServer:
    """MariaDB and PostgreSQL."""

    server: Server
    kind: str
    types: Mapping[pa.DataType, str]
    quote: str
    text: Callable[[str], str]
    blob: str
    zone: str = ""
    resources: Resources = field(default_factory=lambda: Resources(None, Outside(Path())))

    def put(self, table: str, columns: Sequence[Column], key: Sequence[str], rows: Sequence[Row]) -> SourceSpec:
        name = self.named(table)
        declared = [f"{self.quoted(column.name)} {self.types[column.type]}" for column in columns]
        unique = [f"PRIMARY KEY ({', '.join(map(self.quoted, key))})"] if key else []
        self.server.execute(f"DROP TABLE IF EXISTS {name}", f"CREATE TABLE {name} ({', '.join(declared + unique)})")
        for start in range(0, len(rows), 1000):
            values = [
                f"({', '.join(literal(value, self.text, self.blob, self.zone) for value in row)})"
                for row in rows[start : start + 1000]
            ]
            self.server.execute(f"INSERT INTO {name} VALUES {', '.join(values)}")
        return self.source(table=table)

    def source(self, **parameters: Parameter) -> SourceSpec:
        return SourceSpec(self.kind, reached(self.server) | {"timeout": 3.0} | parameters)

    def named(self, table: str) -> str:
        return self.quoted("shop") + "." + self.quoted(table) if self.kind == "mysql" else self.quoted(table)

    def quoted(self, name: str) -> str:
        return self.quote + name.replace(self.quote, self.quote * 2) + self.quote


@dataclass
class ClickHouse:
    server: Server
    kind: str = "clickhouse"
    resources: Resources = field(default_factory=lambda: Resources(None, Outside(Path())))

    def put(self, table: str, columns: Sequence[Column], key: Sequence[str], rows: Sequence[Row]) -> SourceSpec:
        declared = []
        for column in columns:
            there = _CLICKHOUSE[column.type]
            nullable = column.nullable and column.name not in key
            declared.append(f"{self.quoted(column.name)} {f'Nullable({there})' if nullable else there}")
        order = ", ".join(map(self.quoted, key)) or "tuple()"
        self.server.execute(
            f"DROP TABLE IF EXISTS {self.named(table)}",
            f"CREATE TABLE {self.named(table)} ({', '.join(declared)}) ENGINE = MergeTree ORDER BY ({order})",
        )
        for start in range(0, len(rows), 1000):
            values = [f"({', '.join(self._literal(value) for value in row)})" for row in rows[start : start + 1000]]
            self.server.execute(f"INSERT INTO {self.named(table)} VALUES {', '.join(values)}")
        return self.source(table=table)

    @staticmethod
    def _literal(value: Any) -> str:
        if isinstance(value, bytes):
            return _with_backslashes(value.decode())
        return str(int(value)) if isinstance(value, bool) else literal(value, _with_backslashes)

    def source(self, **parameters: Parameter) -> SourceSpec:
        return SourceSpec("clickhouse", reached(self.server) | {"timeout": 3.0} | parameters)

    def named(self, table: str) -> str:
        return "shop." + self.quoted(table)

    def quoted(self, name: str) -> str:
        return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"


def reached(server: Server) -> dict[str, Parameter]:
    return {
        "host": server.host,
        "port": server.port,
        "user": server.user,
        "password": server.password,
        "db": "shop",
    }


@dataclass
class Sqlite:
    folder: Path

    def put(self, table: str, columns: Sequence[Column], key: Sequence[str], rows: Sequence[Row]) -> SourceSpec:
        declared = ", ".join(f"{self.named(column.name)} {_SQLITE[column.type]}" for column in columns)
        with sqlite3.connect(self.folder / "shop.db") as database:
            database.execute(f"DROP TABLE IF EXISTS {self.named(table)}")
            database.execute(f"CREATE TABLE {self.named(table)} ({declared})")
            for row in rows:
                values = ", ".join(literal(str(value) if type(value) is int else value) for value in row)
                database.execute(f"INSERT INTO {self.named(table)} VALUES ({values})")
        database.close()
        return self.source(table=table)

    def source(self, **parameters: Parameter) -> SourceSpec:
        return SourceSpec("sqlite", {"path": "shop.db"} | parameters)

    def named(self, name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    @property
    def resources(self) -> Resources:
        return Resources(None, Outside(self.folder))


def _json_value(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    return str(value) if isinstance(value, Decimal | date) else value


def _json_lines(columns: Sequence[Column], rows: Sequence[Row]) -> str:
    names = [column.name for column in columns]
    return "".join(json.dumps(dict(zip(names, map(_json_value, row), strict=True))) + "\n" for row in rows)


@dataclass
class JsonFile:
    folder: Path

    def put(self, table: str, columns: Sequence[Column], key: Sequence[str], rows: Sequence[Row]) -> SourceSpec:
        (self.folder / "rows.ndjson").write_text(_json_lines(columns, rows))
        return SourceSpec("file", {"path": "rows.ndjson"})

    @property
    def resources(self) -> Resources:
        return Resources(None, Outside(self.folder))


@dataclass
class CsvFile:
    folder: Path

    def put(self, table: str, columns: Sequence[Column], key: Sequence[str], rows: Sequence[Row]) -> SourceSpec:
        lines = [[column.name for column in columns], *(map(self._field, row) for row in rows)]
        text = "".join(",".join('"' + field.replace('"', '""') + '"' for field in line) + "\n" for line in lines)
        (self.folder / "rows.csv").write_text(text, newline="")
        return SourceSpec("file", {"path": "rows.csv", "format": "CSVWithNames"})

    @staticmethod
    def _field(value: Any) -> str:
        return r"\N" if value is None else str(_json_value(value))

    @property
    def resources(self) -> Resources:
        return Resources(None, Outside(self.folder))


@dataclass
class WebService:
    """Answers a POST of keys with the rows that have them, and a GET with all rows."""

    port: int
    method: str
    served: dict[str, list[dict[str, Any]]]

    def put(self, table: str, columns: Sequence[Column], key: Sequence[str], rows: Sequence[Row]) -> SourceSpec:
        lines = _json_lines(columns, rows).splitlines()
        self.served["/rows"] = [json.loads(line) for line in lines]
        url = f"http://127.0.0.1:{self.port}/rows"
        return SourceSpec("http", {"url": url, "method": self.method, "user": "reader", "password": "s3cret"})

    @property
    def resources(self) -> Resources:
        return Resources(None, Outside(Path()))


class Service(BaseHTTPRequestHandler):
    served: ClassVar[dict[str, list[dict[str, Any]]]] = {}

    def do_GET(self) -> None:
        self._answer(self.served.get(self.path))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        keys = [json.loads(line) for line in body.splitlines()]
        rows = self.served.get(self.path)
        self._answer(None if rows is None else [row for row in rows if any(key.items() <= row.items() for key in keys)])

    def _answer(self, rows: list[dict[str, Any]] | None) -> None:
        allowed = self.headers.get("Authorization", "").startswith("Basic ")
        status = 401 if not allowed else 404 if rows is None else 200
        content = "".join(json.dumps(row) + "\n" for row in rows or []).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the base class's
        """Tests need no access log."""


@dataclass
class KeyedStream:
    """A keyed stream as a worker lends it, here of rows in a list."""

    columns: Sequence[Column] = ()
    rows: Sequence[Row] = ()

    def put(self, table: str, columns: Sequence[Column], key: Sequence[str], rows: Sequence[Row]) -> SourceSpec:
        self.columns, self.rows = columns, rows
        return SourceSpec("timeplus", {"stream": table})

    @property
    def resources(self) -> Resources:
        return Resources(None, Outside(Path()), lambda name: self)

    def fetch(self, by: Sequence[str], keys: Sequence[Key]) -> dict[Key, Rows]:
        names = [column.name for column in self.columns]
        found: dict[Key, Rows] = {}
        for row in self.rows:
            values = tuple(row[names.index(name)] for name in by)
            key = values if len(values) > 1 else values[0]
            if key in keys:
                found[key] = (*found.get(key, ()), row)
        return found

    def load(self) -> Iterator[list[Row]]:
        yield list(self.rows)

    def store(self, rows: Sequence[Row]) -> None:
        self.rows = [*self.rows, *rows]


@contextmanager
def _mysql(folder: Path) -> Iterator[Backend]:
    with mariadb(folder) as server:
        yield SqlServer(server, "mysql", _MYSQL, "`", _with_backslashes, "X'{}'")


@contextmanager
def _postgresql(folder: Path) -> Iterator[Backend]:
    with postgresql(folder) as server:
        yield SqlServer(server, "postgresql", _POSTGRESQL, '"', _text, "'\\x{}'", "+00")


@contextmanager
def _clickhouse(folder: Path) -> Iterator[Backend]:
    with clickhouse(folder) as server:
        yield ClickHouse(server)


@contextmanager
def _web_service(method: str) -> Iterator[Backend]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield WebService(server.server_address[1], method, Service.served)
        server.shutdown()


@contextmanager
def _in_folder(made: Callable[[Path], Backend], folder: Path) -> Iterator[Backend]:
    folder.mkdir(parents=True, exist_ok=True)
    yield made(folder)


SERVERS: Mapping[str, Callable[[Path], AbstractContextManager[Backend]]] = {
    "mysql": _mysql,
    "postgresql": _postgresql,
    "clickhouse": _clickhouse,
}
EMBEDDED: Mapping[str, Callable[[Path], AbstractContextManager[Backend]]] = {
    "sqlite": lambda folder: _in_folder(Sqlite, folder),
    "json file": lambda folder: _in_folder(JsonFile, folder),
    "csv file": lambda folder: _in_folder(CsvFile, folder),
    "http post": lambda folder: _web_service("post"),
    "http get": lambda folder: _web_service("get"),
    "keyed stream": lambda folder: _in_folder(lambda _: KeyedStream(), folder),
}
