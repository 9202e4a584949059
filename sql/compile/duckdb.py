"""A plan as one SELECT of DuckDB, over tables that hold what its relations hold now.

Each node is a query over those of its inputs, whose columns have their internal names there too; DuckDB makes one
again of what is nested so. Columns are unique in the whole query: where a subquery names one of the query around it,
no other is meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import singledispatch

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import InternalError, Unsupported
from dovetail.joins.aggregates.aggregation import Aggregation, Fold
from dovetail.joins.dataflow.ports import JoinKind, Pad, SetKind
from dovetail.joins.partitions.ordering import SortKey
from dovetail.sql.compile.duckdb_times import held, in_windows, of_sessions
from dovetail.sql.expressions import engine
from dovetail.sql.expressions.expression import Expr, columns_read
from dovetail.sql.expressions.predicates import conjunction
from dovetail.sql.functions.aggregate_calls import exact
from dovetail.sql.functions.timeplus.arrays import default_of
from dovetail.sql.functions.typed import filled
from dovetail.sql.plan.joins import Apply, UnresolvedJoin
from dovetail.sql.plan.joins.unresolved_join import JoinSyntax
from dovetail.sql.plan.maps import identity
from dovetail.sql.plan.nodes import (
    Aggregate,
    ArrayJoin,
    Content,
    Join,
    Keyed,
    LookupJoin,
    LookupTable,
    Map,
    Node,
    Over,
    Scan,
    Sessions,
    SetOperation,
    Shared,
    Sorted,
    Static,
    StaticJoin,
    TopN,
    UnionAll,
    ValueRows,
    Window,
)
from dovetail.sql.plan.properties import origin_node

_ARRIVED = "#arrived"
_MATCHED = "#matched"
_LISTS = "lists"
"""The key in the metadata of a query that lists columns, of which those are left that something else names."""


def select_of(node: Node, columns: Sequence[tuple[str, Expr]]) -> exp.Select:
    """The query for the output ``columns`` over the rows of ``node``."""
    select = _mapped(rows_of(node), columns, node.schema)
    definitions = dict(_definitions(node))
    if definitions:
        ctes = [exp.CTE(this=query, alias=exp.TableAlias(this=_name(name))) for name, query in definitions.items()]
        select.set("with_", exp.With(expressions=ctes))
    return select


def text_of(select: exp.Select) -> str:
    """Its SQL, without the columns of relations that nothing in it names."""
    select = select.copy()
    # What is above names what is below.
    for listing in [part for part in select.find_all(exp.Select) if part.meta.get(_LISTS)]:
        own = {id(column) for item in listing.expressions for column in item.find_all(exp.Column)}
        named = {column.name for column in select.find_all(exp.Column) if id(column) not in own}
        kept = [item for item in listing.expressions if item.alias in named]
        listing.set("expressions", kept or listing.expressions[:1])
    return engine.text(select)


_ONE_ROW = exp.Select(expressions=[exp.Null()])
"""A row without columns."""


@singledispatch
def rows_of(node: Node) -> exp.Select:
    """The rows of a node, with the columns of its schema."""
    raise InternalError(f"no query of a batch for {type(node).__name__}")


# -- leaves --


@rows_of.register
def _scan(node: Scan) -> exp.Select:
    rows = _read(node.stream.name, node.columns)
    if node.rekeyed:
        version = [SortKey(node.internal(node.stream.version), descending=True)] if node.stream.version else []
        rows = _last_of(rows, [node.internal(name) for name in node.stream.primary_key], version)
    return rows if node.where is None else _where(rows, node.where.tree.copy())


@rows_of.register
def _content(node: Content) -> exp.Select:
    return _read(node.relation, node.columns)


@rows_of.register
def _lookup_table(node: LookupTable) -> exp.Select:
    return _read(node.name, node.columns)


@rows_of.register
def _static(node: Static) -> exp.Select:
    items = [_column(name) for name in node.schema.names]
    return exp.Select(expressions=items or [exp.Star()]).from_(_item(engine.parsed(node.sql)), copy=False)


@rows_of.register
def _values(node: ValueRows) -> exp.Select:
    if not node.fields.names:
        return _ONE_ROW.copy()
    rows = [exp.Tuple(expressions=[value.tree.copy() for value in row]) for row in node.rows]
    alias = exp.TableAlias(this=_name("values"), columns=[_name(name) for name in node.fields.names])
    return _every(exp.Values(expressions=rows, alias=alias))


def _read(relation: str, columns: Iterable[tuple[str, str]]) -> exp.Select:
    items = [exp.alias_(_column(declared), _name(internal)) for internal, declared in columns]
    rows = exp.Select(expressions=items).from_(exp.Table(this=_name(relation)), copy=False)
    rows.meta[_LISTS] = True
    return rows


# -- row by row --


@rows_of.register
def _map(node: Map) -> exp.Select:
    rows = rows_of(node.input)
    if node.where is not None:
        rows = _where(rows, node.where.tree.copy())
    kept = identity(node.input)
    if not kept or node.columns[: len(kept)] != kept:
        return _mapped(rows, node.columns, node.input.schema)
    added = [exp.alias_(_value(expr, node.input.schema), _name(name)) for name, expr in node.columns[len(kept) :]]
    return _with(rows, added) if added else rows


def _mapped(rows: exp.Select, columns: Sequence[tuple[str, Expr]], schema: pa.Schema) -> exp.Select:
    if rows == _ONE_ROW:
        # A SELECT without FROM is over one row.
        made = exp.Select()
    elif rows.args.get("order") and all(expr.plain is not None for _, expr in columns):
        # Rows are in an order where it is asked for last: the columns stand in the same query, so what it has renamed
        # goes by what is below.
        made = rows.copy()
        below = {item.alias: item.this for item in made.expressions if isinstance(item, exp.Alias)}
        plain = ((name, below.get(str(expr.plain), _value(expr, schema)).copy()) for name, expr in columns)
        made.set("expressions", [exp.alias_(value, _name(name)) for name, value in plain] or [exp.Null()])
        return made
    else:
        made = _over(rows)
    items = [exp.alias_(_value(expr, schema), _name(name)) for name, expr in columns]
    made.set("expressions", items or [exp.Null()])
    return made


@rows_of.register
def _shared(node: Shared) -> exp.Select:
    return _every(exp.Table(this=_name(node.name)))


@rows_of.register
def _window(node: Window) -> exp.Select:
    return in_windows(node, rows_of(node.input))


@rows_of.register
def _array_join(node: ArrayJoin) -> exp.Select:
    """DuckDB pads shorter arrays with NULL, as it should be."""
    arrays = [_value(array, node.input.schema) for _, array in node.arrays]
    if node.left:
        none = exp.and_(*(exp.Paren(this=filled("coalesce(len({0}), 0) = 0", [array])) for array in arrays))
        padding = [_padding(node.pad, array.type) for _, array in node.arrays]
        arrays = [_either(none, one, array) for one, array in zip(padding, arrays, strict=True)]
    elements = (filled("unnest({0})", [array]) for array in arrays)
    added = [exp.alias_(element, _name(name)) for name, element in zip(node.elements, elements, strict=True)]
    return _with(rows_of(node.input), added)


def _padding(pad: Pad, kind: pa.DataType) -> exp.Expr:
    """One element in the place of none."""
    default = None if pad is Pad.NULL else _default(kind.value_type)
    return filled("[NULL]", []) if default is None else _cast(exp.Array(expressions=[default]), kind)


def _default(kind: pa.DataType) -> exp.Expr | None:
    text = "''" if pa.types.is_binary(kind) else default_of(kind)
    return None if text is None else filled(text, [])


# -- joins --


@rows_of.register
def _join(node: Join) -> exp.Select:
    if isinstance(node.method, Apply):
        return _applied(node, node.method)
    assert isinstance(node.method, UnresolvedJoin), "a plan is printed before its joins have a method"
    right = rows_of(node.right)
    if node.method.syntax is JoinSyntax.ASOF:
        return _asof(node, right)
    if node.method.syntax not in (JoinSyntax.ALL, JoinSyntax.PROCESS_TIME):
        raise Unsupported(
            f"{node.method.syntax} depends on the order of arrival, or on versions, which a batch does not have",
            where=node.place,
            fix="ASOF JOIN",
        )
    return _joined(node, rows_of(node.left), right, node.on)


@rows_of.register
def _static_join(node: StaticJoin) -> exp.Select:
    return _joined(node, rows_of(node.input), rows_of(node.static), node.on)


@rows_of.register
def _lookup_join(node: LookupJoin) -> exp.Select:
    return _joined(node, rows_of(node.input), rows_of(node.table), node.on)


def _joined(
    node: Join | StaticJoin | LookupJoin, left: exp.Select, right: exp.Select, on: Sequence[Expr], method: str = ""
) -> exp.Select:
    kind = node.kind
    if kind is JoinKind.MARK:
        return _marked(left, right, on, node.mark)
    padded = node.pad is Pad.DEFAULT and kind in (JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL)
    if padded:
        note = [[exp.alias_(exp.true(), _name(f"{_MATCHED}{place}"))] for place in range(2)]
        left, right = _with(left, note[0]), _with(right, note[1])
    side, word = ("", kind.value.upper()) if kind.is_existence or kind is JoinKind.INNER else (kind.value.upper(), "")
    made = _every(_item(left))
    join = exp.Join(this=_item(right), side=side, kind=word, method=method, on=_condition(on))
    made.set("joins", [join])
    return _with_defaults(node, made) if padded else made


def _either(condition: exp.Expr, value: exp.Expr, other: exp.Expr) -> exp.Expr:
    return filled("CASE WHEN {0} THEN {1} ELSE {2} END", [condition, value, other])


def _condition(on: Sequence[Expr]) -> exp.Expr:
    whole = conjunction(list(on))
    return exp.true() if whole is None else whole.tree.copy()


def _with_defaults(node: Join | StaticJoin | LookupJoin, rows: exp.Select) -> exp.Select:
    """A column of the side that has no row is the default of its type."""
    items: list[exp.Expr] = []
    for place, side in enumerate(node.inputs):
        for field in side.schema:
            default, value = _default(field.type), _column(field.name)
            if default is not None:
                value = _either(_column(f"{_MATCHED}{place}"), value, default)
            items.append(exp.alias_(value, _name(field.name)))
    made = exp.Select(expressions=items).from_(_item(rows), copy=False)
    made.meta[_LISTS] = True
    return made


def _marked(left: exp.Select, right: exp.Select, on: Sequence[Expr], mark: str) -> exp.Select:
    return _with(left, [exp.alias_(_exists(right, on), _name(mark))])


def _exists(rows: exp.Select, on: Sequence[Expr]) -> exp.Exists:
    return exp.Exists(this=_where(rows, _condition(on)) if on else rows)


def _applied(node: Join, method: Apply) -> exp.Select:
    """The right side is asked for each row of the left: a subquery that names columns of it."""
    left, right = rows_of(node.left), rows_of(node.right)
    if method.single:
        (value,) = node.right.schema.names
        return _with(left, [exp.alias_(exp.Subquery(this=right), _name(value))])
    if node.kind is JoinKind.MARK:
        return _marked(left, right, node.on, node.mark)
    if node.kind.is_existence:
        exists = _exists(right, node.on)
        condition = exists if node.kind is JoinKind.SEMI else exp.Not(this=exists)
        return _where(left, condition)
    made = _every(_item(left))
    side = "LEFT" if node.kind is JoinKind.LEFT else ""
    made.set("joins", [exp.Join(this=exp.Lateral(this=_item(right)), side=side, on=_condition(node.on))])
    return made


def _asof(node: Join, right: exp.Select) -> exp.Select:
    """DuckDB takes each comparison of two columns for the inequality of ASOF, of which there may be one."""
    compared = [term for term in node.on if isinstance(term.tree.unnest(), exp.LT | exp.LTE | exp.GT | exp.GTE)]
    plain = [term for term in compared if all(isinstance(side, exp.Column) for side in _sides(term))]
    chosen = plain if len(plain) == 1 else compared
    on = [_tested(term) if term in compared and term not in chosen else term for term in node.on]
    equalities = [term for term in node.on if isinstance(term.tree.unnest(), exp.EQ)]
    own = [_side_of(term, node.right) for term in (*equalities, *chosen)]
    key = _key(node.right)
    if key is not None and len(chosen) == 1 and None not in own:
        order = [SortKey(name) for name in key]
        right = _last_of(right, [side for side in own if side is not None], order)
    return _joined(node, rows_of(node.left), right, on, method="ASOF")


def _sides(term: Expr) -> tuple[exp.Expr, exp.Expr]:
    """Of a comparison."""
    tree = term.tree.unnest()
    return tree.args["this"], tree.args["expression"]


def _tested(term: Expr) -> Expr:
    return Expr.condition(exp.Is(this=exp.Paren(this=term.tree.copy()), expression=exp.true()))


def _side_of(term: Expr, right: Node) -> exp.Expr | None:
    """The side of a comparison that reads columns of ``right`` alone."""
    names = set(right.schema.names)
    found = [side for side in _sides(term) if columns_read(side) and names.issuperset(columns_read(side))]
    return found[0] if len(found) == 1 else None


def _key(node: Node) -> tuple[str, ...] | None:
    """Of rows that have an order, that of their relation, the columns that no two of them share; None of others."""
    source, key = origin_node(node), None
    if isinstance(source, Content):
        key = source.key
    elif isinstance(source, Scan):
        key = () if source.trusted else tuple(source.internal(name) for name in source.stream.primary_key)
    return key if key is not None and set(key) <= set(node.schema.names) else None


def _last_of(rows: exp.Select, by: Sequence[exp.Expr | str], order: Sequence[SortKey]) -> exp.Select:
    """Of the rows that agree in ``by`` the first in ``order``, and of several that which came last."""
    keys = [_column(one) if isinstance(one, str) else one.copy() for one in by]
    numbered = _with(rows, [exp.alias_(exp.Window(this=exp.RowNumber()), _name(_ARRIVED))])
    made = exp.Select(expressions=[exp.Star(except_=[_name(_ARRIVED)])]).from_(_item(numbered), copy=False)
    terms = [*_terms(order), exp.Ordered(this=_column(_ARRIVED), desc=True)]
    window = exp.Window(this=exp.RowNumber(), partition_by=keys, order=exp.Order(expressions=terms))
    made.set("qualify", exp.Qualify(this=exp.EQ(this=window, expression=exp.Literal.number(1))))
    return made


# -- rows that are taken together --


@rows_of.register
def _keyed(node: Keyed) -> exp.Select:
    """What is upserted already is its content."""
    rows = rows_of(node.input)
    return rows if node.input.upserts is not None else _last_of(rows, node.primary_key, [])


@rows_of.register
def _sessions(node: Sessions) -> exp.Select:
    return of_sessions(node, rows_of(node.input))


@rows_of.register
def _aggregate(node: Aggregate) -> exp.Select:
    folded = [(one.name, _folded(one)) for one in node.aggregations]
    made = exp.Select(expressions=[_column(name) for name in node.by])
    for name, call in (*folded, *((name, call.tree.copy()) for name, call in node.recomputed)):
        made.select(exp.alias_(call, _name(name)), copy=False)
    if not made.expressions:
        made.select(exp.Count(this=exp.Star()), copy=False)
    made.from_(_item(rows_of(node.input)), copy=False)
    return made.group_by(*(_column(name) for name in node.by), copy=False) if node.by else made


_CALLS: dict[Fold, type[exp.AggFunc]] = {
    Fold.COUNT: exp.Count,
    Fold.SUM: exp.Sum,
    Fold.AVG: exp.Avg,
    Fold.MIN: exp.Min,
    Fold.MAX: exp.Max,
}


def _folded(of: Aggregation) -> exp.Expr:
    argument: exp.Expr = _column(of.argument) if of.argument else exp.Star()
    call = _CALLS[of.fold](this=exp.Distinct(expressions=[argument]) if of.distinct else argument)
    return exact(call, of.type, of.fold.value, "")


@rows_of.register
def _over_partitions(node: Over) -> exp.Select:
    calls = [exp.alias_(_partitioned(call.tree, node.by), _name(name)) for name, call in node.calls]
    return _with(rows_of(node.input), calls)


def _partitioned(tree: exp.Expr, by: Sequence[str]) -> exp.Expr:
    def replaced(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Window):
            part.set("partition_by", [_column(name) for name in by])
        return part

    return tree.copy().transform(replaced)


@rows_of.register
def _top_n(node: TopN) -> exp.Select:
    window = exp.Window(
        this=exp.Anonymous(this=node.rank.value),
        partition_by=[_column(name) for name in node.by],
        order=exp.Order(expressions=_terms(node.order)) if node.order else None,
    )
    number = [exp.alias_(window.copy(), _name(node.number))] if node.number else []
    rows = _with(rows_of(node.input), number)
    bounds = [exp.Literal.number(bound) for bound in (node.first, node.last)]
    rows.set("qualify", exp.Qualify(this=exp.Between(this=window, low=bounds[0], high=bounds[1])))
    return rows


@rows_of.register
def _sorted(node: Sorted) -> exp.Select:
    made = _every(_item(rows_of(node.input)))
    if node.order:
        made.set("order", exp.Order(expressions=_terms(node.order)))
    if node.limit is not None:
        made.limit(node.limit, copy=False)
    return made.offset(node.offset, copy=False) if node.offset else made


@rows_of.register
def _union_all(node: UnionAll) -> exp.Select:
    united: exp.Query = _part(node.parts[0], node.fields)
    for part in node.parts[1:]:
        united = exp.Union(this=united, expression=_part(part, node.fields), distinct=False)
    return _every(exp.Subquery(this=united))


_OPERATIONS: dict[SetKind, type[exp.SetOperation]] = {
    SetKind.INTERSECT: exp.Intersect,
    SetKind.INTERSECT_ALL: exp.Intersect,
    SetKind.EXCEPT: exp.Except,
    SetKind.EXCEPT_ALL: exp.Except,
}


@rows_of.register
def _set_operation(node: SetOperation) -> exp.Select:
    left, right = (_part(side, node.fields) for side in node.inputs)
    made = _OPERATIONS[node.kind](this=left, expression=right, distinct=node.kind.distinct)
    return _every(exp.Subquery(this=made))


def _part(node: Node, fields: pa.Schema) -> exp.Select:
    """The rows of a part, in the order of the columns of all."""
    items = [_column(name) for name in fields.names]
    return exp.Select(expressions=items).from_(_item(rows_of(node)), copy=False)


# -- parts --


def _terms(order: Iterable[SortKey]) -> list[exp.Expr]:
    return [exp.Ordered(this=_column(key.column), desc=key.descending, nulls_first=key.nulls_first) for key in order]


def _definitions(node: Node) -> Iterable[tuple[str, exp.Select]]:
    """What is defined once and read in several places, each after those that it reads."""
    for below in node.inputs:
        yield from _definitions(below)
    if isinstance(node, Shared):
        yield node.name, rows_of(node.input)


_FURTHER = ("group", "having", "qualify", "distinct", "order", "limit", "offset", "with_")


def _over(rows: exp.Select) -> exp.Select:
    """A query over ``rows``, its select list yet to come: of rows as they stand in FROM and WHERE the same one."""
    plain = len(rows.expressions) == 1 and isinstance(rows.expressions[0], exp.Star) and not rows.expressions[0].args
    if plain and not any(rows.args.get(clause) for clause in _FURTHER):
        made = rows.copy()
        made.set("expressions", [])
        return made
    return exp.Select().from_(_item(rows), copy=False)


def _where(rows: exp.Select, condition: exp.Expr) -> exp.Select:
    made = _over(rows)
    made.set("expressions", [exp.Star()])
    return made.where(condition, copy=False)


def _every(item: exp.Expr) -> exp.Select:
    return exp.Select(expressions=[exp.Star()]).from_(item, copy=False)


def _item(rows: exp.Expr) -> exp.Subquery:
    return exp.Subquery(this=rows)


def _value(expr: Expr, schema: pa.Schema) -> exp.Expr:
    """The value in its type, which the engine may have another one for. What reads a row around is as it is."""
    tree, kind = expr.tree.copy(), expr.type
    if pa.types.is_null(kind) or not set(expr.columns) <= set(schema.names):
        return tree
    own = Expr.over(expr.tree, schema).type
    finer = pa.types.is_timestamp(own) and pa.types.is_timestamp(kind) and own.tz == kind.tz
    value = tree if own == kind or finer else _cast(tree, kind)
    return value if expr.plain is not None else held(value, kind)


def _cast(tree: exp.Expr, kind: pa.DataType) -> exp.Expr:
    return filled(f"CAST({{0}} AS {engine.type_name(kind)})", [tree])


def _with(rows: exp.Select, items: Sequence[exp.Expr]) -> exp.Select:
    """``rows``, with ``items`` beside."""
    return exp.Select(expressions=[exp.Star(), *items]).from_(_item(rows), copy=False)


def _name(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)


def _column(name: str) -> exp.Expr:
    return exp.column(_name(name))
