"""From records to records: rejected ones, start offsets, and what an updating left side writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest

from dovetail.changelog.changes import DELTA
from dovetail.changelog.errors import InternalError, RecordRejected
from dovetail.changelog.lookup import Key, LookupRejected, Rows
from dovetail.changelog.schema import Kind
from dovetail.enrichment.enricher import AnsweredBatch, Enricher
from dovetail.enrichment.memo.memo import Memo, MemoStore
from dovetail.joins.dataflow.lookup import LookupFlow
from dovetail.joins.dataflow.ports import Ingest, JoinKind
from dovetail.sql.expressions.evaluate import RowMap
from tests.enrichment.flows import KINDS, DictLookup, Host, flow, net, records, stage

ROWS = {1: ((1, "a", 10),), 2: ((2, "b", 20),)}


def enricher(made: LookupFlow, start_offsets: Mapping[int, int] | None = None) -> Enricher:
    memo = Memo(MemoStore(":memory:"), made.ingest) if made.ingest is not Ingest.APPEND else None
    return Enricher(made, dict.fromkeys(made.accesses, DictLookup(ROWS)), memo, start_offsets=start_offsets)


def test_bad_records_are_set_aside_and_counted() -> None:
    made = flow(Ingest.APPEND, [stage(0, ("k",), JoinKind.INNER)])
    good = records([((1, "x", 5), 1)], 0, Kind.APPEND)
    bad = good.set_column(1, "value", pa.array([b"{"], pa.binary())).set_column(4, "offset", pa.array([1]))
    step = enricher(made).step(pa.concat_tables([good, bad, good]), 0)
    assert step.messages.values == [b'{"l.k":1,"l.id":"x","l.v":5,"r0.k":1,"r0.id":"a","r0.v":10}'] * 2
    assert step.rejected.column("offset").to_pylist() == [1]
    assert step.counts == {"rows_in": 3, "rows_out": 2, "rejected": 1, "dangling": 0, "failed": 0}


@dataclass
class Refusing:
    """Rejects the keys ``bad``, one at a time; the others have rows."""

    bad: set[Key]

    def lookup(self, keys: Sequence[Key], now_ms: int) -> list[Rows]:
        for key in keys:
            if key in self.bad:
                raise LookupRejected(f"no answer for {key}", keys=[key])
        return [ROWS.get(key, ()) for key in keys]


@pytest.mark.parametrize("ingest", [Ingest.APPEND, Ingest.UPSERT, Ingest.CHANGELOG_KV, Ingest.CHANGELOG])
@pytest.mark.parametrize("bad", [set[Key](), {7}, {7, 8}, {1, 2, 7, 8}])
def test_records_of_keys_that_a_lookup_rejects_are_set_aside(ingest: Ingest, bad: set[Key]) -> None:
    made = flow(ingest, [stage(0, ("k",), JoinKind.INNER)])
    memo = None if ingest is Ingest.APPEND else Memo(MemoStore(":memory:"), ingest)
    host = Enricher(made, dict.fromkeys(made.accesses, Refusing(bad)), memo)
    keys = [7, 1, 8, 2, 7]
    batch = records([((key, str(place), 0), 1) for place, key in enumerate(keys)], 10, KINDS[ingest], partition=3)
    step = host.step(batch, 0)
    gone = [place for place, key in enumerate(keys) if key in bad]
    assert step.rejected.column("offset").to_pylist() == [10 + place for place in gone]
    assert step.rejected.column("reason").to_pylist() == [f"no answer for {keys[place]}" for place in gone]
    assert (
        step.rejected.column("value").to_pylist() == batch.column("value").take(pa.array(gone, pa.int64())).to_pylist()
    )
    content = sorted(str(place) for place, key in enumerate(keys) if key in ROWS and key not in bad)
    assert sorted(str(row[1]) for row in net(step.messages, made.sink.columns)) == content
    assert (step.counts["rejected"], step.counts["rows_in"]) == (len(gone), 5)


def test_records_before_the_start_do_not_count() -> None:
    made = flow(Ingest.APPEND, [stage(0, ("k",), JoinKind.INNER)])
    batch = records([((1, str(place), 0), 1) for place in range(5)], 0, Kind.APPEND)
    step = enricher(made, start_offsets={0: 3, 7: 100}).step(batch, 0)
    assert [row[1] for row in net(step.messages, made.sink.columns)] == ["3", "4"]


def test_an_updating_side_needs_a_memo_and_no_other_has_one() -> None:
    updating = flow(Ingest.UPSERT, [stage(0, ("k",), JoinKind.INNER)])
    lookups = dict.fromkeys(updating.accesses, DictLookup(ROWS))
    with pytest.raises(InternalError, match="needs a memo"):
        Enricher(updating, lookups)
    with pytest.raises(InternalError, match="has no memo"):
        Enricher(replace(updating, ingest=Ingest.APPEND), lookups, Memo(MemoStore(":memory:"), Ingest.UPSERT))


@pytest.mark.parametrize("ingest", [Ingest.UPSERT, Ingest.CHANGELOG_KV])
def test_a_row_that_a_condition_rejects_ends_what_its_key_gave(ingest: Ingest) -> None:
    made = flow(ingest, [stage(0, ("k",), JoinKind.LEFT)])
    (renamed,) = made.scan.transforms
    assert isinstance(renamed, RowMap)
    filtered = replace(renamed, where='"v" > 3', on_reject="delete")
    host = enricher(replace(made, scan=replace(made.scan, transforms=(filtered,))))
    host.step(records([((1, "x", 5), 1)], 0, KINDS[ingest]), 0)
    step = host.step(records([((1, "x", 2), 1)], 1, KINDS[ingest]), 0)
    assert step.messages.keys == [b'{"k":1,"id":"x"}']
    assert step.messages.values == [b'{"l.k":1,"l.id":"x","l.v":5,"r0.k":1,"r0.id":"a","r0.v":10,"_tp_delta":-1}']
    assert step.counts["dangling"] == 0


def test_upserts_out_are_the_last_row_of_a_key_or_a_tombstone() -> None:
    host = enricher(flow(Ingest.UPSERT, [stage(0, ("k",), JoinKind.INNER)], "upsert"))
    first = host.step(records([((1, "x", 5), 1), ((2, "y", 5), 1)], 0, Kind.UPSERT), 0)
    assert first.messages.keys == [b'{"k":1,"id":"x"}', b'{"k":2,"id":"y"}']
    second = host.step(records([((2, "y", 5), -1), ((1, "x", 6), 1)], 2, Kind.UPSERT), 0)
    assert second.messages.keys == [b'{"k":2,"id":"y"}', b'{"k":1,"id":"x"}']
    assert second.messages.values[0] is None
    assert b'"l.v":6' in (second.messages.values[1] or b"")


def test_a_change_of_the_right_side_is_seen_by_rows_that_come_later(tmp_path: Path) -> None:
    host = Host(flow(Ingest.UPSERT, [stage(0, ("k",), JoinKind.INNER)]), tmp_path, Kind.UPSERT)
    host.right("r0", [((1, "a", 25), 1)])
    batch = [((1, "s1", 3), 1), ((1, "s2", 1), 1)]
    host.commit(batch, host.left(batch))
    host.right("r0", [((1, "a", 22), 1)])
    host.restart()
    step = host.left([((1, "s1", 3), -1), ((1, "s2", 4), 1)])
    assert net(step.messages, ("l.id", "l.v", "r0.v")) == {("s1", 3, 25): -1, ("s2", 1, 25): -1, ("s2", 4, 22): 1}
    host.close()


def test_rows_of_a_batch_keep_their_order() -> None:
    made = flow(Ingest.CHANGELOG, [stage(0, ("k",), JoinKind.LEFT)])
    host = enricher(made)
    batch = [((key, name, 0), 1) for key, name in [(2, "x"), (9, "y"), (1, "z"), (2, "w")]]
    step = host.step(records(batch, 0, Kind.CHANGELOG), 0)
    assert [row[1] for row in net(step.messages, made.sink.columns)] == ["x", "y", "z", "w"]
    assert DELTA not in made.sink.columns


@pytest.mark.parametrize("ingest", [Ingest.UPSERT, Ingest.CHANGELOG_KV, Ingest.CHANGELOG])
def test_an_answer_that_no_message_holds_changes_nothing(ingest: Ingest) -> None:
    """The batch is answered again without its record, and what is remembered must not say that it was answered."""
    made = flow(ingest, [stage(0, ("k",), JoinKind.INNER)])
    wide = {1: ROWS[1], 2: tuple((2, "x" * 1000, n) for n in range(1000))}
    host = Enricher(made, dict.fromkeys(made.accesses, DictLookup(wide)), Memo(MemoStore(":memory:"), ingest))
    batch = records([((1, "a", 0), 1), ((2, "b", 0), 1)], 0, KINDS[ingest])
    with pytest.raises(RecordRejected, match="its topic takes 1,000,000"):
        host.step(batch, 0)
    again = host.step(batch.slice(0, 1), 0)
    assert [row[1] for row in net(again.messages, made.sink.columns)] == ["a"]
    assert len(again.updates) == 1
    roomy = Enricher(
        made,
        dict.fromkeys(made.accesses, DictLookup(wide)),
        Memo(MemoStore(":memory:"), ingest),
        largest_bytes=3_000_000,
    )
    assert len(net(roomy.step(batch, 0).messages, made.sink.columns)) == 1001


def test_a_row_is_forgotten_after_its_time(tmp_path: Path) -> None:
    made = flow(Ingest.UPSERT, [stage(0, ("k",), JoinKind.INNER)])
    memo = Memo(MemoStore(":memory:"), Ingest.UPSERT)
    host = Enricher(made, dict.fromkeys(made.accesses, DictLookup(ROWS)), memo, memo_ttl_ms=1000)

    def step(row: tuple[object, ...], delta: int, at_ms: int, offset: int) -> AnsweredBatch:
        batch = records([(row, delta)], offset, Kind.UPSERT)
        times = pa.array([at_ms], pa.timestamp("ms", "UTC"))
        done = host.step(batch.set_column(2, batch.schema.field("timestamp"), times), 0)
        host.confirm(done.updates)
        return done

    step((1, "x", 5), 1, 5_000, 0)
    assert [run for _, run in step((2, "y", 5), 1, 6_000, 1).updates if run is None] == []
    assert [key for key, run in step((2, "z", 5), 1, 6_001, 2).updates if run is None] == [b'{"l.k":1,"l.id":"x"}']
    assert step((1, "x", 6), 1, 6_002, 3).messages.values == [
        b'{"l.k":1,"l.id":"x","l.v":6,"r0.k":1,"r0.id":"a","r0.v":10,"_tp_delta":1}'
    ]
