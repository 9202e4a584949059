"""Timeplus' expressions, by this project and by ClickHouse, whose functions they are."""

from __future__ import annotations

import datetime as dt
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import cache
from itertools import islice
from typing import NamedTuple
from uuid import UUID

import pyarrow as pa
import sqlglot

from dovetail.sql.expressions import engine
from dovetail.sql.expressions.evaluate import evaluate
from dovetail.sql.functions.dialects import TIMEPLUS
from dovetail.sql.functions.environment import Environment
from dovetail.sql.functions.translate import Translator
from dovetail.sql.functions.typed import Typed
from dovetail.sql.syntax.calls import snake_case
from dovetail.sql.syntax.dialect import Dovetail
from dovetail.sql.syntax.rules import Rules
from tests.oracles import clickhouse
from tests.oracles.contexts import Source, column_of
from tests.oracles.fuzz import Sample
from tests.oracles.timeplus_expressions import expressions
from tests.oracles.values import Cell


class Column(NamedTuple):
    ours: pa.DataType
    theirs: str
    values: Sequence[object]


def _instant(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)


def _day(number: int) -> dt.date:
    return dt.date(1970, 1, 1) + dt.timedelta(days=number)


def _nullable(ours: pa.DataType, theirs: str, *values: object) -> Column:
    return Column(ours, f"Nullable({theirs})", (*values, None))


COLUMNS = {
    "i": _nullable(pa.int32(), "Int32", 7, -3, 0, 2147483647, -2147483648, 12),
    "j": _nullable(pa.int32(), "Int32", 2, 5, 3, -1, 100, -7),
    "n": _nullable(pa.int8(), "Int8", 1, -1, 2, 127, -128, 3),
    "big": _nullable(pa.int64(), "Int64", 5_000_000_000, -1, 0, 9223372036854775807, -42, 1_000_000),
    "u": _nullable(pa.uint32(), "UInt32", 1, 0, 4294967295, 7, 255, 1024),
    "ubig": _nullable(pa.uint64(), "UInt64", 1, 0, 18446744073709551615, 7, 3, 1 << 40),
    "f": _nullable(pa.float64(), "Float64", 2.5, -3.5, 0.0, 1e20, 0.125, 1234.5678),
    "g": _nullable(pa.float64(), "Float64", 0.1, 100.0, -2.75, 3.0, 1e-7, 0.5),
    "m": _nullable(
        pa.decimal128(10, 2), "Decimal(10, 2)", *map(Decimal, ["1.50", "-2.25", "0.00", "99999.99", "0.05", "7.00"])
    ),
    "o": _nullable(pa.bool_(), "Bool", True, False, True, True, False, False),
    "s": _nullable(pa.string(), "String", "Hello World", "a,b,,c", "", "héllo 12", " x_y%z ", "k1=v1 k2=v2"),
    "t": _nullable(pa.string(), "String", "12", "3.5", "x", "-7", "", "1e3"),
    "p": _nullable(pa.string(), "String", "l", ",", "", "12", "x", "k"),
    "ts": _nullable(
        pa.timestamp("us", tz="UTC"),
        "DateTime64(6, 'UTC')",
        *map(
            _instant,
            [
                "2024-03-10 23:30:15.123456",
                "1971-02-01 00:00:00",
                "1999-12-31 23:59:59.999999",
                "2024-02-29 12:00:00",
                "2021-01-03 05:06:07.5",
                "2038-01-19 03:14:08",
            ],
        ),
    ),
    "d": _nullable(
        pa.date32(),
        "Date32",
        *map(_day, (19792, 375, 11016, 18630, 18627, 24855)),
    ),
    "day_text": _nullable(
        pa.string(), "String", "2024-03-10", "1999-12-31 23:59:59", "x", "no day", "2024-02-29 01:02:03", ""
    ),
    "json": _nullable(
        pa.string(),
        "String",
        '{"a":{"c":"x","n":5},"l":[1,2.5,"s",null],"b":true,"f":1.5}',
        "[]",
        "not json",
        '{"a":"y","n":-3,"big":18446744073709551615}',
        '{"a":null,"l":[{"k":"v"},[]],"n":"12"}',
        "17",
    ),
    "url": _nullable(
        pa.string(),
        "String",
        "https://user@www.example.com:8080/a/b.html?x=1&y=two#part",
        "http://example.org",
        "no url",
        "ftp://files.example.net/pub/",
        "",
        "//cdn.example.com/lib.js?v=3",
    ),
    "ip": _nullable(pa.string(), "String", "192.168.0.1", "0.0.0.0", "x", "255.255.255.255", "1.2.3", "::1"),
    "ints": Column(pa.list_(pa.int32()), "Array(Int32)", ([7, -2, 7], [], [3, 1, 2], [0], [5, 5, 4, 4], [-1], [2, 8])),
    "more": Column(pa.list_(pa.int32()), "Array(Int32)", ([1, 2, 3], [], [3, 0, 9], [0], [4, 4, 5, 5], [7], [8, 2])),
    "reals": Column(
        pa.list_(pa.float64()), "Array(Float64)", ([0.5], [], [1.5, 2.5], [0.0], [-1.25, 3.0], [2.0], [9.0])
    ),
    "words": Column(
        pa.list_(pa.string()), "Array(String)", (["x", "y"], [], ["b", "a", "b"], ["z"], ["", "x"], ["é"], ["w"])
    ),
}  # fmt: skip

