"""Which views are packed, and which are not: those that have been small and quiet for long enough.

A view is **quiet** while it runs, reads few rows a second, and has a small state. The clock is handed in.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

FEWEST, MOST = 4, 32
"""Members of a pack: fewer make none, and more are in none."""
OF_ALL = 4
"""So many times what one view may read or hold, all members of a pack may together: one core runs them, and who joins
has all of their state written anew.
"""
_SPAN_S = 10.0
"""Over which a rate is measured."""
_SPANS = 3
"""For so many spans in a row a member reads too much before it leaves: what has come while nobody read, as during an
outage, is read in one go, and is no reason to.
"""


@dataclass(frozen=True)
class PackLimits:
    """after_s      how long views are quiet before they are packed; 0: no view ever is
    state_bytes  the largest state of a view in a pack
    rows_per_s   the most rows that a view in a pack reads in a second
    """

    after_s: float = 0.0
    state_bytes: int = 64 << 20
    rows_per_s: float = 1_000.0

    @property
    def span_s(self) -> float:
        return min(_SPAN_S, max(self.after_s, 1.0))


LONGEST_BATCH_S = 10.0
"""Who is at work on a batch for longer is not quiet, though nobody knows yet what it has read."""


@dataclass
class _Watched:
    """rates    of the last spans, in rows a second
    moved_s  when it had no batch under way, or another one than before
    """

    since_s: float
    span_s: float
    rows: int
    moved_s: float
    batch: int
    state_bytes: int = 0
    rates: deque[float] = field(default_factory=lambda: deque(maxlen=_SPANS))

    @property
    def rate(self) -> float:
        return self.rates[-1] if self.rates else 0.0

    @property
    def steady_rate(self) -> float:
        """What it reads all the time."""
        return min(self.rates) if len(self.rates) == _SPANS else 0.0


@dataclass
class LoadTracker:
    """Since when each view has been quiet, by id."""

    limits: PackLimits
    _views: dict[int, _Watched] = field(default_factory=dict)

    def note(
        self, view: int, rows: int, state_bytes: int, now_s: float, *, batch: int = -1, at_rest: bool = True
    ) -> None:
        """It runs, has read so many rows in all, and holds so many bytes.

        batch    the last that it has committed
        at_rest  whether none is under way
        """
        one = self._views.setdefault(view, _Watched(now_s, now_s, rows, now_s, batch))
        if rows < one.rows:
            self._views[view] = one = _Watched(now_s, now_s, rows, now_s, batch)
        one.state_bytes = state_bytes
        if at_rest or batch != one.batch:
            one.moved_s, one.batch = now_s, batch
        elif now_s - one.moved_s > LONGEST_BATCH_S:
            one.since_s = now_s
        if (length_s := now_s - one.span_s) >= self.limits.span_s:
            one.rates.append((rows - one.rows) / length_s)
            one.span_s, one.rows = now_s, rows
        if self.overloaded(view):
            one.since_s = now_s

    def forget(self, view: int) -> None:
        """It does not run, or is to begin anew."""
        self._views.pop(view, None)

    def overloaded(self, view: int) -> str:
        """Why it is none for a pack; '' where it is, or nothing is known."""
        one = self._views.get(view)
        return "" if one is None else self._too_much(one.rate, one.state_bytes)

    def leaves(self, members: Iterable[int]) -> dict[int, str]:
        """Which members of a pack are none for it any more, and why: each overloaded for long; or the one that does
        most, where all together do too much.
        """
        known = {view: self._views[view] for view in members if view in self._views}
        found = {view: self._too_much(one.steady_rate, one.state_bytes) for view, one in known.items()}
        if overloaded := {view: why for view, why in found.items() if why}:
            return overloaded
        if sum(one.steady_rate for one in known.values()) > OF_ALL * self.limits.rows_per_s:
            most = max(known, key=lambda view: known[view].steady_rate)
            return {most: f"all together read too much, and it most: {known[most].steady_rate:,.0f} rows a second"}
        if sum(one.state_bytes for one in known.values()) > OF_ALL * self.limits.state_bytes:
            most = max(known, key=lambda view: known[view].state_bytes)
            return {most: f"all together hold too much, and it most: {known[most].state_bytes:,} bytes"}
        return {}

    def _too_much(self, rate: float, state_bytes: int) -> str:
        if state_bytes > self.limits.state_bytes:
            return f"its state has {state_bytes:,} bytes"
        return f"it reads {rate:,.0f} rows a second" if rate > self.limits.rows_per_s else ""

    def long_enough(self, view: int, now_s: float, times: int = 1) -> bool:
        known = self._views.get(view)
        return known is not None and not self.overloaded(view) and now_s - known.since_s >= times * self.limits.after_s

    def load(self, views: Iterable[int]) -> Load:
        """What they do all together."""
        known = [self._views[view] for view in views if view in self._views]
        return Load(sum(one.rate for one in known), sum(one.state_bytes for one in known))


@dataclass(frozen=True)
class Load:
    rows_per_s: float = 0.0
    state_bytes: int = 0

    def __add__(self, other: Load) -> Load:
        return Load(self.rows_per_s + other.rows_per_s, self.state_bytes + other.state_bytes)


@dataclass(frozen=True)
class Candidate:
    """A view that might be packed; ``topic_ids`` of its inputs, by name."""

    view: int
    topic_ids: Mapping[str, str]
    load: Load = Load()


@dataclass(frozen=True)
class OpenPack:
    """One that others may join; ``topic_ids`` of all that its members read."""

    location: str
    members: int
    topic_ids: Mapping[str, str]
    load: Load = Load()


@dataclass(frozen=True)
class Joining:
    """Views that are packed together; ``into``: the pack that is there already, or None."""

    views: tuple[int, ...]
    into: OpenPack | None = None


@dataclass
class _Group:
    topic_ids: dict[str, str]
    members: int
    load: Load
    into: OpenPack | None = None
    views: list[int] = field(default_factory=list)

    def takes(self, one: Candidate, limits: PackLimits) -> bool:
        load = self.load + one.load
        return (
            self.members < MOST
            and load.rows_per_s <= OF_ALL * limits.rows_per_s
            and load.state_bytes <= OF_ALL * limits.state_bytes
            and all(self.topic_ids.get(name, found) == found for name, found in one.topic_ids.items())
        )

    def take(self, one: Candidate) -> None:
        self.views.append(one.view)
        self.members += 1
        self.topic_ids |= one.topic_ids
        self.load += one.load


def joinings(candidates: Sequence[Candidate], there: Sequence[OpenPack], limits: PackLimits) -> list[Joining]:
    """Which are packed together: views that mean the same topics by the same names, in packs that are there while they
    have room, else in new ones.
    """
    groups = [_Group(dict(pack.topic_ids), pack.members, pack.load, pack) for pack in there]
    for one in candidates:
        group = next((known for known in groups if known.takes(one, limits)), None)
        if group is None:
            groups.append(group := _Group({}, 0, Load()))
        group.take(one)
    return [
        Joining(tuple(group.views), group.into)
        for group in groups
        if group.views and (group.into is not None or len(group.views) >= FEWEST)
    ]
