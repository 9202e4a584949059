"""The current rows of a changelog, drawn in place on a terminal while it goes on."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType

import pyarrow as pa
import pyarrow.compute as pc
from rich import box
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from dovetail.changelog.schema import StreamSchema
from dovetail.changelog.wording import counted
from dovetail.services.cli.cells import NULL, texts, to_the_right
from dovetail.services.cli.following.current_rows import CurrentRows
from dovetail.services.cli.show import Screen, cut

_DRAWN_EVERY_S = 0.25
_RATE_OVER_S = 10.0
_AROUND = 6
"""Lines of the screen that are no rows: the top line, the frame with the header, and that of the cursor."""
_FEWEST = 1


class RowsOnScreen:
    """Enter it, add what comes, be it empty tables: they let time pass. What it has drawn last stays on the screen.

    There are as many rows as the terminal has lines for: those that have come last, in the order of their columns, so
    that a row whose key stands in front stays in its place.
    """

    def __init__(
        self,
        screen: Screen,
        schema: pa.Schema,
        stream: StreamSchema | None,
        wide: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wide = wide
        self._console = screen.console
        self._rows = CurrentRows(schema, stream, most=max(self._console.size.height, _FEWEST))
        self._clock = clock
        self._begun_s = self._drawn_s = clock()
        self._last_s: float | None = None
        self._recent: deque[tuple[float, int]] = deque()
        self._live = Live(console=self._console, auto_refresh=False, vertical_overflow="crop")

    @property
    def count(self) -> int:
        """Of changes."""
        return self._rows.changes

    def __enter__(self) -> RowsOnScreen:
        self._live.start()
        self._draw()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._draw()
        finally:
            self._live.stop()

    def add(self, rows: pa.Table) -> None:
        now_s = self._clock()
        if rows.num_rows:
            self._rows.add(rows)
            self._recent.append((now_s, rows.num_rows))
            self._last_s = now_s
        if now_s - self._drawn_s >= _DRAWN_EVERY_S:
            self._draw()

    def _draw(self) -> None:
        self._drawn_s = self._clock()
        shown = self._rows.newest(max(self._console.size.height - _AROUND, _FEWEST))
        top = Text(self._top(shown.num_rows), style="bold")
        self._live.update(Group(top, _framed(shown, self._wide)), refresh=True)

    def _top(self, shown: int) -> str:
        count = self._rows.count
        rows = counted(count, "row") if shown == count else f"{counted(count, 'row')}, the last {shown:,} are shown"
        silence = "" if self._last_s is None else f", {self._drawn_s - self._last_s:.0f} s since the last"
        return f"{rows}; {self._per_second():,.1f} changes per second{silence}"

    def _per_second(self) -> float:
        """Over the last seconds, or since it was entered; what came at once with that is no rate of its moment."""
        while self._recent and self._recent[0][0] <= self._drawn_s - _RATE_OVER_S:
            self._recent.popleft()
        over_s = max(min(self._drawn_s - self._begun_s, _RATE_OVER_S), 1.0)
        return sum(count for _, count in self._recent) / over_s


def _framed(rows: pa.Table, wide: Sequence[str]) -> Table:
    """Each row in one line, whatever is in it: a frame that were higher than the screen could not be drawn again."""
    table = Table(box=box.SQUARE, header_style="bold")
    for column in rows.schema:
        flush = to_the_right(column.type)
        table.add_column(Text(column.name), justify="right" if flush else "left", no_wrap=True, overflow="ellipsis")
    for values in texts(cut(in_order(rows), wide)):
        table.add_row(*(Text(" ".join(value.split("\n")), style="dim" if value == NULL else "") for value in values))
    return table


def in_order(rows: pa.Table) -> pa.Table:
    """By the columns from left to right, as far as their types have an order."""
    by = [field.name for field in rows.schema if _has_order(field.type)]
    if not by:
        return rows
    return rows.take(pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in by]))


def _has_order(kind: pa.DataType) -> bool:
    return not (pa.types.is_nested(kind) or pa.types.is_null(kind) or pa.types.is_dictionary(kind))
