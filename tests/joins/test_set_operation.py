"""INTERSECT and EXCEPT against their reference, and by their laws: any kind of input, any batches, with restarts."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.joins.dataflow.ports import Ingest, Port, SetKind
from dovetail.joins.operators.set_operation import SetOperationSpec
from dovetail.joins.reference.rows import Record, Row, difference
from dovetail.joins.reference.set_operation import ReferenceSetOperation
from dovetail.joins.reference.side import ReferenceSide
from tests.joins.alone import Alone
from tests.joins.harness import INPUTS, KEYED, agree, poor_hashes, steps
from tests.joins.hosted import Hosted
from tests.tries import tries

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.string())])
KINDS = st.sampled_from(SetKind)
INGESTS = st.sampled_from(INPUTS)


def port(ingest: Ingest) -> Port:
    """All columns are compared; they are the primary key where there is one."""
    names = tuple(SCHEMA.names)
    return Port(SCHEMA, names, ingest, names if ingest in KEYED else ())


def spec(kind: SetKind, left: Ingest, right: Ingest) -> SetOperationSpec:
    return SetOperationSpec(kind, port(left), port(right))


def side(ingest: Ingest) -> ReferenceSide:
    return ReferenceSide(ingest, (0, 1), (0, 1))


def records(ingest: Ingest) -> st.SearchStrategy[list[Record]]:
    """Few rows, so that they meet, and often more than once; NULL where it is not part of a primary key."""
    keyed = ingest in KEYED
    row = st.tuples(st.integers(0, 1) if keyed else st.sampled_from([0, 1, None]), st.sampled_from("ab"))
    delta = st.just(1) if ingest is Ingest.APPEND else st.sampled_from([1, 1, -1])
    return st.lists(st.tuples(row, delta), max_size=6)


@settings(max_examples=tries(30))
@given(kind=KINDS, left=INGESTS, right=INGESTS, data=st.data())
def test_it_is_the_reference(kind: SetKind, left: Ingest, right: Ingest, data: st.DataObject) -> None:
    reference = ReferenceSetOperation(kind, side(left), side(right))
    agree(Alone(spec(kind, left, right)), reference, data.draw(steps(records(left), records(right))))


@settings(max_examples=tries(15))
@given(kind=KINDS, data=st.data())
def test_equal_hashes_are_never_taken_for_equal_rows(kind: SetKind, data: st.DataObject) -> None:
    changelog = records(Ingest.CHANGELOG)
    reference = ReferenceSetOperation(kind, side(Ingest.CHANGELOG), side(Ingest.CHANGELOG))
    drawn = data.draw(steps(changelog, changelog))
    with poor_hashes():
        agree(Alone(spec(kind, Ingest.CHANGELOG, Ingest.CHANGELOG)), reference, drawn)


def total(kind: SetKind, left: Sequence[Record], right: Sequence[Record], cuts: Sequence[int] = ()) -> Counter[Row]:
    """The net output of two changelogs that are cut at ``cuts``, in several buckets, stopped at each cut."""
    hosted = Hosted(spec(kind, Ingest.CHANGELOG, Ingest.CHANGELOG))
    result: Counter[Row] = Counter()
    for low, high in itertools.pairwise([0, *sorted(cuts), max(len(left), len(right))]):
        result.update(hosted.on_batch(left[low:high], right[low:high]))
        hosted.restart()
    return difference(result, Counter())


changelogs = st.lists(records(Ingest.CHANGELOG), max_size=4).map(lambda parts: list(itertools.chain(*parts)))


@settings(max_examples=tries(12))
@given(kind=KINDS, left=changelogs, right=changelogs, cuts=st.lists(st.integers(0, 20), max_size=4))
def test_any_cut_into_batches_gives_the_same_total(
    kind: SetKind, left: list[Record], right: list[Record], cuts: list[int]
) -> None:
    assert total(kind, left, right, cuts) == total(kind, left, right)


@settings(max_examples=tries(12))
@given(left=changelogs, right=changelogs)
def test_what_is_on_both_sides_and_what_is_not_are_the_left_side(left: list[Record], right: list[Record]) -> None:
    held = side(Ingest.CHANGELOG)
    held.take(left)
    both = total(SetKind.INTERSECT_ALL, left, right)
    assert both == total(SetKind.INTERSECT_ALL, right, left)
    assert both + total(SetKind.EXCEPT_ALL, left, right) == held.content
    either = total(SetKind.INTERSECT, left, right) + total(SetKind.EXCEPT, left, right)
    assert either == Counter(set(held.content))


def test_a_row_is_held_once_however_often_it_is_there() -> None:
    alone = Alone(spec(SetKind.EXCEPT_ALL, Ingest.APPEND, Ingest.CHANGES))
    row = (1, "a")
    for _ in range(64):
        alone.on_batch([(row, 1)], [])
    assert sum(len(run) for run in alone.store.runs["0.left"]) < 8
    assert alone.on_batch([], [(row, 10**9)]) == Counter({row: -64})
    assert alone.on_batch([(row, 10**9)], [(row, 1)]) == Counter({row: 63})
    alone.restart()
    assert alone.on_batch([], [(row, -(10**9) - 1)]) == Counter({row: 10**9 + 1})
    assert alone.held("0.right") == 0
