"""The forms of expressions that both dialects share: literals, conditions, choices, calls, positions, parts of times.

``COMMON`` holds a visit for each node; a dialect adds its own, or puts them in the place of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError
from dovetail.sql.expressions.aggregate_functions import outermost
from dovetail.sql.expressions.expression import column_named
from dovetail.sql.expressions.partitions.window_calls import name_of
from dovetail.sql.functions import interval_columns
from dovetail.sql.functions.aggregate_calls import as_it_is, exact, is_aggregate, is_window_call
from dovetail.sql.functions.translate import LONGEST_CHAIN, Translator, Visit
from dovetail.sql.functions.typed import Typed, bracketed, filled
from dovetail.sql.syntax.calls import TAKES_UNIT, function_name, registered_name
from dovetail.sql.syntax.dialect import too_deep


def _column(translator: Translator, node: exp.Expr) -> Typed:
    kind = translator.environment.type_of(node.name)
    if kind is None:
        raise SqlError(f'there is no column "{node.name}"', where=translator.environment.place)
    column = column_named(node.name)
    of_text = translator.environment.reads_interval(node.name)
    return translator.known(interval_columns.read(column) if of_text else column, kind)


def _identifier(translator: Translator, node: exp.Expr) -> Typed:
    """The argument of a lambda."""
    return _column(translator, node)


def _literal(translator: Translator, node: exp.Expr) -> Typed:
    assert isinstance(node, exp.Literal)
    return translator.dialect.literal(node, translator.environment)


def _boolean(translator: Translator, node: exp.Expr) -> Typed:
    return Typed(node.copy(), translator.environment.ask, pa.bool_(), bool(node.this))


def _null(translator: Translator, node: exp.Expr) -> Typed:
    return translator.known(exp.Null(), pa.null())


def _star(translator: Translator, node: exp.Expr) -> Typed:
    return translator.known(exp.Star(), pa.int64())


def _paren(translator: Translator, node: exp.Expr) -> Typed:
    inner = translator(node.this)
    return Typed(bracketed(inner.tree), inner.ask, inner.known_type, inner.literal)


def _connector(translator: Translator, node: exp.Expr) -> Typed:
    """A chain of AND or OR from its first term on: it may be longer than calls can be nested."""
    kind = type(node)
    if len(terms := _terms(node)) > LONGEST_CHAIN:
        raise too_deep()
    first, *others = (_term(translator, term, kind) for term in terms)
    tree = first
    for other in others:
        tree = kind(this=tree, expression=other)
    return translator.known(tree, pa.bool_())


def _terms(node: exp.Expr) -> list[exp.Expr]:
    terms = []
    while type(node.this) is type(node):
        terms.append(node.expression)
        node = node.this
    return [node.this, node.expression, *reversed(terms)]


def _term(translator: Translator, node: exp.Expr, within: type[exp.Expr]) -> exp.Expr:
    """A condition as a part of AND, OR or NOT."""
    tree = translator.condition(node)
    return exp.Paren(this=tree) if isinstance(tree, exp.Connector) and type(tree) is not within else tree


def _not(translator: Translator, node: exp.Expr) -> Typed:
    return translator.known(exp.Not(this=_term(translator, node.this, exp.Not)), pa.bool_())


def _is(translator: Translator, node: exp.Expr) -> Typed:
    if not isinstance(node.expression, exp.Null | exp.Boolean):
        raise translator.unsupported(node)
    translator.note_read(node.expression)
    asked = translator.tree if isinstance(node.expression, exp.Null) else translator.condition
    value = bracketed(asked(node.this))
    return translator.known(exp.Is(this=value, expression=node.expression.copy()), pa.bool_())


def _if(translator: Translator, node: exp.Expr) -> Typed:
    otherwise = node.args.get("false") or exp.Null()
    return translator.call("if", [translator(node.this), translator(node.args["true"]), translator(otherwise)])


def _anonymous(translator: Translator, node: exp.Expr) -> Typed:
    name = registered_name(node)
    if name in translator.special:
        return translator.special[name](translator, node)
    if is_aggregate(node):
        return translator.aggregate(node)
    arguments = list(node.expressions)
    if name in _GROUPING:
        call = exp.Anonymous(this=_GROUPING[0], expressions=[translator.tree(argument) for argument in arguments])
        return translator.known(call, pa.int64())
    if not translator.dialect.registry.knows(name) and (own := translator.own(function_name(node), arguments)):
        return own
    if any(isinstance(argument, exp.Lambda) for argument in arguments):
        return translator.call(name, _with_lambda(translator, arguments))
    if name in TAKES_UNIT:
        return translator.call(name, [_unit_or_value(translator, argument) for argument in arguments])
    return translator.call(name, [translator(argument) for argument in arguments])


_GROUPING = ("grouping", "grouping_id")


def is_grouping(node: exp.Expr) -> bool:
    """Whether a node asks which keys the grouping set of a row lacks."""
    return isinstance(node, exp.Anonymous) and registered_name(node) in _GROUPING


def _unit_or_value(translator: Translator, node: exp.Expr) -> Typed:
    """``day`` without quotes is a unit, unless it is a column."""
    if isinstance(node, exp.Column | exp.Var | exp.Identifier) and node.name not in translator.environment.types:
        translator.note_read(node)
        return Typed(exp.Literal.string(node.name), translator.environment.ask, pa.string(), node.name)
    return translator(node)


def _with_lambda(translator: Translator, arguments: Sequence[exp.Expr]) -> list[Typed]:
    """Lambdas over the elements of the arrays that come with them."""
    values = [translator(argument) for argument in arguments if not isinstance(argument, exp.Lambda)]
    others = iter(values)
    return [
        _lambda(translator, argument, values) if isinstance(argument, exp.Lambda) else next(others)
        for argument in arguments
    ]


def _lambda(translator: Translator, node: exp.Lambda, values: Sequence[Typed]) -> Typed:
    """A lambda over the elements of ``values``; its type is that of its body."""
    names = [parameter.name for parameter in node.expressions]
    kinds = [kind for value in values for kind in _elements(value)]
    if values and not _elements(values[-1]) and len(names) > len(kinds):
        # More names than elements: the first is what a fold has so far, which begins with the last argument.
        kinds = [values[-1].type, *kinds]
    unknown = [pa.null()] * len(names)
    named = translator.environment.with_names(dict(zip(names, [*kinds, *unknown], strict=False)))
    body = replace(translator, environment=named)(node.this)
    tree = exp.Lambda(this=body.tree, expressions=[exp.to_identifier(name) for name in names], colon=True)
    return Typed(tree, translator.environment.ask, body.type)


def _neg(translator: Translator, node: exp.Expr) -> Typed:
    value = translator(node.this)
    if isinstance(value.literal, int | float) and not isinstance(value.literal, bool):
        return Typed(exp.Neg(this=value.tree), value.ask, _signed(value), -value.literal)
    return translator.call("negate", [value])


def _cast(translator: Translator, node: exp.Expr) -> Typed:
    kind = translator.dialect.type_of(node.args["to"])
    if node.args["to"].is_type(exp.DType.UUID):
        return as_uuid(translator, node.this)
    return translator.known(translator.dialect.cast(translator(node.this), kind), kind)


def as_uuid(translator: Translator, text: exp.Expr) -> Typed:
    """One text for all that mean one UUID; NULL for what is none."""
    return translator.known(filled("CAST(TRY_CAST({0} AS UUID) AS VARCHAR)", [translator.tree(text)]), pa.string())


def _interval(translator: Translator, node: exp.Expr) -> Typed:
    unit = node.args.get("unit")
    length = exp.Interval(this=translator.tree(node.this), unit=None if unit is None else exp.var(unit.name.upper()))
    return translator.known(length, pa.month_day_nano_interval())


def _array(translator: Translator, node: exp.Expr) -> Typed:
    return translator.call("array", [translator(one) for one in node.expressions])


def _tuple(translator: Translator, node: exp.Expr) -> Typed:
    return translator.call("tuple", [translator(one) for one in node.expressions])


def _struct(translator: Translator, node: exp.Expr) -> Typed:
    parts = []
    for index, one in enumerate(node.expressions, start=1):
        named = isinstance(one, exp.PropertyEQ)
        key = exp.to_identifier(one.this.name if named else str(index), quoted=True)
        parts.append(exp.PropertyEQ(this=key, expression=translator.tree(one.expression if named else one)))
    return translator.known(exp.Struct(expressions=parts))


def _var_map(translator: Translator, node: exp.Expr) -> Typed:
    keys, values = node.args["keys"].expressions, node.args["values"].expressions
    return translator.call("map", [translator(one) for pair in zip(keys, values, strict=True) for one in pair])


def _bracket(translator: Translator, node: exp.Expr) -> Typed:
    [index] = node.expressions
    return translator.call("array_element", [translator(node.this), translator(index)])


def _dot(translator: Translator, node: exp.Expr) -> Typed:
    which = node.expression
    translator.note_read(which)
    literal: str | int = int(which.this) if isinstance(which, exp.Literal) and not which.is_string else which.name
    return translator.call(
        "tuple_element", [translator(node.this), Typed(exp.Null(), translator.environment.ask, pa.null(), literal)]
    )


def _extract(translator: Translator, node: exp.Expr) -> Typed:
    unit = node.this.name.lower()
    names = {
        "day": "to_day_of_month",
        "dow": "to_day_of_week",
        "doy": "to_day_of_year",
        "week": "to_iso_week",
        "epoch": "to_unix_timestamp",
    }
    return translator.call(names.get(unit, f"to_{unit}"), [translator(node.expression)])


def _substring(translator: Translator, node: exp.Expr) -> Typed:
    parts = [node.this, node.args.get("start"), node.args.get("length")]
    return translator.call("substring", [translator(one) for one in parts if one is not None])


def _position(translator: Translator, node: exp.Expr) -> Typed:
    parts = [node.this, node.args["substr"], node.args.get("position")]
    return translator.call("position", [translator(one) for one in parts if one is not None])


def _trim(translator: Translator, node: exp.Expr) -> Typed:
    side = str(node.args.get("position") or "BOTH").upper()
    name = {"LEADING": "trim_left", "TRAILING": "trim_right"}.get(side, "trim_both")
    signs = node.args.get("expression")
    return translator.call(name, [translator(node.this), *([] if signs is None else [translator(signs)])])


def _floor(translator: Translator, node: exp.Expr) -> Typed:
    digits = node.args.get("decimals")
    name = "ceil" if isinstance(node, exp.Ceil) else "floor"
    return translator.call(name, [translator(node.this), *([] if digits is None else [translator(digits)])])


def _escape(translator: Translator, node: exp.Expr) -> Typed:
    liked = node.this
    tree = type(liked)(
        this=bracketed(translator.tree(liked.this)), expression=bracketed(translator.tree(liked.expression))
    )
    escaped: exp.Expr = exp.Escape(this=tree, expression=translator.tree(node.expression))
    if liked.args.get("negate"):
        escaped = exp.Not(this=escaped)
    return translator.known(escaped, pa.bool_())


def _at_time_zone(translator: Translator, node: exp.Expr) -> Typed:
    return translator.call("to_timezone", [translator(node.this), translator(node.args["zone"])])


def _hex(translator: Translator, node: exp.Expr) -> Typed:
    value = int(str(node.this), 16)
    return translator.dialect.literal(exp.Literal(this=str(value), is_string=False), translator.environment)


def _initcap(translator: Translator, node: exp.Expr) -> Typed:
    return translator.call("initcap", [translator(node.this)])


def _filter(translator: Translator, node: exp.Expr) -> Typed:
    return translator.aggregate(node)


def _window(translator: Translator, node: exp.Expr) -> Typed:
    """A window function: the engine computes it, whole partitions at a time."""
    node, without_nulls = _without_marks(node)
    called = replace(translator, aggregated=as_it_is)(node.this)
    by = [translator.key(translator(one)).tree for one in node.args.get("partition_by") or ()]
    window = exp.Window(partition_by=by, spec=_frame(translator, node), over="OVER")
    if (order := node.args.get("order")) is not None:
        window.set("order", translator.ordered(order))
        if _is_measured(node) and len(order.expressions) == 1:
            # Of a frame that is so wide one term says how far rows are from one another.
            window.args["order"].set("expressions", window.args["order"].expressions[-1:])

    def over(call: exp.Expr) -> exp.Expr:
        made = window.copy()
        made.set("this", _of_values_there(call, translator) if without_nulls else call.copy())
        return made

    if is_window_call(called.tree):
        value = exact(over(called.tree), called.known_type, "", translator.environment.place)
        return translator.known(value, called.known_type)
    # What is made of several calls is of each of them over the window.
    made = called.tree.copy()
    for call in list(outermost(made, is_window_call)):
        call.replace(over(call))
    return translator.known(made, called.known_type)


def _without_marks(window: exp.Expr) -> tuple[exp.Expr, bool]:
    """A window without IGNORE NULLS and RESPECT NULLS, which stand behind the call or its last argument; whether nulls
    are ignored.
    """
    made = window.copy()
    marks = list(made.this.find_all(exp.IgnoreNulls, exp.RespectNulls))
    for mark in marks:
        mark.replace(mark.this)
    return (made, any(isinstance(mark, exp.IgnoreNulls) for mark in marks)) if marks else (window, False)


def _of_values_there(call: exp.Expr, translator: Translator) -> exp.Expr:
    """``call IGNORE NULLS``"""
    if name_of(call) not in _READ_ONE:
        raise SqlError(
            f"{name_of(call)}() takes no IGNORE NULLS",
            where=translator.environment.place,
            fix="first_value, last_value, nth_value, lag and lead do; aggregates leave NULLs out",
        )
    return exp.IgnoreNulls(this=call)


_READ_ONE = ("first", "last", "nth_value", "lag", "lead")
"""Functions of windows that give a value of one of the rows."""


def _frame(translator: Translator, window: exp.Expr) -> exp.Expr | None:
    """ROWS BETWEEN .. AND ..; how far it reaches is a number or an interval that is written out."""
    spec: exp.Expr | None = window.args.get("spec")
    if spec is None:
        return None
    made = spec.copy()
    for side in ("start", "end"):
        reach = spec.args.get(side)
        if isinstance(reach, exp.Expr):
            if not isinstance(reach.this if isinstance(reach, exp.Interval) else reach, exp.Literal):
                raise translator.unsupported(spec)
            made.set(side, translator.tree(reach))
    return made


def _is_measured(window: exp.Expr) -> bool:
    """Whether the frame of a window is so and so wide, rather than from one end to the row itself."""
    spec = window.args.get("spec")
    return spec is not None and any(isinstance(spec.args.get(side), exp.Expr) for side in ("start", "end"))


def _member(translator: Translator, node: exp.Expr) -> Typed:
    """``raw:a.b``, as text."""
    translator.note_read(node.expression)
    path = ".".join(f'"{name.this}"' for name in node.expression.expressions)
    tree = exp.Anonymous(
        this="json_extract_string", expressions=[translator.tree(node.this), exp.Literal.string(f"$.{path}")]
    )
    return translator.known(tree, pa.string())


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


COMMON: Mapping[type[exp.Expr], Visit] = {
    exp.Column: _column,
    exp.Identifier: _identifier,
    exp.Literal: _literal,
    exp.Boolean: _boolean,
    exp.Null: _null,
    exp.Star: _star,
    exp.Paren: _paren,
    exp.And: _connector,
    exp.Or: _connector,
    exp.Not: _not,
    exp.Is: _is,
    exp.If: _if,
    exp.Anonymous: _anonymous,
    exp.Neg: _neg,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Interval: _interval,
    exp.Array: _array,
    exp.Tuple: _tuple,
    exp.Struct: _struct,
    exp.VarMap: _var_map,
    exp.Bracket: _bracket,
    exp.Dot: _dot,
    exp.Extract: _extract,
    exp.Substring: _substring,
    exp.StrPosition: _position,
    exp.Trim: _trim,
    exp.Floor: _floor,
    exp.Ceil: _floor,
    exp.Escape: _escape,
    exp.AtTimeZone: _at_time_zone,
    exp.HexString: _hex,
    exp.Initcap: _initcap,
    exp.Filter: _filter,
    exp.WithinGroup: _filter,
    exp.Window: _window,
    exp.JSONExtractScalar: _member,
}
