"""What TPC-H's tables hold while they change, and what DuckDB answers over it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from tests.tpch.rows import CHANGING, FIXED, SHARES, Key, Row, Table

HERE = Path(__file__).parent
SCHEMA = [statement.strip() for statement in (HERE / "schema.sql").read_text().split(";") if statement.strip()]

QUOTIENTS = {"mkt_share", "promo_revenue", "avg_yearly"}
"""Columns that are divided: numeric here, as in PostgreSQL, and double in DuckDB. Of sums they have 6 digits."""


def queries() -> list[str]:
    return sorted(path.stem for path in (HERE / "queries").glob("q*.sql"))


def query(name: str) -> str:
    return (HERE / "queries" / f"{name}.sql").read_text().strip()


@dataclass(frozen=True)
class Change:
    """A row that is written, or deleted."""

    table: str
    row: Row
    deleted: bool = False


@dataclass
class Contents:
    """The rows that stand in every table, by key; ``chance`` says how they change."""

    chance: np.random.Generator
    rows: dict[str, dict[Key, Row]] = field(default_factory=lambda: defaultdict(dict))

    @staticmethod
    def of(seed: int) -> Contents:
        return Contents(np.random.default_rng(seed))

    def fixed(self) -> Iterator[Change]:
        """Regions and nations."""
        for name, rows in FIXED.items():
            for number, row in enumerate(rows):
                self.rows[name][(number,)] = row
                yield Change(name, row)

    def changes(self, count: int, deletes: float = 0.25) -> Iterator[Change]:
        """Inserts, updates of rows that stand, and ``deletes`` of all that take a row away."""
        weights = np.array(SHARES) / sum(SHARES)
        for place in self.chance.choice(len(CHANGING), count, p=weights):
            yield self._changed(CHANGING[place], self.chance.random() < deletes)

    def _changed(self, table: Table, deleted: bool) -> Change:
        rows = self.rows[table.name]
        if deleted and rows:
            key = list(rows)[int(self.chance.integers(len(rows)))]
            return Change(table.name, rows.pop(key), deleted=True)
        key = table.key(self.chance)
        rows[key] = table.row(key, self.chance)
        return Change(table.name, rows[key])


class Oracle:
    """DuckDB over the same contents."""

    def __init__(self, contents: Contents) -> None:
        self._connection = duckdb.connect()
        for statement in SCHEMA:
            self._connection.execute(statement)
        for table, rows in contents.rows.items():
            if rows:
                self._connection.register("standing", pa.Table.from_pylist(list(rows.values())))
                self._connection.execute(f"INSERT INTO {table} BY NAME FROM standing")
                self._connection.unregister("standing")

    def answer(self, text: str) -> pa.Table:
        return self._connection.sql(text).to_arrow_table()


def rows_of(table: pa.Table) -> Counter[tuple[object, ...]]:
    """Quotients to their 6 digits; averages, of which DuckDB's can be an ulp beside, to 9."""
    columns = [
        [_rounded(value, name in QUOTIENTS) for value in column.to_pylist()]
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    return Counter(zip(*columns, strict=True))


def _rounded(value: object, quotient: bool) -> object:
    if quotient and value is not None:
        return Decimal(str(value)).quantize(Decimal("0.000001"))
    return round(value, 9) if isinstance(value, float) else value
