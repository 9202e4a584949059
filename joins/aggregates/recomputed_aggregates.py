"""The rows of each group, gathered for the aggregates that are computed from all of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.changelog.changes import DELTA, Changes
from dovetail.changelog.rows import Positions
from dovetail.joins.aggregates.aggregation import GroupFunction
from dovetail.joins.aggregates.group_values import drop
from dovetail.joins.state.arrangement import Arrangement
from dovetail.joins.state.store import RunStore


class RecomputedAggregates:
    """The arguments of ``function`` for each row of each group, and its values in the row of a group.

    A batch costs what the groups hold that it changes: all their rows are read again, those of other groups are not.
    """

    def __init__(
        self, function: GroupFunction, schema: pa.Schema, keys: pa.Schema, store: RunStore, place: str
    ) -> None:
        self._function = function
        self._arguments = [schema.field(name) for name in function.arguments]
        # A key may be an argument too.
        kept = [field.with_name(_kept(field.name)) for field in self._arguments]
        self._rows = Arrangement(store, place, pa.schema([*keys, *kept]), keys.names, (), (True,) * len(keys))

    @property
    def fields(self) -> list[pa.Field]:
        """Its columns in the row of a group: the values themselves."""
        return [field.with_name(_kept(field.name)) for field in self._function.schema]

    def updated(
        self, groups: pa.Table, number: Positions, rows: pa.Table, deltas: npt.NDArray[np.int64]
    ) -> list[pa.Array]:
        """The new values of ``groups``; ``rows`` come and go by ``deltas``, the i-th in the group ``number[i]``."""
        arguments = [rows.column(field.name) for field in self._arguments]
        keys = groups.take(pa.array(number))
        changed = pa.Table.from_arrays([*keys.columns, *arguments], schema=self._rows.schema)
        self._rows.insert(Changes.with_deltas(changed, deltas).consolidated())
        found = self._rows.probe(groups).summed()
        held = found.rows.select([_kept(field.name) for field in self._arguments])
        every = np.repeat(np.arange(len(found.probe)), np.maximum(found.rows.column(DELTA).to_numpy(), 0))
        values = held.rename_columns([field.name for field in self._arguments]).take(pa.array(every))
        return [column.combine_chunks() for column in self._function(values, found.probe[every], len(groups)).columns]

    def results(self, groups: pa.Table) -> list[pa.ChunkedArray]:
        """The values, out of the rows of groups."""
        return [groups.column(field.name) for field in self.fields]

    def drop(self, groups: pa.Table) -> None:
        """Forget ``groups``, given by their keys."""
        drop(self._rows, groups)


def _kept(name: str) -> str:
    return f"__gathered.{name}"
