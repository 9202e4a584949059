"""Windows of time of one shape: how long they are, and where they begin."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from dovetail.changelog.wording import counted
from dovetail.sql.plan.time_text import length_text

_LONGEST_MONTH_MS = 31 * 86_400_000


@dataclass(frozen=True)
class WindowShape:
    """Windows of ``size_ms`` that begin every ``slide_ms``, ``offset_ms`` after a multiple of it since the epoch; they
    hold their start and not their end.

        slide 5, size 10, offset 2:      -3    2    7   12   17
                                               [---------)          2 .. 12
                                                    [---------)     7 .. 17

    months  (size, slide) of windows of the calendar, whose lengths differ: they begin with a month, those of a quarter
            in January, April, July and October. ``size_ms`` and ``slide_ms`` are what they are at most then
    """

    size_ms: int
    slide_ms: int
    offset_ms: int = 0
    months: tuple[int, int] | None = None

    @staticmethod
    def of_months(size: int, slide: int) -> WindowShape:
        return WindowShape(size * _LONGEST_MONTH_MS, slide * _LONGEST_MONTH_MS, months=(size, slide))

    @property
    def tumbles(self) -> bool:
        """Whether a row is in one window."""
        return self.size_ms == self.slide_ms

    def __str__(self) -> str:
        """``60 s``, of HOP ``60 s every 10 s``; ``60 s, offset 5 s``; ``3 months``."""
        size, slide, offset = (
            length_text(ms, pa.timestamp("ms")) for ms in (self.size_ms, self.slide_ms, self.offset_ms)
        )
        if self.months is not None:
            size, slide = (counted(number, "month") for number in self.months)
        every = "" if self.tumbles else f" every {slide}"
        return f"{size}{every}, offset {offset}" if self.offset_ms else f"{size}{every}"
