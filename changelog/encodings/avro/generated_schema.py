"""The schema of an output, from its columns: every member may be null, in the order of the columns."""

from __future__ import annotations

import re
from typing import Any

import orjson
import pyarrow as pa

from dovetail.changelog.errors import SqlError
from dovetail.changelog.wording import type_words

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INSTANTS = {"s": "timestamp-millis", "ms": "timestamp-millis", "us": "timestamp-micros", "ns": "timestamp-nanos"}


def text_of(columns: pa.Schema, name: str) -> str:
    """The schema ``name`` as text. Raises SqlError for a column that Avro has no form of."""
    made = _Names()
    fields = [{"name": _field(one.name), "type": made.nullable(one.type, one.name), "default": None} for one in columns]
    record = {"type": "record", "name": re.sub(r"^(?=[0-9])|[^A-Za-z0-9_]", "_", name), "fields": fields}
    return orjson.dumps(record).decode()


def _field(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise SqlError(
            f'"{name}" cannot be the name of a member in Avro',
            where=f"column {name}",
            fix="name it AS letters, digits and underscores",
        )
    return name


class _Names:
    """Types; each record within has a name of its own."""

    def __init__(self) -> None:
        self._made = 0

    def nullable(self, kind: pa.DataType, column: str) -> list[Any]:
        return ["null", self._type(kind, column)]

    def _type(self, kind: pa.DataType, column: str) -> Any:
        if pa.types.is_map(kind):
            return {"type": "map", "values": self.nullable(kind.item_type, column)}
        if pa.types.is_list(kind):
            return {"type": "array", "items": self.nullable(kind.value_type, column)}
        if pa.types.is_struct(kind):
            self._made += 1
            fields = [
                {"name": _field(one.name), "type": self.nullable(one.type, column), "default": None} for one in kind
            ]
            return {"type": "record", "name": f"record{self._made}", "fields": fields}
        found = _scalar(kind)
        if found is None:
            raise SqlError(f"{type_words(kind)} has no form in Avro", where=f"column {column}", fix="cast it to text")
        return found


def _scalar(kind: pa.DataType) -> Any:
    if pa.types.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if pa.types.is_timestamp(kind):
        return {"type": "long", "logicalType": _INSTANTS[kind.unit]}
    if pa.types.is_time(kind):
        return {"type": "long", "logicalType": "time-micros"}
    if pa.types.is_date32(kind):
        return {"type": "int", "logicalType": "date"}
    if kind == pa.uint64():
        return {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 0}
    if pa.types.is_integer(kind):
        return "long" if kind in (pa.int64(), pa.uint32()) else "int"
    plain = {
        pa.bool_(): "boolean",
        pa.float32(): "float",
        pa.float64(): "double",
        pa.string(): "string",
        pa.large_string(): "string",
        pa.binary(): "bytes",
        pa.large_binary(): "bytes",
    }
    return plain.get(kind)
