"""Of each join key, the row inserted last."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from dovetail.changelog.changes import DELTA, Changes
from dovetail.changelog.rows import Mask, any_null, groups_of_equal, numbered, numpy_column
from dovetail.changelog.schema import ARRIVAL
from dovetail.joins.dataflow.ports import Ingest, Port
from dovetail.joins.inputs.arrival import Arrivals, insertions_first
from dovetail.joins.inputs.change_normalizer import ChangeNormalizer
from dovetail.joins.state.arrangement import Arrangement, Matches
from dovetail.joins.state.store import RunStore


class LastRows:
    """The rows of ``port``; of each join key the one that was inserted last, among those that still stand.

    An upsert counts as inserted last. When the last row of a key is taken away, the one inserted before it counts, if
    it still stands. Rows whose key is NULL are under no key.

    Of rows that are never taken back only the last of each key is kept. Of others all stand in ``current``, and the
    last ones once more by themselves, so that a key with many rows costs no more than one with a single row; where the
    join key is the primary key these are the same.
    """

    def __init__(self, port: Port, store: RunStore, name: str) -> None:
        self._unordered = port.ingest is Ingest.CHANGES
        ingest = Ingest.CHANGELOG if self._unordered else port.ingest
        port = replace(port, ingest=ingest, tie_break_by_arrival=ingest is not Ingest.APPEND)
        self._port = port
        self._arrivals = Arrivals(store, name)
        self._current = ChangeNormalizer.of(port, store, f"{name}.current") if port.tie_break_by_arrival else None
        schema = port.schema.append(pa.field(ARRIVAL, pa.int64())) if port.tie_break_by_arrival else port.schema
        self._single = bool(port.primary_key) and set(port.primary_key) == set(port.keys)
        if self._single and self._current is not None:
            self._last = self._current.arrangement
        else:
            self._last = Arrangement(store, name, schema, port.keys)

    @property
    def dangling(self) -> int:
        return 0 if self._current is None else self._current.dangling

    def take_in(self, rows: pa.Table) -> Changes:
        """The insertions that ``rows``, in the order of their arrival, come to."""
        if self._current is None:
            changes = Changes(rows.select([*self._port.schema.names, DELTA]))
            self._replace(_last_of_each(changes, self._port.keys))
            return changes
        rows = self._arrivals.numbered(rows)
        changes = self._current.changes(insertions_first(rows) if self._unordered else rows)
        self._current.arrangement.insert(changes)
        inserted = changes.insertions
        if not self._single:
            self._replace(_last_of_each(_by_arrival(inserted), self._port.keys))
            self._uncover(changes.retractions)
        return Changes(inserted.table.drop_columns([ARRIVAL]))

    def under(self, rows: pa.Table, keys: tuple[str, ...]) -> Matches:
        """The last row under the join key of each of ``rows``, whose key columns are ``keys``; it counts once."""
        numbers, firsts = numbered(rows.select(list(keys)))
        found = self._last.probe(rows.take(pa.array(firsts)), keys).summed()
        of_number = np.full(len(firsts), -1, dtype=np.int64)
        of_number[found.probe] = np.arange(len(found.probe))
        place = of_number[numbers]
        probe = np.flatnonzero(place >= 0)
        matched = found.rows.take(pa.array(place[probe])).select(self._port.schema.names)
        return Matches(probe, Changes.of(matched).table)

    def _replace(self, fresh: Changes) -> None:
        """Let the rows of ``fresh``, one for each of their keys, be the last ones."""
        fresh = fresh.where(~any_null(fresh.table, self._port.keys))
        replaced = self._last.probe(fresh.table).summed().changes
        self._last.insert(Changes.concat([replaced.negated(), Changes.of(fresh.rows)]))

    def _uncover(self, retracted: Changes) -> None:
        """Where the last row of a key is among the ``retracted``, let the last of those that stand take its place."""
        if self._current is None or len(retracted) == 0:
            return
        last = self._last.probe(_one_of_each(retracted, self._port.keys).table).summed().changes
        gone = last.where(_among(last, retracted))
        remaining = self._current.arrangement.probe(gone.table).summed().changes
        newest = _last_of_each(_by_arrival(remaining), self._port.keys)
        self._last.insert(Changes.concat([gone.negated(), Changes.of(newest.rows)]))


def _last_of_each(changes: Changes, keys: tuple[str, ...]) -> Changes:
    order, starts = groups_of_equal(changes.table.select(list(keys)))
    return changes.take(np.maximum.reduceat(order, starts))


def _one_of_each(changes: Changes, keys: tuple[str, ...]) -> Changes:
    _, firsts = numbered(changes.table.select(list(keys)))
    return changes.take(firsts)


def _by_arrival(changes: Changes) -> Changes:
    return changes.take(np.argsort(numpy_column(changes.table, ARRIVAL)))


def _among(changes: Changes, others: Changes) -> Mask:
    return np.isin(numpy_column(changes.table, ARRIVAL), numpy_column(others.table, ARRIVAL))
