"""What a row of the tables says holds for random calls of it, and what lists functions reads the rows."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType

import duckdb
import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

from dovetail.changelog.errors import SqlError
from dovetail.sql.expressions import engine
from dovetail.sql.expressions.evaluate import evaluate
from dovetail.sql.expressions.misfits import EngineRefused
from dovetail.sql.functions import risingwave, timeplus
from dovetail.sql.functions.dialects import RISINGWAVE, TIMEPLUS, function_names
from dovetail.sql.functions.environment import Environment
from dovetail.sql.functions.page import pages
from dovetail.sql.functions.registry import Row, Table, arity_of
from dovetail.sql.functions.translate import Dialect, Translator
from dovetail.sql.functions.typed import Typed
from dovetail.sql.syntax.dialect import Dovetail
from dovetail.sql.syntax.risingwave import RisingWaveQueries
from tests.oracles import risingwave_rows
from tests.oracles import timeplus as timeplus_rows

_WRITTEN = (
    "'day' | 'hour' | 2 | 1 | '%Y' | 'a' | '(a)' | 'int32' | 'sum' | 'UTC' | '%{INT:n}' | (1, 2) | map('a', 2)"
    " | INTERVAL 1 DAY"
)
_WRITTEN_OF_TABLES = (
    "'day' | 'hour' | 2 | 1 | 'YYYY' | 'a' | 'hex' | 'UTC' | '{\"a\": 1}' | INTERVAL '1 day' | 'utf8' | MAP {'a': 1}"
    " | ARRAY[ROW('a', 1)]"
)
"""What some functions take in no other form."""
_OF_NAME = {
    "(text, parts)": "s, ['a', 'b']",
    "(text, patterns)": "s, ['a', 'b']",
    "(unit, from, to[, zone])": "'day', ts, ts",
    "(array, |x| value)": "ai, |x| x IS NULL",
    "(row, object)": "ROW(1, 'x'), '{\"f1\": 2}'",
    "(row, array)": "ROW(1, 'x'), '[{\"f1\": 2}]'",
    "(map, |k, v| condition)": "MAP {'a': 1, 'b': i4}, |k, v| v > 1",
}
"""What is as good as never chosen at random."""
_LAMBDAS = "x -> x > 1 | (x, y) -> x + y | (k, v) -> v > 1 | (k, v) -> (k, v)"
_REFUSALS = (SqlError, EngineRefused, duckdb.Error)
_TRIES = 2000


@dataclass(frozen=True)
class Calls:
    """Random calls of the functions of a dialect, over rows with NULLs and edges."""

    dialect: Dialect
    groups: Mapping[str, Table]
    read: type[sqlglot.Dialect]
    rows: pa.Table
    written: str

    @property
    def name(self) -> str:
        return self.dialect.registry.dialect

    def table(self) -> Iterator[Row]:
        for table in self.groups.values():
            yield from table

    @cached_property
    def translate(self) -> Translator:
        return Translator(self.dialect, Environment({field.name: field.type for field in self.rows.schema}, "SELECT"))

    @cached_property
    def _values(self) -> Sequence[exp.Expr]:
        return [*map(exp.column, self.rows.column_names), *self._parsed(self.written)]

    @cached_property
    def _lambdas(self) -> Sequence[exp.Expr]:
        return self._parsed(_LAMBDAS)

    def _parsed(self, texts: str) -> list[exp.Expr]:
        return [sqlglot.parse_one(f"f({text})", read=self.read).expressions[0] for text in texts.split(" | ")]

    def _random(self, row: Row, rng: random.Random) -> exp.Anonymous:
        usual = _OF_NAME.get(row.usage[row.usage.index("(") :])
        if usual is not None:
            (call,) = self._parsed(f"g({usual})")
            return exp.Anonymous(this=row.names[0], expressions=call.expressions)
        least, most = row.argument_count
        count = rng.randint(least, least + 2 if most is None else most)
        # Many take arguments of one type only.
        arguments = rng.choices(self._values, k=count) if rng.random() < 0.6 else [rng.choice(self._values)] * count
        if "->" in row.usage and (not row.usage.partition("(")[2].startswith("[") or len(arguments) > 1):
            arguments[0] = rng.choice(self._lambdas)
        return exp.Anonymous(this=row.names[0], expressions=[one.copy() for one in arguments])

    def call(self, row: Row) -> Typed:
        """A random one of those that are not refused."""
        rng = random.Random(row.usage)
        for _ in range(_TRIES):
            try:
                value = self.translate(self._random(row, rng))
                self.answers(value, self.rows)
            except _REFUSALS:
                continue
            return value
        raise AssertionError(f"no call of {row.usage} was taken")

    def answers(self, value: Typed, rows: pa.Table) -> list[str]:
        (column,) = evaluate(rows, [engine.text(value.tree)])
        return [repr(one) for one in column.to_pylist()]


CALLS = (
    Calls(TIMEPLUS, timeplus.GROUPS, Dovetail, timeplus_rows.ROWS, _WRITTEN),
    Calls(RISINGWAVE, risingwave.GROUPS, RisingWaveQueries, risingwave_rows.TABLE, _WRITTEN_OF_TABLES),
)


@pytest.mark.parametrize(
    ("calls", "row"),
    [pytest.param(calls, row, id=f"{calls.name}-{row.usage}") for calls in CALLS for row in calls.table()],
)
def test_a_call_has_the_type_of_its_row_and_the_same_value_wherever_it_stands(calls: Calls, row: Row) -> None:
    value = calls.call(row)
    assert row.gives in (None, value.type)
    values = calls.answers(value, calls.rows)
    backwards = calls.rows.take(list(reversed(range(calls.rows.num_rows))))
    assert calls.answers(value, backwards) == values[::-1]


@pytest.mark.parametrize("calls", CALLS, ids=lambda calls: calls.name)
def test_an_arity_is_written_out_only_where_the_usage_shows_another(calls: Calls) -> None:
    assert [row.usage for row in calls.table() if row.arity == arity_of(row.usage)] == []


@pytest.mark.parametrize(
    ("usage", "arity"),
    [
        ("pi()", (0, 0)),
        ("lower(text)", (1, 1)),
        ("to_hour(time[, zone])", (1, 2)),
        ("to_datetime64(x[, digits[, zone]])", (1, 3)),
        ("log([base, ]x)", (1, 2)),
        ("range([from,] to[, step])", (1, 3)),
        ("multi_if(condition, value, .., else)", (3, None)),
        ("array_exists([(x, ..) -> ..,] array, ..)", (1, None)),
        ("map_apply((k, v) -> .., map)", (2, 2)),
    ],
)
def test_a_usage_says_how_many_arguments_there_are(usage: str, arity: tuple[int, int | None]) -> None:
    assert arity_of(usage) == arity


@pytest.mark.parametrize(("module", "calls"), [(timeplus, CALLS[0]), (risingwave, CALLS[1])])
def test_a_row_alone_makes_a_function(module: ModuleType, calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    groups, functions = module.GROUPS, module.functions
    row = Row("said_twice(text)", "the text two times", "{0} || {0}", pa.string(), takes="text", also="told_twice")
    group = next(iter(groups))
    monkeypatch.setitem(groups, group, (*groups[group], row))
    functions.cache_clear()
    try:
        assert "| `said_twice(text)` | the text two times; also `told_twice` |" in "".join(pages().values())
        assert {"said_twice", "told_twice"} <= set(function_names())
        assert row in calls.table()
        test_a_call_has_the_type_of_its_row_and_the_same_value_wherever_it_stands(calls, row)
        with pytest.raises(SqlError, match="takes a text"):
            calls.translate(sqlglot.parse_one("said_twice(ARRAY[1])", read=calls.read))
    finally:
        monkeypatch.undo()
        functions.cache_clear()
