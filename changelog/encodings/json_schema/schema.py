"""The schema of JSON objects: the members that it names, and which columns they can be.

A schema may say of a member whatever it likes, and of the members whatever it likes, too. What is not said plainly, by
``type`` and ``properties``, is not known, and any column is taken for it: each value is read as JSON in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa

from dovetail.changelog.encodings.interface import SchemaDefinition
from dovetail.changelog.encodings.schema_id_framing.reader import SchemaMisfit
from dovetail.changelog.formats.json_types import type_name

_IS_NUMBER = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_timestamp)
_COLUMNS: dict[str, tuple[Callable[[pa.DataType], bool], ...]] = {
    "boolean": (pa.types.is_boolean,),
    "integer": _IS_NUMBER,
    "number": _IS_NUMBER,
    "string": (
        pa.types.is_string,
        pa.types.is_binary,
        pa.types.is_decimal,
        pa.types.is_timestamp,
        pa.types.is_date32,
        pa.types.is_time,
    ),
    "array": (pa.types.is_list,),
    "object": (pa.types.is_struct, pa.types.is_map),
}
_APPLICATORS = ("allOf", "anyOf", "oneOf", "patternProperties", "if")
_DEEPEST = 20


@dataclass(frozen=True)
class ObjectSchema:
    """``root`` is the JSON of a schema."""

    root: Any

    @staticmethod
    def of(definition: SchemaDefinition) -> ObjectSchema:
        """Raises SchemaMisfit where the definition is no JSON Schema."""
        if definition.kind != "JSON":
            raise SchemaMisfit(f"it is of {definition.kind}, and the stream has JSON")
        try:
            return ObjectSchema(orjson.loads(definition.text))
        except orjson.JSONDecodeError as fault:
            raise SchemaMisfit(f"it is no JSON Schema: {fault.msg} at character {fault.pos}") from None

    def found(self, schema: Any) -> Any:
        """What a reference within the schema points at; another one as it is."""
        for _ in range(_DEEPEST):
            match schema:
                case {"$ref": str(pointer)} if pointer.startswith("#/"):
                    schema = self._at(pointer)
                case _:
                    return schema
        return {}

    def members(self) -> Mapping[str, Any] | None:
        """The schemas of the members; None where it does not say which there are."""
        match self.found(self.root):
            case {"properties": dict(named)} as root if not any(word in root for word in _APPLICATORS):
                return named
        return None

    def required(self) -> list[str]:
        """The members that no object lacks."""
        match self.found(self.root):
            case {"required": [*names]}:
                return [str(name) for name in names]
        return []

    def without_null(self, schema: Any) -> Any:
        """A schema that a value other than null has."""
        match self.found(schema):
            case {"oneOf": [*branches]} | {"anyOf": [*branches]}:
                rest = [branch for branch in branches if branch != {"type": "null"}]
                return self.without_null(rest[0]) if len(rest) == 1 and len(branches) > 1 else {}
            case {"type": [*kinds]} as several:
                rest = [kind for kind in kinds if kind != "null"]
                return {**several, "type": rest[0]} if len(rest) == 1 else {}
            case found:
                return found

    def expect(self, schema: Any, column: pa.DataType) -> None:
        """Raises SchemaMisfit where no value of ``schema`` is one of ``column``."""
        found = self.without_null(schema)
        kind = found.get("type") if isinstance(found, dict) else None
        if not isinstance(kind, str) or kind not in _COLUMNS:
            return
        if not any(is_of(column) for is_of in _COLUMNS[kind]):
            raise SchemaMisfit(f"it is {kind}, and the column {type_name(column)}")

    def _at(self, pointer: str) -> Any:
        place = self.root
        for step in pointer.removeprefix("#/").split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(place, dict) or name not in place:
                return {}
            place = place[name]
        return place
