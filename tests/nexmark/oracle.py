"""What each query gives over some events, as DuckDB answers the same text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

import duckdb
import orjson
import pyarrow as pa

from changelog.changes import Changes
from changelog.encode import encode

Row = tuple[object, ...]
_MACROS = """
    CREATE MACRO tumble(relation, size) AS TABLE
        SELECT *, time_bucket(size, date_time) AS window_start, window_start + size AS window_end
        FROM query_table(relation);
    CREATE MACRO hop(relation, slide, size) AS TABLE
        SELECT *, window_start + size AS window_end
        FROM (
            SELECT *, time_bucket(slide, date_time) - slide * unnest(range((epoch(size) / epoch(slide))::BIGINT))
                AS window_start
            FROM query_table(relation)
        );
    CREATE MACRO to_char(time, format) AS
        strftime(time, format.replace('YYYY', '%Y').replace('MM', '%m').replace('DD', '%d').replace('HH24', '%H')
            .replace('MI', '%M'));
"""


def answer(tables: Mapping[str, pa.Table], query: str) -> Counter[Row]:
    """The rows as records would tell them."""
    with duckdb.connect() as connection:
        connection.execute("SET integer_division = true")
        for name, rows in tables.items():
            connection.register(name, _in_microseconds(rows))
        connection.execute(_MACROS)
        return told(connection.sql(_in_duckdb(query)).to_arrow_table())


def told(rows: pa.Table) -> Counter[Row]:
    encoded = encode(Changes.of(rows).table, tuple(rows.column_names), (), updating=False)
    return Counter(tuple(orjson.loads(value).values()) for value in encoded.values if value is not None)


def near(rows: Iterable[Row]) -> Counter[Row]:
    """Rows with their fractions to 12 digits: the two engines round an average at different places."""
    return Counter(
        tuple(float(f"{value:.12g}") if isinstance(value, float) else value for value in row) for row in rows
    )


def _in_microseconds(rows: pa.Table) -> pa.Table:
    """As a TIMESTAMP is declared, and written."""
    fields = [f.with_type(pa.timestamp("us")) if pa.types.is_timestamp(f.type) else f for f in rows.schema]
    return rows.cast(pa.schema(fields))


def _in_duckdb(query: str) -> str:
    """The window functions take a table by its name, and know the column; there is no other time than now."""
    query = re.sub(r"\b(TUMBLE|HOP)\((\w+), date_time,", r"\1('\2',", query)
    return query.replace("FOR SYSTEM_TIME AS OF PROCTIME()", "")
