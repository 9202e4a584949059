"""``Member``: one member of the JSON object, as it is to be read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from dovetail.changelog.errors import SqlError
from dovetail.changelog.formats.json_types import Mismatch, converter, type_name
from dovetail.changelog.formats.text_forms import JSONB, jsonb_member
from dovetail.changelog.schema import Column


@dataclass(frozen=True, slots=True)
class Member:
    """The member ``name`` with values of ``type``; ``default`` is the value where an object lacks it.

    ``default`` is in the form that ``pa.array`` takes for the type.
    ``document``: the value is any JSON, and is kept as the text of a ``jsonb``.
    """

    name: str
    type: pa.DataType
    default: Any = None
    document: bool = False

    @staticmethod
    def of(column: Column) -> Member:
        """Raises SqlError if the type has no form in JSON or the DEFAULT is not a literal of it."""
        try:
            document = column.form == JSONB
            convert = jsonb_member if document else converter(column.type)
            default = None if column.default is None else _literal(column.default.strip())
            value = None if default is None else convert(default)
            return Member(column.name, column.type, value, document=document)
        except TypeError as unknown:
            raise SqlError(str(unknown), where=f"column {column.name}", fix="declare it as a text column") from None
        except Mismatch as mismatch:
            raise SqlError(
                f"the DEFAULT does not fit: {mismatch}",
                where=f"column {column.name}",
                fix=f"give a literal of type {type_name(column.type)}",
            ) from None


def _literal(text: str) -> Any:
    """The value of an SQL literal: NULL, TRUE, FALSE, a number, or a text in single quotes (or bare)."""
    if text.upper() in ("NULL", "TRUE", "FALSE"):
        return {"NULL": None, "TRUE": True, "FALSE": False}[text.upper()]
    if re.fullmatch(r"[+-]?\d{1,1000}", text):
        return int(text)
    if re.fullmatch(r"[+-]?(\d+\.\d*|\.?\d+)([eE][+-]?\d+)?", text):
        return Decimal(text)
    if len(text) >= 2 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    return text
