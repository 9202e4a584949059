"""The one-shot ASOF join: each left row with at most one right row, the nearest in time.

**Definition.** Of the right rows under its key that are kept, a left row is joined with the nearest in time for which
``left_time <comparison> right_time`` and the residual condition hold: ``>=`` and ``>`` look back (the newest right row
not after, or before, the left one), ``<=`` and ``<`` forward. Ties go to the row that arrived last. NULL times match
nothing. The rest in ``joins.operators.one_shot``.

**State.** Of each key the ``keep_versions`` newest rows in time, as they are when all right rows of a batch are in.
With alignment those besides that the oldest left row that waits under the key may ask for: all from its time on, and
looking back the ``keep_versions`` newest before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from dovetail.changelog.changes import Changes
from dovetail.changelog.rows import Mask, Positions, any_null, numbered, numpy_column
from dovetail.changelog.schema import ARRIVAL
from dovetail.joins.dataflow.ports import JoinKind, Predicate
from dovetail.joins.inputs.arrival import ArrivalIntake
from dovetail.joins.matching.nearest import INCLUSIVE, LOOKS_BACK, Nearest
from dovetail.joins.operators.one_shot import OneShotOperator, OneShotSpec
from dovetail.joins.state.arrangement import Matches
from dovetail.joins.state.order import Times, ranks_of
from dovetail.joins.state.store import RunStore
from dovetail.joins.state.time_search import bisected, by_word_and_time


@dataclass(frozen=True)
class AsofOnceSpec(OneShotSpec):
    """Each left row is joined once with at most one right row: the nearest for which ``left_time <comparison>
    right_time`` holds; of equal times the last arrived.

    comparison      ``>=``, ``>``, ``<=`` or ``<``
    keep_versions   how many right rows are kept of each join key
    """

    kinds = (JoinKind.INNER, JoinKind.LEFT)

    left_time: str
    right_time: str
    comparison: str
    keep_versions: int = 3
    condition: Predicate | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "right", replace(self.right, tie_break_by_arrival=True))

    def open(self, store: RunStore, name: str) -> AsofOnceOperator:
        return AsofOnceOperator(self, store, name)


class AsofOnceOperator(OneShotOperator):
    """``on_batch([left rows, right rows]) -> changes``: insertions only, left columns, then right columns."""

    def __init__(self, spec: AsofOnceSpec, store: RunStore, name: str) -> None:
        super().__init__(spec, store, name, spec.condition)
        self._spec = spec
        self._right = ArrivalIntake(spec.right, store, f"{name}.right")

    @property
    def dangling(self) -> int:
        return self._right.dangling

    def _take_in(self, rows: pa.Table) -> Changes:
        changes = self._right.changes(rows)
        usable = ~any_null(changes.table, [*self._spec.right.keys, self._spec.right_time])
        self._retain(changes.where(usable), changes.table, self._spec.right.keys)
        return Changes.empty(self._output)

    def _answered(self, left: Changes) -> Changes:
        groups, firsts = numbered(left.table.select(list(self._left.keys)))
        retained = self._right.arrangement.probe(left.table.take(pa.array(firsts)), self._left.keys).summed()
        at, times = self._times(left.table, retained.rows)
        arrivals = numpy_column(retained.rows, ARRIVAL)
        nearest = Nearest.of(retained.probe, times, arrivals, (groups, at), self._spec.comparison)

        def holds(probes: Positions, rows: Positions) -> Mask:
            return self._pairing.matching(left.take(probes).table, retained.rows.take(pa.array(rows)))

        chosen = nearest.chosen(holds if self._spec.condition is not None else None)
        chosen[any_null(left.table, [self._spec.left_time])] = -1
        probe = np.flatnonzero(chosen >= 0)
        matched = retained.rows.take(pa.array(chosen[probe])).select(self._pairing.right.names)
        answers = self._joined(left, Matches(probe, Changes.of(matched).table))
        if self._waiting is not None:
            self._retain(Changes.empty(self._right.arrangement.schema), left.table, self._left.keys)
        return answers

    def _times(self, left: pa.Table, right: pa.Table) -> tuple[Times, Times]:
        return ranks_of(left.column(self._spec.left_time), right.column(self._spec.right_time))

    def _retain(self, changes: Changes, touched: pa.Table, keys: Sequence[str]) -> None:
        """Insert ``changes``, and of the keys ``touched`` keep no more rows than are to be retained."""
        _, firsts = numbered(touched.select(list(keys)))
        retained = self._right.arrangement.probe(touched.take(pa.array(firsts)), keys).summed().changes
        known = Changes.concat([retained, changes])
        if known.only_insertions:
            stays, fresh = self._kept(known.table), np.arange(len(known)) >= len(retained)
            net = Changes.concat([known.where(~stays & ~fresh).negated(), known.where(stays & fresh)])
        else:
            current = known.consolidated().insertions
            kept = current.where(self._kept(current.table))
            net = Changes.concat([retained.negated(), kept]).consolidated()
        self._right.arrangement.insert(net)

    def _kept(self, rows: pa.Table) -> Mask:
        """Which of the standing ``rows`` are kept."""
        groups, firsts = numbered(rows.select(list(self._spec.right.keys)))
        column = rows.column(self._spec.right_time)
        times, _ = ranks_of(column, column)
        by_arrival = np.argsort(numpy_column(rows, ARRIVAL), kind="stable")
        order = by_arrival[by_word_and_time(groups[by_arrival].astype(np.uint64), times[by_arrival])]
        bounds = np.searchsorted(groups[order], np.arange(len(firsts) + 1))
        kept_from = bounds[1:] - self._spec.keep_versions
        if self._waiting is not None:
            kept_from = np.minimum(kept_from, self._needed_from(rows.take(pa.array(order)), bounds))
        kept = np.empty(len(groups), dtype=np.bool_)
        kept[order] = np.arange(len(groups)) >= kept_from[groups[order]]
        return kept

    def _needed_from(self, rows: pa.Table, bounds: Positions) -> Positions:
        """Where, among the sorted ``rows``, those of each group begin that waiting rows may ask for; else its end."""
        begins = bounds[1:].copy()
        if self._waiting is None or self._alignment is None:
            return begins
        waiting, earliest = self._waiting.earliest(rows.take(pa.array(bounds[:-1])), self._spec.right.keys)
        if self._alignment.left_time != self._spec.left_time:
            # They wait by another time than they ask by: any row of theirs may be asked for.
            begins[waiting] = bounds[waiting]
            return begins
        at, times = ranks_of(earliest, rows.column(self._spec.right_time))
        back = LOOKS_BACK[self._spec.comparison]
        after = INCLUSIVE[self._spec.comparison] == back
        edge = bisected(times, (bounds[waiting], bounds[waiting + 1]), at, after=after)
        begins[waiting] = edge - self._spec.keep_versions if back else edge
        return begins
