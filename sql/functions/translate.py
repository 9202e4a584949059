"""From the user's tree to the engine's: every call by the registry of its dialect, every operator as a call.

The tree comes with its columns under their internal names; their types stand in an ``Environment``. What is built is
typed bottom-up, so that a function can do one thing for texts and another for times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from changelog.errors import SqlError, Unsupported
from sql.expressions import engine
from sql.expressions.evaluate import types_of
from sql.functions.aggregate_calls import Aggregated, aggregate_name, aggregate_tree, as_it_is, is_aggregate, result_type, with_filter
from sql.syntax.types import Rules
from sql.syntax.calls import TAKES_UNIT, snake_case
from sql.expressions.engine import type_name
from sql.functions.registry import Registry
from sql.functions.typed import Typed, bracketed


Visit = Callable[["Translator", exp.Expr], "Typed"]


class Dialect(Protocol):
    """What differs between the dialects besides their functions."""

    merged_first: bool
    rules: Rules

    @property
    def registry(self) -> Registry: ...

    @property
    def visits(self) -> Mapping[type[exp.Expr], Visit]:
        """The nodes that the dialect reads in a way of its own."""
        ...

    def operator(self, node: exp.Expr, operands: Sequence[Typed]) -> Typed | exp.Expr | None:
        """An operator over its operands; None where the engine's own is right."""
        ...

    def literal(self, node: exp.Literal, environment: Environment) -> Typed: ...

    def cast(self, value: Typed, kind: pa.DataType) -> exp.Expr: ...

    def type_of(self, written: exp.DataType) -> pa.DataType: ...


@dataclass(frozen=True)
class Environment:
    """The types of the columns that a tree may name."""

    types: Mapping[str, pa.DataType]
    place: str = ""
    rules: Rules = Rules.TIMEPLUS

    def ask(self, tree: exp.Expr) -> pa.DataType:
        """The type that the engine gives ``tree``."""
        tree = self._without_aggregates(tree)
        return _asked(engine.text(tree), self._named(tree), self.place)

    def _named(self, tree: exp.Expr) -> tuple[tuple[str, pa.DataType], ...]:
        """The columns that a tree reads, with their types."""
        names = dict.fromkeys(column.name for column in tree.find_all(exp.Column) if column.name in self.types)
        return tuple((name, self.types[name]) for name in names)

    def _without_aggregates(self, tree: exp.Expr) -> exp.Expr:
        """The tree with a value of the type of each aggregate and subquery in its place: types are asked of rows."""

        def value(node: exp.Expr) -> exp.Expr:
            if (known := node.meta.get(KIND)) is not None:
                return exp.Cast(this=exp.Null(), to=exp.DataType.build(type_name(known), dialect="duckdb"))
            if not with_filter(node):
                return node
            kind = result_type(node, self.types, self.place, self.rules) or _asked(engine.text(node), self._named(node), self.place)
            return exp.Cast(this=exp.Null(), to=exp.DataType.build(type_name(kind), dialect="duckdb"))

        if tree.find(exp.AggFunc, exp.Query, exp.Exists) is None or with_filter(tree) or tree.find(exp.Window):
            return tree
        return tree.copy().transform(value)

    def known(self, tree: exp.Expr, kind: pa.DataType | None = None) -> Typed:
        return Typed(tree, self.ask, kind)

    def with_names(self, types: Mapping[str, pa.DataType]) -> Environment:
        return replace(self, types={**self.types, **types})


@lru_cache(maxsize=8192)
def _asked(sql: str, types: tuple[tuple[str, pa.DataType], ...], place: str) -> pa.DataType:
    return types_of(pa.schema(list(types)), [sql], place)[0]


KIND = "type"
"""The key in the metadata of a tree under which its type stands, where the engine could not tell it."""

Special = Callable[["Translator", exp.Expr], Typed]

_OPERATORS: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.NullSafeEQ: "", exp.NullSafeNEQ: "",
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.IntDiv: "div", exp.Mod: "%",
    exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "#", exp.BitwiseLeftShift: "<<", exp.BitwiseRightShift: ">>",
    exp.DPipe: "||", exp.Like: "LIKE", exp.ILike: "ILIKE", exp.RegexpLike: "~", exp.RegexpILike: "~*", exp.SimilarTo: "SIMILAR TO",
    exp.Pow: "^", exp.Xor: "xor",
}  # fmt: skip


