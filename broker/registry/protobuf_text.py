"""The text of a Protobuf schema as descriptors, by protoc; its own form as text may be base64 of a descriptor, too."""

from __future__ import annotations

import base64
import binascii
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path, PurePosixPath

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError

from broker.registry.registered import SchemaNonsense, SchemaType, WholeSchema
from changelog.encodings.interface import SchemaDefinition

ROOT_FILE = "__schema.proto"
"""What a schema is called among the files that it imports."""
_PATIENCE_S = 30


def descriptors(whole: WholeSchema) -> FileDescriptorSet:
    """The files of a schema, those that it imports first, itself last. Raises SchemaNonsense."""
    serialised = _serialised(whole.text)
    if serialised is not None:
        parts = [_expected(_serialised(text), name) for name, text in whole.referred.items()]
        return FileDescriptorSet(file=[*parts, serialised])
    with tempfile.TemporaryDirectory(prefix="dovetail-proto-") as folder:
        return _compiled(whole, Path(folder))


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


def _compiled(whole: WholeSchema, folder: Path) -> FileDescriptorSet:
    for name, text in whole.referred.items():
        _write(folder, name, text)
    _write(folder, ROOT_FILE, whole.text)
    found = folder / "descriptors"
    includes = [f"--proto_path={folder}", f"--proto_path={files('grpc_tools') / '_proto'}"]
    asked = ["--include_imports", f"--descriptor_set_out={found}", ROOT_FILE]
    # A process of its own: protoc says what is wrong on the standard error, and nonsense ends that process alone.
    try:
        done = subprocess.run(
            [sys.executable, "-m", "grpc_tools.protoc", *includes, *asked],
            capture_output=True,
            timeout=_PATIENCE_S,
            check=False,
            cwd=folder,
        )
    except subprocess.TimeoutExpired:
        raise SchemaNonsense(f"protoc did not come to an end within {_PATIENCE_S} s") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").replace(str(folder), "").strip().splitlines()
        raise SchemaNonsense(f"it is no schema of Protobuf: {' '.join(said[:3]) or 'protoc failed'}")
    return FileDescriptorSet.FromString(found.read_bytes())


def _write(folder: Path, name: str, text: str) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name:
        raise SchemaNonsense(f"{name!r} cannot be the path of an import")
    serialised = _serialised(text)
    if serialised is not None:
        raise SchemaNonsense(f"the import {name} is a descriptor and the schema is a text")
    place = folder / path
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    except (OSError, UnicodeEncodeError) as fault:
        raise SchemaNonsense(f"the import {name} cannot be written: {type(fault).__name__}") from None


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
