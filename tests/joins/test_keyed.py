"""Upserts to changes; of versions the greatest stands: against plain loops, on random records in random batches."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.joins.dataflow.ports import Ingest, Port
from dovetail.joins.operators.keyed import KeyedSpec
from dovetail.joins.reference.rows import Record, Row, difference
from tests.joins.alone import Alone
from tests.tries import tries

SCHEMA = pa.schema([("k", pa.int64()), ("value", pa.string()), ("rev", pa.int64())])

upserts = st.lists(
    st.tuples(
        st.tuples(st.integers(0, 2), st.sampled_from("abc"), st.one_of(st.none(), st.integers(0, 3))),
        st.sampled_from([1, 1, 1, -1]),
    ),
    min_size=1,
    max_size=8,
)


def alone(first_stays: bool) -> Alone:
    return Alone(KeyedSpec(Port(SCHEMA, ("k",), Ingest.UPSERT, ("k",), version="rev", first_stays=first_stays)))


def taken(held: dict[object, Row], records: list[Record], first_stays: bool) -> None:
    """The rows that stand after the records."""
    for row, delta in records:
        old = held.get(row[0])
        if delta < 0:
            held.pop(row[0], None)
        elif old is None or _rank(row) > _rank(old) or (_rank(row) == _rank(old) and not first_stays):
            held[row[0]] = row


def _rank(row: Row) -> int:
    return -1 if row[2] is None else int(str(row[2]))


@settings(max_examples=tries(100))
@given(first_stays=st.booleans(), batches=st.lists(upserts, max_size=6))
def test_the_row_of_the_greatest_version_stands(first_stays: bool, batches: list[list[Record]]) -> None:
    running, held = alone(first_stays), dict[object, Row]()
    for records in batches:
        before = Counter(held.values())
        taken(held, records, first_stays)
        assert running.on_batch(records) == difference(Counter(held.values()), before)


@pytest.mark.parametrize(("first_stays", "stands"), [(True, "a"), (False, "c")])
def test_equal_versions(first_stays: bool, stands: str) -> None:
    running = alone(first_stays)
    running.on_batch([((1, "a", 5), 1), ((1, "b", 4), 1)])
    running.on_batch([((1, "c", 5), 1)])
    assert running.on_batch([((1, "", None), -1)]) == {(1, stands, 5): -1}


def test_a_delete_takes_the_version_along() -> None:
    running = alone(first_stays=False)
    running.on_batch([((1, "a", 9), 1), ((1, "", None), -1)])
    assert running.on_batch([((1, "b", 2), 1)]) == {(1, "b", 2): 1}


def test_a_record_that_changes_nothing_leaves_no_trace() -> None:
    running = Alone(KeyedSpec(Port(SCHEMA, ("k",), Ingest.UPSERT, ("k",))))
    assert running.on_batch([((1, "a", 5), 1)]) == Counter({(1, "a", 5): 1})
    assert running.on_batch([((1, "b", 5), 1), ((1, "a", 5), 1)]) == Counter()
    assert running.on_batch([((1, "b", 6), 1)]) == Counter({(1, "a", 5): -1, (1, "b", 6): 1})


def test_a_retraction_of_another_row_is_dangling() -> None:
    running = Alone(KeyedSpec(Port(SCHEMA, ("k",), Ingest.CHANGELOG_KV, ("k",))))
    running.on_batch([((1, "a", 5), 1)])
    assert running.on_batch([((1, "b", 5), -1), ((2, "a", 5), -1)]) == Counter()
    assert running.operator.dangling == 2
    assert running.on_batch([((1, "a", 5), -1)]) == Counter({(1, "a", 5): -1})
