"""The sources of dictionaries, asked by the session itself: do they answer, what do they hold.

Clients are imported when they are needed: most statements have no use for one.
"""

# ruff: noqa: PLC0415 - see above

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from dovetail.changelog.lookup import Key, Row, Rows
from dovetail.changelog.schema import Column
from dovetail.dictionaries.definition.definition import Definition
from dovetail.dictionaries.open import open_described, open_source
from dovetail.dictionaries.resources import Resources
from dovetail.enrichment.dictionary_definitions import definition_of
from dovetail.services.outside import outside_of
from dovetail.services.session.context import Context
from dovetail.services.session.dictionaries.passwords import expect_password_in_workers
from dovetail.sql.planner import stream_of
from dovetail.sql.relations import Stream
from dovetail.sql.syntax.statements import CreateDictionary

SHARED_LAYOUTS = ("hybrid_hash_cache", "cache")
"""Layouts whose rows live on where no worker runs."""
_REDIS_ANSWER_MS = 2_000.0
_OF_STREAMS = ("timeplus", "table")
"""Sources that are streams of Dovetail."""


def resources(context: Context) -> Resources:
    """What this process has for dictionaries."""
    url = context.settings.redis_url
    return Resources(
        _checked(url.get_secret_value()) if url is not None else None,
        outside_of(context.settings),
        lambda name: StreamContent(context, name),
    )


def _checked(redis_url: str) -> str:
    from dovetail.dictionaries.cache.cold.redis_client import check_url

    return check_url(redis_url)


def used_streams(definition: Definition) -> list[str]:
    """The streams that a dictionary reads or keeps its rows in."""
    found = []
    if definition.source.kind in _OF_STREAMS:
        given = definition.source.parameters
        found.append(str(next(given[name] for name in ("name", "stream", "table") if name in given)))
    if definition.layout.kind == "mutable_cache":
        found.append(str(definition.layout.parameters["stream"]))
    return found


@dataclass(frozen=True)
class StreamContent:
    """The current rows of a stream, read from its topic whenever they are asked for: for a look now and then."""

    context: Context
    name: str

    def fetch(self, by: Sequence[str], keys: Sequence[Key]) -> dict[Key, Rows]:
        places = [self._names.index(name) for name in by]
        found: dict[Key, Rows] = dict.fromkeys(keys, ())
        for row in (row for piece in self.load() for row in piece):
            key = row[places[0]] if len(places) == 1 else tuple(row[place] for place in places)
            if key in found:
                found[key] = (*found[key], row)
        return {key: rows for key, rows in found.items() if rows}

    def load(self) -> Iterator[list[Row]]:
        topic = self._stream.topic
        ends = self.context.topics.ends(topic)
        content = self.context.read(self._stream.schema, topic, ends, columns=self._names).rows.select(self._names)
        yield [tuple(row.values()) for row in content.to_pylist()]

    @cached_property
    def _stream(self) -> Stream:
        return stream_of(self.context.catalog, self.name)

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self._stream.schema.columns)


def check_source(context: Context, definition: Definition) -> None:
    """Raises what is wrong with the source: it does not answer, refuses the user, lacks the table or a column; or with
    a worker, which lacks the password.

    Of a cache, also why Redis refuses it; one that is away is gone without.
    """
    expect_password_in_workers(context, definition)
    shared = resources(context)
    with closing(open_source(definition, shared)) as source:
        source.check()
    if definition.layout.kind in SHARED_LAYOUTS and shared.redis_url is not None:
        from dovetail.dictionaries.cache.cold.redis_client import check_redis

        check_redis(shared.redis_url, f'dictionary "{definition.name}", cold tier', _REDIS_ANSWER_MS)


def columns_of(context: Context, definition: Definition) -> list[Column]:
    """The columns of the table itself. Raises Unsupported for a source that does not know them."""
    with closing(open_described(definition, resources(context))) as source:
        return source.columns()


def dictionary_rows(context: Context, statement: CreateDictionary) -> pa.Table:
    """All rows of the source, as the dictionary's columns; what a cache holds of them does not matter."""
    definition = definition_of(statement)
    with closing(open_source(definition, resources(context))) as source:
        rows = [row for piece in source.load() for row in piece]
    columns = list(zip(*rows, strict=True)) or [()] * len(definition.columns)
    arrays = [pa.array(values, column.type) for values, column in zip(columns, definition.columns, strict=True)]
    return pa.table(arrays, names=[column.name for column in definition.columns])
