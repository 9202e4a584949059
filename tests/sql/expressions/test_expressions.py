"""Scalar SQL over Arrow tables."""

from __future__ import annotations

import pickle
from dataclasses import replace
from datetime import date, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from dovetail.changelog.changes import DELTA, DELTA_TYPE
from dovetail.changelog.errors import InternalError, SqlError, UnknownName, Unsupported
from dovetail.changelog.schema import ARRIVAL
from dovetail.joins.dataflow.ports import EXISTENCE_JOINS, JoinKind
from dovetail.sql.expressions.engine import parsed
from dovetail.sql.expressions.evaluate import Condition, RowMap, columns_of, common_type, plain_column
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.transforms.static_join_step import StaticJoinStep, default_of
from tests.sql.world import World

ROWS = pa.table(
    {
        "t.a": pa.array([1, 2, None, 4], pa.int32()),
        "t.s": ["x", "7", None, "12"],
        ARRIVAL: pa.array([10, 11, 12, 13]),
        DELTA: pa.array([1, 1, -1, 1], DELTA_TYPE),
    }
)


def _schema(**types: pa.DataType) -> pa.Schema:
    return pa.schema(list(types.items()))


def test_picks_and_renames_share_their_arrays() -> None:
    out = RowMap((("b", '"t.s"'),), _schema(b=pa.string()))(ROWS)
    assert out.column_names == ["b", ARRIVAL, DELTA]
    assert out.column("b").chunk(0).buffers()[2].address == ROWS.column("t.s").chunk(0).buffers()[2].address


def test_computed_columns_keep_the_order_of_rows_and_carry_arrival_and_delta() -> None:
    out = RowMap((("b", '"t.a" * 2'), ("c", "'k'")), _schema(b=pa.int64(), c=pa.string()), where='"t.a" <> 2')(ROWS)
    assert out.to_pydict() == {"b": [2, 8], "c": ["k", "k"], ARRIVAL: [10, 13], DELTA: [1, 1]}


def test_a_rejected_upsert_deletes_its_predecessor() -> None:
    out = RowMap((("b", '"t.a"'),), _schema(b=pa.int32()), where='"t.a" <> 2', on_reject="delete")(ROWS)
    assert out.column("b").to_pylist() == [1, 2, None, 4]
    assert out.column(DELTA).to_pylist() == [1, -1, -1, 1]


def test_types_are_the_same_for_empty_and_all_null_batches() -> None:
    step = RowMap((("b", '"t.a" + 1'), ("n", "NULL")), _schema(b=pa.int64(), n=pa.int32()))
    nulls = ROWS.set_column(0, "t.a", pa.array([None] * 4, pa.int32()))
    assert step(ROWS.slice(0, 0)).schema == step(ROWS).schema == step(nulls).schema


def test_a_value_that_cannot_be_computed_is_null_for_its_row_only() -> None:
    out = RowMap((("n", 'CAST("t.s" AS INTEGER)'),), _schema(n=pa.int32()))(ROWS)
    assert out.column("n").to_pylist() == [None, 7, None, 12]


def test_a_condition_takes_null_for_false_and_pickles() -> None:
    condition = pickle.loads(pickle.dumps(Condition('"t.a" > 1')))
    assert condition(ROWS).tolist() == [False, True, False, True]


def _static(**changes: Any) -> StaticJoinStep:
    step = StaticJoinStep(
        relations=("d",),
        sql='SELECT "a" AS "d.a", "v" AS "d.v" FROM "d"',
        schema=pa.schema([("d.a", pa.int64()), ("d.v", pa.string())]),
        left_keys=("t.a",),
        right_keys=("d.a",),
        null_safe=(False,),
        kind=JoinKind.INNER,
    )
    return replace(step, **changes)


SNAPSHOT = {"d": pa.table({"a": [2, 2, 4, None], "v": ["p", "q", "r", "n"]})}


