"""Columns of texts that mean a value, UUIDs and JSON documents: each has one form, so equal values are equal texts.

``uuid``   small letters, with hyphens
``jsonb``  members in PostgreSQL's order: by the length of their names, then by their bytes; of members of one name the
           last; numbers without noughts at their end; no blanks
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

UUID = "uuid"
JSONB = "jsonb"
"""``Column.form`` of such columns."""


@dataclass(frozen=True)
class TextForm:
    """The form of a column's texts.

    text     a text that a statement has, in the form. Raises ValueError for what means no value
    member   the same, of a member of a record
    members  the same, of many: those that need a closer look stay as they are
    strange  which of many are not of the form
    example  a text as a statement writes it
    """

    text: Callable[[str], str]
    member: Callable[[str], str]
    members: Callable[[pa.ChunkedArray], pa.ChunkedArray]
    strange: Callable[[pa.ChunkedArray], pa.ChunkedArray | None]
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
    return _written(_ordered(_parsed(text)))


def document_text(value: Any) -> str:
    """A member of a record, as JSON has it: of a string the text that it is."""
    return value if isinstance(value, str) else _written(_ordered(value))


def parsed_record(text: bytes) -> Any:
    """JSON with the digits that its numbers have. Raises ValueError for what is none."""
    return _parsed(text.decode())


def _parsed(text: str) -> Any:
    if _LONG_NUMBER.search(text) is None:
        return orjson.loads(text)
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=_no_number)
    except (RecursionError, ArithmeticError) as fault:
        # Nested too deep; or an exponent beyond all numbers.
        raise ValueError(text) from fault


def _written(ordered: Any) -> str:
    try:
        return orjson.dumps(ordered).decode()
    except (RecursionError, TypeError) as fault:
        # Nested too deep; or half a pair of surrogates, which is no text.
        raise ValueError from fault


def jsonb_texts(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Documents, each in the one form. Raises ValueError where one is none."""
    return pa.array([None if text is None else jsonb_text(text) for text in column.to_pylist()], pa.string())


def _jsonb_member(text: str) -> str:
    """A member of a record is a document, or a string: the quotes of "a" are no part of the member's text."""
    try:
        return jsonb_text(text)
    except ValueError:
        return orjson.dumps(text).decode()


def _jsonb_members(column: pa.ChunkedArray) -> pa.ChunkedArray:
    texts = [None if text is None else _jsonb_member(text) for text in column.to_pylist()]
    return pa.chunked_array([pa.array(texts, column.type)])


def _ordered(value: Any) -> Any:
    """With members in their order, and numbers by their digits."""
    if isinstance(value, dict):
        names = sorted(value) if len({len(name) for name in value}) == 1 else sorted(value, key=_in_postgres)
        return {name: _ordered(value[name]) for name in names}
    if isinstance(value, list):
        return [_ordered(one) for one in value]
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(value)
        return int(value) if value.is_integer() else _number(Decimal(repr(value)))
    if isinstance(value, Decimal) or (isinstance(value, int) and abs(value) >= 1 << 63):
        return _number(Decimal(value))
    return value


def _in_postgres(name: str) -> tuple[int, bytes]:
    spelled = name.encode()
    return len(spelled), spelled


_MOST_DIGITS = 60
"""Numbers that need more, left or right of the point, are written with an exponent."""
_LONG_NUMBER = re.compile(r"[0-9.]{16}|[0-9][eE]")
"""What may be a number that a double does not hold as it is written."""


def _number(number: Decimal) -> orjson.Fragment:
    return orjson.Fragment(_number_text(number).encode())


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


TEXT_FORMS = {
    UUID: TextForm(uuid_text, uuid_text, pc.ascii_lower, _no_uuids, "'6f9619ff-8b86-d011-b42d-00cf4fc964ff'"),
    JSONB: TextForm(jsonb_text, _jsonb_member, _jsonb_members, lambda column: None, "'{\"a\": 1}'"),
}
