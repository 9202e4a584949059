"""Records of a feed as changes: keys that are to be forgotten, rows that may be stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dovetail.changelog.errors import RecordRejected
from dovetail.changelog.formats.decimal_text import holds_decimal
from dovetail.changelog.lookup import Key, Row, Rows
from dovetail.changelog.schema import WIRE_DELTA
from dovetail.dictionaries.definition.definition import Definition
from dovetail.dictionaries.feed.feed_definition import Feed, FeedFormat
from dovetail.dictionaries.feed.feed_keys import FeedKey, FeedKeyReader, JsonReader, as_members, unwrapped
from dovetail.dictionaries.feed.feed_values import feed_value_reader
from dovetail.dictionaries.feed.source_changes import Change, SourceChanges
from dovetail.dictionaries.sources.source_rows import SourceRowReader
from dovetail.dictionaries.sources.source_values import Read, UnfitValue


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
        readers = {
            name: feed_value_reader(column.type, is_debezium=is_debezium, is_key=name in definition.key)
            for name, column in columns.items()
        }
        self._readers = list(readers.values())
        self._rows = SourceRowReader(definition, f'dictionary "{definition.name}", its feed')
        needed = definition.columns if feed.stores else [columns[name] for name in definition.key]
        self._json = JsonReader(is_exact=any(holds_decimal(column.type) for column in needed))
        self._keys = FeedKeyReader(definition, self._json, [readers[name] for name in definition.key])
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
        return {self._keys.required(self._keys.in_text(given).key, given): None}

    def _of_json(self, key: bytes | None, value: bytes | None) -> dict[Key, Rows | None]:
        named = self._keys.in_text(key)
        if value is None:
            return {self._keys.required(named.key, key): self._deleted(named)}
        parsed = unwrapped(self._json.parse(value))
        members = {**named.members, **parsed} if isinstance(parsed, dict) else {}
        key_inside = self._keys.in_members(members)
        found = self._forgotten(value, named.key, key_inside)
        if key_inside == named.key and members.get(WIRE_DELTA, 1) == 1:
            self._store(found, named, members)
        return found

    def _of_debezium(self, key: bytes | None, value: bytes | None) -> dict[Key, Rows | None] | None:
        named = self._keys.in_text(key)
        if value is None:
            return {self._keys.required(named.key, key): self._deleted(named)}
        envelope = unwrapped(self._json.parse(value))
        if not isinstance(envelope, dict):
            return self._forgotten(value, named.key)
        op = envelope.get("op")
        if op == "t":
            return None
        if op == "m":  # somebody's message in the log of PostgreSQL, of no table
            return {}
        after = as_members(envelope.get("after"))
        old_key, new_key = self._keys.in_members(as_members(envelope.get("before"))), self._keys.in_members(after)
        found = self._forgotten(value, named.key, old_key, new_key)
        if op == "d" and old_key in (None, named.key) and named.key is not None:
            found[named.key] = self._deleted(named)
        elif op in ("c", "u", "r") and new_key == named.key:
            self._store(found, named, after)
        return found

    def _forgotten(self, value: bytes, *keys: Key | None) -> dict[Key, Rows | None]:
        found: dict[Key, Rows | None] = dict.fromkeys(key for key in keys if key is not None)
        if not found:
            self._keys.required(None, value)
        return found

    def _deleted(self, named: FeedKey) -> Rows | None:
        return () if self._stores and named.is_exact else None

    def _store(self, found: dict[Key, Rows | None], named: FeedKey, members: Mapping[str, Any]) -> None:
        """The row in the place of None, if it may be stored."""
        if not self._stores or not named.is_exact or named.key is None or not members.keys() >= set(self._names):
            return
        given = [members[name] for name in self._names]
        try:
            found[named.key] = (tuple(map(_read_or_null, self._readers, given)),)
        except UnfitValue:
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


def _read_or_null(read: Read, value: Any) -> Any:
    return None if value is None else read(value)
