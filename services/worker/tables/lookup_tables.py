"""The tables of a flow: a ``Lookup`` for each of its accesses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

from dovetail.broker.address import BrokerAddress
from dovetail.changelog.errors import InternalError
from dovetail.changelog.lookup import Key, Lookup, LookupRejected, Rows
from dovetail.changelog.schema import Column
from dovetail.dictionaries.contracts import Layout, Source
from dovetail.dictionaries.definition.definition import Definition
from dovetail.dictionaries.feed.feed_definition import feed_of
from dovetail.dictionaries.feed.source_changes import Fed
from dovetail.dictionaries.key_reader import KeyReader
from dovetail.dictionaries.open import open_layout, open_source
from dovetail.dictionaries.outside.outside import Outside
from dovetail.dictionaries.resources import Resources
from dovetail.enrichment.dictionary_definitions import definition_of
from dovetail.enrichment.stream_rows.rows_store import StoreLookup
from dovetail.joins.dataflow.lookup import Access, LookupTarget
from dovetail.services.worker.tables.feeds import FeedReader
from dovetail.services.worker.tables.followers import Followers
from dovetail.sql.catalog import Catalog
from dovetail.sql.planner import stream_of
from dovetail.sql.relations import Stream
from dovetail.sql.syntax.statements import CreateDictionary, Index


@dataclass
class Tables:
    """What a query looks up, opened once a process. ``folder`` is where it may keep files."""

    catalog: Catalog
    brokers: BrokerAddress
    redis_url: str | None = field(repr=False)
    outside: Outside
    folder: Path
    layouts: dict[str, Layout] = field(default_factory=dict)
    key_readers: dict[str, KeyReader] = field(default_factory=dict)
    _sources: list[Source] = field(default_factory=list)
    _feeds: list[FeedReader] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.followers = Followers(self._stream, self.folder, self.brokers)
        self._resources = Resources(self.redis_url, self.outside, self.followers.rows, self.folder, self.followers.rows)

    def open(self, accesses: Sequence[Access]) -> dict[Access, Lookup]:
        """Raises what is wrong with a source, and UnknownName for a table that is gone."""
        return {access: self._lookup(access) for access in accesses}

    def catch_up(self) -> None:
        """Before a batch: a row that was committed before a record of it was read is seen."""
        self.followers.await_caught_up()

    def close(self) -> None:
        for feed in self._feeds:
            feed.close()
        for layout in self.layouts.values():
            layout.close()
        for source in self._sources:
            source.close()
        self.followers.close()

    def _lookup(self, access: Access) -> Lookup:
        match access.target:
            case LookupTarget.STREAM:
                return StoreLookup(self.followers.follower(access.table).store, access)
            case LookupTarget.EXTERNAL:
                return self._external(access)
            case LookupTarget.DICTIONARY:
                return self._dictionary(access)

    def _dictionary(self, access: Access) -> Lookup:
        definition = definition_of(self._statement(access.table))
        if access.table not in self.layouts:
            self.key_readers[access.table] = KeyReader(definition)
            self.layouts[access.table] = self._opened(definition)
        layout = self.layouts[access.table]
        return _reshaped(layout, definition.key, definition.names, access)

    def _opened(self, definition: Definition) -> Layout:
        """The layout, with all that its feed has brought until now."""
        layout, feed = open_layout(definition, self._resources), feed_of(definition)
        if feed is not None:
            assert isinstance(layout, Fed)
            self._feeds.append(FeedReader(definition, feed, layout, self.brokers))
        return layout

    def _external(self, access: Access) -> Lookup:
        columns = tuple(Column(name, kind) for name, kind in zip(access.columns, access.types, strict=True))
        definition = replace(definition_of(self._statement(access.table)), columns=columns, key=())
        source = open_source(definition, self._resources)
        self._sources.append(source)
        return SourceLookup(source, access.by)

    def _statement(self, name: str) -> CreateDictionary:
        statement = self.catalog.get(name).definition
        if not isinstance(statement, CreateDictionary):
            raise InternalError(f'"{name}" is looked up as a dictionary, and is not one')
        return statement

    def _stream(self, name: str) -> tuple[Stream, Sequence[Index]]:
        return stream_of(self.catalog, name), self.catalog.indexes(name)


@dataclass(frozen=True)
class SourceLookup:
    """A source asked every time."""

    source: Source
    by: tuple[str, ...]

    def lookup(self, keys: Sequence[Key], now_ms: int) -> list[Rows]:
        found = self.source.fetch(self.by, keys)
        return [found.get(key, ()) for key in keys]


def _reshaped(layout: Layout, key: Sequence[str], names: Sequence[str], access: Access) -> Lookup:
    """The layout itself where it is asked by its key in order and for all its columns, which is the usual case."""
    if tuple(key) == access.by and tuple(names) == access.columns:
        return layout
    if set(key) != set(access.by):
        raise InternalError(f'"{access.table}" is looked up by {access.by}, and its key is {tuple(key)}')
    return Reshaped(
        layout, _picked([access.by.index(name) for name in key]), _picked([*map(names.index, access.columns)])
    )


@dataclass(frozen=True)
class Reshaped:
    """A lookup whose key columns come in another order, or of whose rows other columns are wanted."""

    layout: Lookup
    key: Any
    row: Any

    def lookup(self, keys: Sequence[Key], now_ms: int) -> list[Rows]:
        own_keys = [self.key(key) if isinstance(key, tuple) else key for key in keys]
        row = self.row
        try:
            answers = self.layout.lookup(own_keys, now_ms)
        except LookupRejected as rejection:
            gone = set(rejection.keys)
            rejection.keys = [key for key, wanted in zip(keys, own_keys, strict=True) if wanted in gone]
            raise
        return [tuple(row(found) for found in rows) for rows in answers]


def _picked(places: Sequence[int]) -> Any:
    """Gives the values at ``places`` as a tuple."""
    if len(places) == 1:
        (place,) = places
        return lambda values: (values[place],)
    return itemgetter(*places) if places else lambda values: ()


def statistics(layouts: Mapping[str, Layout]) -> dict[str, Mapping[str, Any]]:
    return {name: layout.statistics() for name, layout in layouts.items()}
