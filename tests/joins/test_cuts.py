"""The cutting law: the same rows in one batch, or cut at every place, come to the same, for every updating operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dovetail.changelog.changes import DELTA, DELTA_TYPE
from dovetail.changelog.rows import shortfalls
from dovetail.changelog.schema import ARRIVAL, OFFSET_BITS, WRITTEN
from dovetail.joins.aggregates.aggregate import AggregateSpec
from dovetail.joins.aggregates.aggregation import Aggregation, Fold
from dovetail.joins.dataflow.ports import Ingest
from dovetail.joins.dataflow.specification import OperatorSpec
from dovetail.joins.inputs.arrival import in_order
from dovetail.joins.operators.asof import AsofSpec
from dovetail.joins.operators.bidirectional import BidirectionalSpec
from dovetail.joins.operators.keyed import KeyedSpec
from dovetail.joins.operators.multiway import MultiwaySpec
from dovetail.joins.operators.range import Band, RangeSpec
from dovetail.joins.reference.rows import Record, Row, difference
from tests.joins.alone import Alone
from tests.joins.harness import INPUTS, KEYED, LEFT, RIGHT, LeftBelowRight, port, records
from tests.tries import tries


def specs(ingest: Ingest) -> list[OperatorSpec]:
    left, right = port(LEFT, ingest), port(RIGHT, ingest)
    found: list[OperatorSpec] = [BidirectionalSpec(kind, left, right) for kind in BidirectionalSpec.kinds]
    found += [BidirectionalSpec(kind, left, right, (), LeftBelowRight()) for kind in BidirectionalSpec.kinds]
    found += [MultiwaySpec((left, right), optional) for optional in ((), (1,))]
    found += [RangeSpec(kind, left, right, Band("l.v", "r.w", -1, 1)) for kind in RangeSpec.kinds]
    found += [AsofSpec(kind, left, right, "l.v", "r.w", ">=", ("r.id",)) for kind in AsofSpec.kinds]
    found += [AsofSpec(kind, left, right, "l.v", "r.w", ">=") for kind in AsofSpec.kinds]
    found.append(AggregateSpec(left, (Aggregation("s", Fold.SUM, "l.v", pa.int64()),)))
    return [*found, KeyedSpec(left)] if ingest in KEYED else found


def total(spec: OperatorSpec, parts: Sequence[Sequence[list[Record]]]) -> Counter[Row]:
    alone, result = Alone(spec), Counter[Row]()
    for part in parts:
        result.update(alone.on_batch(*part[: len(spec.ports)]))
    return difference(result, Counter())


@pytest.mark.parametrize("ingest", INPUTS)
@settings(max_examples=tries(8))
@given(data=st.data())
def test_rows_cut_at_every_place_come_to_the_same(ingest: Ingest, data: st.DataObject) -> None:
    rows = records(ingest, st.sampled_from("ab"), st.none() | st.integers(0, 2))
    left, right = data.draw(rows), data.draw(rows)
    cut = [*([[one], []] for one in left), *([[], [one]] for one in right)]
    for spec in specs(ingest):
        assert total(spec, [[left, right]]) == total(spec, cut)


@pytest.mark.parametrize("spec", specs(Ingest.CHANGELOG), ids=lambda spec: type(spec).__name__)
def test_a_retraction_before_its_row_is_dangling_in_one_batch_as_in_two(spec: OperatorSpec) -> None:
    row = (1, "a", 1)
    for parts in ([[(row, -1), (row, 1)]], [[(row, -1)], [(row, 1)]]):
        alone = Alone(spec)
        for part in parts:
            alone.on_batch(*[part, []][: len(spec.ports)])
        assert alone.operator.dangling == 1
        assert alone.held() > 0


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-3, 3))), st.lists(st.integers(0, 3), min_size=3, max_size=3))
@example([(0, -1), (0, 1)], [0, 0, 0])
def test_shortfalls(changes: list[tuple[int, int]], held: list[int]) -> None:
    present, missing = list(held), [0, 0, 0]
    for group, delta in changes:
        missing[group] += max(-(present[group] + delta), 0)
        present[group] = max(present[group] + delta, 0)
    groups, deltas = (pa.array([one[part] for one in changes], pa.int64()).to_numpy() for part in (0, 1))
    assert shortfalls(groups, deltas, pa.array(held, pa.int64()).to_numpy()).tolist() == missing


placed = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5)), max_size=9)


@given(placed)
@example([(1, 1), (0, 2)])
def test_rows_come_by_time_then_partition_then_offset(written: list[tuple[int, int]]) -> None:
    """(partition, timestamp) of each record, its place its offset; a partition's own records stay in order."""
    places = [(partition << OFFSET_BITS) | offset for offset, (partition, _) in enumerate(written)]
    table = pa.table(
        {
            ARRIVAL: pa.array(places, pa.int64()),
            WRITTEN: pa.array([at for _, at in written], pa.int64()),
            DELTA: pa.array([1] * len(written), DELTA_TYPE),
        }
    )
    shown: dict[int, int] = {}
    expected = []
    for place, (partition, at) in zip(places, written, strict=True):
        shown[partition] = max(shown.get(partition, at), at)
        expected.append((shown[partition], partition, place))
    ordered = in_order(table)
    assert ordered.column_names == [ARRIVAL, DELTA]
    assert ordered.column(ARRIVAL).to_pylist() == [place for *_, place in sorted(expected)]
