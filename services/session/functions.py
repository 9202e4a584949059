"""CREATE FUNCTION: an entry of the catalog; whoever runs a query that calls it has its code from the plan."""

from __future__ import annotations

from dovetail.changelog.errors import SqlError
from dovetail.services.session.context import Context
from dovetail.services.session.if_not_exists import difference, exists_already
from dovetail.services.session.result import Done
from dovetail.sql.functions.dialects import DIALECTS
from dovetail.sql.functions.own_functions import is_taken
from dovetail.sql.syntax.statements import CreateFunction


def create_function(context: Context, statement: CreateFunction) -> Done:
    """It may be replaced while no view uses it: a view goes on with the function that it began with."""
    existing = context.catalog.find(statement.name)
    if existing is not None and statement.if_not_exists:
        return exists_already(existing, difference(existing, statement))
    expect_new_meaning(statement)
    context.catalog.create(statement, now_ms=context.now_ms)
    return Done(f"{'created' if existing is None else 'replaced'} function {statement.name}")


def expect_new_meaning(statement: CreateFunction) -> None:
    """Raises SqlError for a name that calls something of SQL."""
    if any(is_taken(statement.name, dialect) for dialect in DIALECTS.values()):
        raise SqlError(
            f'"{statement.name}" means something in SQL already', where="CREATE FUNCTION", fix=f"my_{statement.name}"
        )
