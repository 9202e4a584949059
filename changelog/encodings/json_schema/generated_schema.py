"""The schema of an output, from its columns: every member may be null, and there are no others.

integer                 integer
float; decimal          number; a decimal within an array, object or map is a text
boolean                 boolean
text, timestamp, time   string
date                    string of format date
binary                  string in base64
list, struct, map       array, object
"""

from __future__ import annotations

from typing import Any

import orjson
import pyarrow as pa

from dovetail.changelog.errors import SqlError
from dovetail.changelog.wording import type_words

_DRAFT = "http://json-schema.org/draft-07/schema#"


def text_of(columns: pa.Schema, name: str) -> str:
    """The schema ``name`` as text. Raises SqlError for a column that JSON has no form of."""
    # Closed: to a schema that takes any other member none can be added, by the rules of registries.
    root = {
        "$schema": _DRAFT,
        "title": name,
        "type": "object",
        "properties": {one.name: member(one) for one in columns},
        "additionalProperties": False,
    }
    return orjson.dumps(root).decode()


def member(column: pa.Field) -> dict[str, Any]:
    """Of one column, which may be null."""
    if pa.types.is_decimal(column.type):
        return _nullable({"type": "number"})
    return _nullable(_form(column.type, column.name))


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    return {"oneOf": [{"type": "null"}, schema]}


def _form(kind: pa.DataType, column: str) -> dict[str, Any]:
    if pa.types.is_map(kind):
        return {"type": "object", "additionalProperties": _nullable(_form(kind.item_type, column))}
    if pa.types.is_list(kind):
        return {"type": "array", "items": _nullable(_form(kind.value_type, column))}
    if pa.types.is_struct(kind):
        members = {one.name: _nullable(_form(one.type, column)) for one in kind}
        return {"type": "object", "properties": members, "additionalProperties": False}
    for is_of, found in _FORMS:
        if is_of(kind):
            return found
    raise SqlError(f"{type_words(kind)} has no form in JSON", where=f"column {column}", fix="cast it to text")


_FORMS: tuple[tuple[Any, dict[str, Any]], ...] = (
    (pa.types.is_boolean, {"type": "boolean"}),
    (pa.types.is_integer, {"type": "integer"}),
    (pa.types.is_floating, {"type": "number"}),
    (pa.types.is_date32, {"type": "string", "format": "date"}),
    (pa.types.is_binary, {"type": "string", "contentEncoding": "base64"}),
    (pa.types.is_large_binary, {"type": "string", "contentEncoding": "base64"}),
    (pa.types.is_string, {"type": "string"}),
    (pa.types.is_large_string, {"type": "string"}),
    (pa.types.is_timestamp, {"type": "string"}),
    (pa.types.is_time, {"type": "string"}),
    (pa.types.is_decimal, {"type": "string"}),
)
