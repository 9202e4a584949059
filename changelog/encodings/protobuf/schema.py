"""The messages of a schema. A value says which one it is: by the places of the message and of those around it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf import (
    any_pb2,
    descriptor_pool,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError

from dovetail.changelog.encodings.interface import SchemaDefinition
from dovetail.changelog.encodings.schema_id_framing.reader import SchemaMisfit

_OF_GOOGLE = {
    one.DESCRIPTOR.name: one.DESCRIPTOR.serialized_pb
    for one in (any_pb2, duration_pb2, empty_pb2, field_mask_pb2, struct_pb2, timestamp_pb2, wrappers_pb2)
}
"""What a schema may import and nobody registers."""

Path = tuple[int, ...]
"""The place of a message among those of its file, or of the message around it, from the outermost one."""


@dataclass(frozen=True)
class MessageFile:
    """``root`` is the schema itself; the messages of ``pool`` are known by their full names."""

    root: FileDescriptorProto
    pool: Any

    @staticmethod
    def of(definition: SchemaDefinition) -> MessageFile:
        """Raises SchemaMisfit where the definition is no schema of Protobuf."""
        if definition.kind != "PROTOBUF":
            raise SchemaMisfit(f"it is of {definition.kind}, and the stream has PROTOBUF")
        try:
            files = list(FileDescriptorSet.FromString(definition.compiled).file)
        except DecodeError:
            files = []
        if not files:
            raise SchemaMisfit("it is no schema of Protobuf")
        pool = descriptor_pool.DescriptorPool()
        try:
            for text in _needed(files):
                pool.AddSerializedFile(text)
            pool.FindFileByName(files[-1].name)
        except (TypeError, KeyError) as fault:
            raise SchemaMisfit(f"it is no schema of Protobuf: {fault}") from None
        return MessageFile(files[-1], pool)

    def at(self, path: Path) -> Any:
        """The descriptor of a message. Raises SchemaMisfit where there is none."""
        messages: Sequence[DescriptorProto] = self.root.message_type
        names = [self.root.package] if self.root.package else []
        for place in path:
            if not 0 <= place < len(messages):
                raise SchemaMisfit(f"it has no message at {list(path)}")
            names.append(messages[place].name)
            messages = messages[place].nested_type
        return self.pool.FindMessageTypeByName(".".join(names))

    def message_path(self, name: str) -> Path:
        """The message that is called ``name``, with its package or without; '': the first. Raises SchemaMisfit."""
        found = [path for path, full in self.messages() if not name or is_called(full, name)]
        if not found:
            named = f"message {name}" if name else "message"
            raise SchemaMisfit(f"it has no {named}")
        return found[0]

    def messages(self) -> Iterator[tuple[Path, str]]:
        """Each with its full name, those within another after it."""
        yield from _nested(self.root.message_type, (), self.root.package)


def is_called(full_name: str, name: str) -> bool:
    return full_name == name or full_name.endswith(f".{name}")


def _nested(messages: Sequence[DescriptorProto], above: Path, prefix: str) -> Iterator[tuple[Path, str]]:
    for place, message in enumerate(messages):
        full = f"{prefix}.{message.name}" if prefix else message.name
        yield (*above, place), full
        yield from _nested(message.nested_type, (*above, place), full)


def _needed(files: Sequence[FileDescriptorProto]) -> list[bytes]:
    """The files with those of Google that they import and have not, imports first."""
    given = {one.name for one in files}
    imported = {name for one in files for name in one.dependency if name in _OF_GOOGLE and name not in given}
    return [*(_OF_GOOGLE[name] for name in sorted(imported)), *(one.SerializeToString() for one in files)]
