"""What a process lends to the dictionaries in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from dovetail.changelog.lookup import Key, Row, Rows
from dovetail.dictionaries.outside.outside import Outside


class StreamRows(Protocol):
    """The current rows of a keyed stream, to be read. Thread-safe."""

    def fetch(self, by: Sequence[str], keys: Sequence[Key]) -> dict[Key, Rows]:
        """The rows whose columns ``by`` equal one of the distinct ``keys``; a key without rows is left out."""
        ...

    def load(self) -> Iterator[list[Row]]:
        """All rows, in pieces."""
        ...


class Watch(Protocol):
    """What is written into a stream under some keys from a moment on."""

    @property
    def count(self) -> Mapping[Key, int]:
        """How many records of each key, deletions among them, were read since; a key without any is left out."""
        ...


class WritableRows(StreamRows, Protocol):
    """Rows that can be written as well, beside others who write."""

    def watched(self, by: Sequence[str], keys: Sequence[Key]) -> AbstractContextManager[Watch]:
        """Counts, within the block, the records whose columns ``by`` equal one of ``keys``."""
        ...

    def write(self, rows: Sequence[Row], deleted: Sequence[Row] = ()) -> None:
        """Put rows in the places of those of their keys, and delete others, of which the key counts.

        Returns once all that was in the stream by then is read here. Raises ServiceUnavailable.
        """
        ...


@dataclass(frozen=True)
class Resources:
    """
    redis_url    the cold tier of caches; None: the process has none
    outside      the files and hosts that statements may name
    stream_rows  the current rows of the keyed stream of a name; None: the process follows no stream
    local_dir    where a cache without Redis keeps its keys; None: in memory alone
    writable     the same, where the process keeps caches in streams
    """

    redis_url: str | None = field(repr=False)
    outside: Outside
    stream_rows: Callable[[str], StreamRows] | None = None
    local_dir: Path | None = None
    writable: Callable[[str], WritableRows] | None = None
