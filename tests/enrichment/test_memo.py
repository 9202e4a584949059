"""The memo: exact retractions, net changes, and a store that never runs ahead of committed output."""

from __future__ import annotations

from pathlib import Path

import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.changelog.changes import DELTA
from dovetail.changelog.encode import encode
from dovetail.changelog.errors import InternalError
from dovetail.enrichment.memo.memo import LeftRows, Memo, MemoStep, MemoStore, Update
from dovetail.enrichment.memo.memo_store import runs_in
from dovetail.enrichment.memo.net_changes import Emitted, NetChanges
from dovetail.joins.dataflow.ports import Ingest

Event = tuple[str, int]


def left_rows(*events: Event, prints: list[int | None] | None = None) -> LeftRows:
    return LeftRows(
        [name.encode() for name, _ in events], [delta for _, delta in events], prints or [None] * len(events)
    )


def stepped(memo: Memo, answer: str, *events: Event, prints: list[int | None] | None = None) -> MemoStep:
    """Every row that is asked gives one record, ``answer``; none if that is empty."""
    question = memo.ask(left_rows(*events, prints=prints))
    records: tuple[Emitted, ...] = ((b"k", answer.encode()),) if answer else ()
    step = memo.settle(question, [records] * len(question.positions))
    memo.keep(step)
    return step


def written(step: MemoStep) -> list[tuple[int, int]]:
    values = [orjson.loads(value or b"") for value in step.changes.records("changelog").values]
    return [(value["p"], value["_tp_delta"]) for value in values]


@pytest.fixture
def upserts() -> Memo:
    return Memo(MemoStore(":memory:"), Ingest.UPSERT)


@pytest.fixture
def counted() -> Memo:
    return Memo(MemoStore(":memory:"), Ingest.CHANGELOG)


def test_what_is_taken_back_is_what_was_given(upserts: Memo) -> None:
    assert written(stepped(upserts, '{"p":1}', ("a", 1))) == [(1, 1)]
    assert written(stepped(upserts, '{"p":2}', ("a", 1))) == [(1, -1), (2, 1)]
    assert written(stepped(upserts, "", ("a", -1))) == [(2, -1)]
    assert written(stepped(upserts, "", ("a", -1))) == []


def test_an_answer_like_the_last_leaves_no_trace(upserts: Memo) -> None:
    stepped(upserts, '{"p":1}', ("a", 1))
    step = stepped(upserts, '{"p":1}', ("a", -1), ("a", 1))
    assert written(step) == []
    assert step.updates == []


def test_a_row_that_comes_and_goes_in_a_batch_is_not_asked(upserts: Memo, counted: Memo) -> None:
    assert upserts.ask(left_rows(("a", 1), ("b", 1), ("a", -1), ("b", 1))).positions == [3]
    assert counted.ask(left_rows(("a", 1), ("b", 1), ("a", -1), ("b", 1))).positions == [1, 3]


def test_copies_of_a_row_leave_in_the_order_of_their_coming(counted: Memo) -> None:
    stepped(counted, '{"p":1}', ("a", 1))
    stepped(counted, '{"p":2}', ("a", 1))
    assert written(stepped(counted, '{"p":3}', ("a", 1), ("a", -1))) == [(1, -1), (3, 1)]
    assert written(stepped(counted, "", ("a", -1), ("a", -1))) == [(2, -1), (3, -1)]
    step = stepped(counted, "", ("a", -1))
    assert (written(step), step.dangling) == ([], 1)


def test_a_copy_that_gave_nothing_can_be_taken_back(counted: Memo) -> None:
    stepped(counted, "", ("a", 1))
    step = stepped(counted, "", ("a", -1))
    assert (written(step), step.dangling) == ([], 0)
    assert step.updates == [(b"a", None)]


def test_a_retraction_of_a_versioned_row_deletes_only_what_it_equals() -> None:
    memo = Memo(MemoStore(":memory:"), Ingest.CHANGELOG_KV)
    stepped(memo, '{"p":1}', ("a", 1), prints=[11])
    late = stepped(memo, '{"p":2}', ("a", 1), ("a", -1), prints=[22, 11])
    assert written(late) == [(1, -1), (2, 1)]
    assert late.dangling == 1
    assert written(stepped(memo, "", ("a", -1), prints=[22])) == [(2, -1)]


