"""A function of partitions for tests: it sorts them, and walks along."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from dovetail.changelog.rows import Positions
from dovetail.joins.partitions.ordering import SortKey, in_order


@dataclass(frozen=True)
class PlacesAndSums:
    """The place of each row by ``order``, then by the row itself; of the first column in ``order`` the value of the row
    before, and the sum up to the row.
    """

    order: tuple[str, ...]
    schema: pa.Schema = field(
        default_factory=lambda: pa.schema([("place", pa.int64()), ("before", pa.int64()), ("total", pa.int64())])
    )

    def __call__(self, rows: pa.Table, partition: Positions) -> pa.Table:
        order = in_order(rows, partition, [SortKey(name) for name in self.order])
        values = rows.column(self.order[0]).to_pylist()
        found: dict[int, tuple[int, int | None, int | None]] = {}
        place, before, total = 0, None, None
        for last, position in zip([None, *order[:-1]], order, strict=False):
            if last is None or partition[last] != partition[position]:
                place, before, total = 0, None, None
            value = values[position]
            place, total = place + 1, value if total is None else total + (value or 0)
            found[int(position)] = (place, before, total)
            before = value
        columns = list(zip(*(found[position] for position in range(rows.num_rows)), strict=True)) or [(), (), ()]
        return pa.table([pa.array(column, pa.int64()) for column in columns], schema=self.schema)
