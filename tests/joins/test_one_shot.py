"""One-shot joins against their references: SEMI and ANTI, what alignment holds back, what ASOF keeps for it."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.dataflow.ports import Ingest, JoinKind
from joins.operators.asof_once import AsofOnceSpec
from joins.operators.enrichment import EnrichmentSpec
from joins.operators.one_shot import Alignment
from joins.reference.arrival import Arrived, always
from joins.reference.asof_aligned import ReferenceAsofAligned
from joins.reference.enrichment import ReferenceEnrichment
from tests.joins.alone import Alone
from tests.joins.harness import (
    COMPARISONS,
    IDS,
    INNER_OR_LEFT,
    INPUTS,
    LEFT,
    RIGHT,
    LeftBelowRight,
    agree,
    left_below_right,
    port,
    records,
    side,
    steps,
)


def up_to(latest: int) -> st.SearchStrategy[int | None]:
    return st.one_of(st.integers(0, latest), st.none())


@settings(max_examples=80, deadline=None)
@given(
    kind=st.sampled_from([JoinKind.SEMI, JoinKind.ANTI]),
    right=st.sampled_from(INPUTS),
    residual=st.booleans(),
    data=st.data(),
)
def test_semi_and_anti_give_left_rows_alone(kind: JoinKind, right: Ingest, residual: bool, data: st.DataObject) -> None:
    condition = LeftBelowRight() if residual else None
    alone = Alone(EnrichmentSpec(kind, port(LEFT, Ingest.APPEND), port(RIGHT, right), (), condition))
    reference = ReferenceEnrichment(kind, (0,), side(right), 3)
    if residual:
        reference.condition = left_below_right
    agree(alone, reference, data.draw(steps(records(Ingest.APPEND, IDS, up_to(3)), records(right, IDS, up_to(3)))))


def test_a_left_row_without_a_key_matches_nothing() -> None:
    for kind, given_row in [(JoinKind.SEMI, 0), (JoinKind.ANTI, 1)]:
        alone = Alone(EnrichmentSpec(kind, port(LEFT, Ingest.APPEND), port(RIGHT, Ingest.APPEND)))
        changes = alone.on_batch([((None, "x", 1), 1)], [((None, "a", 1), 1)])
        assert sum(changes.values()) == given_row


@settings(max_examples=120, deadline=None)
@given(
    kind=INNER_OR_LEFT,
    comparison=st.sampled_from(COMPARISONS),
    keep=st.integers(1, 3),
    lag=st.integers(1, 3),
    residual=st.booleans(),
    data=st.data(),
)
def test_aligned_asof_is_the_reference(
    kind: JoinKind, comparison: str, keep: int, lag: int, residual: bool, data: st.DataObject
) -> None:
    alone = Alone(
        AsofOnceSpec(
            kind,
            port(LEFT, Ingest.APPEND),
            port(RIGHT, Ingest.APPEND),
            "l.v",
            "r.w",
            comparison,
            keep,
            LeftBelowRight() if residual else None,
            alignment=Alignment("l.v", lag),
        )
    )
    condition = left_below_right if residual else always
    right = Arrived(Ingest.APPEND, (0,))
    reference = ReferenceAsofAligned(kind, (0,), right, (3, 3), (2, 2), comparison, keep, lag, condition)
    silent, reached = data.draw(st.integers(0, 3)), 0
    moves = st.sampled_from([0, 1, 2, 5])
    rows = records(Ingest.APPEND, IDS, up_to(20))
    drawn = data.draw(st.lists(st.tuples(rows, rows, moves, st.booleans()), max_size=12))
    for step, (left_records, right_records, move, restart) in enumerate(drawn):
        assert alone.on_batch(left_records, right_records) == reference.on_batch(left_records, right_records)
        reached += move
        watermark = None if step < silent else reached
        assert alone.on_watermark(None, watermark) == reference.on_watermark((None, watermark))
        if restart:
            alone.restart()


@pytest.mark.parametrize("kind", [JoinKind.LEFT, JoinKind.ANTI])
def test_an_aligned_left_row_is_answered_from_what_is_held_then(kind: JoinKind) -> None:
    left, right = port(LEFT, Ingest.APPEND), port(RIGHT, Ingest.UPSERT)
    alone = Alone(EnrichmentSpec(kind, left, right, alignment=Alignment("l.v", 2)))
    alone.on_batch([((1, "x", 5), 1), ((1, "y", 6), 1)], [])
    assert alone.on_watermark(None, 6) == Counter()
    assert alone.on_watermark(None, 7) == Counter({(1, "x", 5, *((None,) * 3 if kind is JoinKind.LEFT else ())): 1})
    alone.restart()
    alone.on_batch([], [((1, "a", 7), 1)])
    expected = Counter({(1, "y", 6, 1, "a", 7): 1}) if kind is JoinKind.LEFT else Counter()
    assert alone.on_watermark(None, 8) == expected


def test_versions_that_a_waiting_row_asks_for_stay_until_it_is_answered() -> None:
    left, right = port(LEFT, Ingest.APPEND), port(RIGHT, Ingest.APPEND)
    alone = Alone(AsofOnceSpec(JoinKind.LEFT, left, right, "l.v", "r.w", ">=", 1, alignment=Alignment("l.v", 1)))
    alone.on_batch([((1, "x", 5), 1)], [((1, "a", at), 1) for at in range(20)])
    assert alone.held("0.right") == 15, "those from 5 on; 5 itself is the newest that is not after the left row"
    assert alone.on_watermark(None, 10) == Counter({(1, "x", 5, 1, "a", 5): 1})
    assert alone.held("0.right") == 1


def test_a_row_that_waits_by_another_time_than_it_asks_by_keeps_all_versions() -> None:
    left, right = port(LEFT.append(pa.field("l.at", pa.int64())), Ingest.APPEND), port(RIGHT, Ingest.APPEND)
    alone = Alone(AsofOnceSpec(JoinKind.LEFT, left, right, "l.v", "r.w", ">=", 1, alignment=Alignment("l.at", 1)))
    alone.on_batch([((1, "x", 2, 50), 1)], [((1, "a", at), 1) for at in range(20)])
    assert alone.on_watermark(None, 51) == Counter({(1, "x", 2, 50, 1, "a", 2): 1})
    assert alone.held("0.right") == 1
