"""PostgreSQL as an oracle: the value of an expression for every row, NULL where a call of it fails."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import psycopg
from psycopg import sql as identifiers

from tests.oracles.fuzz import Sample
from tests.oracles.values import Cell
from tests.servers import postgresql
from tests.servers.process import Server

_SHOWN = {
    "date": "x - date '1970-01-01'",
    "time without time zone": "extract(epoch from x) * 1000000",
    "timestamp without time zone": "(extract(epoch from x) * 1000000)::bigint",
    "timestamp with time zone": "(extract(epoch from x) * 1000000)::bigint",
    "interval": "CASE WHEN x IS NOT NULL THEN ARRAY[(extract(year from x) * 12 + extract(month from x))::bigint, "
    "extract(day from x)::bigint, (extract(hour from x) * 3600000000 + extract(minute from x) * 60000000 "
    "+ extract(microseconds from x))::bigint] END",
    "jsonb": "x::text",
    "json": "x::text",
}
"""What is asked in place of a value that Python has no equal of: the number behind it."""


@dataclass
class Postgres:
    """A table of rows, and questions about them. ``key`` is the column that tells the rows apart, from 0."""

    connection: psycopg.Connection
    table: str
    key: str
    rows: int
    _kinds: dict[str, str | None] = field(default_factory=dict)

    def kind(self, text: str) -> str | None:
        """The type of an expression; None where there is no such expression."""
        if text not in self._kinds:
            self._kinds[text] = self._described(text)
        return self._kinds[text]

    def _described(self, text: str) -> str | None:
        connection = self.connection.pgconn
        prepared = connection.prepare(b"", f"SELECT {text} FROM {self.table}".encode())
        if prepared.status != psycopg.pq.ExecStatus.COMMAND_OK:
            return None
        oid = connection.describe_prepared(b"").ftype(0)
        found = self.connection.execute("SELECT format_type(%s, NULL)", [oid]).fetchone()
        assert found is not None
        return str(found[0])

    def values(self, sample: Sample) -> list[Cell] | None:
        """One for each row; a call that fails is NULL, not what stands around it. None: there is no such expression."""
        kind = self.kind(sample.text)
        if kind is None:
            return None
        try:
            return self._query(sample.text, kind, "")
        except psycopg.Error:
            return [self._one(sample, kind, row) for row in range(self.rows)]

    def _query(self, text: str, kind: str, where: str) -> list[Cell]:
        shown = _SHOWN.get(kind, "x")
        inner = f"SELECT {self.key} AS key, {text} AS x FROM {self.table} {where} OFFSET 0"
        found = self.connection.execute(f"SELECT {shown} FROM ({inner}) AS asked ORDER BY key".encode()).fetchall()
        return [_plain(row[0], kind) for row in found]

    def _one(self, sample: Sample, kind: str, row: int) -> Cell:
        where = f"WHERE {self.key} = {row}"
        try:
            return self._query(sample.text, kind, where)[0]
        except psycopg.Error:
            return self._query(self._without_failures(sample, where), kind, where)[0]

    def _without_failures(self, sample: Sample, where: str) -> str:
        """The text of a sample that fails, with NULL for the calls that do."""
        parts = [
            part.text if self._holds(part.text, where) else self._without_failures(part, where) for part in sample.parts
        ]
        text = sample.template.format(*parts) if parts else sample.template
        return text if self._holds(text, where) else f"CAST(NULL AS {self.kind(sample.text)})"

    def _holds(self, text: str, where: str) -> bool:
        kind = self.kind(text)
        if kind is None:
            return False
        try:
            self._query(text, kind, where)
        except psycopg.Error:
            return False
        return True


def _plain(value: Cell, kind: str) -> Cell:
    if kind in ("json", "jsonb") and isinstance(value, str):
        return json.loads(value)
    if isinstance(value, Decimal) and not value.is_finite():
        # A numeric here is a number.
        return None
    if kind == "real" and isinstance(value, float):
        # It comes as the shortest text that stands for it.
        return float(np.float32(value))
    return bytes(value) if isinstance(value, memoryview) else value


@contextmanager
def postgres(setup: Sequence[str], table: str, key: str) -> Iterator[Postgres]:
    """A server of its own, with a database of UTF-8 letters and bytewise order, after these statements."""
    with TemporaryDirectory(prefix="oracle-", ignore_cleanup_errors=True) as folder, postgresql(Path(folder)) as server:
        server.execute("CREATE DATABASE oracle TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C.UTF-8'")
        with _connected(server) as connection:
            for statement in setup:
                connection.execute(statement.encode())
            counted = connection.execute(
                identifiers.SQL("SELECT count(*) FROM {}").format(identifiers.Identifier(table))
            )
            yield Postgres(connection, table, key, int(counted.fetchall()[0][0]))


def _connected(server: Server) -> psycopg.Connection:
    return psycopg.connect(
        host=server.host,
        port=server.port,
        user=server.user,
        password=server.password,
        dbname="oracle",
        autocommit=True,
        options="-c timezone=UTC -c statement_timeout=5000",
    )
