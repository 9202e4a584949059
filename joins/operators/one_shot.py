"""One-shot joins: each left row is answered once, when it comes, from the right rows held then.

**Definition.** The right rows of a batch are taken in before its left rows are answered. LEFT pads a left row at once
where there is nothing for it, INNER lets it go. A change of the right side alone emits nothing: what was answered is
never corrected. NULL keys match nothing.

**Alignment.** With ``alignment`` a left row is held until the right watermark has passed its time by the lag, and is
answered then; rows that leave together in order of their times. A left row without a time waits for nothing.

**State.** What the subclass keeps of the right side; of the left side only what is held for alignment.

Source: the enrichment, ASOF and LATEST joins of Timeplus; the process-time temporal join of RisingWave.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from dovetail.changelog.changes import DELTA, Changes
from dovetail.changelog.rows import any_null
from dovetail.changelog.schema import ARRIVAL
from dovetail.joins.dataflow.ports import JoinKind, Pad, Predicate
from dovetail.joins.dataflow.specification import JoinSpec
from dovetail.joins.matching.row_assembler import RowAssembler
from dovetail.joins.matching.waiting_rows import WaitingRows
from dovetail.joins.state.arrangement import Matches
from dovetail.joins.state.store import RunStore


@dataclass(frozen=True)
class Alignment:
    """A left row of a one-shot join waits until the right watermark has passed its ``left_time`` by ``lag_ms``."""

    left_time: str
    lag_ms: int


@dataclass(frozen=True)
class OneShotSpec(JoinSpec):
    """A join whose left rows are answered once. The left port is APPEND, or CHANGES without retractions."""

    answers_once = True

    alignment: Alignment | None = field(default=None, kw_only=True)


class OneShotOperator(ABC):
    """``on_batch([left rows, right rows]) -> changes``: insertions only, left columns, then right columns."""

    def __init__(self, spec: OneShotSpec, store: RunStore, name: str, condition: Predicate | None = None) -> None:
        self._left = spec.left
        self._kind = spec.kind
        self._alignment = spec.alignment
        self._pairing = RowAssembler(spec.left.schema, spec.right.schema, condition, spec.pad is Pad.DEFAULT)
        self._waiting: WaitingRows | None = None
        self._left_schema = spec.left.schema
        if spec.left.tie_break_by_arrival and spec.left.ordered:
            self._left_schema = self._left_schema.append(pa.field(ARRIVAL, pa.int64()))
        if spec.alignment is not None:
            self._waiting = WaitingRows(
                self._left_schema, spec.left.keys, spec.alignment.left_time, store, f"{name}.waiting"
            )

    @property
    @abstractmethod
    def dangling(self) -> int: ...

    @abstractmethod
    def _take_in(self, rows: pa.Table) -> Changes:
        """Keep the right ``rows``; what that gives by itself."""

    @abstractmethod
    def _answered(self, left: Changes) -> Changes:
        """The answers to the left rows, from what is held now."""

    @property
    def _output(self) -> pa.Schema:
        return self._pairing.schema

    def on_batch(self, inputs: Sequence[pa.Table | None]) -> Changes:
        left_rows, right_rows = inputs
        parts = [Changes.empty(self._output)]
        left = None if left_rows is None or left_rows.num_rows == 0 else self._ready(left_rows)
        if right_rows is not None and right_rows.num_rows:
            parts.append(self._take_in(right_rows))
        if left is not None and len(left):
            parts.append(self._answered(left))
        return Changes.concat(parts)

    def on_watermark(self, watermarks: Sequence[int | None]) -> Changes:
        watermark = watermarks[1]
        if self._waiting is None or self._alignment is None or watermark is None:
            return Changes.empty(self._output)
        left = self._waiting.released(watermark - self._alignment.lag_ms, reached=True)
        return self._answered(left) if len(left) else Changes.empty(self._output)

    def _ready(self, rows: pa.Table) -> Changes:
        """The left rows that wait for nothing; the others are held."""
        left = Changes(rows.select([*self._left_schema.names, DELTA]))
        if self._waiting is None or self._alignment is None:
            return left
        timeless = any_null(left.table, [self._alignment.left_time])
        self._waiting.hold(left.where(~timeless))
        return left.where(timeless)

    def _joined(self, left: Changes, found: Matches) -> Changes:
        """``left`` with what was ``found`` for it, the condition tested; padded where the join asks for it."""
        joined = RowAssembler(self._pairing.left, self._pairing.right).of_left(left, found)
        if self._kind not in (JoinKind.LEFT, JoinKind.FULL):
            return joined
        return Changes.concat([joined, self._pairing.left_padded(left.where(found.unmatched(len(left))))])
