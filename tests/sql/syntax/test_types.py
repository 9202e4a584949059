"""Types: names of both dialects to Arrow, and back."""

import pyarrow as pa
import pytest

from dovetail.changelog.errors import SyntaxFault, UnknownName, Unsupported
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.types import INSTANT, LOCAL, arrow, display

BOTH = [
    ("int", pa.int32()),
    ("INTEGER", pa.int32()),
    ("int64", pa.int64()),
    ("BIGINT", pa.int64()),
    ("smallint", pa.int16()),
    ("uint64", pa.uint64()),
    ("float64", pa.float64()),
    ("DOUBLE PRECISION", pa.float64()),
    ("real", pa.float32()),
    ("decimal(10, 2)", pa.decimal128(10, 2)),
    ("NUMERIC", pa.decimal128(28, 10)),
    ("decimal(9)", pa.decimal128(9, 0)),
    ("decimal32(3)", pa.decimal128(9, 3)),
    ("Decimal64(0)", pa.decimal128(18, 0)),
    ("decimal128(38)", pa.decimal128(38, 38)),
    ("string", pa.string()),
    ("VARCHAR(20)", pa.string()),
    ("CHARACTER VARYING(20)", pa.string()),
    ("char(3)", pa.string()),
    ("fixed_string(16)", pa.string()),
    ("bool", pa.bool_()),
    ("BOOLEAN", pa.bool_()),
    ("date", pa.date32()),
    ("date32", pa.date32()),
    ("datetime64(6, 'UTC')", INSTANT),
    ("TIMESTAMPTZ", INSTANT),
    ("TIMESTAMP WITH TIME ZONE", INSTANT),
    ("TIMESTAMP WITHOUT TIME ZONE", LOCAL),
    ("time", pa.time64("us")),
    ("uuid", pa.string()),
    ("ipv4", pa.string()),
    ("jsonb", pa.string()),
    ("bytea", pa.binary()),
    ("nullable(int)", pa.int32()),
    ("low_cardinality(nullable(string))", pa.string()),
    ("enum8('a' = 1, 'b' = -2)", pa.string()),
    ("array(int)", pa.list_(pa.int32())),
    ("INT[]", pa.list_(pa.int32())),
    ("varchar[][]", pa.list_(pa.list_(pa.string()))),
    ("map(string, array(int))", pa.map_(pa.string(), pa.list_(pa.int32()))),
    ("tuple(a int, b array(string))", pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])),
    ("tuple(int, string)", pa.struct([("1", pa.int32()), ("2", pa.string())])),
    ("ROW<a INT, b VARCHAR>", pa.struct([("a", pa.int32()), ("b", pa.string())])),
    ("STRUCT<a INT, b VARCHAR>", pa.struct([("a", pa.int32()), ("b", pa.string())])),
]


@pytest.mark.parametrize("rules", Rules)
@pytest.mark.parametrize(("name", "expected"), BOTH)
def test_the_same_under_both_rules(name: str, expected: pa.DataType, rules: Rules) -> None:
    assert arrow(name, rules) == expected


@pytest.mark.parametrize(
    ("name", "timeplus", "risingwave"),
    [
        ("int8", pa.int8(), pa.int64()),
        ("float", pa.float32(), pa.float64()),
        ("timestamp", INSTANT, LOCAL),
        ("datetime", pa.timestamp("s", "UTC"), INSTANT),
        ("datetime('UTC')", pa.timestamp("s", "UTC"), INSTANT),
        ("datetime64", pa.timestamp("ms", "UTC"), INSTANT),
        *((f"datetime64({digits})", pa.timestamp("ms", "UTC"), INSTANT) for digits in (1, 2, 3)),
        ("timestamp_ltz(3)", pa.timestamp("ms", "UTC"), INSTANT),
        ("datetime64(0)", pa.timestamp("s", "UTC"), INSTANT),
        ("datetime64(3, 'UTC')", pa.timestamp("ms", "UTC"), INSTANT),
        ("datetime64(5)", INSTANT, INSTANT),
        ("array(datetime64(3))", pa.list_(pa.timestamp("ms", "UTC")), pa.list_(INSTANT)),
    ],
)
def test_where_the_rules_differ(name: str, timeplus: pa.DataType, risingwave: pa.DataType) -> None:
    for rules, expected in ((Rules.TIMEPLUS, timeplus), (Rules.RISINGWAVE, risingwave)):
        assert arrow(name, rules) == expected
        assert arrow(display(expected, rules), rules) == expected


@pytest.mark.parametrize("rules", Rules)
@pytest.mark.parametrize("data_type", sorted({expected for _, expected in BOTH}, key=str))
def test_a_displayed_name_reads_back_as_the_type(data_type: pa.DataType, rules: Rules) -> None:
    assert arrow(display(data_type, rules), rules) == data_type


def test_an_unknown_type_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match='there is no type "strng"') as caught:
        arrow("array(strng)", Rules.TIMEPLUS)
    assert 'did you mean "string"?' in caught.value.fix
    assert "column 7" in caught.value.where


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("decimal(60, 2)", "decimal(38, 10)"),
        ("uint256", "decimal(38, 0)"),
        ("decimal256(3)", "decimal(38, 0)"),
        ("decimal32(10)", "decimal32(3)"),
        ("decimal32", "decimal32(3)"),
        ("datetime64(9)", "datetime64(6)"),
        ("datetime('Asia/Tokyo')", "datetime('UTC')"),
    ],
)
def test_a_type_that_no_column_can_hold_is_refused_with_one_that_can(name: str, fix: str) -> None:
    with pytest.raises(Unsupported) as caught:
        arrow(name, Rules.TIMEPLUS)
    assert fix in caught.value.fix


@pytest.mark.parametrize("name", ["array(int", "map(int)", "int int", "array(int, int)"])
def test_a_name_that_is_cut_or_too_long_is_a_syntax_fault(name: str) -> None:
    with pytest.raises(SyntaxFault):
        arrow(name, Rules.TIMEPLUS)
