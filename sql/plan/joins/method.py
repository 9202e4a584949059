"""What every way of joining two streams tells of itself to the passes over a plan: rules, EXPLAIN, the compiler."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import pyarrow as pa

from dovetail.joins.dataflow.ports import JoinKind, Pad, Watermark
from dovetail.sql.plan.canonical_values import Form

Key = tuple[str, ...]
"""Names of columns that no two rows share."""


@dataclass(frozen=True)
class JoinInput:
    """What is known of one side of a join: its columns, whether its rows can be taken back, its watermark, if any,
    and whether the rows that stand become ever more.
    """

    schema: pa.Schema
    updates: bool
    watermark: Watermark | None
    grows: bool

    def type_of(self, column: str) -> pa.DataType:
        return self.schema.field(column).type


@dataclass(frozen=True)
class JoinInputs:
    left: JoinInput
    right: JoinInput


@dataclass(frozen=True)
class KeyedSides:
    """What the keys of a join's output follow from: ``pairs`` are its join keys, ``left`` and ``right`` the unique keys
    of its sides.
    """

    kind: JoinKind
    pad: Pad
    pairs: tuple[tuple[str, str], ...]
    left: list[Key]
    right: list[Key]


@dataclass(frozen=True)
class JoinMethod(ABC):
    """The defaults: a join that answers the rows of its left side, and takes them back with these.

    operator         its name in EXPLAIN
    called           its name in errors, where it takes one row of many
    answers_once     a left row is answered once, from what is there when it comes
    takes_one        of many right rows one is taken; a condition on it is tested when it has been chosen, so none moves
                     below the join
    null_safe        its keys may be compared by IS NOT DISTINCT FROM
    goes_by_arrival  the changes of its inputs tell when their records came
    """

    operator: ClassVar[str]
    called: ClassVar[str] = ""
    answers_once: ClassVar[bool] = False
    takes_one: ClassVar[bool] = False
    null_safe: ClassVar[bool] = True
    goes_by_arrival: ClassVar[bool] = False

    @property
    @abstractmethod
    def canonical(self) -> Form:
        """What its state and its output depend on, in the words of checkpoints, whatever the class is called."""

    @property
    def everywhere(self) -> bool:
        """Whether the rows of the right side, which are few, are in every bucket: then no equality is needed, and the
        left rows are cut by what finds them again.
        """
        return False

    @property
    def columns_read(self) -> frozenset[str]:
        """The columns of both sides that it reads beside its keys and its residual condition."""
        return frozenset()

    def updates(self, kind: JoinKind, left: bool, right: bool) -> bool:
        """Whether output rows can be taken back; ``left``, ``right``: whether those of the sides can."""
        return left

    def empties(self, kind: JoinKind) -> bool:
        """Whether each row that leaves is taken back in time."""
        return False

    def unique_keys(self, sides: KeyedSides) -> list[Key]:
        """Sets of columns no two output rows share, the shortest first."""
        return sides.left if sides.kind.is_existence else []

    # -- event time --

    @property
    def passing_times(self) -> tuple[str, ...]:
        """The columns that output rows are in the order of, as far as the watermarks of the inputs tell it."""
        return ()

    def with_clock(self, column: str) -> Self:
        """With ``column``, one of ``passing_times``, as the time of the watermark that its output has."""
        return self

    def clock_shifts(self, inputs: JoinInputs) -> tuple[int, int] | None:
        """By how much the rows that are yet to leave may be behind the watermarks of both sides, in the time of the
        output's watermark (ms, or the number itself, 0 or below); None where nothing tells.
        """
        return None

    def watermark(self, inputs: JoinInputs) -> Watermark | None:
        """That of the rows that leave."""
        return None

    # -- EXPLAIN --

    def conditions(self, inputs: JoinInputs) -> list[str]:
        """What rows must fulfil beside the equalities, and when they are answered."""
        return []

    def emission(self) -> list[str]:
        """When rows leave, and what is known of those that follow."""
        return []

    def keeps_both(self, inputs: JoinInputs) -> bool:
        """Whether rows of either side that are not taken back are kept forever."""
        return False

    def state(self, kind: JoinKind, inputs: JoinInputs) -> str:
        """What is kept, and until when."""
        return f"right {current(inputs.right)}"


def current(side: JoinInput) -> str:
    """What is kept of a side of which nothing is ever left out."""
    if not side.updates:
        return "all rows, unbounded"
    return "the current rows, unbounded: append streams are among them" if side.grows else "the current rows"


def counted(side: JoinInput) -> str:
    """As ``current``, where equal rows are kept as one."""
    if side.grows:
        return "the counts of different rows, unbounded"
    return "the current rows"


def kept(side: JoinInput, reason: str) -> str:
    """As ``current``, with the reason why no row that cannot be taken back is ever forgotten."""
    return current(side) if side.updates else f"{current(side)}: {reason}"


def open_times(inputs: JoinInputs, left: str, right: str) -> str:
    """Why the watermarks do not tell which rows can change no output any more; '' where they do. ``left`` and ``right``
    are the times that the join goes by.
    """
    if inputs.left.updates or inputs.right.updates:
        return "rows can be taken back"
    for time, watermark in ((left, inputs.left.watermark), (right, inputs.right.watermark)):
        if watermark is None or watermark.column != time:
            return f"there is no watermark over {time}"
    return ""
