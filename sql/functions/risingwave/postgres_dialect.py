"""RisingWave's expressions, which are PostgreSQL's: operators, literals, casts, and the forms with words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.sql.functions.documents import JSON
from dovetail.sql.functions.environment import Environment
from dovetail.sql.functions.forms import COMMON, as_uuid
from dovetail.sql.functions.registry import Registry
from dovetail.sql.functions.risingwave import arithmetic, comparisons, functions, json, maps
from dovetail.sql.functions.risingwave.values import intervals
from dovetail.sql.functions.risingwave.values.casts import cast, to_numeric, unified
from dovetail.sql.functions.risingwave.values.kinds import (
    BIG,
    BOOL,
    INT,
    INTERVAL,
    TEXT,
    engine_name,
    is_unknown,
    kind_of,
    name_of,
    numeric,
    typed,
)
from dovetail.sql.functions.risingwave.values.map_entries import map_kind
from dovetail.sql.functions.translate import Translator, Visit
from dovetail.sql.functions.typed import Typed, bracketed, filled
from dovetail.sql.syntax.risingwave import RisingWaveQueries
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.types import arrow

_ARITHMETIC: Mapping[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}
_BITS: Mapping[type[exp.Expr], str] = {
    exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "#", exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
}  # fmt: skip
Operation = Callable[[Typed, Typed], Typed]

_OF_TEXTS: Mapping[type[exp.Expr], Operation] = {
    exp.DPipe: comparisons.concatenated,
    exp.Like: lambda left, right: comparisons.liked(left, right, fold=False),
    exp.ILike: lambda left, right: comparisons.liked(left, right, fold=True),
    exp.RegexpLike: lambda left, right: comparisons.matched(left, right, fold=False),
    exp.RegexpILike: lambda left, right: comparisons.matched(left, right, fold=True),
    exp.SimilarTo: comparisons.similar,
}


def _contains(left: Typed, right: Typed) -> Typed:
    """``@>`` of arrays, or of JSON documents."""
    if left.is_list or right.is_list:
        return comparisons.has_all(left, right)
    return json.contains(left, right)


_OF_POSTGRES: Mapping[type[exp.Expr], Operation] = {
    exp.ArrayContainsAll: _contains,
    exp.ArrayContainedBy: lambda left, right: _contains(right, left),
    exp.ArrayOverlaps: comparisons.overlaps,
    exp.JSONExtract: json.member,
    exp.JSONExtractScalar: json.member_text,
    exp.JSONBExtract: json.at_path,
    exp.JSONBExtractScalar: json.text_at_path,
    exp.JSONBContains: json.has_key,
}


class RisingWaveDialect:
    """As PostgreSQL has them. A type that is not known beforehand is that of the other operands: a text in quotes."""

    rules = Rules.RISINGWAVE
    merged_first = True

    @property
    def registry(self) -> Registry:
        return functions()

    @property
    def visits(self) -> Mapping[type[exp.Expr], Visit]:
        return _VISITS

    def operator(self, node: exp.Expr, operands: Sequence[Typed]) -> Typed:
        left, right = operands
        kind = type(node)
        if kind in _ARITHMETIC:
            return arithmetic.arithmetic(_ARITHMETIC[kind], left, right)
        if kind in _BITS:
            return arithmetic.bits(_BITS[kind], left, right)
        if kind in comparisons.SIGNS:
            return comparisons.compared(comparisons.SIGNS[kind], left, right)
        if kind is exp.Pow:
            return self.registry.find("power", "")(operands, left)
        found = _OF_TEXTS.get(kind) or _OF_POSTGRES.get(kind)
        if found is not None:
            return found(left, right)
        raise Unsupported(
            f"{node.sql(dialect=RisingWaveQueries)} is not supported", fix="docs/functions.md lists what is"
        )

    def literal(self, node: exp.Literal, environment: Environment) -> Typed:
        if node.is_string:
            return Typed(node.copy(), environment.ask, TEXT, str(node.this))
        written = str(node.this)
        if written.isdigit():
            value = int(written)
            kind = INT if value < 1 << 31 else BIG if value < 1 << 63 else numeric(len(written), 0)
            shown = node.copy() if value < 1 << 63 else filled(f"CAST('{written}' AS DECIMAL({kind.precision}, 0))", [])
            return Typed(shown, environment.ask, kind, value)
        number = Decimal(written)
        digits, exponent = len(number.as_tuple().digits), number.as_tuple().exponent
        scale = max(0, -int(exponent))
        if max(digits + max(int(exponent), 0), scale) > 38:
            raise SqlError(f"{written} has more than 38 digits", fix=f"'{written}'::double precision")
        kind = numeric(max(digits + int(exponent), 0), scale)
        shown = filled(f"CAST('{number:f}' AS DECIMAL({kind.precision}, {kind.scale}))", [])
        return Typed(shown, environment.ask, kind, float(written))

    def own(self, name: str) -> None:
        """Those of users are in the catalog."""

    def type_of(self, written: exp.DataType) -> pa.DataType:
        return type_of(written)

    def cast(self, value: Typed, kind: pa.DataType) -> exp.Expr:
        return cast(value, kind).tree


def type_of(written: exp.DataType) -> pa.DataType:
    if written.is_type(exp.DType.INTERVAL):
        return INTERVAL
    if written.is_type(exp.DType.JSONB, exp.DType.JSON):
        return JSON
    if written.is_type(exp.DType.ARRAY) and written.expressions:
        return pa.list_(type_of(written.expressions[0]))
    if written.is_type(exp.DType.STRUCT):
        return pa.struct([(part.name, type_of(part.args["kind"])) for part in written.expressions])
    if written.is_type(exp.DType.MAP) and len(written.expressions) == 2:
        return map_kind(*(type_of(part) for part in written.expressions))
    text = written.sql(dialect=RisingWaveQueries).lower()
    return arrow("varchar" if text.startswith(("varchar", "char", "text")) else text, Rules.RISINGWAVE)


# Forms


def _cast(translator: Translator, node: exp.Expr) -> Typed:
    written, array = node.args["to"], node.this.unnest()
    if isinstance(array, exp.Array) and written.is_type(exp.DType.ARRAY) and written.expressions:
        # Of an array that is written out each element is cast by itself.
        return _elements(translator, array, type_of(written))
    if isinstance(array, exp.VarMap) and written.is_type(exp.DType.MAP) and not array.args["keys"].expressions:
        return maps.empty(translator(exp.Null()), type_of(written))
    if written.is_type(exp.DType.UUID):
        return as_uuid(translator, node.this)
    value = translator(node.this)
    if written.is_type(exp.DType.DECIMAL) and not written.expressions:
        return to_numeric(value)
    result = cast(value, type_of(written))
    if result.is_text and written.expressions:
        # varchar(3): a cast cuts off what is too long.
        size = int(written.expressions[0].this.name)
        return typed(result, f'"left"({{0}}, {size})', [result.tree], TEXT)
    return result


def _elements(translator: Translator, array: exp.Array, kind: pa.DataType) -> Typed:
    trees = [cast(translator(element), kind.value_type).tree for element in array.expressions]
    value = translator(exp.Null())
    return typed(value, f"CAST({{0}} AS {engine_name(kind)})", [exp.Array(expressions=trees)], kind)


def _neg(translator: Translator, node: exp.Expr) -> Typed:
    value = translator(node.this)
    if isinstance(value.literal, int | float) and not isinstance(value.literal, bool):
        return Typed(exp.Neg(this=bracketed(value.tree)), value.ask, value.type, -value.literal)
    return arithmetic.negated(value)


def _bitwise_not(translator: Translator, node: exp.Expr) -> Typed:
    value = translator(node.this)
    if not value.is_integer:
        raise SqlError(f"there is no ~{name_of(kind_of(value))}", fix="write x::integer")
    return typed(value, "~{0}", [cast(value, kind_of(value)).tree], kind_of(value))


def _comparison(translator: Translator, node: exp.Expr) -> Typed:
    """A comparison with one value, or with the elements of an array."""
    right = node.expression
    if isinstance(node.this, exp.Tuple) and isinstance(right, exp.Tuple):
        return _rows_compared(translator, node)
    found = _quantified(translator, node, partial(comparisons.compared, comparisons.SIGNS[type(node)]))
    return found or translator.operation(node, translator(node.this), translator(right))


def _quantified(translator: Translator, node: exp.Expr, compare: Operation) -> Typed | None:
    """A comparison with the elements of an array; None for one with a value."""
    right = node.expression
    word = str(right.this).upper() if isinstance(right, exp.Anonymous) and len(right.expressions) == 1 else ""
    in_words = isinstance(right, exp.Any | exp.All)
    if not in_words and word not in ("ALL", "SOME"):
        return None
    array = right.this if in_words else right.expressions[0]
    every = isinstance(right, exp.All) or word == "ALL"
    return comparisons.quantified(compare, translator(node.this), translator(array.unnest()), every=every)


def _like(translator: Translator, node: exp.Expr) -> Typed:
    """``x LIKE y``, ``x NOT LIKE ANY(array)``: of NOT each comparison is the opposite."""
    negated = bool(node.args.get("negate"))

    def compare(left: Typed, right: Typed) -> Typed:
        made = _OF_TEXTS[type(node)](left, right)
        return made.of(exp.Not(this=bracketed(made.tree)), BOOL) if negated else made

    found = _quantified(translator, node, compare)
    return found or compare(translator(node.this), translator(node.expression))


def _rows_compared(translator: Translator, node: exp.Expr) -> Typed:
    """``(a, b) = (c, d)``: as each pair is; ``(a, b) < (c, d)``: as the first pair is that is not equal."""
    pairs = list(zip(node.this.expressions, node.expression.expressions, strict=False))
    sign = comparisons.SIGNS[type(node)]
    if len(node.this.expressions) != len(node.expression.expressions) or sign.startswith("IS"):
        raise SqlError(
            f"{node.sql(dialect=RisingWaveQueries)} compares rows", fix="rows of one length, with =, <>, <, <=, > or >="
        )
    given = [(translator(one), translator(other)) for one, other in pairs]
    if sign in ("=", "<>"):
        return _joined(" AND " if sign == "=" else " OR ", [comparisons.compared(sign, *pair) for pair in given])
    found = comparisons.compared(sign, *given[-1])
    for one, other in reversed(given[:-1]):
        goes_on = _joined(" AND ", [comparisons.compared("=", one, other), found])
        found = _joined(" OR ", [comparisons.compared(sign[0], one, other), goes_on])
    return found


def _joined(word: str, terms: Sequence[Typed]) -> Typed:
    places = word.join(f"({{{index}}})" for index in range(len(terms)))
    return typed(terms[0], places, [term.tree for term in terms], BOOL)


def _binary(translator: Translator, node: exp.Expr) -> Typed:
    return translator.operation(node, translator(node.this), translator(node.expression))


def _in(translator: Translator, node: exp.Expr) -> Typed:
    if node.args.get("query") or node.args.get("unnest") or node.args.get("field"):
        raise Unsupported(f"{node.sql(dialect=RisingWaveQueries)} is not supported", fix="join with the query")
    if isinstance(node.this, exp.Tuple) and all(isinstance(one, exp.Tuple) for one in node.expressions):
        equal = [_rows_compared(translator, exp.EQ(this=node.this, expression=one)) for one in node.expressions]
        return _joined(" OR ", equal)
    values = comparisons.comparable([translator(one) for one in (node.this, *node.expressions)])
    subject, *others = (bracketed(value.tree) for value in values)
    return values[0].of(exp.In(this=subject, expressions=others), BOOL)


def _between(translator: Translator, node: exp.Expr) -> Typed:
    value, low, high = (translator(node.args[name]) for name in ("this", "low", "high"))
    parts = [comparisons.compared(">=", value, low).tree, comparisons.compared("<=", value, high).tree]
    if node.args.get("symmetric"):
        swapped = [comparisons.compared(">=", value, high).tree, comparisons.compared("<=", value, low).tree]
        return typed(value, "({0} AND {1}) OR ({2} AND {3})", [*parts, *swapped], BOOL)
    return typed(value, "{0} AND {1}", parts, BOOL)


def _case(translator: Translator, node: exp.Expr) -> Typed:
    subject = node.args.get("this")
    branches = node.args["ifs"]
    otherwise = node.args.get("default")
    values = [translator(branch.args["true"]) for branch in branches]
    trees, kind = unified("CASE", [*values, *([] if otherwise is None else [translator(otherwise)])])
    case = exp.Case()
    for branch, tree in zip(branches, trees, strict=False):
        if subject is None:
            condition = _condition(translator, branch.this)
        else:
            condition = comparisons.compared("=", translator(subject), translator(branch.this)).tree
        case.when(condition.copy(), tree.copy(), copy=False)
    if otherwise is not None:
        case.else_(trees[-1].copy(), copy=False)
    return values[0].of(exp.Paren(this=case), kind)


def _condition(translator: Translator, node: exp.Expr) -> exp.Expr:
    value = translator(node)
    if not (value.is_boolean or value.is_null or value.literal is not None):
        raise SqlError(
            f"a condition is true or false, and {node.sql(dialect=RisingWaveQueries)} is {name_of(kind_of(value))}",
            fix="compare it with something",
        )
    return bracketed(cast(value, BOOL).tree)


def _connector(translator: Translator, node: exp.Expr) -> Typed:
    kind = type(node)
    sides = [_condition(translator, side) for side in (node.this, node.expression)]
    return translator(exp.Null()).of(kind(this=sides[0], expression=sides[1]), BOOL)


def _not(translator: Translator, node: exp.Expr) -> Typed:
    return translator(exp.Null()).of(exp.Not(this=_condition(translator, node.this)), BOOL)


def _is(translator: Translator, node: exp.Expr) -> Typed:
    value = translator(node.this)
    if isinstance(node.expression, exp.JSON):
        return json.is_document(value, str(node.expression.this or "VALUE").upper())
    if not isinstance(node.expression, exp.Null | exp.Boolean):
        raise Unsupported(f"{node.sql(dialect=RisingWaveQueries)} is not supported", fix="IS NULL, IS TRUE, IS FALSE")
    translator.note_read(node.expression)
    tree: exp.Expr = exp.Is(this=bracketed(value.tree), expression=node.expression.copy())
    if node.args.get("negate"):
        tree = exp.Not(this=exp.Paren(this=tree))
    return value.of(tree, BOOL)


def _call(name: str, *parts: str) -> Visit:
    """A form with words, as a call over the parts that are there."""

    def visit(translator: Translator, node: exp.Expr) -> Typed:
        given = [node.args.get(part) for part in parts]
        return translator.call(name, [translator(one) for one in given if one is not None])

    return visit


def _trim(translator: Translator, node: exp.Expr) -> Typed:
    side = str(node.args.get("position") or "BOTH").upper()
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(side, "btrim")
    given = [node.this, node.args.get("expression")]
    return translator.call(name, [translator(one) for one in given if one is not None])


def _interval(translator: Translator, node: exp.Expr) -> Typed:
    unit = node.args.get("unit")
    return intervals.literal(translator(exp.Null()), str(node.this.this), "" if unit is None else unit.name)


def _extract(translator: Translator, node: exp.Expr) -> Typed:
    field = exp.Literal.string(node.this.name.lower())
    return translator.call("extract", [translator(field), translator(node.expression)])


def _bracket(translator: Translator, node: exp.Expr) -> Typed:
    [index] = node.expressions
    value = translator(node.this)
    if value.is_map:
        return translator.call("map_access", [value, translator(index)])
    if isinstance(index, exp.Slice):
        low, high = (
            translator(one) if one is not None else translator(exp.Null()) for one in (index.this, index.expression)
        )
        return translator.call("array_slice", [value, low, high])
    return translator.call("array_element", [value, translator(index)])


def _var_map(translator: Translator, node: exp.Expr) -> Typed:
    """``MAP {key: value, ..}``"""
    keys, items = ([translator(one) for one in node.args[part].expressions] for part in ("keys", "values"))
    return maps.written(keys, items)


def _dot(translator: Translator, node: exp.Expr) -> Typed:
    """``(row).field``"""
    value = translator(node.this)
    if not value.is_struct:
        raise SqlError(
            f"a {name_of(kind_of(value))} has no fields", where=translator.environment.place, fix="(row).field"
        )
    name = node.expression.name
    translator.note_read(node.expression)
    names = [value.type.field(index).name for index in range(value.type.num_fields)]
    if name not in names:
        raise SqlError(
            f'there is no field "{name}"', where=translator.environment.place, fix=f"one of {', '.join(names)}"
        )
    return typed(value, "struct_extract({0}, {1})", [value.tree, exp.Literal.string(name)], value.type.field(name).type)


def _row(translator: Translator, node: exp.Expr) -> Typed:
    """``(a, b)``, to be compared with another."""
    return _of_fields(translator, {f"f{place}": one for place, one in enumerate(node.expressions, start=1)})


def _struct(translator: Translator, node: exp.Expr) -> Typed:
    """A row whose fields have names: that of ``t.*``."""
    return _of_fields(translator, {one.this.name: one.expression for one in node.expressions})


def _of_fields(translator: Translator, written: Mapping[str, exp.Expr]) -> Typed:
    values = {name: translator.kept(translator(one)) for name, one in written.items()}
    parts = [
        exp.PropertyEQ(this=exp.to_identifier(name, quoted=True), expression=value.tree)
        for name, value in values.items()
    ]
    row = exp.Struct(expressions=parts)
    if not any(value.known_type == JSON for value in values.values()):
        return translator.known(row)
    # The engine does not tell documents from other texts.
    kinds = {name: INT if value.is_null else kind_of(value) for name, value in values.items()}
    return translator.known(row, pa.struct(list(kinds.items())))


def _volatile(name: str) -> Visit:
    return lambda translator, node: translator(exp.Anonymous(this=name))


def _escape(translator: Translator, node: exp.Expr) -> Typed:
    liked, sign = node.this, str(node.expression.this)
    translator.note_read(node.expression)
    result = comparisons.liked(
        translator(liked.this), translator(liked.expression), fold=isinstance(liked, exp.ILike), escape=sign
    )
    return result.of(exp.Not(this=result.tree), BOOL) if liked.args.get("negate") else result


def _hex(translator: Translator, node: exp.Expr) -> Typed:
    raise Unsupported(
        "bit strings are not supported", where=translator.environment.place, fix=f"'\\x{node.this}'::bytea"
    )


_OF_BYTES = ("C", "POSIX", "ucs_basic")


def _collate(translator: Translator, node: exp.Expr) -> Typed:
    """Texts are compared by their bytes, as in these collations and in no other."""
    place, name = translator.environment.place, node.expression.name
    if name not in _OF_BYTES:
        raise Unsupported(
            f'texts are compared by their bytes, not as in "{name}"', where=place, fix='COLLATE "C", or none'
        )
    value = translator(node.this)
    if not (is_unknown(value) or kind_of(value) == TEXT):
        raise SqlError(f"a collation is of texts, not of {name_of(kind_of(value))}", where=place, fix="leave it out")
    return value if is_unknown(value) else cast(value, TEXT)


_VISITS: Mapping[type[exp.Expr], Visit] = {
    **COMMON,
    **dict.fromkeys(comparisons.SIGNS, _comparison),
    **dict.fromkeys(_OF_POSTGRES, _binary),
    exp.Like: _like,
    exp.ILike: _like,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Neg: _neg,
    exp.BitwiseNot: _bitwise_not,
    exp.In: _in,
    exp.Between: _between,
    exp.Case: _case,
    exp.And: _connector,
    exp.Or: _connector,
    exp.Not: _not,
    exp.Is: _is,
    exp.Trim: _trim,
    exp.Substring: _call("substring", "this", "start", "length"),
    exp.StrPosition: _call("strpos", "this", "substr"),
    exp.Overlay: _call("overlay", "this", "expression", "from_", "for_"),
    exp.AtTimeZone: _call("timezone", "zone", "this"),
    exp.StartsWith: _call("starts_with", "this", "expression"),
    exp.Sqrt: _call("sqrt", "this"),
    exp.Cbrt: _call("cbrt", "this"),
    exp.Interval: _interval,
    exp.Extract: _extract,
    exp.Bracket: _bracket,
    exp.VarMap: _var_map,
    exp.Dot: _dot,
    exp.Tuple: _row,
    exp.Struct: _struct,
    exp.Escape: _escape,
    exp.HexString: _hex,
    exp.BitString: _hex,
    exp.Collate: _collate,
    exp.CurrentTimestamp: _volatile("current_timestamp"),
    exp.CurrentDate: _volatile("current_date"),
    exp.CurrentTime: _volatile("current_time"),
    exp.Localtimestamp: _volatile("localtimestamp"),
    exp.Localtime: _volatile("localtime"),
}
