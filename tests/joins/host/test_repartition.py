"""A state that is cut into another number of buckets: what comes after is what would have come without."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dovetail.changelog.changes import DELTA
from dovetail.changelog.errors import InternalError
from dovetail.joins.aggregates.aggregate import AggregateSpec
from dovetail.joins.aggregates.aggregation import Aggregation, Closing, Fold
from dovetail.joins.aggregates.sessions import SessionsSpec
from dovetail.joins.dataflow.ports import Ingest, JoinKind, Pad, Port, SetKind
from dovetail.joins.dataflow.specification import OperatorSpec
from dovetail.joins.host.repartition import Repartition
from dovetail.joins.inputs.arrival import ARRIVALS
from dovetail.joins.operators.asof import AsofSpec
from dovetail.joins.operators.asof_once import AsofOnceSpec
from dovetail.joins.operators.bidirectional import BidirectionalSpec
from dovetail.joins.operators.delta_joins.delta_step import DeltaProbe, DeltaStepSpec, KeptPart
from dovetail.joins.operators.dynamic_filter import DynamicFilterSpec, MovingBound
from dovetail.joins.operators.enrichment import EnrichmentSpec
from dovetail.joins.operators.keyed import KeyedSpec
from dovetail.joins.operators.latest import LatestSpec
from dovetail.joins.operators.multiway import MultiwaySpec, Repetition
from dovetail.joins.operators.one_shot import Alignment
from dovetail.joins.operators.range import Band, RangeSpec
from dovetail.joins.operators.registry import OPERATORS
from dovetail.joins.operators.set_operation import SetOperationSpec
from dovetail.joins.operators.temporal import TemporalSpec
from dovetail.joins.operators.union_all import UnionAllSpec
from dovetail.joins.partitions.ordering import Rank, SortKey
from dovetail.joins.partitions.over import OverSpec
from dovetail.joins.partitions.top_n import TopNSpec
from dovetail.joins.partitions.waiting import WaitingSpec
from dovetail.joins.reference.rows import Record, Row
from dovetail.joins.state.store import RunEntry
from tests.joins.harness import INPUTS, KEYED, LEFT, RIGHT, LeftBelowRight, after, port, records, table, watched
from tests.joins.hosted import Hosted, dataflow_of
from tests.joins.partitions.functions import PlacesAndSums
from tests.tries import tries

FOLDS = (
    Aggregation("n", Fold.COUNT, "", pa.int64()),
    Aggregation("s", Fold.SUM, "l.v", pa.int64()),
    Aggregation("d", Fold.COUNT, "l.v", pa.int64(), distinct=True),
    Aggregation("least", Fold.MIN, "l.v", pa.int64()),
)


def whole_rows(one: Port) -> Port:
    """Compared by all of their columns, which are the primary key where there is one."""
    keys = tuple(one.schema.names)
    return replace(one, keys=keys, primary_key=keys if one.primary_key else ())


def specs(ingest: Ingest) -> list[OperatorSpec]:
    left, right = port(LEFT, ingest), port(RIGHT, ingest)
    once = port(LEFT, Ingest.APPEND)
    band, wait = Band("l.v", "r.w", -1, 1), Alignment("l.v", 1)
    found: list[OperatorSpec] = [
        *(BidirectionalSpec(kind, left, right) for kind in BidirectionalSpec.kinds),
        *(BidirectionalSpec(kind, left, right, (True,), LeftBelowRight()) for kind in BidirectionalSpec.kinds),
        *(RangeSpec(kind, watched(left), watched(right), band) for kind in RangeSpec.kinds),
        *(AsofSpec(kind, left, right, "l.v", "r.w", ">=") for kind in AsofSpec.kinds),
        *(TemporalSpec(kind, watched(left), watched(right), "l.v", "r.w") for kind in TemporalSpec.kinds),
        *(EnrichmentSpec(kind, once, right) for kind in EnrichmentSpec.kinds),
        *(EnrichmentSpec(kind, once, replace(right, everywhere=True)) for kind in EnrichmentSpec.kinds),
        *(AsofOnceSpec(kind, once, right, "l.v", "r.w", ">=") for kind in AsofOnceSpec.kinds),
        *(LatestSpec(kind, once, right) for kind in (JoinKind.INNER, JoinKind.LEFT)),
        LatestSpec(JoinKind.FULL, port(LEFT, ingest), right),
        EnrichmentSpec(JoinKind.LEFT, once, watched(right), alignment=wait),
        AsofOnceSpec(JoinKind.LEFT, once, watched(right), "l.v", "r.w", ">=", alignment=wait),
        LatestSpec(JoinKind.LEFT, once, watched(right), alignment=wait),
        AggregateSpec(left, FOLDS, insertions=ingest is Ingest.APPEND),
        MultiwaySpec((left, right)),
        MultiwaySpec((left, right), (1,), (True,)),
        *(BidirectionalSpec(kind, left, right, right_as_left=AS_LEFT) for kind in BidirectionalSpec.kinds),
        *(
            BidirectionalSpec(kind, left, right, (True,), LeftBelowRight(), right_as_left=AS_LEFT)
            for kind in BidirectionalSpec.kinds
        ),
        MultiwaySpec((left, right), (1,), repetitions=(Repetition(1, 0, AS_LEFT),)),
        *(delta_step(left, right, null_safe) for null_safe in (False, True)),
        UnionAllSpec((left, left), LEFT),
        *(SetOperationSpec(kind, whole_rows(left), whole_rows(left)) for kind in SetKind),
        *(TopNSpec(left, (SortKey("l.v", True),), rank, 1, 2, number) for rank in Rank for number in ("", "n")),
        TopNSpec(left, (SortKey("l.v"),), Rank.ROW_NUMBER, 2, 3, insertions=ingest is Ingest.APPEND),
        TopNSpec(replace(left, keys=()), (SortKey("l.id"),), Rank.RANK, 1, 2),
        OverSpec(left, PlacesAndSums(("l.v", "l.id"))),
        WaitingSpec(watched(left), Closing("l.v", 0)),
        SessionsSpec(left, "l.v", 2, "start", "end"),
        SessionsSpec(replace(left, keys=()), "l.v", 2, "start", "end", 3),
        AggregateSpec(replace(left, keys=()), FOLDS, insertions=ingest is Ingest.APPEND),
    ]
    if ingest is Ingest.APPEND:
        found += [RangeSpec(kind, watched(left), watched(right), band, append=True) for kind in RangeSpec.kinds]
        found += [AsofSpec(kind, watched(left), watched(right), "l.v", "r.w", "<=") for kind in AsofSpec.kinds]
        found += [
            SessionsSpec(watched(left), "l.v", 2, "start", "end", longest, closing=0, closed=closed)
            for closed in (False, True)
            for longest in (None, 3)
        ]
        by_time = replace(watched(left), keys=("l.v",))
        found += [
            AggregateSpec(by_time, FOLDS[:1], insertions=True, closing=Closing("l.v", 0), closed=closed)
            for closed in (False, True)
        ]
    found += [
        RangeSpec(kind, watched(left), watched(right), band, closed=True, pad=pad)
        for kind in RangeSpec.kinds
        for pad in Pad
    ]
    return [*found, KeyedSpec(left)] if ingest in KEYED else found


def delta_step(left: Port, right: Port, null_safe: bool) -> DeltaStepSpec:
    """The paths of two inputs, which meet each other."""
    kept = KeptPart(0, (null_safe,)), KeptPart(1, (null_safe,))
    probes = DeltaProbe(0, 1, after=False), DeltaProbe(1, 0, after=True)
    return DeltaStepSpec((left, right), kept, probes, pa.schema([*left.schema, *right.schema]))


AS_LEFT = tuple(zip(RIGHT.names, LEFT.names, strict=True))
Step = tuple[list[Record], list[Record], int]
"""A batch of both inputs, and how many buckets there are after it."""


def drawn_steps(ingest: Ingest) -> st.SearchStrategy[list[Step]]:
    """Times rise from batch to batch, so that rows wait, leave, and go."""

    def rows(of: Ingest) -> st.SearchStrategy[list[Record]]:
        return records(of, st.sampled_from("ab"), st.none() | st.integers(0, 3))

    step = st.tuples(rows(ingest), rows(ingest), st.sampled_from([1, 2, 3, 5]))
    return st.lists(step, min_size=2, max_size=5)


def risen(steps: Iterable[Step]) -> list[Step]:
    return [(after(left, 2 * n), after(right, 2 * n), buckets) for n, (left, right, buckets) in enumerate(steps)]


def suits(spec: OperatorSpec, steps: list[Step]) -> list[Step]:
    """Of an input that is never taken back the insertions."""
    plain = [one.ingest is Ingest.APPEND for one in spec.ports]
    return [
        (
            [record for record in left if record[1] > 0 or not plain[0]],
            [record for record in right if record[1] > 0 or not plain[-1]],
            buckets,
        )
        for left, right, buckets in steps
    ]


@pytest.mark.parametrize("ingest", INPUTS)
@settings(max_examples=tries(15))
@given(data=st.data())
def test_what_comes_after_is_what_would_have_come_without(ingest: Ingest, data: st.DataObject) -> None:
    spec = data.draw(st.sampled_from(specs(ingest)))
    whole, rescaled, content = Hosted(spec), Hosted(spec), Counter[Row]()
    for left, right, buckets in suits(spec, risen(data.draw(drawn_steps(ingest)))):
        changes = rescaled.on_batch(left, right)
        assert changes == whole.on_batch(left, right)
        content.update(changes)
        assert min(content.values(), default=0) >= 0
        rescaled.rescale(buckets)
        whole.restart()


BOUND = Port(pa.schema([("r.b", pa.int64())]), (), Ingest.CHANGES, everywhere=True)


@pytest.mark.parametrize("keys", [("l.k",), ()], ids=["keyed", "keyless"])
@settings(max_examples=tries(15))
@given(data=st.data())
def test_a_row_that_all_buckets_hold_comes_into_all_of_them(keys: tuple[str, ...], data: st.DataObject) -> None:
    spec = DynamicFilterSpec(
        data.draw(st.sampled_from(DynamicFilterSpec.kinds)),
        replace(port(LEFT, Ingest.APPEND), keys=keys),
        BOUND,
        bound=data.draw(st.none() | st.just(MovingBound("l.v", ">", "r.b"))),
        condition=AboveBound(),
    )
    whole, rescaled, held = Hosted(spec), Hosted(spec), None
    rows = st.lists(st.tuples(st.integers(0, 5), st.just("a"), st.none() | st.integers(0, 3)), max_size=8)
    for left, bound, buckets in data.draw(
        st.lists(st.tuples(rows, st.none() | st.integers(0, 3), st.sampled_from([1, 2, 3, 5])), min_size=2, max_size=5)
    ):
        moved: list[Record] = [] if held is None else [((held,), -1)]
        moved += [] if bound is None else [((bound,), 1)]
        records_of = [(row, 1) for row in left]
        assert rescaled.on_batch(records_of, moved) == whole.on_batch(records_of, moved)
        held = bound
        rescaled.rescale(buckets)
        whole.restart()


@dataclass(frozen=True)
class AboveBound:
    """``l.v > r.b``"""

    def __call__(self, rows: pa.Table) -> npt.NDArray[np.bool_]:
        holds: npt.NDArray[np.bool_] = pc.fill_null(
            pc.greater(rows.column("l.v"), rows.column("r.b")), False
        ).to_numpy()
        return holds


def test_every_operator_is_among_them() -> None:
    assert {type(spec) for ingest in INPUTS for spec in specs(ingest)} | {DynamicFilterSpec} == set(OPERATORS)


KEYS = pa.schema([("l.k", pa.int64()), ("l.id", pa.string()), ("l.v", pa.int64())])


def repartition(before: int, after: int) -> Repartition:
    spec = BidirectionalSpec(JoinKind.INNER, port(LEFT, Ingest.APPEND), port(RIGHT, Ingest.APPEND))
    return Repartition(dataflow_of(spec), 1, before, after)


def entry(keys: Iterable[int], arrangement: str = "0.left") -> RunEntry:
    rows = table(KEYS, [(key, "a", 1) for key in keys])
    return RunEntry(arrangement, rows.append_column(DELTA, pa.array([1] * rows.num_rows, pa.int64())))


def test_each_row_comes_into_one_bucket_and_stays_in_it() -> None:
    """Back and forth: what is cut into three and then into one bucket again is what it was."""
    pieces = list(repartition(1, 3).parts(0, entry(range(100))))
    assert {bucket for bucket, _ in pieces} == {0, 1, 2}
    again = [piece for bucket, one in pieces for _, piece in repartition(3, 1).parts(bucket, one)]
    assert sorted(key for piece in again for key in piece.table.column("l.k").to_pylist()) == list(range(100))


def test_rows_that_are_in_no_bucket_of_theirs_are_not_scattered_further() -> None:
    [_, (bucket, piece), *_] = repartition(1, 3).parts(0, entry(range(100)))
    with pytest.raises(InternalError, match="holds rows of other buckets"):
        list(repartition(3, 2).parts((bucket + 1) % 3, piece))


def test_rows_that_no_operator_keeps_are_refused() -> None:
    with pytest.raises(InternalError, match=r'keeps nothing under "7\.left"'):
        list(repartition(2, 3).parts(0, entry([1], "7.left")))


def test_arrivals_go_on_after_the_greatest() -> None:
    numbers = [{f"{ARRIVALS}0": 4, "watermark.1": 9, "next_id": 3}, {f"{ARRIVALS}0": 6, "watermark.1": 9, "next_id": 5}]
    assert repartition(2, 3).scalars(numbers) == {f"{ARRIVALS}0": 6, "watermark.1": 9}
    assert repartition(2, 3).scalars([]) == {}


@example(9, 8)
@given(st.integers(), st.integers())
def test_buckets_that_do_not_agree_how_far_time_has_come_are_refused(one: int, other: int) -> None:
    numbers = [{"watermark.1": one}, {"watermark.1": other}]
    if one == other:
        assert repartition(2, 3).scalars(numbers) == {"watermark.1": one}
    else:
        with pytest.raises(InternalError, match=r"do not agree in watermark\.1"):
            repartition(2, 3).scalars(numbers)
