"""How fine times are: as their columns and functions say, and never coarser than their values."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.changelog.errors import SqlError
from dovetail.changelog.formats import json_text
from dovetail.sql.expressions.evaluate import evaluate, run
from dovetail.sql.plan.nodes import Map
from dovetail.sql.plan.properties import walk
from dovetail.sql.planner import plan_query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import Select
from tests.sql.planner import Planner

STREAM = "CREATE STREAM s (k int64, d datetime, m datetime64(3), u datetime64(6), x string, f float64)"
TABLE = "CREATE TABLE t (k int, z timestamptz)"
CATALOG = Planner.of(STREAM, TABLE).catalog
UNITS: Sequence[tuple[str, str]] = (
    ("d", "s"),
    ("m", "ms"),
    ("u", "us"),
    ("_tp_time", "ms"),
    ("m + INTERVAL 1 MINUTE", "ms"),
    ("m + 1s", "ms"),
    ("m - 5", "ms"),
    ("m + INTERVAL 5 MICROSECOND", "us"),
    ("m + INTERVAL '1 second 500 milliseconds'", "us"),
    ("d + INTERVAL 1 DAY", "s"),
    ("add_milliseconds(d, 5)", "ms"),
    ("add_seconds(m, k)", "ms"),
    ("add_seconds(m, f)", "us"),
    ("to_timezone(m, 'Asia/Tokyo') + INTERVAL 1 DAY", "ms"),
    ("coalesce(d, m)", "ms"),
    ("coalesce(d, NULL)", "s"),
    ("if(k > 1, d, m)", "ms"),
    ("CASE WHEN k = 1 THEN m END", "ms"),
    ("null_if(m, u)", "ms"),
    ("greatest(d, u)", "us"),
    ("max2(m, d)", "ms"),
    ("to_start_of_hour(u)", "s"),
    ("to_start_of_second(m)", "ms"),
    ("date_trunc('minute', m)", "s"),
    ("to_start_of_interval(m, INTERVAL 5 SECOND)", "s"),
    ("to_start_of_interval(u, INTERVAL 5 MILLISECOND)", "ms"),
    ("to_datetime(m)", "s"),
    ("to_datetime(x)", "s"),
    ("to_datetime_or_zero(x)", "s"),
    ("to_datetime64(u, 3)", "ms"),
    ("to_datetime64(x, 6)", "us"),
    ("to_datetime64_or_null(x, 3)", "ms"),
    ("CAST(u AS datetime)", "s"),
    ("CAST(d AS datetime64(6))", "us"),
    ("u::datetime64(3)", "ms"),
    ("from_unix_timestamp64_milli(k)", "ms"),
    ("make_datetime(2000, 1, 1, 1, 1, 1)", "s"),
)
OVER_ROWS = (
    ("SELECT k, max(m) AS a FROM s GROUP BY k", "ms"),
    ("SELECT k, arg_max(d, k) AS a FROM s GROUP BY k", "s"),
    ("SELECT latest(m) AS a FROM s", "ms"),
    ("SELECT lag(m) OVER (PARTITION BY k ORDER BY u) AS a FROM s", "ms"),
    ("SELECT window_start AS a, count() FROM tumble(s, d, 5s) GROUP BY window_start", "s"),
    ("SELECT window_end AS a, count() FROM tumble(s, m, 5s) GROUP BY window_end", "ms"),
    ("SELECT m AS a FROM s UNION ALL SELECT d FROM s", "ms"),
    ("SELECT z AS a FROM t", "us"),
    ("SELECT date_trunc('minute', z) AS a FROM t", "us"),
)


def type_of(text: str) -> pa.DataType:
    statement = parse_one(text)
    assert isinstance(statement, Select)
    return plan_query("q", statement, CATALOG).schema.field("a").type


@pytest.mark.parametrize("source", ["s", "table(s)"])
@pytest.mark.parametrize(("expression", "unit"), UNITS)
def test_an_expression_is_as_fine_as_timeplus_has_it(expression: str, unit: str, source: str) -> None:
    assert type_of(f"SELECT {expression} AS a FROM {source}") == pa.timestamp(unit, "UTC")


@pytest.mark.parametrize(("text", "unit"), OVER_ROWS)
def test_over_groups_windows_and_unions(text: str, unit: str) -> None:
    assert type_of(text) == pa.timestamp(unit, "UTC")


def instants(unit: str) -> st.SearchStrategy[int | None]:
    per_second = {"s": 1, "ms": 1_000, "us": 1_000_000}[unit]
    most = 4_000_000_000 * per_second
    return st.none() | st.integers(-most, most) | st.sampled_from([-1, 0, 1, -per_second, 1 - per_second])


ROWS = st.lists(
    st.tuples(
        st.integers(-3, 3),
        *(instants(unit) for unit in ("s", "ms", "us")),
        st.sampled_from(["2026-01-31 12:00:00.123456", "1969-12-31 23:59:59.999999", "no time"]),
        st.floats(-1e6, 1e6),
    ),
    min_size=1,
    max_size=4,
)


CUT = ("CAST(u AS datetime)", "u::datetime64(3)")
"""Casts, which are cut off only as they are taken into their type."""


@given(rows=ROWS, expression=st.sampled_from([one for one, _ in UNITS if one not in ("_tp_time", *CUT)]))
def test_no_value_is_finer_than_its_type(rows: list[tuple[object, ...]], expression: str) -> None:
    """The engine has cut off the digits that the type does not have: taking its value into the type changes nothing."""
    statement = parse_one(f"SELECT {expression} AS a FROM table(s)")
    assert isinstance(statement, Select)
    names = ("k", "d", "m", "u", "x", "f")
    kinds = (pa.int64(), *(pa.timestamp(unit, "UTC") for unit in ("s", "ms", "us")), pa.string(), pa.float64())
    columns = [pa.array(list(values), kind) for values, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
    content = pa.table([*columns, pa.array([0] * len(rows), pa.timestamp("ms", "UTC"))], names=[*names, "_tp_time"])
    snapshot = plan_query("q", statement, CATALOG).snapshot
    assert snapshot is not None
    microseconds = pa.timestamp("us", "UTC")
    computed = run(snapshot.sql, {"s": content}).column("a").cast(microseconds)
    assert snapshot.run({"s": content}).column("a").cast(microseconds).equals(computed)


@given(micros=instants("us"))
def test_a_cast_cuts_off_towards_the_past(micros: int | None) -> None:
    content = pa.table({"u": pa.array([micros], pa.timestamp("us", "UTC"))})
    statement = parse_one(f"SELECT {CUT[0]} AS a, {CUT[1]} AS b FROM table(s)")
    assert isinstance(statement, Select)
    snapshot = plan_query("q", statement, CATALOG).snapshot
    assert snapshot is not None
    columns = [content.column(name) if name == "u" else pa.nulls(1) for name in ("k", "d", "m", "u", "x", "f")]
    row = snapshot.run({"s": pa.table(columns, names=["k", "d", "m", "u", "x", "f"])})
    for name, unit in (("a", 1_000_000), ("b", 1_000)):
        expected = None if micros is None else micros // unit
        assert row.column(name).cast(pa.int64()).to_pylist() == [expected]


@pytest.mark.parametrize(("expression", "text"), [("d", ""), ("m", ".100"), ("u", ".100000")])
def test_a_record_has_the_digits_of_its_column(expression: str, text: str) -> None:
    kind = type_of(f"SELECT {expression} AS a FROM s")
    rows = pa.table({"at": pa.array([1_100_000], pa.timestamp("us", "UTC")).cast(kind, safe=False)})
    assert list(json_text.objects(rows)) == [f'{{"at":"1970-01-01 00:00:01{text}"}}']


def test_windows_between_seconds_are_refused_over_a_datetime() -> None:
    for source in ("s", "table(s)"):
        with pytest.raises(SqlError, match="begin between seconds") as caught:
            type_of(f"SELECT window_start AS a FROM tumble({source}, d, 500ms)")
        assert "datetime64(3)" in caught.value.fix


def test_a_key_is_no_coarser_value_that_it_only_begins_with() -> None:
    """12:00:00.123456 is not found under 12:00:00.123, nor cut off to be."""
    planner = Planner.of(
        "CREATE STREAM s (k int, u datetime64(6))",
        "CREATE DICTIONARY d (m datetime64(3), n string) PRIMARY KEY m"
        " SOURCE(MYSQL(HOST 'db' PORT 3306 USER 'u' DB 'shop' TABLE 'd')) LAYOUT(HASHED()) LIFETIME(300)",
    )
    node = planner.only("SELECT s.k, n FROM s JOIN d ON s.u = d.m").output.input
    keys = [expr for one in walk(node) if isinstance(one, Map) for _, expr in one.columns if "DATE_TRUNC" in expr.text]
    assert [key.type for key in keys] == [pa.timestamp("ms", "UTC")]
    times = pa.array([1_123_000, 1_123_456], pa.timestamp("us", "UTC"))
    (found,) = evaluate(pa.table({keys[0].columns[0]: times}), [keys[0].text])
    assert found.is_valid().to_pylist() == [True, False]
