"""Names to columns: a SELECT becomes a tree of plan nodes and a list of output expressions.

Each FROM item names its columns ``<alias>.<column>``; expressions are typed trees over these names from here on. A
subquery, CTE or plain view is bound where it stands, its columns renamed under its own alias. What is not supported is
refused here, with the clause and the nearest thing that works.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from sqlglot import exp

from changelog.errors import UnknownName, Unsupported
from changelog.schema import SEQUENCE, TIME, Kind
from joins.dataflow.ports import JoinKind, Pad
from sql.bind.aggregates import (
    Groups,
    distinct,
    group_keys,
    having_terms,
    is_grouped,
    refuse_lookups_of_aggregates,
    without_aliases,
)
from sql.bind.bounded.snapshot import snapshot_of
from sql.bind.clauses import event_time, refuse_clauses, refuse_join_method, refuse_lookup, refuse_table
from sql.bind.from_clause.array_join import PREFIX, array_joined, is_array_join
from sql.bind.from_clause.brackets import every_column, join_in_brackets, values_of
from sql.bind.from_clause.comma_joins import in_written_order, linked
from sql.bind.from_clause.from_item import FromItem
from sql.bind.from_clause.join_method import as_written, kind_of, refuse_method, terms_of, using_names
from sql.bind.from_clause.windows import WindowCall, windowed
from sql.bind.lookup.lookups import Lookups
from sql.bind.named_columns import as_cte, columns_of_alias, named_as, with_names
from sql.bind.projection import is_delta, selected
from sql.bind.reading import reading
from sql.bind.resolve import resolved, resolved_condition, resolved_on
from sql.bind.scope import Scope, place_of
from sql.bind.static import is_dictionary, is_static
from sql.expressions.evaluate import quoted
from sql.expressions.expression import Expr, coalesce, equality
from sql.expressions.predicates import conjunction, conjuncts
from sql.functions.dialects import TIMEPLUS
from sql.functions.translate import Dialect
from sql.plan.column_names import output_names, unused
from sql.plan.joins import AsWritten
from sql.plan.maps import identity
from sql.plan.nodes import Join, LookupJoin, LookupTable, Map, Node, Scan, Static, StaticJoin, column_of
from sql.plan.properties import rules_of
from sql.query_settings import QuerySettings, seek_offsets
from sql.relations import Relations, Stream
from sql.syntax.calls import WINDOWS, function_name
from sql.syntax.rules import Rules
from sql.syntax.statements import CreateDictionary, CreateIndex, CreateStream, CreateView
from sql.system_tables import DATABASE, SYSTEM_TABLES
from sql.watermarks import as_set


@dataclass(frozen=True)
class Bound:
    """A bound query: its rows, its output columns over them, and whether it asks for ``_tp_delta``."""

    node: Node
    columns: tuple[tuple[str, Expr], ...]
    marked: bool


@dataclass
class Binder:
    """Binds one query; ``view`` tells the stream that a materialized view writes."""

    catalog: Relations
    settings: QuerySettings
    view: Callable[[CreateView], Stream]
    ctes: Mapping[str, exp.Query] = field(default_factory=dict)
    aliases: set[str] = field(default_factory=set)
    dialect: Dialect = TIMEPLUS

    def bind(self, query: exp.Query, texts: Sequence[str] = ()) -> Bound:
        """``texts``: the select list as it is written, for the names of expressions."""
        select = refuse_clauses(query)
        own = {cte.alias: with_names(cte.this, columns_of_alias(cte)) for cte in select.ctes}
        ctes = {**self.ctes, **own}
        return replace(self, ctes=ctes).of_select(select, texts)

    def of_select(self, select: exp.Select, texts: Sequence[str]) -> Bound:
        """``select``, its own CTEs apart."""
        source = select.args.get("from_") or select.args.get("from")
        if source is None:
            raise Unsupported(
                "a query without FROM has no stream to read", fix="SELECT .. FROM a stream, or FROM table(x)"
            )
        from_item = self._joined_items(select)
        for clause in (select.args.get("prewhere"), select.args.get("where")):
            if clause is not None:
                from_item = self._where(from_item, without_aliases(clause.this, select, from_item.scope))
        bound = (
            self._grouped(select, from_item, texts) if is_grouped(select) else self._selected(select, from_item, texts)
        )
        return self._distinct(select, bound)

    # -- FROM --

    def _joined_items(self, written: exp.Select) -> FromItem:
        """FROM with its joins."""
        select, seeks = linked(written, self._shown), _filters_time(written)
        from_item = self._from(select.args["from_"].this, seeks)
        for join in select.args.get("joins") or ():
            from_item = self._join(from_item, join, seeks)
        return from_item if select is written else replace(from_item, scope=in_written_order(from_item.scope, written))

    def _shown(self, table: exp.Expr) -> tuple[Scope, bool]:
        """As ``shown``, by a binder of its own: the aliases are not taken yet."""
        return replace(self, aliases=set()).shown(table)

    def shown(self, table: exp.Expr) -> tuple[Scope, bool]:
        """The columns of a FROM item, and whether it emits rows."""
        item = self._right(table, seeks=False)
        return item.scope, not isinstance(item.node, LookupTable)

    def _in_brackets(self, table: exp.Expr, inner: exp.Expr, seeks: bool) -> FromItem:
        """A join in brackets: its names are those of its sides, unless it has an alias."""
        if table.alias:
            return self.derived(every_column(inner), self._alias(table.alias))
        first = inner.copy()
        first.set("joins", None)
        from_item = self._from(first, seeks)
        for join in inner.args.get("joins") or ():
            from_item = self._join(from_item, join, seeks)
        return from_item

    def _from(self, table: exp.Expr, seeks: bool) -> FromItem:
        """An item of FROM that emits rows."""
        return self._item(table, seeks).named(table)

    def _item(self, table: exp.Expr, seeks: bool) -> FromItem:
        """``table``, its columns by their own names."""
        inner = join_in_brackets(table)
        if inner is not None:
            return self._in_brackets(table, inner, seeks)
        refuse_table(table)
        if isinstance(table, exp.Subquery):
            return self.derived(table.this, self._alias(table.alias or "subquery"))
        if (values := values_of(table)) is not None:
            rows = exp.Values(expressions=[row.copy() for row in values.expressions])
            every = exp.Select(expressions=[exp.Star()]).from_(rows)
            return self._static(every, self._alias(table.alias or "values"))
        name = table.name
        if table.text("db") == DATABASE:
            raise Unsupported(
                f'"{DATABASE}.{name}" emits no rows', where=place_of(table, "FROM"), fix="ask it in a query of its own"
            )
        if isinstance(table.this, exp.Anonymous):
            return self._function(table, seeks)
        alias = table.alias or name
        if name in self.ctes:
            without_itself = {other: query for other, query in self.ctes.items() if other != name}
            return replace(self, ctes=without_itself).derived(self.ctes[name], self._alias(alias))
        definition = self._definition(table, name)
        if isinstance(definition, CreateView) and not definition.materialized:
            query, dialect = reading(definition, self.catalog)
            item = replace(self, ctes={}, dialect=dialect).derived(query, self._alias(alias))
            return replace(item, scope=replace(item.scope, dialect=self.dialect))
        return self._scan(self._stream(definition, table), self._alias(alias), seeks)

    @property
    def _lookups(self) -> Lookups:
        return Lookups(self.catalog, self.settings, self._stream, self._alias)

    def _alias(self, alias: str) -> str:
        """The alias, made unique over the whole query: internal names begin with it."""
        taken = unused(alias, self.aliases)
        self.aliases.add(taken)
        return taken

    def _definition(self, table: exp.Expr, name: str) -> CreateStream | CreateView | CreateDictionary | CreateIndex:
        try:
            return self.catalog.get(name).definition
        except UnknownName as fault:
            raise UnknownName(fault.what, where=place_of(table, "FROM"), fix=fault.fix) from None

    def _stream(
        self, definition: CreateStream | CreateView | CreateDictionary | CreateIndex, table: exp.Expr
    ) -> Stream:
        match definition:
            case CreateStream():
                return Stream.declared(definition)
            case CreateView():
                return self.view(definition)
        place = place_of(table, "FROM")
        if isinstance(definition, CreateDictionary):
            raise Unsupported(
                f'"{definition.name}" is looked up and emits no rows, so it cannot be on the left of a join',
                where=place,
                fix=f"FROM stream JOIN {definition.name} ON stream.x = {definition.name}.key",
            )
        raise Unsupported(
            f'"{definition.name}" is an index: it is joined by lookup only',
            where=place,
            fix=f"JOIN {definition.name} FOR SYSTEM_TIME AS OF PROCTIME() ON .., or FROM {definition.stream}",
        )

    def _function(self, table: exp.Expr, seeks: bool) -> FromItem:
        call = table.this
        name, place = function_name(call), place_of(table, "FROM")
        if name == "table":
            return self._table(table, place)
        if name == "changelog":
            return self._changelog(table, place)
        if name in WINDOWS:
            return self._windowed(table, seeks)
        raise Unsupported(
            f"{name}() in FROM is not supported in this release",
            where=place,
            fix="FROM stream, table(stream), changelog(stream, key), or TUMBLE and HOP",
        )

    def _windowed(self, table: exp.Expr, seeks: bool) -> FromItem:
        call = WindowCall.of(table)
        alias = table.alias or call.name
        if function_name(call.source.this) == "table":
            query = exp.Select(expressions=[exp.Star()]).from_(exp.Table(this=table.this.copy()))
            return self._static(query, self._alias(alias))
        source = call.source.copy()
        source.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))
        return windowed(call, self._from(source, seeks))

    def _table(self, table: exp.Expr, place: str) -> FromItem:
        alias = self._alias(table.alias or table.this.expressions[0].name)
        bare = exp.Table(this=table.this.copy())
        query = exp.Select(expressions=[exp.Star()]).from_(bare)
        return self._static(query, alias)

    def _static(self, query: exp.Query, alias: str) -> FromItem:
        """A FROM item all of whose relations are ``table(x)``."""
        found = snapshot_of(query, self.catalog, self.view, self.dialect)
        for name in found.relations:
            if name in SYSTEM_TABLES or is_dictionary(name, self.catalog):
                raise Unsupported(
                    f'"{name}" cannot be read as a whole in a streaming query',
                    where="in FROM",
                    fix=f"JOIN {name} itself: ON stream.x = {name}.key; further conditions may follow",
                )
        select = ", ".join(f"{quoted(name)} AS {quoted(f'{alias}.{name}')}" for name in found.columns)
        schema = pa.schema([pa.field(f"{alias}.{name}", kind) for name, kind in found.columns.items()])
        node = Static(alias, found.relations, f"SELECT {select} FROM ({found.sql})", schema)
        return FromItem.of(node, alias, list(found.columns), self.dialect)

    def _changelog(self, table: exp.Expr, place: str) -> FromItem:
        name, *keys = [argument.name for argument in table.this.expressions]
        definition = self._definition(table, name)
        stream = self._stream(definition, table)
        if stream.schema.kind != Kind.APPEND:
            raise Unsupported(f'"{name}" is a changelog already', where=place, fix=f"write FROM {name}")
        if not keys:
            raise Unsupported(
                f"changelog({name}) needs the columns of its key", where=place, fix=f"changelog({name}, key)"
            )
        declared = {column.name for column in stream.schema.columns}
        for key in keys:
            if key not in declared:
                raise UnknownName(
                    f'"{name}" has no column "{key}"', where=place, fix=f"there are: {', '.join(sorted(declared))}"
                )
        schema = replace(stream.schema, kind=Kind.UPSERT, primary_key=tuple(keys))
        return self._scan(replace(stream, schema=schema), self._alias(table.alias or name), seeks=False)

    def _scan(self, stream: Stream, alias: str, seeks: bool) -> FromItem:
        stream = replace(stream, watermark=as_set(stream.watermark, self.settings))
        declared = [column.name for column in stream.schema.columns]
        reserved = [name for name in (TIME, SEQUENCE) if name not in declared]
        columns = tuple((f"{alias}.{name}", name) for name in declared + reserved)
        scan = Scan(
            alias,
            stream.schema,
            stream.topic,
            stream.rules,
            columns,
            trusted=stream.trusted,
            watermark=stream.watermark if stream.schema.kind == Kind.APPEND else None,
            stated=stream.watermark,
        )
        node = self._started(scan, seeks)
        starred = [*declared, TIME] if stream.timed and TIME not in declared else declared
        return FromItem.of(node, alias, starred, self.dialect, hidden=reserved)

    def _started(self, scan: Scan, seeks: bool) -> Scan:
        """Where reading begins: append streams of Timeplus rules have no history unless it is asked for."""
        if scan.stream.kind != Kind.APPEND or scan.rules != Rules.TIMEPLUS or scan.trusted:
            return scan
        seek = self.settings.text("seek_to")
        if seek in ("", "latest"):
            return replace(scan, latest=not seeks or seek == "latest")
        return replace(scan, seek=seek_offsets(seek))

    def derived(self, query: exp.Query, alias: str) -> FromItem:
        """A subquery, CTE or plain view under its alias."""
        if is_static(query, self.ctes, self.catalog):
            return self._static(_with_ctes(query, self.ctes), alias)
        bound = self.bind(query)
        columns = named_as(query, bound.columns)
        renamed = tuple((f"{alias}.{name}", expr) for name, expr in columns)
        return FromItem.of(Map(bound.node, renamed), alias, [name for name, _ in columns], self.dialect)

    # -- JOIN --

    def _join(self, left: FromItem, join: exp.Join, seeks: bool) -> FromItem:
        if is_array_join(join):
            return array_joined(join, left, self._alias(PREFIX))
        place = place_of(join, "JOIN")
        refuse_join_method(join, place)
        right = self._right(join.this, seeks)
        if isinstance(right.node, LookupTable):
            refuse_lookup(join, place)
        left.scope.refuse_aliases_of(right.scope, place)
        kind = kind_of(join)
        if kind in (JoinKind.SEMI, JoinKind.ANTI) and join.side.upper() == "RIGHT":
            left, right = right, left
        scope = left.scope + right.scope
        using = using_names(join, left.scope, right.scope)
        trees = [
            equality(column_of(left.node, first), column_of(right.node, second))
            for first, second in left.scope.halves(right.scope, using)
        ]
        conditions, modifiers = terms_of(on) if (on := join.args.get("on")) is not None else ([], [])
        for term in conditions:
            trees += conjuncts(resolved_on(term, scope, left.scope, right.scope))
        schema = pa.schema([*left.node.schema, *right.node.schema])
        on_place = place_of(on, "JOIN .. ON") if on is not None else place
        terms = tuple(_condition(tree, schema, on_place) for tree in trees)
        how = as_written(join, modifiers, left.scope, scope)
        node = self._joined(kind, left.node, right.node, terms, how, place)
        if kind in (JoinKind.SEMI, JoinKind.ANTI):
            scope = left.scope + right.scope.spent(f"{join.side or 'LEFT'} {kind} JOIN".upper())
        return _merged(FromItem(node, scope), left, right, using, kind)

    def _right(self, table: exp.Expr, seeks: bool) -> FromItem:
        """An item of FROM that is looked up, or emits rows."""
        looked_up = self._lookups.table(table, self.ctes)
        if looked_up is None:
            return self._from(_without_time(table), seeks)
        return FromItem.of_table(looked_up, self.dialect).named(table)

    def _joined(
        self, kind: JoinKind, left: Node, right: Node, on: tuple[Expr, ...], how: AsWritten, place: str
    ) -> Node:
        pad = Pad.NULL if self.settings["join_use_nulls"] else Pad.DEFAULT
        if isinstance(left, Static) and isinstance(right, LookupTable):
            raise Unsupported(
                "table(x) on the left of a lookup would be answered once, at the start",
                where=place,
                fix="put a stream on the left",
            )
        if isinstance(left, Static) or isinstance(right, Static):
            refuse_method(how, kind, place)
            return _static_join(kind, left, right, on, pad, place)
        if isinstance(right, LookupTable):
            refuse_method(how, kind, place)
            return LookupJoin(kind, left, right, on, pad=pad, place=place)
        if self._lookups.direct == "only":
            raise Unsupported(
                "join_algorithm = 'direct' looks up the rows of a mutable stream, a view or a dictionary, and the "
                "right side is none",
                where=place,
                fix="leave the setting out, or SETTINGS join_algorithm = 'direct, hash'",
            )
        return Join(kind, how, left, right, on, pad=pad, place=place)

    # -- WHERE and SELECT --

    def _where(self, from_item: FromItem, condition: exp.Expr) -> FromItem:
        from_item, condition = self._lookups.within(from_item, condition, "WHERE")
        trees = [resolved_condition(term, from_item.scope, "WHERE") for term in conjuncts(condition)]
        place, schema = place_of(condition, "WHERE"), from_item.node.schema
        terms = [_condition(tree, schema, place) for tree in trees]
        if isinstance(from_item.node, Static):
            raise Unsupported(
                "a filter of a view over table(x) alone is not supported",
                where="in WHERE",
                fix="filter the table itself, JOIN (SELECT .. FROM table(x) WHERE ..), or filter above the join",
            )
        return replace(from_item, node=Map(from_item.node, identity(from_item.node), conjunction(terms)))

    def _selected(self, select: exp.Select, from_item: FromItem, texts: Sequence[str]) -> Bound:
        from_item, selected = self._projected(select, from_item, texts)
        return selected.bound(from_item.node)

    def _projected(self, select: exp.Select, from_item: FromItem, texts: Sequence[str]) -> tuple[FromItem, _Selected]:
        """The select list over ``item``, with the lookups that it asks for."""
        found = _Selected()
        for position, projection in enumerate(select.expressions):
            if is_delta(projection):
                found.marked = True
                continue
            text = texts[position] if len(texts) == len(select.expressions) else ""
            for name, table, expression in selected(projection, select, from_item.scope, text):
                from_item, over_columns = self._lookups.within(from_item, expression, "SELECT")
                found.names.append((name, table))
                found.trees.append(resolved(over_columns, from_item.scope, "SELECT"))
                found.places.append(place_of(projection, "SELECT"))
        return from_item, found

    def _grouped(self, select: exp.Select, from_item: FromItem, texts: Sequence[str]) -> Bound:
        """A select list over groups: GROUP BY, or aggregates over all rows."""
        refuse_lookups_of_aggregates(select)
        keys, terms = [], []
        for key in group_keys(select, from_item.scope):
            from_item, over_columns = self._lookups.within(from_item, key, "GROUP BY")
            keys.append((resolved(over_columns, from_item.scope, "GROUP BY"), place_of(key, "GROUP BY")))
        for term in having_terms(select, from_item.scope):
            from_item, over_columns = self._lookups.within(from_item, term, "HAVING")
            terms.append((resolved_condition(over_columns, from_item.scope, "HAVING"), place_of(term, "HAVING")))
        from_item, selected = self._projected(select, from_item, texts)
        groups = Groups(from_item.node, self.dialect.rules)
        schema = from_item.node.schema
        for tree, place in keys:
            groups.add_key(Expr.over(tree, schema, place))
        selected.trees = [groups.over(tree, place) for tree, place in zip(selected.trees, selected.places, strict=True)]
        having = [groups.over(tree, place) for tree, place in terms]
        node: Node = groups.node(place_of(select, "SELECT"))
        if having:
            place = place_of(select.args["having"], "HAVING")
            conditions = [_condition(tree, node.schema, place) for tree in having]
            node = Map(node, identity(node), conjunction(conditions))
        return selected.bound(node)

    def _distinct(self, select: exp.Select, bound: Bound) -> Bound:
        if (clause := select.args.get("distinct")) is None:
            return bound
        if clause.args.get("on"):
            raise Unsupported(
                "DISTINCT ON is not supported: which of several rows stays would be left to chance",
                where=place_of(clause, "SELECT"),
                fix="SELECT k, max(v) .. GROUP BY k",
            )
        node, columns = distinct(bound.node, bound.columns, place_of(select, "SELECT"), self.dialect.rules)
        return replace(bound, node=node, columns=columns)


@dataclass
class _Selected:
    """A select list: names with their tables, expressions, and where they are written."""

    names: list[tuple[str, str]] = field(default_factory=list)
    trees: list[exp.Expr] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    marked: bool = False

    def bound(self, node: Node) -> Bound:
        schema = node.schema
        exprs = [Expr.over(tree, schema, place) for tree, place in zip(self.trees, self.places, strict=True)]
        return Bound(node, tuple(zip(output_names(self.names), exprs, strict=True)), self.marked)


def _condition(tree: exp.Expr, schema: pa.Schema, place: str) -> Expr:
    """A condition that the engine takes."""
    return Expr.over(tree, schema, place).held_as(pa.bool_())


def _filters_time(select: exp.Select) -> bool:
    """Whether WHERE says where in time to start: then history is read."""
    where = select.args.get("where")
    bounds = where.find_all(exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.EQ) if where is not None else ()
    return any(column.name == TIME for bound in bounds for column in bound.find_all(exp.Column))


def _with_ctes(query: exp.Query, ctes: Mapping[str, exp.Query]) -> exp.Query:
    """The query with the CTEs around it as its own."""
    own = {cte.alias for cte in query.ctes}
    around = [as_cte(name, other) for name, other in ctes.items() if name not in own]
    if not around:
        return query
    result = query.copy()
    result.set("with_", exp.With(expressions=[*around, *(cte.copy() for cte in query.ctes)]))
    return result


def _merged(joined: FromItem, left: FromItem, right: FromItem, names: Sequence[str], kind: JoinKind) -> FromItem:
    """USING columns once: the left one's, the right one's under RIGHT, whichever is there under FULL."""
    node, scope = joined.node, joined.scope
    computed: list[tuple[str, Expr]] = []
    columns: list[tuple[str, str, str, str]] = []
    for name, (first, second) in zip(names, left.scope.halves(right.scope, names), strict=True):
        internal = second if kind == JoinKind.RIGHT else first
        if kind == JoinKind.FULL:
            internal = f"{first}|{second}"
            whichever = coalesce(column_of(node, first), column_of(node, second))
            computed.append((internal, Expr.over(whichever, node.schema)))
        columns.append((name, first, second, internal))
    if computed:
        node = Map(node, (*identity(node), *computed))
    leads = rules_of(joined.node) == Rules.RISINGWAVE
    for name, first, second, internal in columns:
        scope = scope.merged(name, first, second, internal, leads)
    return FromItem(node, scope)


def _without_time(table: exp.Expr) -> exp.Expr:
    """The FROM item without FOR SYSTEM_TIME AS OF a time of the left row, which says how it is joined."""
    if event_time(table) is None:
        return table
    bare = table.copy()
    bare.set("version", None)
    return bare


def _static_join(kind: JoinKind, left: Node, right: Node, on: tuple[Expr, ...], pad: Pad, place: str) -> Node:
    if isinstance(left, Static) and isinstance(right, Static):
        raise Unsupported(
            "two tables are joined before a stream",
            where=place,
            fix="write the stream first: FROM stream JOIN table(a) JOIN table(b)",
        )
    if isinstance(left, Static):
        left, right = right, left
        kind = {JoinKind.LEFT: JoinKind.RIGHT, JoinKind.RIGHT: JoinKind.LEFT}.get(kind, kind)
    if kind not in (JoinKind.INNER, JoinKind.LEFT) or not isinstance(right, Static):
        raise Unsupported(
            "a stream joined with table(x) keeps the rows of the stream: those of the table without a match never "
            "become known",
            where=place,
            fix="INNER JOIN or LEFT JOIN with the stream on the left",
        )
    return StaticJoin(kind, left, right, on, pad=pad, place=place)
