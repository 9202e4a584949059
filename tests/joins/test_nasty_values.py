"""Operators over values that go wrong, as keys, as primary keys and as payloads: every type that a column can have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.joins.aggregates.aggregate import AggregateSpec
from dovetail.joins.aggregates.aggregation import Aggregation, Fold
from dovetail.joins.dataflow.ports import Ingest, JoinKind, Port, SetKind
from dovetail.joins.operators.bidirectional import BidirectionalSpec
from dovetail.joins.operators.enrichment import EnrichmentSpec
from dovetail.joins.operators.latest import LatestSpec
from dovetail.joins.operators.set_operation import SetOperationSpec
from dovetail.joins.reference.arrival import Arrived
from dovetail.joins.reference.bidirectional import ReferenceJoin
from dovetail.joins.reference.enrichment import ReferenceEnrichment
from dovetail.joins.reference.groups.aggregate import ReferenceAggregate
from dovetail.joins.reference.latest import ReferenceLatest
from dovetail.joins.reference.rows import Record, Row
from dovetail.joins.reference.set_operation import ReferenceSetOperation
from dovetail.joins.reference.side import ReferenceSide
from dovetail.joins.state.order import is_ordered
from tests.joins.alone import Alone
from tests.joins.harness import KEYED, Joining, Step, decoded, steps
from tests.nasty import COLUMNS, NESTED, canonical
from tests.tries import tries

TYPES = {**COLUMNS, **NESTED}
EVERY = pytest.mark.parametrize("kind", TYPES, ids=str)
FORMS = settings(max_examples=tries(10))


def schema(side: str, kind: pa.DataType) -> pa.Schema:
    """A key, something that tells rows of a key apart, a payload."""
    return pa.schema([(f"{side}.k", kind), (f"{side}.id", pa.int64()), (f"{side}.p", kind)])


def port(side: str, kind: pa.DataType, ingest: Ingest) -> Port:
    names = schema(side, kind).names
    return Port(schema(side, kind), (names[0],), ingest, (names[0], names[1]) if ingest in KEYED else ())


def records(kind: pa.DataType, ingest: Ingest) -> st.SearchStrategy[list[Record]]:
    value = TYPES[kind]
    key = value if ingest in KEYED else st.none() | value
    delta = st.just(1) if ingest is Ingest.APPEND else st.sampled_from([1, 1, -1])
    return st.lists(st.tuples(st.tuples(key, st.integers(0, 1), st.none() | value), delta), max_size=6)


@dataclass
class Normal:
    """A host or a reference that is given, and gives, values that Python takes for equal where they are."""

    inner: Joining | ReferenceAggregate
    schemas: Sequence[pa.Schema]

    def on_batch(self, *parts: Sequence[Record]) -> Counter[Row]:
        given = [
            [(row, delta) for row, (_, delta) in zip(_rows(decoded(one, part, 0), len(one)), part, strict=True)]
            for one, part in zip(self.schemas, parts, strict=True)
        ]
        return self.inner.on_batch(*given)


def _rows(table: pa.Table, width: int) -> list[Row]:
    return [tuple(map(canonical, row)) for row in zip(*[c.to_pylist() for c in table.columns[:width]], strict=True)]


def agree(
    tested: Alone, reference: Joining | ReferenceAggregate, schemas: Sequence[pa.Schema], drawn: Sequence[Step]
) -> None:
    expected = Normal(reference, schemas)
    for left, right, restart in drawn:
        parts = (left, right)[: len(schemas)]
        assert tested.on_batch(*parts) == expected.on_batch(*parts)
        if restart:
            tested.restart()


def side(ingest: Ingest) -> ReferenceSide:
    return ReferenceSide(ingest, (0,), (0, 1))


@EVERY
@FORMS
@given(
    join=st.sampled_from(BidirectionalSpec.kinds),
    ingests=st.tuples(st.sampled_from(Ingest), st.sampled_from(Ingest)),
    null_safe=st.booleans(),
    data=st.data(),
)
def test_symmetric_joins(
    kind: pa.DataType, join: JoinKind, ingests: tuple[Ingest, Ingest], null_safe: bool, data: st.DataObject
) -> None:
    ingests = tuple(Ingest.CHANGELOG if one is Ingest.CHANGES else one for one in ingests)  # type: ignore[assignment]
    left, right = (port(name, kind, ingest) for name, ingest in zip("lr", ingests, strict=True))
    reference = ReferenceJoin(join, side(ingests[0]), side(ingests[1]), (3, 3), (null_safe,))
    drawn = data.draw(steps(*(records(kind, ingest) for ingest in ingests)))
    agree(Alone(BidirectionalSpec(join, left, right, (null_safe,))), reference, (left.schema, right.schema), drawn)


@EVERY
@FORMS
@given(latest=st.booleans(), join=st.sampled_from([JoinKind.INNER, JoinKind.LEFT]), data=st.data())
def test_one_shot_joins(kind: pa.DataType, latest: bool, join: JoinKind, data: st.DataObject) -> None:
    left, right = port("l", kind, Ingest.APPEND), port("r", kind, Ingest.UPSERT)
    reference: Joining = ReferenceEnrichment(join, (0,), side(Ingest.UPSERT), 3)
    tested = Alone(EnrichmentSpec(join, left, right))
    if latest:
        sides = Arrived(Ingest.APPEND, (0,)), Arrived(Ingest.UPSERT, (0,), (0, 1))
        reference, tested = ReferenceLatest(join, *sides, (3, 3)), Alone(LatestSpec(join, left, right))
    drawn = data.draw(steps(records(kind, Ingest.APPEND), records(kind, Ingest.UPSERT)))
    agree(tested, reference, (left.schema, right.schema), drawn)


@EVERY
@FORMS
@given(
    operation=st.sampled_from(SetKind),
    ingests=st.tuples(*[st.sampled_from([Ingest.APPEND, Ingest.CHANGELOG])] * 2),
    data=st.data(),
)
def test_set_operations(
    kind: pa.DataType, operation: SetKind, ingests: tuple[Ingest, Ingest], data: st.DataObject
) -> None:
    left, right = (replace(one, keys=tuple(one.schema.names)) for one in (port("l", kind, each) for each in ingests))
    drawn = data.draw(steps(*(records(kind, ingest) for ingest in ingests)))
    tested = Alone(SetOperationSpec(operation, left, replace(right, schema=left.schema)))
    reference = ReferenceSetOperation(operation, side(ingests[0]), side(ingests[1]))
    agree(tested, reference, (left.schema, left.schema), drawn)


@EVERY
@FORMS
@given(ingest=st.sampled_from([Ingest.APPEND, Ingest.UPSERT, Ingest.CHANGELOG]), data=st.data())
def test_groups(kind: pa.DataType, ingest: Ingest, data: st.DataObject) -> None:
    one = port("l", kind, ingest)
    folds = [(Fold.COUNT, None, False), (Fold.COUNT, 2, False), (Fold.COUNT, 2, True)]
    if is_ordered(kind):
        folds += [(Fold.MIN, 2, False), (Fold.MAX, 2, False)]
    names = one.schema.names
    aggregations = tuple(
        Aggregation(
            f"a{number}",
            fold,
            "" if place is None else names[place],
            pa.int64() if fold is Fold.COUNT else kind,
            distinct,
        )
        for number, (fold, place, distinct) in enumerate(folds)
    )
    reference = ReferenceAggregate(side(ingest), folds)
    drawn = data.draw(steps(records(kind, ingest), st.just([])))
    agree(Alone(AggregateSpec(one, aggregations)), reference, (one.schema,), drawn)
