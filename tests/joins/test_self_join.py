"""A stream that is several inputs of one join, by one key: it comes in once, and is kept once.

Held against the references, which are given the same records for each of the inputs: random streams in random batches,
with restarts between them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.joins.dataflow.ports import Ingest, JoinKind
from dovetail.joins.inputs.renamed_rows import Names
from dovetail.joins.operators.bidirectional import BidirectionalSpec
from dovetail.joins.operators.multiway import MultiwaySpec, Repetition
from dovetail.joins.reference.bidirectional import ReferenceJoin, ReferenceMultiwayJoin
from dovetail.joins.reference.rows import Record, Row
from tests.joins.alone import Alone
from tests.joins.harness import (
    INPUTS,
    LEFT,
    RIGHT,
    VALUES,
    LeftBelowRight,
    left_below_right,
    poor_hashes,
    port,
    records,
    side,
)
from tests.tries import tries

AS_LEFT: Names = tuple(zip(RIGHT.names, LEFT.names, strict=True))


def batches(ingest: Ingest) -> st.SearchStrategy[list[tuple[list[Record], bool]]]:
    """The records of each, and whether a restart follows them."""
    return st.lists(st.tuples(records(ingest, *VALUES), st.booleans()), max_size=8)


def agree(
    alone: Alone, reference: Callable[[Sequence[Record]], Counter[Row]], drawn: Sequence[tuple[list[Record], bool]]
) -> None:
    content: Counter[Row] = Counter()
    for part, restart in drawn:
        changes = alone.on_batch(part)
        assert changes == reference(part)
        content.update(changes)
        assert min(content.values(), default=0) >= 0
        if restart:
            alone.restart()


@settings(max_examples=tries(50))
@given(
    kind=st.sampled_from(BidirectionalSpec.kinds),
    ingest=st.sampled_from(INPUTS),
    null_safe=st.booleans(),
    residual=st.booleans(),
    poor=st.booleans(),
    data=st.data(),
)
def test_both_sides_of_a_join(
    kind: JoinKind, ingest: Ingest, null_safe: bool, residual: bool, poor: bool, data: st.DataObject
) -> None:
    condition = LeftBelowRight() if residual else None
    spec = BidirectionalSpec(
        kind, port(LEFT, ingest), port(RIGHT, ingest), (null_safe,), condition, right_as_left=AS_LEFT
    )
    reference = ReferenceJoin(kind, side(ingest), side(ingest), (3, 3), (null_safe,))
    if residual:
        reference.condition = left_below_right
    with poor_hashes(poor):
        agree(Alone(spec), lambda part: reference.on_batch(part, part), data.draw(batches(ingest)))


@settings(max_examples=tries(15))
@given(
    kind=st.sampled_from([kind for kind in BidirectionalSpec.kinds if not kind.is_existence]),
    ingest=st.sampled_from(INPUTS),
    data=st.data(),
)
def test_a_side_has_the_columns_that_it_needs(kind: JoinKind, ingest: Ingest, data: st.DataObject) -> None:
    """The right one lacks the column ``id``: so do the rows that leave, and nothing else is different."""
    narrow = replace(port(RIGHT, ingest), schema=RIGHT.remove(1))
    names = tuple(pair for pair in AS_LEFT if pair[0] in narrow.schema.names)
    spec = BidirectionalSpec(kind, port(LEFT, ingest), narrow, (), LeftBelowRight(), right_as_left=names)
    reference = ReferenceJoin(kind, side(ingest), side(ingest), (3, 3), condition=left_below_right)

    def without_id(part: Sequence[Record]) -> Counter[Row]:
        found: Counter[Row] = Counter()
        for row, count in reference.on_batch(part, part).items():
            found[row[:4] + row[5:]] += count
        return Counter({row: count for row, count in found.items() if count})

    agree(Alone(spec), without_id, data.draw(batches(ingest)))


def schema(name: str) -> pa.Schema:
    return pa.schema([(f"{name}.k", pa.int64()), (f"{name}.id", pa.string()), (f"{name}.v", pa.int64())])


def repeated(place: int, of: int) -> Repetition:
    first, second = schema("abcd"[place]), schema("abcd"[of])
    return Repetition(place, of, tuple(zip(first.names, second.names, strict=True)))


@settings(max_examples=tries(40))
@given(
    ingests=st.tuples(st.sampled_from(INPUTS), st.sampled_from(INPUTS)),
    is_second=st.lists(st.booleans(), min_size=1, max_size=3),
    optional=st.sets(st.integers(1, 3)),
    null_safe=st.booleans(),
    data=st.data(),
)
def test_several_parts_of_an_n_way_join(
    ingests: tuple[Ingest, Ingest], is_second: list[bool], optional: set[int], null_safe: bool, data: st.DataObject
) -> None:
    """Two streams, each of which is any of the parts: one after the other, or with the other one between."""
    of = [0, *map(int, is_second)]
    inputs = [of.index(stream) for stream in range(2) if stream in of]
    repetitions = tuple(
        repeated(place, of.index(stream)) for place, stream in enumerate(of) if of.index(stream) < place
    )
    places = tuple(sorted(place for place in optional if place < len(of)))
    parts = tuple(port(schema("abcd"[place]), ingests[stream]) for place, stream in enumerate(of))
    alone = Alone(MultiwaySpec(parts, places, (null_safe,), repetitions=repetitions))
    reference = ReferenceMultiwayJoin(
        [side(ingests[stream]) for stream in of], (3,) * len(of), places, (null_safe,), lambda rows: True
    )
    drawn = st.tuples(*(records(ingest, *VALUES) for ingest in ingests), st.booleans())
    content: Counter[Row] = Counter()
    for *streams, restart in data.draw(st.lists(drawn, max_size=6)):
        changes = alone.on_batch(*(streams[of[place]] for place in inputs))
        assert changes == reference.on_batch(*(streams[stream] for stream in of))
        content.update(changes)
        assert min(content.values(), default=0) >= 0
        if restart:
            alone.restart()


@pytest.mark.parametrize("kind", BidirectionalSpec.kinds)
def test_its_rows_are_kept_once(kind: JoinKind) -> None:
    left, right = port(LEFT, Ingest.UPSERT), port(RIGHT, Ingest.UPSERT)
    shared, apart = (Alone(BidirectionalSpec(kind, left, right, right_as_left=names)) for names in (AS_LEFT, ()))
    part: list[Record] = [((key, "a", key), 1) for key in range(300)]
    assert shared.on_batch(part) == apart.on_batch(part, part)
    assert (shared.held(), apart.held()) == (300, 600)


def test_a_stream_that_is_three_parts_is_kept_once() -> None:
    parts = tuple(port(schema(name), Ingest.APPEND) for name in "abc")
    alone = Alone(MultiwaySpec(parts, repetitions=(repeated(1, 0), repeated(2, 0))))
    changes = alone.on_batch([((key, "a", key), 1) for key in range(300)])
    assert changes == Counter({(key, "a", key) * 3: 1 for key in range(300)})
    assert {name: alone.held(name) for name in alone.store.runs} == {"0.part0": 300}
