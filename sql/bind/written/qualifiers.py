"""What may stand before the name of a relation: ``public.s`` and ``default.s`` are s of the catalog, ``system.x`` is a
relation of the system, ``v.dead_letter`` the dead letters of a query. There is no other database.

A name with a qualifier is never that of a CTE: those have none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sqlglot import exp

from dovetail.changelog.dead_letter import is_dead_letter_topic
from dovetail.changelog.errors import SqlError, UnknownName
from dovetail.sql.bind.scope import place_of
from dovetail.sql.syntax.calls import DATABASES, WINDOWS, dotted_name, function_name, qualifier
from dovetail.sql.system_tables import DATABASE


def is_cte(named: exp.Expr, ctes: Collection[str]) -> bool:
    """Whether the name of a FROM item, or of the argument of ``changelog(..)``, is that of one of ``ctes``."""
    return named.name in ctes and not qualifier(named)


def unqualified(query: exp.Query) -> exp.Query:
    """The query without ``public.`` and ``default.`` before its relations, but for those that share their name with a
    CTE. Raises UnknownName for any other database.
    """
    qualified = [named for named in _relations(query) if qualifier(named)]
    for named in qualified:
        _expect_known(named)
    if not qualified:
        return query
    made = query.copy()
    ctes = {cte.alias for cte in made.find_all(exp.CTE)}
    for named in _relations(made):
        if is_own(named) and named.name not in ctes:
            named.set("table" if isinstance(named, exp.Column) else "db", None)
    return made


def is_own(named: exp.Expr) -> bool:
    """Whether the name is one of the catalog: it has no qualifier, or that of the one database."""
    return qualifier(named).lower() in ("", *DATABASES)


def _expect_known(named: exp.Expr) -> None:
    before, name = qualifier(named), dotted_name(named)
    if is_own(named) or before == DATABASE or is_dead_letter_topic(name):
        return
    raise UnknownName(
        f'there is no database "{before}"',
        where=place_of(named, "FROM"),
        fix=f"write {named.name} alone; relations of the system are in {DATABASE}",
    )


def _relations(query: exp.Query) -> Iterator[exp.Expr]:
    """Every name of a relation in FROM, also within ``table(x)``, ``changelog(x, k)`` and windows."""
    for table in query.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier):
            yield table
        elif isinstance(table.this, exp.Anonymous):
            yield _read_by(table)


def _read_by(table: exp.Table) -> exp.Expr:
    """The name in the innermost call of a FROM item. Raises SqlError where none stands there."""
    call: exp.Expr = table.this
    while isinstance(call, exp.Anonymous) and call.expressions and not qualifier(table):
        call = call.expressions[0]
    if isinstance(call, exp.Column) or function_name(table.this) in WINDOWS:
        return call
    raise SqlError(
        f"{table.sql()} reads no relation by its name",
        where=place_of(table, "FROM"),
        fix="FROM table(stream), changelog(stream, key), or tumble(stream, 1m)",
    )