ROWS = pa.table({name: pa.array(column.values, column.ours) for name, column in COLUMNS.items()})
ENVIRONMENT = Environment({name: column.ours for name, column in COLUMNS.items()}, "an expression of the oracle")

_TEXT = re.compile(r"'(?:[^'\\]|\\.)*'")

_OTHERWISE = {
    "to_int": "toInt32",
    "to_int_or_null": "toInt32OrNull",
    "to_int_or_zero": "toInt32OrZero",
    "to_int_or_default": "toInt32OrDefault",
    "to_bigint": "toInt64",
    "to_bigint_or_null": "toInt64OrNull",
    "to_bigint_or_zero": "toInt64OrZero",
    "to_bigint_or_default": "toInt64OrDefault",
    "to_float": "toFloat64",
    "to_float_or_null": "toFloat64OrNull",
    "to_float_or_zero": "toFloat64OrZero",
    "to_float_or_default": "toFloat64OrDefault",
    "replace_regex": "replaceRegexpAll",
    "date_diff": "dateDiff",
    "day_of_month": "toDayOfMonth",
    "day_of_week": "toDayOfWeek",
    "day_of_year": "toDayOfYear",
    "date_trunc": "dateTrunc",
    "regexp_extract": "regexpExtract",
    "nullif": "nullIf",
    "json_extract_array": "JSONExtractArrayRaw",
}
"""Names that Timeplus has of its own."""


@cache
def _their_names() -> dict[str, str]:
    return {**{snake_case(name): name for name in clickhouse.function_names()}, **_OTHERWISE}


def their_text(expression: str) -> str:
    """The expression as ClickHouse reads it."""
    return re.sub(
        rf"{_TEXT.pattern}|\b([a-z]\w*)(?=\()",
        lambda found: _their_names().get(found[1].lower(), found[1]) if found[1] else found[0],
        expression,
    )


def names_of(expression: str) -> set[str]:
    """The functions that an expression calls by their names."""
    bare = _TEXT.sub("''", expression)
    return {
        snake_case(name) for name in re.findall(r"\b([A-Za-z]\w*)(?=\()", bare)
    } & TIMEPLUS.registry.functions.keys()


def our_values(expression: str) -> list[Cell]:
    """A value for each row of ``ROWS``. Raises SqlError."""
    (values,) = evaluate(ROWS, [engine.text(translated(expression).tree)])
    return [plain(value) for value in values.to_pylist()]


def translated(expression: str) -> Typed:
    return Translator(TIMEPLUS, ENVIRONMENT)(sqlglot.parse_one(expression, read=Dovetail))


def their_values(expressions: Sequence[str]) -> list[list[Cell] | str]:
    """A value for each row, for each expression; a text says why there are none."""
    answers = clickhouse.values_of(_table(), [their_text(expression) for expression in expressions])
    return [one if isinstance(one, str) else [plain(value) for value in one.to_pylist()] for one in answers]


@cache
def _table() -> str:
    clickhouse.create("rows", ROWS, {name: column.theirs for name, column in COLUMNS.items()})
    return "rows"


class TimeplusOracle:
    """Both sides of the dialect, over ``ROWS``. ClickHouse is asked for many expressions at a time."""

    def __init__(self) -> None:
        self._known: dict[str, list[Cell] | str] = {}

    def expressions(self, rng: random.Random) -> Iterator[Sample]:
        made = expressions(rng)
        while True:
            batch = list(islice(made, _BATCH))
            texts = [sample.text for sample in batch]
            self._known.update(zip(texts, their_values(texts), strict=True))
            yield from batch

    def ours(self, sample: Sample) -> Sequence[Cell]:
        return our_values(sample.text)

    def column(self, sample: Sample) -> pa.ChunkedArray:
        return column_of(translated(sample.text), ROWS, Rules.TIMEPLUS)

    def source(self) -> Source:
        columns = ", ".join(f"{name} {column.theirs.lower()}" for name, column in COLUMNS.items())
        numbers = pa.array(range(ROWS.num_rows), pa.int32())
        return Source(f"CREATE STREAM rows (number int32, {columns})", ROWS.append_column("number", numbers), "number")

    def theirs(self, sample: Sample) -> Sequence[Cell] | None:
        """None where ClickHouse stops: a call that fails is not NULL there."""
        answer = self._known[sample.text]
        return None if isinstance(answer, str) else answer


_BATCH = 50


@contextmanager
def oracle() -> Iterator[TimeplusOracle]:
    yield TimeplusOracle()


def plain(value: object) -> Cell:
    """What both engines mean by a value: ClickHouse's truth is a number, its texts are bytes, its times seconds."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, bytes):
        return value.decode(errors="surrogateescape")
    if isinstance(value, dt.datetime):
        return Decimal(f"{value.timestamp():.6f}")
    if isinstance(value, Mapping):
        return [plain(one) for one in value.values()]
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, UUID):
        return str(value)
    return value
