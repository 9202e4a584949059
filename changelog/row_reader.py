"""From the key and value of records to the members of their rows, by the kind of the stream.

    kind           value                 row                                  delta
    APPEND         object                its members                          +1
    CHANGELOG      object                its members                          its ``_tp_delta``, else +1
    CHANGELOG_KV   object                its members                          its ``_tp_delta``, else +1
    UPSERT         object                its members                          its ``_tp_delta``, else +1
    UPSERT         null (a tombstone)    the primary key of the Kafka key     -1

Primary key columns that a value lacks are taken from the Kafka key; all of them must be known in the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from changelog.errors import RecordRejected
from changelog.formats.json_batch import BatchReader, Declined, Positions, decline_where, mentioning
from changelog.formats.json_record import RecordReader
from changelog.formats.json_types import described
from changelog.formats.members import Member
from changelog.keys import as_object, as_objects
from changelog.schema import EVENT_TIME_TYPE, SEQUENCE, TIME, Column, Kind, StreamSchema

WIRE_DELTA = "_tp_delta"
WIRE_DELTA_TYPE = pa.int32()
"""It is 1 or -1 in every record."""
_TOMBSTONE = b'{"_tp_delta":-1}'


class RowReader:
    """Reads what rows of ``columns`` need: these, the primary key, the event time, the delta."""

    def __init__(self, schema: StreamSchema, columns: tuple[str, ...]) -> None:
        self.keyed = schema.kind in (Kind.UPSERT, Kind.CHANGELOG_KV)
        self.counted = schema.kind is not Kind.APPEND
        self._kind = schema.kind
        self._primary_key = schema.primary_key if self.keyed else ()
        self._members = tuple(_members(schema, columns, self._primary_key))
        keys = tuple(member for member in self._members if member.name in self._primary_key)
        self._text_key = len(keys) == 1 and pa.types.is_string(keys[0].type)
        names = {member.name for member in self._members}
        self._renamed = tuple(column for column in schema.columns if column.former and column.name in names)
        self._batch, self._record = BatchReader(self._with_former()), RecordReader(self._members)
        self._key_batch, self._key_record = BatchReader(keys), RecordReader(keys)
        self.schema = pa.schema([(member.name, member.type) for member in self._members])

    def read_batch(self, keys: pa.Array, values: pa.Array) -> pa.Table:
        """The members of all rows; raises Declined where a record needs a closer look."""
        if values.null_count:
            if self._kind is not Kind.UPSERT:
                decline_where(values.is_null())
            values = values.fill_null(_TOMBSTONE)
        rows = self._under_present_names(self._batch.read(values), values)
        if self.counted:
            decline_where(pc.not_equal(pc.abs(rows.column(WIRE_DELTA)), 1))
        return self._with_keys(rows, keys, values)

    def read_record(self, key: bytes | None, value: bytes | None) -> list[Any]:
        """The members of one row. Raises RecordRejected."""
        if value is None and self._kind is not Kind.UPSERT:
            raise RecordRejected(f"null value in {_ARTICLED[self._kind]} stream")
        record = self._record.parsed_object(_TOMBSTONE if value is None else value, "value")
        for column in self._renamed:
            if column.name not in record:
                record |= _former_member(record, column)
        if any(name not in record for name in self._primary_key):
            of_key = self._key_record.parsed_object(as_object(key, self._primary_key, self._text_key), "key")
            record = {**{name: of_key[name] for name in self._primary_key if name in of_key}, **record}
        for name in self._primary_key:
            if record.get(name) is None:
                state = "null" if name in record else "missing"
                raise RecordRejected(f"primary key column {name} is {state}")
        if self.counted and record.get(WIRE_DELTA, 1) not in (1, -1):
            found = described(record[WIRE_DELTA]).removeprefix("number ")
            raise RecordRejected(f"{WIRE_DELTA} is {found}; it must be 1 or -1")
        return self._record.values(record)

    def table(self, rows: list[list[Any]]) -> pa.Table:
        """What ``read_record`` gave, as a table."""
        columns = zip(*rows, strict=True) if rows else [()] * len(self._members)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, self.schema, strict=True)]
        return pa.table(arrays, schema=self.schema)

    def _with_former(self) -> tuple[Member, ...]:
        """The members to be read: of a renamed column those under its former names too, and none of them by default."""
        renamed = {column.name for column in self._renamed}
        present = [Member(one.name, one.type) if one.name in renamed else one for one in self._members]
        return (*present, *(Member(name, column.type) for column in self._renamed for name in column.former))

    def _under_present_names(self, rows: pa.Table, values: pa.Array) -> pa.Table:
        """The members that are asked for, each from under its former names where a record has none of its name."""
        if not self._renamed:
            return rows
        for column in self._renamed:
            present = rows.column(column.name)
            found = pc.coalesce(present, *(rows.column(name) for name in column.former))
            # A NULL that a record has under the present name stands, whatever else it has.
            taken = pc.and_(present.is_null(), found.is_valid())
            decline_where(pc.and_(taken, mentioning(values, column.name)))
            if column.default is not None:
                decline_where(found.is_null())
            rows = rows.set_column(rows.schema.get_field_index(column.name), column.name, found)
        return rows.select(self.schema.names)

    def _with_keys(self, rows: pa.Table, keys: pa.Array, values: pa.Array) -> pa.Table:
        """Primary key columns that values lack, from the Kafka keys."""
        lacking = np.zeros(len(values), dtype=np.bool_)
        for name in self._primary_key:
            if rows.column(name).null_count:
                absent = rows.column(name).is_null()
                decline_where(pc.and_(absent, mentioning(values, name)))
                lacking |= absent.to_numpy()
        return self._filled(rows, keys, np.flatnonzero(lacking)) if lacking.any() else rows

    def _filled(self, rows: pa.Table, keys: pa.Array, lacking: Positions) -> pa.Table:
        """``rows`` with the primary key columns that are NULL at the positions ``lacking`` taken from ``keys``."""
        try:
            of_key = self._key_batch.read(as_objects(keys.take(pa.array(lacking)), self._primary_key, self._text_key))
        except Declined as declined:
            raise Declined(None if declined.positions is None else lacking[declined.positions]) from None
        places = np.zeros(len(keys), dtype=np.int64)
        places[lacking] = np.arange(len(lacking))
        for name in self._primary_key:
            column = pc.coalesce(rows.column(name), of_key.column(name).take(pa.array(places)))
            decline_where(column.is_null())
            rows = rows.set_column(rows.schema.get_field_index(name), name, column)
        return rows


def _former_member(record: Mapping[str, Any], column: Column) -> dict[str, Any]:
    """The renamed column as ``record`` has it: the first value that is not NULL; nothing where it has none at all."""
    found = [record[name] for name in column.former if name in record]
    return {column.name: next((value for value in found if value is not None), None)} if found else {}


_ARTICLED = {Kind.APPEND: "an append", Kind.CHANGELOG: "a changelog", Kind.CHANGELOG_KV: "a changelog_kv"}


def _members(schema: StreamSchema, columns: tuple[str, ...], primary_key: tuple[str, ...]) -> list[Member]:
    wanted = dict.fromkeys(name for name in (*columns, *primary_key) if name not in (TIME, SEQUENCE))
    if TIME in columns and schema.event_time not in (None, TIME):
        wanted[schema.event_time] = None
    members = [_member(schema, name, primary_key) for name in wanted]
    if TIME in columns:
        members.append(Member(TIME, EVENT_TIME_TYPE))
    if schema.kind is not Kind.APPEND:
        members.append(Member(WIRE_DELTA, WIRE_DELTA_TYPE, 1))
    return members


def _member(schema: StreamSchema, name: str, primary_key: tuple[str, ...]) -> Member:
    """A primary key column has no default: its value is in the record or in the record's key."""
    member = Member.of(schema.column(name))
    return Member(member.name, member.type) if name in primary_key else member
