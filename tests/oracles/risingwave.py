"""RisingWave's dialect beside PostgreSQL, over one table of edges."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import sqlglot
from psycopg import sql as identifiers
from psycopg.types.json import Jsonb

from dovetail.sql.expressions import engine
from dovetail.sql.expressions.evaluate import evaluate
from dovetail.sql.functions.documents import JSON
from dovetail.sql.functions.environment import Environment
from dovetail.sql.functions.risingwave.postgres_dialect import RisingWaveDialect
from dovetail.sql.functions.translate import Translator
from dovetail.sql.functions.typed import Typed
from dovetail.sql.syntax.risingwave import RisingWaveQueries
from dovetail.sql.syntax.rules import Rules
from tests.oracles.contexts import Source, column_of
from tests.oracles.fuzz import Sample
from tests.oracles.postgres import Postgres, postgres
from tests.oracles.risingwave_grammar import samples
from tests.oracles.risingwave_rows import COLUMNS, FORMS, TABLE
from tests.oracles.values import Cell

_ENVIRONMENT = Environment({field.name: field.type for field in TABLE.schema}, rules=Rules.RISINGWAVE, forms=FORMS)

_SETUP = tuple(
    statement.strip()
    for statement in """
    CREATE EXTENSION pgcrypto;
    CREATE FUNCTION sha1(bytea) RETURNS bytea LANGUAGE sql AS $$ SELECT digest($1, 'sha1') $$;
    CREATE FUNCTION array_contains(anyarray, anyarray) RETURNS boolean LANGUAGE sql AS $$ SELECT $1 @> $2 $$;
    CREATE FUNCTION array_contained(anyarray, anyarray) RETURNS boolean LANGUAGE sql AS $$ SELECT $1 <@ $2 $$;
    CREATE FUNCTION array_min(anyarray) RETURNS anyelement LANGUAGE sql AS $$ SELECT min(x) FROM unnest($1) AS x $$;
    CREATE FUNCTION array_max(anyarray) RETURNS anyelement LANGUAGE sql AS $$ SELECT max(x) FROM unnest($1) AS x $$;
    CREATE FUNCTION array_sum(int[]) RETURNS bigint LANGUAGE sql AS $$ SELECT sum(x) FROM unnest($1) AS x $$;
    CREATE FUNCTION array_sum(float8[]) RETURNS float8 LANGUAGE sql AS $$ SELECT sum(x) FROM unnest($1) AS x $$;
    CREATE FUNCTION array_sort(anyarray) RETURNS anyarray LANGUAGE sql STRICT AS
      $$ SELECT coalesce(array_agg(x ORDER BY x), $1[1:0]) FROM unnest($1) AS x $$;
    CREATE FUNCTION array_reverse(anyarray) RETURNS anyarray LANGUAGE sql STRICT AS
      $$ SELECT coalesce(array_agg(x ORDER BY i DESC), $1[1:0]) FROM unnest($1) WITH ORDINALITY AS u(x, i) $$;
    CREATE FUNCTION array_distinct(anyarray) RETURNS anyarray LANGUAGE sql STRICT AS
      $$ SELECT coalesce(array_agg(x ORDER BY i), $1[1:0])
         FROM (SELECT x, min(i) AS i FROM unnest($1) WITH ORDINALITY AS u(x, i) GROUP BY x) AS first $$;
    """.split(";\n")  # noqa: SIM905 - statements, as one reads them
    if statement.strip()
)
"""What RisingWave has and PostgreSQL has not, in its own words."""

_TYPES = {
    "smallint": pa.int16(), "integer": pa.int32(), "bigint": pa.int64(), "real": pa.float32(),
    "double precision": pa.float64(),
    "text": pa.string(), "character varying": pa.string(), "boolean": pa.bool_(), "date": pa.date32(),
    "bytea": pa.binary(),
    "timestamp without time zone": pa.timestamp("us"), "timestamp with time zone": pa.timestamp("us", tz="UTC"),
    "time without time zone": pa.time64("us"), "interval": pa.month_day_nano_interval(), "jsonb": pa.string(),
    "json": pa.string(),
    "integer[]": pa.list_(pa.int32()), "double precision[]": pa.list_(pa.float64()), "text[]": pa.list_(pa.string()),
    "character varying[]": pa.list_(pa.string()),
}  # fmt: skip

_DAYS = range(-719_162, 2_932_897)
_MICROSECONDS = range(_DAYS.start * 86_400_000_000, _DAYS.stop * 86_400_000_000)
_HELD = {"date": _DAYS, "timestamp without time zone": _MICROSECONDS, "timestamp with time zone": _MICROSECONDS}
"""The years 1 to 9999, as the numbers since 1970; PostgreSQL has others too."""


@dataclass
class RisingWaveOracle:
    theirs_: Postgres

    def expressions(self, rng: random.Random) -> Iterator[Sample]:
        return samples(rng)

    def ours(self, sample: Sample) -> Sequence[Cell]:
        typed = translated(sample.text)
        (found,) = evaluate(TABLE, [engine.text(typed.tree)])
        assert found.type == typed.type or typed.known_type is None, f"{sample.text} is {found.type}, told {typed.type}"
        return [plain(value) for value in _numbered(found, typed)]

    def column(self, sample: Sample) -> pa.ChunkedArray:
        return column_of(translated(sample.text), TABLE, Rules.RISINGWAVE)

    def source(self) -> Source:
        columns = ", ".join(f"{name} {kind}" for name, (kind, _, _) in COLUMNS.items())
        return Source(f"CREATE TABLE rows ({columns}, PRIMARY KEY (id))", TABLE, "id")

    def theirs(self, sample: Sample) -> Sequence[Cell] | None:
        """With NULL for a time that no row can hold."""
        found, held = self.theirs_.values(sample), _HELD.get(str(self.theirs_.kind(sample.text)))
        if found is None or held is None:
            return found
        return [value if value is None or value in held else None for value in found]

    def same_type(self, sample: Sample) -> bool:
        """Whether both give the same type; a numeric may be a double precision, as ``differs`` says where it is."""
        kind, ours = self.theirs_.kind(sample.text), translated(sample.text).type
        if kind == "numeric":
            return bool(pa.types.is_decimal(ours) or ours == pa.float64())
        return kind is not None and _TYPES.get(kind) == ours


def translated(text: str) -> Typed:
    return Translator(RisingWaveDialect(), _ENVIRONMENT)(sqlglot.parse_one(text, read=RisingWaveQueries))


def _numbered(values: pa.ChunkedArray, typed: Typed) -> list[Cell]:
    """Times as the numbers behind them: Python has not all of them."""
    kind = values.type
    if typed.known_type == JSON:
        return [None if text is None else json.loads(text) for text in values.to_pylist()]
    if pa.types.is_date(kind):
        return list(values.cast(pa.int32()).to_pylist())
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        return list(values.cast(pa.int64()).to_pylist())
    return list(values.to_pylist())


def plain(value: Cell) -> Cell:
    if isinstance(value, pa.MonthDayNano):
        return [value.months, value.days, value.nanoseconds // 1000]
    return value


@contextmanager
def oracle() -> Iterator[RisingWaveOracle]:
    columns = ", ".join(f'"{name}" {kind}' for name, (kind, _, _) in COLUMNS.items())
    with postgres([*_SETUP, f"CREATE TABLE rows_of_edge ({columns})"], "rows_of_edge", "id") as server:
        places = ", ".join(["%s"] * len(COLUMNS))
        insert = identifiers.SQL(f"INSERT INTO rows_of_edge VALUES ({places})")
        for row in zip(*(values for _, _, values in COLUMNS.values()), strict=True):
            server.connection.execute(insert, [_sent(name, value) for name, value in zip(COLUMNS, row, strict=True)])
        server.rows = TABLE.num_rows
        yield RisingWaveOracle(server)


def _sent(name: str, value: object) -> object:
    return None if value is None else Jsonb(json.loads(str(value))) if name == "j" else value
