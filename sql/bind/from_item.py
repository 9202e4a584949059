"""What stands in FROM, bound: rows, and the names by which expressions know their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sql.bind.scope import Scope, Visible
from sql.plan.nodes import LookupTable, Node


@dataclass(frozen=True)
class FromItem:
    """``asked``: dictionary and keys of dict_get -> the table, not seen by the user, that answers them."""

    node: Node
    scope: Scope
    asked: Mapping[tuple[str, ...], str] = field(default_factory=dict)

    @staticmethod
    def of_table(table: LookupTable) -> FromItem:
        return FromItem(table, scope_of(table.alias, [name for _, name in table.columns]))


def scope_of(alias: str, names: Sequence[str], hidden: Sequence[str] = ()) -> Scope:
    shown = alias.partition("#")[0]
    columns = [Visible(shown, name, f"{alias}.{name}") for name in names]
    columns += [Visible(shown, name, f"{alias}.{name}", starred=False) for name in hidden if name not in names]
    return Scope(tuple(columns))