def test_static_rows_repeat_the_row_in_order_with_its_delta() -> None:
    out = _static().bound(SNAPSHOT)(ROWS)
    assert out.column_names == ["t.a", "t.s", "d.a", "d.v", ARRIVAL, DELTA]
    assert list(zip(out["t.a"].to_pylist(), out["d.v"].to_pylist(), out[DELTA].to_pylist(), strict=True)) == [
        (2, "p", 1),
        (2, "q", 1),
        (4, "r", 1),
    ]


def test_an_outer_static_join_pads_at_once_and_null_matches_only_if_safe() -> None:
    out = _static(kind=JoinKind.LEFT).bound(SNAPSHOT)(ROWS)
    assert out["d.v"].to_pylist() == [None, "p", "q", None, "r"]
    safe = _static(kind=JoinKind.LEFT, null_safe=(True,)).bound(SNAPSHOT)(ROWS)
    assert safe["d.v"].to_pylist() == [None, "p", "q", "n", "r"]
    defaults = _static(kind=JoinKind.LEFT, defaults=True).bound(SNAPSHOT)(ROWS)
    assert (defaults["d.a"].to_pylist()[0], defaults["d.v"].to_pylist()[0]) == (0, "")


def test_a_static_join_that_asks_adds_no_column_but_its_mark() -> None:
    tested = {kind: _static(kind=kind, mark="m").bound(SNAPSHOT)(ROWS) for kind in EXISTENCE_JOINS}
    assert tested[JoinKind.SEMI]["t.a"].to_pylist() == [2, 4]
    assert tested[JoinKind.ANTI]["t.a"].to_pylist() == [1, None]
    assert tested[JoinKind.ANTI].column_names == ROWS.column_names
    assert tested[JoinKind.MARK].column_names == ["t.a", "t.s", "m", ARRIVAL, DELTA]
    assert tested[JoinKind.MARK]["m"].to_pylist() == [False, True, False, True]


def test_a_static_join_that_needs_no_column_of_its_table_still_has_its_rows() -> None:
    every = {
        "schema": pa.schema([]),
        "sql": "SELECT 1 AS one FROM d",
        "left_keys": (),
        "right_keys": (),
        "null_safe": (),
    }
    assert _static(**every).bound(SNAPSHOT)(ROWS).num_rows == 16
    assert _static(**every, kind=JoinKind.ANTI).bound({"d": SNAPSHOT["d"].slice(0, 0)})(ROWS).num_rows == 4


def test_a_condition_of_a_static_join_that_fails_for_a_pair_is_null_for_that_pair() -> None:
    step = _static(left_keys=(), right_keys=(), null_safe=(), condition='"t.s" IN (7, 9) AND "d.a" = 4')
    out = step.bound(SNAPSHOT)(ROWS)
    assert list(zip(out["t.s"].to_pylist(), out["d.v"].to_pylist(), strict=True)) == [("7", "r")]


def test_a_static_join_without_its_table_is_an_internal_error() -> None:
    with pytest.raises(InternalError, match="not loaded"):
        _static()(ROWS)


def test_columns_and_plain_columns() -> None:
    assert columns_of('"t.b" + "t.a" * "t.b"') == ("t.b", "t.a")
    assert plain_column('"t.a"') == "t.a"
    assert plain_column('"a" || "b"') is None


def _over(schema: pa.Schema, sql: str, place: str = "") -> Expr:
    return Expr.over(parsed(sql), schema, place)


def test_types_are_known_before_the_first_row() -> None:
    schema = pa.schema([("a", pa.int32()), ("t", pa.timestamp("ms", "UTC"))])
    assert [_over(schema, sql).type for sql in ('"a"', '"a" / 2', '"t"', "upper('x')")] == [
        pa.int32(),
        pa.float64(),
        pa.timestamp("ms", "UTC"),
        pa.string(),
    ]
    with pytest.raises(UnknownName, match="is not known") as unknown:
        _over(schema, "uper('x')", "in SELECT")
    assert (unknown.value.where, unknown.value.fix) == ("in SELECT", "did you mean upper?")
    with pytest.raises(SqlError):
        _over(schema, '"a" + "t"')


