"""The laws of a changelog and of the joins over it."""

from __future__ import annotations

import itertools
from collections import Counter

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.changelog.changes import DELTA
from dovetail.joins.dataflow.ports import Ingest, JoinKind
from dovetail.joins.operators.bidirectional import BidirectionalSpec
from dovetail.joins.reference.bidirectional import ReferenceJoin
from dovetail.joins.reference.rows import Record, Row, difference
from tests.joins.harness import LEFT, RIGHT, Step, agree, net, poor_hashes, port, side, steps
from tests.joins.hosted import Hosted
from tests.tries import tries

rows = st.tuples(st.integers(0, 3), st.sampled_from("ab"), st.integers(0, 2))
streams: st.SearchStrategy[list[Record]] = st.lists(st.tuples(rows, st.just(1)), max_size=20)
INGESTS = st.sampled_from([Ingest.APPEND, Ingest.UPSERT])


def bidirectional(kind: JoinKind, ingest: Ingest) -> Hosted:
    return Hosted(BidirectionalSpec(kind, port(LEFT, ingest), port(RIGHT, ingest)))


def total(hosted: Hosted, left: list[Record], right: list[Record], cuts: list[int]) -> Counter[Row]:
    """The net output of the two streams when each is cut at ``cuts``."""
    result: Counter[Row] = Counter()
    bounds = [0, *sorted(cuts), max(len(left), len(right))]
    for low, high in itertools.pairwise(bounds):
        result.update(hosted.on_batch(left[low:high], right[low:high]))
    return difference(result, Counter())


@settings(max_examples=tries(30))
@given(kind=st.sampled_from(BidirectionalSpec.kinds), ingest=INGESTS, left=streams, right=streams, data=st.data())
def test_any_cut_into_batches_gives_the_same_total(
    kind: JoinKind, ingest: Ingest, left: list[Record], right: list[Record], data: st.DataObject
) -> None:
    cuts = data.draw(st.lists(st.integers(0, 20), max_size=5))
    whole = total(bidirectional(kind, ingest), left, right, [])
    assert total(bidirectional(kind, ingest), left, right, cuts) == whole


@settings(max_examples=tries(20))
@given(a=streams, b=streams, c=streams)
def test_an_inner_join_distributes_over_addition(a: list[Record], b: list[Record], c: list[Record]) -> None:
    def joined(left: list[Record]) -> Counter[Row]:
        return bidirectional(JoinKind.INNER, Ingest.APPEND).on_batch(left, c)

    assert joined(a + b) == joined(a) + joined(b)


@settings(max_examples=tries(30))
@given(kind=st.sampled_from(BidirectionalSpec.kinds), drawn=steps(streams, streams))
def test_equal_hashes_are_never_taken_for_equal_keys(kind: JoinKind, drawn: list[Step]) -> None:
    with poor_hashes():
        reference = ReferenceJoin(kind, side(Ingest.UPSERT), side(Ingest.UPSERT), (3, 3))
        agree(bidirectional(kind, Ingest.UPSERT), reference, drawn)


def test_equal_batches_give_equal_bytes() -> None:
    records = [((n % 7, "ab"[n % 2], n), 1) for n in range(500)]
    outputs = []
    for _ in range(2):
        hosted = bidirectional(JoinKind.FULL, Ingest.UPSERT)
        outputs.append([listed(hosted.rows(records[n : n + 50], records[n + 50 : n + 90])) for n in range(0, 400, 50)])
    assert outputs[0] == outputs[1]


def listed(rows: pa.Table | None) -> list[dict[str, object]]:
    return [] if rows is None else rows.to_pylist()


def test_net_ignores_rows_that_cancel() -> None:
    assert net(pa.table({"k": [1, 1, 2], DELTA: [1, -1, 1]})) == Counter({(2,): 1})
