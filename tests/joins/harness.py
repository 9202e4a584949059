"""Random inputs for the operators, and their references beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import strategies as st

import dovetail.changelog.rows
import dovetail.joins.state.arrangement
from dovetail.changelog.changes import DELTA, DELTA_TYPE
from dovetail.changelog.hashing import Hashes, row_hashes
from dovetail.changelog.schema import ARRIVAL
from dovetail.joins.dataflow.ports import Ingest, JoinKind, Port, Watermark
from dovetail.joins.reference.rows import Record, Row, difference
from dovetail.joins.reference.side import ReferenceSide
from tests.nasty import canonical

LEFT = pa.schema([("l.k", pa.int64()), ("l.id", pa.string()), ("l.v", pa.int64())])
RIGHT = pa.schema([("r.k", pa.int64()), ("r.id", pa.string()), ("r.w", pa.int64())])

KEYED = (Ingest.UPSERT, Ingest.CHANGELOG_KV)
INPUTS = (Ingest.APPEND, *KEYED, Ingest.CHANGELOG)
"""What the rows of a scan can be; those of an operator upstream are CHANGES."""

INNER_OR_LEFT = st.sampled_from([JoinKind.INNER, JoinKind.LEFT])
COMPARISONS = (">=", ">", "<=", "<")
IDS = st.sampled_from("abc")
VALUES = st.sampled_from(["a", "bb", "a longer text than a word"]), st.one_of(st.none(), st.integers(0, 3))

Step = tuple[list[Record], list[Record], bool]
"""A batch of both inputs, and whether a restart follows it."""


@dataclass(frozen=True)
class LeftBelowRight:
    """``l.v < r.w`` as a residual condition; picklable."""

    def __call__(self, rows: pa.Table) -> npt.NDArray[np.bool_]:
        pairs = zip(rows.column("l.v").to_pylist(), rows.column("r.w").to_pylist(), strict=True)
        return np.array([a is not None and b is not None and a < b for a, b in pairs], dtype=np.bool_)


def left_below_right(left: Row, right: Row) -> bool:
    a, b = left[2], right[2]
    return isinstance(a, int) and isinstance(b, int) and a < b


def port(schema: pa.Schema, ingest: Ingest) -> Port:
    """Joined by ``k``; the primary key, where there is one, is (k, id)."""
    names = schema.names
    return Port(schema, (names[0],), ingest, (names[0], names[1]) if ingest in KEYED else ())


def side(ingest: Ingest) -> ReferenceSide:
    """The content of such a port, for a reference."""
    return ReferenceSide(ingest, (0,), (0, 1))


def watched(one: Port, delay_ms: int = 0) -> Port:
    """The port with a watermark over its third column."""
    return replace(one, watermark=Watermark(one.schema.names[2], delay_ms))


def records(ingest: Ingest, *columns: st.SearchStrategy[object]) -> st.SearchStrategy[list[Record]]:
    """Rows of a key and ``columns``. Keys are few, so that rows meet, tie, are replaced and are taken back, sometimes
    without having been there; they may be NULL where they are not part of a primary key.
    """
    key = st.integers(0, 2) if ingest in KEYED else st.sampled_from([0, 1, 1, 2, None])
    delta = st.just(1) if ingest is Ingest.APPEND else st.sampled_from([1, 1, -1])
    return st.lists(st.tuples(st.tuples(key, *columns), delta), max_size=6)


def after(part: Sequence[Record], first: int) -> list[Record]:
    """The records as far after ``first`` as they were after 0; their time is the last column."""
    return [((*row[:-1], None if row[-1] is None else int(str(row[-1])) + first), delta) for row, delta in part]


def steps(
    left: st.SearchStrategy[list[Record]], right: st.SearchStrategy[list[Record]]
) -> st.SearchStrategy[list[Step]]:
    return st.lists(st.tuples(left, right, st.booleans()), max_size=12)


class Joining(Protocol):
    """A reference, or an operator that is tested."""

    def on_batch(self, left: Sequence[Record], right: Sequence[Record], /) -> Counter[Row]: ...


class Restarting(Joining, Protocol):
    def restart(self) -> None: ...


def agree(tested: Restarting, reference: Joining, drawn: Iterable[Step]) -> None:
    """Each batch gives what it gives in the reference, and no row stands fewer than zero times."""
    content: Counter[Row] = Counter()
    for left, right, restart in drawn:
        changes = tested.on_batch(left, right)
        assert changes == reference.on_batch(left, right)
        content.update(changes)
        assert min(content.values(), default=0) >= 0
        if restart:
            tested.restart()


@contextmanager
def poor_hashes(poor: bool = True) -> Iterator[None]:
    """All rows share one of two hashes, so that everything collides; nothing changes if not ``poor``."""

    def hashes(rows: pa.Table, columns: Sequence[str]) -> Hashes:
        return row_hashes(rows, columns) % np.uint64(2) << np.uint64(40)

    with pytest.MonkeyPatch.context() as patch:
        if poor:
            patch.setattr(dovetail.joins.state.arrangement, "row_hashes", hashes)
            patch.setattr(dovetail.changelog.rows, "row_hashes", hashes)
        yield


def table(schema: pa.Schema, rows: Sequence[Row]) -> pa.Table:
    columns = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(schema)]
    return pa.Table.from_arrays(columns, schema=schema)


def decoded(schema: pa.Schema, part: Sequence[Record], first: int) -> pa.Table:
    """The records as a scan gives them, ``arrival`` counted from ``first``."""
    rows = table(schema, [row for row, _ in part])
    rows = rows.append_column(ARRIVAL, pa.array(range(first, first + len(part)), pa.int64()))
    return rows.append_column(pa.field(DELTA, DELTA_TYPE, nullable=False), pa.array([d for _, d in part], DELTA_TYPE))


def net(rows: pa.Table | None) -> Counter[Row]:
    """Row to signed count, without zeros; floats and nested values as ``canonical`` has them."""
    total: Counter[Row] = Counter()
    for *values, delta in [] if rows is None else zip(*[column.to_pylist() for column in rows.columns], strict=True):
        total[tuple(map(canonical, values))] += delta
    return difference(total, Counter())
