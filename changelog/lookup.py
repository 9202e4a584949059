"""The lookup contract: distinct keys in, the rows under each of them out.

What is joined with (a dictionary, an external table, the rows of a keyed stream) and who joins know of each other this
and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

Key = Any
"""The value of a key: a scalar for one column, a tuple for several. Never NULL, nor with a NULL in it."""
Row = tuple[Any, ...]
"""The values of a looked-up row, in the order in which its columns were declared, or asked for."""
Rows = tuple[Row, ...]
"""The rows under a key; ``()``: known to be absent."""


class Lookup(Protocol):
    """The rows under each of some distinct keys, as they stand now."""

    def lookup(self, keys: Sequence[Key], now_ms: int) -> list[Rows]:
        """One entry for each key, in order. Blocking: hosts call it on a thread of their own."""
        ...
