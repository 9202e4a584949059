"""The join with one row that changes against its reference: any bound, any type, any batches, with restarts."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.changelog.errors import InternalError
from dovetail.joins.dataflow.ports import Ingest, JoinKind, Port
from dovetail.joins.operators.dynamic_filter import DynamicFilterSpec, MovingBound
from dovetail.joins.reference.dynamic_filter import ReferenceDynamicFilter
from dovetail.joins.reference.rows import HOLDS, Record, Row
from tests.joins.alone import Alone
from tests.joins.harness import COMPARISONS, INPUTS, LEFT, Step, agree, port, records, side
from tests.joins.hosted import Hosted
from tests.nasty import canonical
from tests.tries import tries

NAN = float("nan")
FLOATS: list[object] = [None, -0.0, 0.0, 1.5, -1.5, float("inf"), float("-inf"), NAN]
INTEGERS: list[object] = [None, -(2**63), -1, 0, 1, 2**63 - 1]
UNSIGNED: list[object] = [None, 0, 2**63, 2**64 - 1]
KINDS = {pa.int64(): INTEGERS, pa.float64(): FLOATS, pa.uint64(): UNSIGNED}


@dataclass(frozen=True)
class Compared:
    """``l.v <comparison> r.b`` as a condition, NaN above all numbers; picklable."""

    comparison: str

    def __call__(self, rows: pa.Table) -> npt.NDArray[np.bool_]:
        pairs = zip(rows.column("l.v").to_pylist(), rows.column("r.b").to_pylist(), strict=True)
        return np.array([self.of(one, other) for one, other in pairs], dtype=np.bool_)

    def of(self, one: object, other: object) -> bool:
        return one is not None and other is not None and HOLDS[self.comparison](_rank(one), _rank(other))


def _rank(value: object) -> tuple[bool, object]:
    """Of NaN there is also the one of ``canonical``, which is no float."""
    number = isinstance(value, int | float) and value == value
    return not number, value if number else 0


def bounds(values: Sequence[object]) -> st.SearchStrategy[list[list[Record]]]:
    """What the right side holds after each batch, as the changes of an aggregate: one row, or none."""

    def changes(held: list[object]) -> list[list[Record]]:
        found: list[list[Record]] = []
        before: object = ()
        for now in held:
            part: list[Record] = [] if before == () else [((before,), -1)]
            found.append([] if now == before else [*part, *([] if now == () else [((now,), 1)])])
            before = now
        return found

    return st.lists(st.sampled_from([(), *values]), min_size=12, max_size=12).map(changes)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@settings(max_examples=tries(30))
@given(
    join=st.sampled_from(DynamicFilterSpec.kinds),
    ingest=st.sampled_from([*INPUTS, Ingest.CHANGES]),
    comparison=st.sampled_from(COMPARISONS),
    data=st.data(),
)
def test_it_is_the_reference(
    kind: pa.DataType, join: JoinKind, ingest: Ingest, comparison: str, data: st.DataObject
) -> None:
    values = KINDS[kind]
    taken = Ingest.CHANGELOG if ingest is Ingest.CHANGES else ingest
    schema = pa.schema([*list(LEFT)[:2], pa.field("l.v", kind)])
    right = Port(pa.schema([pa.field("r.b", kind)]), (), Ingest.CHANGES)
    bound = data.draw(st.sampled_from([None, MovingBound("l.v", comparison, "r.b")]))
    spec = DynamicFilterSpec(join, port(schema, taken), right, Compared(comparison), bound)
    reference = ReferenceDynamicFilter(join, side(taken), side(Ingest.CHANGELOG), 1)
    reference.condition = lambda left, right: Compared(comparison).of(left[2], right[0])
    moves = data.draw(bounds(values))
    lefts = data.draw(st.lists(records(taken, st.sampled_from("ab"), st.sampled_from(values)), max_size=12))
    drawn: list[Step] = [(left, move, data.draw(st.booleans())) for left, move in zip(lefts, moves, strict=False)]
    agree(Alone(spec), Normal(reference), drawn)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@settings(max_examples=tries(30))
@given(ingest=st.sampled_from([*INPUTS, Ingest.CHANGES]), comparison=st.sampled_from(COMPARISONS), data=st.data())
def test_behind_a_bound_that_rises_it_is_the_reference_and_holds_nothing(
    kind: pa.DataType, ingest: Ingest, comparison: str, data: st.DataObject
) -> None:
    """The bound is not there at first, then never falls; rows behind it come, and are taken back, as others do."""
    values = KINDS[kind]
    taken = Ingest.CHANGELOG if ingest is Ingest.CHANGES else ingest
    schema = pa.schema([*list(LEFT)[:2], pa.field("l.v", kind)])
    right = Port(pa.schema([pa.field("r.b", kind)]), (), Ingest.CHANGES)
    spec = DynamicFilterSpec(
        JoinKind.SEMI, port(schema, taken), right, Compared(comparison), MovingBound("l.v", comparison, "r.b", True)
    )
    reference = ReferenceDynamicFilter(JoinKind.SEMI, side(taken), side(Ingest.CHANGELOG), 1)
    reference.condition = lambda left, right: Compared(comparison).of(left[2], right[0])
    known = sorted((value for value in values if value is not None), key=_rank)
    places = sorted(data.draw(st.lists(st.integers(-1, len(known) - 1), min_size=12, max_size=12)))
    moves: list[list[Record]] = []
    for before, now in itertools.pairwise([-1, *places]):
        gone: list[Record] = [] if before in (-1, now) else [((known[before],), -1)]
        moves.append([*gone, *([] if now in (-1, before) else [((known[now],), 1)])])
    lefts = data.draw(st.lists(records(taken, st.sampled_from("ab"), st.sampled_from(values)), max_size=12))
    drawn: list[Step] = [(left, move, data.draw(st.booleans())) for left, move in zip(lefts, moves, strict=False)]
    alone = Alone(spec)
    agree(alone, Normal(reference), drawn)
    if drawn and (place := places[len(drawn) - 1]) >= 0:
        content = Normal(reference).inner.left.content
        waiting = [row for row in content if row[2] is not None and _rank(row[2]) >= _rank(canonical(known[place]))]
        assert alone.held("0.left") == sum(content[row] for row in waiting)


@dataclass
class Normal:
    """The reference, of which -0.0 is 0.0 and NaN itself."""

    inner: ReferenceDynamicFilter

    def on_batch(self, left: Sequence[Record], right: Sequence[Record], /) -> Counter[Row]:
        def normal(part: Sequence[Record]) -> list[Record]:
            return [(tuple(map(canonical, row)), delta) for row, delta in part]

        return self.inner.on_batch(normal(left), normal(right))


def test_only_rows_between_the_bounds_are_looked_at() -> None:
    looked: list[int] = []

    @dataclass(frozen=True)
    class Seen(Compared):
        def __call__(self, rows: pa.Table) -> npt.NDArray[np.bool_]:
            looked.append(rows.num_rows)
            return super().__call__(rows)

    right = Port(pa.schema([("r.b", pa.int64())]), (), Ingest.CHANGES)
    bound = MovingBound("l.v", ">", "r.b")
    alone = Alone(DynamicFilterSpec(JoinKind.SEMI, port(LEFT, Ingest.CHANGES), right, Seen(">"), bound))
    alone.on_batch([((1, "a", n), 1) for n in range(1000)], [((10,), 1)])
    looked.clear()
    assert sum(alone.on_batch([], [((10,), -1), ((13,), 1)]).values()) == -3
    assert looked == [4, 4]


def test_the_row_reaches_every_bucket() -> None:
    right = Port(pa.schema([("r.b", pa.int64())]), (), Ingest.CHANGES, everywhere=True)
    hosted = Hosted(DynamicFilterSpec(JoinKind.SEMI, port(LEFT, Ingest.APPEND), right, Compared(">"), None))
    rows: list[Row] = [(n, "a", n) for n in range(20)]
    assert len(hosted.on_batch([(row, 1) for row in rows], [((4,), 1)])) == 15
    hosted.restart()
    assert set(hosted.on_batch([], [((4,), -1), ((2,), 1)])) == {(3, "a", 3), (4, "a", 4)}


def test_a_second_row_is_no_row_of_an_aggregate() -> None:
    right = Port(pa.schema([("r.b", pa.int64())]), (), Ingest.CHANGES)
    alone = Alone(DynamicFilterSpec(JoinKind.INNER, port(LEFT, Ingest.CHANGES), right))
    with pytest.raises(InternalError, match="2 rows"):
        alone.on_batch([], [((1,), 1), ((2,), 1)])
