"""FROM of a bounded query: its items, with the joins between them, as DuckDB takes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from dovetail.sql.bind.bounded.snapshot_array_join import column_names, rows_of, unnested
from dovetail.sql.bind.bounded.snapshot_asof import Right, as_duckdb
from dovetail.sql.bind.bounded.snapshot_expressions import SnapshotExpressions
from dovetail.sql.bind.bounded.snapshot_items import SnapshotItem, column_of, refuse_join
from dovetail.sql.bind.bounded.snapshot_names import SnapshotNames
from dovetail.sql.bind.from_clause.array_join import (
    PREFIX,
    flattened,
    is_array_join,
    joined_arrays,
    padding,
    with_elements,
)
from dovetail.sql.bind.from_clause.brackets import join_in_brackets
from dovetail.sql.bind.from_clause.join_method import using_names
from dovetail.sql.bind.from_clause.laterals import is_lateral
from dovetail.sql.bind.scope import Scope, place_of


@dataclass(frozen=True)
class SnapshotFrom:
    """``item`` rewrites one item, in place, ``lateral`` one that sees the columns of those before it."""

    select: exp.Select
    item: Callable[[exp.Expr], SnapshotItem]
    lateral: Callable[[exp.Lateral, Scope], SnapshotItem]
    names: SnapshotNames
    expressions: SnapshotExpressions

    def scope(self) -> Scope:
        """The columns of FROM with its joins, which are rewritten in place."""
        source = self.select.args.get("from_") or self.select.args.get("from")
        if source is None:
            return Scope((), self.names.dialect)
        scope, items = self._source(source.this)
        return self._joined(self.select, scope, items)

    def _source(self, table: exp.Expr) -> tuple[Scope, list[SnapshotItem]]:
        """A FROM item; in brackets a join, whose names are those of its parts."""
        inner = join_in_brackets(table)
        if inner is None or table.alias:
            item = self.item(table)
            return self.names.scope(item), [item]
        joins = inner.args.get("joins")
        inner.set("joins", None)
        scope, items = self._source(inner)
        # The item may be another one now, which stands in the place of the written one.
        first = table.this
        if joins:
            first.set("joins", joins)
        else:
            table.replace(first)
        return self._joined(first, scope, items), items

    def _joined(self, holder: exp.Expr, scope: Scope, items: list[SnapshotItem]) -> Scope:
        for join in tuple(holder.args.get("joins") or ()):
            if is_array_join(join):
                scope = self._array_joined(join, scope, items)
                continue
            refuse_join(join)
            right, beside = self._lateral(join.this, scope) if is_lateral(join) else self._source(join.this)
            scope.refuse_aliases_of(right, place_of(join, "JOIN"))
            scope = self._join(join, scope, right, items, beside)
            items += beside
        return scope

    def _lateral(self, table: exp.Lateral, scope: Scope) -> tuple[Scope, list[SnapshotItem]]:
        item = self.lateral(table, replace(scope, outer=self.expressions.outer))
        return self.names.scope(item), [item]

    def _array_joined(self, join: exp.Join, scope: Scope, items: list[SnapshotItem]) -> Scope:
        """As ``sql.transforms.array_join_step`` has it. What stands before it is one item from here on."""
        found, prefix = joined_arrays(join, scope), self.names.alias(PREFIX)
        values = [self.expressions.typed(one.expression, scope, one.clause) for one in found]
        arrays = [
            flattened(one, self.names.written(value.tree), value.type) for one, value in zip(found, values, strict=True)
        ]
        elements = [one.element(prefix, kind) for one, (_, kind) in zip(found, arrays, strict=True)]
        trees = unnested(arrays, left=join.side == "LEFT", pad=padding(join))
        names, alias = column_names(scope), f"#{prefix}"
        columns = [exp.alias_(self.names.shown[one].copy(), name, quoted=True) for one, name in names.items()]
        taken = {name.casefold() for name in names.values()}
        called = {one.internal: one.internal if one.name.casefold() in taken else one.name for one in elements}
        named = [exp.alias_(tree, name, quoted=True) for name, tree in zip(called.values(), trees, strict=True)]
        rows_of(self.select, join, [*columns, *named], alias)
        for internal, name in {**names, **called}.items():
            self.names.shown[internal] = column_of(name, alias)
        items[:] = [SnapshotItem(alias, [(name, scope.types[internal]) for internal, name in names.items()])]
        return with_elements(scope, found, elements)

    def _join(
        self, join: exp.Join, left: Scope, right: Scope, items: Sequence[SnapshotItem], beside: Sequence[SnapshotItem]
    ) -> Scope:
        names = using_names(join, left, right)
        if join.method.upper() == "NATURAL":
            join.set("method", None)
        pairs, both = left.halves(right, names), left + right
        if (on := join.args.get("on")) is not None:
            join.set("on", self.expressions.on(on, left, right))
        if names:
            join.set(
                "using", [exp.to_identifier(left.find(exp.column(name), "USING").name, quoted=True) for name in names]
            )
        if join.method.upper() == "ASOF":
            known = {name for one in items for name, _ in (*one.columns, *one.hidden)}
            as_duckdb(join, known, _right_of(beside))
        if join.kind.upper() in ("SEMI", "ANTI"):
            return left + right.spent(f"{join.side or 'LEFT'} {join.kind} JOIN".upper())
        leads = self.names.dialect.merged_first
        for place, (name, (first, second)) in enumerate(zip(names, pairs, strict=True)):
            merged = f"{first}|{second}"
            self.names.shown[merged] = column_of(name)
            both = both.merged(name, first, second, merged, place if leads else None)
        return both


def _right_of(items: Sequence[SnapshotItem]) -> Right | None:
    """The right side of a join, if it is one item whose rows have an order."""
    if len(items) != 1 or items[0].key is None:
        return None
    return Right(items[0].alias, [name for name, _ in items[0].columns], items[0].key)
