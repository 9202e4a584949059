"""Rows of several inputs that share a key, put together: every combination of a row of each.

Under one key the combinations are the product of what the inputs hold there. So each input is asked for a key once, and
a combination is no row yet but a position in the rows of each input: rows are made of those that are left at the end.

A key that is hot in several inputs has more combinations than memory has room for, though the conditions may let few of
them through. So they are made in blocks, each of which goes through all inputs before the next one is begun.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dovetail.changelog.changes import Changes, Deltas, products
from dovetail.changelog.rows import Mask, Positions
from dovetail.joins.state.arrangement import Matches
from dovetail.joins.state.blocks import expanded


@dataclass(frozen=True)
class RowsOfKeys:
    """What an input holds under some keys, which are numbered: the rows of key n are at ``begins[n]`` and on, up to
    ``begins[n + 1]``.
    """

    changes: Changes
    begins: Positions

    @staticmethod
    def of(found: Matches, keys: int) -> RowsOfKeys:
        """``found``: pairs of the number of a key, below ``keys``, and a row held under it."""
        order = np.argsort(found.probe, kind="stable")
        begins = np.searchsorted(found.probe[order], np.arange(keys + 1))
        return RowsOfKeys(found.changes.take(order), begins)


@dataclass(frozen=True)
class Combinations:
    """Combinations of rows of some inputs: of each input the table of its rows, and for each combination a position.

    keys    the number of the key that its rows share
    deltas  how often it stands: the product of the counts of its rows
    """

    tables: Mapping[int, pa.Table]
    positions: Mapping[int, Positions]
    keys: Positions
    deltas: Deltas

    @staticmethod
    def of(place: int, changes: Changes, keys: Positions) -> Combinations:
        """The rows of the input ``place`` alone."""
        return Combinations({place: changes.rows}, {place: np.arange(len(changes))}, keys, changes.deltas)

    def __len__(self) -> int:
        return len(self.keys)

    def with_each(self, place: int, held: RowsOfKeys) -> Iterator[Combinations]:
        """Each with every row that another input, ``place``, holds under its key, in blocks of a bounded number."""
        counts = held.changes.deltas
        for owners, found in expanded(held.begins[self.keys], held.begins[self.keys + 1]):
            positions = {other: own[owners] for other, own in self.positions.items()}
            yield Combinations(
                {**self.tables, place: held.changes.rows},
                {**positions, place: found},
                self.keys[owners],
                products(self.deltas[owners], counts[found]),
            )

    def where(self, mask: Mask) -> Combinations:
        """Those for which ``mask`` holds."""
        if mask.all():
            return self
        positions = {place: own[mask] for place, own in self.positions.items()}
        return Combinations(self.tables, positions, self.keys[mask], self.deltas[mask])

    def rows(self, schema: pa.Schema) -> pa.Table:
        """The columns of ``schema``, each of the input that has it."""
        owners = {name: place for place, table in self.tables.items() for name in table.column_names}
        taken = {place: pa.array(positions) for place, positions in self.positions.items()}
        columns = [self.tables[owners[name]].column(name).take(taken[owners[name]]) for name in schema.names]
        return pa.Table.from_arrays(columns, schema.names).cast(schema)

    def changes(self, schema: pa.Schema) -> Changes:
        return Changes.with_deltas(self.rows(schema), self.deltas)
