"""The schema by which a record was written, with all names known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import fastavro
import orjson
from fastavro.schema import SchemaParseException, UnknownType

from dovetail.changelog.encodings.interface import SchemaDefinition
from dovetail.changelog.encodings.schema_id_framing.reader import SchemaMisfit


@dataclass(frozen=True)
class WriterSchema:
    """``root`` in the form of its JSON; a type that is a name is found in ``names``."""

    root: Any
    names: dict[str, Any]

    @staticmethod
    def of(definition: SchemaDefinition) -> WriterSchema:
        """Raises SchemaMisfit where the definition is no schema of Avro."""
        if definition.kind != "AVRO":
            raise SchemaMisfit(f"it is of {definition.kind}, and the stream has AVRO")
        names: dict[str, Any] = {}
        try:
            return WriterSchema(_parsed(definition, names), names)
        except UnknownType as unknown:
            raise SchemaMisfit(f"there is no type {unknown.name}") from None
        except (SchemaParseException, ValueError, TypeError, KeyError, AttributeError, RecursionError) as fault:
            raise SchemaMisfit(f"it is no schema of Avro: {type(fault).__name__}: {fault}") from None

    def found(self, schema: Any) -> Any:
        """A schema that is no name: a primitive type as ``{"type": ..}``, a union as a list."""
        if isinstance(schema, str):
            named = self.names.get(schema)
            return {"type": schema} if named is None else named
        if isinstance(schema, dict) and isinstance(schema["type"], dict | list):
            return self.found(schema["type"])
        return schema

    def fields(self) -> dict[str, Any]:
        """The schemas of its members, by name. Raises SchemaMisfit where it is no record."""
        root = self.found(self.root)
        if isinstance(root, list) or root["type"] not in ("record", "error"):
            raise SchemaMisfit(f"it is {described(root)}; a record is expected")
        return {field["name"]: field["type"] for field in root["fields"]}

    def as_record(self, name: str) -> WriterSchema:
        """The schema of the same bytes as a record: one that is none as the only member, ``name``."""
        root = self.found(self.root)
        if not isinstance(root, list) and root["type"] in ("record", "error"):
            return self
        return WriterSchema(
            {"type": "record", "name": "root", "fields": [{"name": name, "type": self.root}]}, self.names
        )

    def row(self) -> WriterSchema:
        """Of an envelope of Debezium the rows in it. Raises SchemaMisfit where it is none."""
        fields = self.fields()
        if "op" not in fields or "after" not in fields:
            raise SchemaMisfit("it is no envelope of Debezium, which has op, before and after")
        return WriterSchema(self.without_null(fields["after"]), self.names)

    def without_null(self, schema: Any) -> Any:
        """The one branch of a union that is not null; any other schema as it is."""
        found = self.found(schema)
        if not isinstance(found, list):
            return found
        rest = [branch for branch in found if self.found(branch) != {"type": "null"}]
        return self.without_null(rest[0]) if len(rest) == 1 else found


def described(schema: Any) -> str:
    """A schema as a message names it."""
    if isinstance(schema, list):
        return "a union"
    if not isinstance(schema, dict):
        return str(schema)
    return str(schema.get("logicalType") or schema["type"])


def _parsed(definition: SchemaDefinition, names: dict[str, Any]) -> Any:
    for name, referred in definition.references:
        if name not in names:
            _parsed(referred, names)
    return fastavro.parse_schema(orjson.loads(definition.text), names)
