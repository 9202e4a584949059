"""Map: computed columns, a filter."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa
from sqlglot import exp

from dovetail.sql.expressions.expression import Expr
from dovetail.sql.expressions.predicates import split
from dovetail.sql.plan.canonical_values import Form, computed, expression, members
from dovetail.sql.plan.joins.method import Key
from dovetail.sql.plan.nodes.event_time import EventTime
from dovetail.sql.plan.nodes.node import Chained, Cut, Node, names_read
from dovetail.sql.plan.nodes.upserts import Upserts


@dataclass(frozen=True)
class Map(Chained):
    """The rows of ``input`` that pass ``where``, with ``columns`` computed from them."""

    columns: tuple[tuple[str, Expr], ...]
    where: Expr | None = None

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(name, expr.type) for name, expr in self.columns])

    @cached_property
    def forms(self) -> Mapping[str, str]:
        found = ((name, expr.form or self.input.forms.get(expr.plain or "", "")) for name, expr in self.columns)
        return {name: form for name, form in found if form}

    @cached_property
    def computed(self) -> Mapping[str, Expr]:
        """What each column is computed by."""
        return dict(self.columns)

    @cached_property
    def renamed(self) -> Mapping[str, str]:
        """Input column -> the output column that is it."""
        return {expr.plain: name for name, expr in reversed(self.columns) if expr.plain is not None}

    def name_below(self, name: str) -> str | None:
        return self.computed[name].plain if name in self.computed else None

    def name_above(self, name: str) -> str | None:
        return self.renamed.get(name)

    # -- changes --

    def column_grows(self, name: str) -> bool:
        return any(map(self.input.column_grows, self.computed[name].columns))

    def column_rises(self, name: str) -> bool:
        summed = _without_constants(self.computed[name].tree)
        return summed is not None and self.input.column_rises(summed)

    @cached_property
    def single_row(self) -> bool:
        return self.input.single_row

    @cached_property
    def upserts(self) -> Upserts | None:
        below = self.input.upserts
        if self.where is not None or below is None or not below.columns <= set(self.renamed):
            return None
        return Upserts(tuple(map(self.renamed.__getitem__, below.key)), self.renamed.get(below.version, ""))

    # -- keys --

    @cached_property
    def unique_keys(self) -> list[Key]:
        renamed = self.renamed
        return [tuple(renamed[name] for name in key) for key in self.input.unique_keys if set(key) <= set(renamed)]

    @cached_property
    def nullable(self) -> Set[str]:
        return {name for name, expr in self.columns if self.input.nullable & set(expr.columns)}

    @cached_property
    def not_null(self) -> Set[str]:
        below = self.input.not_null | self._tested
        return {name for name, expr in self.columns if expr.plain in below}

    @property
    def _tested(self) -> set[str]:
        """The columns of the input that WHERE says are not NULL."""
        found = set()
        for term in split(self.where):
            inner = term.tree.this.unnest() if isinstance(term.tree, exp.Not) else None
            is_null = isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null)
            if isinstance(inner, exp.Is) and is_null and isinstance(inner.this, exp.Column):
                found.add(inner.this.name)
        return found

    @cached_property
    def equal_columns(self) -> Mapping[str, Set[str]]:
        renamed = self.renamed
        return {
            renamed[name]: {renamed[other] for other in others if other in renamed}
            for name, others in self.input.equal_columns.items()
            if name in renamed
        }

    @cached_property
    def arrival_columns(self) -> Set[str]:
        below = self.input.arrival_columns
        return {name for name, expr in self.columns if below & set(expr.columns)}

    @cached_property
    def bucket_key(self) -> Cut | None:
        return self._lifted(self.input.bucket_key)

    @cached_property
    def partition_key(self) -> Cut | None:
        return self._lifted(self.input.partition_key)

    def _lifted(self, cut: Cut | None) -> Cut | None:
        return None if cut is None else tuple(map(self._above, cut))

    def _above(self, expr: Expr | None) -> Expr | None:
        """An expression over the input as one over the output; None where its columns end, or have ended."""
        if expr is None:
            return None
        same = next((name for name, computed in self.columns if computed.structure == expr.structure), None)
        if same is not None:
            return self.column(same)
        if not set(expr.columns) <= set(self.renamed):
            return None
        return expr.substituted({name: self.column(self.renamed[name]) for name in expr.columns})

    # -- event time --

    def column_time(self, name: str) -> EventTime | None:
        return self.input.event_time(self.computed[name]) if name in self.computed else None

    def with_clock(self) -> Map:
        """The same with the column of the watermark below it, if it drops that."""
        below = self.input.output_watermark
        if below is None or self.output_watermark is not None:
            return self
        return replace(self, columns=(*self.columns, (below.column, self.input.column(below.column))))

    # -- rules --

    @property
    def shared_with(self) -> str:
        return self.input.shared_with

    def pruned(self, needed: Set[str]) -> Node:
        """The primary key and the version stay, which a port above needs if upserts pass through."""
        kept = needed | (frozenset() if self.upserts is None else self.upserts.columns)
        columns = tuple((name, expr) for name, expr in self.columns if name in kept)
        below = names_read(*(expr for _, expr in columns), self.where)
        return replace(self, input=self.input.pruned(below), columns=columns)

    # -- words --

    @property
    def line(self) -> str:
        parts = ["Map"] + ([f"where {self.where.readable}"] if self.where is not None else [])
        computed = [
            f"{name} = {expr.readable}" + (f" as {expr.type}" if expr.plain is not None else "")
            for name, expr in self.columns
            if expr.plain is None or (name.startswith("__") and expr.plain != name)
        ]
        parts += computed if computed or self.where is not None else [f"columns={','.join(self.schema.names)}"]
        return "  ".join(parts)

    @property
    def canonical(self) -> Form:
        return members(
            node="map",
            columns=computed(self.columns),
            where=expression(self.where),
            input=self.input.canonical,
        )


def _without_constants(tree: exp.Expr) -> str | None:
    """The column, of what is a column, also as a time, plus or less what reads none; None of anything else."""
    match tree.unnest():
        case exp.Column() as column:
            return str(column.name)
        case exp.Add() | exp.Sub() as sum_ if sum_.right.find(exp.Column) is None:
            return _without_constants(sum_.left)
        case exp.Add() as sum_ if sum_.left.find(exp.Column) is None:
            return _without_constants(sum_.right)
        case exp.Cast() as cast if cast.to.this in exp.DataType.TEMPORAL_TYPES:
            return _without_constants(cast.this)
    return None
