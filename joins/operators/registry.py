"""Every operator there is, by its specification."""

from __future__ import annotations

from joins.aggregates.aggregate import AggregateSpec
from joins.aggregates.sessions import SessionsSpec
from joins.dataflow.specification import JoinSpec, OperatorSpec
from joins.operators.asof import AsofSpec
from joins.operators.asof_once import AsofOnceSpec
from joins.operators.bidirectional import BidirectionalSpec
from joins.operators.delta_joins.delta_step import DeltaStepSpec
from joins.operators.dynamic_filter import DynamicFilterSpec
from joins.operators.enrichment import EnrichmentSpec
from joins.operators.keyed import KeyedSpec
from joins.operators.latest import LatestSpec
from joins.operators.multiway import MultiwaySpec
from joins.operators.range import RangeSpec
from joins.operators.set_operation import SetOperationSpec
from joins.operators.temporal import TemporalSpec
from joins.operators.union_all import UnionAllSpec
from joins.partitions.over import OverSpec
from joins.partitions.top_n import TopNSpec

JOINS: tuple[type[JoinSpec], ...] = (
    BidirectionalSpec,
    RangeSpec,
    AsofSpec,
    TemporalSpec,
    EnrichmentSpec,
    AsofOnceSpec,
    LatestSpec,
    DynamicFilterSpec,
)
OPERATORS: tuple[type[OperatorSpec], ...] = (
    KeyedSpec,
    *JOINS,
    MultiwaySpec,
    DeltaStepSpec,
    AggregateSpec,
    SessionsSpec,
    UnionAllSpec,
    SetOperationSpec,
    TopNSpec,
    OverSpec,
)
