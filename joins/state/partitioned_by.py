"""By which columns the rows of an arrangement came into their bucket: what a state is cut anew by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dovetail.changelog.rows import equal_rows, missing_side


@dataclass(frozen=True)
class PartitionedBy:
    """A row came by the hash of its ``keys``; without keys all came into one bucket.

    everywhere     each bucket holds all rows
    otherwise      rows of an outer join: the columns of the other side, of a row whose ``keys`` are padding
    default_pads   such padding is the default of each type, not NULL

    Where both sides are padding, or hold what padding would, the two have one hash.
    """

    keys: tuple[str, ...]
    otherwise: tuple[str, ...] = ()
    default_pads: bool = False
    everywhere: bool = False

    def parted(self, rows: pa.Table) -> Iterator[tuple[pa.Table, tuple[str, ...]]]:
        """``rows``, in order, with the columns by which they came."""
        if not self.otherwise:
            yield rows, self.keys
            return
        schema = pa.schema([rows.schema.field(name) for name in self.keys])
        padding = missing_side(schema, rows.num_rows, self.default_pads)
        names = [(name, name) for name in self.keys]
        padded = equal_rows(rows.select(self.keys), padding, names, [True] * len(names))
        for mask, keys in ((~padded, self.keys), (padded, self.otherwise)):
            yield rows.take(pa.array(np.flatnonzero(mask))), keys
