"""What stands in FROM, bound: rows, and the names by which expressions know their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dovetail.sql.bind.named_columns import under_alias
from dovetail.sql.bind.scope import Scope, Visible
from dovetail.sql.expressions.expression import Structure
from dovetail.sql.functions.translate import Dialect
from dovetail.sql.plan.nodes import LookupTable, Node


@dataclass(frozen=True)
class FromItem:
    """``looked_up``: dictionary and keys of dict_get -> the table, not seen by the user, that answers them."""

    node: Node
    scope: Scope
    looked_up: Mapping[tuple[Structure, ...], str] = field(default_factory=dict)

    @staticmethod
    def of(node: Node, alias: str, names: Sequence[str], dialect: Dialect, hidden: Sequence[str] = ()) -> FromItem:
        """The columns ``names`` of a node under an alias; ``hidden`` ones are no part of ``*``."""
        shown, kinds = alias.partition("#")[0], node.schema

        def visible(name: str, starred: bool) -> Visible:
            internal = f"{alias}.{name}"
            kind, form = kinds.field(internal).type, node.forms.get(internal, "")
            return Visible(shown, name, internal, kind, starred=starred, form=form)

        columns = [visible(name, True) for name in names]
        columns += [visible(name, False) for name in hidden if name not in names]
        return FromItem(node, Scope(tuple(columns), dialect))

    def named(self, written: exp.Expr) -> FromItem:
        """The columns of ``*`` by the names that the alias of ``written`` gives them. In the plan nothing changes."""
        starred = [(column.name, column.internal) for column in self.scope.columns if column.starred]
        names = {internal: name for name, internal in under_alias(written, starred)}
        columns = (replace(column, name=names.get(column.internal, column.name)) for column in self.scope.columns)
        return replace(self, scope=replace(self.scope, columns=tuple(columns)))

    @staticmethod
    def of_table(table: LookupTable, dialect: Dialect) -> FromItem:
        return FromItem.of(table, table.alias, [name for _, name in table.columns], dialect)
