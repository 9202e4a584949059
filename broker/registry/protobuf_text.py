"""The text of a Protobuf schema as descriptors, by protoc; its own form as text may be base64 of a descriptor, too."""

from __future__ import annotations

import base64
import binascii

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError

from dovetail.broker.registry.import_names import expect_import_name
from dovetail.broker.registry.protoc import compiled_files
from dovetail.broker.registry.registered import SchemaNonsense, SchemaType, WholeSchema
from dovetail.changelog.encodings.interface import SchemaDefinition


def descriptors(whole: WholeSchema) -> FileDescriptorSet:
    """The files of a schema, those that it imports first, itself last. Raises SchemaNonsense."""
    for name in whole.referred:
        expect_import_name(name)
    serialised = _serialised(whole.text)
    if serialised is not None:
        parts = [_expected(_serialised(text), name) for name, text in whole.referred.items()]
        return FileDescriptorSet(file=[*parts, serialised])
    return compiled_files(whole.text, {name: _text(text, name) for name, text in whole.referred.items()})


def compiled(definition: SchemaDefinition) -> bytes:
    """The files of a schema that a client was given; empty where it is none."""
    referred: dict[str, str] = {}
    _gather(definition, referred)
    try:
        found = descriptors(WholeSchema(SchemaType.PROTOBUF, definition.text, referred))
    except SchemaNonsense:
        return b""
    return bytes(found.SerializeToString())


def _gather(definition: SchemaDefinition, into: dict[str, str]) -> None:
    for name, one in definition.references:
        if name not in into:
            _gather(one, into)
            into[name] = one.text


def serialised_text(whole: WholeSchema) -> str:
    """The schema as base64 of its descriptor, as a client asks for it by ``format=serialized``."""
    return base64.b64encode(descriptors(whole).file[-1].SerializeToString()).decode()


def _text(text: str, name: str) -> str:
    if _serialised(text) is not None:
        raise SchemaNonsense(f"the import {name} is a descriptor and the schema is a text")
    return text


def _serialised(text: str) -> FileDescriptorProto | None:
    """The descriptor that a text is in base64; None where it is not that. A text of Protobuf has blanks or signs."""
    try:
        read = FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, DecodeError):
        return None
    return read if read.message_type or read.enum_type or read.dependency else None


def _expected(found: FileDescriptorProto | None, name: str) -> FileDescriptorProto:
    if found is None:
        raise SchemaNonsense(f"the schema is a descriptor and the import {name} is a text")
    found.name = name
    return found
