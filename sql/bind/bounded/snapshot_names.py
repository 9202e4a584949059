"""The names of columns in a bounded query: internal ones, as in the plan of a stream, and those that DuckDB reads."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from dovetail.sql.bind.bounded.snapshot_items import SnapshotItem, column_of
from dovetail.sql.bind.scope import Scope, Visible
from dovetail.sql.functions.translate import Dialect
from dovetail.sql.plan.column_names import unused


@dataclass
class SnapshotNames:
    """``shown``: the internal name of a column -> how the query says it."""

    dialect: Dialect
    shown: dict[str, exp.Column] = field(default_factory=dict)
    aliases: set[str] = field(default_factory=set)

    def alias(self, wanted: str) -> str:
        """What the internal names of an item begin with."""
        alias = unused(wanted, self.aliases)
        self.aliases.add(alias)
        return alias

    def scope(self, item: SnapshotItem) -> Scope:
        """The columns of a FROM item, under internal names that no other item of the query has."""
        alias, visible = self.alias(item.alias), []
        for starred, columns in ((True, item.columns), (False, item.hidden)):
            for name, kind in columns:
                internal = f"{alias}.{name}"
                self.shown[internal] = column_of(name, item.alias)
                visible.append(Visible(item.alias, name, internal, kind, starred=starred))
        return Scope(tuple(visible), self.dialect)

    def written(self, tree: exp.Expr) -> exp.Expr:
        """The tree with columns as the query says them."""

        def replaced(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Column) and not node.table and node.name in self.shown:
                return self.shown[node.name].copy()
            return node

        return tree.copy().transform(replaced)
