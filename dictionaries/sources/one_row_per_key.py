"""One row per key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any

from dovetail.changelog.lookup import Key, Row, Rows
from dovetail.dictionaries.contracts import Source
from dovetail.dictionaries.definition.definition import Definition


class OneRowPerKey:
    """A source of which a dictionary takes one row per key: where there are more, the last one that it gave.

    Without this, dict_get would give a left row twice. An external table is asked without it, and joins with all rows.
    """

    def __init__(self, definition: Definition, source: Source) -> None:
        self._source: Any = source
        self._key_of = itemgetter(*map(definition.names.index, definition.key))

    def fetch(self, by: Sequence[str], keys: Sequence[Key]) -> dict[Key, Rows]:
        return {key: rows[-1:] for key, rows in self._source.fetch(by, keys).items()}

    def load(self) -> Iterator[list[Row]]:
        yield self._last(self._source.load())

    def load_since(self, since_ms: int) -> Iterator[list[Row]]:
        """Only of a source with an ``update_field``."""
        yield self._last(self._source.load_since(since_ms))

    def close(self) -> None:
        self._source.close()

    def _last(self, pieces: Iterable[list[Row]]) -> list[Row]:
        return list({self._key_of(row): row for piece in pieces for row in piece}.values())
