"""From the key and value of records to the members of their rows, by the kind of the stream.

    kind           value                 row                                  delta
    APPEND         object                its members                          +1
    CHANGELOG      object                its members                          its ``_tp_delta``, else +1
    CHANGELOG_KV   object                its members                          its ``_tp_delta``, else +1
    UPSERT         object                its members                          its ``_tp_delta``, else +1
    UPSERT         null (a tombstone)    the primary key of the Kafka key     -1

What an envelope of Debezium holds instead stands in ``changelog.encodings.debezium``.

Primary key columns that a value lacks are taken from the Kafka key; all of them must be known in the end. An object of
JSON that has members, none of which is a column of the stream, is no row: most likely its names are in other letters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.encodings import registry
from dovetail.changelog.encodings.debezium import EnvelopedKeys, EnvelopeReader
from dovetail.changelog.encodings.interface import Reads, SchemaSource
from dovetail.changelog.errors import RecordRejected
from dovetail.changelog.formats.json_batch import NeedsRowDecoding, Positions, decline_where
from dovetail.changelog.formats.json_types import described
from dovetail.changelog.formats.members import Member
from dovetail.changelog.formats.text_forms import TEXT_FORMS
from dovetail.changelog.schema import EVENT_TIME_TYPE, TIME, WIRE_DELTA, Column, Kind, StreamSchema

WIRE_DELTA_TYPE = pa.int32()
"""It is 1 or -1 in every record."""


_OF_NAMED_MEMBERS = (registry.JSON_FORMAT.name, registry.JSON_SCHEMA_FORMAT.name)


class RowReader:
    """Reads what rows of ``columns`` need: these, the primary key, the event time, the delta."""

    def __init__(self, schema: StreamSchema, columns: tuple[str, ...], schemas: SchemaSource | None = None) -> None:
        self.keyed = schema.kind in (Kind.UPSERT, Kind.CHANGELOG_KV)
        self.counted = schema.kind is not Kind.APPEND
        self._kind = schema.kind
        self._primary_key = schema.primary_key if self.keyed else ()
        self._members = tuple(_members(schema, columns, self._primary_key))
        keys = tuple(member for member in self._members if member.name in self._primary_key)
        names = {member.name for member in self._members}
        self._places = {member.name: place for place, member in enumerate(self._members)}
        self._renamed = tuple(column for column in schema.columns if column.former and column.name in names)
        self._record = registry.reader(Reads(schema.value, schema, self._members, schemas=schemas))
        wide = Reads(schema.value, schema, self._with_former(), schemas=schemas)
        self._batch = registry.reader(wide) if self._renamed else self._record
        self._envelope = EnvelopeReader(wide) if schema.value.envelope else None
        of_keys = Reads(schema.key, schema, keys, of_key=True, schemas=schemas)
        self._key = EnvelopedKeys(of_keys) if self._envelope else registry.reader(of_keys)
        self._key_names = tuple(member.name for member in keys)
        # Documents of JSON objects are in their form from the reader of their members on.
        objects = schema.value.kind == "json" and self._envelope is None
        read = {member.name for member in self._members if objects and member.document} - {*self._primary_key}
        named = schema.value.kind in _OF_NAMED_MEMBERS and self._envelope is None
        self._named = dict.fromkeys(_member_names(schema)) if named else None
        self._certain = tuple(member.name for member in self._members if member.default is None)
        formed = [one for one in schema.columns if one.form and one.name in names - read]
        self._forms = {one.name: TEXT_FORMS[one.form] for one in formed}
        self.schema = pa.schema([(member.name, member.type) for member in self._members])

    def read_batch(self, keys: pa.Array, values: pa.Array) -> tuple[pa.Table, Positions | None]:
        """The members of all rows, and the place of the record of each; None: they are a row each. Raises
        NeedsRowDecoding where a record needs a closer look.
        """
        if values.null_count and not self._takes_nulls:
            decline_where(values.is_null())
        read, places = self._read(values) if values.null_count == 0 else self._read_with_nulls(values)
        if places is None:
            return self._completed(read, keys, values), None
        taken = pa.array(places)
        try:
            return self._completed(read, keys.take(taken), values.take(taken)), places
        except NeedsRowDecoding as declined:
            raise NeedsRowDecoding(
                None if declined.positions is None else np.unique(places[declined.positions])
            ) from None

    def _completed(self, read: pa.Table, keys: pa.Array, values: pa.Array) -> pa.Table:
        rows = self._under_present_names(read, values)
        self._decline_strange(rows, values)
        if self.counted:
            decline_where(pc.not_equal(pc.abs(rows.column(WIRE_DELTA)), 1))
        return self._in_forms(self._with_keys(rows, keys, values))

    def _expect_named(self, record: Mapping[str, Any], value: bytes) -> None:
        """Raises RecordRejected for members none of which is a column. A name that occurs deeper inside passes: whole
        batches are searched for their names as texts.
        """
        if self._named is None or not record or not self._named.keys().isdisjoint(record):
            return
        written = pa.array([value], pa.binary())
        if not any(self._may_contain(written, name)[0].as_py() for name in self._named):
            raise _strange(record, self._named)

    def _decline_strange(self, rows: pa.Table, values: pa.Array) -> None:
        """Have a closer look at the records in which no name of a member occurs: nothing of them is in their row."""
        if self._named is None or any(rows.column(name).null_count == 0 for name in self._certain):
            return
        strange = values.is_valid()
        for name in self._certain:
            strange = pc.and_(strange, rows.column(name).is_null().combine_chunks())
        # An object without members has no quotes.
        strange = pc.and_(strange, pc.match_substring(values, '"'))
        positions = np.flatnonzero(pc.fill_null(strange, False).to_numpy(zero_copy_only=False))
        for name in self._named:
            if not len(positions):
                return
            has = self._may_contain(values.take(pa.array(positions)), name)
            positions = positions[~has.to_numpy(zero_copy_only=False)]
        if len(positions):
            raise NeedsRowDecoding(positions)

    def _in_forms(self, rows: pa.Table) -> pa.Table:
        for name, form in self._forms.items():
            found = form.members(rows.column(name))
            if form.strange is not None:
                decline_where(form.strange(found))
            rows = rows.set_column(rows.schema.get_field_index(name), name, found)
        return rows

    def read_record(self, key: bytes | None, value: bytes | None) -> list[list[Any]]:
        """The members of each row of one record. Raises RecordRejected."""
        if value is None:
            if not self._takes_nulls:
                raise RecordRejected(f"null value in {_ARTICLED[self._kind]} stream")
            return [self._read_row(key, {WIRE_DELTA: -1})] if self._kind is Kind.UPSERT else []
        if self._envelope is None:
            record = self._record.parsed(value)
            self._expect_named(record, value)
            return [self._read_row(key, record)]
        return [self._read_row(key, record) for record in self._envelope.parsed(value)]

    @property
    def _takes_nulls(self) -> bool:
        """Whether a record without value says something, or what another one has said before."""
        return self._kind is Kind.UPSERT or self._envelope is not None

    def _read(self, values: pa.Array) -> tuple[pa.Table, Positions | None]:
        return (self._batch.read(values), None) if self._envelope is None else self._envelope.read(values)

    def _read_row(self, key: bytes | None, record: dict[str, Any]) -> list[Any]:
        for column in self._renamed:
            if column.name not in record:
                record |= _former_member(record, column)
        of_key = self._members_of_key(key, record)
        for name in self._primary_key:
            if record.get(name, of_key.get(name)) is None:
                state = "null" if name in record or name in of_key else "missing"
                raise RecordRejected(f"primary key column {name} is {state}")
        if self.counted and record.get(WIRE_DELTA, 1) not in (1, -1):
            found = described(record[WIRE_DELTA]).removeprefix("number ")
            raise RecordRejected(f"{WIRE_DELTA} is {found}; it must be 1 or -1")
        row = self._record.values(record)
        if of_key:
            found_in_key = dict(zip(self._key_names, self._key.values(of_key), strict=True))
            for name in of_key:
                row[self._places[name]] = found_in_key[name]
        for name in self._forms:
            row[self._places[name]] = self._in_form(name, row[self._places[name]])
        return row

    def _in_form(self, name: str, text: str | None) -> str | None:
        form = self._forms[name]
        try:
            return None if text is None else form.member(text)
        except ValueError:
            raise RecordRejected(f"column {name}: expected {form.name}, found {described(text)}") from None

    def _members_of_key(self, key: bytes | None, record: Mapping[str, Any]) -> dict[str, Any]:
        """The primary key columns that ``record`` lacks and the key has."""
        lacking = [name for name in self._primary_key if name not in record]
        if not lacking or key is None:
            return {}
        found = self._key.parsed(key)
        # What was parsed may know who has read it, so it stays the object that it is.
        for name in [name for name in found if name not in lacking]:
            del found[name]
        return found

    def table(self, rows: list[list[Any]]) -> pa.Table:
        """What ``read_record`` gave, as a table."""
        columns = zip(*rows, strict=True) if rows else [()] * len(self._members)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, self.schema, strict=True)]
        return pa.table(arrays, schema=self.schema)

    def _read_with_nulls(self, values: pa.Array) -> tuple[pa.Table, Positions | None]:
        """As the reader reads them. A null of a keyed stream is a row of defaults that is taken away, else none."""
        valid = values.is_valid().to_numpy(zero_copy_only=False)
        present = np.flatnonzero(valid)
        try:
            rows, places = self._read(values.take(pa.array(present)))
        except NeedsRowDecoding as declined:
            raise NeedsRowDecoding(None if declined.positions is None else present[declined.positions]) from None
        if self._kind is not Kind.UPSERT:
            return rows, present if places is None else present[places]
        spread = rows.take(pa.array(np.cumsum(valid) - 1, mask=~valid))
        for member in self._with_former():
            place = spread.schema.get_field_index(member.name)
            default = -1 if member.name == WIRE_DELTA else member.default
            if default is not None:
                filled = pc.if_else(pa.array(valid), spread.column(place), pa.scalar(default, member.type))
                spread = spread.set_column(place, member.name, filled)
        return spread, None

    def _may_contain(self, values: pa.Array, name: str) -> pa.Array:
        reader = self._batch if self._envelope is None else self._envelope
        if values.null_count == 0:
            return reader.may_contain(values, name)
        return pc.and_(values.is_valid(), reader.may_contain(values.fill_null(b""), name))

    def _with_former(self) -> tuple[Member, ...]:
        """The members to be read: of a renamed column those under its former names too, and none of them by default."""
        renamed = {column.name for column in self._renamed}
        present = [replace(one, default=None) if one.name in renamed else one for one in self._members]
        former = (
            replace(Member.of(column), name=name, default=None) for column in self._renamed for name in column.former
        )
        return (*present, *former)

    def _under_present_names(self, rows: pa.Table, values: pa.Array) -> pa.Table:
        """The members that are asked for, each from under its former names where a record has none of its name."""
        if not self._renamed:
            return rows
        for column in self._renamed:
            present = rows.column(column.name)
            found = pc.coalesce(present, *(rows.column(name) for name in column.former))
            # A NULL that a record has under the present name stands, whatever else it has.
            taken = pc.and_(present.is_null(), found.is_valid())
            decline_where(pc.and_(taken, self._may_contain(values, column.name)))
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
                decline_where(pc.and_(absent, self._may_contain(values, name)))
                lacking |= absent.to_numpy()
        return self._filled(rows, keys, np.flatnonzero(lacking)) if lacking.any() else rows

    def _filled(self, rows: pa.Table, keys: pa.Array, lacking: Positions) -> pa.Table:
        """``rows`` with the primary key columns that are NULL at the positions ``lacking`` taken from ``keys``."""
        try:
            distinct = keys.take(pa.array(lacking))
            decline_where(distinct.is_null())
            of_key = self._key.read(distinct)
        except NeedsRowDecoding as declined:
            raise NeedsRowDecoding(None if declined.positions is None else lacking[declined.positions]) from None
        places = np.zeros(len(keys), dtype=np.int64)
        places[lacking] = np.arange(len(lacking))
        for name in self._primary_key:
            column = pc.coalesce(rows.column(name), of_key.column(name).take(pa.array(places)))
            decline_where(column.is_null())
            rows = rows.set_column(rows.schema.get_field_index(name), name, column)
        return rows


def _member_names(schema: StreamSchema) -> list[str]:
    """What members of a record may be called, the columns first."""
    former = [name for column in schema.columns for name in column.former]
    return [*(column.name for column in schema.columns), *former, TIME, WIRE_DELTA]


def _strange(record: Mapping[str, Any], named: Iterable[str]) -> RecordRejected:
    found, folded = ", ".join([*record][:_MOST_NAMED]), {name.casefold() for name in record}
    alike = [name for name in named if name.casefold() in folded]
    written = f"; written as {', '.join(alike)} they would be" if alike else ""
    return RecordRejected(f"none of its members is a column: {found}{written}")


_MOST_NAMED = 5


def _former_member(record: Mapping[str, Any], column: Column) -> dict[str, Any]:
    """The renamed column as ``record`` has it: the first value that is not NULL; nothing where it has none at all."""
    found = [record[name] for name in column.former if name in record]
    return {column.name: next((value for value in found if value is not None), None)} if found else {}


_ARTICLED = {Kind.APPEND: "an append", Kind.CHANGELOG: "a changelog", Kind.CHANGELOG_KV: "a changelog_kv"}


def _members(schema: StreamSchema, columns: tuple[str, ...], primary_key: tuple[str, ...]) -> list[Member]:
    wanted = dict.fromkeys(name for name in (*columns, *primary_key) if not schema.of_record(name))
    if TIME in columns and schema.event_time is not None and not schema.of_record(schema.event_time):
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
    return replace(member, default=None) if name in primary_key else member