def test_keys_compare_numbers_with_numbers_only() -> None:
    assert common_type(pa.int32(), pa.int64(), "a = b", "") == pa.int64()
    assert common_type(pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC"), "a = b", "") == pa.timestamp("us", "UTC")
    with pytest.raises(SqlError, match="compares int32 with string"):
        common_type(pa.int32(), pa.string(), "a = b", "")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        *((pa.int8(), 0), (pa.float64(), 0.0), (pa.bool_(), False), (pa.string(), ""), (pa.list_(pa.int32()), [])),
        *((pa.decimal128(3, 2), Decimal(0)), (pa.decimal128(38, 38), Decimal(0)), (pa.month_day_nano_interval(), None)),
        *((pa.time32("ms"), time(0)), (pa.date32(), date(1970, 1, 1)), (pa.struct([("x", pa.int8())]), None)),
    ],
)
def test_defaults_of_types(kind: pa.DataType, expected: object) -> None:
    assert default_of(kind).as_py() == expected
    assert default_of(kind).type == kind


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("to_int('12') + 1", 13),
        ("to_string(n)", "5"),
        ("toString(n)", "5"),
        ("n::string || '!'", "5!"),
        ("CAST(n AS nullable(float64)) / 2", 2.5),
        ("multi_if(n < 1, 'low', n < 9, 'mid', 'high')", "mid"),
        ("if(n > 3, 'yes', 'no')", "yes"),
        ("if_null(null_if(n, 5), -1)", -1),
        ("concat(upper(s), '-', lower('B'))", "ABC-b"),
        ("length(s) + position(s, 'c')", 6),
        ("substring(s, 2, 1)", "b"),
        ("s ILIKE 'AB%' AND match(s, '^a.c$')", True),
        ("greatest(1, n, 3) - least(2, n)", 3),
        ("round(1.5 * n, 0) + abs(-1) + floor(2.9)", 11.0),
        ("int_div(n, 2)", 2),
        ("json_extract_string(j, 'k')", "v"),
        ("json_extract_int(j, 'n')", 3),
        ("array_string_concat(split_by_char(',', 'a,b'), '+')", "a+b"),
        ("[1, 2, 3][2]", 2),
        ("has([1, 2], 2)", True),
        ("date_diff('second', t, date_add(t, INTERVAL 2 MINUTE))", 120),
        ("date_diff('minute', t, t + 90s)", 1),
        ("to_unix_timestamp(to_start_of_hour(t)) % 3600", 0),
        ("to_year(t) * 100 + to_month(t)", 202601),
        ("t > '2025-12-31 23:59:59'", True),
        ("format('{}-{}', s, s)", "abc-abc"),
        ("coalesce(NULL, s)", "abc"),
    ],
)
def test_functions_of_both_dialects(written: str, value: object) -> None:
    world = World.of("CREATE STREAM x (n int, s string, j string, t datetime64(3))")
    world.start(f"SELECT {written} AS r FROM x")
    world.insert("x", {"n": 5, "s": "abc", "j": '{"k": "v", "n": 3}', "t": "2026-01-02 03:04:05"})
    ((row, _),) = world.drain()
    assert row["r"] == value


def test_what_changes_between_two_evaluations_is_refused() -> None:
    world = World.of("CREATE STREAM x (n int)")
    for written, message in (("now()", "no fixed value"), ("rand()", "random")):
        with pytest.raises(Unsupported, match=message):
            world.plan(f"SELECT n FROM x WHERE {written} IS NOT NULL")


def test_decimal_literals_are_floats() -> None:
    assert World.of("CREATE STREAM x (n int)").plan("SELECT 1.5 * n AS f FROM x").schema.field("f").type == pa.float64()
