"""Texts of JSON that hypothesis does not come upon: a batch reads them as they are read alone, or rejects them."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.changelog.decode import Decoded, Decoder
from dovetail.changelog.encodings.schema_id_framing.plain_values import as_given
from dovetail.changelog.schema import ARRIVAL, Column, StreamSchema
from tests.changelog.records import records
from tests.tries import tries

KINDS = (
    *(pa.decimal128(precision, scale) for precision, scale in [(9, 2), (38, 0), (38, 2), (38, 19), (38, 38), (1, 1)]),
    *(pa.int8(), pa.int64(), pa.uint64(), pa.float32(), pa.float64(), pa.string(), pa.bool_(), pa.binary()),
    *(pa.timestamp("s"), pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.date32(), pa.time64("us")),
    *(pa.list_(pa.int64()), pa.list_(pa.float64()), pa.list_(pa.decimal128(9, 2)), pa.list_(pa.timestamp("us"))),
    *(pa.map_(pa.string(), pa.int64()), pa.map_(pa.int64(), pa.int64())),
    *(pa.struct([("v", kind)]) for kind in (pa.int64(), pa.float64(), pa.decimal128(38, 38))),
)
LITERALS = (
    *("1" * digits for digits in (10, 18, 19, 20, 28, 29, 36, 37, 38, 39, 40, 60, 76, 77, 308, 309, 400, 5000)),
    *(f"{'9' * whole}.{'9' * rest}" for whole in (7, 19, 36, 37, 38, 75) for rest in (2, 19, 38)),
    *(f"1{'0' * 40}.00", f"0.{'0' * 50}1", f"1.{'0' * 60}", f'"1.{"0" * 60}"', f"0.{'1' * 400}"),
    *("1e5", "1e18", "1e30", "1e37", "1e38", "1e39", "1e70", "1e76", "1e77", "1e308", "1e309", "1E+2", "1.5e-1"),
    *(
        "0e999",
        "0e99999999999999999999",
        "1e99999999999999999999",
        "1e-99999999999999999999",
        '"1e99999999999999999999"',
    ),
    *("-0", "-0.0", "1.0", "1e0", "1e-400", "-1e70", "9007199254740993.0", "1.0000000000000000000001"),
    *("18446744073709551616", "18446744073709551615", "9223372036854775808", "-9223372036854775809", "128", "-129"),
    *("NaN", "nan", "Infinity", "-Infinity", "Inf", "-Inf", '"NaN"', '"Infinity"', '"-inf"'),
    *("+1", "01", "-01", ".5", "1.", "0x1", "--1", "1e", "true", "TRUE", "null", "nul", ""),
    *('"1"', '"1e2"', '" 1"', '"1 "', '"1_0"', '"\uff11"', '"+1"', '"1."', '".5"', '"-"', '""', '"\\u0031"', '"00012"'),
    *('"\\ud800"', '"\\udc00\\ud800"', '"\\ud83d\\ude00"', '"\\u0000"', '"\t"', '"\\x"', '"a\\', '"\x7f"', '"\ufeff"'),
    *(f'"{"x" * 100_000}"', "[" * 2000 + "]" * 2000, '{"v":' * 1100 + "1" + "}" * 1100, "[" * 900 + "]" * 900),
    *(
        '{"v":1,"v":2}',
        '{"v":"x","v":2}',
        '{"v":1,"v":"x"}',
        '{"v":null}',
        '{"V":1}',
        '{"\\u0076":1}',
        "{}",
        '{"v":1e70}',
    ),
    *(
        '{"1":1,"01":2}',
        '{"-0":1}',
        '{"\uff11":1}',
        '{"²":1}',
        '{"":1}',
        f'{{"{"9" * 5000}":1}}',
        "[1,null,2]",
        "[1,]",
        "[]",
    ),
    *(f"[{'1' * 400}]", "[1e70]", "[null]", "[[1]]", '1,"x":2', '1,"\\u0078":2', '1}{"x":2', "1}\n{", "1\x00"),
    *('"9999-12-31"', '"99999-01-01"', '"0001-01-01"', '"2026-02-30"', '"2026-01-01T24:00:00Z"', '"23:59:60"'),
    *(
        '"24:00:00"',
        '"2026-01-01T00:00:00+99:99"',
        '"\uff12026-01-01"',
        '"\uff123:00:00"',
        "1e17",
        "-1e18",
        "99999999999999999999",
    ),
    *('"QQ"', '"QQ=="', '"QQ==\\n"', '"Q Q=="', '"****"', '"QR=="'),
)


def exactly(decoded: Decoded) -> str:
    """Times as numbers: one may be of a year that Python has not."""
    columns = [as_given(decoded.rows.column(name).combine_chunks()).to_pylist() for name in ("x", ARRIVAL)]
    return repr((*columns, decoded.rejected.to_pylist()))


def expect_agreement(kind: pa.DataType, literals: list[str]) -> None:
    decoder = Decoder(StreamSchema("s", (Column("x", kind),)), ("x",))
    table = records([f'{{"x":{one}}}'.encode() for one in literals])
    together, singly = decoder.decode(table), decoder.decode_singly(table)
    assert exactly(together) == exactly(singly)
    assert together.rows.num_rows + together.rejected.num_rows == len(literals)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_each_alone_and_among_plain_ones(kind: pa.DataType) -> None:
    for literal in LITERALS:
        expect_agreement(kind, [literal])
        expect_agreement(kind, ["null", literal, "null"])


@pytest.mark.parametrize("kind", KINDS, ids=str)
@given(literals=st.lists(st.sampled_from(LITERALS), max_size=6))
@settings(max_examples=tries(12))
def test_some_of_them_together(kind: pa.DataType, literals: list[str]) -> None:
    expect_agreement(kind, literals)


@pytest.mark.parametrize("scale", range(39))
@given(data=st.data())
@settings(max_examples=tries(10))
def test_decimals_are_what_they_say_or_are_rejected(scale: int, data: st.DataObject) -> None:
    kind = pa.decimal128(38, scale)
    numbers = st.decimals(allow_nan=False, allow_infinity=False) | st.builds(
        lambda digits, exponent: Decimal(digits).scaleb(exponent), st.integers(-(10**38), 10**38), st.integers(-60, 60)
    )
    given_numbers = [number for number in data.draw(st.lists(numbers, max_size=4)) if abs(number.adjusted()) < 300]
    decoder = Decoder(StreamSchema("s", (Column("x", kind),)), ("x",))
    decoded = decoder.decode(records([f'{{"x":{number}}}'.encode() for number in given_numbers]))
    assert [number for number in given_numbers if number in decoded.rows.column("x").to_pylist()] == [
        number for number in given_numbers if _fits(number, scale)
    ]
    assert decoded.rows.num_rows == sum(_fits(number, scale) for number in given_numbers)


def _fits(number: Decimal, scale: int) -> bool:
    """By the digits as they are written out."""
    whole, _, rest = format(number.copy_abs(), "f").partition(".")
    return len(whole.lstrip("0")) <= 38 - scale and len(rest.rstrip("0")) <= scale
