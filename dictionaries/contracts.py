"""The two faces inside this layer: a source that fetches, a layout that answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from dovetail.changelog.lookup import Key, Lookup, Row, Rows

KEYS_PER_STATEMENT = 1000
"""So many keys a source is asked for at once. Measured with MariaDB: fewer cost more per key, and so do many more."""


class Source(Protocol):
    """Another database. Thread-safe; every call blocks. Raises ``changelog.errors.ServiceUnavailable`` and its kin."""

    def fetch(self, by: Sequence[str], keys: Sequence[Key]) -> dict[Key, Rows]:
        """The rows whose columns ``by`` equal one of the distinct ``keys``; a key without rows is left out.

        The keys of the answer are those that were asked, whatever the database's collation made of them.
        """
        ...

    def load(self) -> Iterator[list[Row]]:
        """All rows, in pieces."""
        ...

    def close(self) -> None: ...


class Layout(Lookup, Protocol):
    """How the rows of a dictionary are kept, and looked up."""

    def invalidate(self, keys: Sequence[Key] | None = None, prefix: str | None = None, token: str = "") -> int:
        """Forget some keys, those of which the text begins with ``prefix``, or all; how many were held.

        ``token`` names the refresh: the same one again changes nothing more, whoever executes it.
        """
        ...

    def misses(self, keys: Sequence[Key], now_ms: int) -> Mapping[Key, tuple[int, int]]:
        """Of which of some keys it is cached that the source does not have them: since when, and until when, in ms. The
        source is not asked, and nothing lives longer for it.
        """
        ...

    def statistics(self) -> Mapping[str, Any]:
        """The figures of ``system.dictionaries``."""
        ...

    def close(self) -> None: ...
