"""Whatever a batch leaves of an input, none of it, one row, late rows alone: every operator takes it."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest

from dovetail.changelog.schema import ARRIVAL
from dovetail.joins.aggregates.aggregate import AggregateSpec
from dovetail.joins.aggregates.aggregation import Aggregation, Closing, Fold
from dovetail.joins.aggregates.sessions import SessionsSpec
from dovetail.joins.dataflow.ports import Ingest, Port, SetKind
from dovetail.joins.dataflow.specification import OperatorSpec, WatermarkAware
from dovetail.joins.operators.asof import AsofSpec
from dovetail.joins.operators.asof_once import AsofOnceSpec
from dovetail.joins.operators.bidirectional import BidirectionalSpec
from dovetail.joins.operators.delta_joins.delta_step import DeltaProbe, DeltaStepSpec, KeptPart
from dovetail.joins.operators.dynamic_filter import DynamicFilterSpec
from dovetail.joins.operators.enrichment import EnrichmentSpec
from dovetail.joins.operators.keyed import KeyedSpec
from dovetail.joins.operators.latest import LatestSpec
from dovetail.joins.operators.multiway import MultiwaySpec
from dovetail.joins.operators.range import Band, RangeSpec
from dovetail.joins.operators.registry import OPERATORS
from dovetail.joins.operators.set_operation import SetOperationSpec
from dovetail.joins.operators.temporal import TemporalSpec
from dovetail.joins.operators.union_all import UnionAllSpec
from dovetail.joins.partitions.ordering import Rank, SortKey
from dovetail.joins.partitions.over import OverSpec
from dovetail.joins.partitions.top_n import TopNSpec
from dovetail.joins.partitions.waiting import WaitingSpec
from dovetail.joins.state.store import RunStore
from tests.joins.harness import KEYED, LEFT, RIGHT, LeftBelowRight, decoded, port, watched
from tests.joins.hosted import Hosted
from tests.joins.partitions.functions import PlacesAndSums


def specs(left: Ingest, right: Ingest) -> list[OperatorSpec]:
    """Every operator in each of its kinds, with a watermark on every input."""
    lefts, rights = watched(port(LEFT, left)), watched(port(RIGHT, right))
    once = replace(lefts, ingest=Ingest.APPEND, primary_key=())
    grouped = (Aggregation("n", Fold.COUNT, "", LEFT.field(0).type), Aggregation("m", Fold.MAX, "l.v", LEFT[2].type))
    found: list[OperatorSpec] = [AggregateSpec(lefts, grouped), AggregateSpec(replace(lefts, keys=()), grouped)]
    found += [
        SessionsSpec(lefts, "l.v", 2, "start", "end"),
        SessionsSpec(replace(lefts, keys=()), "l.v", 2, "start", "end"),
    ]
    found += [SessionsSpec(once, "l.v", 2, "start", "end", 3, closing=0, closed=closed) for closed in (False, True)]
    if left in KEYED:
        found.append(KeyedSpec(lefts))
    found += [BidirectionalSpec(kind, lefts, rights) for kind in BidirectionalSpec.kinds]
    found += [BidirectionalSpec(kind, lefts, rights, (), LeftBelowRight()) for kind in BidirectionalSpec.kinds]
    found += [MultiwaySpec((lefts, rights), optional) for optional in ((), (1,))]
    met = DeltaProbe(0, 1, after=False), DeltaProbe(1, 0, after=True)
    both = pa.schema([*LEFT, *RIGHT])
    found.append(DeltaStepSpec((lefts, rights), (KeptPart(0), KeptPart(1)), met, both))
    found.append(DeltaStepSpec((once, rights), (KeptPart(1),), (DeltaProbe(0, 0, after=True),), both))
    found.append(UnionAllSpec((lefts, watched(port(LEFT, right))), LEFT))
    found += [SetOperationSpec(kind, *map(whole_rows, (left, right))) for kind in SetKind]
    found += [TopNSpec(lefts, (SortKey("l.v"),), rank, 1, 2, "rank") for rank in Rank]
    found.append(OverSpec(lefts, PlacesAndSums(("l.v",))))
    found.append(WaitingSpec(lefts, Closing("l.v", 0)))
    one_row = Port(RIGHT, (), Ingest.CHANGES)
    found += [DynamicFilterSpec(kind, lefts, one_row) for kind in DynamicFilterSpec.kinds]
    found += [RangeSpec(kind, lefts, rights, Band("l.v", "r.w", -1, 1)) for kind in RangeSpec.kinds]
    found += [AsofSpec(kind, lefts, rights, "l.v", "r.w", ">=") for kind in AsofSpec.kinds]
    found += [TemporalSpec(kind, lefts, rights, "l.v", "r.w") for kind in TemporalSpec.kinds]
    found += [EnrichmentSpec(kind, once, rights) for kind in EnrichmentSpec.kinds]
    found += [AsofOnceSpec(kind, once, rights, "l.v", "r.w", ">=") for kind in AsofOnceSpec.kinds]
    found += [LatestSpec(kind, once, rights) for kind in LatestSpec.kinds]
    return found


def whole_rows(ingest: Ingest) -> Port:
    """Compared by all of their columns, which are the primary key where there is one."""
    one = watched(port(LEFT, ingest))
    keys = tuple(LEFT.names)
    return replace(one, keys=keys, primary_key=keys if one.primary_key else ())


PAIRS = [(one, one) for one in Ingest]


def test_every_operator_is_here() -> None:
    assert {type(spec) for pair in PAIRS for spec in specs(*pair)} == set(OPERATORS)


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_an_input_without_rows_changes_nothing(left: Ingest, right: Ingest) -> None:
    """A table without rows is as good as none, before the first row and after it."""
    for spec in specs(left, right):
        operator = spec.open(RunStore(), "0")
        rows = [_received(one) for one in spec.ports]
        for inputs in itertools.product(*[(None, part) for part in rows]):
            assert len(operator.on_batch(inputs)) == 0
        operator.on_batch([_received(one, 1) for one in spec.ports])
        for inputs in itertools.product(*[(None, part) for part in rows]):
            assert len(operator.on_batch(inputs)) == 0
        if isinstance(operator, WatermarkAware):
            operator.on_watermark([100] * len(rows))
            assert len(operator.on_watermark([100] * len(rows))) == 0


def _received(one: Port, *times: int) -> pa.Table:
    rows = decoded(one.schema, [((1, "a", at), 1) for at in times], 0)
    return rows if one.ordered else rows.drop_columns([ARRIVAL])


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_late_rows_alone_in_their_bucket(left: Ingest, right: Ingest) -> None:
    """An update behind the watermark, alone in its bucket, once stopped a query forever: each replay failed anew."""
    for spec in specs(left, right):
        if any(not one.keys for one in spec.ports):
            continue
        hosted = Hosted(spec)
        once = [((key, "a", 10), 1) for key in range(2)]
        hosted.on_batch(once, once)
        hosted.on_batch([((9, "z", 90), 1)], [((9, "z", 90), 1)])
        for key in range(2):
            assert hosted.on_batch([((key, "a", 11), 1)], []) == Counter()
            assert hosted.on_batch([], [((key, "a", 11), 1)]) == Counter()
        assert hosted.query.counters["late"] == 2 * len(spec.ports)
        hosted.restart()
        assert hosted.on_batch([], []) == Counter()
