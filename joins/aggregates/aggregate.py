"""Grouping: one row for each group, kept up to date by its changes.

**Definition.** Rows that agree in the keys form a group; NULL is a key like any other. The row of a group is its keys
and its aggregates: COUNT(*) of its rows; COUNT, SUM, AVG, MIN and MAX of the values of an argument that are not NULL,
or, DISTINCT, of their set. Of no values COUNT is 0 and the others are NULL; so is a sum that its type cannot hold. Any
other aggregate is a function of all rows of its group, in whatever order. A change of a group is -1 of its old row and
+1 of its new one, side by side; a change that alters nothing leaves no trace. A group without rows is gone. Without
keys all rows are one group, which is there from the start of the query.

**Exactness.** The output is that of the same query over the rows there are: sums are added up without rounding, so a
double that is taken away leaves nothing of itself behind.

**Windows.** With ``closing`` a group goes when the watermark has passed its window; its row stays in the output. With
``closed`` its row leaves then, and only then. What still comes for a closed group is left out.

**State.** The row of each group with its accumulators. Besides, of the aggregates that are not linear: for DISTINCT the
values of a group, with their counts where rows can be taken back; for MIN and MAX, where rows can be, its values in
order; for sums of doubles a few digits. For functions of all rows their arguments, which are read again for each group
that changes.

Source: Gupta, Mumick and Subrahmanian, "Maintaining Views Incrementally" (SIGMOD 1993), section on aggregation;
Palpanas et al., "Incremental Maintenance for Non-Distributive Aggregate Functions" (VLDB 2002).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dovetail.changelog.changes import DELTA, Changes
from dovetail.changelog.rows import Mask, Positions, equal_rows, numbered, numpy_column, where
from dovetail.joins.aggregates.accumulators import Count
from dovetail.joins.aggregates.aggregation import Aggregation, Closing, GroupFunction
from dovetail.joins.aggregates.arguments import Argument
from dovetail.joins.aggregates.group_values import Values
from dovetail.joins.aggregates.recomputed_aggregates import RecomputedAggregates
from dovetail.joins.dataflow.ports import Port
from dovetail.joins.dataflow.specification import OperatorSpec
from dovetail.joins.inputs.change_normalizer import ChangeNormalizer
from dovetail.joins.state.arrangement import Arrangement
from dovetail.joins.state.order import bound_after, bound_of, times_of
from dovetail.joins.state.store import RunStore

_ALL = pa.field("__all", pa.int8())
"""The key where there is none: the same for all rows."""
_ROWS = "__rows"


@dataclass(frozen=True)
class AggregateSpec(OperatorSpec):
    """One row for each group of rows that agree in the keys of the port: the keys, the aggregations, the values of
    ``recomputed``.

    NULL is a key like any other. A change of a group is -1 of its old row and +1 of its new one; a group without rows
    is gone. Without keys all rows are one group, which is there from the start.

    insertions   the input has no retractions: less is kept
    closing      groups go when they can gain no more rows; that is no retraction: the output stays
    closed       a row leaves once, when its group goes (EMIT ON WINDOW CLOSE); needs ``closing``
    """

    port: Port
    aggregations: tuple[Aggregation, ...]
    insertions: bool = False
    closing: Closing | None = None
    closed: bool = False
    recomputed: GroupFunction | None = None

    @property
    def ports(self) -> tuple[Port, ...]:
        return (self.port,)

    @property
    def has_initial_output(self) -> bool:
        return not self.port.keys

    @property
    def waits(self) -> bool:
        return self.closed

    def open(self, store: RunStore, name: str) -> AggregateOperator:
        return AggregateOperator(self, store, name)


class AggregateOperator:
    """``on_batch([rows]) -> changes`` of the groups: the keys, then what is made of their rows."""

    def __init__(self, spec: AggregateSpec, store: RunStore, name: str) -> None:
        port = spec.port
        self._spec = spec
        self._keys = pa.schema([port.schema.field(key) for key in port.keys] or [_ALL])
        self._normalizer = ChangeNormalizer.of(port, store, f"{name}.rows", (True,) * len(port.keys))
        self._rows = Count(_ROWS)
        self._arguments = {
            argument: Argument(
                port.schema.field(argument), over, self._keys, spec.insertions, store, f"{name}.{number}"
            )
            for number, (argument, over) in enumerate(_by_argument(spec.aggregations).items())
        }
        self._recomputed: RecomputedAggregates | None = None
        if spec.recomputed is not None:
            self._recomputed = RecomputedAggregates(spec.recomputed, port.schema, self._keys, store, f"{name}.gathered")
        fields = [*self._keys, *self._rows.fields]
        fields += [field for one in self._arguments.values() for field in one.fields]
        fields += self._recomputed.fields if self._recomputed is not None else []
        order = spec.closing.column if spec.closing is not None else ""
        keys = self._keys.names
        self._groups = Arrangement(
            store, f"{name}.groups", pa.schema(fields), keys, keys, (True,) * len(keys), order=order
        )

    @property
    def dangling(self) -> int:
        return self._normalizer.dangling

    def initial_output(self) -> Changes:
        """The one row of the group of all rows, while there is none."""
        if not self._spec.has_initial_output or not self._groups.empty:
            return Changes.empty(self._schema)
        return self._updated(Changes.empty(self._spec.port.schema).table)

    def on_batch(self, inputs: Sequence[pa.Table | None]) -> Changes:
        (rows,) = inputs
        if rows is None or rows.num_rows == 0:
            return Changes.empty(self._schema)
        return self._updated(self._open(self._normalizer.normalize_and_store(rows).table))

    @property
    def _schema(self) -> pa.Schema:
        keys = [self._spec.port.schema.field(key) for key in self._spec.port.keys]
        recomputed = self._spec.recomputed.schema if self._spec.recomputed is not None else ()
        return pa.schema([*keys, *(pa.field(one.name, one.type) for one in self._spec.aggregations), *recomputed])

    def _open(self, rows: pa.Table) -> pa.Table:
        """``rows`` without those of groups that are closed."""
        closing = self._spec.closing
        if closing is None or self._groups.expired is None:
            return rows
        return where(rows, times_of(rows.column(closing.column)) >= self._groups.expired)

    def _updated(self, rows: pa.Table) -> Changes:
        number, groups = self._numbered(rows)
        deltas = numpy_column(rows, DELTA).astype(np.int64)
        owners, found = self._groups.current(groups, self._keys.names)
        place = np.full(groups.num_rows, -1, dtype=np.int64)
        place[owners] = np.arange(len(owners))
        before = found.take(pa.array(place, mask=place < 0))
        accumulated = self._rows.updated(before, Values(groups, number, pa.nulls(rows.num_rows), deltas))
        for name, argument in self._arguments.items():
            values = rows.column(name).combine_chunks()
            accumulated += argument.updated(before, Values(groups, number, values, deltas))
        if self._recomputed is not None:
            accumulated += self._recomputed.updated(groups, number, rows, deltas)
        after = pa.Table.from_arrays([*groups.columns, *accumulated], schema=self._groups.schema)
        return self._replaced(_GroupRows(before, place >= 0), _GroupRows(after, self._alive(after)))

    def _numbered(self, rows: pa.Table) -> tuple[Positions, pa.Table]:
        """The number of the group of each row, and the keys of each group by its number."""
        if not self._spec.port.keys:
            return np.zeros(rows.num_rows, dtype=np.int64), pa.table([pa.array([0], pa.int8())], schema=self._keys)
        number, first = numbered(rows.select(self._keys.names))
        return number, rows.select(self._keys.names).take(pa.array(first))

    def _alive(self, groups: pa.Table) -> Mask:
        if not self._spec.port.keys:
            return np.ones(groups.num_rows, dtype=np.bool_)
        alive: Mask = self._rows.counts(groups) > 0
        return alive

    def _replaced(self, before: _GroupRows, after: _GroupRows) -> Changes:
        """Let ``after`` stand in the place of ``before``, and the difference this makes in the output."""
        self._groups.insert(_difference(before, after))
        if self._spec.closed:
            return Changes.empty(self._schema)
        return _difference(self._shown(before), self._shown(after))

    def _shown(self, groups: _GroupRows) -> _GroupRows:
        return _GroupRows(self._results(groups.rows), groups.there)

    def _results(self, groups: pa.Table) -> pa.Table:
        """The rows of the output, of groups with their accumulators."""
        columns = [groups.column(key) for key in self._spec.port.keys]
        columns += [self._result(one, groups) for one in self._spec.aggregations]
        columns += self._recomputed.results(groups) if self._recomputed is not None else []
        return pa.Table.from_arrays(columns, schema=self._schema)

    def _result(self, aggregation: Aggregation, groups: pa.Table) -> pa.Array:
        if not aggregation.argument:
            return pa.array(self._rows.counts(groups))
        return self._arguments[aggregation.argument].result(aggregation, groups)

    # -- windows

    def on_watermark(self, watermarks: Sequence[int | None]) -> Changes:
        """Let the groups go that can gain no more rows; their rows leave now if they leave ``closed``."""
        (watermark,) = watermarks
        closing = self._spec.closing
        if closing is None or watermark is None:
            return Changes.empty(self._schema)
        bound_at = bound_after if closing.through else bound_of
        bound = bound_at(watermark + closing.shift, self._spec.port.schema.field(closing.column).type)
        if self._groups.expired is not None and bound <= self._groups.expired:
            return Changes.empty(self._schema)
        gone = self._groups.expire(bound).rows
        for argument in self._arguments.values() if gone.num_rows else ():
            argument.drop(gone.select(self._keys.names))
        if self._recomputed is not None and gone.num_rows:
            self._recomputed.drop(gone.select(self._keys.names))
        return Changes.of(self._results(gone)) if self._spec.closed else Changes.empty(self._schema)


def _by_argument(aggregations: Sequence[Aggregation]) -> dict[str, list[Aggregation]]:
    """Those that have an argument, by its name."""
    found: dict[str, list[Aggregation]] = {}
    for one in aggregations:
        if one.argument:
            found.setdefault(one.argument, []).append(one)
    return found


@dataclass(frozen=True)
class _GroupRows:
    """A row for each group, and whether it is there at all."""

    rows: pa.Table
    there: Mask


def _difference(before: _GroupRows, after: _GroupRows) -> Changes:
    """-1 of each row of ``before`` and +1 of that of ``after``, side by side; nothing where they are equal."""
    names = after.rows.column_names
    same = equal_rows(before.rows, after.rows, [(name, name) for name in names], [True] * len(names))
    changed = ~(same & before.there & after.there)
    gone, come = np.flatnonzero(before.there & changed), np.flatnonzero(after.there & changed)
    return _interleaved(before.rows, gone, after.rows, come)


def _interleaved(before: pa.Table, gone: Positions, after: pa.Table, come: Positions) -> Changes:
    rows = pa.concat_tables([before.take(pa.array(gone)).cast(after.schema), after.take(pa.array(come))])
    deltas = np.concatenate([np.full(len(gone), -1, np.int64), np.full(len(come), 1, np.int64)])
    order = np.argsort(np.concatenate([gone, come]), kind="stable")
    return Changes.with_deltas(rows.take(pa.array(order)).combine_chunks(), deltas[order])
