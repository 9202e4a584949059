"""What a registry keeps: the text of a schema, its type, and the schemas that it refers to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class SchemaType(StrEnum):
    """In the registry's own words; a schema without one is of AVRO."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


@dataclass(frozen=True)
class Reference:
    """``name`` is what the text calls it: a full name of Avro, a path of an import, a URI."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True)
class SchemaText:
    """A schema as it was registered."""

    type: SchemaType
    text: str
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True)
class WholeSchema:
    """A schema with the texts of all that it refers to, at any depth: name → text, each after those that it needs."""

    type: SchemaType
    text: str
    referred: Mapping[str, str] = field(default_factory=dict)


class SchemaNonsense(ValueError):
    """The text is no schema of its type; the message says why."""
