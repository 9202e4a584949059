"""Each operator against its reference, on random streams cut into random batches, with restarts between them."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from joins.dataflow import AsofOnce, Bidirectional, Enrichment, Ingest, JoinKind
from joins.local import LocalQuery
from joins.reference import Record, ReferenceAsof, ReferenceEnrichment, ReferenceJoin, ReferenceSide
from tests.joins.harness import LEFT, RIGHT, LeftBelowRight, dataflow, emitted, left_below_right, port

KEYED = (Ingest.UPSERT, Ingest.CHANGELOG_KV)
INPUTS = (Ingest.APPEND, Ingest.UPSERT, Ingest.CHANGELOG_KV, Ingest.CHANGELOG)
nullable_int = st.one_of(st.none(), st.integers(0, 3))


def records(ingest: Ingest) -> st.SearchStrategy[list[Record]]:
    """Few keys and values, so that rows meet, repeat and are retracted, sometimes without having been there."""
    key = st.integers(0, 3) if ingest in KEYED else nullable_int
    row = st.tuples(key, st.sampled_from(["a", "bb", "a longer text than a word"]), nullable_int)
    delta = st.just(1) if ingest is Ingest.APPEND else st.sampled_from([1, 1, 1, -1])
    return st.lists(st.tuples(row, delta), max_size=6)


def batches(left: Ingest, right: Ingest) -> st.SearchStrategy[list[tuple[list[Record], list[Record], bool]]]:
    return st.lists(st.tuples(records(left), records(right), st.booleans()), max_size=12)


def side(ingest: Ingest) -> ReferenceSide:
    return ReferenceSide(ingest, (0,), (0, 1))


@settings(max_examples=250, deadline=None)
@given(
    kind=st.sampled_from(JoinKind),
    kinds=st.tuples(st.sampled_from(INPUTS), st.sampled_from(INPUTS)),
    null_safe=st.booleans(),
    residual=st.booleans(),
    data=st.data(),
)
def test_bidirectional(
    kind: JoinKind, kinds: tuple[Ingest, Ingest], null_safe: bool, residual: bool, data: st.DataObject
) -> None:
    left, right = kinds
    operator = Bidirectional(
        kind, port(LEFT, left), port(RIGHT, right), (null_safe,), LeftBelowRight() if residual else None
    )
    query = LocalQuery(dataflow(operator))
    reference = ReferenceJoin(kind, side(left), side(right), (3, 3), (null_safe,))
    if residual:
        reference.condition = left_below_right
    standing: Counter[tuple[object, ...]] = Counter()
    for first, (left_records, right_records, restart) in enumerate(data.draw(batches(left, right))):
        changes = emitted(query, left_records, right_records, first * 100)
        assert changes == reference.on_batch(left_records, right_records)
        standing.update(changes)
        assert min(standing.values(), default=0) >= 0
        if restart:
            query.restart()


@settings(max_examples=120, deadline=None)
@given(
    kind=st.sampled_from([JoinKind.INNER, JoinKind.LEFT]),
    right=st.sampled_from(INPUTS),
    residual=st.booleans(),
    data=st.data(),
)
def test_enrichment(kind: JoinKind, right: Ingest, residual: bool, data: st.DataObject) -> None:
    operator = Enrichment(
        kind, port(LEFT, Ingest.APPEND), port(RIGHT, right), (), LeftBelowRight() if residual else None
    )
    query = LocalQuery(dataflow(operator))
    reference = ReferenceEnrichment(kind, (0,), side(right), 3)
    if residual:
        reference.condition = left_below_right
    for first, (left_records, right_records, restart) in enumerate(data.draw(batches(Ingest.APPEND, right))):
        assert emitted(query, left_records, right_records, first * 100) == reference.on_batch(
            left_records, right_records
        )
        if restart:
            query.restart()


@settings(max_examples=120, deadline=None)
@given(
    kind=st.sampled_from([JoinKind.INNER, JoinKind.LEFT]),
    comparison=st.sampled_from([">=", ">", "<=", "<"]),
    keep=st.integers(1, 3),
    data=st.data(),
)
def test_asof(kind: JoinKind, comparison: str, keep: int, data: st.DataObject) -> None:
    timed = st.lists(
        st.tuples(st.tuples(st.integers(0, 2), st.sampled_from("xyz"), st.integers(0, 9)), st.just(1)), max_size=6
    )
    operator = AsofOnce(kind, port(LEFT, Ingest.APPEND), port(RIGHT, Ingest.APPEND), "l.v", "r.w", comparison, keep)
    query = LocalQuery(dataflow(operator))
    reference = ReferenceAsof(kind, comparison, keep)
    drawn = data.draw(st.lists(st.tuples(timed, timed, st.booleans()), max_size=10))
    for first, (left, right, restart) in enumerate(drawn):
        turned = [[((k, t, i), d) for (k, i, t), d in part] for part in (left, right)]
        answers = reference.on_batch(*turned).items()
        expected = Counter({(a, c, b, d, f, e): count for (a, b, c, d, e, f), count in answers})
        assert emitted(query, left, right, first * 100) == expected
        if restart:
            query.restart()
