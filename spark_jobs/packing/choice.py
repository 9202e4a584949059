"""Which views are packed, and which are not: those that have been small and quiet for long enough.

A view is **quiet** while it runs, reads few rows a second, and has a small state. The clock is handed in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

FEWEST, MOST = 4, 32
"""Members of a pack when it is made."""
_SPAN_S = 10.0
"""Over which a rate is measured."""


@dataclass(frozen=True)
class PackLimits:
    """after_s      how long views are quiet before they are packed; 0: no view ever is
    state_bytes  the largest state of a view in a pack
    rows_per_s   the most rows that a view in a pack reads in a second
    """

    after_s: float = 0.0
    state_bytes: int = 64 << 20
    rows_per_s: float = 1_000.0


@dataclass
class _Watched:
    since_s: float
    span_s: float
    rows: int
    loud: str = ""


@dataclass
class Quiet:
    """Since when each view has been quiet, by id."""

    limits: PackLimits
    _views: dict[int, _Watched] = field(default_factory=dict)

    def note(self, view: int, rows: int, state_bytes: int, now_s: float) -> None:
        """It runs, has read so many rows in all, and holds so many bytes."""
        one = self._views.setdefault(view, _Watched(now_s, now_s, rows))
        if rows < one.rows:
            self._views[view] = one = _Watched(now_s, now_s, rows)
        if (length_s := now_s - one.span_s) >= min(_SPAN_S, max(self.limits.after_s, 1.0)):
            rate = (rows - one.rows) / length_s
            one.loud = f"it reads {rate:,.0f} rows a second" if rate > self.limits.rows_per_s else ""
            one.span_s, one.rows = now_s, rows
        if state_bytes > self.limits.state_bytes:
            one.loud = f"its state has {state_bytes:,} bytes"
        if one.loud:
            one.since_s = now_s

    def forget(self, view: int) -> None:
        """It does not run, or is to begin anew."""
        self._views.pop(view, None)

    def loud(self, view: int) -> str:
        """Why it is none for a pack; '' where it is, or nothing is known."""
        return self._views[view].loud if view in self._views else ""

    def long_enough(self, view: int, now_s: float, times: int = 1) -> bool:
        known = self._views.get(view)
        return known is not None and not known.loud and now_s - known.since_s >= times * self.limits.after_s


@dataclass(frozen=True)
class Candidate:
    """A view that might be packed; ``topic_ids`` of its inputs, by name."""

    view: int
    topic_ids: Mapping[str, str]


def packs(candidates: Sequence[Candidate]) -> list[tuple[int, ...]]:
    """Those that are packed together: views that mean the same topics by the same names."""
    groups: list[tuple[dict[str, str], list[int]]] = []
    for one in candidates:
        for known, views in groups:
            if len(views) < MOST and all(known.get(name, found) == found for name, found in one.topic_ids.items()):
                known.update(one.topic_ids)
                views.append(one.view)
                break
        else:
            groups.append((dict(one.topic_ids), [one.view]))
    return [tuple(views) for _, views in groups if len(views) >= FEWEST]
