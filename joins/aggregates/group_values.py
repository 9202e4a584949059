"""The values of a group that an aggregate is over: their changes, their set, the least and the greatest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.changes import Changes
from dovetail.changelog.rows import Mask, Positions, numbered
from dovetail.joins.state.arrangement import Arrangement
from dovetail.joins.state.order import EARLIEST, LATEST, ordinals
from dovetail.joins.state.store import RunStore

VALUE = "__value"
_COUNT = "__count"
_ORDER = "__order"


@dataclass(frozen=True)
class Values:
    """Changes of the values of one argument: ``values[i]``, of the group ``group[i]``, by ``deltas[i]``; no NULLs.

    groups   the keys of each group, by its number
    """

    groups: pa.Table
    group: Positions
    values: pa.Array
    deltas: npt.NDArray[np.int64]

    def where(self, mask: Mask) -> Values:
        positions = np.flatnonzero(mask)
        values = self.values.take(pa.array(positions))
        return Values(self.groups, self.group[positions], values, self.deltas[positions])

    def totals(self, amounts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The sum, over each group, of ``amounts``: one for each change, or a row of them."""
        total = np.zeros((self.groups.num_rows, *amounts.shape[1:]), dtype=np.int64)
        np.add.at(total, self.group, amounts)
        return total


class DistinctValues:
    """The set of the values of each group, of a multiset of which the changes are given.

    counted   values can go again, so how often each is there is kept; else that it is there
    """

    def __init__(self, store: RunStore, name: str, keys: pa.Schema, kind: pa.DataType, counted: bool) -> None:
        self._counted = counted
        self._names = [*keys.names, VALUE]
        schema = pa.schema([*keys, pa.field(VALUE, kind), pa.field(_COUNT, pa.int64())])
        self._values = Arrangement(store, name, schema, keys.names, self._names, (True,) * len(keys))

    def changes(self, values: Values) -> Values:
        """What the set gains (+1) and loses (-1) by ``values``, which are taken in."""
        rows = values.groups.take(pa.array(values.group)).append_column(VALUE, values.values)
        number, first = numbered(rows)
        rows = rows.take(pa.array(first))
        change = np.zeros(len(first), dtype=np.int64)
        np.add.at(change, number, values.deltas)
        owners, old = self._values.current(rows, self._names)
        before = np.zeros(len(first), dtype=np.int64)
        before[owners] = old.column(_COUNT).to_numpy()
        after = before + change if self._counted else np.ones(len(first), dtype=np.int64)
        changed = after != before
        gone = Changes.of(old.take(pa.array(np.flatnonzero(changed[owners]))), -1)
        come = rows.append_column(_COUNT, pa.array(after)).take(pa.array(np.flatnonzero(changed & (after > 0))))
        self._values.insert(Changes.concat([gone, Changes.of(come.cast(old.schema))]))
        shown = (after > 0).astype(np.int64) - (before > 0)
        return Values(values.groups, values.group[first], values.values.take(pa.array(first)), shown).where(shown != 0)

    def drop(self, groups: pa.Table) -> None:
        """Forget the values of ``groups``."""
        drop(self._values, groups)


class OrderedValues:
    """The set of the values of each group in their order, so that the greatest and the least are found at once."""

    def __init__(self, store: RunStore, name: str, keys: pa.Schema, kind: pa.DataType) -> None:
        self._keys = keys
        schema = pa.schema([*keys, pa.field(VALUE, kind), pa.field(_ORDER, pa.int64())])
        self._values = Arrangement(store, name, schema, keys.names, (), (True,) * len(keys), order=_ORDER)

    def insert(self, values: Values) -> None:
        """Take in changes of the set."""
        rows = values.groups.take(pa.array(values.group)).append_column(VALUE, values.values)
        rows = rows.append_column(_ORDER, pa.array(ordinals(values.values)))
        self._values.insert(Changes.with_deltas(rows.cast(self._values.schema), values.deltas))

    def extremes(self, groups: pa.Table, greatest: bool) -> tuple[Positions, pa.Array]:
        """Group numbers and values, the greatest (least) of each group among them: those of one ordinal."""
        at = np.full(groups.num_rows, LATEST if greatest else EARLIEST)
        found = self._values.nearest(groups, at, newest=greatest, inclusive=True)
        return found.probe, found.rows.column(VALUE).combine_chunks()

    def drop(self, groups: pa.Table) -> None:
        drop(self._values, groups)


def drop(arrangement: Arrangement, groups: pa.Table) -> None:
    """Take all rows of ``groups`` out of an arrangement by their keys."""
    found = arrangement.probe(groups).summed()
    if found.rows.num_rows:
        arrangement.insert(found.changes.negated())


def best(group: Positions, values: pa.Array, greatest: bool) -> Positions:
    """Of each group among ``group`` the position of its greatest (least) value. NaN is the greatest number."""
    if pa.types.is_floating(values.type):
        values = pa.array(ordinals(values))
    rows = pa.table({"group": group, "value": values})
    direction = "descending" if greatest else "ascending"
    order: Positions = pc.sort_indices(rows, [("group", "ascending"), ("value", direction)]).to_numpy().astype(np.int64)
    _, first = np.unique(group[order], return_index=True)
    return order[first]
