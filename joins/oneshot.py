"""One-shot joins: each left row is answered once, when it comes, from the right rows held then.

**Definition.** The right rows of a batch are taken in before its left rows are answered. A left row is joined with
every right row of its key for which the residual condition holds (``EnrichmentOperator``), or with the nearest of them
in time (``AsofOperator``); LEFT pads it at once where there is none, INNER lets it go. Only the right side is kept, and
a change of it alone emits nothing: what was answered is never corrected. NULL keys match nothing.

Source: the enrichment and ASOF joins of Timeplus; the process-time temporal join of RisingWave.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from changelog.changes import DELTA, Changes
from changelog.rows import Positions
from changelog.schema import ARRIVAL
from joins.arrangement import Matches
from joins.dataflow import AsofOnce, Enrichment, JoinKind, Pad
from joins.keyed import Intake
from joins.padding import distinct
from joins.pairs import Pairing
from joins.store import RunStore


class EnrichmentOperator:
    """``on_batch([left rows, right rows]) -> changes``: insertions only, left columns, then right columns."""

    def __init__(self, spec: Enrichment | AsofOnce, store: RunStore, name: str) -> None:
        null_safe = spec.null_safe if isinstance(spec, Enrichment) else ()
        self._left = spec.left
        self._right = Intake.of(spec.right, store, f"{name}.right", null_safe)
        self._pairing = Pairing(spec.left.schema, spec.right.schema, spec.condition, spec.pad is Pad.DEFAULT)
        self._pads = spec.kind is JoinKind.LEFT

    @property
    def unfounded(self) -> int:
        return self._right.unfounded

    def on_batch(self, inputs: Sequence[pa.Table | None]) -> Changes:
        left_rows, right_rows = inputs
        if right_rows is not None and right_rows.num_rows:
            self._take_in(right_rows)
        if left_rows is None or left_rows.num_rows == 0:
            return Changes.empty(self._pairing.schema)
        return self._answered(Changes(left_rows.select([*self._left.schema.names, DELTA])))

    def _take_in(self, rows: pa.Table) -> None:
        self._right.arrangement.insert(self._right.changes(rows))

    def _answered(self, left: Changes) -> Changes:
        found = self._right.arrangement.probe(left.table, self._left.keys).summed()
        holds = self._pairing.matching(left.table.take(pa.array(found.probe)), found.rows)
        found = self._chosen(left, Matches(found.probe[holds], found.rows.filter(pa.array(holds))))
        joined = Pairing(self._pairing.left, self._pairing.right).of_left(left, found)
        if not self._pads:
            return joined
        unmatched = np.ones(len(left), dtype=np.bool_)
        unmatched[found.probe] = False
        return Changes.concat([joined, self._pairing.left_padded(Changes(left.table.filter(pa.array(unmatched))))])

    def _chosen(self, left: Changes, found: Matches) -> Matches:
        return found


class AsofOperator(EnrichmentOperator):
    """At most one right row for each left row: the nearest in time for which ``left_time <comparison> right_time``.

    ``>=`` and ``>`` look back (newest right row not after, or before, the left one), ``<=`` and ``<`` forward. Ties go
    to the row that arrived last. NULL times match nothing. Of each key the ``keep_versions`` newest rows are kept.
    """

    def __init__(self, spec: AsofOnce, store: RunStore, name: str) -> None:
        super().__init__(spec, store, name)
        self._spec = spec

    def _take_in(self, rows: pa.Table) -> None:
        super()._take_in(rows)
        arrangement = self._right.arrangement
        touched = distinct(rows, arrangement.keys)
        versions = arrangement.probe(touched).summed()
        surplus = self._beyond(versions)
        arrangement.insert(Changes(versions.rows.take(pa.array(surplus))).negated())

    def _beyond(self, versions: Matches) -> Positions:
        """The positions of the rows past the newest ``keep_versions`` of their key."""
        order = _order(versions, self._spec.right_time, newest_first=True)
        keys = versions.probe[order]
        starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
        rank = np.arange(len(keys)) - np.repeat(starts, np.diff(np.append(starts, len(keys))))
        return order[rank >= self._spec.keep_versions]

    def _chosen(self, left: Changes, found: Matches) -> Matches:
        left_times = left.table.column(self._spec.left_time).take(pa.array(found.probe))
        compare = {">=": pc.greater_equal, ">": pc.greater, "<=": pc.less_equal, "<": pc.less}[self._spec.comparison]
        fits = pc.fill_null(compare(left_times, found.rows.column(self._spec.right_time)), False)
        found = Matches(found.probe[fits.to_numpy()], found.rows.filter(fits))
        order = _order(found, self._spec.right_time, newest_first=self._spec.comparison in (">=", ">"))
        probes = found.probe[order]
        nearest = order[np.concatenate(([True], probes[1:] != probes[:-1]))] if len(order) else order
        return Matches(found.probe[nearest], found.rows.take(pa.array(nearest)))


def _order(found: Matches, time: str, newest_first: bool) -> Positions:
    """Positions by probing row, then time, then latest arrival first."""
    table = pa.table({"probe": found.probe, "time": found.rows.column(time), "arrival": found.rows.column(ARRIVAL)})
    direction = "descending" if newest_first else "ascending"
    keys = [("probe", "ascending"), ("time", direction), ("arrival", "descending")]
    order: Positions = pc.sort_indices(table, sort_keys=keys).to_numpy().astype(np.int64)
    return order
