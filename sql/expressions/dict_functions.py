"""dict_get and its kin: each becomes a hidden LEFT lookup join and an expression over its columns.

    dict_get('d', 'attr' | ('a', 'b'), key | (k1, k2))       the attribute, its default where the key is missing
    dict_get_or_default('d', attr, key, value)               the attribute, else ``value``
    dict_get_or_null('d', attr, key)                         the attribute, else NULL
    dict_has('d', key)                                       1 or 0

Several attributes make a named tuple. A NULL key is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from dovetail.changelog.errors import SqlError
from dovetail.sql.syntax.calls import registered_name

_ARGUMENTS = {"dict_get": 3, "dict_get_or_default": 4, "dict_get_or_null": 3, "dict_has": 2}
USAGE = {
    "dict_get": "dict_get('dictionary', 'attribute', key)",
    "dict_get_or_default": "dict_get_or_default('dictionary', 'attribute', key, value)",
    "dict_get_or_null": "dict_get_or_null('dictionary', 'attribute', key)",
    "dict_has": "dict_has('dictionary', key)",
}


def dict_function(node: exp.Expr) -> str:
    """The name of the function, if ``node`` calls one of these; else ''."""
    name = registered_name(node)
    return name if name in _ARGUMENTS else ""


def dict_calls(expression: exp.Expr) -> Iterator[exp.Expr]:
    """The calls in an expression, those within others first."""
    found = [node for node in expression.walk(bfs=False) if dict_function(node)]
    yield from reversed(found)


@dataclass(frozen=True)
class DictCall:
    """A call as it is written; ``attributes`` is empty for dict_has, ``default`` there for dict_get_or_default."""

    function: str
    dictionary: str
    attributes: tuple[str, ...]
    keys: tuple[exp.Expr, ...]
    tuple_of: bool = False
    default: exp.Expr | None = None

    @staticmethod
    def of(node: exp.Expr, place: str) -> DictCall:
        function = dict_function(node)
        arguments = list(node.expressions)
        if len(arguments) != _ARGUMENTS[function]:
            raise SqlError(
                f"{function} takes {_ARGUMENTS[function]} arguments, not {len(arguments)}",
                where=place,
                fix=USAGE[function],
            )
        several = function != "dict_has" and isinstance(arguments[1], exp.Tuple)
        names = [] if function == "dict_has" else _members(arguments[1])
        texts = [_text(argument, function, place) for argument in (arguments[0], *names)]
        key = arguments[1] if function == "dict_has" else arguments[2]
        return DictCall(
            function,
            texts[0].removeprefix("default."),
            tuple(texts[1:]),
            tuple(_members(key)),
            several,
            arguments[3] if function == "dict_get_or_default" else None,
        )

    def value(self, table: str, key: str) -> exp.Expr:
        """The call over the columns of its lookup, ``table``: its column ``key`` is NULL where nothing is found."""
        found = exp.Not(this=exp.Is(this=exp.column(key, table=table), expression=exp.Null()))
        if self.function == "dict_has":
            return _cast(exp.Case().when(found, exp.Literal.number(1)).else_(exp.Literal.number(0)), "uint8")
        values = [exp.column(name, table=table) for name in self.attributes]
        value = self._struct(values) if self.tuple_of else values[0]
        if self.function == "dict_get":
            return value
        chosen = exp.Case().when(found, value)
        if self.default is None:
            return exp.Paren(this=chosen)
        others = _members(self.default)
        return exp.Paren(this=chosen.else_(self._struct(others) if self.tuple_of else self.default.copy()))

    def _struct(self, values: Sequence[exp.Expr]) -> exp.Expr:
        named = zip(self.attributes, values, strict=False)
        return exp.Struct(
            expressions=[exp.PropertyEQ(this=exp.to_identifier(name), expression=value.copy()) for name, value in named]
        )


def _members(argument: exp.Expr) -> list[exp.Expr]:
    inner = argument.unnest()
    return list(inner.expressions) if isinstance(inner, exp.Tuple) else [argument]


def _text(argument: exp.Expr, function: str, place: str) -> str:
    if not isinstance(argument, exp.Literal) or not argument.is_string:
        raise SqlError(
            f"{function} takes the names of the dictionary and of its attributes as texts",
            where=place,
            fix=USAGE[function],
        )
    return str(argument.this)


def _cast(value: exp.Expr, kind: str) -> exp.Expr:
    return exp.Cast(this=value, to=exp.DataType.build(kind, dialect="clickhouse"))
