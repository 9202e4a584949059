"""The first rows of an order, as a condition on the row number; and windows by their names, spelled out.

SELECT .. ORDER BY v DESC LIMIT 3 OFFSET 1        QUALIFY row_number() OVER (ORDER BY v DESC) BETWEEN 2 AND 4
SELECT .. ORDER BY v DESC LIMIT 3 BY k            QUALIFY row_number() OVER (PARTITION BY k ORDER BY v DESC) <= 3
SELECT .. ORDER BY v DESC LIMIT 3 WITH TIES       QUALIFY rank() OVER (ORDER BY v DESC) <= 3
SELECT DISTINCT ON (k) .. ORDER BY k, v           QUALIFY row_number() OVER (PARTITION BY k ORDER BY k, v) = 1
SELECT sum(v) OVER w .. WINDOW w AS (ORDER BY v)  SELECT sum(v) OVER (ORDER BY v) ..

All are in place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb
from sqlglot import exp

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.sql.bind.scope import place_of
from dovetail.sql.expressions.engine_calls.duckdb_connection import connection


def spell_out_windows(select: exp.Select) -> None:
    """Those of the clause WINDOW that nothing names stay in it. Raises SqlError for a name that it does not have."""
    named: dict[str, exp.Window] = {}
    for window in select.args.get("windows") or ():
        _spell_out(window, named)
        named[window.this.name.casefold()] = window
    used = [_spell_out(window, named) for window in _own_windows(select)]
    select.set("windows", [window for name, window in named.items() if name not in used])


def _spell_out(window: exp.Window, named: Mapping[str, exp.Window]) -> str:
    """``window`` with what the one has that it names, in place; that name, '' for none."""
    name = window.text("alias")
    if not name:
        return ""
    place = place_of(window, "SELECT")
    if name.casefold() not in named:
        fix = f"WINDOW {name} AS (PARTITION BY .. ORDER BY ..)"
        raise SqlError(f'there is no window "{name}"', where=place, fix=fix)
    for part, words in _PARTS.items():
        given = named[name.casefold()].args.get(part)
        if given and window.args.get(part):
            raise SqlError(f'the window "{name}" has {words} already', where=place, fix="say it once")
        if given:
            window.set(part, [one.copy() for one in given] if isinstance(given, list) else given.copy())
    window.set("alias", None)
    return name.casefold()


_PARTS = {"partition_by": "PARTITION BY", "order": "ORDER BY", "spec": "a frame"}


def _own_windows(select: exp.Select) -> list[exp.Window]:
    clauses = [*select.expressions, *filter(None, [select.args.get("qualify"), select.args.get("order")])]
    return [
        window
        for clause in clauses
        for window in clause.find_all(exp.Window)
        if window.find_ancestor(exp.Query) is select
    ]


def limit_by(select: exp.Query) -> list[exp.Expr]:
    """The columns of ``LIMIT n BY``."""
    clauses = (select.args.get("limit"), select.args.get("offset"))
    return [one for clause in clauses if clause is not None for one in clause.expressions]


def is_with_ties(query: exp.Query) -> bool:
    """Whether rows that ORDER BY has beside the last one of LIMIT stay as well. Raises SqlError without an order."""
    clause = query.args.get("limit")
    if clause is None or (options := clause.args.get("limit_options")) is None or not options.args.get("with_ties"):
        return False
    if query.args.get("order") is None:
        raise SqlError(
            "WITH TIES is of an order, and there is none", where=place_of(clause, "LIMIT"), fix="ORDER BY v before it"
        )
    return True


def number_first_rows(select: exp.Select) -> None:
    """Let a condition on the row number say what LIMIT does; ORDER BY stays. Raises Unsupported, SqlError."""
    for name, clause in (("distinct", "DISTINCT"), ("qualify", "QUALIFY")):
        if select.args.get(name):
            raise Unsupported(
                f"{clause} and such a LIMIT in one SELECT are not supported",
                where=place_of(select.args["limit"], "LIMIT"),
                fix=f"{clause} in a subquery: SELECT * FROM (SELECT {clause} ..) AS x ORDER BY .. LIMIT ..",
            )
    count, skipped = row_count(select, "limit", 0), row_count(select, "offset", 0)
    by, first, last = limit_by(select), exp.Literal.number(skipped + 1), exp.Literal.number(skipped + count)
    place = _place(select, by, exp.Rank() if is_with_ties(select) else exp.RowNumber())
    within: exp.Expr = exp.LTE(this=place, expression=last)
    if skipped:
        within = exp.And(this=exp.GTE(this=_place(select, by), expression=first), expression=within)
    select.set("qualify", exp.Qualify(this=within))
    for clause in ("limit", "offset"):
        select.set(clause, None)


def is_distinct_on(select: exp.Select) -> bool:
    clause = select.args.get("distinct")
    return clause is not None and clause.args.get("on") is not None


def number_first_of_each(select: exp.Select) -> None:
    """Let a condition on the row number say what DISTINCT ON does; ORDER BY stays. Raises Unsupported, SqlError."""
    clause = select.args["distinct"]
    if select.args.get("qualify"):
        raise Unsupported(
            "DISTINCT ON and QUALIFY in one SELECT are not supported",
            where=place_of(clause, "SELECT"),
            fix="DISTINCT ON in a subquery, QUALIFY around it; or row_number() OVER (PARTITION BY k ORDER BY v) = 1 "
            "in QUALIFY",
        )
    first = exp.EQ(this=_place(select, clause.args["on"].expressions), expression=exp.Literal.number(1))
    select.set("qualify", exp.Qualify(this=first))
    select.set("distinct", None)


def _place(select: exp.Select, by: Sequence[exp.Expr], told: exp.Expr | None = None) -> exp.Window:
    """The place of a row, in the order of the SELECT, among those that agree in ``by``: its number, or as ``told``."""
    order = select.args.get("order")
    terms = [] if order is None else [term.copy() for term in order.expressions]
    for term in terms:
        term.set("this", _written(term.this, select))
    return exp.Window(
        this=told or exp.RowNumber(),
        partition_by=[_written(one, select) for one in by],
        order=exp.Order(expressions=terms) if terms else None,
        over="OVER",
    )


def row_count(select: exp.Query, name: str, missing: int) -> int:
    """The whole number in the clause ``name``, LIMIT or OFFSET, also as a sum or cast of constants; of one beyond what
    can be counted, the most that can. Raises Unsupported for anything else.
    """
    clause = select.args.get(name)
    if clause is None:
        return missing
    if name == "limit" and is_with_ties(select) and not isinstance(select, exp.Select):
        raise Unsupported(
            "WITH TIES of several SELECTs is not supported",
            where=place_of(clause, "LIMIT"),
            fix="SELECT * FROM (.. UNION ALL ..) AS x ORDER BY v LIMIT n WITH TIES",
        )
    value = clause.args.get("count") or exp.Literal.number(1) if isinstance(clause, exp.Fetch) else clause.expression
    count = _constant(value, _MOST_ROWS if name == "limit" else 0)
    if count is None or count < 0:
        raise Unsupported(
            f"{name.upper()} takes a whole number, 0 or more",
            where=place_of(clause, name.upper()),
            fix="LIMIT 10; of ties WHERE r <= 10 over rank() OVER (ORDER BY ..) AS r",
        )
    return min(count, _MOST_ROWS)


def _constant(value: exp.Expr | None, of_null: int) -> int | None:
    """The value of a number, or of an expression of constants, rounded; None of anything else."""
    if value is None or not all(isinstance(node, _OF_CONSTANTS) for node in value.walk()):
        return None
    if isinstance(value, exp.Literal) and not value.is_string and value.name.isdecimal():
        return int(value.name)
    try:
        (found,) = connection().sql(f"SELECT CAST({value.sql(dialect='duckdb')} AS BIGINT)").fetchall()[0]
    except duckdb.Error:
        return None
    return of_null if found is None else int(found)


_OF_CONSTANTS = (exp.Literal, exp.Null, exp.Neg, exp.Paren, exp.Add, exp.Sub, exp.Mul, exp.Cast, exp.DataType)
_MOST_ROWS = 2**62
"""Of LIMIT and of OFFSET, so that both together fit an int64."""


def _written(term: exp.Expr, select: exp.Select) -> exp.Expr:
    """A position or an alias of the select list as what stands there; an alias goes before a column."""
    if isinstance(term, exp.Literal) and not term.is_string:
        position = int(term.this) if str(term.this).isdecimal() else 0
        if not 1 <= position <= len(select.expressions):
            raise SqlError(
                f"ORDER BY {term.this} is no position in the select list",
                where=place_of(term, "ORDER BY"),
                fix=f"a position from 1 to {len(select.expressions)}, or the name of a column",
            )
        item: exp.Expr = select.expressions[position - 1]
        return item.unalias().copy()
    if isinstance(term, exp.Column) and not term.table:
        named = {item.alias.casefold(): item.unalias() for item in select.expressions if item.alias}
        found: exp.Expr = named.get(term.name.casefold(), term)
        return found.copy()
    return term.copy()
