"""What may stand before the name of a relation: ``public`` or ``default``, which say nothing; the schema that it is in,
``sales.s``; ``system``, of a relation of the system; a query, ``v.dead_letter``, of its dead letters.

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


def is_own(named: exp.Expr) -> bool:
    """Whether the name is one of the catalog in one part: it has no qualifier, or that of all such names."""
    return qualifier(named).lower() in ("", *DATABASES)


def unqualified(query: exp.Query) -> exp.Query:
    """The query with each relation by the one name that it has in the catalog, and columns without its schema.

    Without an alias ``sales.s`` is known as s, or, where several relations of the query are called so, by its whole
    name. Raises UnknownName for a column of a relation that is not in FROM.
    """
    if not any(qualifier(named) for _, named in _relations(query)):
        _expect_in_from(query)
        return query
    for _, named in _relations(query):
        _expect_known(named)
    made = query.copy()
    ctes = {cte.alias for cte in made.find_all(exp.CTE)}
    relations = [(table, named) for table, named in _relations(made) if is_own(named) or _is_in_schema(named)]
    known: dict[tuple[str, str], str] = {}
    for (table, named), shown in zip(relations, _shown(relations), strict=True):
        if not table.alias:
            known[qualifier(named), named.name] = shown
        if not is_own(named):
            _put_together(table, named, shown)
        elif named.name not in ctes:
            named.set(_first_part(named), None)
    for column in made.find_all(exp.Column):
        # Of other columns the first part is a table, or a row, and the others are fields.
        shown_as = known.get((column.text("db"), column.table)) if column.text("db") else None
        if shown_as is not None and not column.text("catalog"):
            column.set("table", exp.to_identifier(shown_as, quoted=True))
            column.set("db", None)
    _expect_in_from(made)
    return made


def _shown(relations: list[tuple[exp.Table, exp.Expr]]) -> list[str]:
    """What each is known as where it has no alias."""
    wholes = {named.name: set[str]() for _, named in relations}
    for _, named in relations:
        wholes[named.name].add("" if is_own(named) else dotted_name(named))
    return [
        named.name if is_own(named) or len(wholes[named.name]) == 1 else dotted_name(named) for _, named in relations
    ]


def _put_together(table: exp.Table, named: exp.Expr, shown: str) -> None:
    """``sales.s`` as the one name that it is."""
    if not table.alias:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(shown, quoted=True)))
    whole = exp.to_identifier(dotted_name(named), quoted=True)
    whole.meta.update(named.this.meta)
    named.set("this", whole)
    named.set(_first_part(named), None)


def _first_part(named: exp.Expr) -> str:
    return "table" if isinstance(named, exp.Column) else "db"


def _expect_known(named: exp.Expr) -> None:
    before, name = qualifier(named), dotted_name(named)
    if "." in before and not is_dead_letter_topic(name):
        raise UnknownName(
            f'there is no database in which "{before}" could be',
            where=place_of(named, "FROM"),
            fix=f"a schema and a name, or a name alone: {named.name}",
        )


def _is_in_schema(named: exp.Expr) -> bool:
    before = qualifier(named)
    return "." not in before and before != DATABASE and not is_dead_letter_topic(dotted_name(named))


def _expect_in_from(query: exp.Query) -> None:
    """Raises UnknownName for a column of ``a.t`` where FROM has another ``t``: the first part of a name is a table, or
    a row of which the others are fields.
    """
    dotted = [column for column in query.find_all(exp.Column) if column.text("db")]
    items = {item.alias_or_name for item in query.find_all(exp.Table, exp.Subquery)} if dotted else set()
    for column in dotted:
        before = column.text("catalog") or column.text("db")
        if column.table in items and before not in items and before.lower() not in DATABASES:
            raise UnknownName(
                f'there is no "{qualifier(column)}" in FROM',
                where=place_of(column, "the query"),
                fix=f"write {column.table}.{column.name}",
            )


def _relations(query: exp.Query) -> Iterator[tuple[exp.Table, exp.Expr]]:
    """Every FROM item, with the name of its relation, also within ``table(x)``, ``changelog(x, k)`` and windows."""
    for table in query.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier):
            yield table, table
        elif isinstance(table.this, exp.Anonymous):
            yield table, _read_by(table)


def _read_by(table: exp.Table) -> exp.Expr:
    """The name in the innermost call of a FROM item. Raises SqlError where none stands there."""
    call: exp.Expr = table.this
    while isinstance(call, exp.Anonymous) and call.expressions and not qualifier(table):
        _expect_read(call)
        call = call.expressions[0]
    if isinstance(call, exp.Column) or function_name(table.this) in WINDOWS:
        return call
    raise SqlError(
        f"{function_name(table.this)}() names no stream or view to read",
        where=place_of(table, "FROM"),
        fix="FROM table(s), changelog(s, k) or tumble(s, 1m) of a stream; numbers: FROM generate_series(0, 9) AS g(n)",
    )


def _expect_read(call: exp.Anonymous) -> None:
    """Raises SqlError for what stands behind the name in ``table(x)`` or ``changelog(x, k)`` and says nothing there."""
    name, (read, *others) = function_name(call), call.expressions
    if name == "table" and others:
        raise SqlError(
            f"table() reads one relation, not {len(call.expressions)}",
            where=place_of(others[0], "FROM"),
            fix=f"FROM table({read.sql()})",
        )
    if name == "changelog" and others and isinstance(others[-1], exp.Boolean):
        others = others[:-1]
    for key in others if name == "changelog" else ():
        if not isinstance(key, exp.Column) or key.table:
            fix = f"FROM changelog({read.sql()}, {key.name or 'k'})"
            raise SqlError(
                f"changelog() takes columns of {read.sql()} by their names, and no {key.sql()}",
                where=place_of(key, "FROM"),
                fix=fix,
            )
