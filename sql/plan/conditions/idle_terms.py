"""What is planned as it is written, and can hardly be meant: a comparison with NULL, windows with gaps between them."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from dovetail.sql.expressions.misfits import column_name
from dovetail.sql.plan.nodes import Map, Node, Output, Scan, Window
from dovetail.sql.plan.properties import walk

_COMPARISONS: tuple[type[exp.Binary], ...] = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)


def comparisons_with_null(plan: Output | Node) -> Iterator[str]:
    """A line for each ``x = NULL`` in WHERE or HAVING."""
    for node in walk(plan):
        if isinstance(node, Scan | Map) and node.where is not None:
            for term in node.where.tree.find_all(*_COMPARISONS):
                yield from _with_null(term)


def _with_null(term: exp.Binary) -> Iterator[str]:
    for value, other in ((term.left, term.right), (term.right, term.left)):
        if _is_null(other):
            name = column_name(value.unnest()) or "x"
            negated = " NOT" if isinstance(term, exp.NEQ) else ""
            yield f"a comparison with NULL holds for no row: write {name} IS{negated} NULL"


def _is_null(tree: exp.Expr) -> bool:
    """NULL itself, of whatever type it is made."""
    tree = tree.unnest()
    return _is_null(tree.this) if isinstance(tree, exp.Cast | exp.TryCast) else isinstance(tree, exp.Null)


def gaps_between_windows(plan: Output | Node) -> Iterator[str]:
    """A line for each HOP whose windows do not meet."""
    for node in walk(plan):
        if isinstance(node, Window) and node.windows.slide_ms > node.windows.size_ms:
            yield (
                f"windows of {node.windows} leave out the rows between them: the first interval of hop() is the "
                "slide, the second the size"
            )
