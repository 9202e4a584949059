"""A join of a kind that its operator does not implement is refused when it is made, and so is its reference."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable

import pyarrow as pa
import pytest

from dovetail.changelog.errors import InternalError
from dovetail.joins.dataflow.lookup import Access, LookupJoinSpec, LookupTarget
from dovetail.joins.dataflow.ports import Ingest, JoinKind
from dovetail.joins.dataflow.specification import JoinSpec
from dovetail.joins.operators.asof import AsofSpec
from dovetail.joins.operators.asof_once import AsofOnceSpec
from dovetail.joins.operators.bidirectional import BidirectionalSpec
from dovetail.joins.operators.dynamic_filter import DynamicFilterSpec
from dovetail.joins.operators.enrichment import EnrichmentSpec
from dovetail.joins.operators.latest import LatestSpec
from dovetail.joins.operators.range import Band, RangeSpec
from dovetail.joins.operators.registry import JOINS
from dovetail.joins.operators.temporal import TemporalSpec
from dovetail.joins.reference.arrival import Arrived
from dovetail.joins.reference.asof import ReferenceAsofUpdating
from dovetail.joins.reference.asof_aligned import ReferenceAsofAligned
from dovetail.joins.reference.asof_once import ReferenceAsof
from dovetail.joins.reference.bidirectional import ReferenceJoin
from dovetail.joins.reference.dynamic_filter import ReferenceDynamicFilter
from dovetail.joins.reference.enrichment import ReferenceEnrichment
from dovetail.joins.reference.latest import ReferenceLatest
from dovetail.joins.reference.range import ReferenceRange
from dovetail.joins.reference.temporal import ReferenceTemporal
from dovetail.joins.state.store import RunStore
from tests.joins.harness import LEFT, RIGHT, port, side

Made = Callable[[JoinKind], object]

PORTS = port(LEFT, Ingest.APPEND), port(RIGHT, Ingest.APPEND)
SIDES = side(Ingest.APPEND), side(Ingest.APPEND)
ARRIVED = Arrived(Ingest.APPEND, (0,)), Arrived(Ingest.APPEND, (0,))
WIDTHS = TIMES = (3, 3)

SPECS: dict[type[JoinSpec], Callable[[JoinKind], JoinSpec]] = {
    BidirectionalSpec: lambda kind: BidirectionalSpec(kind, *PORTS),
    RangeSpec: lambda kind: RangeSpec(kind, *PORTS, Band("l.v", "r.w", -1, 1)),
    AsofSpec: lambda kind: AsofSpec(kind, *PORTS, "l.v", "r.w", ">="),
    TemporalSpec: lambda kind: TemporalSpec(kind, *PORTS, "l.v", "r.w"),
    EnrichmentSpec: lambda kind: EnrichmentSpec(kind, *PORTS),
    AsofOnceSpec: lambda kind: AsofOnceSpec(kind, *PORTS, "l.v", "r.w", ">="),
    LatestSpec: lambda kind: LatestSpec(kind, *PORTS),
    DynamicFilterSpec: lambda kind: DynamicFilterSpec(kind, *PORTS),
}
REFERENCES: dict[type[JoinSpec], list[Made]] = {
    BidirectionalSpec: [lambda kind: ReferenceJoin(kind, *SIDES, WIDTHS)],
    RangeSpec: [lambda kind: ReferenceRange(kind, *SIDES, WIDTHS, TIMES, -1, 1)],
    AsofSpec: [lambda kind: ReferenceAsofUpdating(kind, *ARRIVED, WIDTHS, TIMES, ">=")],
    TemporalSpec: [lambda kind: ReferenceTemporal(kind, *ARRIVED, WIDTHS, TIMES)],
    EnrichmentSpec: [lambda kind: ReferenceEnrichment(kind, (0,), SIDES[1], 3)],
    AsofOnceSpec: [
        lambda kind: ReferenceAsof(kind, ">=", 1),
        lambda kind: ReferenceAsofAligned(kind, (0,), ARRIVED[1], WIDTHS, TIMES, ">=", 1, 0),
    ],
    LatestSpec: [lambda kind: ReferenceLatest(kind, *ARRIVED, WIDTHS)],
    DynamicFilterSpec: [lambda kind: ReferenceDynamicFilter(kind, *SIDES, 3)],
}
EVERY = [(spec, kind) for spec, kind in itertools.product(JOINS, JoinKind)]


def check(made: Made, kind: JoinKind, *, possible: bool) -> None:
    """It is made, or refused in words that name the kind, and what is possible."""
    if possible:
        assert made(kind)
        return
    with pytest.raises(InternalError, match=kind.upper()) as refusal:
        made(kind)
    assert refusal.value.fix.startswith("use one of INNER, ")


@pytest.mark.parametrize(("spec", "kind"), EVERY)
def test_a_join_is_of_a_kind_that_its_operator_implements(spec: type[JoinSpec], kind: JoinKind) -> None:
    for made in (SPECS[spec], *REFERENCES[spec]):
        check(made, kind, possible=kind in spec.kinds)


@pytest.mark.parametrize("kind", JoinKind)
def test_a_lookup_is_inner_or_left_or_asks_of_its_left_rows(kind: JoinKind) -> None:
    access = Access(LookupTarget.DICTIONARY, "d", ("k",), ("v",), (pa.int64(),))

    def made(kind: JoinKind) -> LookupJoinSpec:
        return LookupJoinSpec(kind, access, ("l.k",), (("d.v", "v"),), pa.schema([("d.v", pa.int64())]), (None,))

    check(made, kind, possible=kind not in (JoinKind.RIGHT, JoinKind.FULL))


@pytest.mark.parametrize(("spec", "kind"), [(spec, kind) for spec, kind in EVERY if kind in spec.kinds])
def test_each_kind_starts_with_nothing_to_say(spec: type[JoinSpec], kind: JoinKind) -> None:
    made: JoinSpec = pickle.loads(pickle.dumps(SPECS[spec](kind)))
    assert made == SPECS[spec](kind)
    running = made.open(RunStore(), "0")
    assert len(running.on_batch([None, None])) == 0
    assert running.dangling == 0
