"""The symmetric join against its reference, on random streams cut into random batches, with restarts between them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from joins.dataflow.ports import Ingest, JoinKind
from joins.operators.bidirectional import BidirectionalSpec
from joins.reference.bidirectional import ReferenceJoin
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


@settings(max_examples=250, deadline=None)
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
