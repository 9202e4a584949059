"""Every operator there is, by its specification."""

from __future__ import annotations

from dovetail.joins.aggregates.aggregate import AggregateSpec
from dovetail.joins.aggregates.sessions import SessionsSpec
from dovetail.joins.dataflow.specification import JoinSpec, OperatorSpec
from dovetail.joins.operators.asof import AsofSpec
from dovetail.joins.operators.asof_once import AsofOnceSpec
from dovetail.joins.operators.bidirectional import BidirectionalSpec
from dovetail.joins.operators.delta_joins.delta_step import DeltaStepSpec
from dovetail.joins.operators.dynamic_filter import DynamicFilterSpec
from dovetail.joins.operators.enrichment import EnrichmentSpec
from dovetail.joins.operators.keyed import KeyedSpec
from dovetail.joins.operators.latest import LatestSpec
from dovetail.joins.operators.multiway import MultiwaySpec
from dovetail.joins.operators.range import RangeSpec
from dovetail.joins.operators.set_operation import SetOperationSpec
from dovetail.joins.operators.temporal import TemporalSpec
from dovetail.joins.operators.union_all import UnionAllSpec
from dovetail.joins.partitions.over import OverSpec
from dovetail.joins.partitions.top_n import TopNSpec
from dovetail.joins.partitions.waiting import WaitingSpec

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
    WaitingSpec,
)
