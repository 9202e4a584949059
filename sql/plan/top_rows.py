"""A condition on a rank: of the rows of a partition its first ones.

Map   where rn <= 3                            Map   where v > 1
└─ Over  by k: rn = row_number() over (..)  ─▶  └─ TopN  by k: row_number 1 to 3
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dovetail.joins.partitions.ordering import Rank, SortKey
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.expressions.predicates import conjunction, split
from dovetail.sql.plan.nodes import Map, Over, TopN

Bounds = tuple[int | None, int | None]
"""The least and the greatest number that a condition lets through, where it says one."""


def first_rows(node: Map) -> Map | None:
    """``node``, a filter, over the first rows alone; None where it lets any number of rows through."""
    over = node.input
    if not isinstance(over, Over) or len(over.calls) != 1:
        return None
    ((name, call),) = over.calls
    ranked = _ranking(call)
    if ranked is None:
        return None
    terms = split(node.where)
    bounds = [(term, _bounds(term.tree, name)) for term in terms]
    most = [high for _, (_, high) in bounds if high is not None]
    if not most:
        return None
    least = [low for _, (low, _) in bounds if low is not None]
    rest = [term for term, bound in bounds if bound == (None, None)]
    rank, order = ranked
    order = _needed(tuple(key for key in order if key.column not in over.by), over)
    made = TopN(over.input, over.by, order, rank, max(least, default=1), min(most), name)
    return replace(node, input=made, where=conjunction(rest))


def _needed(order: tuple[SortKey, ...], over: Over) -> tuple[SortKey, ...]:
    """``order`` up to the column by which no two rows of a partition are equal."""
    known = [set(key) - set(over.by) for key in over.input.unique_keys]
    names = [key.column for key in order]
    enough = [place for place in range(len(order) + 1) if any(key <= set(names[:place]) for key in known)]
    return order[: min(enough, default=len(order))]


def _ranking(call: Expr) -> tuple[Rank, tuple[SortKey, ...]] | None:
    """What a window function counts, and in which order; None for one that is no rank."""
    window = call.tree
    if not isinstance(window, exp.Window) or not isinstance(window.this, exp.Anonymous):
        return None
    rank = next((one for one in Rank if one == window.this.name.lower()), None)
    if rank is None:
        return None
    order = window.args.get("order")
    return rank, tuple(_sort_key(term) for term in (order.expressions if order is not None else ()))


def _sort_key(term: exp.Expr) -> SortKey:
    return SortKey(term.this.name, bool(term.args.get("desc")), bool(term.args.get("nulls_first")))


def _bounds(tree: exp.Expr, name: str) -> Bounds:
    """What a term of a condition says of the column ``name`` alone, compared with whole numbers."""
    tree = tree.unnest()
    if isinstance(tree, exp.Between) and _is_column(tree.this, name):
        low, high = (_number(tree.args[side]) for side in ("low", "high"))
        return (None, None) if low is None or high is None else (low, high)
    if not isinstance(tree, exp.EQ | exp.LT | exp.LTE | exp.GT | exp.GTE):
        return None, None
    column, number, turned = tree.left, _number(tree.right), False
    if number is None:
        column, number, turned = tree.right, _number(tree.left), True
    if number is None or not _is_column(column, name):
        return None, None
    if isinstance(tree, exp.EQ):
        return number, number
    below = isinstance(tree, exp.LT | exp.LTE) != turned
    beyond = isinstance(tree, exp.LT | exp.GT)
    return (None, number - beyond) if below else (number + beyond, None)


def _is_column(tree: exp.Expr, name: str) -> bool:
    tree = tree.unnest()
    return isinstance(tree, exp.Column) and tree.name == name


def _number(tree: exp.Expr) -> int | None:
    tree = tree.unnest()
    plain = isinstance(tree, exp.Literal) and not tree.is_string and str(tree.this).isdecimal()
    return int(str(tree.this)) if plain else None
