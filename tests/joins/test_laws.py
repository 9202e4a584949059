"""The laws of a changelog and of the joins over it."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import changelog.rows
import joins.arrangement
from changelog.changes import DELTA
from changelog.hashing import Hashes, row_hashes
from joins.dataflow import Bidirectional, Ingest, JoinKind
from joins.local import LocalQuery
from joins.reference import Record, ReferenceJoin, ReferenceSide
from tests.joins.harness import LEFT, RIGHT, dataflow, decoded, emitted, net, port

rows = st.tuples(st.integers(0, 3), st.sampled_from("ab"), st.integers(0, 2))
streams = st.lists(st.tuples(rows, st.just(1)), max_size=20)
KEYED = st.sampled_from([Ingest.APPEND, Ingest.UPSERT])


def bidirectional(kind: JoinKind, ingest: Ingest) -> LocalQuery:
    return LocalQuery(dataflow(Bidirectional(kind, port(LEFT, ingest), port(RIGHT, ingest))))


def total(query: LocalQuery, left: list[Record], right: list[Record], cuts: list[int]) -> Counter[tuple[object, ...]]:
    """The net output of the two streams when each is cut at ``cuts``."""
    result: Counter[tuple[object, ...]] = Counter()
    bounds = [0, *sorted(cuts), max(len(left), len(right))]
    for low, high in itertools.pairwise(bounds):
        result.update(emitted(query, left[low:high], right[low:high], low))
    return Counter({row: count for row, count in result.items() if count})


@settings(max_examples=60, deadline=None)
@given(kind=st.sampled_from(JoinKind), ingest=KEYED, left=streams, right=streams, data=st.data())
def test_any_cut_into_batches_gives_the_same_total(
    kind: JoinKind, ingest: Ingest, left: list[Record], right: list[Record], data: st.DataObject
) -> None:
    cuts = data.draw(st.lists(st.integers(0, 20), max_size=5))
    whole = total(bidirectional(kind, ingest), left, right, [])
    assert total(bidirectional(kind, ingest), left, right, cuts) == whole


@settings(max_examples=40, deadline=None)
@given(a=streams, b=streams, c=streams)
def test_an_inner_join_distributes_over_addition(a: list[Record], b: list[Record], c: list[Record]) -> None:
    def joined(left: list[Record]) -> Counter[tuple[object, ...]]:
        return emitted(bidirectional(JoinKind.INNER, Ingest.APPEND), left, c, 0)

    assert joined(a + b) == joined(a) + joined(b)


@settings(max_examples=60, deadline=None)
@given(kind=st.sampled_from(JoinKind), left=st.lists(streams, max_size=8), right=st.lists(streams, max_size=8))
def test_equal_hashes_are_never_taken_for_equal_keys(
    kind: JoinKind, left: list[list[Record]], right: list[list[Record]]
) -> None:
    """All rows share one of two hashes here, so that everything collides."""

    def poor(table: pa.Table, columns: list[str]) -> Hashes:
        return row_hashes(table, columns) % np.uint64(2) << np.uint64(40)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joins.arrangement, "row_hashes", poor)
        patch.setattr(changelog.rows, "row_hashes", poor)
        query = bidirectional(kind, Ingest.UPSERT)
        sides = [ReferenceSide(Ingest.UPSERT, (0,), (0, 1)) for _ in range(2)]
        reference = ReferenceJoin(kind, sides[0], sides[1], (3, 3))
        for first, (a, b) in enumerate(zip(left, right, strict=False)):
            assert emitted(query, a, b, first * 100) == reference.on_batch(a, b)


def test_equal_batches_give_equal_bytes() -> None:
    records = [((n % 7, "ab"[n % 2], n), 1) for n in range(500)]
    outputs = []
    for _ in range(2):
        query = bidirectional(JoinKind.FULL, Ingest.UPSERT)
        outputs.append(
            [emitted_rows(query, records[n : n + 50], records[n + 50 : n + 90], n) for n in range(0, 400, 50)]
        )
    assert outputs[0] == outputs[1]


def emitted_rows(
    query: LocalQuery, left: Sequence[Record], right: Sequence[Record], first: int
) -> list[dict[str, object]]:
    rows = query.feed({0: decoded(LEFT, left, first), 1: decoded(RIGHT, right, first)})
    return [] if rows is None else rows.to_pylist()


def test_net_ignores_rows_that_cancel() -> None:
    assert net(pa.table({"k": [1, 1, 2], DELTA: [1, -1, 1]})) == Counter({(2,): 1})
