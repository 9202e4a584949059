"""The external databases of a case: a real table for every dictionary and lookup table, filled by ``source`` steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa
import sqlalchemy as sa

from dovetail.changelog.schema import Column
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import CreateDictionary, CreateStream
from dovetail.sql.syntax.types import display
from tests.conformance.case import Row
from tests.conformance.engine import NotRunnable

Parameters = Mapping[str, object]


class Database(Protocol):
    """A server that holds tables. ``kind`` and ``parameters`` are what a SOURCE clause says of it."""

    @property
    def kind(self) -> str: ...

    @property
    def parameters(self) -> Parameters: ...

    def create(self, table: str, columns: Sequence[Column], key: Sequence[str]) -> None: ...

    def fill(self, table: str, columns: Sequence[Column], rows: Sequence[Row]) -> None:
        """``rows`` are all that the table holds from now on."""
        ...

    def drop(self, table: str) -> None: ...


@dataclass
class SqlDatabase:
    """One that SQLAlchemy knows."""

    kind: str
    parameters: Parameters
    engine: sa.Engine

    def create(self, table: str, columns: Sequence[Column], key: Sequence[str]) -> None:
        typed = [sa.Column(column.name, _sql_type(column.type), primary_key=column.name in key) for column in columns]
        # A key of the database's own would count up, not take the rows' numbers.
        for column in typed:
            column.autoincrement = False
        sa.Table(table, sa.MetaData(), *typed).create(self.engine)

    def fill(self, table: str, columns: Sequence[Column], rows: Sequence[Row]) -> None:
        held = sa.table(table, *(sa.column(column.name, _sql_type(column.type)) for column in columns))
        with self.engine.begin() as connection:
            connection.execute(held.delete())
            if rows:
                connection.execute(held.insert(), [{c.name: row.get(c.name) for c in columns} for row in rows])

    def drop(self, table: str) -> None:
        with self.engine.begin() as connection:
            sa.Table(table, sa.MetaData()).drop(connection, checkfirst=True)


@dataclass
class ClickHouseDatabase:
    """``execute`` runs a statement, with rows for an INSERT."""

    parameters: Parameters
    execute: Callable[..., object]
    kind: str = "clickhouse"

    def create(self, table: str, columns: Sequence[Column], key: Sequence[str]) -> None:
        typed = ", ".join(f"`{column.name}` {_clickhouse_type(column.type)}" for column in columns)
        self.execute(f"CREATE TABLE `{table}` ({typed}) ENGINE = Memory")

    def fill(self, table: str, columns: Sequence[Column], rows: Sequence[Row]) -> None:
        # Memory tables are emptied by making them anew: old servers neither delete rows nor truncate every engine.
        self.drop(table)
        self.create(table, columns, ())
        names = ", ".join(f"`{column.name}`" for column in columns)
        if rows:
            values = [tuple(row.get(column.name) for column in columns) for row in rows]
            self.execute(f"INSERT INTO `{table}` ({names}) VALUES", values)

    def drop(self, table: str) -> None:
        self.execute(f"DROP TABLE IF EXISTS `{table}`")


def _sql_type(kind: pa.DataType) -> sa.types.TypeEngine[Any]:
    if pa.types.is_boolean(kind):
        return sa.Boolean()
    if pa.types.is_integer(kind):
        return sa.BigInteger()
    if pa.types.is_floating(kind):
        return sa.Double()
    if pa.types.is_string(kind):
        # A key of MySQL needs a length.
        return sa.String(191)
    raise NotRunnable(f"no external table of a case has columns of type {kind} yet")


def _clickhouse_type(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind):
        return {"u": "U"}.get(str(kind)[0], "") + f"Int{kind.bit_width}"
    if pa.types.is_floating(kind):
        return f"Float{kind.bit_width}"
    if pa.types.is_string(kind):
        return "String"
    raise NotRunnable(f"no external table of a case has columns of type {kind} yet")


@dataclass
class _Table:
    database: Database
    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    rows: dict[tuple[object, ...], Row] = field(default_factory=dict)

    def key_of(self, row: Row) -> tuple[object, ...]:
        return tuple(row[name] for name in self.key)


@dataclass
class External:
    """The tables of one case; ``prefix`` keeps them apart from those of others in the same database.

    databases  by the kind of source that a case names: 'mysql', 'clickhouse'
    """

    databases: Mapping[str, Database]
    prefix: str = ""
    tables: dict[str, _Table] = field(default_factory=dict)

    def dictionary(self, statement: CreateDictionary) -> str:
        """The text of the statement with its source replaced by a table of the same name here, which is made."""
        source = statement.source
        if source.name not in self.databases:
            return statement.text
        table = str(source.parameters["table"])
        made = self.make(table, self.databases[source.name], statement.columns, statement.primary_key)
        own = made.database.parameters
        same = made.database.kind == source.name
        # Options that are not about the place stay, where a database of the same kind stands for the named one.
        kept = {name: value for name, value in source.parameters.items() if same and name not in own}
        return with_source(statement.text, made.database.kind, {**kept, **own, "table": made.name})

    def table(self, statement: CreateStream) -> str:
        """A CREATE EXTERNAL TABLE in the place of the statement, for a table of MySQL, which is made."""
        made = self.make(statement.name, self.databases["mysql"], statement.columns, statement.primary_key)
        columns = ", ".join(f"{column.name} {display(column.type, Rules.TIMEPLUS)}" for column in made.columns)
        key = ", ".join(made.key)
        settings = ", ".join(f"{name} = {_literal(value)}" for name, value in _settings(made).items())
        return f"CREATE EXTERNAL TABLE {statement.name} ({columns}) PRIMARY KEY ({key}) SETTINGS {settings}"

    def make(self, table: str, database: Database, columns: Sequence[Column], key: Sequence[str]) -> _Table:
        made = _Table(database, self.prefix + table, tuple(columns), tuple(key))
        database.drop(made.name)
        database.create(made.name, columns, key)
        self.tables[table] = made
        return made

    def change(self, table: str, rows: Sequence[Row], deleted: Sequence[Row]) -> None:
        """Upsert ``rows`` by the key, and take the rows away that have the keys of ``deleted``."""
        if table not in self.tables:
            raise NotRunnable(f"no external database holds the table {table}")
        held = self.tables[table]
        for row in rows:
            held.rows[held.key_of(row)] = row
        for row in deleted:
            held.rows.pop(held.key_of(row), None)
        held.database.fill(held.name, held.columns, list(held.rows.values()))

    def close(self) -> None:
        for table in self.tables.values():
            table.database.drop(table.name)


def _settings(table: _Table) -> Parameters:
    """The SETTINGS of CREATE EXTERNAL TABLE."""
    given = dict(table.database.parameters)
    address = given.pop("path", None) or f"{given.pop('host')}:{given.pop('port')}"
    database = {"database": given.pop("db")} if "db" in given else {}
    return {"type": table.database.kind, "address": address, **database, **given, "table": table.name}


def with_source(text: str, kind: str, parameters: Parameters) -> str:
    """A CREATE DICTIONARY whose SOURCE clause is another one; the rest of the text stays as it is."""
    start = text.upper().index("SOURCE")
    end = _after_brackets(text, start)
    inside = " ".join(f"{name.upper()} {_literal(value)}" for name, value in parameters.items())
    return f"{text[:start]}SOURCE({kind.upper()}({inside})){text[end:]}"


def _after_brackets(text: str, start: int) -> int:
    """The place after the bracket that closes the first one from ``start`` on; quoted text does not count."""
    depth = 0
    for place, character in _unquoted(text, start):
        depth += (character == "(") - (character == ")")
        if depth == 0 and character == ")":
            return place + 1
    raise NotRunnable("the SOURCE clause has no end", where=text)


def _unquoted(text: str, start: int) -> Iterator[tuple[int, str]]:
    quoted = False
    for place in range(start, len(text)):
        quoted ^= text[place] == "'"
        if not quoted:
            yield place, text[place]


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else "'" + str(value).replace("'", "''") + "'"
