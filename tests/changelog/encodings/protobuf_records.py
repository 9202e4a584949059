"""Schemas of Protobuf and messages of them."""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf import message_factory

from dovetail.broker.registry.protobuf_text import compiled
from dovetail.changelog.encodings.interface import SchemaDefinition
from dovetail.changelog.encodings.protobuf.reader import path_bytes
from dovetail.changelog.encodings.protobuf.schema import MessageFile, Path
from dovetail.changelog.encodings.schema_id_framing import wire


@cache
def proto(text: str) -> SchemaDefinition:
    definition = SchemaDefinition("PROTOBUF", text)
    found = SchemaDefinition("PROTOBUF", text, compiled=compiled(definition))
    assert found.compiled
    return found


@cache
def message_class(definition: SchemaDefinition, path: Path = (0,)) -> Any:
    return message_factory.GetMessageClass(MessageFile.of(definition).at(path))


def encoded(schema_id: int, message: Any, path: Path = (0,)) -> bytes:
    return wire.head(schema_id) + path_bytes(path) + bytes(message.SerializeToString())
