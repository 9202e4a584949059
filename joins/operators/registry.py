"""From the description of an operator to the operator at work on its state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import pyarrow as pa

from changelog.changes import Changes
from joins.aggregates.aggregate import AggregateOperator
from joins.dataflow.graph import (
    AggregateSpec,
    AsofOnceSpec,
    AsofSpec,
    BidirectionalSpec,
    EnrichmentSpec,
    KeyedSpec,
    LatestSpec,
    OperatorSpec,
    RangeSpec,
    TemporalSpec,
)
from joins.dataflow.ports import Port
from joins.operators.asof import AsofOperator
from joins.operators.asof_once import AsofOnceOperator
from joins.operators.bidirectional import BidirectionalOperator
from joins.operators.enrichment import EnrichmentOperator
from joins.operators.keyed import KeyedOperator
from joins.operators.latest import LatestOperator
from joins.operators.range import RangeOperator
from joins.operators.temporal import TemporalOperator
from joins.state.store import RunStore


class Running(Protocol):
    @property
    def unfounded(self) -> int:
        """Retractions, since the start, of rows that were never there."""
        ...

    def on_batch(self, inputs: Sequence[pa.Table | None]) -> Changes:
        """What the rows of a batch, by port, change in the output."""
        ...


@runtime_checkable
class Timed(Protocol):
    """An operator whose output or state follows the watermarks."""

    def on_watermark(self, watermarks: Sequence[int | None]) -> Changes:
        """What the output gains now that the watermark of each port stands where it does; state that is over goes.

        Called after ``on_batch``, when a watermark has moved. In ms, or the number itself; None: none yet, or never. No
        watermark moves back; rows behind that of their port come no more, retractions may.
        """
        ...


def ports(operator: OperatorSpec) -> tuple[Port, ...]:
    return (operator.port,) if isinstance(operator, KeyedSpec | AggregateSpec) else (operator.left, operator.right)


def started(operator: OperatorSpec, store: RunStore, name: str) -> Running:
    """The operator at work on ``store``."""
    match operator:
        case KeyedSpec():
            return KeyedOperator(operator, store, name)
        case AggregateSpec():
            return AggregateOperator(operator, store, name)
        case BidirectionalSpec():
            return BidirectionalOperator(operator, store, name)
        case RangeSpec():
            return RangeOperator(operator, store, name)
        case AsofOnceSpec():
            return AsofOnceOperator(operator, store, name)
        case EnrichmentSpec():
            return EnrichmentOperator(operator, store, name)
        case LatestSpec():
            return LatestOperator(operator, store, name)
        case AsofSpec():
            return AsofOperator(operator, store, name)
        case TemporalSpec():
            return TemporalOperator(operator, store, name)
