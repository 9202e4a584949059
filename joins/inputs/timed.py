"""One side of a join in order of time: what its rows change, and the rows held by join key and time."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from dovetail.changelog.changes import DELTA, Changes
from dovetail.changelog.rows import any_null
from dovetail.changelog.schema import ARRIVAL
from dovetail.joins.dataflow.ports import Ingest, Port
from dovetail.joins.inputs.arrival import ArrivalIntake, Arrivals
from dovetail.joins.state.arrangement import Arrangement, Matches
from dovetail.joins.state.order import Times, times_of
from dovetail.joins.state.store import RunStore


class TimedNormalizer:
    """The rows of ``port`` as consistent changes, and those of them that have a key and a time.

    schema   the columns of the port, and ``arrival`` where it breaks ties

    Of an input that is consistent by itself nothing is kept here. The current rows of another one are, by primary key
    or as they are: by time a row to be taken back could only be found by looking at all of its key.
    """

    def __init__(self, port: Port, time: str, store: RunStore, name: str, null_safe: Sequence[bool] = ()) -> None:
        self.port = port
        self.schema = port.schema.append(pa.field(ARRIVAL, pa.int64())) if port.tie_break_by_arrival else port.schema
        self.time = time
        self._null_safe = tuple(null_safe) or (False,) * len(port.keys)
        self._needed = [time, *(key for key, same in zip(port.keys, self._null_safe, strict=True) if not same)]
        plain = port.ingest is Ingest.APPEND or (port.ingest is Ingest.CHANGES and not port.tie_break_by_arrival)
        self._current = None if plain else ArrivalIntake(port, store, f"{name}.current")
        self._arrivals = Arrivals(store, name) if plain and port.tie_break_by_arrival else None

    @property
    def dangling(self) -> int:
        return 0 if self._current is None else self._current.dangling

    def normalize(self, rows: pa.Table | None) -> Changes:
        """What ``rows`` change."""
        if rows is None or rows.num_rows == 0:
            return Changes.empty(self.schema)
        if self._current is None:
            rows = rows if self._arrivals is None else self._arrivals.numbered(rows)
            changes = Changes(rows.select([*self.schema.names, DELTA]))
            return changes if changes.only_insertions else changes.consolidated()
        changes = self._current.changes(rows)
        self._current.arrangement.insert(changes)
        return changes

    def times(self, rows: Changes | Matches) -> Times:
        return times_of((rows.table if isinstance(rows, Changes) else rows.rows).column(self.time))

    def arrangement(self, name: str, store: RunStore) -> Arrangement:
        """An arrangement for rows of this side, in order of time."""
        return Arrangement(store, name, self.schema, self.port.keys, self.schema.names, self._null_safe, self.time)

    def since(self, changes: Changes, bound: int | None) -> Changes:
        """Without the rows before ``bound``."""
        return changes if bound is None else changes.where(self.times(changes) >= bound)

    def matchable(self, changes: Changes) -> Changes:
        """Without the rows that can match nothing: those whose time, or key, is NULL."""
        return changes.where(~any_null(changes.table, self._needed))
