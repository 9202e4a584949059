"""What is kept of the values of one argument, for all aggregations over it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.rows import Mask
from dovetail.joins.aggregates.accumulators import Accumulator, Count, Extreme, RealSum, Sum, WholeSum
from dovetail.joins.aggregates.aggregation import Aggregation, Fold
from dovetail.joins.aggregates.exact_sums import is_summed_exactly
from dovetail.joins.aggregates.group_values import DistinctValues, OrderedValues, Values
from dovetail.joins.state.store import RunStore


class Argument:
    """The accumulators over the values of a column, and over their set (DISTINCT).

    The set itself is kept where it is asked for, and where the least or greatest value can be taken back: then in
    order, too.

    field        the column, of the rows that are grouped
    aggregations those over it
    insertions   no value is taken back
    """

    def __init__(
        self,
        field: pa.Field,
        aggregations: Sequence[Aggregation],
        keys: pa.Schema,
        insertions: bool,
        store: RunStore,
        place: str,
    ) -> None:
        self.name = field.name
        folds = {one.fold for one in aggregations}
        searched = bool(folds & {Fold.MIN, Fold.MAX}) and not insertions
        self._set: DistinctValues | None = None
        self._ordered: OrderedValues | None = None
        if searched or any(one.distinct for one in aggregations):
            self._set = DistinctValues(store, f"{place}.set", keys, field.type, counted=not insertions)
        if searched:
            self._ordered = OrderedValues(store, f"{place}.ordered", keys, field.type)
        self._linear = {
            distinct: _Linear(field, folds_of, keys, distinct, store, place)
            for distinct in (False, True)
            if (folds_of := {one.fold for one in aggregations if one.distinct == distinct} - {Fold.MIN, Fold.MAX})
        }
        self._extremes = {
            fold: Extreme(f"__{field.name}", field.type, fold is Fold.MAX, self._ordered)
            for fold in (Fold.MIN, Fold.MAX)
            if fold in folds
        }

    @property
    def fields(self) -> list[pa.Field]:
        """The columns of its accumulators in the row of a group."""
        linear = [field for one in self._linear.values() for field in one.fields]
        return linear + [field for one in self._extremes.values() for field in one.fields]

    def updated(self, before: pa.Table, values: Values) -> list[pa.Array]:
        """The new content of its columns; ``values`` may hold NULLs."""
        if values.values.null_count:
            values = values.where(values.values.is_valid().to_numpy(zero_copy_only=False))
        of_set = values if self._set is None else self._set.changes(values)
        if self._ordered is not None:
            self._ordered.insert(of_set)
        columns = []
        for distinct, linear in self._linear.items():
            columns += linear.updated(before, of_set if distinct else values)
        for extreme in self._extremes.values():
            columns += extreme.updated(before, of_set)
        return columns

    def result(self, aggregation: Aggregation, groups: pa.Table) -> pa.Array:
        """The aggregate of each group, from the columns of its row."""
        if aggregation.fold in self._extremes:
            return self._extremes[aggregation.fold].values(groups)
        return self._linear[aggregation.distinct].result(aggregation, groups)

    def drop(self, groups: pa.Table) -> None:
        """Forget ``groups``, given by their keys."""
        for values in (self._set, self._ordered):
            if values is not None:
                values.drop(groups)
        for linear in self._linear.values():
            linear.drop(groups)


class _Linear:
    """Count and sum, of values or of their set."""

    def __init__(
        self, field: pa.Field, folds: set[Fold], keys: pa.Schema, distinct: bool, store: RunStore, place: str
    ) -> None:
        name, kind = f"__{field.name}{'.distinct' if distinct else ''}", field.type
        self._count = Count(name)
        self._sum: Sum | None = None
        if folds & {Fold.SUM, Fold.AVG}:
            digits = f"{place}.digits{'.distinct' if distinct else ''}"
            self._sum = WholeSum(name, kind) if is_summed_exactly(kind) else RealSum(name, store, digits, keys)

    @property
    def _accumulators(self) -> list[Accumulator]:
        return [self._count] if self._sum is None else [self._count, self._sum]

    @property
    def fields(self) -> list[pa.Field]:
        return [field for one in self._accumulators for field in one.fields]

    def updated(self, before: pa.Table, values: Values) -> list[pa.Array]:
        return [column for one in self._accumulators for column in one.updated(before, values)]

    def result(self, aggregation: Aggregation, groups: pa.Table) -> pa.Array:
        counts = self._count.counts(groups)
        if aggregation.fold is Fold.COUNT or self._sum is None:
            return pa.array(counts)
        if aggregation.fold is Fold.SUM:
            return _unless(counts == 0, self._sum.sums(groups, aggregation.type))
        return pa.array(self._sum.means(groups, np.maximum(counts, 1)), mask=counts == 0)

    def drop(self, groups: pa.Table) -> None:
        for one in self._accumulators:
            one.drop(groups)


def _unless(empty: Mask, values: pa.Array) -> pa.Array:
    """The values, NULL where a group has none."""
    return pc.if_else(pa.array(empty), pa.scalar(None, values.type), values) if empty.any() else values
