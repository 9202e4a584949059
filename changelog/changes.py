"""``Changes``: rows with a signed count, and their algebra."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.changelog.errors import CountOverflow
from dovetail.changelog.rows import Mask, Positions, groups_of_equal, numpy_column

DELTA = "__delta"
"""The column of the counts; a user's own column may well be called ``delta``."""
DELTA_TYPE = pa.int64()
Deltas = npt.NDArray[np.int64]

_GREATEST = 1 << 62
"""Counts from here on are refused: a sum or a product of them might not fit any more, and would wrap silently."""


@dataclass(frozen=True, slots=True)
class Changes:
    """An Arrow table whose last column, ``DELTA`` (int64, never null), is a signed count of the row before it.

    +n inserts the row n times, -n retracts it n times. As a multiset it forms a group: ``concat`` adds, ``negated``
    inverts, ``consolidated`` gives the shortest form; ``insertions`` and ``retractions`` add up to the whole. A count
    that 64 bits do not hold is refused.
    """

    table: pa.Table

    @staticmethod
    def of(rows: pa.Table, delta: int = 1) -> Changes:
        """Each row of ``rows`` changed by the same count."""
        return Changes.with_deltas(rows, np.full(rows.num_rows, delta, dtype=np.int64))

    @staticmethod
    def with_deltas(rows: pa.Table, deltas: npt.NDArray[np.integer[Any]]) -> Changes:
        """Row i changed by ``deltas[i]``. Rows without columns are told by their counts alone."""
        field, column = pa.field(DELTA, DELTA_TYPE, nullable=False), pa.array(deltas, DELTA_TYPE)
        if not rows.column_names:
            return Changes(pa.table([column], schema=pa.schema([field])))
        return Changes(rows.append_column(field, column))

    @staticmethod
    def empty(schema: pa.Schema) -> Changes:
        """No change; ``schema`` is that of the rows, without ``delta``."""
        return Changes.of(schema.empty_table())

    @staticmethod
    def concat(parts: Iterable[Changes]) -> Changes:
        """All changes of ``parts``, in order. At least one part; equal column names."""
        return Changes(pa.concat_tables([part.table for part in parts]).combine_chunks())

    @staticmethod
    def between(before: pa.Table, after: pa.Table) -> Changes:
        """What turns the rows of ``before`` into those of ``after``, consolidated; equal column names."""
        return Changes.concat([Changes.of(after), Changes.of(before, -1)]).consolidated()

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def rows(self) -> pa.Table:
        """The rows without their counts."""
        return self.table.drop_columns([DELTA])

    @property
    def deltas(self) -> Deltas:
        return numpy_column(self.table, DELTA)

    @property
    def insertions(self) -> Changes:
        """Those with a positive count, in order."""
        return self.where(self.deltas > 0)

    @property
    def retractions(self) -> Changes:
        """Those with a negative count, in order."""
        return self.where(self.deltas < 0)

    @property
    def only_insertions(self) -> bool:
        return len(self) == 0 or bool(self.deltas.min() > 0)

    def where(self, mask: Mask) -> Changes:
        """Those for which ``mask`` holds, in order; itself when all do."""
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def take(self, positions: Positions) -> Changes:
        """Those at ``positions``, in their order."""
        return Changes(self.table.take(pa.array(positions)))

    def negated(self) -> Changes:
        return Changes.with_deltas(self.rows, -self.deltas)

    def consolidated(self) -> Changes:
        """Equal rows once, with the sum of their counts; rows whose counts add up to zero are gone.

        NULL equals NULL here. Rows keep the order of their first appearance.
        """
        rows, deltas = self.rows, self.deltas
        if not rows.column_names:
            total = _sums(deltas, np.zeros(min(len(deltas), 1), dtype=np.int64))
            return Changes.with_deltas(rows, total[total != 0])
        order, starts = groups_of_equal(rows)
        if len(starts) == len(self):
            kept = np.flatnonzero(deltas)
            return self if len(kept) == len(self) else self.take(kept)
        sums = _sums(deltas[order], starts)
        first = np.minimum.reduceat(order, starts)[sums != 0]
        by_appearance = np.argsort(first, kind="stable")
        kept = first[by_appearance]
        return Changes.with_deltas(rows.take(pa.array(kept)), sums[sums != 0][by_appearance])


def products(left: Deltas, right: Deltas) -> Deltas:
    """The counts of pairs of rows. Raises CountOverflow where one does not fit."""
    if len(left) and _magnitude(left) * _magnitude(right) >= _GREATEST:
        _refuse_beyond(np.abs(left.astype(np.float64) * right))
    return left * right


def _sums(deltas: Deltas, starts: Positions) -> Deltas:
    """The sum of each group, which begin at ``starts``. Raises CountOverflow where one might not fit."""
    if len(deltas) == 0:
        return deltas
    if _magnitude(deltas) * len(deltas) >= _GREATEST:
        _refuse_beyond(np.add.reduceat(np.abs(deltas.astype(np.float64)), starts))
    sums: Deltas = np.add.reduceat(deltas, starts)
    return sums


def _magnitude(deltas: Deltas) -> int:
    return max(int(deltas.max()), -int(deltas.min()))


def _refuse_beyond(counts: npt.NDArray[np.float64]) -> None:
    if (counts >= _GREATEST).any():
        raise CountOverflow(
            f"a row of a changelog would stand {counts.max():.3g} times; counts have 64 bits",
            fix="join on more columns, or aggregate the equal rows before the join",
        )