@dataclass(frozen=True)
class Translator:
    """``Translator(dialect, environment)(tree)``.

    special     calls that mean something of their own in this place, by name
    aggregated  what becomes of an aggregate of the type
    """

    dialect: Dialect
    environment: Environment
    special: Mapping[str, Special] = field(default_factory=dict)
    aggregated: Aggregated = as_it_is

    def __call__(self, node: exp.Expr) -> Typed:
        visit = self.dialect.visits.get(type(node)) or _VISITS.get(type(node))
        if visit is not None:
            return visit(self, node)
        if type(node) in _OPERATORS:
            return self._operator(node)
        if is_aggregate(node):
            return self._aggregate(node)
        raise Unsupported(
            f"{node.sql(dialect='clickhouse')} is not supported", where=self.environment.place, fix="docs/functions.md lists what is"
        )

    def tree(self, node: exp.Expr) -> exp.Expr:
        return self(node).tree

    def _known(self, tree: exp.Expr, kind: pa.DataType | None = None) -> Typed:
        return self.environment.known(tree, kind)

    # Leaves

    def _column(self, node: exp.Expr) -> Typed:
        kind = self.environment.types.get(node.name)
        if kind is None:
            raise SqlError(f'there is no column "{node.name}"', where=self.environment.place)
        return self._known(exp.column(exp.to_identifier(node.name, quoted=True)), kind)

    def _identifier(self, node: exp.Expr) -> Typed:
        """The argument of a lambda."""
        return self._column(node)

    def _literal(self, node: exp.Expr) -> Typed:
        assert isinstance(node, exp.Literal)
        return self.dialect.literal(node, self.environment)

    def _boolean(self, node: exp.Expr) -> Typed:
        return Typed(node.copy(), self.environment.ask, pa.bool_(), bool(node.this))

    def _null(self, node: exp.Expr) -> Typed:
        return self._known(exp.Null(), pa.null())

    def _star(self, node: exp.Expr) -> Typed:
        return self._known(exp.Star(), pa.int64())

    # Connectives

    def _paren(self, node: exp.Expr) -> Typed:
        inner = self(node.this)
        return Typed(bracketed(inner.tree), inner.ask, inner.told, inner.literal)

    def _connector(self, node: exp.Expr) -> Typed:
        kind = type(node)
        sides = [self._term(side, kind) for side in (node.this, node.expression)]
        return self._known(kind(this=sides[0], expression=sides[1]), pa.bool_())

    def _term(self, node: exp.Expr, within: type[exp.Expr]) -> exp.Expr:
        """A condition as a part of AND, OR or NOT."""
        tree = self.condition(node)
        return exp.Paren(this=tree) if isinstance(tree, exp.Connector) and type(tree) is not within else tree

    def condition(self, node: exp.Expr) -> exp.Expr:
        value = self(node)
        if value.is_boolean or value.is_null:
            return value.tree
        if value.is_number:
            return exp.NEQ(this=bracketed(value.tree), expression=exp.Literal.number(0))
        raise SqlError(
            f"a condition is true or false, and {node.sql(dialect='clickhouse')} is a {value.family}",
            where=self.environment.place,
            fix="compare it with something",
        )

    def _not(self, node: exp.Expr) -> Typed:
        return self._known(exp.Not(this=self._term(node.this, exp.Not)), pa.bool_())

    def _is(self, node: exp.Expr) -> Typed:
        return self._known(exp.Is(this=bracketed(self.tree(node.this)), expression=node.expression.copy()), pa.bool_())

    def _in(self, node: exp.Expr) -> Typed:
        if node.args.get("unnest") or node.args.get("field"):
            return self._fallback(node)
        if (query := node.args.get("query")) is not None:
            return self._known(exp.In(this=bracketed(self.tree(node.this)), query=self.tree(query)), pa.bool_())
        values = [bracketed(self.tree(one)) for one in node.expressions]
        return self._known(exp.In(this=bracketed(self.tree(node.this)), expressions=values), pa.bool_())

    def _between(self, node: exp.Expr) -> Typed:
        parts = {name: bracketed(self.tree(node.args[name])) for name in ("this", "low", "high")}
        return self._known(exp.Between(**parts), pa.bool_())

    def _fallback(self, node: exp.Expr) -> Typed:
        raise Unsupported(f"{node.sql(dialect='clickhouse')} is not supported", where=self.environment.place)

    def _case(self, node: exp.Expr) -> Typed:
        subject = node.args.get("this")
        case = exp.Case(this=None if subject is None else self.tree(subject))
        for branch in node.args["ifs"]:
            condition = self.condition(branch.this) if subject is None else self.tree(branch.this)
            case = case.when(condition, self.tree(branch.args["true"]))
        otherwise = node.args.get("default")
        if otherwise is not None:
            case = case.else_(self.tree(otherwise))
        return self._known(exp.Paren(this=case))

    def _if(self, node: exp.Expr) -> Typed:
        otherwise = node.args.get("false") or exp.Null()
        return self._call("if", [self(node.this), self(node.args["true"]), self(otherwise)])

    # Calls

    def _anonymous(self, node: exp.Expr) -> Typed:
        name = snake_case(str(node.this))
        if name in self.special:
            return self.special[name](self, node)
        if is_aggregate(node):
            return self._aggregate(node)
        arguments = list(node.expressions)
        if any(isinstance(argument, exp.Lambda) for argument in arguments):
            return self._call(name, self._with_lambda(arguments))
        if name in TAKES_UNIT:
            return self._call(name, [self._unit_or_value(argument) for argument in arguments])
        return self._call(name, [self(argument) for argument in arguments])

    def _unit_or_value(self, node: exp.Expr) -> Typed:
        """``day`` without quotes is a unit, unless it is a column."""
        if isinstance(node, exp.Column | exp.Var | exp.Identifier) and node.name not in self.environment.types:
            return Typed(exp.Literal.string(node.name), self.environment.ask, pa.string(), node.name)
        return self(node)

    def _call(self, name: str, arguments: Sequence[Typed]) -> Typed:
        function = self.dialect.registry.find(name, self.environment.place)
        try:
            return function(arguments, self._known(exp.Null(), pa.null()))
        except SqlError as fault:
            raise type(fault)(fault.what, where=fault.where or self.environment.place, fix=fault.fix) from None

    def _with_lambda(self, arguments: Sequence[exp.Expr]) -> list[Typed]:
        """The lambda over the elements of the arrays that come with it."""
        given: dict[int, Typed] = {
            position: self(argument) for position, argument in enumerate(arguments) if not isinstance(argument, exp.Lambda)
        }
        elements = [kind for value in given.values() for kind in _elements(value)]
        for position, argument in enumerate(arguments):
            if isinstance(argument, exp.Lambda):
                names = [parameter.name for parameter in argument.expressions]
                # More names than elements: the first is what comes together, beginning with the last argument.
                last = given[max(given)]
                start = [] if last.is_list or last.is_map or len(names) <= len(elements) else [last.type]
                kinds = dict(zip(names, [*start, *elements, *([pa.null()] * len(names))], strict=False))
                inner = replace(self, environment=self.environment.with_names(kinds))
                body = inner(argument.this)
                made = exp.Lambda(this=body.tree, expressions=[exp.to_identifier(name) for name in names], colon=True)
                given[position] = Typed(made, self.environment.ask, body.type)
        return [given[position] for position in range(len(arguments))]

    def _operator(self, node: exp.Expr) -> Typed:
        result = self.operation(node, self(node.this), self(node.expression))
        # NOT LIKE is a LIKE with a mark.
        return self._known(exp.Not(this=bracketed(result.tree)), pa.bool_()) if node.args.get("negate") else result

    def operation(self, node: exp.Expr, left: Typed, right: Typed) -> Typed:
        """An operator over operands that are translated."""
        try:
            built = self.dialect.operator(node, (left, right))
        except SqlError as fault:
            raise type(fault)(fault.what, where=fault.where or self.environment.place, fix=fault.fix) from None
        if isinstance(built, Typed):
            return built
        if built is not None:
            return self._known(built)
        kind = pa.bool_() if isinstance(node, exp.Predicate) else None
        return self._known(type(node)(this=bracketed(left.tree), expression=bracketed(right.tree)), kind)

    def _neg(self, node: exp.Expr) -> Typed:
        value = self(node.this)
        if isinstance(value.literal, int | float) and not isinstance(value.literal, bool):
            return Typed(exp.Neg(this=value.tree), value.ask, _signed(value), -value.literal)
        return self._call("negate", [value])

    def _cast(self, node: exp.Expr) -> Typed:
        kind = self.dialect.type_of(node.args["to"])
        return self._known(self.dialect.cast(self(node.this), kind), kind)

    def _try_cast(self, node: exp.Expr) -> Typed:
        return self._cast(node)

    def _interval(self, node: exp.Expr) -> Typed:
        return self._known(node.copy(), pa.month_day_nano_interval())

    def _array(self, node: exp.Expr) -> Typed:
        return self._call("array", [self(one) for one in node.expressions])

    def _tuple(self, node: exp.Expr) -> Typed:
        return self._call("tuple", [self(one) for one in node.expressions])

    def _struct(self, node: exp.Expr) -> Typed:
        parts = []
        for index, one in enumerate(node.expressions, start=1):
            named = isinstance(one, exp.PropertyEQ)
            key = exp.to_identifier(one.this.name if named else str(index), quoted=True)
            parts.append(exp.PropertyEQ(this=key, expression=self.tree(one.expression if named else one)))
        return self._known(exp.Struct(expressions=parts))

    def _var_map(self, node: exp.Expr) -> Typed:
        keys, values = node.args["keys"].expressions, node.args["values"].expressions
        return self._call("map", [self(one) for pair in zip(keys, values, strict=True) for one in pair])

    def _bracket(self, node: exp.Expr) -> Typed:
        [index] = node.expressions
        return self._call("array_element", [self(node.this), self(index)])

    def _dot(self, node: exp.Expr) -> Typed:
        which = node.expression
        literal: str | int = int(which.this) if isinstance(which, exp.Literal) and not which.is_string else which.name
        return self._call("tuple_element", [self(node.this), Typed(exp.Null(), self.environment.ask, pa.null(), literal)])

    def _extract(self, node: exp.Expr) -> Typed:
        unit = node.this.name.lower()
        names = {"day": "to_day_of_month", "dow": "to_day_of_week", "doy": "to_day_of_year", "week": "to_iso_week", "epoch": "to_unix_timestamp"}
        return self._call(names.get(unit, f"to_{unit}"), [self(node.expression)])

    def _substring(self, node: exp.Expr) -> Typed:
        parts = [node.this, node.args.get("start"), node.args.get("length")]
        return self._call("substring", [self(one) for one in parts if one is not None])

    def _position(self, node: exp.Expr) -> Typed:
        parts = [node.this, node.args["substr"], node.args.get("position")]
        return self._call("position", [self(one) for one in parts if one is not None])

    def _trim(self, node: exp.Expr) -> Typed:
        side = str(node.args.get("position") or "BOTH").upper()
        name = {"LEADING": "trim_left", "TRAILING": "trim_right"}.get(side, "trim_both")
        signs = node.args.get("expression")
        return self._call(name, [self(node.this), *([] if signs is None else [self(signs)])])

    def _floor(self, node: exp.Expr) -> Typed:
        digits = node.args.get("decimals")
        name = "ceil" if isinstance(node, exp.Ceil) else "floor"
        return self._call(name, [self(node.this), *([] if digits is None else [self(digits)])])

    def _escape(self, node: exp.Expr) -> Typed:
        liked = node.this
        tree = type(liked)(this=bracketed(self.tree(liked.this)), expression=bracketed(self.tree(liked.expression)))
        return self._known(exp.Escape(this=tree, expression=node.expression.copy()), pa.bool_())

    def _at_time_zone(self, node: exp.Expr) -> Typed:
        return self._call("to_timezone", [self(node.this), self(node.args["zone"])])

    def _hex(self, node: exp.Expr) -> Typed:
        value = int(str(node.this), 16)
        return self.dialect.literal(exp.Literal.number(value), self.environment)

    def _initcap(self, node: exp.Expr) -> Typed:
        return self._call("initcap", [self(node.this)])

    # Aggregates

    def _aggregate(self, node: exp.Expr) -> Typed:
        tree = aggregate_tree(node, self._argument, self.condition, self.environment.place)
        kind = result_type(tree, self.environment.types, self.environment.place, self.environment.rules)
        called = node.this if isinstance(node, exp.Filter | exp.WithinGroup) else node
        return self._known(self.aggregated(tree, kind, aggregate_name(called), self.environment.place), kind)

    def _argument(self, node: exp.Expr) -> exp.Expr:
        return node.copy() if isinstance(node, exp.Star) else self.tree(node)

    def _filter(self, node: exp.Expr) -> Typed:
        return self._aggregate(node)

    def _window(self, node: exp.Expr) -> Typed:
        """A window function, of a query over rows that are all there."""
        made = node.copy()
        made.set("this", replace(self, aggregated=as_it_is).tree(node.this))
        made.set("partition_by", [self.tree(one) for one in node.args.get("partition_by") or ()])
        if (order := node.args.get("order")) is not None:
            made.set("order", self.ordered(order))
        kind = replace(self, aggregated=as_it_is)(node.this).told
        return self._known(self.aggregated(made, kind, "", self.environment.place), kind)

    def ordered(self, order: exp.Expr) -> exp.Expr:
        """ORDER BY with its expressions translated."""
        made = order.copy()
        for written, term in zip(order.expressions, made.expressions, strict=True):
            term.set("this", self.tree(written.this))
        return made

    def _member(self, node: exp.Expr) -> Typed:
        """``raw:a.b``, as text."""
        path = ".".join(f'"{name.this}"' for name in node.expression.expressions)
        tree = exp.Anonymous(this="json_extract_string", expressions=[self.tree(node.this), exp.Literal.string(f"$.{path}")])
        return self._known(tree, pa.string())


