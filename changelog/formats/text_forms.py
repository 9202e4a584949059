"""Columns of texts that mean a value: each has one form, so equal values are equal texts.

``uuid``      small letters, with hyphens
``jsonb``     members in the order of their names, of those of one name the last; numbers without noughts at their end;
              no blanks
``interval``  ``1 year 2 mons 3 days 04:05:06``; ``30 days`` and ``1 mon`` are two texts, as months have no one length
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.formats.interval_texts import interval_text, maybe_otherwise

UUID = "uuid"
JSONB = "jsonb"
INTERVAL = "interval"
"""``Column.form`` of such columns."""


@dataclass(frozen=True)
class TextForm:
    """The form of a column's texts.

    name     what such a value is called
    text     a text that a statement has, in the form. Raises ValueError for what means no value
    member   the same, of a member of a record
    members  the same, of many: those that need a closer look stay as they are
    strange  which of many are not of the form; None where all are
    example  a text as a statement writes it
    """

    name: str
    text: Callable[[str], str]
    member: Callable[[str], str]
    members: Callable[[pa.ChunkedArray], pa.ChunkedArray]
    strange: Callable[[pa.ChunkedArray], pa.ChunkedArray] | None
    example: str


# UUIDs

_UUID = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
_READ_AS_UUID = re.compile(r"[0-9a-f]{4}(-?[0-9a-f]{4}){7}")


def uuid_text(text: str) -> str:
    """``text`` in the one form, from those that PostgreSQL reads: in capitals, in braces, with hyphens after any four
    digits. Raises ValueError for what is no UUID.
    """
    small = text.lower()
    inner = small[1:-1] if small[:1] + small[-1:] == "{}" else small
    if _READ_AS_UUID.fullmatch(inner) is None:
        raise ValueError(text)
    digits = inner.replace("-", "")
    return "-".join([digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]])


def _no_uuids(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """NULL is none of them."""
    return pc.fill_null(pc.invert(pc.match_substring_regex(column, _UUID)), False)


# JSON documents


def jsonb_text(text: str) -> str:
    """The document that ``text`` is. Raises ValueError for what is none, and for one nested more than 250 deep."""
    value, plain = _parsed(text)
    return _written(value, plain=plain)


def jsonb_texts(column: pa.ChunkedArray | pa.Array, each: Callable[[str], str] = jsonb_text) -> pa.Array:
    """Documents, ``each`` in the one form. Raises ValueError where one is none."""
    return pa.array([None if text is None else each(text) for text in column.to_pylist()], pa.string())


def jsonb_members(records: pa.Array, names: Sequence[str]) -> dict[str, pa.Array]:
    """The members ``names`` of each record, as documents: a string is the document that its text is, where it is one.
    Raises ValueError where a record is no object.
    """
    found: dict[str, list[str | None]] = {name: [] for name in names}
    for record in records.to_pylist():
        values, plain = _parsed(record.decode())
        if not isinstance(values, dict):
            raise ValueError(record)
        for name, texts in found.items():
            value = values.get(name)
            texts.append(None if value is None else jsonb_member(value, plain=plain))
    return {name: pa.array(texts, pa.string()) for name, texts in found.items()}


def jsonb_member(value: Any, *, plain: bool = False) -> str:
    """A member of a record, as JSON has it. ``plain``: its numbers may be written as they are."""
    if not isinstance(value, str):
        return _written(value, plain=plain)
    try:
        return jsonb_text(value)
    except ValueError:
        return _written(value, plain=True)


def _jsonb_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([jsonb_texts(column, jsonb_member)])


_BY_DIGITS = re.compile(r"[0-9]\.0*+(?![0-9])|\.0000|[0-9.]{16}|[0-9][eE]")
"""What may be a number that a double does not hold, or that is written otherwise than by its digits alone: 1.0, 1e2."""


def _parsed(text: str) -> tuple[Any, bool]:
    """The value, and whether its numbers may be written as they are."""
    if _BY_DIGITS.search(text) is None:
        return orjson.loads(text), True
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=_no_number), False
    except (RecursionError, ArithmeticError) as fault:
        # Nested too deep; or an exponent beyond all numbers.
        raise ValueError(text) from fault


def _written(value: Any, *, plain: bool) -> str:
    try:
        return orjson.dumps(value if plain else _with_digits(value), option=orjson.OPT_SORT_KEYS).decode()
    except (RecursionError, TypeError) as fault:
        # Nested too deep; or half a pair of surrogates, which is no text.
        raise ValueError from fault


def _with_digits(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _with_digits(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_with_digits(one) for one in value]
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(value)
        return int(value) if value.is_integer() else _number(Decimal(repr(value)))
    if isinstance(value, Decimal) or (isinstance(value, int) and abs(value) >= 1 << 63):
        return _number(Decimal(value))
    return value


def _number(number: Decimal) -> orjson.Fragment:
    return orjson.Fragment(_number_text(number).encode())


_MOST_DIGITS = 60
"""Numbers that need more, left or right of the point, are written with an exponent."""


def _number_text(number: Decimal) -> str:
    if not number:
        return "0"
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    shown = "".join(map(str, digits))
    significant = shown.rstrip("0")
    exponent += len(shown) - len(significant)
    mark = "-" if sign else ""
    if max(len(significant) + exponent, -exponent) > _MOST_DIGITS:
        return f"{mark}{significant}e{exponent}"
    plain = f"{number:f}"
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def _no_number(word: str) -> None:
    """NaN and Infinity, which Python's reader takes."""
    raise ValueError(word)


_FORMS = (
    TextForm(UUID, uuid_text, uuid_text, pc.ascii_lower, _no_uuids, "'6f9619ff-8b86-d011-b42d-00cf4fc964ff'"),
    TextForm(JSONB, jsonb_text, jsonb_member, _jsonb_column, None, "'{\"a\": 1}'"),
    TextForm(INTERVAL, interval_text, interval_text, lambda column: column, maybe_otherwise, "'1 day 02:30:00'"),
)
TEXT_FORMS = {form.name: form for form in _FORMS}
