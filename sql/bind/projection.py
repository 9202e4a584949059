"""The select list: its items as output columns."""

from __future__ import annotations

from sqlglot import exp

from changelog.schema import SEQUENCE, TIME
from sql.bind.resolve import resolved
from sql.bind.scope import Scope
from sql.expressions.evaluate import quoted
from sql.plan.column_names import DELTA_COLUMN


def projected(projection: exp.Expr, scope: Scope, text: str) -> list[tuple[str, str, str]]:
    """The output columns of one item of the select list: name, table, expression."""
    star = (
        projection.this if isinstance(projection, exp.Column) and isinstance(projection.this, exp.Star) else projection
    )
    if isinstance(star, exp.Star):
        table = projection.table if isinstance(projection, exp.Column) else ""
        return _starred(star, table, scope)
    expression = projection.unalias()
    sql = resolved(expression, scope, "SELECT")
    if projection.alias:
        return [(projection.alias, "", sql)]
    if isinstance(expression, exp.Column):
        found = scope.find(expression, "SELECT")
        return [(expression.name, found.table, sql)]
    return [(text or expression.sql(dialect="clickhouse"), "", sql)]


def _starred(star: exp.Star, table: str, scope: Scope) -> list[tuple[str, str, str]]:
    if table and table.casefold() not in {known.casefold() for known in scope.tables}:
        scope.find(exp.column("*", table=table), "SELECT")
    excluded = {column.name for column in star.args.get("except_") or star.args.get("except") or ()}
    columns = scope.of(table) if table else [column for column in scope.columns if column.starred]
    columns = [column for column in columns if column.starred or (table and column.name not in (TIME, SEQUENCE))]
    unknown = excluded - {column.name for column in columns}
    if unknown:
        scope.find(exp.column(min(unknown), table=table or None), "SELECT * except")
    return [(column.name, column.table, quoted(column.internal)) for column in columns if column.name not in excluded]


def is_delta(projection: exp.Expr) -> bool:
    return isinstance(projection, exp.Column) and projection.name == DELTA_COLUMN
