"""What the process of a lookup query keeps: cached rows of dictionaries, how its lookups were answered, its memos."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dovetail.dictionaries.contracts import Layout
from dovetail.enrichment.memo.memo_store import runs_in

LOOKED_AT_S = 5.0
"""So old may the document be: the rows of memos are counted one by one."""


class CacheOccupancy:
    """``document``: ``tables``, by name rows, bytes, and keys that were asked for, answered by the memory of
    this process and by the cold tier, since its start; ``memo``: rows and bytes.

    layouts   of the dictionaries that are open, by name
    folder    holds the memos
    clock     in seconds
    """

    def __init__(self, layouts: Mapping[str, Layout], folder: Path, clock: Callable[[], float]) -> None:
        self._layouts, self._folder, self._clock = layouts, folder, clock
        self._next_s = clock()
        self._document: dict[str, Any] = {}

    def document(self) -> Mapping[str, Any]:
        if (now_s := self._clock()) >= self._next_s:
            self._next_s = now_s + LOOKED_AT_S
            self._document = {"tables": {name: _of_table(layout) for name, layout in [*self._layouts.items()]}}
            rows, size = memos_in(self._folder)
            if size:
                self._document["memo"] = [rows, size]
        return self._document


def memos_in(folder: Path) -> tuple[int, int]:
    """The different rows, and the bytes, of the memos of a folder."""
    memos = [path for path in folder.glob("memo-*.db") if path.exists()]
    return sum(map(runs_in, memos)), sum(path.stat().st_size for path in memos)


def _of_table(layout: Layout) -> list[int]:
    figures = layout.statistics()
    names = ("element_count", "bytes_allocated", "query_count", "hot_hits", "cold_hits")
    return [int(figures[name]) for name in names]
