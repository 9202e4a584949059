"""Which of several rows comes first that ORDER BY leaves equal: what is selected says, from left to right, then what
the windows read.

So a row number hangs neither on arrival nor on the order in which an engine reads, and a view holds what the same query
over its inputs holds. Rows that agree in all of it are alike for whoever looks at the result.

Ranks have no need of it, and a frame of RANGE must not have it: peers stay peers. FIRST_VALUE and LAST_VALUE over such
a frame take it as the order of their argument.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from dovetail.sql.expressions.expression import columns_read, structure
from dovetail.sql.expressions.partitions.window_calls import called_in, frame_kind, name_of, read_by

_TIE = "tie"
_NUMBERED = frozenset({"row_number", "ntile", "lag", "lead"})
"""Functions of the place of a row."""
_RANKED = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})


def is_tie(term: exp.Expr) -> bool:
    """Whether a term of ORDER BY was not written."""
    return bool(term.meta.get(_TIE))


def told_apart(tree: exp.Expr, selected: Sequence[exp.Expr]) -> exp.Expr:
    """A translated expression, each window in it with an order that leaves no rows equal that differ in what is
    ``selected``, all of it translated too.
    """

    def replaced(node: exp.Expr) -> exp.Expr:
        return _tied(node, selected) if isinstance(node, exp.Window) else node

    return tree.transform(replaced)


def ties_of(selected: Sequence[exp.Expr], order: Sequence[exp.Expr] = ()) -> list[exp.Expr]:
    """The terms of ORDER BY that what is selected adds to ``order``: what is shown, then what windows read."""
    parts = [part for item in selected for part in _beside_windows(item)]
    parts += [part for item in selected for window in item.find_all(exp.Window) for part in read_by(window)]
    known = {structure(term.this) for term in order}
    found: list[exp.Expr] = []
    for part in parts:
        if structure(part) not in known and (columns_read(part) or part.find(exp.AggFunc)):
            known.add(structure(part))
            term = exp.Ordered(this=part.copy(), nulls_first=False)
            term.meta[_TIE] = True
            found.append(term)
    return found


def _beside_windows(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The largest parts of an expression that read columns, and have no window and no subquery in them."""
    if isinstance(tree, exp.Window | exp.Query) or not (columns_read(tree) or tree.find(exp.AggFunc)):
        return
    if tree.find(exp.Window, exp.Query) is None:
        yield tree
        return
    for part in tree.iter_expressions():
        yield from _beside_windows(part)


def _tied(window: exp.Window, selected: Sequence[exp.Expr]) -> exp.Window:
    made = window.copy()
    call = called_in(made)
    name, frame = name_of(call), frame_kind(made)
    order = made.args.get("order")
    written = [] if order is None else list(order.expressions)
    ties = ties_of([*selected, window], written)
    if name in _NUMBERED or (frame == "ROWS" and name not in _RANKED):
        terms = [*written, *ties]
        made.set("order", exp.Order(expressions=terms) if terms else None)
    elif name in ("first", "last") and not isinstance(call.this, exp.Order):
        terms = [term.copy() for term in (*written, *ties)]
        call.set("this", exp.Order(this=call.this, expressions=terms) if terms else call.this)
    return made
