"""INSERT, UPDATE, DELETE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

from sqlglot import exp

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.changelog.wording import counted
from dovetail.sql.syntax.cursor import Cursor
from dovetail.sql.syntax.dialect import PARAMETER_AT
from dovetail.sql.syntax.grammar.queries import readable_expression, select
from dovetail.sql.syntax.statements import (
    Computed,
    DefaultValue,
    Delete,
    Insert,
    Literal,
    StatementParameter,
    Update,
)

_RETURNING = "RETURNING"
_Value = Literal | Computed | DefaultValue | StatementParameter


_REPLACES = "a row of a keyed table replaces the one of its key, whatever it says"
_OF_ALL = "name the rows in the condition: WHERE k = 2"
_OF_OTHER_ROWS = (
    "INSERT INTO t SELECT t.k, q.n FROM table(t) AS t JOIN table(q) AS q ON t.k = q.k, where a row replaces the one of "
    "its key; or WHERE k IN (1, 2)"
)
_CHANGED: Mapping[str, tuple[str, str]] = {
    "LIMIT": ("every row that the condition names is changed", _OF_ALL),
    "ORDER BY": ("every row that the condition names is changed", _OF_ALL),
    "FROM": ("a row is changed by what it holds itself", _OF_OTHER_ROWS),
    "USING": ("a row is changed by what it holds itself", _OF_OTHER_ROWS),
    "JOIN": ("a row is changed by what it holds itself", _OF_OTHER_ROWS),
    "AS": ("the table has its own name alone here", "UPDATE t SET n = n + 1 WHERE k = 2, or DELETE FROM t WHERE k = 2"),
}
_ADDED: Mapping[str, tuple[str, str]] = {
    "ON CONFLICT": (_REPLACES, "INSERT INTO t (k, s) VALUES (1, 'a'), without ON CONFLICT"),
    "ON DUPLICATE": (_REPLACES, "INSERT INTO t (k, s) VALUES (1, 'a'), without ON DUPLICATE KEY"),
    "FORMAT": ("rows of a file are written by another command", "dovetail insert t rows.csv, in a shell"),
    "DEFAULT VALUES": ("a row has a value for each column that is named", "INSERT INTO t (k) VALUES (1)"),
    "SET": ("the values follow the columns", "INSERT INTO t (k, s) VALUES (1, 'a')"),
}
"""Words that follow the name of the table elsewhere: what is here instead."""


def _refuse_words(cursor: Cursor, refused: Mapping[str, tuple[str, str]]) -> None:
    """Raises Unsupported for one of these phrases that is in no brackets; else reads nothing."""
    index, depth = cursor.index, 0
    while not cursor.done:
        depth += (cursor.word() == "(") - (cursor.word() == ")")
        words = "" if depth else cursor.refused(refused)
        # FROM may be that of IS DISTINCT FROM.
        if words and cursor.word(-1) != "DISTINCT":
            what, fix = refused[words]
            cursor.fail(f"{what}: {words} is not taken", fix=fix, kind=Unsupported)
        cursor.index += 1
    cursor.index = index


def insert(cursor: Cursor) -> Insert:
    """``INSERT INTO s [(a, b)] VALUES (..), (..)`` or ``INSERT INTO s [(a, b)] SELECT ..``, ``[RETURNING ..]``.

    ``(* EXCEPT c)`` and ``(* EXCEPT (c, d))`` are the other columns.
    """
    cursor.clause = "INSERT"
    returning = cursor.take_clause(_RETURNING)
    return replace(_insert(cursor), returning=returning)


def _insert(cursor: Cursor) -> Insert:
    if words := cursor.refused(("INSERT OR REPLACE INTO", "INSERT IGNORE INTO", "INSERT OVERWRITE")):
        cursor.fail(f"{_REPLACES}: there is no {words}", fix="INSERT INTO t (k, s) VALUES (1, 'a')", kind=Unsupported)
    cursor.expect("INSERT INTO")
    stream = cursor.path("the name of a stream")
    if not cursor.at("SELECT", "WITH"):
        _refuse_words(cursor, _ADDED)
    columns: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    if cursor.accept("( *"):
        cursor.expect("EXCEPT")
        left_out = _left_out(cursor)
        cursor.expect(")")
    elif cursor.at("(") and cursor.word(1) not in ("SELECT", "WITH"):
        columns = cursor.wrapped(lambda: cursor.name("a column"))
    if cursor.accept("VALUES"):
        cursor.clause = "VALUES"
        return Insert(stream, columns, _rows(cursor, columns), left_out=left_out)
    if cursor.at("SELECT", "WITH", "("):
        return Insert(stream, columns, query=select(cursor), left_out=left_out)
    cursor.expect("VALUES", "SELECT")
    return Insert(stream, columns)


def _left_out(cursor: Cursor) -> tuple[str, ...]:
    """The columns after ``* EXCEPT``, in brackets where they are several."""
    if cursor.at("("):
        return cursor.wrapped(lambda: cursor.name("a column"))
    return (cursor.name("a column"),)


def _rows(cursor: Cursor, columns: tuple[str, ...]) -> tuple[tuple[_Value, ...], ...]:
    rows = []
    while not cursor.done:
        offset = cursor.offset
        row = cursor.wrapped(lambda: _value(cursor))
        if columns and len(row) != len(columns):
            cursor.fail(
                f"this row has {counted(len(row), 'value')} for {counted(len(columns), 'column')}", offset=offset
            )
        rows.append(row)
        if not cursor.accept(",") and not cursor.done and not cursor.at("("):
            cursor.end()
    if not rows:
        cursor.expect("(")
    return tuple(rows)


def _value(cursor: Cursor) -> _Value:
    offset = cursor.offset
    if cursor.at("DEFAULT") and cursor.word(1) in (",", ")"):
        cursor.accept("DEFAULT")
        return DefaultValue()
    tree = readable_expression(cursor, cursor.nested())
    if isinstance(tree, exp.Placeholder) and PARAMETER_AT in tree.meta:
        return StatementParameter(tree.meta[PARAMETER_AT], tree.text("this"))
    if any(PARAMETER_AT in one.meta for one in tree.find_all(exp.Placeholder)):
        fix = "compute the value before, or INSERT INTO .. SELECT"
        cursor.fail("a parameter stands alone in VALUES", fix=fix, kind=Unsupported, offset=offset)
    try:
        return literal(tree)
    except ValueError:
        text = cursor.script[offset : cursor.tokens[cursor.index - 1].end + 1]
    if any(_is_named(column) for column in tree.find_all(exp.Column)):
        fix = (
            f"""write '{text.strip('"`')}' if it is a text"""
            if isinstance(tree, exp.Column)
            else "INSERT INTO .. SELECT .. FROM table(x) computes rows from rows"
        )
        cursor.fail(f"VALUES has no columns to read, and {text} names one", fix=fix, kind=Unsupported, offset=offset)
    return Computed(text)


