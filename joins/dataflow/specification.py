"""What a dataflow says of an operator, and what a host asks of it: its ports, its limit, the operator at work.

A specification is a frozen dataclass beside its operator, in ``joins.operators`` or ``joins.aggregates``; it pickles.
Hosts and dataflows know no kind by name: what they treat differently is asked here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, runtime_checkable

import pyarrow as pa

from dovetail.changelog.changes import Changes
from dovetail.joins.dataflow.ports import JoinKind, Pad, Port, refuse_other_kinds
from dovetail.joins.state.store import RunStore


class RunningOperator(Protocol):
    """An operator at work on the state of one bucket."""

    @property
    def dangling(self) -> int:
        """Retractions, since the start, of rows that were never there."""
        ...

    def on_batch(self, inputs: Sequence[pa.Table | None]) -> Changes:
        """What the rows of a batch, by port, change in the output. None, or a table without rows: there are none.

        The rows of a port come in the order of their arrival.
        """
        ...


@runtime_checkable
class WatermarkAware(Protocol):
    """An operator whose output or state follows the watermarks."""

    def on_watermark(self, watermarks: Sequence[int | None]) -> Changes:
        """What the output gains now that the watermark of each port stands where it does; state that is over goes.

        Called after ``on_batch``, when a watermark has moved. In ms, or the number itself; None: none yet, or never. No
        watermark moves back; rows behind that of their port come no more, retractions may.
        """
        ...


@runtime_checkable
class HasInitialOutput(Protocol):
    """An operator whose output may hold rows before there is any input."""

    def initial_output(self) -> Changes:
        """What stands from the start of the query, if it has not left yet.

        Called before ``on_batch``, in the one bucket that rows without keys go to.
        """
        ...


@runtime_checkable
class RejectsRows(Protocol):
    """An operator that can hold its inputs to a budget of rows for each key."""

    def refused(self) -> Sequence[pa.Table | None]:
        """By port, the records that it has refused since this was last asked, with their reason; None: none."""
        ...


class OperatorSpec(ABC):
    """An operator, described."""

    answers_once: ClassVar[bool] = False
    """A row is answered when it comes, for good: the history of the other side must be there before it."""

    @property
    @abstractmethod
    def ports(self) -> tuple[Port, ...]:
        """Its inputs, in the order in which rows are handed to it."""

    @property
    def has_initial_output(self) -> bool:
        """Whether its output holds something before any input; it is ``HasInitialOutput`` then, and has no keys."""
        return False

    @property
    def waits(self) -> bool:
        """Whether some rows leave only when a watermark has passed them: until then its output lacks them."""
        return False

    @property
    def max_buffered_bytes(self) -> int | None:
        """The most bytes of rows that it may hold in all its buckets; None: any."""
        return None

    @abstractmethod
    def open(self, store: RunStore, name: str) -> RunningOperator:
        """The operator at work on ``store``; its arrangements are kept under ``name``."""


@dataclass(frozen=True)
class JoinSpec(OperatorSpec):
    """A join of ``left`` and ``right`` by the keys of their ports.

    kinds   those that the operator implements; another ``kind`` raises InternalError
    pad     what a padded row holds in the columns of the missing side
    """

    kinds: ClassVar[tuple[JoinKind, ...]]

    kind: JoinKind
    left: Port
    right: Port
    pad: Pad = field(default=Pad.NULL, kw_only=True)
    max_buffered_bytes: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        refuse_other_kinds(self, self.kind, self.kinds)

    @property
    def ports(self) -> tuple[Port, ...]:
        return self.left, self.right
