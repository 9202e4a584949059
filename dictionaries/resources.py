"""What a process lends to the dictionaries in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from changelog.lookup import Key, Row, Rows


class StreamRows(Protocol):
    """The current rows of a keyed stream. Thread-safe."""

    def fetch(self, by: Sequence[str], keys: Sequence[Key]) -> dict[Key, Rows]:
        """The rows whose columns ``by`` equal one of the distinct ``keys``; a key without rows is left out."""
        ...

    def load(self) -> Iterator[list[Row]]:
        """All rows, in pieces."""
        ...

    def store(self, rows: Sequence[Row]) -> None:
        """Write rows into the stream, each in the place of the one of its key."""
        ...


@dataclass(frozen=True)
class Resources:
    """
    redis_url    the cold tier of caches; None: the process has none
    data_dir     where relative paths of files begin
    stream_rows  the current rows of the keyed stream of a name; None: the process follows no stream
    """

    redis_url: str | None
    data_dir: Path
    stream_rows: Callable[[str], StreamRows] | None = None
