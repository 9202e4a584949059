"""Session windows against their reference: random rows cut into random batches, restarts between them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.joins.aggregates.sessions import SessionsSpec
from dovetail.joins.dataflow.ports import Ingest
from dovetail.joins.reference.groups.sessions import ReferenceSessions
from dovetail.joins.reference.rows import Record, Row
from dovetail.joins.reference.side import ReferenceSide
from dovetail.joins.state.arrangement import Arrangement
from dovetail.joins.state.order import LATEST
from dovetail.joins.state.store import RunStore
from tests.joins.harness import IDS, INPUTS, KEYED, LEFT, decoded, poor_hashes, port, records, watched
from tests.joins.hosted import Hosted
from tests.tries import tries

TIMES = st.none() | st.integers(0, 12)


def side_of(ingest: Ingest, keys: tuple[str, ...]) -> ReferenceSide:
    return ReferenceSide(ingest, tuple(LEFT.names.index(key) for key in keys), (0, 1) if ingest in KEYED else ())


@pytest.mark.parametrize("ingest", INPUTS)
@settings(max_examples=tries(30))
@given(
    keys=st.sampled_from([("l.k",), ("l.k", "l.id"), ()]),
    gap=st.integers(1, 4),
    longest=st.none() | st.integers(1, 5),
    batches=st.data(),
    poor=st.booleans(),
)
def test_rows_that_come_and_go(
    ingest: Ingest, keys: tuple[str, ...], gap: int, longest: int | None, batches: st.DataObject, poor: bool
) -> None:
    spec = SessionsSpec(replace(port(LEFT, ingest), keys=keys), "l.v", gap, "start", "end", longest)
    reference = ReferenceSessions(side_of(ingest, keys), 2, gap, longest)
    content: Counter[Row] = Counter()
    with poor_hashes(poor):
        hosted = Hosted(spec)
        for batch, restart in batches.draw(st.lists(st.tuples(records(ingest, IDS, TIMES), st.booleans()), max_size=8)):
            changes = hosted.on_batch(batch, [])
            assert changes == reference.on_batch(batch)
            content.update(changes)
            assert min(content.values(), default=0) >= 0
            if restart:
                hosted.restart()


@settings(max_examples=tries(75))
@given(
    gap=st.integers(1, 4),
    longest=st.none() | st.integers(1, 6),
    delay=st.integers(0, 3),
    closed=st.booleans(),
    batches=st.lists(
        st.tuples(
            st.lists(st.tuples(st.sampled_from([0, 1, None]), IDS, TIMES), max_size=5), st.integers(0, 6), st.booleans()
        ),
        max_size=8,
    ),
)
def test_sessions_that_close(
    gap: int,
    longest: int | None,
    delay: int,
    closed: bool,
    batches: list[tuple[list[tuple[int | None, str, int | None]], int, bool]],
) -> None:
    """Times rise with the batches; what is behind the watermark of the batches before is late."""
    one = watched(port(LEFT, Ingest.APPEND), delay)
    hosted = Hosted(SessionsSpec(one, "l.v", gap, "start", "end", longest, closing=0, closed=closed))
    reference = ReferenceSessions(side_of(Ingest.APPEND, ("l.k",)), 2, gap, longest, closed)
    watermark, later = None, 0
    for rows, further, restart in batches:
        later += further
        batch: list[Record] = [((key, name, None if at is None else at + later), 1) for key, name, at in rows]
        times = [row[2] for row, _ in batch if isinstance(row[2], int)]
        in_time = [
            record
            for record in batch
            if watermark is None or not isinstance(record[0][2], int) or record[0][2] >= watermark
        ]
        expected = reference.on_batch(in_time)
        if times:
            watermark = max(max(times) - delay, watermark if watermark is not None else max(times) - delay)
        if watermark is not None:
            expected.update(reference.on_watermark(watermark))
        assert hosted.on_batch(batch, []) == expected
        if restart:
            hosted.restart()
    if watermark is not None:
        hosted.on_batch([((9, "z", 1_000), 1)], [])
        held = {row[2] for store in hosted.query.stores for row in _rows(store)}
        assert held <= {1_000, None}


def _rows(store: RunStore) -> list[Row]:
    """What a bucket holds."""
    rows = Arrangement(store, "0.rows", LEFT, ["l.k"], (), (True,), "l.v").everything().rows
    return [tuple(row.values()) for row in rows.to_pylist()]


@pytest.mark.parametrize(
    ("kind", "gap", "times", "bounds"),
    [
        (pa.timestamp("us"), 1_000, [0, 999, 1_999], [(0, 1_999), (0, 1_999), (1_999, 2_999)]),
        (pa.timestamp("s"), 1, [5, 5, 6], [(5, 6), (5, 6), (6, 7)]),
        (pa.timestamp("ms", "UTC"), 10, [0, 9, -1], [(-1, 19)] * 3),
    ],
)
def test_times_of_every_unit(kind: pa.DataType, gap: int, times: list[int], bounds: list[tuple[int, int]]) -> None:
    """A session holds its start and not its end: a row that is a gap after another is in the next one."""
    schema = pa.schema([*list(LEFT)[:2], pa.field("l.v", kind)])
    operator = SessionsSpec(port(schema, Ingest.APPEND), "l.v", gap, "start", "end").open(RunStore(), "0")
    typed = pa.array(times, pa.int64()).cast(kind)
    rows = decoded(schema, [((1, "a", at), 1) for at in typed.to_pylist()], 0)
    found = operator.on_batch([rows]).rows
    assert found.schema.field("end").type == kind
    every = zip(*(found.column(name).cast(pa.int64()).to_pylist() for name in ("l.v", "start", "end")), strict=True)
    assert set(every) == {(at, *bound) for at, bound in zip(times, bounds, strict=True)}


@pytest.mark.parametrize("time", [-(2**63), 2**63 - 1])
def test_the_ends_of_a_type(time: int) -> None:
    operator = SessionsSpec(port(LEFT, Ingest.APPEND), "l.v", 10, "start", "end", 20).open(RunStore(), "0")
    (row,) = operator.on_batch([decoded(LEFT, [((1, "a", time), 1)], 0)]).rows.to_pylist()
    assert row["end"] <= LATEST
    later = operator.on_batch([decoded(LEFT, [((1, "a", 0), 1)], 0)]).rows.to_pylist()
    assert [one["start"] for one in later] == [0]
