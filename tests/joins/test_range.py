"""The range join against its reference, and what becomes of its state."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.changelog.changes import Changes
from dovetail.joins.dataflow.ports import Ingest, JoinKind, Pad, Port
from dovetail.joins.operators.range import Band, RangeOperator, RangeSpec
from dovetail.joins.reference.range import ReferenceRange
from dovetail.joins.reference.rows import Record, Row
from dovetail.joins.state.order import NEVER, times_of
from dovetail.joins.state.store import RunStore
from tests.joins.alone import Alone
from tests.joins.hard_stream import answers, ports
from tests.joins.harness import KEYED, LEFT, RIGHT, poor_hashes, port, side, watched
from tests.joins.hosted import Hosted
from tests.tries import tries

bounds = st.one_of(st.none(), st.integers(-3, 3))


@dataclass(frozen=True)
class Unordered:
    """``l.id <= r.id`` as a residual condition; picklable."""

    def __call__(self, rows: pa.Table) -> npt.NDArray[np.bool_]:
        pairs = zip(rows.column("l.id").to_pylist(), rows.column("r.id").to_pylist(), strict=True)
        return np.array([a <= b for a, b in pairs], dtype=np.bool_)


def ids_in_order(left: Row, right: Row) -> bool:
    return str(left[1]) <= str(right[1])


@dataclass
class Stream:
    """One input: random rows near its present time, which moves on from batch to batch.

    timeless   some rows have no time
    punctual   only rows that are not behind the present time are retracted
    """

    ingest: Ingest
    timeless: bool
    punctual: bool
    now: int = 0
    upstream: Counter[Row] = field(default_factory=Counter)

    def records(self, data: st.DataObject) -> list[Record]:
        key = st.sampled_from([0, 1] if self.ingest in KEYED else [None, 0, 1])
        offset = st.sampled_from([None, 0, 1, 2, 3, 5] if self.timeless else [0, 1, 2, 3, 4, 5])
        drawn = data.draw(st.lists(st.tuples(key, st.sampled_from("abc"), offset, st.integers(0, 3)), max_size=5))
        return [record for key_, name, after, choice in drawn for record in self.record((key_, name), after, choice)]

    def record(self, place: tuple[int | None, str], offset: int | None, choice: int) -> list[Record]:
        row: Row = (*place, None if offset is None else self.now + offset)
        live = [held for held in self.upstream if self.upstream[held] > 0]
        overridden = [held for held in live if self.ingest in KEYED and held[:2] == place]
        if not all(self.may_go(held) for held in overridden):
            return []
        retractable = [held for held in live if self.may_go(held)]
        if self.ingest is Ingest.APPEND or choice or (self.ingest is Ingest.CHANGES and not retractable):
            for held in overridden:
                del self.upstream[held]
            self.upstream[row] += 1
            return [(row, 1)]
        gone = retractable[0] if retractable else row
        self.upstream[gone] -= 1
        return [(gone, -1)]

    def may_go(self, row: Row) -> bool:
        return not self.punctual or not isinstance(row[2], int) or row[2] >= self.now


def specification(
    kind: JoinKind, ingests: tuple[Ingest, Ingest], band: Band, null_safe: bool = False, residual: bool = False
) -> RangeSpec:
    left, right = watched(port(LEFT, ingests[0])), watched(port(RIGHT, ingests[1]))
    return RangeSpec(kind, left, right, band, (null_safe,), Unordered() if residual else None)


def reference_of(spec: RangeSpec) -> ReferenceRange:
    reference = ReferenceRange(
        spec.kind,
        side(spec.left.ingest),
        side(spec.right.ingest),
        (3, 3),
        (2, 2),
        spec.band.lower,
        spec.band.upper,
        spec.null_safe,
        append=spec.append,
        closed=spec.closed,
    )
    if spec.condition is not None:
        reference.condition = ids_in_order
    return reference


def moved(stream: Stream, data: st.DataObject, shift: int) -> int | None:
    """The watermark after the present time of a stream has moved on; None while it stands at its beginning."""
    stream.now += data.draw(st.sampled_from([0, 0, 1, 2, 6]))
    return stream.now - shift if stream.now else None


@settings(max_examples=tries(100))
@given(
    kind=st.sampled_from(RangeSpec.kinds),
    ingests=st.tuples(st.sampled_from(Ingest), st.sampled_from(Ingest)),
    limits=st.tuples(bounds, bounds),
    shift=st.sampled_from([0, -2]),
    flags=st.fixed_dictionaries({"null_safe": st.booleans(), "residual": st.booleans()}),
    punctual=st.booleans(),
    closed=st.booleans(),
    poor=st.booleans(),
    data=st.data(),
)
def test_against_the_reference(
    kind: JoinKind,
    ingests: tuple[Ingest, Ingest],
    limits: tuple[int | None, int | None],
    shift: int,
    flags: dict[str, bool],
    punctual: bool,
    closed: bool,
    poor: bool,
    data: st.DataObject,
) -> None:
    band = Band("l.v", "r.w", *limits, left_shift=shift)
    spec = replace(specification(kind, ingests, band, **flags), closed=closed)
    left, right = (Stream(ingest, timeless=True, punctual=punctual) for ingest in ingests)
    with poor_hashes(poor):
        compared(spec, left, right, data)


@settings(max_examples=tries(50))
@given(
    kind=st.sampled_from(RangeSpec.kinds),
    lower=st.integers(-3, 3),
    width=st.integers(-1, 4),
    null_safe=st.booleans(),
    residual=st.booleans(),
    data=st.data(),
)
def test_append_output_against_the_reference(
    kind: JoinKind, lower: int, width: int, null_safe: bool, residual: bool, data: st.DataObject
) -> None:
    ingests = Ingest.APPEND, Ingest.APPEND
    band = Band("l.v", "r.w", lower, lower + width)
    spec = replace(specification(kind, ingests, band, null_safe, residual), append=True)
    left, right = (Stream(ingest, timeless=False, punctual=True) for ingest in ingests)
    compared(spec, left, right, data)


def compared(spec: RangeSpec, left: Stream, right: Stream, data: st.DataObject) -> None:
    alone, reference = Alone(spec), reference_of(spec)
    batch = reference_of(replace(spec, append=False, closed=False))
    content: Counter[Row] = Counter()
    whole: Counter[Row] = Counter()
    append = spec.append or spec.closed
    for _ in range(data.draw(st.integers(0, 8))):
        rows = left.records(data), right.records(data)
        changes = alone.on_batch(*rows)
        assert changes == reference.on_batch(*rows)
        whole.update(batch.on_batch(*rows))
        at = moved(left, data, spec.band.left_shift or 0), moved(right, data, 0)
        passed = alone.on_watermark(*at)
        assert passed == reference.on_watermark(left.now or None, right.now or None)
        content.update(changes)
        content.update(passed)
        assert min(content.values(), default=0) >= 0
        assert not append or min([*changes.values(), *passed.values()], default=0) >= 0
        if data.draw(st.booleans()):
            alone.restart()
    content.update(alone.on_watermark(10**6, 10**6))
    if spec.band.lower is not None and spec.band.upper is not None:
        assert forgotten(alone.store)
    if left.punctual and not spec.closed:
        assert +content == +whole


def forgotten(store: RunStore) -> bool:
    """Whether nothing is held but rows without a time: no watermark passes those."""
    for name, run in store.all_runs():
        times = times_of(run.table.column("__due" if name.endswith("pending") else 2))
        if ((times >= run.since) & (times != NEVER)).any():
            return False
    return True


def append_only(kind: JoinKind, lower: int | None, upper: int | None) -> RangeSpec:
    return specification(kind, (Ingest.APPEND, Ingest.APPEND), Band("l.v", "r.w", lower, upper))


def row(at: int | None, name: str = "a", key: int = 1) -> Record:
    return (key, name, at), 1


def test_a_padded_row_leaves_at_once_or_once() -> None:
    """The band is [-5, 5]: a left row at 10 can be matched until the right watermark has passed 15."""
    spec = append_only(JoinKind.LEFT, -5, 5)
    padded = (1, "a", 10, None, None, None)
    updating, append = Alone(spec), Alone(replace(spec, append=True))
    assert updating.on_batch([row(10)], []) == {padded: 1}
    assert append.on_batch([row(10)], []) == {}
    for one in (updating, append):
        assert one.on_watermark(12, 15) == {}
    assert updating.on_batch([], [row(15)]) == {padded: -1, (1, "a", 10, 1, "a", 15): 1}
    assert append.on_batch([row(11)], []) == {}
    assert append.on_watermark(12, 16) == {padded: 1}
    assert append.on_watermark(30, 30) == {(1, "a", 11, None, None, None): 1}
    assert append.store.rows == 0


def test_what_matched_a_row_that_has_gone_is_not_padded_again() -> None:
    """In a join with retractions too: the row that was matched last is taken back, the one before has gone."""
    for ingest in (Ingest.APPEND, Ingest.CHANGELOG):
        alone = Alone(specification(JoinKind.LEFT, (ingest, ingest), Band("l.v", "r.w", -10, 10)))
        alone.on_batch([row(100)], [row(95)])
        assert alone.on_watermark(106, 98) == {}
        assert alone.on_batch([], [row(108, "b")]) == {(1, "a", 100, 1, "b", 108): 1}
    assert alone.on_batch([], [((1, "b", 108), -1)]) == {(1, "a", 100, 1, "b", 108): -1}


def test_a_row_that_comes_too_late_to_stay_meets_what_is_held() -> None:
    """The right side is far ahead: nothing that is yet to come can match the left row, and it goes in its batch."""
    alone = Alone(replace(append_only(JoinKind.LEFT, -5, 5), append=True))
    alone.on_batch([], [row(14), row(50)])
    assert alone.on_watermark(9, 50) == {}
    assert alone.on_batch([row(10), row(11, "b", 2)], []) == {(1, "a", 10, 1, "a", 14): 1}
    assert alone.on_watermark(9, 50) == {(2, "b", 11, None, None, None): 1}
    assert alone.store.rows == 2


def test_retractions_of_rows_that_have_gone_are_dangling() -> None:
    for ingest in (Ingest.CHANGES, Ingest.CHANGELOG, Ingest.CHANGELOG_KV):
        alone = Alone(specification(JoinKind.FULL, (ingest, ingest), Band("l.v", "r.w", 0, 0)))
        alone.on_batch([row(1), row(9, "b")], [row(1)])
        alone.on_watermark(5, 5)
        assert alone.on_batch([((1, "a", 1), -1)], [((1, "a", 1), -1)]) == {}
        assert alone.operator.dangling == 2
        assert alone.on_batch([((1, "b", 9), -1)], []) == {(1, "b", 9, None, None, None): -1}


def test_a_row_that_may_be_taken_back_stays_until_its_own_watermark_has_passed_it() -> None:
    """The right side is ahead; a delete of the left row that is on time still finds it."""
    alone = Alone(specification(JoinKind.INNER, (Ingest.CHANGELOG, Ingest.APPEND), Band("l.v", "r.w", 0, 0)))
    alone.on_batch([row(10)], [row(10)])
    alone.on_watermark(10, 40)
    assert alone.on_batch([((1, "a", 10), -1)], []) == {(1, "a", 10, 1, "a", 10): -1}


def test_a_closed_window_gives_its_rows_once() -> None:
    """A window of 10 by its start: rows of it come until both watermarks are 10 beyond; the shift says so."""
    band = Band("l.v", "r.w", 0, 0, left_shift=-9, right_shift=-9)
    spec = specification(JoinKind.FULL, (Ingest.CHANGELOG, Ingest.CHANGELOG), band)
    alone = Alone(replace(spec, closed=True))
    assert alone.on_batch([row(0), row(0, "b", 2)], []) == {}
    assert alone.on_batch([], [row(0), row(10, "c", 3)]) == {}
    assert alone.on_batch([((2, "b", 0), -1), row(0, "d", 2)], []) == {}
    assert alone.on_watermark(9, 30) == {}
    assert alone.on_watermark(10, 30) == {(1, "a", 0, 1, "a", 0): 1, (2, "d", 0, None, None, None): 1}
    assert alone.on_batch([((1, "a", 0), -1)], [((1, "a", 0), -1)]) == {}
    assert alone.on_watermark(20, 30) == {(None, None, None, 3, "c", 10): 1}
    assert alone.on_watermark(40, 40) == {}
    assert alone.store.rows == 0


def test_a_one_sided_band_forgets_one_side() -> None:
    alone = Alone(append_only(JoinKind.INNER, 0, None))
    alone.on_batch([row(10)], [row(5)])
    alone.on_watermark(1000, 1000)
    assert alone.on_batch([row(2000)], []) == {(1, "a", 2000, 1, "a", 5): 1}
    alone.on_watermark(3000, 3000)
    assert [len(runs) for runs in alone.store.runs.values()] == [0, 1]


def test_a_band_needs_no_key() -> None:
    left, right = (replace(port(schema, Ingest.APPEND), keys=()) for schema in (LEFT, RIGHT))
    alone = Alone(RangeSpec(JoinKind.LEFT, left, right, Band("l.v", "r.w", -1, 1)))
    found = alone.on_batch([row(1, key=7), row(5, key=8)], [row(2, key=9)])
    assert found == {(7, "a", 1, 9, "a", 2): 1, (8, "a", 5, None, None, None): 1}
    alone.restart()
    assert alone.on_batch([], [row(6)]) == {(8, "a", 5, 1, "a", 6): 1, (8, "a", 5, None, None, None): -1}


def test_pads_may_hold_the_default_of_their_type() -> None:
    alone = Alone(replace(append_only(JoinKind.FULL, 0, 0), pad=Pad.DEFAULT))
    assert alone.on_batch([row(1)], [row(2)]) == {(1, "a", 1, 0, "", 0): 1, (0, "", 0, 1, "a", 2): 1}


@pytest.mark.parametrize(("unit", "per_ms"), [("s", 0.001), ("ms", 1), ("us", 1000), ("ns", 1_000_000)])
def test_a_watermark_is_exact_at_the_precision_of_the_column(unit: str, per_ms: float) -> None:
    """A row at 4 s can match from 3 s to 5 s: it goes when the watermark, in ms, is beyond 5000."""
    kind, second = pa.timestamp(unit), int(1000 * per_ms)
    schemas = [pa.schema([(f"{side}.k", pa.int64()), (f"{side}.t", kind)]) for side in "lr"]
    left, right = (Port(schema, (schema.names[0],), Ingest.APPEND) for schema in schemas)
    spec = RangeSpec(JoinKind.ANTI, left, right, Band("l.t", "r.t", -second, second), append=True)
    operator = RangeOperator(spec, RunStore(), "0")
    times = pa.array([4 * second], pa.int64()).cast(kind)
    rows = Changes.of(pa.Table.from_arrays([pa.array([1], pa.int64()), times], schema=schemas[0])).table
    operator.on_batch([rows, None])
    assert len(operator.on_watermark([None, 5000])) == 0
    assert len(operator.on_watermark([None, 5001])) == 1


def test_in_a_query_state_goes_for_keys_that_never_return() -> None:
    """Late rows are left out, and counted; the watermark of a side is its greatest time less the delay."""
    left, right = (watched(port(schema, Ingest.APPEND), delay_ms=2) for schema in (LEFT, RIGHT))
    hosted = Hosted(RangeSpec(JoinKind.LEFT, left, right, Band("l.v", "r.w", -3, 3), append=True))
    padded = {n: (n, "a", n, None, None, None) for n in range(100)}
    first = hosted.on_batch([row(n, key=n) for n in range(100)], [row(50, key=50)])
    assert first == {(50, "a", 50, 50, "a", 50): 1} | {padded[n]: 1 for n in range(48 - 3)}
    assert hosted.on_batch([], [row(99, key=200)]) == {padded[n]: 1 for n in range(48 - 3, 97 - 3) if n != 50}
    hosted.restart()
    assert hosted.on_batch([row(96, key=200)], []) == {}
    assert hosted.query.counters["late"] == 1
    assert hosted.on_batch([row(97, key=200)], []) == {(200, "a", 97, 200, "a", 99): 1}


def test_one_step_of_the_watermark_clears_a_million_rows() -> None:
    spec = specification(JoinKind.INNER, (Ingest.CHANGES, Ingest.CHANGES), Band("l.v", "r.w", -5, 5))
    store = RunStore()
    operator = RangeOperator(spec, store, "0")
    names = pa.repeat(pa.scalar("a"), 250_000)
    for start in range(0, 1_000_000, 250_000):
        times = pa.array(np.arange(start, start + 250_000))
        columns = pa.Table.from_arrays([pc.bit_wise_and(times, 65535), names, times], schema=LEFT)
        operator.on_batch([Changes.of(columns).table, None])
    operator.on_watermark([2_000_000, 2_000_000])
    assert store.rows == 0


PAIRS = [
    ["+ 1 a 10 | 1 r 10", "+ 1 a 10 | 1 s 10"],
    ["+ 1 a 10 | 1 r 10", "- 1 a 10 | 1 s 10"],
    ["+ 1 e 30 | 1 w 25", "+ 3 c 20 | 3 u 18", "- 1 a 10 | 1 r 10"],
    [],
    ["+ 4 z 99 | 4 y 99"],
]
LEFT_ALONE = [["+ - n 10 | - - -", "+ 2 b - | - - -"], [], [], [], []]
RIGHT_ALONE = [["+ - - - | 2 t 5"], ["+ - - - | - m 10"], [], [], []]


@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        (JoinKind.INNER, [PAIRS]),
        (JoinKind.LEFT, [PAIRS, LEFT_ALONE]),
        (JoinKind.RIGHT, [PAIRS, RIGHT_ALONE]),
        (JoinKind.FULL, [PAIRS, LEFT_ALONE, RIGHT_ALONE]),
        (JoinKind.SEMI, [[["+ 1 a 10"], ["+ 1 a 10"], ["+ 1 e 30", "+ 3 c 20", "- 1 a 10"], [], ["+ 4 z 99"]]]),
        (JoinKind.ANTI, [[["+ - n 10", "+ 2 b -"], [], [], [], []]]),
    ],
)
def test_the_hard_stream(kind: JoinKind, parts: list[list[list[str]]]) -> None:
    """Its late rows are left out: there are watermarks."""
    spec = RangeSpec(kind, *ports(Ingest.CHANGELOG, Ingest.CHANGELOG, timed=True), band=Band("l.v", "r.w", -5, 5))
    assert answers(spec) == [sorted(line for lines in batch for line in lines) for batch in zip(*parts, strict=True)]
