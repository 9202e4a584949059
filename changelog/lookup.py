"""The lookup contract: distinct keys in, the rows under each of them out.

What is joined with (a dictionary, an external table, the rows of a keyed stream) and who joins know of each other this
and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from dovetail.changelog.errors import Domain, RecordRejected

Key = Any
"""The value of a key: a scalar for one column, a tuple for several. Never NULL, nor with a NULL in it."""
Row = tuple[Any, ...]
"""The values of a looked-up row, in the order in which its columns were declared, or asked for."""
Rows = tuple[Row, ...]
"""The rows under a key; ``()``: known to be absent."""


class LookupRejected(RecordRejected):
    """The records that need ``keys`` are to be dead letters: their dictionary does not answer, under ``on_error =
    'dead_letter'``, or what it holds of them cannot be used. The other keys of the lookup may be asked for again.
    """

    domain = Domain.EXTERNAL

    def __init__(self, what: str, *, where: str = "", fix: str = "", keys: Sequence[Key] = ()) -> None:
        super().__init__(what, where=where, fix=fix)
        self.keys = keys


class Lookup(Protocol):
    """The rows under each of some distinct keys, as they stand now. Raises LookupRejected for some of them."""

    def lookup(self, keys: Sequence[Key], now_ms: int) -> list[Rows]:
        """One entry for each key, in order. Blocking: hosts call it on a thread of their own."""
        ...
