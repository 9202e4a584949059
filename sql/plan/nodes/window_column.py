"""A column that is the start or the end of the windows that rows are in."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.sql.plan.window_shape import WindowShape


@dataclass(frozen=True)
class WindowColumn:
    """``name``: as the node of the windows calls it; ``is_start``: else it is the end."""

    windows: WindowShape
    name: str
    is_start: bool
