"""Every name and value of an expression is read, or the expression is refused.

The names and values of a tree are numbered before it is translated; a translator notes those that it meets. One that is
left over is of a part that no translation takes: a further argument, ORDER BY where none is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from dovetail.changelog.errors import Unsupported
from dovetail.sql.expressions.misfits import shown

_NUMBER = "leaf"
_LEAVES = (exp.Column, exp.Literal, exp.Boolean, exp.Null, exp.Placeholder)


def number_leaves(tree: exp.Expr) -> None:
    """Number the names and values of ``tree``; those of subqueries are of their own."""
    for number, leaf in enumerate(_leaves(tree)):
        leaf.meta[_NUMBER] = number


def leaf_numbers(node: exp.Expr) -> set[int]:
    """The numbers of the names and values in ``node``, which their copies keep."""
    return {leaf.meta[_NUMBER] for leaf in _leaves(node) if _NUMBER in leaf.meta}


def is_leaf(node: exp.Expr) -> bool:
    """Whether a node is one name or one value: an interval with its unit is one."""
    return isinstance(node, _LEAVES) or (isinstance(node, exp.Interval) and isinstance(node.this, exp.Literal))


def refuse_unread_leaves(tree: exp.Expr, read: set[int], place: str) -> None:
    """Raises Unsupported for a name or a value of ``tree`` that is not among those ``read``."""
    for leaf in _leaves(tree):
        if leaf.meta[_NUMBER] not in read:
            holder = leaf.parent
            while isinstance(holder, exp.Ordered | exp.Order | exp.Paren | exp.Distinct | exp.Tuple):
                holder = holder.parent
            around = "" if holder is None else f" in {shown(holder)}"
            is_word = isinstance(leaf, exp.Column) and not leaf.table and "." not in leaf.name
            fix = f"write '{leaf.name}', in quotes, for a text; else leave it out" if is_word else "leave it out"
            raise Unsupported(
                f"{shown(leaf)} is not read{around}",
                where=place,
                fix=f"{fix}; docs/functions.md and docs/aggregates.md tell what a call takes",
            )


def _leaves(tree: exp.Expr) -> Iterator[exp.Expr]:
    for node in tree.walk(prune=lambda one: is_leaf(one) or isinstance(one, exp.Query | exp.DataType)):
        if is_leaf(node):
            yield node
