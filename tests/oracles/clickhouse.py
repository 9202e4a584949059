"""ClickHouse inside the process: what it makes of an expression over a table of rows."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import pyarrow as pa
from chdb.session import Session

_SETTINGS = {
    "session_timezone": "'UTC'",
    "cast_keep_nullable": 1,
    "output_format_arrow_string_as_string": 0,
    "output_format_arrow_low_cardinality_as_dictionary": 0,
    "allow_suspicious_low_cardinality_types": 1,
    "max_execution_time": 20,
}


@cache
def session() -> Any:
    """One for the process: chdb has no more."""
    return Session()  # type: ignore[no-untyped-call]


def ask(sql: str) -> pa.Table:
    settings = ", ".join(f"{name} = {value}" for name, value in _SETTINGS.items())
    try:
        answer = session().query(f"{sql} SETTINGS {settings}", "ArrowStream")
    except RuntimeError:
        # The next answer would begin with what there was of this one, or fail as it did.
        with suppress(RuntimeError):
            session().query("SELECT 1")
        raise
    # A copy: the answer takes its bytes with it when it goes.
    with pa.ipc.open_stream(bytearray(answer.bytes())) as stream:
        return stream.read_all()


def create(name: str, rows: pa.Table, types: Mapping[str, str]) -> None:
    """A table with ``rows`` in their order, which the column ``row_number`` keeps."""
    session().query(f"DROP TABLE IF EXISTS {name}")
    columns = ", ".join(f"{column} {kind}" for column, kind in types.items())
    session().query(f"CREATE TABLE {name} (row_number UInt32, {columns}) ENGINE = Memory")
    values = (
        f"({number}, {', '.join(literal(row[column]) for column in types)})"
        for number, row in enumerate(rows.to_pylist())
    )
    session().query(f"INSERT INTO {name} VALUES {', '.join(values)}")


def literal(value: object) -> str:
    """A value as ClickHouse reads it."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(literal(one) for one in value)}]"
    if isinstance(value, dt.datetime):
        return f"'{value:%Y-%m-%d %H:%M:%S.%f}'"
    if isinstance(value, dt.date):
        return f"'{value}'"
    if isinstance(value, int | float | decimal.Decimal):
        return str(value)
    escaped = str(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def values_of(name: str, expressions: Sequence[str]) -> list[pa.ChunkedArray | str]:
    """The values of each expression over the rows of table ``name``; a text says why there are none.

    Many are asked for at once; where one of them fails, halves are, until it stands alone.
    """
    if not expressions:
        return []
    columns = ", ".join(f"({expression}) AS c{index}" for index, expression in enumerate(expressions))
    try:
        return list(ask(f"SELECT {columns} FROM {name} ORDER BY row_number").columns)
    except RuntimeError as fault:
        if len(expressions) == 1:
            return [str(fault).split("\n")[0]]
    middle = len(expressions) // 2
    return [*values_of(name, expressions[:middle]), *values_of(name, expressions[middle:])]


@cache
def function_names() -> tuple[str, ...]:
    """Of all scalar functions, as ClickHouse writes them."""
    names = ask("SELECT name FROM system.functions WHERE NOT is_aggregate").column(0).to_pylist()
    return tuple(name.decode() for name in names)
