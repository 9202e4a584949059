"""Values of one schema: a batch as columns, or one by one. Both go through the same builders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf import message_factory
from google.protobuf.message import DecodeError

from dovetail.changelog.encodings.interface import Reads, SchemaDefinition
from dovetail.changelog.encodings.protobuf.builders import BROKEN, Build, Take, built, taken
from dovetail.changelog.encodings.protobuf.schema import MessageFile, Path, is_called
from dovetail.changelog.encodings.protobuf.varints import number_of, varint
from dovetail.changelog.encodings.schema_id_framing.plain_values import as_given
from dovetail.changelog.encodings.schema_id_framing.reader import SchemaMisfit, together
from dovetail.changelog.encodings.schema_id_framing.subjects import MESSAGE_OPTION
from dovetail.changelog.errors import RecordRejected
from dovetail.changelog.formats.json_batch import NeedsRowDecoding, Positions
from dovetail.changelog.formats.members import Member

_FAR = (1 << 31) - 1


def path_bytes(path: Path) -> bytes:
    """Which message a value is, as it stands before it: how many places, and each; the first message of all as 0."""
    if path == (0,):
        return b"\0"
    return b"".join(varint(number << 1) for number in (len(path), *path))


class _Messages:
    """Reads one message of the schema."""

    def __init__(self, kind: Any, reads: Reads) -> None:
        """Raises SchemaMisfit."""
        self._members = reads.members
        self._parse = message_factory.GetMessageClass(kind).FromString
        self.fields = kind.fields_by_name
        self._parts: dict[str, tuple[Take, Build]] = {}
        for member in reads.members:
            if member.name in self.fields:
                self._parts[member.name] = self._part(member)

    def _part(self, member: Member) -> tuple[Take, Build]:
        field = self.fields[member.name]
        try:
            return taken(field), built(field, member.type)
        except SchemaMisfit as misfit:
            raise SchemaMisfit(f"column {member.name}: {misfit}") from None

    def read(self, payloads: pa.Array) -> pa.Table:
        texts = payloads.to_pylist()
        try:
            messages = list(map(self._parse, texts))
        except DecodeError:
            raise NeedsRowDecoding(
                np.array([place for place, text in enumerate(texts) if self._is_broken(text)])
            ) from None
        try:
            columns = [self._column(member, messages) for member in self._members]
        except BROKEN:
            raise NeedsRowDecoding from None
        return pa.table(columns, schema=pa.schema([(one.name, one.type) for one in self._members]))

    def parsed(self, payload: bytes) -> dict[str, Any]:
        try:
            message = self._parse(payload)
            return {name: take([message])[0] for name, (take, _) in self._parts.items()}
        except (DecodeError, UnicodeDecodeError) as fault:
            raise RecordRejected(f"the value is no message of its schema: {fault}") from None

    def value(self, member: Member, record: dict[str, Any]) -> Any:
        if member.name not in self._parts:
            return record.get(member.name, member.default)
        try:
            [value] = as_given(self._parts[member.name][1]([record[member.name]])).to_pylist()
        except BROKEN as fault:
            raise RecordRejected(f"column {member.name}: {fault}") from None
        return value

    def _is_broken(self, payload: bytes) -> bool:
        try:
            self._parse(payload)
        except DecodeError:
            return True
        return False

    def _column(self, member: Member, messages: list[Any]) -> pa.Array:
        if member.name in self._parts:
            take, build = self._parts[member.name]
            return build(take(messages))
        if member.default is None:
            return pa.nulls(len(messages), member.type)
        return pa.repeat(pa.scalar(member.default, member.type), len(messages))


_READ_AS = ""
"""Beside the members of a value, none of which is called so: which message it is."""


class ProtobufPayloads:
    """Reads the members that ``reads`` names out of messages of one schema."""

    def __init__(self, definition: SchemaDefinition, reads: Reads) -> None:
        """Raises SchemaMisfit."""
        self._file = MessageFile.of(definition)
        self._reads = reads
        self._message = reads.format.option(MESSAGE_OPTION)
        self._paths = dict(self._file.messages())
        self._known: dict[Path, _Messages | str] = {}

    def read(self, payloads: pa.Array) -> pa.Table:
        parts: list[tuple[Positions, pa.Table]] = []
        declined: list[Positions] = []
        rest = np.arange(len(payloads))
        for path in self._paths:
            if len(rest) == 0:
                break
            head, found = path_bytes(path), self._reader(path)
            # How many places there are comes first, so none of these heads begins another one.
            is_one = pc.starts_with(payloads.take(pa.array(rest)), head).to_numpy(zero_copy_only=False)
            positions, rest = rest[is_one], rest[~is_one]
            if isinstance(found, str):
                declined.append(positions)
            elif len(positions):
                some = pc.binary_slice(payloads.take(pa.array(positions)), len(head), _FAR)
                try:
                    parts.append((positions, found.read(some)))
                except NeedsRowDecoding as few:
                    declined.append(positions if few.positions is None else positions[few.positions])
        declined.append(rest)
        return together(parts, declined, self._reads)

    def may_contain(self, payloads: pa.Array, name: str) -> pa.Array:
        """Those of a message that has the member."""
        readers = [self._reader(path) for path in self._paths]
        may = any(isinstance(one, _Messages) and name in one.fields for one in readers)
        return pa.repeat(pa.scalar(may), len(payloads))

    def parsed(self, payload: bytes) -> dict[str, Any]:
        path, message = _parted(payload)
        found = self._reader(path)
        if isinstance(found, str):
            raise RecordRejected(found)
        return {**found.parsed(message), _READ_AS: path}

    def values(self, record: dict[str, Any]) -> list[Any]:
        found = self._known[record[_READ_AS]]
        assert isinstance(found, _Messages)
        return [found.value(member, record) for member in self._reads.members]

    def _reader(self, path: Path) -> _Messages | str:
        """The reader of a message; or why there is none."""
        if path not in self._known:
            self._known[path] = self._made(path)
        return self._known[path]

    def _made(self, path: Path) -> _Messages | str:
        name = self._paths.get(path)
        if name is None:
            return f"its schema has no message at {list(path)}"
        if self._message and not is_called(name, self._message):
            return f"the value is a message {name}, and the stream has {self._message}"
        try:
            return _Messages(self._file.at(path), self._reads)
        except SchemaMisfit as misfit:
            return f"message {name}: {misfit}"


def _parted(payload: bytes) -> tuple[Path, bytes]:
    """Which message it is, and the message. Raises RecordRejected."""
    try:
        count, place = number_of(payload, 0)
        if count == 0:
            return (0,), payload[place:]
        path = []
        for _ in range(count >> 1):
            number, place = number_of(payload, place)
            path.append(number >> 1)
    except IndexError:
        raise RecordRejected("the value ends before it says which message it is") from None
    return tuple(path), payload[place:]
