"""The symmetric join against its reference, on random streams cut into random batches, with restarts between them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.changelog.errors import CountOverflow
from dovetail.joins.dataflow.ports import Ingest, JoinKind, Port
from dovetail.joins.operators.bidirectional import BidirectionalSpec
from dovetail.joins.reference.bidirectional import ReferenceJoin
from dovetail.joins.reference.rows import difference
from tests.joins.alone import Alone
from tests.joins.hard_stream import answers, ports
from tests.joins.harness import (
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


@settings(max_examples=tries(125))
@given(
    kind=st.sampled_from(BidirectionalSpec.kinds),
    kinds=st.tuples(st.sampled_from(INPUTS), st.sampled_from(INPUTS)),
    null_safe=st.booleans(),
    residual=st.booleans(),
    data=st.data(),
)
def test_it_is_the_reference(
    kind: JoinKind, kinds: tuple[Ingest, Ingest], null_safe: bool, residual: bool, data: st.DataObject
) -> None:
    left, right = kinds
    condition = LeftBelowRight() if residual else None
    hosted = Hosted(BidirectionalSpec(kind, port(LEFT, left), port(RIGHT, right), (null_safe,), condition))
    reference = ReferenceJoin(kind, side(left), side(right), (3, 3), (null_safe,))
    if residual:
        reference.condition = left_below_right
    agree(hosted, reference, data.draw(steps(records(left, *VALUES), records(right, *VALUES))))


@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL])
def test_a_pair_is_counted_as_often_as_it_is_there(kind: JoinKind) -> None:
    """50,000 equal rows on either side are 2.5 billion pairs: beyond 32 bits, where they once left no output at all."""
    alone = Alone(BidirectionalSpec(kind, port(LEFT, Ingest.CHANGELOG), port(RIGHT, Ingest.CHANGELOG)))
    many = 50_000
    left, right = (1, "a", 1), (1, "b", 2)
    total = alone.on_batch([(left, many)], [])
    total.update(alone.on_batch([], [(right, many)]))
    assert difference(total, Counter()) == Counter({left + right: many**2})
    alone.restart()
    assert alone.on_batch([(left, -1)], []) == Counter({left + right: -many})


@pytest.mark.parametrize("residual", [False, True])
def test_semi_and_anti_hold_one_row_for_each_key_and_each_pair_that_is_counted(residual: bool) -> None:
    """However often equal rows come; nothing is left of a row that has gone."""
    condition = LeftBelowRight() if residual else None
    left, right = port(LEFT, Ingest.CHANGES), Port(RIGHT.remove(1), ("r.k",), Ingest.CHANGES)
    narrow = right if residual else replace(right, schema=pa.schema([RIGHT.field("r.k")]))
    row = (1, 5) if residual else (1,)
    alone = Alone(BidirectionalSpec(JoinKind.SEMI, left, narrow, (), condition))
    assert not alone.on_batch([((1, "a", 1), 2)], [])
    given = [alone.on_batch([], [(row, 1)]) for _ in range(64)]
    assert given == [Counter({(1, "a", 1): 2}), *[Counter()] * 63]
    assert sum(len(run) for run in alone.store.runs["0.pairs" if residual else "0.right"]) < 8
    assert alone.on_batch([], [(row, -64)]) == Counter({(1, "a", 1): -2})
    alone.restart()
    assert alone.on_batch([((1, "a", 1), -2)], [(row, 1)]) == Counter()
    assert alone.held("0.left") == 0
    assert not residual or alone.held("0.pairs") == 0


def test_more_pairs_than_can_be_counted_are_refused() -> None:
    alone = Alone(BidirectionalSpec(JoinKind.INNER, port(LEFT, Ingest.CHANGES), port(RIGHT, Ingest.CHANGES)))
    alone.on_batch([((1, "a", 1), 2**40)], [])
    with pytest.raises(CountOverflow):
        alone.on_batch([], [((1, "b", 2), 2**40)])


def test_the_hard_stream() -> None:
    assert answers(BidirectionalSpec(JoinKind.FULL, *ports(Ingest.CHANGELOG, Ingest.CHANGELOG))) == [
        ["+ - n 10 | - - -", "+ 1 a 10 | 1 r 10", "+ 1 a 10 | 1 s 10", "+ 2 b - | 2 t 5"],
        ["+ - - - | - m 10", "+ 1 a 10 | 1 r 10", "- 1 a 10 | 1 s 10"],
        ["+ 1 a 10 | 1 w 25", "+ 1 e 30 | 1 r 10", "+ 1 e 30 | 1 w 25", "+ 3 c 20 | 3 u 18", "- 1 a 10 | 1 r 10"],
        [
            "+ 1 a 10 | 1 x 11",
            "+ 1 d 12 | 1 r 10",
            "+ 1 d 12 | 1 w 25",
            "+ 1 d 12 | 1 x 11",
            "+ 1 e 30 | 1 x 11",
        ],
        ["+ 4 z 99 | 4 y 99"],
    ]
