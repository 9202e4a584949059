"""What is known of a stream before its first record: columns, kind, primary key, event time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum

import pyarrow as pa

TIME = "_tp_time"
SEQUENCE = "_tp_sn"
WIRE_DELTA = "_tp_delta"
"""The member of a record that says whether it adds its row, or takes it away."""
ARRIVAL = "__arrival"
"""Order of arrival, ``partition << OFFSET_BITS | offset``: total, and the same in every replay."""
WRITTEN = "__written"
"""The timestamp of the record in ms, beside ``ARRIVAL`` on the way from a scan to the operator that needs the order."""
RECORD = "__record"
"""The record itself, beside ``ARRIVAL``, on the way to an operator that may refuse it."""
OFFSET_BITS = 44
EVENT_TIME_TYPE = pa.timestamp("ms", tz="UTC")
DAY_MS = 86_400_000


class Kind(StrEnum):
    """How the records of a stream become changes."""

    APPEND = "append"
    """Every record is a row of its own; nothing is taken back."""
    UPSERT = "upsert"
    """A record replaces the row of its primary key; a tombstone deletes it."""
    CHANGELOG_KV = "changelog_kv"
    """``_tp_delta`` is +1 or -1; +1 replaces the row of its primary key, -1 deletes it if it is equal."""
    CHANGELOG = "changelog"
    """``_tp_delta`` is +1 or -1 and counts whole rows; there is no primary key."""


class RecordTime(StrEnum):
    """How a column is filled with the time of its record."""

    WHERE_ABSENT = "now()"
    ALWAYS = "proctime()"


@dataclass(frozen=True, slots=True)
class Column:
    """A declared column: ``default`` is the literal (text) of its DEFAULT, taken where a record lacks the field.

    ``record_time``: the time of the record is taken there instead, or, of a PROCTIME() column, always.
    ``former``: what records of before may call it; such a member counts where a record has none of its name.
    ``declared``: the name of its type where that is one of several of texts: ``json``, ``ipv4``.
    ``form``: of its texts, one of ``changelog.formats.text_forms``; '': any text.
    """

    name: str
    type: pa.DataType
    nullable: bool = True
    default: str | None = None
    record_time: RecordTime | None = None
    former: tuple[str, ...] = ()
    form: str = ""
    declared: str = field(default="", compare=False, repr=False)


class RecordPart(StrEnum):
    """What a record is, beside what its value holds."""

    KEY = "key"
    PARTITION = "partition"
    OFFSET = "offset"
    TIMESTAMP = "timestamp"
    HEADERS = "headers"
    HEADER = "header"
    """One of them, by its name."""


@dataclass(frozen=True, slots=True)
class Included:
    """A column that is a part of the record, and no member of its value: it is read, and never written.

    type    KEY, HEADER: text or bytes. PARTITION, OFFSET: an integer or text. TIMESTAMP: any of its kind. HEADERS: a
            map of text to text, or an array of objects {key, value}, text and bytes
    header  the name of the one header
    """

    name: str
    type: pa.DataType
    part: RecordPart
    header: str = ""

    @property
    def headed(self) -> bool:
        return self.part in (RecordPart.HEADERS, RecordPart.HEADER)


@dataclass(frozen=True, slots=True)
class RecordFormat:
    """How the bytes of a value or of a key hold members: a kind of ``changelog/encodings/registry.py``, with options.

    options   name and value, in the order of the names; those that are left out have the default of the kind
    envelope  of values: what they hold the rows in, 'debezium'; '': they are the rows
    """

    kind: str = "json"
    options: tuple[tuple[str, str], ...] = ()
    envelope: str = ""

    def option(self, name: str, default: str = "") -> str:
        return dict(self.options).get(name, default)


JSON = RecordFormat()


@dataclass(frozen=True, slots=True)
class StreamSchema:
    """The declared shape of a stream; ``event_time`` names the column of ``_tp_time`` (else Kafka's timestamp).

    version      UPSERT: the column by whose greatest value the row of a primary key stands, in whatever order records
                 come; '': the last record counts
    first_stays  of records of one version the first counts, else the last
    value        the format of the values of its records
    key          that of their keys, where a key is read or written
    included     columns that are parts of the records: they are beside ``columns``, which are members of values
    """

    name: str
    columns: tuple[Column, ...]
    kind: Kind = Kind.APPEND
    primary_key: tuple[str, ...] = ()
    event_time: str | None = None
    version: str = ""
    first_stays: bool = False
    value: RecordFormat = JSON
    key: RecordFormat = JSON
    included: tuple[Included, ...] = ()

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    def included_as(self, name: str | None) -> Included | None:
        return next((one for one in self.included if one.name == name), None)

    @property
    def readable(self) -> tuple[Column | Included, ...]:
        """The columns that a query sees as those of the stream."""
        return (*self.columns, *self.included)

    def as_written(self) -> StreamSchema:
        """The stream where what was included stands in the values: rows that a query has written to another topic."""
        added = tuple(Column(one.name, one.type) for one in self.included)
        return replace(self, columns=(*self.columns, *added), included=())

    @property
    def types(self) -> dict[str, pa.DataType]:
        """Of all that can be read by name: the declared columns, the included and the reserved ones."""
        reserved = {TIME: EVENT_TIME_TYPE, SEQUENCE: pa.int64()}
        return reserved | {column.name: column.type for column in self.readable}

    def of_record(self, name: str) -> bool:
        """Whether the column tells of the record, when and where it stands: a retraction has its own."""
        return name in (TIME, SEQUENCE) or self.included_as(name) is not None

    def headed(self, names: Iterable[str]) -> bool:
        """Whether the headers of records are needed to read these columns."""
        read = set(names)
        return any(one.headed and one.name in read for one in self.included)
