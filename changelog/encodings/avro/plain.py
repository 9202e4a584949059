"""A schema of fewer types that the same bytes have.

    int            long             a wrong number is seen, and not cut to 32 bits
    enum           long             the position of the symbol
    map            array of records with ``key`` and ``value``
    logical types  what they are written as

A union of null and one other type stays; of any other, and of a type that holds itself, only the parser of single
records makes something, so a schema with one is not ``columnar``. One with the latter is ``recursive``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dovetail.changelog.encodings.avro.schema import WriterSchema, described
from dovetail.changelog.encodings.schema_id_framing.reader import SchemaMisfit

_PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


@dataclass
class PlainSchema:
    """``fields``: those of the record, in order, as fields of a schema."""

    writer: WriterSchema
    columnar: bool = True
    recursive: bool = False
    fields: list[dict[str, Any]] = field(default_factory=list)
    _open: dict[int, str] = field(default_factory=dict)
    _made: int = 0

    @staticmethod
    def of(writer: WriterSchema) -> PlainSchema:
        """Raises SchemaMisfit."""
        made = PlainSchema(writer)
        root = writer.found(writer.root)
        fields = writer.fields()
        made._open[id(root)] = "root"
        made.fields = [{"name": name, "type": made._plain(schema)} for name, schema in fields.items()]
        return made

    def _plain(self, schema: Any) -> Any:
        found = self.writer.found(schema)
        if isinstance(found, list):
            return self._union(found)
        match found["type"]:
            case "int" | "enum":
                return "long"
            case "fixed":
                return {"type": "fixed", "name": self._name(), "size": found["size"]}
            case "array":
                return {"type": "array", "items": self._item(found["items"])}
            case "map":
                pair = [{"name": "key", "type": "string"}, {"name": "value", "type": self._plain(found["values"])}]
                return {"type": "array", "items": {"type": "record", "name": self._name(), "fields": pair}}
            case "record" | "error":
                return self._record(found)
            case str(kind) if kind in _PRIMITIVES:
                self.columnar &= kind != "null"
                return kind
        raise SchemaMisfit(f"{described(found)} is no type of Avro")

    def _union(self, branches: list[Any]) -> Any:
        plain = ["null" if self.writer.found(one) == {"type": "null"} else self._plain(one) for one in branches]
        self.columnar &= len(plain) == 2 and plain.count("null") == 1
        return plain

    def _item(self, schema: Any) -> Any:
        """Elements that take no bytes could be any number of them, in a few bytes."""
        found = self.writer.found(schema)
        if self._is_empty(found, ()):
            raise SchemaMisfit(f"it has an array of {described(found)}, whose elements take no bytes")
        return self._plain(schema)

    def _is_empty(self, found: Any, around: tuple[Any, ...]) -> bool:
        """Whether its values take no bytes; ``around`` are the records that it stands in."""
        if isinstance(found, list) or found in around:
            return False
        if found["type"] in ("record", "error"):
            within = (*around, found)
            return all(self._is_empty(self.writer.found(one["type"]), within) for one in found["fields"])
        return bool(found["type"] == "null" or found.get("size") == 0)

    def _record(self, found: dict[str, Any]) -> Any:
        if id(found) in self._open:
            self.columnar, self.recursive = False, True
            return self._open[id(found)]
        self.columnar &= bool(found["fields"])
        name = self._open[id(found)] = self._name()
        fields = [{"name": one["name"], "type": self._plain(one["type"])} for one in found["fields"]]
        del self._open[id(found)]
        return {"type": "record", "name": name, "fields": fields}

    def _name(self) -> str:
        self._made += 1
        return f"t{self._made}"
