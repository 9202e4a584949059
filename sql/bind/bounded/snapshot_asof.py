"""ASOF over the content of tables, as DuckDB takes it: one inequality, and of right rows equal in time only one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlglot import exp

from dovetail.sql.expressions.predicates import conjuncts

_ARRIVED = "arrived"


@dataclass(frozen=True)
class Right:
    """The relation on the right under its alias, and its columns. ``key``: no two rows share it; none of a multiset."""

    alias: str
    names: Collection[str]
    key: Sequence[str]

    def holds(self, expression: exp.Expr, others: Collection[str]) -> bool:
        """Whether all columns of ``expression``, at least one, are its own; ``others``: the names on the left."""
        columns = list(expression.find_all(exp.Column))
        return bool(columns) and all(
            column.table == self.alias if column.table else column.name in self.names and column.name not in others
            for column in columns
        )


def as_duckdb(join: exp.Join, left: Collection[str], right: Right | None) -> None:
    """Rewrites an ASOF join in place. ``right`` is None for a subquery, whose rows have no order of their own."""
    on = join.args.get("on")
    if on is None:
        return
    terms = conjuncts(on)
    compared: list[exp.Binary] = [term for term in terms if isinstance(term, exp.LT | exp.LTE | exp.GT | exp.GTE)]
    plain = [term for term in compared if isinstance(term.left, exp.Column) and isinstance(term.right, exp.Column)]
    chosen = plain if len(plain) == 1 else compared
    # DuckDB takes every comparison of two columns for an ASOF inequality, of which there may be one.
    conditions = [_tested(term) if term in compared and term not in chosen else term for term in terms]
    join.set("on", exp.and_(*conditions))
    if right is not None and len(chosen) == 1:
        equalities: list[exp.Binary] = [term for term in terms if isinstance(term, exp.EQ)]
        _break_ties(join, [*equalities, *chosen], left, right)


def _tested(term: exp.Expr) -> exp.Expr:
    return exp.Is(this=exp.Paren(this=term.copy()), expression=exp.true())


def _break_ties(join: exp.Join, terms: Sequence[exp.Binary], left: Collection[str], right: Right) -> None:
    """Leaves, of the right rows that are equal in key and time, the one of the least key, else the last arrived."""
    equal = [side for term in terms for side in (term.left, term.right) if right.holds(side, left)]
    if len(equal) != len(terms):
        return
    alias = exp.TableAlias(this=exp.to_identifier(right.alias))
    relation = join.this.copy()
    relation.set("alias", None)
    numbered = exp.Select(
        expressions=[exp.Star(), exp.alias_(exp.Window(this=exp.RowNumber()), _ARRIVED)],
    ).from_(relation)
    order = [exp.Ordered(this=exp.column(name, table=right.alias)) for name in right.key]
    last = exp.Ordered(this=exp.column(_ARRIVED, table=right.alias), desc=True)
    window = exp.Window(
        this=exp.RowNumber(),
        partition_by=[side.copy() for side in equal],
        order=exp.Order(expressions=order or [last]),
    )
    rows = exp.Select(expressions=[exp.Star(except_=[exp.to_identifier(_ARRIVED)])]).from_(
        exp.Subquery(this=numbered, alias=alias.copy())
    )
    rows.set("qualify", exp.Qualify(this=exp.EQ(this=window, expression=exp.Literal.number(1))))
    join.set("this", exp.Subquery(this=rows, alias=alias))
