"""Rows as they come, in one output that changes: the last of them, and how many there have been."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Protocol

import pyarrow as pa

from dovetail.changelog.wording import counted
from dovetail.notebook.tables import Bundle, table_of

_DRAWN_EVERY_S = 0.25


class LivePicture(Protocol):
    """What IPython gives for something that is shown, and may be replaced."""

    def update(self, obj: Bundle, *, raw: bool) -> None: ...


class LiveTable:
    """Holds no more than ``most`` rows, however many come; the newest are last.

    show  puts the first picture into the notebook
    """

    def __init__(self, schema: pa.Schema, most: int, show: Callable[[Bundle], LivePicture]) -> None:
        self._kept = schema.empty_table()
        self._most = most
        self._count = 0
        self._status = "running; interrupt the kernel to end it"
        self._drawn_s = time.monotonic()
        self._is_old = False
        self._output = show(self._picture())

    def follow(self, batches: Iterable[pa.Table]) -> None:
        """Until they end, or the kernel is interrupted, which ends the table and not the notebook."""
        try:
            for rows in batches:
                self._add(rows)
            self._status = "ended"
        except KeyboardInterrupt:
            self._status = "interrupted"
        except BaseException:
            self._status = "failed"
            raise
        finally:
            self._draw()

    def _add(self, rows: pa.Table) -> None:
        # Empty ones come every now and then: what came in haste before a silence is drawn by them.
        if rows.num_rows:
            self._count += rows.num_rows
            last = pa.concat_tables([self._kept, rows.slice(max(0, rows.num_rows - self._most))])
            # Copied: a slice would hold the batches that it is of.
            self._kept = last.take(pa.array(range(max(0, last.num_rows - self._most), last.num_rows), pa.int64()))
            self._is_old = True
        if self._is_old and time.monotonic() - self._drawn_s >= _DRAWN_EVERY_S:
            self._draw()

    def _draw(self) -> None:
        self._output.update(self._picture(), raw=True)
        self._drawn_s, self._is_old = time.monotonic(), False

    def _picture(self) -> Bundle:
        shown = f", the last {self._kept.num_rows:,} are shown" if self._kept.num_rows < self._count else ""
        return table_of(self._kept, f"{counted(self._count, 'change')}{shown}; {self._status}")
