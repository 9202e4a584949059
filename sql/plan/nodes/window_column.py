"""A column that is the start or the end of the windows that rows are in."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from dovetail.sql.plan.time_text import length_text


@dataclass(frozen=True)
class WindowColumn:
    """``name``: as the node of the windows calls it; ``is_start``: else it is the end."""

    size_ms: int
    slide_ms: int
    name: str
    is_start: bool

    @property
    def extent(self) -> str:
        return extent(self.size_ms, self.slide_ms)


def extent(size_ms: int, slide_ms: int) -> str:
    """``60 s``, of HOP ``60 s every 10 s``."""
    size, slide = (length_text(ms, pa.timestamp("ms")) for ms in (size_ms, slide_ms))
    return size if size_ms == slide_ms else f"{size} every {slide}"