def test_changes_across_identities_cancel(upserts: Memo) -> None:
    """The output has no column that tells the rows apart."""
    stepped(upserts, '{"p":1}', ("a", 1))
    step = stepped(upserts, '{"p":1}', ("a", -1), ("b", 1))
    assert written(step) == []
    assert dict(step.updates).keys() == {b"a", b"b"}


def test_only_confirmed_updates_are_stored(upserts: Memo) -> None:
    first = stepped(upserts, '{"p":1}', ("a", 1))
    second = stepped(upserts, '{"p":2}', ("a", 1))
    assert upserts.store.runs([b"a"]) == {}
    upserts.confirm(first.updates, 1)
    assert upserts.store.runs([b"a"]) == {key: {0: run} for key, run in first.updates}
    assert written(stepped(upserts, "", ("a", -1))) == [(2, -1)]
    upserts.discard()
    assert written(stepped(upserts, '{"p":2}', ("a", 1))) == [(1, -1), (2, 1)]
    assert dict(second.updates).keys() == {b"a"}


def test_the_topic_restores_the_store(tmp_path: Path) -> None:
    topic: list[Update] = []
    memo = Memo(MemoStore(tmp_path / "memo.db"), Ingest.CHANGELOG)
    for number, name in enumerate(["a", "b", "a", "c"]):
        step = stepped(memo, f'{{"p":{number}}}', (name, 1))
        topic += step.updates
        memo.confirm(step.updates, len(topic))
    topic += stepped(memo, "", ("b", -1)).updates
    restored = MemoStore(tmp_path / "other.db")
    restored.apply(topic, len(topic))
    assert restored.offset == 5
    assert restored.runs([b"a", b"b", b"c"]).keys() == {b"a", b"c"}
    assert written(stepped(Memo(restored, Ingest.CHANGELOG), "", ("a", -1), ("a", -1))) == [(0, -1), (2, -1)]


def test_the_file_outlives_the_process_and_not_another_query(tmp_path: Path) -> None:
    store = MemoStore(tmp_path / "new" / "memo.db", "plan 1")
    store.apply([(b"a", b"1"), (b"a", b"2"), (b"b", b"3"), (b"b", None)], 4)
    store.close()
    again = MemoStore(tmp_path / "new" / "memo.db", "plan 1")
    assert again.offset == 4
    assert again.runs([b"a", b"b"]) == {b"a": {0: b"2"}}
    again.close()
    other = MemoStore(tmp_path / "new" / "memo.db", "plan 2")
    assert (other.offset, other.runs([b"a"])) == (0, {})
    other.close()
    (tmp_path / "new" / "memo.db").write_bytes(b"something else, longer than a header of a database" * 40)
    assert MemoStore(tmp_path / "new" / "memo.db", "plan 2").offset == 0


def test_its_runs_are_counted_beside_whoever_writes_them(tmp_path: Path) -> None:
    file = tmp_path / "memo.db"
    assert runs_in(file) == 0
    store = MemoStore(file)
    store.apply([(b"a", b"x"), (b"b", b"x"), (b"b\x001", b"x"), (b"c", None)])
    assert runs_in(file) == 3
    store.close()
    file.write_bytes(b"something else, longer than a header of a database" * 40)
    assert runs_in(file) == 0


def test_many_identities_are_read_in_pieces() -> None:
    store = MemoStore(":memory:")
    names = [str(number).encode() for number in range(1000)]
    store.apply([(name, name) for name in names])
    assert store.runs([*names, b"x"]) == {name: {0: name} for name in names}


def test_an_append_only_side_has_no_memo() -> None:
    with pytest.raises(InternalError, match="need no memo"):
        Memo(MemoStore(":memory:"), Ingest.APPEND)


def test_a_copy_of_many_writes_one_short_record(counted: Memo) -> None:
    """However many there are, and however often the answer has changed meanwhile."""
    for answer in (1, 2, 1):
        step = stepped(counted, f'{{"p":{answer}}}', ("a", 10_000))
        counted.confirm(step.updates)
    for event in (("a", 1), ("a", -1)):
        step = stepped(counted, '{"p":1}', event)
        counted.confirm(step.updates)
        [(_, run)] = step.updates
        assert run is not None
        assert len(run) < 60
    assert written(stepped(counted, "", ("a", -20_000)))[:1] == [(1, -1)]
    assert written(stepped(counted, "", ("a", -10_000)))[0] == (1, -1)
    assert stepped(counted, "", ("a", -1)).dangling == 1


events = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from([1, 1, 2, -1, -1, -3]), st.sampled_from("123"), st.booleans()),
    max_size=40,
)


@given(events, st.sampled_from([Ingest.CHANGELOG, Ingest.CHANGES]))
def test_runs_are_a_queue_of_copies(changes: list[tuple[str, int, str, bool]], ingest: Ingest) -> None:
    """Held in a store, beside what is not confirmed, and restored from the topic: first in, first out."""
    topic: list[Update] = []
    memo = Memo(MemoStore(":memory:"), ingest)
    queues: dict[str, list[str]] = {"a": [], "b": []}
    waiting: list[Update] = []
    for name, delta, answer, is_committed in changes:
        queue = queues[name]
        step = stepped(memo, f'{{"p":{answer}}}', (name, delta))
        gone, queue[:] = queue[: max(0, -delta)], queue[max(0, -delta) :] + [answer] * max(0, delta)
        assert sorted(written(step)) == sorted([(int(p), -1) for p in gone] + [(int(answer), 1)] * max(0, delta))
        assert step.dangling == max(0, -delta) - len(gone)
        waiting += step.updates
        if is_committed:
            memo.confirm(waiting)
            topic, waiting = topic + waiting, []
    memo.confirm(waiting)
    restored = MemoStore(":memory:")
    restored.apply([*topic, *waiting])
    names = [b"a", b"b"]
    assert restored.runs(names) == memo.store.runs(names)
    again = Memo(restored, ingest)
    for name, queue in queues.items():
        assert sorted(written(stepped(again, "", (name, -100)))) == sorted((int(p), -1) for p in queue)


def test_what_was_written_long_ago_expires_unless_it_is_changing(upserts: Memo) -> None:
    for written_ms, name in ((100, "a"), (200, "b"), (300, "c")):
        upserts.confirm(stepped(upserts, '{"p":1}', (name, 1)).updates, None, written_ms)
    assert upserts.expired(100) == []
    assert upserts.expired(300) == [(b"a", None), (b"b", None)]
    stepped(upserts, '{"p":2}', ("a", 1))
    assert upserts.expired(300) == [(b"b", None)]


rows = st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from([None, 'a "b"', "é"])), max_size=6, unique=True)


@given(rows, rows, st.sampled_from(["changelog", "upsert"]), st.booleans())
def test_messages_are_those_of_the_encoder(
    gone: list[tuple[str, str | None]], come: list[tuple[str, str | None]], output_format: str, keyed: bool
) -> None:
    """Kept records and a delta give what rows and a delta give."""
    keyed |= output_format == "upsert"
    key = (("id", "id"),) if keyed else ()
    signed = [(row, -1) for row in gone if row not in come] + [(row, 1) for row in come if row not in gone]
    table = pa.table(
        {
            "id": pa.array([row[0] for row, _ in signed], pa.string()),
            "t": pa.array([row[1] for row, _ in signed], pa.string()),
            DELTA: pa.array([delta for _, delta in signed], pa.int64()),
        }
    )
    expected = encode(table, ("id", "t"), key, updating=True, format=output_format)
    plain = encode(
        table.set_column(2, DELTA, pa.array([1] * len(signed), pa.int64())), ("id", "t"), key, updating=False
    )
    changes = NetChanges()
    for (_, delta), record in zip(signed, zip(plain.keys, plain.values, strict=True), strict=True):
        changes.add(b"the same", [(record[0], record[1] or b"")], delta)
    found = changes.records(output_format)
    assert sorted(zip(map(str, found.keys), map(str, found.values), strict=True)) == sorted(
        zip(map(str, expected.keys), map(str, expected.values), strict=True)
    )
    for name in set(found.keys):
        theirs = [value for other, value in zip(expected.keys, expected.values, strict=True) if other == name]
        ours = [value for other, value in zip(found.keys, found.values, strict=True) if other == name]
        assert ours == theirs
        places = [place for place, other in enumerate(found.keys) if other == name]
        assert places == list(range(places[0], places[0] + len(places)))


def test_a_value_without_columns_takes_a_delta() -> None:
    changes = NetChanges()
    changes.add(b"a", [(None, b"{}")], -1)
    assert changes.records("changelog").values == [b'{"_tp_delta":-1}']
