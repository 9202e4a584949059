"""The list of all formats, and the readers and writers that a format asks for."""

from __future__ import annotations

from changelog.encodings.avro_format import AVRO_FORMAT
from changelog.encodings.csv_format import CSV_FORMAT
from changelog.encodings.interface import FormatKind, MemberReader, MemberWriter, Reads, Writes
from changelog.encodings.json_format import JSON_FORMAT
from changelog.encodings.json_schema_format import JSON_SCHEMA_FORMAT
from changelog.encodings.protobuf_format import PROTOBUF_FORMAT
from changelog.encodings.raw_format import RAW_FORMAT
from changelog.errors import InternalError

FORMATS = (JSON_FORMAT, CSV_FORMAT, RAW_FORMAT, AVRO_FORMAT, JSON_SCHEMA_FORMAT, PROTOBUF_FORMAT)
_BY_NAME = {kind.name: kind for kind in FORMATS}


def format_kind(name: str) -> FormatKind:
    """The kind that a ``RecordFormat`` names. What SQL takes is one of the list."""
    found = _BY_NAME.get(name)
    if found is None:
        raise InternalError(f"unknown format {name!r}")
    return found


def reader(asked: Reads) -> MemberReader:
    return format_kind(asked.format.kind).reader(asked)


def writer(asked: Writes) -> MemberWriter:
    return format_kind(asked.format.kind).writer(asked)
