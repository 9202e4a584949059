"""Each operator against its reference, on random streams cut into random batches, with restarts between them."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from joins.dataflow.ports import Ingest, JoinKind
from joins.operators.asof_once import AsofOnceSpec
from joins.operators.bidirectional import BidirectionalSpec
from joins.operators.enrichment import EnrichmentSpec
from joins.reference.asof_once import ReferenceAsof
from joins.reference.bidirectional import ReferenceJoin
from joins.reference.enrichment import ReferenceEnrichment
from joins.reference.rows import Record
from tests.joins.harness import (
    COMPARISONS,
    INNER_OR_LEFT,
    INPUTS,
    LEFT,
    RIGHT,
    LeftBelowRight,
    Step,
    agree,
    left_below_right,
    port,
    records,
    side,
    steps,
)
from tests.joins.hosted import Hosted

COLUMNS = st.sampled_from(["a", "bb", "a longer text than a word"]), st.one_of(st.none(), st.integers(0, 3))


@settings(max_examples=250, deadline=None)
@given(
    kind=st.sampled_from(BidirectionalSpec.kinds),
    kinds=st.tuples(st.sampled_from(INPUTS), st.sampled_from(INPUTS)),
    null_safe=st.booleans(),
    residual=st.booleans(),
    data=st.data(),
)
def test_bidirectional(
    kind: JoinKind, kinds: tuple[Ingest, Ingest], null_safe: bool, residual: bool, data: st.DataObject
) -> None:
    left, right = kinds
    condition = LeftBelowRight() if residual else None
    hosted = Hosted(BidirectionalSpec(kind, port(LEFT, left), port(RIGHT, right), (null_safe,), condition))
    reference = ReferenceJoin(kind, side(left), side(right), (3, 3), (null_safe,))
    if residual:
        reference.condition = left_below_right
    agree(hosted, reference, data.draw(steps(records(left, *COLUMNS), records(right, *COLUMNS))))


@settings(max_examples=120, deadline=None)
@given(kind=INNER_OR_LEFT, right=st.sampled_from(INPUTS), residual=st.booleans(), data=st.data())
def test_enrichment(kind: JoinKind, right: Ingest, residual: bool, data: st.DataObject) -> None:
    condition = LeftBelowRight() if residual else None
    hosted = Hosted(EnrichmentSpec(kind, port(LEFT, Ingest.APPEND), port(RIGHT, right), (), condition))
    reference = ReferenceEnrichment(kind, (0,), side(right), 3)
    if residual:
        reference.condition = left_below_right
    agree(hosted, reference, data.draw(steps(records(Ingest.APPEND, *COLUMNS), records(right, *COLUMNS))))


timed: st.SearchStrategy[list[Record]] = st.lists(
    st.tuples(st.tuples(st.integers(0, 2), st.sampled_from("xyz"), st.integers(0, 9)), st.just(1)), max_size=6
)


@settings(max_examples=120, deadline=None)
@given(kind=INNER_OR_LEFT, comparison=st.sampled_from(COMPARISONS), keep=st.integers(1, 3), drawn=steps(timed, timed))
def test_asof(kind: JoinKind, comparison: str, keep: int, drawn: list[Step]) -> None:
    """The reference has its rows as (key, time, id)."""
    hosted = Hosted(
        AsofOnceSpec(kind, port(LEFT, Ingest.APPEND), port(RIGHT, Ingest.APPEND), "l.v", "r.w", comparison, keep)
    )
    reference = ReferenceAsof(kind, comparison, keep)
    for left, right, restart in drawn:
        turned = [[((k, t, i), d) for (k, i, t), d in part] for part in (left, right)]
        answers = reference.on_batch(*turned).items()
        expected = Counter({(a, c, b, d, f, e): count for (a, b, c, d, e, f), count in answers})
        assert hosted.on_batch(left, right) == expected
        if restart:
            hosted.restart()
