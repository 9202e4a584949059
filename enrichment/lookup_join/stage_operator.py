"""One lookup join on a batch: distinct keys asked once, their rows spread over the left rows.

**Definition.** A left row is joined with every row under its key for which the residual condition holds. Without such a
row INNER drops it and LEFT pads it, once. SEMI keeps the left rows that have such a row, ANTI those that have none,
MARK all of them with the answer. A key with a NULL matches nothing and is not asked. Left rows keep their order; the
matches of one come in the order of the lookup.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa

from dovetail.changelog.changes import DELTA
from dovetail.changelog.errors import InternalError
from dovetail.changelog.lookup import Lookup, LookupRejected, Rows
from dovetail.changelog.rows import Positions, expand
from dovetail.changelog.schema import ARRIVAL
from dovetail.enrichment.lookup_join.distinct_keys import DistinctKeys, distinct_keys
from dovetail.enrichment.lookup_join.looked_up_columns import LookedUpColumns
from dovetail.joins.dataflow.lookup import LookupStage
from dovetail.joins.dataflow.ports import JoinKind, Predicate, transformed
from dovetail.sql.transforms.existence_filter import existence_filter


class RowsRejected(Exception):
    """Rows of a batch whose keys the lookup rejects; ``arrivals`` names them."""

    def __init__(self, arrivals: frozenset[int], reason: str) -> None:
        super().__init__(reason)
        self.arrivals = arrivals
        self.reason = reason


class StageOperator:
    """A stage with its lookup. Holds nothing between batches; several threads may call it."""

    def __init__(self, stage: LookupStage, lookup: Lookup, snapshots: Mapping[str, pa.Table]) -> None:
        self._join = stage.join
        self._lookup = lookup
        self._transforms = tuple(step.bound(snapshots) for step in stage.transforms)
        self._kind = stage.join.kind
        self._outer = stage.join.kind is JoinKind.LEFT
        self._looked_up = LookedUpColumns(stage.join)
        types = dict(zip(stage.join.access.columns, stage.join.access.types, strict=True))
        self._key_types = [types.get(name) for name in stage.join.access.by]

    def __call__(self, rows: pa.Table, now_ms: int) -> pa.Table:
        keys = distinct_keys(rows, self._join.keys, self._key_types)
        answers = self._answers(rows, keys, now_ms) if keys.keys else []
        if len(answers) != len(keys.keys):
            raise InternalError(f"{len(keys.keys)} keys of {self._join.access.table}, {len(answers)} answers")
        return transformed(self._joined(rows, keys.codes, answers), self._transforms)

    def _answers(self, rows: pa.Table, keys: DistinctKeys, now_ms: int) -> list[Rows]:
        """Raises RowsRejected where the rows have arrivals, which say what records they are of."""
        try:
            return self._lookup.lookup(keys.keys, now_ms)
        except LookupRejected as rejection:
            if ARRIVAL not in rows.column_names:
                raise
            gone = set(rejection.keys)
            of_gone = np.array([*(key in gone for key in keys.keys), False])[keys.codes]
            arrivals = rows.column(ARRIVAL).filter(pa.array(of_gone)).to_pylist()
            if not arrivals:
                raise
            raise RowsRejected(frozenset(arrivals), rejection.what) from rejection

    def _joined(self, rows: pa.Table, codes: Positions, answers: Sequence[Rows]) -> pa.Table:
        # One more than there are keys: the last stands for keys with a NULL, which have no rows.
        counts = np.fromiter(chain(map(len, answers), (0,)), np.int64, len(answers) + 1)
        if self._kind.is_existence and self._join.condition is None:
            return existence_filter(rows, counts[codes] > 0, self._kind, self._join.mark)
        found = list(chain.from_iterable(answers))
        looked_up = self._looked_up.build(found)
        firsts = np.cumsum(counts) - counts
        if self._join.condition is not None:
            return self._conditional(self._join.condition, rows, looked_up, firsts[codes], counts[codes])
        if self._outer:
            firsts[counts == 0] = len(found)
            counts = np.maximum(counts, 1)
        return self._side_by_side(rows, *_spread(firsts[codes], counts[codes]), looked_up)

    def _conditional(
        self, condition: Predicate, rows: pa.Table, looked_up: list[pa.Array], firsts: Positions, counts: Positions
    ) -> pa.Table:
        owners, matches = _spread(firsts, counts)
        candidates = self._side_by_side(rows, owners, matches, looked_up)
        holds = condition(candidates) if len(owners) else np.zeros(0, dtype=np.bool_)
        owners, matches = owners[holds], matches[holds]
        if self._kind.is_existence:
            matched = np.zeros(rows.num_rows, dtype=np.bool_)
            matched[owners] = True
            return existence_filter(rows, matched, self._kind, self._join.mark)
        alone = np.full(rows.num_rows, self._outer)
        alone[owners] = False
        unmatched = np.flatnonzero(alone)
        if len(unmatched) == 0:
            return candidates if holds.all() else candidates.take(pa.array(np.flatnonzero(holds)))
        padding = len(looked_up[0]) - 1 if looked_up else 0
        owners = np.concatenate([owners, unmatched])
        matches = np.concatenate([matches, np.full(len(unmatched), padding, dtype=np.int64)])
        order = np.argsort(owners, kind="stable")
        return self._side_by_side(rows, owners[order], matches[order], looked_up)

    def _side_by_side(
        self, rows: pa.Table, owners: Positions, matches: Positions, looked_up: list[pa.Array]
    ) -> pa.Table:
        """The left rows ``owners``, each with the found row of ``matches``; ``arrival`` and ``delta`` stay last."""
        left = rows if _is_every_row(owners, rows.num_rows) else rows.take(pa.array(owners))
        positions = pa.array(matches)
        columns = {field.name: (field, column) for field, column in zip(left.schema, left.columns, strict=True)}
        last = {name: columns.pop(name) for name in (ARRIVAL, DELTA) if name in columns}
        for field, values in zip(self._looked_up.schema, looked_up, strict=True):
            columns[field.name] = (field.with_nullable(True), values.take(positions))
        parts = [*columns.values(), *last.values()]
        return pa.Table.from_arrays([column for _, column in parts], schema=pa.schema([field for field, _ in parts]))


def _spread(firsts: Positions, counts: Positions) -> tuple[Positions, Positions]:
    """(left row, found row) of each pair; row i has the ``counts[i]`` found rows from ``firsts[i]`` on."""
    if counts.max(initial=0) <= 1:
        owners = np.flatnonzero(counts)
        return owners, firsts[owners]
    return expand(firsts, firsts + counts)


def _is_every_row(owners: Positions, count: int) -> bool:
    """Whether ``owners``, ascending, names each of ``count`` rows once."""
    return len(owners) == count and (count == 0 or bool((np.diff(owners) == 1).all()))
