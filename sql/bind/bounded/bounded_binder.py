"""Queries over rows that are all there, as plans of the nodes that streaming queries are made of.

A stream is its content, ``x`` and ``table(x)`` are the same. The rows have an order and a last one, so ORDER BY, LIMIT
and any window function are allowed, and a subquery stays where it stands: DuckDB unnests it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.dead_letter import is_dead_letter_topic
from dovetail.changelog.errors import SqlError, UnknownName, Unsupported
from dovetail.changelog.schema import EVENT_TIME_TYPE, TIME, Column, StreamSchema
from dovetail.sql.bind.bound import Bound
from dovetail.sql.bind.bounded.bounded_expressions import BoundedExpressions
from dovetail.sql.bind.clauses import event_time, is_process_time, moment_of, order_by_names, refuse_match_condition
from dovetail.sql.bind.from_clause.array_join import PREFIX, array_joined, is_array_join
from dovetail.sql.bind.from_clause.from_item import FromItem
from dovetail.sql.bind.from_clause.join_method import kind_of
from dovetail.sql.bind.from_clause.joined import joined
from dovetail.sql.bind.from_clause.keyed_changelog import ChangelogCall, keyed_content
from dovetail.sql.bind.from_clause.laterals import applied, is_lateral
from dovetail.sql.bind.named_columns import named_as
from dovetail.sql.bind.ordered import in_order_of_names, rows_wanted
from dovetail.sql.bind.partitions.first_rows import (
    is_distinct_on,
    is_with_ties,
    limit_by,
    number_first_of_each,
    number_first_rows,
    spell_out_windows,
)
from dovetail.sql.bind.query_binder import QueryBinder, bare
from dovetail.sql.bind.scope import Scope, place_of
from dovetail.sql.bind.select_clauses import SelectClauses
from dovetail.sql.bind.set_operations import combined_rows, name_of, parts_of, united
from dovetail.sql.bind.written.qualifiers import is_cte
from dovetail.sql.compile.duckdb import select_of
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.expressions.written_values import has_value
from dovetail.sql.functions.kept_values import seen_as
from dovetail.sql.past import FIX, ComputedMoment, Moment, Past, changes_schema, moment_of_number, moment_of_text
from dovetail.sql.plan.nodes import Content, Shared, ValueRows
from dovetail.sql.relations import HasRows, Stream
from dovetail.sql.syntax.calls import dotted_name, function_name
from dovetail.sql.syntax.risingwave import RisingWaveQueries
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import CreateDictionary, CreateStream, CreateView
from dovetail.sql.syntax.types import display
from dovetail.sql.system_tables import DATABASE, DEAD_LETTERS, SYSTEM_TABLES, listed_by


@dataclass
class BoundedBinder(QueryBinder):
    """``read``: the relations that it reads, with what each holds.

    past     those of them that it reads as they were
    seen     each CTE, by its identity, and those that it sees itself
    defined  each CTE that is read, bound once
    """

    read: dict[str, pa.Schema] = field(default_factory=dict)
    past: dict[str, Past] = field(default_factory=dict)
    seen: dict[int, tuple[exp.Query, Mapping[str, exp.Query]]] = field(default_factory=dict)
    defined: dict[int, tuple[exp.Query, Shared, Sequence[str]]] = field(default_factory=dict)

    def bind(self, query: exp.Query) -> Bound:
        within = self._within(query)
        if isinstance(query, exp.Subquery):
            order_by_names(query)
            return in_order_of_names(query, within.bind(query.this), self._alias)
        if isinstance(query, exp.SetOperation):
            return within.combined(query)
        if not isinstance(query, exp.Select):
            raise Unsupported(f"{type(query).__name__} is not supported over table(x)", fix="SELECT .. FROM table(x)")
        select = query.copy()
        spell_out_windows(select)
        if is_distinct_on(select):
            number_first_of_each(select)
        elif limit_by(select) or is_with_ties(select):
            number_first_rows(select)
        rows_wanted(select)
        return within.of_select(select)

    def combined(self, written: exp.SetOperation) -> Bound:
        """UNION, INTERSECT or EXCEPT; ORDER BY and LIMIT behind the last SELECT are of all the rows."""
        query = written.copy()
        last = query.expression
        for key in ("order", "limit", "offset"):
            if (clause := last.args.get(key)) is not None and not isinstance(last, exp.Subquery):
                last.set(key, None)
                query.set(key, clause)
        order_by_names(query)
        parts = [self.bind(part) for part in parts_of(query)]
        made = combined_rows(query, parts, self._alias(name_of(query).lower()), self.dialect.rules, bounded=True)
        return in_order_of_names(query, made, self._alias)

    def of_select(self, select: exp.Select) -> Bound:
        """``select``, its own CTEs apart."""
        expressions = self._expressions
        source = select.args.get("from_") or select.args.get("from")
        if source is None:
            one = ValueRows(pa.schema([]), ((),))
            item = FromItem(one, Scope((), self.dialect))
        else:
            item = self._from(source.this, seeks=False)
            for join in select.args.get("joins") or ():
                item = self._join(item, join, seeks=False)
        item = replace(item, scope=replace(item.scope, outer=self.outer))
        return SelectClauses(select, expressions, self.dialect, self._alias).over(item)

    def _subquery(self, query: exp.Query, scope: Scope) -> tuple[exp.Select, list[pa.DataType]]:
        bound = replace(self, outer=scope).bind(query)
        columns = [(f"{place}.{name}", expr) for place, (name, expr) in enumerate(bound.columns)]
        return select_of(bound.node, columns), [seen_as(expr) for _, expr in columns]

    # -- FROM --

    def _own_ctes(self, query: exp.Query) -> dict[str, exp.Query]:
        """Each sees those before it, and those around: also one of its own name."""
        own = super()._own_ctes(query)
        ctes = dict(self.ctes)
        for name, written in own.items():
            self.seen[id(written)] = written, dict(ctes)
            ctes[name] = written
        return own

    def _aside(self) -> Self:
        return replace(super()._aside(), read={}, past={}, defined={})

    def _cte(self, name: str, alias: str) -> FromItem:
        """A CTE is one, however often it is read."""
        query = self.ctes[name]
        if id(query) not in self.defined:
            others = {other: one for other, one in self.ctes.items() if other != name}
            _, around = self.seen.get(id(query), (query, others))
            bound = replace(self, ctes=around, outer=None).bind(query)
            columns = named_as(query, bound.columns)
            item = self._renamed(bound.node, columns, self._alias(f"with {name}"))
            shared = Shared(item.node, self._alias(f"with {name}"))
            self.defined[id(query)] = query, shared, [column for column, _ in columns]
        _, shared, names = self.defined[id(query)]
        columns = [(own, shared.column(internal)) for own, internal in zip(names, shared.schema.names, strict=True)]
        return self._renamed(shared, columns, self._alias(alias))

    def _values(self, table: exp.Expr, values: exp.Values) -> FromItem:
        """``(VALUES (1, 'a'), ..) AS v(k, name)``"""
        nothing, place = Scope((), self.dialect), place_of(table, "VALUES")
        rows = [[_out_of_brackets(value) for value in row.expressions] for row in values.expressions]
        if len({len(row) for row in rows}) > 1:
            raise SqlError("the rows of VALUES have different lengths", where=place, fix="as many values in each row")
        expressions = self._expressions

        def bound(value: exp.Expr) -> Expr:
            return Expr.over(expressions.value(value, nothing, "VALUES"), pa.schema([]), place)

        found = [[bound(value) for value in row] for row in rows]
        if self.dialect.rules is Rules.RISINGWAVE:
            found = _texts_as_beside(rows, found, bound, place)
        kinds = [value.type for value in found[0]]
        for row in found[1:]:
            kinds = [united(kind, value.type, "VALUES", place) for kind, value in zip(kinds, row, strict=True)]
        alias = self._alias(table.alias or "values")
        names = [f"column{number}" for number in range(1, len(kinds) + 1)]
        fields = pa.schema([pa.field(f"{alias}.{name}", kind) for name, kind in zip(names, kinds, strict=True)])
        return FromItem.of(ValueRows(fields, tuple(map(tuple, found))), alias, names, self.dialect)

    def _item(self, table: exp.Expr, seeks: bool) -> FromItem:
        version = table.args.get("version")
        return super()._item(table, seeks) if version is None else self._as_of(table, version.expression)

    def _function(self, table: exp.Expr, seeks: bool) -> FromItem:
        if function_name(table.this) == "changes":
            return self._changes(table)
        return super()._function(table, seeks)

    def _as_of(self, table: exp.Expr, moment: exp.Expr) -> FromItem:
        """``table(x) AS OF moment``, or ``x FOR SYSTEM_TIME AS OF moment``"""
        place, call = place_of(table, "AS OF"), table.this
        named = call.expressions[0] if function_name(call) == "table" and call.expressions else table
        stream = self._with_history(table, named, place)
        past = Past(stream.schema.name, self._moment(moment, place))
        schema = content_schema(stream.schema)
        return self._of_past(past, stream.schema, schema, table.alias or named.name, _hidden(stream, schema))

    def _changes(self, table: exp.Expr) -> FromItem:
        """``changes(x, since)``, up to now, or ``changes(x, since, until)``"""
        place, arguments = place_of(table, "changes()"), table.this.expressions
        if len(arguments) not in (2, 3):
            raise SqlError(
                "changes() takes a stream or view, the moment from which on, and that up to which",
                where=place,
                fix="FROM changes(v, '2026-11-24', '2026-11-25'); without the last, up to now",
            )
        named, *moments = arguments
        stream = self._with_history(table, named, place)
        since, *until = (self._moment(moment, place) for moment in moments)
        past = Past(stream.schema.name, until[0] if until else None, since)
        return self._of_past(past, stream.schema, changes_schema(stream.schema), table.alias or named.name)

    def _of_past(
        self, past: Past, stream: StreamSchema, schema: pa.Schema, alias: str, hidden: Sequence[str] = ()
    ) -> FromItem:
        self.past[str(past)] = past
        return self._content(str(past), schema, alias, hidden, declared=stream.columns)

    def _with_history(self, table: exp.Expr, named: exp.Expr, place: str) -> Stream:
        """The stream or materialized view of that name."""
        plain = isinstance(named, exp.Column) or isinstance(named.this, exp.Identifier)
        if plain and not is_dead_letter_topic(dotted_name(named)):
            cte = isinstance(named, exp.Table) and is_cte(named, self.ctes)
            definition = None if cte else self._definition(table, named.name)
            if isinstance(definition, CreateStream):
                return Stream.declared(definition)
            if isinstance(definition, CreateView) and definition.materialized:
                return self.view(definition)
        raise Unsupported(
            f"{named.name or named.sql()} has no topic that would say how it was",
            where=place,
            fix="a stream or a materialized view by its name: FROM table(v) AS OF '2026-11-24 10:00:00'",
        )

    def _moment(self, written: exp.Expr, place: str) -> Moment:
        literal = written.unnest()
        if isinstance(literal, exp.Literal):
            text = str(literal.this)
            return moment_of_text(text, place) if literal.is_string else moment_of_number(float(text))
        expressions = self._expressions
        value = Expr.over(expressions.value(written, Scope((), self.dialect), "AS OF"), pa.schema([]), place)
        if not (pa.types.is_timestamp(value.type) or pa.types.is_date(value.type)):
            raise SqlError(f"{written.sql()} is no moment", where=place, fix=FIX)
        return ComputedMoment(value.text, written.sql())

    def _of_system(self, table: exp.Expr) -> FromItem:
        name = f"{DATABASE}.{table.name}"
        schema = SYSTEM_TABLES.get(name)
        if schema is None:
            raise UnknownName(f'there is no "{name}"', where=place_of(table, "FROM"), fix=listed_by(name))
        return self._content(name, schema, table.alias or table.name)

    def _dead_letters(self, table: exp.Expr, topic: str, alias: str) -> FromItem:
        return self._content(topic, DEAD_LETTERS, alias)

    def _relation(self, table: exp.Expr, definition: HasRows, alias: str, seeks: bool) -> FromItem:
        if isinstance(definition, CreateDictionary):
            fields = [pa.field(column.name, column.type) for column in definition.columns]
            return self._content(definition.name, pa.schema(fields), alias)
        assert isinstance(definition, CreateStream | CreateView)
        stream = Stream.declared(definition) if isinstance(definition, CreateStream) else self.view(definition)
        schema = content_schema(stream.schema)
        key = definition.schema.primary_key if isinstance(definition, CreateStream) else ()
        hidden, declared = _hidden(stream, schema), stream.schema.columns
        return self._content(definition.name, schema, alias, hidden, key, declared)

    def _content(
        self,
        relation: str,
        schema: pa.Schema,
        alias: str,
        hidden: Sequence[str] = (),
        key: Sequence[str] | None = None,
        declared: tuple[Column, ...] = (),
    ) -> FromItem:
        self.read[relation] = schema
        alias = self._alias(alias)
        columns = tuple((f"{alias}.{name}", name) for name in schema.names)
        fields = pa.schema([pa.field(internal, schema.field(name).type) for internal, name in columns])
        internal_key = None if key is None else tuple(f"{alias}.{name}" for name in key)
        node = Content(alias, relation, columns, fields, internal_key, declared)
        starred = [name for name in schema.names if name not in hidden]
        return FromItem.of(node, alias, starred, self.dialect, hidden)

    @property
    def _expressions(self) -> BoundedExpressions:
        return BoundedExpressions(self._subquery)

    def _table(self, table: exp.Expr) -> FromItem:
        """A name in ``table(..)`` is none of a CTE."""
        return replace(self, ctes={}).named(table, table.this.expressions[0], seeks=False)

    def _changelog(self, table: exp.Expr, place: str) -> FromItem:
        call, named = ChangelogCall.of(table.this), table.this.expressions[0]
        item = self._table(exp.Table(this=named)) if call.of_content else self.named(table, named, seeks=False)
        return keyed_content(item, call, place)

    # -- JOIN --

    def _join(self, left: FromItem, join: exp.Join, seeks: bool) -> FromItem:
        expressions = self._expressions
        left = replace(left, scope=replace(left.scope, outer=self.outer))
        if is_array_join(join):
            return array_joined(join, left, self._alias(PREFIX), expressions)
        _refuse_join(join)
        if is_lateral(join):
            return self._lateral(left, join, expressions)
        written = join.this
        if moment_of(written) is not None:
            join = join.copy()
            join.set("this", bare(written))
        right = self._from(bare(written) if is_process_time(written) else written, seeks)
        right = replace(right, scope=replace(right.scope, outer=self.outer))
        return joined(join, left, right, self.settings, expressions)

    def _lateral(self, left: FromItem, join: exp.Join, expressions: BoundedExpressions) -> FromItem:
        item, on = join.this, join.args.get("on")
        right = self.derived(item.this.this, self._alias(item.alias or "lateral"), left.scope).named(item)
        terms: tuple[Expr, ...] = ()
        if on is not None:
            known = left.scope.seen_with(pa.schema([*left.node.schema, *right.node.schema]))
            tree = expressions.on(on, left.scope, right.scope)
            terms = (Expr.over(tree, known, place_of(on, "JOIN .. ON")).held_as(pa.bool_()),)
        return applied(kind_of(join), join, left, right, terms)


def _hidden(stream: Stream, schema: pa.Schema) -> list[str]:
    """The columns of its content that * leaves out."""
    declared = {column.name for column in stream.schema.readable}
    return [name for name in schema.names if name not in declared and not (name == TIME and stream.timed)]


def content_schema(stream: StreamSchema) -> pa.Schema:
    """What a table of the content of a stream has: its columns, and ``_tp_time``."""
    fields = [pa.field(column.name, column.type) for column in stream.readable]
    if TIME not in {column.name for column in stream.columns}:
        fields.append(pa.field(TIME, EVENT_TIME_TYPE))
    return pa.schema(fields)


def _texts_as_beside(
    rows: Sequence[Sequence[exp.Expr]],
    found: Sequence[Sequence[Expr]],
    bound: Callable[[exp.Expr], Expr],
    place: str,
) -> list[list[Expr]]:
    """The values with each text in quotes read as what stands in its column in other rows, as in PostgreSQL."""
    columns: list[list[Expr]] = []
    for written, values in zip(zip(*rows, strict=True), zip(*found, strict=True), strict=True):
        kind, form = pa.null(), ""
        for one, value in zip(written, values, strict=True):
            if not (_is_text(one) or isinstance(one, exp.Null)):
                kind, form = united(kind, value.type, "VALUES", place), form or value.form
        word = "" if pa.types.is_null(kind) else form or _castable(kind)
        columns.append(
            [
                _read_as(word, one, bound) if word and _is_text(one) else value
                for one, value in zip(written, values, strict=True)
            ]
        )
    return [list(row) for row in zip(*columns, strict=True)]


def _is_text(written: exp.Expr) -> bool:
    return isinstance(written, exp.Literal) and bool(written.is_string)


def _read_as(word: str, written: exp.Expr, bound: Callable[[exp.Expr], Expr]) -> Expr:
    """A text as a value of the type that is called so. Raises SqlError where it is none."""
    kind = exp.DataType.build(word, dialect=RisingWaveQueries)
    value = bound(exp.Cast(this=written.copy(), to=kind))
    if not has_value(value.tree):
        what = f"{written.sql()} is not a valid {kind.sql(dialect='postgres').lower()}, the type of its column"
        raise SqlError(what, where="VALUES", fix="give the values of a column one type, with CAST(x AS type)")
    return value


def _castable(kind: pa.DataType) -> str:
    """The name of a type that texts are read as; '' for a row or a map, which have no text, and for arrays of
    decimals, which have no type in common with those of other digits.
    """
    if pa.types.is_decimal(kind):
        # Its digits are those of the other values, and not of the text.
        return "numeric"
    if pa.types.is_list(kind):
        inner = "" if pa.types.is_decimal(kind.value_type) else _castable(kind.value_type)
        return inner and f"{inner}[]"
    return "" if pa.types.is_nested(kind) else display(kind, Rules.RISINGWAVE)


def _out_of_brackets(value: exp.Expr) -> exp.Expr:
    """Also out of those that sqlglot puts around the values of ClickHouse's VALUES."""
    value = value.unnest()
    return value.expressions[0] if isinstance(value, exp.Tuple) and len(value.expressions) == 1 else value


def _refuse_join(join: exp.Join) -> None:
    """What has no meaning for rows that are there all at once."""
    method, side, kind = (str(word).upper() for word in (join.method, join.side, join.kind))
    place = place_of(join, "JOIN")
    if method in ("LATEST", "ANY"):
        raise Unsupported(f"{method} JOIN over table(x) is not supported", where=place, fix="ASOF JOIN")
    refuse_match_condition(join, place)
    if event_time(join.this) is not None and moment_of(join.this) is None:
        raise Unsupported(
            "FOR SYSTEM_TIME AS OF the time of a row is not supported over table(x), where every row is read as of one "
            "moment",
            where=place,
            fix="ASOF JOIN with a stream that keeps every version as a row",
        )
    if side == "RIGHT" and (method == "ASOF" or kind in ("SEMI", "ANTI")):
        raise Unsupported(
            f"RIGHT {method or kind} JOIN over table(x) is not supported",
            where=place,
            fix=f"turn the sides: LEFT {method or kind} JOIN",
        )
