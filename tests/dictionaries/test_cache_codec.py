"""Entries and keys as bytes and text."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.dictionaries.cache.cold.entry_codec import EntryCodec
from dovetail.dictionaries.cache.cold.entry_names import entry_names, text_in_name
from dovetail.dictionaries.cache.cold.invalidation_messages import decode_message, encode_message
from dovetail.dictionaries.cache.cold.json_values import tagged, untagged
from dovetail.dictionaries.cache.invalidation import Invalidation
from dovetail.dictionaries.cache.key_text import key_text

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.text(st.characters(codec="utf-8")),
    st.floats(allow_nan=False),
    st.decimals(-(10**27), 10**27, places=10),
    st.binary(),
    st.dates(),
    st.datetimes().map(lambda moment: moment.replace(fold=0)),
    st.datetimes(timezones=st.just(UTC)).map(lambda moment: moment.replace(fold=0)),
    st.times().map(lambda moment: moment.replace(fold=0)),
    st.timedeltas(),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=3), inner, max_size=3),
    ),
    max_leaves=8,
)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=6)


@given(st.lists(st.lists(st.tuples(TEXTS, VALUES), max_size=3).map(tuple), max_size=4))
def test_what_is_encoded_is_decoded_to_the_same_values(answers: list[tuple[tuple[str, object], ...]]) -> None:
    codec = EntryCodec([pa.string(), pa.binary()])
    encoded = codec.encode(answers, 5, 9)
    decoded = codec.decode([*encoded, None])
    assert decoded.pop() is None
    for rows, entry, value in zip(answers, decoded, encoded, strict=True):
        assert entry is not None
        assert value is not None
        assert repr(entry.rows) == repr(rows)
        assert (entry.fetched_ms, entry.expires_ms, entry.size) == (5, 9, len(value))


@given(VALUES)
def test_tags_keep_every_value(value: object) -> None:
    assert repr(untagged(tagged(value))) == repr(value)


@pytest.mark.parametrize("text", ["1e-999999999", "0E-3000000", "1" * 80, "NaN", "Infinity"])
def test_a_decimal_that_no_column_holds_is_no_entry(text: str) -> None:
    value = b'[0,1,[{"~":"decimal","v":"%s"}]]' % text.encode()
    assert EntryCodec([pa.decimal128(38, 10)]).decode([value]) == [None]


def test_nan_and_infinity_survive() -> None:
    codec = EntryCodec([pa.float64()])
    [value] = codec.encode([((math.nan,), (math.inf,), (1.5,))], 0, 1)
    [entry] = codec.decode([value])
    assert entry is not None
    assert repr(entry.rows) == "((nan,), (inf,), (1.5,))"


@pytest.mark.parametrize("garbage", [b"", b"x", b"[1", b"[1,2],[3", b"{}", b"7", b"[1]", b"[1,2,3]", b'[1,2,["a"]]'])
def test_bytes_of_others_are_no_entry_and_hurt_no_other(garbage: bytes) -> None:
    codec = EntryCodec([pa.string(), pa.int64()])
    [good] = codec.encode([(("a", 1),)], 0, 1)
    first, second = codec.decode([garbage, good])
    assert first is None or garbage == b'[1,2,["a"]]'
    assert second is not None
    assert second.rows == (("a", 1),)


def test_a_value_without_a_form_in_json_is_not_encoded_and_the_others_are() -> None:
    codec = EntryCodec([pa.string()])
    encoded = codec.encode([(("a\n",),), (("\ud800",),), ()], 0, 1)
    assert encoded[1] is None
    assert [entry and entry.rows for entry in codec.decode(encoded)] == [(("a\n",),), None, ()]
    assert EntryCodec([pa.binary()]).encode([((object(),),)], 0, 1) == [None]


@given(st.lists(st.tuples(TEXTS, TEXTS), unique=True, max_size=8))
def test_no_two_keys_share_a_name(keys: list[tuple[str, str]]) -> None:
    found = entry_names("head", keys)
    assert len(set(found) | {f"{name}!" for name in found}) == 2 * len(keys)
    assert [text_in_name(name.removeprefix("head")) for name in found] == [key_text(key) for key in keys]
    assert [text_in_name(f"{name}!".removeprefix("head")) for name in found] == [key_text(key) for key in keys]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Decimal("1.50"), Decimal("1.5")),
        (Decimal(100), Decimal("1E2")),
        (Decimal("-0.0"), Decimal(0)),
        (0.0, -0.0),
        (datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), datetime(2026, 1, 1, tzinfo=UTC)),
    ],
)
def test_equal_keys_have_one_text(one: object, other: object) -> None:
    assert one == other
    assert key_text(one) == key_text(other)


def test_long_decimals_are_not_rounded_together() -> None:
    assert key_text(Decimal("1" * 30 + "1")) != key_text(Decimal("1" * 30 + "2"))


@pytest.mark.parametrize("key", ["a", 7, True, 1.5, b"\xff", date(2026, 1, 2), time(3), Decimal("1.0"), ("a", 1, b"x")])
def test_a_key_travels_in_a_message(key: object) -> None:
    invalidation = Invalidation((key,), None, "t")
    assert decode_message(encode_message(invalidation, "me")).invalidation == invalidation
