"""The select list: its items as output columns."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError
from dovetail.changelog.schema import SEQUENCE, TIME
from dovetail.sql.bind.aggregates import without_aliases
from dovetail.sql.bind.resolve import typed
from dovetail.sql.bind.scope import Scope, Visible, place_of
from dovetail.sql.bind.written.stars import note_star
from dovetail.sql.plan.column_names import DELTA_COLUMN
from dovetail.sql.syntax.dialect import spelling


def selected(projection: exp.Expr, select: exp.Select, scope: Scope) -> list[tuple[str, str, exp.Expr]]:
    """The output columns of one item of the select list: name, table, expression."""
    star = projection.this if isinstance(projection, exp.Column) else projection
    if isinstance(star, exp.Star):
        found = _starred(star, projection.table if isinstance(projection, exp.Column) else "", scope)
        note_star(star, projection.args.get("table"), [(table, name) for name, table, _ in found])
        return found
    expression = projection.unalias()
    if isinstance(expression, exp.Dot) and isinstance(expression.expression, exp.Star):
        return _fields(expression.this, scope)
    over_columns = without_aliases(expression, select, scope)
    if projection.alias:
        return [(projection.alias, "", over_columns)]
    if isinstance(expression, exp.Column):
        if not scope.knows(expression):
            return [(expression.name, "", over_columns)]
        return [(expression.name, scope.find(expression, "SELECT").table, over_columns)]
    if isinstance(expression, exp.JSONExtractScalar) and isinstance(expression.expression, exp.Array):
        return [(str(expression.expression.expressions[-1].this), "", over_columns)]
    return [(spelling(projection) or expression.sql(dialect="clickhouse"), "", over_columns)]


def _fields(row: exp.Expr, scope: Scope) -> list[tuple[str, str, exp.Expr]]:
    """``(row).*``"""
    kind = typed(row.copy(), scope, "SELECT").type
    if not pa.types.is_struct(kind):
        raise SqlError(f"{row.sql()} is no row whose fields .* could stand for", where=place_of(row, "SELECT"))
    return [
        (field.name, "", exp.Dot(this=row.copy(), expression=exp.to_identifier(field.name, quoted=True)))
        for field in kind
    ]


def _starred(star: exp.Star, table: str, scope: Scope) -> list[tuple[str, str, exp.Expr]]:
    if not scope.columns:
        raise SqlError("there is no FROM whose columns * could stand for", where="SELECT *", fix="SELECT * FROM s")
    if table and table.casefold() not in {known.casefold() for known in scope.tables}:
        scope.find(exp.column("*", table=table), "SELECT")
    columns = scope.of(table) if table else [column for column in scope.columns if column.starred]
    columns = [column for column in columns if column.starred or (table and column.name not in (TIME, SEQUENCE))]
    excluded = [(column.name, column.text("table") or table) for column in star.args.get("except_") or ()]
    replaced = {item.alias: item.unalias() for item in star.args.get("replace") or ()}
    for clause, names in (("except", excluded), ("replace", [(name, table) for name in replaced])):
        for name, of in names:
            if not any(_is_named(column, name, of) for column in columns):
                scope.find(exp.column(name, table=of or None), f"SELECT * {clause}")
    return [
        (column.name, column.table, replaced.get(column.name) or _named(column))
        for column in columns
        if not any(_is_named(column, name, of) for name, of in excluded)
    ]


def _is_named(column: Visible, name: str, table: str) -> bool:
    return column.name == name and (not table or column.table.casefold() == table.casefold())


def expect_columns(found: Sequence[object], select: exp.Select) -> None:
    """Raises SqlError for a select list of which EXCEPT leaves nothing."""
    if not found:
        raise SqlError(
            "the select list has no columns: EXCEPT leaves none",
            where=place_of(select, "SELECT"),
            fix="leave out fewer: SELECT * EXCEPT (a)",
        )


def _named(column: Visible) -> exp.Expr:
    return exp.column(column.name, table=column.table or None)


def is_delta(projection: exp.Expr) -> bool:
    return isinstance(projection, exp.Column) and projection.name == DELTA_COLUMN
