"""How deep a record of a type that holds itself is nested. Its parser goes down the stack of the process, which ends
where that does; so the bytes are gone through before, without making anything of them.
"""

from __future__ import annotations

from typing import Any

from dovetail.changelog.encodings.protobuf.varints import number_of
from dovetail.changelog.errors import RecordRejected

LEVELS = 200
_WORD = (1 << 64) - 1
_BYTES = {"null": 0, "boolean": 1, "float": 4, "double": 8}


class Depth:
    """Of records with these fields, in the form of ``PlainSchema``."""

    def __init__(self, fields: list[dict[str, Any]], place: str) -> None:
        self._place = place
        self._root = {"type": "record", "name": "root", "fields": fields}
        self._records: dict[str, Any] = {}

    def expect_shallow(self, payload: bytes) -> None:
        """Raises RecordRejected for more than LEVELS; EOFError, IndexError for bytes that are no record."""
        self._end(self._root, payload, 0, 0)

    def _end(self, schema: Any, payload: bytes, place: int, level: int) -> int:
        """Where a value ends that begins at ``place``."""
        if level > LEVELS:
            raise RecordRejected(f"the {self._place} is nested deeper than {LEVELS} levels")
        if isinstance(schema, str) and schema in self._records:
            schema = self._records[schema]
        if isinstance(schema, list):
            branch, place = _long(payload, place)
            return self._end(schema[branch], payload, place, level + 1)
        if isinstance(schema, dict):
            end = self._end_of_many(schema, payload, place, level + 1)
        else:
            end = _end(schema, payload, place)
        if end > len(payload):
            raise EOFError
        return end

    def _end_of_many(self, schema: dict[str, Any], payload: bytes, place: int, level: int) -> int:
        match schema["type"]:
            case "fixed":
                return place + int(schema["size"])
            case "array":
                return self._end_of_array(schema["items"], payload, place, level)
        self._records[schema["name"]] = schema
        for field in schema["fields"]:
            place = self._end(field["type"], payload, place, level)
        return place

    def _end_of_array(self, items: Any, payload: bytes, place: int, level: int) -> int:
        while True:
            count, place = _long(payload, place)
            if count == 0:
                return place
            if count < 0:
                _, place = _long(payload, place)
            for _ in range(abs(count)):
                place = self._end(items, payload, place, level)


def _end(kind: str, payload: bytes, place: int) -> int:
    if kind in _BYTES:
        return place + _BYTES[kind]
    number, place = _long(payload, place)
    return place + max(number, 0) if kind in ("bytes", "string") else place


def _long(payload: bytes, place: int) -> tuple[int, int]:
    """A number as Avro writes it, the sign last, and where it ends."""
    number, place = number_of(payload, place)
    return ((number & _WORD) >> 1) ^ -(number & 1), place
