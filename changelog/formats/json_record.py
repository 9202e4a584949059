"""One JSON object at a time: accepts every valid form, and says what is wrong with the others.

The reference for ``json_batch``: where that gives an answer, this one gives the same.
"""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from typing import Any

import orjson

from dovetail.changelog.errors import RecordRejected
from dovetail.changelog.formats.decimal_text import holds_decimal
from dovetail.changelog.formats.json_types import Mismatch, converter, described
from dovetail.changelog.formats.members import Member
from dovetail.changelog.formats.text_forms import jsonb_member


class RecordReader:
    """Reads the given members out of JSON objects; others are ignored."""

    def __init__(self, members: tuple[Member, ...]) -> None:
        self._members = [
            (member.name, member.default, _document if member.document else converter(member.type))
            for member in members
        ]
        # orjson reads a fraction as a double: the digits of a decimal would be lost.
        self._exact = any(member.document or holds_decimal(member.type) for member in members)

    def parsed_object(self, text: bytes, place: str) -> dict[str, Any]:
        """The JSON object; ``place`` is what the message calls the text. Raises RecordRejected."""
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError as fault:
            where = "" if place == "value" else f" of the {place}"
            if not _is_utf8(text):
                raise RecordRejected(f"the {place} is not UTF-8") from None
            raise RecordRejected(f"malformed JSON at character {fault.pos}{where}: {fault.msg}") from None
        if not isinstance(value, dict):
            raise RecordRejected(f"the {place} is {described(value)}; a JSON object is expected")
        return json.loads(text, parse_float=_exact) if self._exact else value

    def values(self, record: dict[str, Any]) -> list[Any]:
        """The members in their types' form; NULL or the default where absent. Raises RecordRejected."""
        return [
            _converted(name, record[name], convert) if name in record else default
            for name, default, convert in self._members
        ]


def _exact(number: str) -> Decimal | float:
    """A float where no decimal has the exponent: then it is 0, or as good as that."""
    try:
        return Decimal(number)
    except InvalidOperation:
        return float(number)


def _converted(name: str, value: Any, convert: Any) -> Any:
    if value is None:
        return None
    try:
        return convert(value)
    except Mismatch as mismatch:
        raise RecordRejected(f"column {name}: {mismatch}") from None


def _document(value: Any) -> str:
    try:
        return jsonb_member(value)
    except ValueError:
        raise Mismatch(value, "a document of JSON") from None


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
