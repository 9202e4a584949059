"""What a schema of Protobuf changes that readers of the other one would see wrongly.

A member may come and go: who does not know it passes over it, who misses it has its default. A number that is in both
is of the same member: name, type, label, oneof. A name that is in both has the same number. Messages and enums stay, at
their places; words are added to an enum, and none goes. So each of two schemas reads the other, or neither is said to:
stricter than what the bytes allow, and never laxer. Schemas of proto2, and with imports besides those of Google, are
not compared.
"""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from dovetail.broker.registry.protobuf_text import descriptors
from dovetail.broker.registry.registered import WholeSchema

_OF_GOOGLE = "google/protobuf/"


def changes(new: WholeSchema, old: WholeSchema) -> list[str]:
    """Empty where the schemas read each other. Raises SchemaNonsense where one is none."""
    return list(_of_files(descriptors(new).file[-1], descriptors(old).file[-1]))


def _of_files(new: FileDescriptorProto, old: FileDescriptorProto) -> Iterator[str]:
    if "proto3" not in (new.syntax, old.syntax) or new.syntax != old.syntax:
        yield "schemas of other syntaxes than proto3 are not compared here"
    elif any(not name.startswith(_OF_GOOGLE) for file in (new, old) for name in file.dependency):
        yield "schemas that import others are not compared here"
    elif new.package != old.package:
        yield f"the package was {old.package!r} and is {new.package!r}"
    else:
        yield from _of_messages(list(new.message_type), list(old.message_type), "")
        yield from _of_enums(list(new.enum_type), list(old.enum_type), "")


def _of_messages(new: list[DescriptorProto], old: list[DescriptorProto], around: str) -> Iterator[str]:
    """A value says which message it is by its place, so none goes, and others come after them."""
    for place, before in enumerate(old):
        after = new[place] if place < len(new) else None
        name = f"{around}{before.name}"
        if after is None or after.name != before.name:
            yield f"message {name} is gone, or stands elsewhere"
            continue
        yield from _of_fields(after, before, name)
        yield from _of_messages(list(after.nested_type), list(before.nested_type), f"{name}.")
        yield from _of_enums(list(after.enum_type), list(before.enum_type), f"{name}.")


def _of_fields(new: DescriptorProto, old: DescriptorProto, message: str) -> Iterator[str]:
    by_number, by_name = {one.number: one for one in new.field}, {one.name: one for one in new.field}
    for before in old.field:
        after = by_number.get(before.number)
        if after is not None and _meaning(after, new) != _meaning(before, old):
            yield f"member {before.number} of {message} was {before.name} and is {after.name}, or of another type"
        elif after is None and before.name in by_name:
            yield f"member {before.name} of {message} had the number {before.number} and has another"


def _meaning(one: FieldDescriptorProto, message: DescriptorProto) -> tuple[object, ...]:
    oneof = message.oneof_decl[one.oneof_index].name if one.HasField("oneof_index") else None
    return one.name, one.type, one.label, one.type_name, oneof, one.proto3_optional


def _of_enums(new: list[EnumDescriptorProto], old: list[EnumDescriptorProto], around: str) -> Iterator[str]:
    there = {one.name: one for one in new}
    for before in old:
        after = there.get(before.name)
        words = {} if after is None else {one.name: one.number for one in after.value}
        for word in before.value:
            if words.get(word.name) != word.number:
                yield f"{word.name} = {word.number} of enum {around}{before.name} is gone"
