"""The names of function calls, as the dialects write them."""

from __future__ import annotations

import pytest

from dovetail.sql.syntax.calls import registered_name, snake_case
from tests.sql.world import select


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("toInt32", "to_int32"),
        ("to_int32", "to_int32"),
        ("toUInt8OrNull", "to_uint8_or_null"),
        ("toDateTime64", "to_datetime64"),
        ("JSONExtractString", "json_extract_string"),
        ("JSONExtractUInt", "json_extract_uint"),
        ("JSON_VALUE", "json_value"),
        ("lowerUTF8", "lower_utf8"),
        ("isNaN", "is_nan"),
        ("toStartOfISOYear", "to_start_of_iso_year"),
        ("toYYYYMMDDhhmmss", "to_yyyymmddhhmmss"),
        ("cutURLParameter", "cut_url_parameter"),
        ("IPv4StringToNum", "ipv4_string_to_num"),
        ("fromUnixTimestamp64Milli", "from_unix_timestamp64_milli"),
        ("MD5", "md5"),
        ("notILike", "not_ilike"),
    ],
)
def test_names_of_clickhouse_are_in_snake_case(written: str, name: str) -> None:
    assert snake_case(written) == name


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("dictGet('d', 'a', k)", "dict_get"),
        ("sumIf(a, b)", "sum_if"),
        ("groupArray(a)", "group_array"),
        ("quantileIf(0.5)(a, b)", "quantile_if"),
        ("COUNT(*)", "count"),
        ("a", ""),
    ],
)
def test_a_call_has_the_name_of_the_registries(written: str, name: str) -> None:
    (call,) = select(f"SELECT {written} FROM t").query.expressions
    assert registered_name(call) == name
