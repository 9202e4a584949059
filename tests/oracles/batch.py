"""A query over streams as DuckDB answers it over their rows: the same text, but for what only streams have."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb
import orjson
import pyarrow as pa

from dovetail.changelog.changes import Changes
from dovetail.changelog.encode import encode
from dovetail.sql.syntax.rules import Rules

Row = tuple[object, ...]
_INTERVAL = r"(INTERVAL '[^']+' \w+)"
_TUMBLE = """(
    SELECT *, time_bucket(\\3, "\\2") AS window_start, window_start + \\3 AS window_end FROM \\1
)"""
_HOP = """(
    SELECT * EXCLUDE (nth), time_bucket(\\3, "\\2") - \\3 * nth AS window_start, window_start + \\4 AS window_end
    FROM \\1, range((epoch(\\4) / epoch(\\3))::BIGINT) AS nths(nth)
)"""
_AS_A_BATCH = (
    (rf"\bTUMBLE\((\w+), (\w+), {_INTERVAL}\)", _TUMBLE),
    (rf"\bHOP\((\w+), (\w+), {_INTERVAL}, {_INTERVAL}\)", _HOP),
    (r" FOR SYSTEM_TIME AS OF PROCTIME\(\)", ""),
    (
        r"\b(LEFT )?JOIN (\w+) FOR SYSTEM_TIME AS OF (\w+\.\w+) AS (\w+) ON",
        r"ASOF \1JOIN \2 AS \4 ON \3 >= \4.since AND",
    ),
    (r"\bEMIT ON WINDOW CLOSE\b", ""),
    (r"\bCREATE MATERIALIZED VIEW\b", "CREATE VIEW"),
)
"""A version holds from its column ``since`` on."""
_FUNCTIONS = """
    CREATE MACRO to_char(time, format) AS
        strftime(time, format.replace('YYYY', '%Y').replace('MM', '%m').replace('DD', '%d').replace('HH24', '%H')
            .replace('MI', '%M'))
"""


@dataclass(frozen=True)
class Batch:
    """Tables, and what is done with them."""

    connection: duckdb.DuckDBPyConnection

    @staticmethod
    @contextmanager
    def of(rules: Rules) -> Iterator[Batch]:
        with duckdb.connect() as connection:
            connection.execute(f"SET integer_division = {rules is Rules.RISINGWAVE}")
            connection.execute(_FUNCTIONS)
            yield Batch(connection)

    def create(self, name: str, rows: pa.Table) -> None:
        self.connection.register("given", rows.cast(pa.schema([_in_microseconds(field) for field in rows.schema])))
        self.connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        self.connection.unregister("given")

    def run(self, statement: str) -> None:
        self.connection.execute(as_a_batch(statement))

    def answer(self, query: str) -> Counter[Row]:
        """The rows as records would tell them."""
        rows = self.connection.sql(as_a_batch(query)).to_arrow_table()
        encoded = encode(Changes.of(rows).table, tuple(rows.column_names), (), updating=False)
        return Counter(tuple(orjson.loads(value).values()) for value in encoded.values if value is not None)


def answer(tables: Mapping[str, pa.Table], query: str, rules: Rules = Rules.RISINGWAVE) -> Counter[Row]:
    with Batch.of(rules) as batch:
        for name, rows in tables.items():
            batch.create(name, rows)
        return batch.answer(query)


def near(rows: Iterable[Row]) -> Counter[Row]:
    """Rows with their fractions to 12 digits: the two engines round an average at different places."""
    return Counter(
        tuple(float(f"{value:.12g}") if isinstance(value, float) else value for value in row) for row in rows
    )


def as_a_batch(text: str) -> str:
    for written, instead in _AS_A_BATCH:
        text = re.sub(written, instead, text)
    return text


def _in_microseconds(field: pa.Field) -> pa.Field:
    """As a TIMESTAMP is declared, and written."""
    return field.with_type(pa.timestamp("us")) if pa.types.is_timestamp(field.type) else field
