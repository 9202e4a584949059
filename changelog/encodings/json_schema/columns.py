"""The columns that the members of a schema are.

boolean, integer, number             boolean, int64, float64
string                               text; by its ``format`` date, date-time or time, a date, timestamp or time of day
string, contentEncoding base64       binary
an enum of texts                     text
array with ``items``                 array
object with ``properties``           struct
object with additionalProperties     map of text
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from dovetail.changelog.encodings.json_schema.schema import ObjectSchema
from dovetail.changelog.encodings.schema_id_framing.reader import SchemaMisfit

_PLAIN = {"boolean": pa.bool_(), "integer": pa.int64(), "number": pa.float64()}
_FORMATS = {"date": pa.date32(), "date-time": pa.timestamp("us", "UTC"), "time": pa.time64("us")}
_DEEPEST = 20


def type_of(schema: ObjectSchema, member: Any, depth: int = 0) -> pa.DataType:
    """Raises SchemaMisfit where it is no column, or does not say which."""
    if depth > _DEEPEST:
        raise SchemaMisfit("it is nested too deeply, or holds itself")
    match schema.without_null(member):
        case {"type": str(kind)} if kind in _PLAIN:
            return _PLAIN[kind]
        case {"type": "string", "contentEncoding": "base64"}:
            return pa.binary()
        case {"type": "string"} as text:
            return _FORMATS.get(str(text.get("format")), pa.string())
        case {"type": "array", "items": dict(items)}:
            return pa.list_(type_of(schema, items, depth + 1))
        case {"type": "object", "properties": dict(named)} if named:
            return pa.struct([(name, type_of(schema, one, depth + 1)) for name, one in named.items()])
        case {"type": "object", "additionalProperties": dict(values)} if values:
            return pa.map_(pa.string(), type_of(schema, values, depth + 1))
        case {"type": str(kind)}:
            raise SchemaMisfit(f"it is {kind}, and the schema does not say of what")
        case {"enum": [*words]} if all(isinstance(word, str) for word in words):
            return pa.string()
    raise SchemaMisfit("the schema does not say plainly what it is")
