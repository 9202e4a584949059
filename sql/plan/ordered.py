"""Joins that take one right row of many: the nearest in time (ASOF), the last inserted, the version valid at a time.

What a plan says of them, and how EXPLAIN says it, their state bound included.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from joins.dataflow.ports import JoinKind, Watermark
from joins.operators.one_shot import Alignment
from sql.plan.time_text import length_text

_MS = pa.timestamp("ms")


class Method(StrEnum):
    """Which of the right rows under its key a left row is joined with."""

    ALL = "all"
    ASOF = "ASOF"
    LATEST = "LATEST"
    TEMPORAL = "FOR SYSTEM_TIME AS OF"


@dataclass(frozen=True)
class Asof:
    """The inequality of an ASOF join: the nearest right row for which ``left <comparison> right`` holds.

    keep_versions  one-shot: right rows kept of each join key; 0: the updating join, which keeps all
    ties           columns by which the smallest of equal right rows is taken; empty: the last arrived
    tolerance      greatest distance, in the unit of the columns
    """

    left: str
    comparison: str
    right: str
    keep_versions: int
    ties: tuple[str, ...] = ()
    tolerance: int | None = None

    @property
    def looks_back(self) -> bool:
        """Whether the right row is not after the left one."""
        return self.comparison in (">=", ">")

    def parts(self, kind: pa.DataType) -> list[str]:
        """What EXPLAIN says; ``kind`` is the type of both columns."""
        said = [f"{self.left} {self.comparison} {self.right}"]
        if self.tolerance is not None:
            said.append(f"at most {length_text(self.tolerance, kind)} apart")
        if self.keep_versions:
            return [*said, f"keep_versions={self.keep_versions}"]
        return [*said, f"of equals the least {','.join(self.ties)}" if self.ties else "of equals the last arrived"]


@dataclass(frozen=True)
class Version:
    """FOR SYSTEM_TIME AS OF ``left``: the version whose time ``right`` is the last not after it.

    deleted   a column of the right side that is true where the record is a delete; empty: there are none
    """

    left: str
    right: str
    deleted: str = ""

    def text(self) -> str:
        return f"the version of {self.left} by {self.right}" + (", deletes ignored" if not self.deleted else "")


def alignment_text(alignment: Alignment, right: Watermark | None) -> str:
    """How long a left row waits."""
    text = f"waits until the right side is {length_text(alignment.lag_ms, _MS)} past {alignment.left_time}"
    idle_ms = None if right is None else right.idle_ms
    return text if idle_ms is None else f"{text}, or silent for {length_text(idle_ms, _MS)}"


@dataclass(frozen=True)
class Sides:
    """What the state of a join depends on: whether rows of a side can be taken back, and its watermark, if any."""

    left_updates: bool
    right_updates: bool
    left: Watermark | None
    right: Watermark | None

    def open(self, left: str, right: str) -> str:
        """Why the watermarks do not tell which rows can change no output any more; '' where they do. ``left`` and
        ``right`` are the times that the join goes by.
        """
        if self.left_updates or self.right_updates:
            return "rows can be taken back"
        for time, watermark in ((left, self.left), (right, self.right)):
            if watermark is None or watermark.column != time:
                return f"there is no watermark over {time}"
        return ""


def asof_state(asof: Asof, kind: pa.DataType, sides: Sides) -> str:
    """``kind`` is the type of the columns of the inequality."""
    if asof.keep_versions:
        return f"the last {asof.keep_versions} right rows of each join key, for ever"
    if reason := sides.open(asof.left, asof.right):
        return f"left {_current(sides.left_updates, reason)}, right {_current(sides.right_updates, reason)}"
    far = None if asof.tolerance is None else length_text(asof.tolerance, kind)
    if asof.looks_back:
        newest = "of those before both watermarks the newest of each join key"
        reach = newest if far is None else f"{newest}, if it is no more than {far} before them"
        return f"left rows until the watermark of {asof.right} has passed them, right rows: {reach}, and all after it"
    alone = "those without one for ever" if far is None else f"those without one until {asof.right} is {far} past them"
    return f"left rows until both watermarks have passed their match, {alone}, right rows until both have passed them"


def latest_state(kind: JoinKind, sides: Sides) -> str:
    if kind == JoinKind.FULL:
        return f"{_last('left', sides.left_updates)}, {_last('right', sides.right_updates)}"
    return _last("right", sides.right_updates)


def temporal_state(sides: Sides) -> str:
    answered = ", the answers of those that stand" if sides.left_updates else ""
    return (
        f"left rows until both watermarks have passed them{answered}, "
        "right versions from the last of each key behind the watermarks on"
    )


def current(updates: bool) -> str:
    """What is kept of a side of which nothing is ever left out."""
    return "the current rows" if updates else "all rows, unbounded"


def _current(updates: bool, reason: str) -> str:
    return current(updates) if updates else f"{current(updates)}: {reason}"


def _last(side: str, updates: bool) -> str:
    return f"{side} the current rows" if updates else f"the last {side} row of each join key, for ever"
