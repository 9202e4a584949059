"""A dialect with the functions that users have made, besides its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError
from dovetail.sql.expressions.dict_functions import dict_function
from dovetail.sql.expressions.python_functions import PythonFunction
from dovetail.sql.functions.aggregate_calls import is_aggregate
from dovetail.sql.functions.environment import Environment
from dovetail.sql.functions.registry import Function, Registry, Row, Unfit
from dovetail.sql.functions.translate import Dialect, OwnFunction, Visit
from dovetail.sql.functions.typed import Typed
from dovetail.sql.relations import Relations
from dovetail.sql.syntax.calls import CONTENTS, WINDOWS
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import CreateFunction, Select
from dovetail.sql.syntax.types import display


@dataclass(frozen=True)
class WithFunctions:
    """``base``, and the functions of the catalog; a name that ``base`` knows is its own."""

    base: Dialect
    relations: Relations

    @property
    def merged_first(self) -> bool:
        return self.base.merged_first

    @property
    def rules(self) -> Rules:
        return self.base.rules

    @property
    def registry(self) -> Registry:
        return self.base.registry

    @property
    def visits(self) -> Mapping[type[exp.Expr], Visit]:
        return self.base.visits

    def operator(self, node: exp.Expr, operands: Sequence[Typed]) -> Typed | exp.Expr | None:
        return self.base.operator(node, operands)

    def literal(self, node: exp.Literal, environment: Environment) -> Typed:
        return self.base.literal(node, environment)

    def cast(self, value: Typed, kind: pa.DataType) -> exp.Expr:
        return self.base.cast(value, kind)

    def type_of(self, written: exp.DataType) -> pa.DataType:
        return self.base.type_of(written)

    def own(self, name: str) -> OwnFunction | None:
        definition = self.relations.function(name)
        return None if definition is None else OwnFunction(_callable(definition, self.base), definition.volatile)


def _callable(definition: CreateFunction, dialect: Dialect) -> Function:
    takes, returns = tuple(kind for _, kind in definition.arguments), definition.returns
    function = PythonFunction(definition.name, takes, returns, definition.body, definition.volatile)

    def build(arguments: Sequence[Typed]) -> Typed:
        trees = [_taken(value, kind, dialect) for value, kind in zip(arguments, takes, strict=True)]
        return arguments[0].of(function.over(trees), returns)

    row = Row(usage_of(definition, dialect.rules), "", build, arity=(len(takes), len(takes)))
    return Function(definition.name, row, build)


def _taken(value: Typed, kind: pa.DataType, dialect: Dialect) -> exp.Expr:
    """An argument as the function takes it: numbers as other numbers, a text in quotes as what it stands for."""
    if value.type == kind:
        return value.tree
    given, taken = value.family, value.of(value.tree, kind).family
    written_out = isinstance(value.literal, str) and dialect.rules is Rules.RISINGWAVE
    if given == taken or value.is_null or written_out or (given, taken) == ("date", "time"):
        return dialect.cast(value, kind)
    raise Unfit(f"takes {display(kind, dialect.rules)}, not {display(value.type, dialect.rules)}")


def is_taken(name: str, dialect: Dialect) -> bool:
    """Whether a call of this name is one of the dialect's own, or a form of SQL."""
    if dialect.registry.knows(name) or name in _RESERVED:
        return True
    try:
        statement = parse_one(f"SELECT {name}(x)")
        assert isinstance(statement, Select)
        assert statement.readings is not None
        (call,) = statement.readings.of(dialect.rules).expressions
    except SqlError:
        return True
    return not isinstance(call, exp.Anonymous) or is_aggregate(call) or bool(dict_function(call))


_RESERVED = frozenset({*WINDOWS, *CONTENTS, "changelog", "date_diff_within"})
"""Names that mean something in one place of a query."""


def usage_of(definition: CreateFunction, rules: Rules) -> str:
    """``f(a int, b string)``"""
    arguments = [f"{name} {display(kind, rules)}".strip() for name, kind in definition.arguments]
    return f"{definition.name}({', '.join(arguments)})"
