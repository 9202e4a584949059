"""Filling a stream from a source, beside others who write it.

    source: v1 ──▶ asked ─────────────────▶ written: v1
    feed:              v2 ──▶ written: v2                   the older row stands last, and nothing would ever replace it

There is no write on condition in a topic. So the keys are watched from before the question on: where there is a record
of somebody else's, the source is asked again, and what it says by then is written if the stream says otherwise. A
change is in the source before its record is in the stream, so this answer is no older than that record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import structlog

from dovetail.changelog.lookup import Key, Row, Rows
from dovetail.dictionaries.cache.filling.fetcher import Fetcher
from dovetail.dictionaries.cache.flights.flight import Flight, Unanswered, all_unanswered
from dovetail.dictionaries.definition.definition import Definition
from dovetail.dictionaries.resources import WritableRows

_ROUNDS = 20

_log = structlog.get_logger(__name__)


class StreamFill:
    """Asks a source for keys, and brings what it has into the stream. Thread-safe."""

    def __init__(self, stream: WritableRows, definition: Definition, fetcher: Fetcher) -> None:
        self._stream = stream
        self._name = definition.name
        self._by = definition.key
        self._names = definition.names
        self._fetcher = fetcher

    def fill(
        self, keys: Sequence[Key], answered: Callable[[Mapping[Key, Rows]], None], now_ms: int
    ) -> Unanswered | None:
        """Tells ``answered`` what the source says of the distinct ``keys``, and the stream where that differs.

        The keys that the source does not answer. Raises ServiceUnavailable if the stream cannot be written.
        """
        failures = []
        for _ in range(_ROUNDS):
            with self._stream.watched(self._by, keys) as watch:
                found: dict[Key, Rows] = {}
                failures.append(self._fetcher.fetch(keys, partial(_take, found), now_ms))
                changed = self._changed({key: rows for key, rows in found.items() if key not in watch.count})
                self._write(changed)
                # Our own record is one of those that were counted.
                keys = [key for key in found if watch.count.get(key, 0) > (key in changed)]
            again = frozenset(keys)
            answered({key: rows for key, rows in found.items() if key not in again})
            if not keys:
                break
        else:
            _log.warning("dictionary.stream_contended", dictionary=self._name, keys=len(keys))
            answered({key: found[key] for key in keys})
        return all_unanswered([failure for failure in failures if failure is not None])

    def _changed(self, found: Mapping[Key, Rows]) -> dict[Key, Rows]:
        present = self._stream.fetch(self._by, list(found)) if found else {}
        return {key: rows for key, rows in found.items() if rows != present.get(key, ())}

    def _write(self, changed: Mapping[Key, Rows]) -> None:
        rows = [row for found in changed.values() for row in found]
        self._stream.write(rows, [self._only_key(key) for key, found in changed.items() if not found])

    def _only_key(self, key: Key) -> Row:
        parts = dict(zip(self._by, key if isinstance(key, tuple) else (key,), strict=True))
        return tuple(parts.get(name) for name in self._names)


def _take(found: dict[Key, Rows], keys: Sequence[Key], rows: Mapping[Key, Rows]) -> None:
    found.update({key: rows.get(key, ()) for key in keys})


class StreamFillLayer:
    """The lowest layer of a cache in a stream."""

    def __init__(self, fill: StreamFill) -> None:
        self._fill = fill

    def answer(self, flight: Flight, keys: Sequence[Key]) -> Unanswered | None:
        return self._fill.fill(keys, flight.answer, flight.now_ms)
