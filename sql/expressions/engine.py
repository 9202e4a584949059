"""The SQL of the engine that computes expressions: DuckDB's, with every call as it is written.

sqlglot's own reader of DuckDB maps calls onto its standard functions and back, and loses arguments on the way
(``list_sort(x, 'ASC', 'NULLS LAST')``). Here a call stays a name and its arguments, aggregates apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import ClassVar

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.generators.duckdb import DuckDBGenerator
from sqlglot.parsers.duckdb import DuckDBParser

from dovetail.changelog.errors import Unsupported
from dovetail.changelog.wording import type_words
from dovetail.sql.syntax.dialect import AGGREGATES, as_written

_OWN_AGGREGATES = ("BIT_AND", "BIT_OR", "BIT_XOR", "REGR_SXX", "REGR_SXY", "REGR_INTERCEPT", "REGR_R2")
"""Those that only templates of the dialects name."""


class EngineParser(DuckDBParser):
    FUNCTIONS: ClassVar[dict[str, Callable[..., exp.Expr]]] = as_written(
        DuckDBParser.FUNCTIONS, (*AGGREGATES, *_OWN_AGGREGATES)
    )


class EngineGenerator(DuckDBGenerator):
    def ignorenulls_sql(self, expression: exp.IgnoreNulls) -> str:
        """Within the brackets of the call, where the engine takes it of any function of windows."""
        return f"{self.sql(expression, 'this').removesuffix(')')} IGNORE NULLS)"


class EngineSql(DuckDB):
    """DuckDB's dialect, calls and positions kept as they are written."""

    INDEX_OFFSET = 0
    Parser = EngineParser
    Generator = EngineGenerator


def parsed(sql: str) -> exp.Expr:
    return _read(sql).copy()


@lru_cache(maxsize=4096)
def _read(sql: str) -> exp.Expr:
    return sqlglot.parse_one(sql, read=EngineSql)


def text(tree: exp.Expr) -> str:
    return tree.sql(dialect=EngineSql, unsupported_level=sqlglot.ErrorLevel.IGNORE)


def type_name(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_list(kind):
        return f"{type_name(kind.value_type)}[]"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMPTZ" if kind.tz else "TIMESTAMP"
    if kind not in _DUCKDB_TYPES:
        raise Unsupported(f"CAST to {type_words(kind)} is not supported", fix="CAST to a plain type")
    return _DUCKDB_TYPES[kind]


_DUCKDB_TYPES: Mapping[pa.DataType, str] = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.uint8(): "UTINYINT",
    pa.uint16(): "USMALLINT",
    pa.uint32(): "UINTEGER",
    pa.uint64(): "UBIGINT",
    pa.float32(): "REAL",
    pa.float64(): "DOUBLE",
    pa.string(): "TEXT",
    pa.binary(): "BLOB",
    pa.date32(): "DATE",
    pa.time64("us"): "TIME",
}
