"""What every format of records is: a reader, a writer, a declaration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from dovetail.changelog.formats.members import Member
from dovetail.changelog.schema import RecordFormat, StreamSchema


class MemberReader(Protocol):
    """Reads members out of the values, or out of the keys, of one stream."""

    def read(self, values: pa.Array) -> pa.Table:
        """A column per member, in order, a row per value (binary, none null); absent members are NULL, or their
        default. Raises NeedsRowDecoding where values need a closer look.
        """
        ...

    def may_contain(self, values: pa.Array, name: str) -> pa.Array:
        """Which values may hold a member ``name``, be it null: the others certainly lack it."""
        ...

    def parsed(self, value: bytes) -> dict[str, Any]:
        """One value as the members that it holds, in whatever form ``values`` takes, ``_tp_delta`` a number; null is
        None. Raises RecordRejected with the reason.
        """
        ...

    def values(self, record: dict[str, Any]) -> list[Any]:
        """The members of what ``parsed`` gave, in order, each as ``pa.array`` takes it for its type; the default where
        absent. Raises RecordRejected with column and reason.
        """
        ...


class MemberWriter(Protocol):
    """Writes rows as values, or as keys."""

    def write(self, rows: pa.Table) -> pa.Array:
        """A binary or large binary per row, of its columns in order; a reader of this format gives the row back."""
        ...


@dataclass(frozen=True, slots=True)
class SchemaDefinition:
    """A schema that a registry knows: its text in the language of ``kind`` (AVRO, PROTOBUF, JSON), and those that it
    refers to by name.

    compiled  of PROTOBUF, where a source gives it: a FileDescriptorSet, itself last; empty: the text is no schema
    """

    kind: str
    text: str
    references: tuple[tuple[str, SchemaDefinition], ...] = ()
    compiled: bytes = b""


class SchemaSource(Protocol):
    """Schemas by id. Raises an ExternalError while it does not answer. Pickles."""

    def definition(self, schema_id: int) -> SchemaDefinition | None:
        """None if there is none of this id."""
        ...

    def newest(self, subject: str) -> int | None:
        """The id of the newest schema of ``subject``, as it was within the last seconds; None if it has none."""
        ...

    def latest(self, subject: str) -> int | None:
        """As ``newest``, as it is now."""
        ...


@dataclass(frozen=True, slots=True)
class Reads:
    """What a reader is made for. ``of_key``: it reads the keys of the stream's records, and its format is theirs."""

    format: RecordFormat
    stream: StreamSchema
    members: tuple[Member, ...]
    of_key: bool = False
    schemas: SchemaSource | None = None

    @property
    def place(self) -> str:
        return "key" if self.of_key else "value"


@dataclass(frozen=True, slots=True)
class Writes:
    """What a writer is made for."""

    format: RecordFormat
    of_key: bool = False
    schemas: SchemaSource | None = None


@dataclass(frozen=True, slots=True)
class FormatOption:
    """An option: its ``name`` in ``RecordFormat.options`` and in ``ENCODE x (name = ..)``, the ``setting`` of a stream
    of Timeplus that means it ('' for none), and its values in lower case, empty for any.
    """

    name: str
    setting: str = ""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FormatKind:
    """What statements know of a format.

    data_format, encode   its names in Timeplus and in RisingWave, in lower case, the usual one first; none: it has none
    named                 members have names; else columns are told by their places, and none comes or goes later
    of_keys               keys can be written so too
    single                a value is one column, besides those of a primary key, which the key of the record holds
    """

    name: str
    data_format: tuple[str, ...] = ()
    encode: tuple[str, ...] = ()
    options: tuple[FormatOption, ...] = ()
    named: bool = True
    single: bool = False
    of_keys: bool = True
