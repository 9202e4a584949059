"""Session windows: rows of a key that follow one another closely.

**Definition.** The rows of a key, in order of time, are cut where the next one is ``gap`` or more after the one before.
Each part is a session: it begins with its first row and ends ``gap`` after its last, so it holds its start and not its
end. A row without a time is in none. With ``longest`` a part is cut once more where a row is that much or more after
the first of its session, which then ends there at the latest. The output is each row with the bounds of its session; a
change that joins two sessions, or parts one, takes their rows back and gives them anew.

    gap 5            1   3       9   12               and 6 comes:   1   3  6   9   12
                     [-------8)  [-------17)                         [--------------17)

**Closing.** With ``closing`` a session goes when the watermark has reached its end: no row can come into it. With
``closed`` its rows leave then, and only then.

**Cost.** A batch costs what the parts hold, from gap to gap, that its rows fall into.

**State.** The rows of the sessions that are open, in order of time, and two small rows for each part: one is found by
the time of a row, the other by when its first session ends.

Source: Akidau et al., "The Dataflow Model" (VLDB 2015), section 2.2; in SQL the gaps and islands of Celko.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dovetail.changelog.changes import DELTA, Changes
from dovetail.changelog.rows import Mask, Positions, distinct, numbered
from dovetail.joins.dataflow.ports import Port
from dovetail.joins.dataflow.specification import OperatorSpec
from dovetail.joins.inputs.change_normalizer import ChangeNormalizer
from dovetail.joins.state.arrangement import Arrangement
from dovetail.joins.state.order import NEVER, Times, bound_after, shifted, times_of
from dovetail.joins.state.store import RunStore
from dovetail.joins.state.time_search import bisected

_FIRST, _LAST, _DUE = "__first", "__last", "__due"


@dataclass(frozen=True)
class SessionsSpec(OperatorSpec):
    """The rows of the port with the columns ``start`` and ``end`` of their session, among those of equal keys.

    gap, longest  in the unit of ``time``; ``longest`` None: any length
    closing       rows that are yet to come have ``time >= watermark + closing`` (ms, or the number itself); None:
                  nothing is known of them. The rows must not be taken back
    closed        a row leaves once, when its session can gain no more (EMIT ON WINDOW CLOSE); needs ``closing``
    """

    port: Port
    time: str
    gap: int
    start: str
    end: str
    longest: int | None = None
    closing: int | None = None
    closed: bool = False

    @property
    def ports(self) -> tuple[Port, ...]:
        return (self.port,)

    @property
    def waits(self) -> bool:
        return self.closed

    @property
    def schema(self) -> pa.Schema:
        kind = self.port.schema.field(self.time).type
        return pa.schema([*self.port.schema, pa.field(self.start, kind), pa.field(self.end, kind)])

    def open(self, store: RunStore, name: str) -> SessionsOperator:
        return SessionsOperator(self, store, name)


@dataclass(frozen=True)
class _Cut:
    """Rows in their sessions.

    rows    in order of key and time, ``delta`` last
    starts  of the session of each row, and the ``ends``
    parts   the rows of a key from gap to gap: its columns, the first and the last time, the end of the first session
    """

    rows: pa.Table
    starts: Times
    ends: Times
    parts: pa.Table

    def where(self, mask: Mask) -> Changes:
        return Changes(self.rows).where(mask)


class SessionsOperator:
    """``on_batch([rows]) -> changes``: the rows with the bounds of their sessions."""

    def __init__(self, spec: SessionsSpec, store: RunStore, name: str) -> None:
        port = spec.port
        self._spec = spec
        self._keys = list(port.keys)
        safe = (True,) * len(port.keys)
        self._normalizer = ChangeNormalizer.of(port, store, f"{name}.intake", safe)
        self._rows = Arrangement(store, f"{name}.rows", port.schema, port.keys, (), safe, order=spec.time)
        times = [pa.field(part, pa.int64()) for part in (_FIRST, _LAST, _DUE)]
        self._of_parts = pa.schema([*(port.schema.field(key) for key in port.keys), *times])
        self._parts = Arrangement(store, f"{name}.parts", self._of_parts, port.keys, (), safe, order=_LAST)
        self._dues = Arrangement(store, f"{name}.dues", self._of_parts, port.keys, (), safe, order=_DUE)

    @property
    def dangling(self) -> int:
        return self._normalizer.dangling

    def on_batch(self, inputs: Sequence[pa.Table | None]) -> Changes:
        (rows,) = inputs
        changes = self._normalizer.normalize_and_store(rows)
        changes = changes.where(self._times(changes.table) != NEVER).consolidated()
        if len(changes) == 0:
            return Changes.empty(self._spec.schema)
        touched = self._touched(changes.table)
        held = self._held(touched)
        before, after = self._cut(held), self._cut(Changes.concat([held, changes]).consolidated())
        self._rows.insert(changes)
        self._replace(touched, after.parts)
        if self._spec.closed:
            return Changes.empty(self._spec.schema)
        return Changes.concat([self._bounded(before).negated(), self._bounded(after)]).consolidated()

    def _times(self, rows: pa.Table) -> Times:
        return times_of(rows.column(self._spec.time))

    def _touched(self, rows: pa.Table) -> pa.Table:
        """The parts that one of ``rows`` is in, or less than a gap away from: the last before it, the first after."""
        times, gap = self._times(rows), self._spec.gap
        earlier = self._parts.nearest(rows, times, newest=True, inclusive=False, keys=self._keys)
        later = self._parts.nearest(rows, times, newest=False, inclusive=True, keys=self._keys)
        near = [
            earlier.where(_column(earlier.rows, _LAST) > shifted(times[earlier.probe], -gap)),
            later.where(shifted(_column(later.rows, _FIRST), -gap) < times[later.probe]),
        ]
        return distinct(pa.concat_tables([one.rows.drop_columns([DELTA]) for one in near]).combine_chunks())

    def _held(self, parts: pa.Table) -> Changes:
        """The rows of ``parts``."""
        found = self._rows.between(parts, _column(parts, _FIRST), _column(parts, _LAST), self._keys)
        return found.summed().changes

    def _cut(self, changes: Changes) -> _Cut:
        rows = changes.table
        number, times = self._numbered(rows), self._times(rows)
        order = np.lexsort((times, number))
        rows, number, times = rows.take(pa.array(order)).combine_chunks(), number[order], times[order]
        near = (np.diff(number) == 0) & (shifted(times[1:], -self._spec.gap) < times[:-1])
        first = np.flatnonzero(np.concatenate(([True], ~near))[: len(times)])
        after = np.append(first[1:], len(times)).astype(np.int64)[: len(first)]
        starts, ends = self._sessions(times, first, after)
        columns = [rows.column(key).take(pa.array(first)) for key in self._keys]
        columns += [pa.array(one) for one in (times[first], times[after - 1], ends[first])]
        return _Cut(rows, starts, ends, pa.Table.from_arrays(columns, schema=self._of_parts))

    def _numbered(self, rows: pa.Table) -> Positions:
        """The same number for rows of equal keys."""
        return numbered(rows.select(self._keys))[0] if self._keys else np.zeros(rows.num_rows, dtype=np.int64)

    def _sessions(self, times: Times, first: Positions, after: Positions) -> tuple[Times, Times]:
        """The start and the end of the session of each row; ``first`` and ``after``: where the parts begin and end."""
        begins = self._begins(times, first, after)
        length = np.diff(np.append(begins, len(times)))
        starts, ends = times[begins], shifted(times[begins + length - 1], self._spec.gap)
        if self._spec.longest is not None:
            ends = np.minimum(ends, shifted(starts, self._spec.longest))
        return np.repeat(starts, length), np.repeat(ends, length)

    def _begins(self, times: Times, first: Positions, after: Positions) -> Positions:
        """Where the sessions begin: a part is more than one where it is longer than a session may be."""
        if self._spec.longest is None:
            return first
        found = [first]
        while len(first):
            # The next session of every part at once.
            bounds = shifted(times[first], self._spec.longest)
            following = bisected(times, (first, after), bounds, after=False)
            # No time is later than the greatest, however long a session may be.
            more = (following < after) & (following > first)
            first, after = following[more], after[more]
            found.append(first)
        return np.sort(np.concatenate(found))

    def _bounded(self, cut: _Cut) -> Changes:
        """The rows with the bounds of their sessions."""
        spec, kind = self._spec, cut.rows.schema.field(self._spec.time).type
        columns = cut.rows.drop_columns([DELTA]).columns
        bounds = [pa.array(values).cast(kind) for values in (cut.starts, cut.ends)]
        return Changes.with_deltas(
            pa.Table.from_arrays([*columns, *bounds], schema=spec.schema), Changes(cut.rows).deltas
        )

    def _replace(self, gone: pa.Table, come: pa.Table) -> None:
        changes = Changes.concat([Changes.of(gone, -1), Changes.of(come)]).consolidated()
        self._parts.insert(changes)
        self._dues.insert(changes)

    def on_watermark(self, watermarks: Sequence[int | None]) -> Changes:
        """Let the sessions go that have ended; their rows leave now if they leave ``closed``."""
        (watermark,) = watermarks
        if watermark is None or self._spec.closing is None:
            return Changes.empty(self._spec.schema)
        bound = bound_after(watermark + self._spec.closing, self._spec.port.schema.field(self._spec.time).type)
        due = self._dues.expire(bound).rows
        if due.num_rows == 0:
            return Changes.empty(self._spec.schema)
        cut = self._cut(self._held(due))
        over = cut.ends < bound
        open_still = self._cut(cut.where(~over)).parts
        self._rows.insert(cut.where(over).negated())
        self._parts.insert(Changes.concat([Changes.of(due, -1), Changes.of(open_still)]))
        self._dues.insert(Changes.of(open_still))
        return self._bounded(cut).where(over) if self._spec.closed else Changes.empty(self._spec.schema)


def _column(rows: pa.Table, name: str) -> Times:
    values: Times = rows.column(name).to_numpy()
    return values
