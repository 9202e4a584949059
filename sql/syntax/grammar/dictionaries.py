"""CREATE DICTIONARY; its clauses may stand in any order."""

from __future__ import annotations

from dataclasses import replace

from dovetail.sql.syntax.cursor import Cursor
from dovetail.sql.syntax.grammar.columns import elements, primary_key
from dovetail.sql.syntax.grammar.settings import named_value, settings_clause
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import Clause, CreateDictionary, Setting


def create_dictionary(cursor: Cursor, or_replace: bool) -> CreateDictionary:
    """What follows CREATE DICTIONARY."""
    cursor.clause = "CREATE DICTIONARY"
    if_not_exists = bool(cursor.accept("IF NOT EXISTS"))
    name = cursor.path("the name of a dictionary")
    found = elements(cursor, Rules.TIMEPLUS)
    nothing = Clause("")
    made = CreateDictionary(
        name, tuple(found.columns), (), nothing, nothing, if_not_exists=if_not_exists, or_replace=or_replace
    )
    while not cursor.done:
        if cursor.at("PRIMARY KEY"):
            primary_key(cursor, found)
        else:
            made = _option(cursor, made)
    made = replace(made, primary_key=found.primary_key)
    for clause, missing in (
        ("PRIMARY KEY", not found.primary_key),
        ("SOURCE", made.source is nothing),
        ("LAYOUT", made.layout is nothing),
    ):
        if missing:
            cursor.fail(
                f"the dictionary has no {clause} clause", fix="PRIMARY KEY k SOURCE(MYSQL(..)) LAYOUT(DIRECT())"
            )
    return made


def _option(cursor: Cursor, made: CreateDictionary) -> CreateDictionary:
    if cursor.accept("SOURCE"):
        return replace(made, source=_in_brackets(cursor, "SOURCE"))
    if cursor.accept("LAYOUT"):
        return replace(made, layout=_in_brackets(cursor, "LAYOUT"))
    if cursor.accept("LIFETIME"):
        return replace(made, lifetime_s=_lifetime(cursor))
    if cursor.accept("RANGE"):
        return replace(made, range_columns=_range(cursor))
    if cursor.at("SETTINGS"):
        return replace(made, settings=settings_clause(cursor))
    if cursor.accept("COMMENT"):
        return replace(made, comment=cursor.string())
    cursor.expect("PRIMARY KEY", "SOURCE", "LAYOUT", "LIFETIME", "RANGE", "SETTINGS", "COMMENT")
    return made


def _in_brackets(cursor: Cursor, clause: str) -> Clause:
    """``(MYSQL(HOST 'db' PORT 3306))``; the inner brackets may be left out."""
    outer, cursor.clause = cursor.clause, clause
    cursor.expect("(")
    name = cursor.name(f"the kind of the {clause.lower()}").lower()
    parameters: dict[str, Setting] = {}
    if cursor.accept("("):
        while not cursor.at(")"):
            parameter, value = _parameter(cursor)
            parameters[parameter] = value
            cursor.accept(",")
        cursor.expect(")")
    cursor.expect(")")
    cursor.clause = outer
    return Clause(name, parameters)


def _parameter(cursor: Cursor) -> tuple[str, Setting]:
    """``NAME value``, or with an equals sign between."""
    name = cursor.name("a parameter").lower()
    cursor.accept("=")
    return named_value(cursor, name)


def _lifetime(cursor: Cursor) -> tuple[int, int]:
    """``(300)`` or ``(MIN 300 MAX 360)``."""
    cursor.expect("(")
    if cursor.accept("MIN"):
        least = cursor.integer()
        cursor.expect("MAX")
        greatest = cursor.integer()
    else:
        least = greatest = cursor.integer()
    cursor.expect(")")
    return least, greatest


def _range(cursor: Cursor) -> tuple[str, str]:
    cursor.expect("(")
    cursor.expect("MIN")
    least = cursor.name("a column")
    cursor.expect("MAX")
    greatest = cursor.name("a column")
    cursor.expect(")")
    return least, greatest