def _is_named(column: exp.Column) -> bool:
    """Whether it is a column of VALUES, rather than of a subquery, or the word of ``array[]``."""
    is_array = isinstance(column.parent, exp.JSONCast) and column.name.lower() == "array"
    return not is_array and column.find_ancestor(exp.Query) is None


def literal(tree: exp.Expr) -> Literal:
    """The Python value of a literal; arrays are lists, maps dicts, tuples tuples. ValueError for what is none."""
    match tree:
        case exp.Literal():
            return tree.this if tree.is_string else _number(tree.this)
        case exp.Null():
            return None
        case exp.Boolean():
            return bool(tree.this)
        case exp.Neg(this=exp.Literal(is_string=False)):
            return -_number(tree.this.this)
        case exp.Paren() | exp.Cast():
            # The column's type decides, whatever the literal was cast to.
            return literal(tree.this)
        case _:
            return _collection(tree)


def _collection(tree: exp.Expr) -> Literal:
    match tree:
        case exp.Array():
            return [literal(item) for item in tree.expressions]
        case exp.Tuple() | exp.Struct():
            return tuple(literal(item) for item in tree.expressions)
        case exp.VarMap():
            keys, values = tree.args["keys"].expressions, tree.args["values"].expressions
            return {literal(key): literal(value) for key, value in zip(keys, values, strict=True)}
        case _:
            raise ValueError(tree.sql())


def _number(text: str) -> int | float | Decimal:
    """An int where there is no point, a float with an exponent, else a Decimal: no digit is lost."""
    if "e" in text.lower():
        return float(text)
    return Decimal(text) if "." in text else int(text)


def update(cursor: Cursor) -> Update:
    """``UPDATE s SET a = e, (b, c) = (f, g), .. [WHERE ..] [RETURNING ..]``."""
    cursor.clause = "UPDATE"
    returning = cursor.take_clause(_RETURNING)
    cursor.expect("UPDATE")
    stream = cursor.path("the name of a stream")
    _refuse_words(cursor, _CHANGED)
    cursor.expect("SET")
    offset = cursor.offset
    assignments = tuple(one for part in cursor.listed(lambda: _assignments(cursor)) for one in part)
    names = [name for name, _ in assignments]
    for name in names:
        if names.count(name) > 1:
            cursor.fail(f'"{name}" is set twice', fix="set it once", kind=SqlError, offset=offset)
    return Update(stream, assignments, where_clause(cursor), returning=returning)


def _assignments(cursor: Cursor) -> list[tuple[str, exp.Expr]]:
    """``a = e``; ``(a, b) = (e, f)``, or ``= ROW(e, f)``."""
    offset = cursor.offset
    if not cursor.at("("):
        column = cursor.name("a column")
        cursor.expect("=")
        return [(column, readable_expression(cursor, cursor.nested_until("WHERE")))]
    columns = cursor.wrapped(lambda: cursor.name("a column"))
    cursor.expect("=")
    if cursor.at("( SELECT", "( WITH"):
        cursor.fail("a subquery gives one value", fix="SET a = (SELECT ..), b = (SELECT ..)", kind=Unsupported)
    cursor.accept("ROW")
    values = cursor.wrapped(lambda: readable_expression(cursor, cursor.nested()))
    if len(values) != len(columns):
        what = f"{counted(len(values), 'value')} for {counted(len(columns), 'column')}"
        cursor.fail(what, fix="give a value for each", kind=SqlError, offset=offset)
    return list(zip(columns, values, strict=True))


def delete(cursor: Cursor) -> Delete:
    """``DELETE FROM s [WHERE ..] [RETURNING ..]``."""
    cursor.clause = "DELETE"
    returning = cursor.take_clause(_RETURNING)
    cursor.expect("DELETE FROM")
    stream = cursor.path("the name of a stream")
    _refuse_words(cursor, _CHANGED)
    return Delete(stream, where_clause(cursor), returning=returning)


def where_clause(cursor: Cursor) -> exp.Expr | None:
    """What is left: a condition, or nothing."""
    if cursor.done:
        return None
    cursor.expect("WHERE")
    cursor.clause = "WHERE"
    if cursor.done:
        cursor.fail("WHERE without a condition")
    return readable_expression(cursor, cursor.rest())
