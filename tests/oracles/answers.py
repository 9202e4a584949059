"""The rows of an answer, ours and PostgreSQL's, in a form in which equal rows are equal."""

from __future__ import annotations

import psycopg
import pyarrow as pa

from tests.sqllogictest import values

Answer = list[tuple[str, ...]]

_HERE = {"(empty)": "", "t": "true", "f": "false"}


def ours(table: pa.Table) -> Answer:
    return sorted(tuple(values.canonical(_HERE.get(one, one)) for one in row) for row in values.rows(table))


def theirs(connection: psycopg.Connection, query: str) -> Answer:
    """Each value as PostgreSQL writes it."""
    columns = connection.execute(query.encode()).description or []
    names = [f"c{place}" for place in range(len(columns))]
    shown = ", ".join(f"coalesce({name}::text, 'NULL')" for name in names)
    found = connection.execute(f"SELECT {shown} FROM ({query}) AS asked({', '.join(names)})".encode()).fetchall()
    return sorted(tuple(map(values.canonical, row)) for row in found)
