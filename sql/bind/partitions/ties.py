"""Which of several rows comes first that ORDER BY leaves equal: what is selected says, from left to right, then what
the windows read.

So a row number hangs neither on arrival nor on the order in which an engine reads, and a view holds what the same query
over its inputs holds. Rows that agree in all of it are alike for whoever looks at the result.

Ranks have no need of it, and a frame of RANGE must not have it: peers stay peers. FIRST_VALUE and LAST_VALUE over such
a frame take it as the order of their argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from dovetail.sql.expressions.expression import Structure, columns_read, structure
from dovetail.sql.expressions.partitions.window_calls import called_in, frame_kind, name_of, read_by

_TIE = "tie"
_NUMBERED = frozenset({"row_number", "ntile", "lag", "lead"})
"""Functions of the place of a row."""
_RANKED = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})


def is_tie(term: exp.Expr) -> bool:
    """Whether a term of ORDER BY was not written."""
    return bool(term.meta.get(_TIE))


@dataclass(frozen=True)
class Shown:
    """The parts of a translated select list that tell rows apart: what is shown, then what windows read."""

    parts: Mapping[Structure, exp.Expr]

    @staticmethod
    def of(selected: Sequence[exp.Expr]) -> Shown:
        shown = [part for item in selected for part in _beside_windows(item)]
        read = [part for item in selected for window in item.find_all(exp.Window) for part in read_by(window)]
        return Shown(_telling([*shown, *read]))

    def distinguished(self, tree: exp.Expr) -> exp.Expr:
        """A translated expression, each window in it with an order that leaves no rows equal that differ in a part."""
        return tree.transform(lambda node: self._tied(node) if isinstance(node, exp.Window) else node)

    def ties(self, order: Sequence[exp.Expr]) -> list[exp.Expr]:
        """The terms of ORDER BY that are added to ``order``."""
        return _ties(self.parts, order)

    def _tied(self, window: exp.Window) -> exp.Window:
        made = window.copy()
        call = called_in(made)
        name, frame = name_of(call), frame_kind(made)
        numbered = name in _NUMBERED or (frame == "ROWS" and name not in _RANKED)
        if not numbered and (name not in ("first", "last") or isinstance(call.this, exp.Order)):
            return made
        order = made.args.get("order")
        written = [] if order is None else list(order.expressions)
        terms = [*written, *_ties({**self.parts, **_telling(read_by(window))}, written)]
        if numbered:
            made.set("order", exp.Order(expressions=terms) if terms else None)
        elif terms:
            call.set("this", exp.Order(this=call.this, expressions=[term.copy() for term in terms]))
        return made


def _telling(parts: Iterable[exp.Expr]) -> dict[Structure, exp.Expr]:
    """Those of ``parts`` that are not the same for all rows; the first of each structure."""
    found: dict[Structure, exp.Expr] = {}
    for part in parts:
        if columns_read(part) or part.find(exp.AggFunc):
            found.setdefault(structure(part), part)
    return found


def _ties(parts: Mapping[Structure, exp.Expr], order: Sequence[exp.Expr]) -> list[exp.Expr]:
    known = {structure(term.this) for term in order}
    found: list[exp.Expr] = []
    for part in (part for key, part in parts.items() if key not in known):
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
