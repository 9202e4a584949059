"""Which rows of two sides meet, and why others do not: by their keys, then by the residual condition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from dovetail.joins.dataflow.ports import JoinKind, Pad
from dovetail.sql.expressions.evaluate import quoted, run
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.expressions.predicates import split
from dovetail.sql.plan.nodes import Map, Node
from dovetail.sql.trace.demand import literal
from dovetail.sql.trace.ledger import Ledger
from dovetail.sql.trace.traced_rows import LINEAGE, lineage_of, merged, passing, with_lineage, without_lineage
from dovetail.sql.transforms.static_join_step import default_of

_LEFT, _RIGHT = "#left", "#right"
Positions = np.ndarray


@dataclass(frozen=True)
class Side:
    """One side of a join: the rows it has, its key columns, and how these are called.

    source  what it is made of, for people
    """

    rows: pa.Table
    keys: tuple[str, ...]
    named: tuple[str, ...]
    source: str

    @staticmethod
    def of(node: Node, rows: pa.Table, keys: Sequence[str], source: str) -> Side:
        computed = dict(node.columns) if isinstance(node, Map) else {}
        return Side(
            rows, tuple(keys), tuple(computed[key].readable if key in computed else key for key in keys), source
        )

    def keys_of(self, row: int) -> str:
        values = (self.rows.column(key)[row].as_py() for key in self.keys)
        return ", ".join(f"{name} = {literal(value)}" for name, value in zip(self.named, values, strict=True))

    def null_keys(self, null_safe: Sequence[bool]) -> list[str | None]:
        """Of each row the key column that is NULL, if one is that NULL does not match."""
        found: list[str | None] = [None] * self.rows.num_rows
        for place, (key, name) in enumerate(zip(self.keys, self.named, strict=True)):
            if null_safe and null_safe[place]:
                continue
            for row in np.flatnonzero(self.rows.column(key).is_null().to_numpy()):
                found[row] = found[row] or name
        return found


@dataclass
class Pairs:
    """Pairs of positions of rows that meet."""

    left: Side
    right: Side
    places: tuple[Positions, Positions]
    ledger: Ledger

    @staticmethod
    def by_keys(left: Side, right: Side, null_safe: Sequence[bool], ledger: Ledger) -> Pairs:
        safe = null_safe or [False] * len(left.keys)
        terms = [
            f"l.{quoted(own)} {'IS NOT DISTINCT FROM' if one else '='} r.{quoted(other)}"
            for own, other, one in zip(left.keys, right.keys, safe, strict=True)
        ]
        on = " AND ".join(terms) or "true"
        sql = f"SELECT l.{quoted(_LEFT)}, r.{quoted(_RIGHT)} FROM l JOIN r ON {on} ORDER BY 1, 2"
        tables = {"l": _placed(left.rows, _LEFT), "r": _placed(right.rows, _RIGHT)}
        found = run(sql, tables)
        pairs = Pairs(left, right, (found.column(0).to_numpy(), found.column(1).to_numpy()), ledger)
        pairs._tell_keys(null_safe)
        return pairs

    def rows(self) -> pa.Table:
        """The columns of both sides, with the lineage of both."""
        left, right = (
            side.rows.take(pa.array(at)) for side, at in zip((self.left, self.right), self.places, strict=True)
        )
        made = without_lineage(left)
        for field, column in zip(without_lineage(right).schema, without_lineage(right).columns, strict=True):
            made = made.append_column(field, column)
        return with_lineage(made, [merged(both) for both in zip(lineage_of(left), lineage_of(right), strict=True)])

    def that(self, kept: np.ndarray) -> Pairs:
        return Pairs(self.left, self.right, (self.places[0][kept], self.places[1][kept]), self.ledger)

    def fulfilling(self, condition: Expr | None) -> Pairs:
        """Those for which a residual condition holds; of the others the first term that does not is told."""
        pairs = self
        for term in split(condition):
            made = pairs.rows().append_column("#pair", pa.array(np.arange(len(pairs.places[0]))))
            kept = set(passing(made, [term], self.ledger).column("#pair").to_pylist())
            pairs = pairs.that(np.array([place in kept for place in range(made.num_rows)], dtype=np.bool_))
        return pairs

    def joined(
        self, kind: JoinKind, pad: Pad, mark: str = "", padding: Mapping[str, object] = MappingProxyType({})
    ) -> pa.Table:
        """What a join of ``kind`` makes of the pairs."""
        left_rows, right_rows = self.left.rows, self.right.rows
        met_left = np.isin(np.arange(left_rows.num_rows), self.places[0])
        met_right = np.isin(np.arange(right_rows.num_rows), self.places[1])
        if kind is JoinKind.SEMI:
            return self._with_met_lineage(met_left).filter(pa.array(met_left))
        if kind is JoinKind.ANTI:
            self._tell_matched(met_left)
            return left_rows.filter(pa.array(~met_left))
        if kind is JoinKind.MARK:
            tested = self._with_met_lineage(met_left)
            marked = without_lineage(tested).append_column(pa.field(mark, pa.bool_()), pa.array(met_left))
            return marked.append_column(LINEAGE, tested.column(LINEAGE))
        parts = [self.rows()]
        if kind in (JoinKind.LEFT, JoinKind.FULL):
            parts.append(_padded(left_rows.filter(pa.array(~met_left)), parts[0].schema, pad, padding))
        if kind in (JoinKind.RIGHT, JoinKind.FULL):
            parts.append(_padded(right_rows.filter(pa.array(~met_right)), parts[0].schema, pad, padding))
        return pa.concat_tables(parts)

    def _with_met_lineage(self, met: np.ndarray) -> pa.Table:
        """The left rows, each with the lineage of what it matches."""
        lineage = lineage_of(self.left.rows)
        of_right = lineage_of(self.right.rows)
        for left, right in zip(*self.places, strict=True):
            lineage[left] = merged((lineage[left], of_right[right]))
        return with_lineage(without_lineage(self.left.rows), lineage)

    # -- why not --

    def _tell_keys(self, null_safe: Sequence[bool]) -> None:
        for side, other, places in (
            (self.left, self.right, self.places[0]),
            (self.right, self.left, self.places[1]),
        ):
            nulls, lineage = side.null_keys(null_safe), lineage_of(side.rows)
            for row in np.setdiff1d(np.arange(side.rows.num_rows), places):
                null = nulls[row]
                if null is not None:
                    self.ledger.lost(lineage[row], f"NULL key: {null} is NULL, which matches nothing")
                else:
                    wanted = Side(side.rows, side.keys, other.named, "").keys_of(int(row))
                    self.ledger.lost(lineage[row], f"no partner: no row of {other.source} has {wanted}")

    def _tell_matched(self, met: np.ndarray) -> None:
        """ANTI: the left rows that match something, and what they match."""
        left, right = lineage_of(self.left.rows), lineage_of(self.right.rows)
        for own, other in zip(*self.places, strict=True):
            self.ledger.lost(left[own], f"it matches a row of {self.right.source}, and must match none")
            self.ledger.lost(right[other], f"a row of {self.left.source} matches it, which leaves that row out")


def _placed(rows: pa.Table, name: str) -> pa.Table:
    return without_lineage(rows).append_column(name, pa.array(np.arange(rows.num_rows)))


def _padded(rows: pa.Table, schema: pa.Schema, pad: Pad, padding: Mapping[str, object]) -> pa.Table:
    """``rows`` of one side with the columns of the other."""
    columns = []
    for field in schema:
        if field.name in rows.column_names:
            columns.append(rows.column(field.name))
            continue
        value = default_of(field.type).as_py() if pad is Pad.DEFAULT else None
        columns.append(pa.array([padding.get(field.name, value)] * rows.num_rows, field.type))
    return pa.table(columns, schema=schema)
