"""Records of a feed as changes: keys that are to be forgotten, rows that may be stored."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import orjson
import pyarrow as pa

from changelog.errors import RecordRejected
from changelog.formats.json_record import holds_decimal
from changelog.keys import as_object
from changelog.lookup import Key, Row, Rows
from changelog.row_reader import WIRE_DELTA
from dictionaries.definition.definition import Definition
from dictionaries.feed.feed_definition import Feed, FeedFormat
from dictionaries.feed.feed_values import feed_value_reader
from dictionaries.feed.source_changes import Change, SourceChanges
from dictionaries.sources.source_rows import SourceRowReader
from dictionaries.sources.source_values import Read, Unfit

_SHOWN = 80


class _Key(NamedTuple):
    """``is_exact``: it has the dictionary's key columns and no others, so there is one row of it, in one partition."""

    key: Key | None
    members: Mapping[str, Any]
    is_exact: bool


_NO_KEY = _Key(None, {}, False)


class FeedDecoder:
    """Reads the records of a dictionary's feed.

    Of a record that cannot be used in full its keys are forgotten. Without a key it is left out and counted. (To
    forget everything instead would leave a cache of a topic with bad records empty, and the source with the load.)

    A row is stored only if it is complete, of types that are read in one way only, and under the record's own Kafka
    key: otherwise a later row of the key may stand in another partition, or be that of another row of the table.
    """

    def __init__(self, definition: Definition, feed: Feed) -> None:
        columns = {column.name: column for column in definition.columns}
        is_debezium = feed.format is FeedFormat.DEBEZIUM
        self._stores = feed.stores
        self._names = definition.names
        self._key_names = definition.key
        self._has_text_key = len(definition.key) == 1 and pa.types.is_string(columns[definition.key[0]].type)
        readers = {
            name: feed_value_reader(column.type, is_debezium=is_debezium, is_key=name in definition.key)
            for name, column in columns.items()
        }
        self._readers = list(readers.values())
        self._key_readers = [readers[name] for name in definition.key]
        self._rows = SourceRowReader(definition, f'dictionary "{definition.name}", its feed')
        needed = definition.columns if feed.stores else [columns[name] for name in definition.key]
        self._is_exact = any(holds_decimal(column.type) for column in needed)
        self._read: Callable[[bytes | None, bytes | None], dict[Key, Rows | None] | None] = {
            FeedFormat.KEY: self._of_key,
            FeedFormat.JSON: self._of_json,
            FeedFormat.DEBEZIUM: self._of_debezium,
        }[feed.format]

    def decode(self, start: int, records: Iterable[tuple[int, bytes | None, bytes | None]]) -> SourceChanges:
        """``records`` of one partition, which begin at ``start``: offset, Kafka key and value of each."""
        changes, by_key, read = SourceChanges(start, start), dict[Key, Change](), self._read
        for offset, key, value in records:
            changes.end = offset + 1
            changes.records += 1
            try:
                found = read(key, value)
            except RecordRejected as rejection:
                changes.rejected += 1
                changes.reason = changes.reason or f"offset {offset}: {rejection.what}"
                continue
            if found is None:
                changes.is_whole = True
                continue
            for changed, rows in found.items():
                # The offsets of a dict are in order, if the latest change of a key stands last.
                by_key.pop(changed, None)
                by_key[changed] = Change(offset, rows)
        changes.by_key = self._as_stored(by_key)
        return changes

    def _of_key(self, key: bytes | None, value: bytes | None) -> dict[Key, Rows | None]:
        given = value if key is None else key
        return {self._known(self._key_in(given).key, given): None}

    def _of_json(self, key: bytes | None, value: bytes | None) -> dict[Key, Rows | None]:
        named = self._key_in(key)
        if value is None:
            return {self._known(named.key, key): self._deleted(named)}
        parsed = _unwrapped(self._parsed(value))
        members = {**named.members, **parsed} if isinstance(parsed, dict) else {}
        key_inside = self._key_of(members)
        found = self._forgotten(value, named.key, key_inside)
        if key_inside == named.key and members.get(WIRE_DELTA, 1) == 1:
            self._store(found, named, members)
        return found

    def _of_debezium(self, key: bytes | None, value: bytes | None) -> dict[Key, Rows | None] | None:
        named = self._key_in(key)
        if value is None:
            return {self._known(named.key, key): self._deleted(named)}
        envelope = _unwrapped(self._parsed(value))
        if not isinstance(envelope, dict):
            return self._forgotten(value, named.key)
        op = envelope.get("op")
        if op == "t":
            return None
        if op == "m":  # somebody's message in the log of PostgreSQL, of no table
            return {}
        after = _object(envelope.get("after"))
        old_key, new_key = self._key_of(_object(envelope.get("before"))), self._key_of(after)
        found = self._forgotten(value, named.key, old_key, new_key)
        if op == "d" and old_key in (None, named.key) and named.key is not None:
            found[named.key] = self._deleted(named)
        elif op in ("c", "u", "r") and new_key == named.key:
            self._store(found, named, after)
        return found

    # -- keys

    def _key_in(self, text: bytes | None) -> _Key:
        """What a text holds of the key; ``key`` is None if that is not all of it."""
        if text is None:
            return _NO_KEY
        members: Mapping[str, Any]
        if len(self._key_names) > 1 and text.startswith(b"["):
            values = self._parsed(text)
            is_key = isinstance(values, list) and len(values) == len(self._key_names)
            members = dict(zip(self._key_names, values, strict=True)) if is_key else {}
        else:
            members = _object(_unwrapped(self._parsed(as_object(text, self._key_names, self._has_text_key))))
        return _Key(self._key_of(members), members, members.keys() == set(self._key_names))

    def _key_of(self, members: Mapping[str, Any]) -> Key | None:
        if not members:
            return None
        values = []
        for name, read in zip(self._key_names, self._key_readers, strict=True):
            given = members.get(name)
            try:
                value = None if given is None else read(given)
            except Unfit:
                value = None
            if value is None:
                return None
            values.append(value)
        return values[0] if len(values) == 1 else tuple(values)

    def _forgotten(self, value: bytes, *keys: Key | None) -> dict[Key, Rows | None]:
        found: dict[Key, Rows | None] = dict.fromkeys(key for key in keys if key is not None)
        if not found:
            self._known(None, value)
        return found

    def _known(self, key: Key | None, text: bytes | None) -> Key:
        if key is None:
            shown = "null" if text is None else repr(text[:_SHOWN])
            raise RecordRejected(f"no key ({', '.join(self._key_names)}) can be read in {shown}")
        return key

    # -- rows

    def _deleted(self, named: _Key) -> Rows | None:
        return () if self._stores and named.is_exact else None

    def _store(self, found: dict[Key, Rows | None], named: _Key, members: Mapping[str, Any]) -> None:
        """The row in the place of None, if it may be stored."""
        if not self._stores or not named.is_exact or named.key is None or not members.keys() >= set(self._names):
            return
        given = [members[name] for name in self._names]
        try:
            found[named.key] = (tuple(map(_read_or_null, self._readers, given)),)
        except Unfit:
            return

    def _as_stored(self, by_key: dict[Key, Change]) -> dict[Key, Change]:
        """With rows as a source would give them: DEFAULTs in the place of NULL; None where there may be no NULL."""
        complete = {key: change.rows[0] for key, change in by_key.items() if change.rows}
        rows: Sequence[Row | None]
        try:
            rows = self._rows.read(list(complete.values()))
        except RecordRejected:
            rows = [self._row_or_none(row) for row in complete.values()]
        for key, row in zip(complete, rows, strict=True):
            by_key[key] = Change(by_key[key].offset, None if row is None else (row,))
        return by_key

    def _row_or_none(self, row: Row) -> Row | None:
        try:
            return self._rows.read([row])[0]
        except RecordRejected:
            return None

    def _parsed(self, text: bytes) -> Any:
        """None for what is no JSON."""
        try:
            value = orjson.loads(text)
            # orjson reads a fraction as a double: digits of a decimal would be lost.
            return json.loads(text, parse_float=Decimal) if self._is_exact and b"." in text else value
        except (ValueError, RecursionError):
            return None


def _read_or_null(read: Read, value: Any) -> Any:
    return None if value is None else read(value)


def _unwrapped(value: Any) -> Any:
    """What stands in the envelope of Kafka Connect, which has the schema beside it."""
    return value["payload"] if isinstance(value, dict) and value.keys() == {"schema", "payload"} else value


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
