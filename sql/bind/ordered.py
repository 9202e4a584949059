"""ORDER BY, LIMIT and OFFSET of a bounded query: its rows in an order, and how many of them.

SELECT upper(k) AS u .. ORDER BY v DESC LIMIT 3

Map      ordered.u = upper(k), ordered.#0 = v
Sorted   ordered.#0 desc, 3 rows
the columns over it
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError
from dovetail.changelog.formats.text_forms import INTERVAL
from dovetail.joins.partitions.ordering import SortKey
from dovetail.sql.bind.aggregates import Groups, without_aliases
from dovetail.sql.bind.bound import Bound
from dovetail.sql.bind.partitions.first_rows import row_count
from dovetail.sql.bind.scope import Scope, place_of
from dovetail.sql.expressions.expression import KIND, Expr, structure
from dovetail.sql.expressions.predicates import conjunction
from dovetail.sql.functions.kept_values import interval_length
from dovetail.sql.functions.translate import in_order_of
from dovetail.sql.functions.typed import Typed
from dovetail.sql.plan.maps import identity
from dovetail.sql.plan.nodes import Map, Node, Sorted

ALIAS = "ordered"
"""What the internal names of the columns of rows in an order begin with."""


@dataclass(frozen=True)
class OrderTerm:
    """A term of ORDER BY: ``written``, its expression translated; or an output column, by its name or its place."""

    written: exp.Expr
    output: str | int | None
    place: str = "in ORDER BY"

    @staticmethod
    def of(written: exp.Expr) -> OrderTerm:
        return OrderTerm(written, None)

    def over(self, groups: Groups) -> OrderTerm:
        """The same over groups of the rows."""
        if self.output is not None:
            return self
        made = self.written.copy()
        made.set("this", groups.over(self.written.this, self.place))
        return replace(self, written=made)

    def of_output(self, shown: Sequence[exp.Expr]) -> OrderTerm:
        """Of the rows of DISTINCT, of which there is no more than what they show. Raises SqlError for anything else."""
        if self.output is not None:
            return self
        wanted = structure(self.written.this)
        found = next((place for place, tree in enumerate(shown) if structure(tree) == wanted), None)
        if found is None:
            raise SqlError(
                "ORDER BY of SELECT DISTINCT takes what is selected: of equal rows one is left",
                where=self.place,
                fix="select it too; or GROUP BY what is selected, and order by an aggregate: ORDER BY max(x)",
            )
        return replace(self, output=found)

    def position(self, names: Sequence[str]) -> int | None:
        """Which of the output columns ``names`` it is; None for an expression. Raises SqlError for one that is none."""
        if self.output is None:
            return None
        if isinstance(self.output, int):
            found = [self.output] if 0 <= self.output < len(names) else []
        else:
            wanted = self.output.casefold()
            exact = [at for at, name in enumerate(names) if name == self.output]
            found = exact or [at for at, name in enumerate(names) if name.casefold() == wanted]
        if not found:
            shown = self.output + 1 if isinstance(self.output, int) else f'"{self.output}"'
            raise SqlError(
                f"ORDER BY {shown} is no column of the select list",
                where=self.place,
                fix=f"a position from 1 to {len(names)}, or one of: {', '.join(names)}",
            )
        return found[0]


@dataclass(frozen=True)
class RowsWanted:
    """LIMIT and OFFSET; None: all rows."""

    limit: int | None
    offset: int


ALL_ROWS = RowsWanted(None, 0)


def rows_wanted(query: exp.Query) -> RowsWanted:
    """Raises Unsupported for a LIMIT, OFFSET or FETCH that is no whole number."""
    limit = None if query.args.get("limit") is None else row_count(query, "limit", 0)
    return RowsWanted(limit, row_count(query, "offset", 0))


def order_terms(
    ordered: exp.Expr,
    select: exp.Select,
    scope: Scope,
    value: Callable[[exp.Expr, Scope, str], exp.Expr],
    *,
    distinct: bool,
) -> list[OrderTerm]:
    """A position, a name of the select list, or an expression; doubles in the order of the dialect."""
    term, place = ordered.this, place_of(ordered, "ORDER BY")
    if isinstance(term, exp.Literal) and not term.is_string:
        return [OrderTerm(ordered, _position(term), place)]
    if isinstance(term, exp.Column) and not term.table:
        aliases = {item.alias.casefold(): item.alias for item in select.expressions if item.alias}
        if term.name.casefold() in aliases:
            return [OrderTerm(ordered, aliases[term.name.casefold()], place)]
    tree = value(without_aliases(term, select, scope), scope, "ORDER BY")
    made = ordered.copy()
    made.set("this", tree)
    typed = Typed(tree, lambda _: pa.null(), tree.meta.get(KIND))
    terms = [made] if distinct else in_order_of(scope.dialect.rules, typed, made)
    return [OrderTerm(one, None, place) for one in terms]


def _position(term: exp.Literal) -> int:
    return int(term.this) - 1 if str(term.this).isdecimal() else -1


def in_order(
    bound: Bound,
    order: Sequence[OrderTerm],
    wanted: RowsWanted,
    named: Callable[[str], str],
    known: pa.Schema,
    qualified: Sequence[Expr] = (),
) -> Bound:
    """``bound`` in ``order``, the rows that are ``wanted`` of those for which all ``qualified`` hold: window functions
    are of the rows before. ``known``: all columns that its expressions may read.
    """
    if not order and not qualified and wanted == ALL_ROWS:
        return bound
    alias, names, keys = named(ALIAS), [name for name, _ in bound.columns], []
    columns = [(f"{alias}.{name}", expr) for name, expr in bound.columns]
    for number, term in enumerate(order):
        position = term.position(names)
        if position is None:
            position = _place_of(Expr.over(term.written.this, known, term.place), columns, f"{alias}.#{number}")
        elif columns[position][1].form == INTERVAL:
            position = _place_of(interval_length(columns[position][1]), columns, f"{alias}.#{number}")
        written = term.written.args
        keys.append(SortKey(columns[position][0], bool(written.get("desc")), bool(written.get("nulls_first"))))
    node: Node = _qualified(bound.node, columns, f"{alias}.#", qualified)
    if order or wanted != ALL_ROWS:
        node = Sorted(node, tuple(keys), wanted.limit, wanted.offset)
    made = tuple((name, node.column(internal)) for name, (internal, _) in zip(names, columns, strict=False))
    return replace(bound, node=node, columns=made)


def _place_of(value: Expr, columns: list[tuple[str, Expr]], name: str) -> int:
    """The place of ``value`` among ``columns``, where it is added if it is none of them."""
    found = next((at for at, (_, known) in enumerate(columns) if known == value), None)
    if found is None:
        columns.append((name, value))
    return len(columns) - 1 if found is None else found


def _qualified(rows: Node, columns: Sequence[tuple[str, Expr]], name: str, terms: Sequence[Expr]) -> Node:
    condition = conjunction(list(terms))
    if condition is None:
        return Map(rows, tuple(columns))
    made = Map(rows, (*columns, (name, condition)))
    return Map(made, identity(made)[:-1], made.column(name))


def in_order_of_names(query: exp.Query, bound: Bound, named: Callable[[str], str]) -> Bound:
    """As ORDER BY and LIMIT behind a UNION, or behind brackets, say: by names and positions of the columns."""
    order = query.args.get("order")
    terms = [] if order is None else [_by_name(term) for term in order.expressions]
    return in_order(bound, terms, rows_wanted(query), named, bound.node.schema)


def _by_name(ordered: exp.Expr) -> OrderTerm:
    term = ordered.this
    output = _position(term) if isinstance(term, exp.Literal) else term.name
    return OrderTerm(ordered, output, place_of(ordered, "ORDER BY"))
