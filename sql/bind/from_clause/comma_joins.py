"""FROM a, b, c WHERE ..: the order in which the items are joined, so that each meets the ones before it by an equality.

The order of ``*`` stays the written one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dovetail.sql.bind.from_clause.array_join import is_array_join
from dovetail.sql.bind.from_clause.laterals import is_lateral
from dovetail.sql.bind.scope import HIDDEN_TABLE, Scope
from dovetail.sql.expressions.predicates import conjuncts


@dataclass
class _Unit:
    """An item after FROM or a comma, with the joins that are written after it.

    scope     the columns of all of them
    streamed  whether it can stand first: what is looked up cannot
    """

    item: exp.Expr
    scope: Scope
    streamed: bool
    joins: list[exp.Join] = field(default_factory=list)


Bound = Callable[[exp.Expr], tuple[Scope, bool]]
"""The columns of an item of FROM, and whether it emits rows."""


def linked(select: exp.Select, bound: Bound) -> exp.Select:
    """The query with its FROM items in an order in which each has an equality with those before, where there is one."""
    joins: list[exp.Join] = list(select.args.get("joins") or ())
    where = select.args.get("where")
    # An ARRAY JOIN, and a LATERAL subquery, read the items before them: they stay there.
    reads_left = any(is_array_join(join) or is_lateral(join) for join in joins)
    if where is None or sum(map(_is_comma, joins)) == 0 or reads_left:
        return select
    units = _units(select, joins, bound)
    order = _ordered(units, [_read(term, units) for term in _equalities(where.this)])
    if order == units:
        return select
    made = select.copy()
    made.set("from_", exp.From(this=order[0].item.copy()))
    rest = [exp.Join(this=unit.item.copy(), kind="CROSS") for unit in order]
    chained = [join for head, unit in zip(rest, order, strict=True) for join in (head, *unit.joins)]
    made.set("joins", [join.copy() for join in chained[1:]])
    return made


def in_written_order(scope: Scope, select: exp.Select) -> Scope:
    """The columns by the order of their items in FROM."""
    source = select.args["from_"]
    written = [source.this, *(join.this for join in select.args.get("joins") or ())]
    places = {str(table.alias_or_name).casefold(): place for place, table in reversed(list(enumerate(written)))}
    shown = [column for column in scope.columns if not column.table.startswith(HIDDEN_TABLE)]
    if any(column.table.casefold() not in places for column in shown):
        return scope
    behind = [column for column in scope.columns if column.table.startswith(HIDDEN_TABLE)]
    return replace(scope, columns=(*sorted(shown, key=lambda column: places[column.table.casefold()]), *behind))


def _is_comma(join: exp.Join) -> bool:
    bound = join.args.get("on") or join.args.get("using") or join.side or join.method
    return not bound and join.kind.upper() in ("", "CROSS")


def _units(select: exp.Select, joins: Sequence[exp.Join], bound: Bound) -> list[_Unit]:
    source = select.args["from_"]
    units = [_Unit(source.this, *bound(source.this))]
    for join in joins:
        scope, streamed = bound(join.this)
        if _is_comma(join):
            units.append(_Unit(join.this, scope, streamed))
        else:
            units[-1].joins.append(join)
            units[-1].scope += scope
    return units


def _equalities(condition: exp.Expr) -> list[exp.Expr]:
    return [term for term in conjuncts(condition) if isinstance(term, exp.EQ | exp.NullSafeEQ)]


def _read(term: exp.Expr, units: Sequence[_Unit]) -> set[int]:
    """The units that a condition reads."""
    columns = list(term.find_all(exp.Column))
    return {index for column in columns for index, unit in enumerate(units) if unit.scope.knows(column)}


def _ordered(units: list[_Unit], equalities: Sequence[set[int]]) -> list[_Unit]:
    first = next((index for index, unit in enumerate(units) if unit.streamed), 0)
    order, left = [first], [index for index in range(len(units)) if index != first]
    while left:
        known = set(order)
        chosen = next(
            (index for index in left if any(index in read <= known | {index} for read in equalities)), left[0]
        )
        order.append(chosen)
        left.remove(chosen)
    return [units[index] for index in order]
