"""The parameters of a script's statements get their values.

``?`` are counted over the whole script, in the order of its text; ``:name`` has one value wherever it stands. A value
is a literal of the tree, so nothing in it is ever read as SQL. What is kept as its text (views, streams, SELECTs that
run) has no parameters: its text would mean nothing without them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from sqlglot import exp

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.changelog.suggest import suggestion
from dovetail.sql.syntax.dialect import PARAMETER_AT
from dovetail.sql.syntax.faults import place
from dovetail.sql.syntax.parameters.bound_literals import (
    Argument,
    Arguments,
    checked,
    expect_arguments,
    tree_of,
    value_of,
)
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import (
    Insert,
    OnDemand,
    Readings,
    Select,
    Statement,
    StatementParameter,
    Why,
    opening_words,
)

_NAMES = (exp.Table, exp.TableAlias, exp.Identifier, exp.Column, exp.Dot, exp.Ordered, exp.Group, exp.CTE, exp.Join)
"""What a parameter stands directly in where it would be a name."""


def bound(text: str, statements: Sequence[Statement], arguments: Arguments | None, rules: Rules) -> list[Statement]:
    """The statements of the script ``text`` with their parameters bound. ``rules`` are those of a condition of WHY.

    Raises SqlError for a parameter without a value, a value without a parameter and one that is no literal; Unsupported
    for a parameter of a statement that has none.
    """
    expect_arguments(arguments)
    found = sorted({one for statement in statements for one in _parameters(statement)}, key=lambda one: one.at)
    values = _values(text, found, arguments)
    return [_bound(text, statement, values, arguments, rules) for statement in statements]


def _values(
    text: str, found: Sequence[StatementParameter], arguments: Arguments | None
) -> Mapping[StatementParameter, Argument]:
    if found and arguments is None:
        fix = "write the value out; over HTTP and in Python values are given beside the statement"
        raise _fault(text, found[0], f"{_called(found[0])} is a parameter, and there are no arguments", fix)
    if isinstance(arguments, Mapping):
        return _by_name(text, found, arguments)
    named = next((one for one in found if one.name), None)
    if named is not None:
        raise _fault(
            text, named, f"{_called(named)} has a name, and the arguments have none", "give an object of names"
        )
    given = list(arguments or ())
    if len(given) > len(found):
        what = f"more arguments than parameters: {len(given)}, and {len(found)}"
        raise SqlError(what, where="arguments", fix="give one for each ?, in their order")
    if len(given) < len(found):
        what = f"fewer arguments than parameters: {len(given)}, and {len(found)}"
        raise _fault(text, found[len(given)], what, "give one for each ?, in their order")
    return {one: checked(value, f"? {at}") for at, (one, value) in enumerate(zip(found, given, strict=True), start=1)}


def _by_name(
    text: str, found: Sequence[StatementParameter], arguments: Mapping[str, object]
) -> Mapping[StatementParameter, Argument]:
    for one in found:
        if not one.name:
            raise _fault(text, one, "? has no name, and the arguments have names", "give a list, or write :name")
        if one.name not in arguments:
            raise _fault(text, one, f"there is no argument {one.name}", suggestion(one.name, arguments))
    names = {one.name for one in found}
    for name in arguments:
        if name not in names:
            fix = f"leave it out; {suggestion(name, names)}"
            raise SqlError(f"there is an argument {name}, and no parameter :{name}", where="arguments", fix=fix)
    return {one: checked(arguments[one.name], _called(one)) for one in found}


def _bound(
    text: str,
    statement: Statement,
    values: Mapping[StatementParameter, Argument],
    arguments: Arguments | None,
    rules: Rules,
) -> Statement:
    own = sorted(_parameters(statement), key=lambda one: one.at)
    if not own:
        return statement
    match statement:
        case Select():
            return replace(_with_query(text, statement, values), bound=True)
        case Insert():
            rows = tuple(tuple(_item(item, values) for item in row) for row in statement.rows)
            query = None if statement.query is None else _with_query(text, statement.query, values)
            return replace(statement, rows=rows, query=query, bound=True)
        case Why():
            where = _tree(text, statement.where, values, rules)
            return replace(statement, where=where, arguments=_of_one(own, values, arguments))
    verb = opening_words(statement)
    kept = ": what is created is kept as its text, without values" if verb.startswith("CREATE") else ""
    what = f"{verb} has no parameters{kept}"
    raise _fault(text, own[0], what, "write the value out; SELECT, INSERT and WHY have parameters", Unsupported)


def _of_one(
    own: Sequence[StatementParameter], values: Mapping[StatementParameter, Argument], arguments: Arguments | None
) -> Arguments:
    """The arguments of one statement of the script."""
    if isinstance(arguments, Mapping):
        return {one.name: values[one] for one in own}
    return tuple(values[one] for one in own)


def _with_query(text: str, statement: Select, values: Mapping[StatementParameter, Argument]) -> Select:
    def query_of(query: exp.Query, rules: Rules) -> exp.Query:
        made = _tree(text, query, values, rules)
        assert isinstance(made, exp.Query)
        return made

    if statement.readings is None:
        return replace(statement, query=query_of(statement.query, Rules.TIMEPLUS))
    read = {
        rules: query if isinstance(query, SqlError) else query_of(query, rules)
        for rules, query in statement.readings.by_rules.items()
    }
    query = next(query for query in read.values() if isinstance(query, exp.Query))
    return replace(statement, query=query, readings=Readings(read))


def _tree(text: str, tree: exp.Expr, values: Mapping[StatementParameter, Argument], rules: Rules) -> exp.Expr:
    def literal(node: exp.Expr) -> exp.Expr:
        one = _parameter(node)
        if one is None:
            return node
        if (isinstance(node.parent, _NAMES) and node.arg_key != "on") or node.arg_key in ("alias", "to", "unit"):
            what = f"{_called(one)} stands where a name is expected, and a parameter is a value"
            raise _fault(text, one, what, "write the name out", Unsupported)
        return tree_of(values[one], rules)

    return tree.transform(literal)


def _item(item: Any, values: Mapping[StatementParameter, Argument]) -> Any:
    return value_of(values[item]) if isinstance(item, StatementParameter) else item


def _parameter(node: exp.Expr) -> StatementParameter | None:
    at = node.meta.get(PARAMETER_AT) if isinstance(node, exp.Placeholder) else None
    return None if at is None else StatementParameter(at, node.text("this"))


def _parameters(value: object) -> Iterator[StatementParameter]:
    """Those in all trees of a statement."""
    match value:
        case exp.Expr():
            yield from filter(None, map(_parameter, value.find_all(exp.Placeholder)))
        case StatementParameter():
            yield value
        case OnDemand():
            yield from _parameters(value.made)
        case Mapping():
            for item in value.values():
                yield from _parameters(item)
        case tuple() | list():
            for item in value:
                yield from _parameters(item)
        case _ if is_dataclass(value):
            for one in fields(value):
                yield from _parameters(getattr(value, one.name))


def _called(one: StatementParameter) -> str:
    return f":{one.name}" if one.name else "?"


def _fault(text: str, one: StatementParameter, what: str, fix: str, kind: type[SqlError] = SqlError) -> SqlError:
    return kind(what, where=place(text, one.at), fix=fix)
