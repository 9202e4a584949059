"""The durable rows of a stream: kinds, indexes, restarts, readers beside the writer."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.changelog.changes import DELTA
from dovetail.changelog.decode import Decoder
from dovetail.changelog.errors import InternalError
from dovetail.changelog.lookup import Row
from dovetail.changelog.schema import TIME, Column, Kind, StreamSchema
from dovetail.changelog.topic_content import content
from dovetail.enrichment.stream_rows.rows_store import RowsStore, StoreLookup
from dovetail.joins.dataflow.lookup import Access, LookupTarget
from dovetail.joins.reference.rows import Record
from dovetail.sql.syntax.statements import Index
from tests.enrichment.flows import COLUMNS, records, stored, stream
from tests.tries import tries

FACTS = StreamSchema(
    "facts",
    (
        Column("k1", pa.uint32()),
        Column("k2", pa.string()),
        Column("v1", pa.uint32()),
        Column("v2", pa.string()),
        Column("v3", pa.string()),
    ),
    Kind.UPSERT,
    ("k1", "k2"),
)
INDEXES = (Index("idx1", ("v2",)), Index("idx2", ("v1", "v2"), ("v3",)))
ROWS: list[Row] = [(1, "a", 10, "x", "A"), (1, "b", 20, "x", "B"), (2, "a", 10, "y", "C")]


@pytest.fixture
def facts(tmp_path: Path) -> RowsStore:
    store = RowsStore(tmp_path / "facts.db", FACTS, INDEXES)
    store.store(ROWS)
    return store


def test_rows_are_found_by_key_prefix_and_index(facts: RowsStore) -> None:
    assert facts.fetch(("k1", "k2"), [(1, "a"), (1, "z"), (2, "a")]) == {(1, "a"): (ROWS[0],), (2, "a"): (ROWS[2],)}
    assert facts.fetch(("k2", "k1"), [("b", 1)]) == {("b", 1): (ROWS[1],)}
    assert facts.fetch(("k1",), [1, 7]) == {1: (ROWS[0], ROWS[1])}
    assert facts.fetch(("v1",), [10]) == {10: (ROWS[0], ROWS[2])}
    assert facts.fetch(("v1", "v2"), [(10, "y")], ("v3", "k2")) == {(10, "y"): (("C", "a"),)}
    assert facts.fetch(("v3",), ["B"]) == {"B": (ROWS[1],)}
    assert facts.fetch(("v2",), []) == {}


@pytest.mark.parametrize(
    ("by", "columns", "serves"),
    [
        (("k1", "k2"), None, "USING PRIMARY KEY (c0=? AND c1=?)"),
        (("k1",), None, "USING PRIMARY KEY (c0=?)"),
        (("v2",), None, "USING INDEX by_0 (c3=?)"),
        (("v1", "v2"), None, "USING COVERING INDEX by_1 (c2=? AND c3=?)"),
        (("v1",), ("k1", "k2", "v2", "v3"), "USING COVERING INDEX by_1 (c2=?)"),
        (("v2",), ("k1", TIME), "USING INDEX by_0 (c3=?)"),
    ],
)
def test_an_index_serves_and_stored_columns_need_no_second_read(
    facts: RowsStore, by: tuple[str, ...], columns: tuple[str, ...] | None, serves: str
) -> None:
    query = facts._layout.query(by, columns)  # noqa: SLF001
    for statement in query._statements.values():  # noqa: SLF001
        marks = [None] * statement.count("?")
        with facts._readers.lent() as reader:  # noqa: SLF001
            plan = reader.execute(f"EXPLAIN QUERY PLAN {statement}", marks).fetchall()
        assert serves in " | ".join(str(row[3]) for row in plan)


def test_threads_that_come_and_go_leave_no_connections_behind(facts: RowsStore) -> None:
    descriptors = []
    for _ in range(3):
        for _ in range(10):
            thread = threading.Thread(target=facts.fetch, args=(("k1",), [1]))
            thread.start()
            thread.join()
        descriptors.append(psutil.Process().num_fds())
    assert len(set(descriptors)) == 1


def test_any_number_of_keys_is_asked_in_pieces(facts: RowsStore) -> None:
    keys = [(number, "a") for number in range(1000)]
    assert facts.fetch(("k1", "k2"), keys).keys() == {(1, "a"), (2, "a")}
    for count in (1, 2, 15, 16, 17, 127, 128, 129, 300):
        assert len(facts.fetch(("k1", "k2"), keys[:count])) == min(count - 1, 2)


def test_keys_are_matched_by_value(facts: RowsStore) -> None:
    assert facts.fetch(("k1",), [1.0, 1.5, -1, 2**40]) == {1.0: (ROWS[0], ROWS[1])}


def test_the_lookup_of_an_access_answers_every_key(facts: RowsStore) -> None:
    access = Access(LookupTarget.STREAM, "facts", ("k1",), ("k2",), (pa.string(),), "primary key prefix")
    assert StoreLookup(facts, access).lookup([9, 1], 0) == [(), (("a",), ("b",))]


def test_an_unknown_column_is_named(facts: RowsStore) -> None:
    with pytest.raises(InternalError, match="facts has no column nope"):
        facts.fetch(("nope",), [1])


@settings(max_examples=tries(10))
@given(data=st.data())
@pytest.mark.parametrize("kind", list(Kind))
def test_the_content_is_that_of_the_topic(
    tmp_path_factory: pytest.TempPathFactory, kind: Kind, data: st.DataObject
) -> None:
    """Over records whose retractions are founded; batches and restarts do not matter, nor do records read twice."""
    row = st.tuples(st.integers(0, 1), st.sampled_from("ab"), st.one_of(st.none(), st.integers(0, 2)))
    events: list[Record] = []
    held: dict[tuple[object, ...], Row] = {}
    for value in data.draw(st.lists(row, max_size=15)):
        if kind is not Kind.APPEND and data.draw(st.booleans()) and held:
            events.append((held.pop(data.draw(st.sampled_from(sorted(held, key=repr)))), -1))
        events.append((value, 1))
        held[value if kind is Kind.CHANGELOG else value[:2]] = value
    schema = stream("t", kind)
    path = tmp_path_factory.mktemp("rows") / "t.db"
    store = RowsStore(path, schema)
    decoder = Decoder(schema, store.columns)
    topic = records(events, 0, kind)
    start = 0
    while start < len(events):
        reached = store.offsets.get(0, 0)
        assert reached == start
        end = data.draw(st.integers(start + 1, len(events)))
        again = data.draw(st.integers(0, start))
        store.apply(decoder.decode(topic.slice(again, end - again)).rows, {0: end})
        start = end
        if data.draw(st.booleans()):
            store.close()
            store = RowsStore(path, schema)
    expected = content(schema, Decoder(schema, COLUMNS).decode(topic).rows).to_pylist()
    rows = [tuple(one.values()) for one in expected]
    loaded = [one for piece in store.load() for one in piece]
    assert sorted(loaded, key=repr) == sorted(rows, key=repr)
    assert store.count() == len(rows)
    assert store.dangling == 0
    store.close()


def test_partitions_of_a_multiset_may_be_read_in_any_order(tmp_path: Path) -> None:
    store = RowsStore(tmp_path / "t.db", stream("t", Kind.CHANGELOG))
    row = (1, "a", 5)
    store.apply(stored([(row, -1)], 0, partition=1), {1: 1})
    assert (store.count(), store.fetch(("k",), [1])) == (0, {})
    store.apply(stored([(row, 1), (row, 1)], 0), {0: 2})
    assert store.fetch(("k",), [1]) == {1: (row,)}
    store.apply(stored([(row, 1)], 2), {0: 3})
    assert store.fetch(("k",), [1]) == {1: (row, row)}


def test_a_retraction_of_a_versioned_row_deletes_what_it_equals(tmp_path: Path) -> None:
    store = RowsStore(tmp_path / "t.db", stream("t", Kind.CHANGELOG_KV))
    store.apply(stored([((1, "a", None), 1), ((1, "a", 5), -1)], 0), {0: 2})
    assert (store.count(), store.dangling) == (1, 1)
    store.apply(stored([((1, "a", None), -1)], 2), {0: 3})
    assert (store.count(), store.dangling) == (0, 1)


def test_the_time_of_a_row_is_kept(tmp_path: Path) -> None:
    schema = stream("t", Kind.UPSERT)
    store = RowsStore(tmp_path / "t.db", schema)
    batch = Decoder(schema, store.columns).decode(records([((1, "a", 5), 1)], 0, Kind.UPSERT)).rows
    store.apply(batch, {0: 1})
    (time,) = batch.column(TIME).to_pylist()
    assert store.fetch(("k",), [1], ("v", TIME)) == {1: ((5, time),)}


def test_a_batch_is_taken_in_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    store = RowsStore(tmp_path / "t.db", stream("t", Kind.UPSERT))
    store.apply(stored([((1, "a", 5), 1)], 0), {0: 1})
    broken = stored([((2, "b", 6), 1)], 1)
    with pytest.raises(sqlite3.Error):
        store.apply(broken, {0: None})  # type: ignore[dict-item]
    assert (store.count(), store.offsets) == (1, {0: 1})
    store.apply(broken, {0: 2})
    assert (store.count(), store.offsets) == (2, {0: 2})


def test_another_schema_or_index_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "t.db"
    for schema, indexes in [
        (stream("t", Kind.UPSERT), ()),
        (stream("t", Kind.CHANGELOG), ()),
        (stream("t", Kind.CHANGELOG), (Index("i", ("v",)),)),
    ]:
        store = RowsStore(path, schema, indexes)
        assert (store.count(), store.offsets) == (0, {})
        store.apply(stored([((1, "a", 5), 1)], 0), {0: 1})
        store.close()
        again = RowsStore(path, schema, indexes)
        assert (again.count(), again.offsets) == (1, {0: 1})
        again.clear()
        assert (again.count(), again.offsets) == (0, {})
        again.apply(stored([((1, "a", 5), 1)], 0), {0: 1})
        again.close()


def test_a_damaged_file_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    path.write_bytes(b"this is no database, whatever its name says" * 50)
    store = RowsStore(path, stream("t", Kind.UPSERT))
    assert store.count() == 0


def test_readers_see_whole_batches_beside_the_writer(tmp_path: Path) -> None:
    """Every batch sets all keys to one value: a reader that sees two values has seen half a batch."""
    store = RowsStore(tmp_path / "t.db", stream("t", Kind.UPSERT))
    count = 300
    seen: list[set[object]] = []
    stop = threading.Event()

    def write(value: int) -> None:
        store.apply(stored([((key, "a", value), 1) for key in range(count)], value * count), {0: (value + 1) * count})

    def read() -> None:
        while not stop.is_set():
            found = store.fetch(("k",), list(range(count)))
            seen.append({row[2] for rows in found.values() for row in rows})

    write(0)
    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for value in range(1, 20):
        write(value)
    stop.set()
    for reader in readers:
        reader.join()
    assert len(seen) >= 3
    assert all(len(values) == 1 for values in seen)
    store.close()


def test_rows_of_a_table_have_a_delta() -> None:
    assert stored([((1, "a", 5), -1)], 0).column(DELTA).to_pylist() == [-1]
