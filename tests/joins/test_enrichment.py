"""The enrichment join against its reference: one-shot, with all right rows of the key."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.joins.dataflow.ports import Ingest, JoinKind
from dovetail.joins.operators.enrichment import EnrichmentSpec
from dovetail.joins.operators.one_shot import Alignment
from dovetail.joins.reference.enrichment import ReferenceEnrichment
from tests.joins.alone import Alone
from tests.joins.hard_stream import answers, ports
from tests.joins.harness import (
    IDS,
    INNER_OR_LEFT,
    INPUTS,
    LEFT,
    RIGHT,
    VALUES,
    LeftBelowRight,
    agree,
    left_below_right,
    port,
    records,
    side,
    steps,
)
from tests.joins.hosted import Hosted
from tests.tries import tries


@settings(max_examples=tries(60))
@given(kind=INNER_OR_LEFT, right=st.sampled_from(INPUTS), residual=st.booleans(), data=st.data())
def test_it_is_the_reference(kind: JoinKind, right: Ingest, residual: bool, data: st.DataObject) -> None:
    condition = LeftBelowRight() if residual else None
    hosted = Hosted(EnrichmentSpec(kind, port(LEFT, Ingest.APPEND), port(RIGHT, right), (), condition))
    reference = ReferenceEnrichment(kind, (0,), side(right), 3)
    if residual:
        reference.condition = left_below_right
    agree(
        hosted,
        reference,
        data.draw(steps(records(Ingest.APPEND, *VALUES), records(right, *VALUES))),
    )


def up_to(latest: int) -> st.SearchStrategy[int | None]:
    return st.one_of(st.integers(0, latest), st.none())


@settings(max_examples=tries(40))
@given(
    kind=st.sampled_from([JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK]),
    right=st.sampled_from(INPUTS),
    residual=st.booleans(),
    data=st.data(),
)
def test_of_left_rows_alone(kind: JoinKind, right: Ingest, residual: bool, data: st.DataObject) -> None:
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


def test_the_hard_stream() -> None:
    assert answers(EnrichmentSpec(JoinKind.LEFT, *ports(Ingest.APPEND, Ingest.CHANGELOG))) == [
        ["+ - n 10 | - - -", "+ 1 a 10 | 1 r 10", "+ 1 a 10 | 1 s 10", "+ 2 b - | 2 t 5"],
        ["+ 1 a 10 | 1 r 10"],
        ["+ 1 e 30 | 1 r 10", "+ 1 e 30 | 1 w 25", "+ 3 c 20 | 3 u 18"],
        ["+ 1 d 12 | 1 r 10", "+ 1 d 12 | 1 w 25", "+ 1 d 12 | 1 x 11"],
        ["+ 4 z 99 | 4 y 99"],
    ]


@pytest.mark.parametrize(
    ("kind", "left_rows"),
    [
        (JoinKind.SEMI, [["+ 1 a 10", "+ 2 b -"], ["+ 1 a 10"], ["+ 1 e 30", "+ 3 c 20"], ["+ 1 d 12"], ["+ 4 z 99"]]),
        (JoinKind.ANTI, [["+ - n 10"], [], [], [], []]),
        (
            JoinKind.MARK,
            [
                ["+ - n 10 | False", "+ 1 a 10 | True", "+ 2 b - | True"],
                ["+ 1 a 10 | True"],
                ["+ 1 e 30 | True", "+ 3 c 20 | True"],
                ["+ 1 d 12 | True"],
                ["+ 4 z 99 | True"],
            ],
        ),
    ],
)
def test_the_hard_stream_of_left_rows(kind: JoinKind, left_rows: list[list[str]]) -> None:
    assert answers(EnrichmentSpec(kind, *ports(Ingest.APPEND, Ingest.CHANGELOG))) == left_rows