def _elements(value: Typed) -> list[pa.DataType]:
    """What a lambda takes of a value: an element of an array, the key and the value of a map."""
    if value.is_map:
        return [value.type.key_type, value.type.item_type]
    return [value.type.value_type] if value.is_list else []


def _signed(value: Typed) -> pa.DataType:
    literal = value.literal
    if not isinstance(literal, int):
        return value.type
    for bits, kind in ((8, pa.int8()), (16, pa.int16()), (32, pa.int32())):
        if -literal >= -(1 << (bits - 1)):
            return kind
    return pa.int64()


_VISITS: Mapping[type[exp.Expr], Callable[[Translator, exp.Expr], Typed]] = {
    exp.Column: Translator._column,
    exp.Identifier: Translator._identifier,
    exp.Literal: Translator._literal,
    exp.Boolean: Translator._boolean,
    exp.Null: Translator._null,
    exp.Star: Translator._star,
    exp.Paren: Translator._paren,
    exp.And: Translator._connector,
    exp.Or: Translator._connector,
    exp.Not: Translator._not,
    exp.Is: Translator._is,
    exp.In: Translator._in,
    exp.Between: Translator._between,
    exp.Case: Translator._case,
    exp.If: Translator._if,
    exp.Anonymous: Translator._anonymous,
    exp.Neg: Translator._neg,
    exp.Cast: Translator._cast,
    exp.TryCast: Translator._try_cast,
    exp.Interval: Translator._interval,
    exp.Array: Translator._array,
    exp.Tuple: Translator._tuple,
    exp.Struct: Translator._struct,
    exp.VarMap: Translator._var_map,
    exp.Bracket: Translator._bracket,
    exp.Dot: Translator._dot,
    exp.Extract: Translator._extract,
    exp.Substring: Translator._substring,
    exp.StrPosition: Translator._position,
    exp.Trim: Translator._trim,
    exp.Floor: Translator._floor,
    exp.Ceil: Translator._floor,
    exp.Escape: Translator._escape,
    exp.AtTimeZone: Translator._at_time_zone,
    exp.HexString: Translator._hex,
    exp.Initcap: Translator._initcap,
    exp.Filter: Translator._filter,
    exp.WithinGroup: Translator._filter,
    exp.Window: Translator._window,
    exp.JSONExtractScalar: Translator._member,
}
