"""What a view writes, where that is all that one operator makes: who reads the view has no need of the operator."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from dovetail.sql.plan.nodes import Map, Output
from dovetail.sql.plan.state.common_subplans import Subplan, as_subplan
from dovetail.sql.rules.kept_once.subplans import together


@dataclass(frozen=True)
class WholeResult:
    """All rows of ``node``; ``names``: of its columns those that the view has, and what it calls them."""

    node: Subplan
    names: Mapping[str, str]

    def holds(self, subplan: Subplan, needed: Collection[str]) -> bool:
        """Whether the rows of ``subplan`` can be read of the view, with the columns ``needed`` of it."""
        found = together(self.node, subplan)
        if found is None or found[0].where is not None:
            return False
        of_view, reader = found[0].names, found[1]
        asked = [*(reader.names[name] for name in needed), *(reader.where.columns if reader.where is not None else ())]
        return all(name in self.names and name in of_view for name in asked)


def whole_result(output: Output) -> WholeResult | None:
    """None where steps above leave rows out, or hold them back."""
    node, columns = output.input, dict(output.columns)
    while isinstance(node, Map):
        if node.where is not None:
            return None
        chosen = dict(node.columns)
        columns = {name: expr.substituted(chosen) for name, expr in columns.items()}
        node = node.input
    subplan = as_subplan(node)
    if subplan is None or output.period_ms:
        return None
    types = {field.name: field.type for field in subplan.schema}
    plain = {expr.plain: name for name, expr in columns.items() if expr.plain is not None}
    return WholeResult(subplan, {name: shown for name, shown in plain.items() if types[name] == columns[shown].type})
