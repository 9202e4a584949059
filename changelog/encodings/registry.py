"""The list of all formats, and the readers and writers that a format asks for.

The code of a format is imported with its first record: a statement only names it.
"""

# ruff: noqa: PLC0415 - see above

from __future__ import annotations

from typing import Protocol

from dovetail.changelog.encodings.interface import FormatKind, FormatOption, MemberReader, MemberWriter, Reads, Writes
from dovetail.changelog.encodings.schema_id_framing.subjects import MESSAGE_OPTION, REGISTRY_OPTION
from dovetail.changelog.errors import InternalError
from dovetail.changelog.schema import StreamSchema

JSON_FORMAT = FormatKind("json", data_format=("jsoneachrow", "json"), encode=("json",))
CSV_FORMAT = FormatKind(
    "csv",
    data_format=("csv",),
    encode=("csv",),
    options=(
        FormatOption("delimiter", "format_csv_delimiter", (",", ";", "|", "tab", "\\t")),
        FormatOption("without_header", "format_csv_without_header", ("true", "false")),
    ),
    named=False,
    of_keys=False,
)
RAW_FORMAT = FormatKind("raw", data_format=("rawblob", "raw"), encode=("bytes", "text"), named=False, single=True)
AVRO_FORMAT = FormatKind(
    "avro",
    data_format=("avro",),
    encode=("avro",),
    options=(FormatOption(REGISTRY_OPTION, "kafka_schema_registry_url"),),
)
JSON_SCHEMA_FORMAT = FormatKind(
    "json_schema",
    data_format=("jsonschema",),
    options=(FormatOption(REGISTRY_OPTION, "kafka_schema_registry_url"),),
    of_keys=False,
)
PROTOBUF_FORMAT = FormatKind(
    "protobuf",
    data_format=("protobufsingle", "protobuf"),
    encode=("protobuf",),
    options=(
        FormatOption(REGISTRY_OPTION, "kafka_schema_registry_url"),
        FormatOption(MESSAGE_OPTION, "protobuf_message"),
    ),
    of_keys=False,
)
FORMATS = (JSON_FORMAT, CSV_FORMAT, RAW_FORMAT, AVRO_FORMAT, JSON_SCHEMA_FORMAT, PROTOBUF_FORMAT)
_BY_NAME = {kind.name: kind for kind in FORMATS}


class _Code(Protocol):
    """The module of a format."""

    def reader(self, reads: Reads, /) -> MemberReader: ...

    def writer(self, writes: Writes, /) -> MemberWriter: ...


def format_kind(name: str) -> FormatKind:
    """The kind that a ``RecordFormat`` names. What SQL takes is one of the list."""
    found = _BY_NAME.get(name)
    if found is None:
        raise InternalError(f"unknown format {name!r}")
    return found


def reader(reads: Reads) -> MemberReader:
    return _code(reads.format.kind).reader(reads)


def writer(writes: Writes) -> MemberWriter:
    return _code(writes.format.kind).writer(writes)


def headers(stream: StreamSchema) -> frozenset[bytes]:
    """The values of a stream that say what others hold, and are no records."""
    if stream.value.kind != CSV_FORMAT.name:
        return frozenset()
    from dovetail.changelog.encodings import csv_format

    return csv_format.headers(stream)


def _code(name: str) -> _Code:
    kind = format_kind(name)
    if kind is JSON_FORMAT:
        from dovetail.changelog.encodings import json_format

        return json_format
    if kind is CSV_FORMAT:
        from dovetail.changelog.encodings import csv_format

        return csv_format
    if kind is RAW_FORMAT:
        from dovetail.changelog.encodings import raw_format

        return raw_format
    if kind is AVRO_FORMAT:
        from dovetail.changelog.encodings import avro_format

        return avro_format
    if kind is JSON_SCHEMA_FORMAT:
        from dovetail.changelog.encodings import json_schema_format

        return json_schema_format
    from dovetail.changelog.encodings import protobuf_format

    return protobuf_format
