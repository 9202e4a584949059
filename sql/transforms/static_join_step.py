"""A stream joined with a table that does not change: a step on its way, without state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.errors import InternalError
from dovetail.changelog.formats import decimal_text
from dovetail.joins.dataflow.ports import JoinKind, Transform
from dovetail.sql.expressions.evaluate import quoted, run
from dovetail.sql.expressions.trailing_columns import with_columns
from dovetail.sql.transforms.existence_filter import existence_filter


@dataclass(frozen=True)
class StaticJoinStep:
    """A stream joined with a table that does not change: each row meets the matching rows of ``sql``, read once.

    A row without a match is lost (INNER) or padded at once (LEFT; ``padding`` gives the columns' values). SEMI, ANTI
    and MARK ask of each row whether there is a match, and add no column but the ``mark``. ``delta`` carries over: a
    retraction meets the same static rows as its insertion did, so it needs no state. NULL keys match nothing unless
    ``null_safe``. No keys: every static row.

    sql        the static side, over the tables named by ``relations``
    schema     of the columns of its result that travel; with none of them it still has its rows
    condition  the residual condition, over the columns of both
    """

    relations: tuple[str, ...]
    sql: str
    schema: pa.Schema
    left_keys: tuple[str, ...]
    right_keys: tuple[str, ...]
    null_safe: tuple[bool, ...]
    kind: JoinKind
    condition: str | None = None
    defaults: bool = False
    mark: str = ""
    static: pa.Table | None = None

    def bound(self, snapshots: Mapping[str, pa.Table]) -> Transform:
        rows = run(self.sql, {name: snapshots[name] for name in self.relations})
        for place, field in enumerate(self.schema):
            rows = rows.set_column(place, field, decimal_text.cast(rows.column(place), field.type, safe=False))
        return replace(self, static=rows.combine_chunks())

    def __call__(self, rows: pa.Table) -> pa.Table:
        if self.static is None:
            raise InternalError(
                f"the static side of a join ({', '.join(self.relations)}) was not loaded before its first row"
            )
        if self.kind.is_existence:
            return existence_filter(rows, self._matched(rows, self.static), self.kind, self.mark)
        left, right = self._pairs(rows, self.static)
        if self.kind is JoinKind.LEFT:
            left, right = _with_unmatched(left, right, rows.num_rows)
        return self._joined(rows, self.static, left, right)

    def _matched(self, rows: pa.Table, static: pa.Table) -> npt.NDArray[np.bool_]:
        """Which rows match something."""
        left = rows.append_column("left_position", pa.array(np.arange(rows.num_rows)))
        sql = f"SELECT left_position FROM left_rows SEMI JOIN static_rows ON {self._on}"
        found = run(sql, {"left_rows": left, "static_rows": static})
        matched = np.zeros(rows.num_rows, dtype=np.bool_)
        matched[found.column(0).to_numpy()] = True
        return matched

    def _pairs(self, rows: pa.Table, static: pa.Table) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The positions of the rows that match, by left row and then by static row."""
        left = rows.append_column("left_position", pa.array(np.arange(rows.num_rows)))
        right = static.append_column("right_position", pa.array(np.arange(static.num_rows)))
        sql = f"SELECT left_position, right_position FROM left_rows JOIN static_rows ON {self._on} ORDER BY 1, 2"
        pairs = run(sql, {"left_rows": left, "static_rows": right})
        return pairs.column(0).to_numpy(), pairs.column(1).to_numpy()

    @property
    def _on(self) -> str:
        terms = [
            f"{quoted(left)} {'IS NOT DISTINCT FROM' if safe else '='} {quoted(right)}"
            for left, right, safe in zip(self.left_keys, self.right_keys, self.null_safe, strict=True)
        ]
        terms += [f"({self.condition})"] if self.condition is not None else []
        return " AND ".join(terms) or "true"

    def _joined(
        self,
        rows: pa.Table,
        static: pa.Table,
        left: npt.NDArray[np.int64],
        right: npt.NDArray[np.int64],
    ) -> pa.Table:
        matched = right >= 0
        positions = pa.array(right, mask=~matched)
        columns = []
        for field in self.schema:
            values = static.column(field.name).take(positions)
            if self.defaults and not matched.all():
                values = pc.if_else(pa.array(matched), values, default_of(field.type))
            columns.append((field, values))
        return with_columns(rows.take(pa.array(left)), columns)


def _with_unmatched(
    left: npt.NDArray[np.int64], right: npt.NDArray[np.int64], count: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The pairs, and (row, -1) for each row that is in none; by row."""
    unmatched = np.setdiff1d(np.arange(count, dtype=np.int64), left)
    lefts = np.concatenate([left, unmatched])
    rights = np.concatenate([right, np.full(len(unmatched), -1, dtype=np.int64)])
    order = np.argsort(lefts, kind="stable")
    return lefts[order], rights[order]


def default_of(kind: pa.DataType) -> pa.Scalar:
    """The default of a type: 0, '', false, the epoch; an empty list. Structs and intervals have none: NULL."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pa.scalar("", kind)
    if pa.types.is_binary(kind):
        return pa.scalar(b"", kind)
    if pa.types.is_boolean(kind):
        return pa.scalar(False, kind)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.scalar([], kind)
    if pa.types.is_nested(kind) or pa.types.is_interval(kind):
        return pa.scalar(None, kind)
    if pa.types.is_decimal(kind):
        # A cast from int64 wants room for 19 digits.
        return pa.scalar(Decimal(0), kind)
    return (
        pa.scalar(0, pa.int64())
        .cast(pa.int32() if pa.types.is_date32(kind) or pa.types.is_time32(kind) else pa.int64())
        .cast(kind)
    )
