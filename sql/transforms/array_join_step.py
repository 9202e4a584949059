"""ARRAY JOIN: from rows to a row for each element of their arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.formats import decimal_text
from dovetail.joins.dataflow.ports import Pad, Transform
from dovetail.sql.expressions.evaluate import evaluate, plain_column
from dovetail.sql.expressions.trailing_columns import trailing, with_columns
from dovetail.sql.transforms.static_join_step import default_of


@dataclass(frozen=True)
class ArrayJoinStep:
    """Each row once for every place in the longest of its ``arrays``, with the elements at this place.

    An array that has ended is padded with NULL. A row without elements (its arrays are empty, or NULL) is left out,
    unless ``left``: then it leaves once, each element the default of its type, or NULL, as ``pad`` says.

        id  a        b                    id  x     y
        1   [5, 6]   ['p']                1   5     'p'
                                          1   6     NULL
        2   []       NULL         left:   2   0     ''

    The rows keep their order, the elements of a row theirs; ``arrival`` and ``delta`` carry over, so the retraction of
    a row takes back each row that it gave.

    arrays  the column of the elements, and the array as SQL over the columns of the input
    types   of the elements
    kept    the columns of the input that leave
    """

    arrays: tuple[tuple[str, str], ...]
    types: tuple[pa.DataType, ...]
    left: bool
    kept: tuple[str, ...]
    pad: Pad = Pad.DEFAULT

    def bound(self, snapshots: Mapping[str, pa.Table]) -> Transform:
        return self

    def __call__(self, rows: pa.Table) -> pa.Table:
        arrays = self._arrays(rows)
        lengths = [pc.fill_null(pc.list_value_length(array), 0).to_numpy().astype(np.int64) for array in arrays]
        longest = np.maximum.reduce(lengths)
        count = np.maximum(longest, 1) if self.left else longest
        parents = np.repeat(np.arange(rows.num_rows), count)
        places = np.arange(len(parents)) - np.repeat(np.cumsum(count) - count, count)
        without = longest[parents] == 0
        columns = []
        for (name, _), kind, array, length in zip(self.arrays, self.types, arrays, lengths, strict=True):
            elements = pc.list_flatten(array).take(_positions(length, parents, places))
            if without.any() and self.pad is Pad.DEFAULT:
                elements = pc.if_else(pa.array(without), default_of(kind), elements)
            columns.append((pa.field(name, kind), elements))
        repeated = rows.select([*self.kept, *trailing(rows)]).take(pa.array(parents))
        return with_columns(repeated, columns)

    def _arrays(self, rows: pa.Table) -> list[pa.Array]:
        computed = [sql for _, sql in self.arrays if plain_column(sql) is None]
        values = dict(zip(computed, evaluate(rows, computed), strict=True))
        found = [values[sql] if sql in values else rows.column(plain_column(sql)) for _, sql in self.arrays]
        return [
            decimal_text.cast(array, pa.list_(kind), safe=False).combine_chunks()
            for array, kind in zip(found, self.types, strict=True)
        ]


def _positions(
    lengths: npt.NDArray[np.int64], parents: npt.NDArray[np.int64], places: npt.NDArray[np.int64]
) -> pa.Array:
    """Where the elements stand among all of the array's; NULL behind its end."""
    begins = np.cumsum(lengths) - lengths
    return pa.array(begins[parents] + places, mask=places >= lengths[parents])
