"""The names of a query over ``table(x)``: looked up and translated as those of a stream, in a tree that DuckDB runs.

Anything that DuckDB can do is allowed around the expressions: ORDER BY, window functions, subqueries, UNION.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from sqlglot import exp

from changelog.errors import UnknownName, Unsupported
from changelog.schema import EVENT_TIME_TYPE, TIME
from changelog.suggest import suggestion
from sql.bind.aggregates import group_keys, without_aliases
from sql.bind.bounded.clocks import clocks
from sql.bind.bounded.snapshot_array_join import column_names, rows_of, unnested
from sql.bind.bounded.snapshot_asof import Right, as_duckdb
from sql.bind.bounded.snapshot_items import (
    Columns,
    SnapshotItem,
    column_of,
    columns_in,
    content_schema,
    hoist_order,
    in_brackets_of_its_own,
    refuse_join,
    renamed_relation,
    united,
    windows_of,
)
from sql.bind.from_clause.array_join import (
    CLAUSE,
    PREFIX,
    is_array_join,
    joined_arrays,
    with_elements,
)
from sql.bind.from_clause.brackets import every_column, join_in_brackets, values_of
from sql.bind.from_clause.join_method import terms_of, using_names
from sql.bind.from_clause.windows import END, START, WindowCall
from sql.bind.named_columns import columns_of_alias, named_as, under_alias, without_columns
from sql.bind.projection import is_delta, selected
from sql.bind.reading import reading
from sql.bind.resolve import Within, condition, typed, typed_on
from sql.bind.scope import Scope, Visible, place_of
from sql.functions.environment import KIND
from sql.functions.translate import Dialect
from sql.functions.typed import Typed
from sql.plan.column_names import output_names, unused
from sql.relations import Relations, Stream
from sql.syntax.calls import WINDOWS, function_name
from sql.syntax.statements import CreateDictionary, CreateStream, CreateView
from sql.system_tables import DATABASE, SYSTEM_TABLES

_QUERY = "subquery#"
"""The call that stands for a subquery in an expression while the rest of it is translated."""


@dataclass
class BoundedBinder:
    """Turns a query, in place, into one that DuckDB reads: relations by name, ``*`` spelled out, columns named.

    dialect   that of a query
    read      relation -> its columns, of all that are read
    """

    catalog: Relations
    view: Callable[[CreateView], Stream]
    dialect: Dialect
    read: dict[str, pa.Schema] = field(default_factory=dict)
    aliases: set[str] = field(default_factory=set)
    shown: dict[str, exp.Column] = field(default_factory=dict)
    """The internal name of a column -> how the query says it."""

    def query(
        self, query: exp.Expr, around: Mapping[str, Columns], outer: Scope | None = None, texts: Sequence[str] = ()
    ) -> Columns:
        """The columns of a query, rewritten. ``around``: the CTEs that it can read; ``outer``: the columns."""
        ctes = dict(around)
        for cte in getattr(query, "ctes", ()):
            ctes[cte.alias] = under_alias(cte, self.query(cte.this, ctes))
        if isinstance(query, exp.Subquery):
            return self.query(query.this, ctes, outer)
        if isinstance(query, exp.SetOperation):
            hoist_order(query)
            left = self.query(query.left, ctes, outer, texts)
            right = self.query(query.right, ctes, outer)
            self._order_by_names(query)
            return [(name, united(kind, other)) for (name, kind), (_, other) in zip(left, right, strict=False)]
        if not isinstance(query, exp.Select):
            raise Unsupported(f"{type(query).__name__} is not supported over table(x)", fix="SELECT .. FROM table(x)")
        query.set("settings", None)
        return _Select(self, query, ctes, outer).columns(texts)

    def _order_by_names(self, query: exp.Expr) -> None:
        for term in query.find_all(exp.Column):
            if term.find_ancestor(exp.Order) is query.args.get("order"):
                term.this.set("quoted", True)

    def item(self, table: exp.Expr, ctes: Mapping[str, Columns]) -> SnapshotItem:
        """What stands in FROM, rewritten in place: ``s AS x(p)`` is ``(SELECT x.k AS p FROM s AS x) AS x``."""
        if not columns_of_alias(table):
            return self._item(table, ctes)
        rows = exp.Select().from_(without_columns(table))
        named = exp.Subquery(this=rows)
        table.replace(named)
        own = self._item(rows.args["from_"].this, ctes)
        item = own.named(table)
        rows.set("expressions", own.under_names_of(item))
        named.set("alias", exp.TableAlias(this=exp.to_identifier(item.alias)))
        return item

    def _item(self, table: exp.Expr, ctes: Mapping[str, Columns]) -> SnapshotItem:
        """``table``, its columns by their own names."""
        if isinstance(table, exp.Subquery):
            if (inner := join_in_brackets(table)) is not None:
                table.set("this", every_column(inner))
            alias = table.alias or "subquery"
            table.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))
            return SnapshotItem(alias, self.query(table.this, ctes))
        if (values := values_of(table)) is not None:
            return self._values(table, values)
        if not isinstance(table, exp.Table):
            raise Unsupported(
                f"{type(table).__name__} in FROM is not supported", where=place_of(table, "FROM"), fix="FROM table(x)"
            )
        if table.name in ctes and not isinstance(table.this, exp.Anonymous):
            return SnapshotItem(table.alias or table.name, ctes[table.name])
        call = function_name(table.this) if isinstance(table.this, exp.Anonymous) else ""
        if call in WINDOWS:
            return self._windowed(table, ctes)
        name = table.this.expressions[0].name if call else table.name
        alias = table.alias or name
        if call not in ("table", "changelog", ""):
            raise Unsupported(
                f"{call}() in FROM is not supported over table(x)",
                where=place_of(table, "FROM"),
                fix="FROM table(stream)",
            )
        if table.db == DATABASE and not call:
            return self._system(table, alias)
        keys = [argument.name for argument in table.this.expressions[1:]] if call == "changelog" else []
        return self._relation(table, name, alias, keys)

    def _relation(self, table: exp.Table, name: str, alias: str, keys: Sequence[str]) -> SnapshotItem:
        """A relation of the catalog; ``keys`` are those of ``changelog(x, k)``."""
        definition = self.catalog.get(name).definition
        if isinstance(definition, CreateView) and not definition.materialized:
            query, dialect = reading(definition, self.catalog)
            inner = query.copy()
            columns = replace(self, dialect=dialect, aliases=set(), shown={}).query(inner, {})
            columns = named_as(query, columns)
            names = [exp.to_identifier(name, quoted=True) for name, _ in columns]
            as_alias = exp.TableAlias(this=exp.to_identifier(alias), columns=names)
            table.replace(exp.Subquery(this=inner, alias=as_alias))
            return SnapshotItem(alias, columns)
        if isinstance(definition, CreateDictionary):
            self.read[name] = pa.schema([pa.field(column.name, column.type) for column in definition.columns])
            renamed_relation(table, name, alias, [])
            return SnapshotItem(alias, columns_in(self.read[name]))
        stream = self._stream(definition, table)
        self.read[name] = content_schema(stream)
        renamed_relation(table, name, alias, keys)
        columns = columns_in(self.read[name])
        declared = {column.name for column in stream.schema.columns}
        starred = [(name, kind) for name, kind in columns if name in declared or (name == TIME and stream.timed)]
        key = definition.schema.primary_key if isinstance(definition, CreateStream) else ()
        return SnapshotItem(alias, starred, [column for column in columns if column not in starred], key)

    def _values(self, table: exp.Expr, values: exp.Values) -> SnapshotItem:
        """``(VALUES (1, 'a'), ..) AS v(k, name)``"""
        nothing = Scope((), self.dialect)
        rows = [[value.unnest() for value in row.expressions] for row in values.expressions]
        rows = [[one.expressions[0] if in_brackets_of_its_own(one) else one for one in row] for row in rows]
        found = [[typed(value, nothing, "VALUES") for value in row] for row in rows]
        values.set("expressions", [exp.Tuple(expressions=[value.tree for value in row]) for row in found])
        kinds = [value.type for value in found[0]]
        for row in found[1:]:
            kinds = [united(kind, value.type) for kind, value in zip(kinds, row, strict=True)]
        names = [f"column{number}" for number in range(1, len(kinds) + 1)]
        columns = [exp.to_identifier(name, quoted=True) for name in names]
        alias = table.alias or "values"
        table.set("alias", exp.TableAlias(this=exp.to_identifier(alias), columns=columns))
        return SnapshotItem(alias, list(zip(names, kinds, strict=True)))

    def _windowed(self, table: exp.Table, ctes: Mapping[str, Columns]) -> SnapshotItem:
        """TUMBLE and HOP: as ``sql.transforms.window_step`` has them."""
        call = WindowCall.of(table)
        alias = table.alias or call.name
        rows = exp.Select(expressions=[exp.Star()]).from_(call.source.copy())
        source = self.item(rows.args["from_"].this, ctes)
        windows = windows_of(rows, call)
        table.replace(exp.Subquery(this=windows, alias=exp.TableAlias(this=exp.to_identifier(alias))))
        kind = dict((*source.columns, *source.hidden)).get(call.time.name, EVENT_TIME_TYPE)
        return replace(source, alias=alias, columns=[*source.columns, (START, kind), (END, kind)])

    def _system(self, table: exp.Table, alias: str) -> SnapshotItem:
        name = f"{DATABASE}.{table.name}"
        schema = SYSTEM_TABLES.get(name)
        if schema is None:
            raise UnknownName(
                f'there is no "{name}"', where=place_of(table, "FROM"), fix=suggestion(name, SYSTEM_TABLES)
            )
        self.read[name] = schema
        renamed_relation(table, name, alias, [])
        return SnapshotItem(alias, columns_in(schema))

    def _stream(self, definition: object, table: exp.Expr) -> Stream:
        if isinstance(definition, CreateStream):
            return Stream.declared(definition)
        if isinstance(definition, CreateView):
            return self.view(definition)
        raise Unsupported(
            f"{table.sql()} has no rows to read here",
            where=place_of(table, "FROM"),
            fix="table(x) of a stream or a view",
        )

    def alias(self, wanted: str) -> str:
        """What the internal names of an item begin with."""
        alias = unused(wanted, self.aliases)
        self.aliases.add(alias)
        return alias

    def scope(self, item: SnapshotItem) -> Scope:
        """The columns of a FROM item, under internal names that no other item of the query has."""
        alias, visible = self.alias(item.alias), []
        for starred, columns in ((True, item.columns), (False, item.hidden)):
            for name, kind in columns:
                internal = f"{alias}.{name}"
                self.shown[internal] = column_of(name, item.alias)
                visible.append(Visible(item.alias, name, internal, kind, starred=starred))
        return Scope(tuple(visible), self.dialect)


@dataclass
class _Select:
    """One SELECT, rewritten clause by clause."""

    binder: BoundedBinder
    select: exp.Select
    ctes: Mapping[str, Columns]
    outer: Scope | None
    inner: list[tuple[exp.Expr, pa.DataType]] = field(default_factory=list)
    """The subqueries of its expressions, each with the type of its value."""

    def columns(self, texts: Sequence[str]) -> Columns:
        scope = replace(self._from(), outer=self.outer)
        select = self.select
        for key in ("where", "having", "qualify"):
            if (clause := select.args.get(key)) is not None:
                clause.set("this", self._condition(without_aliases(clause.this, select, scope), scope, key.upper()))
        group, order, distinct = (select.args.get(key) for key in ("group", "order", "distinct"))
        keys = [] if group is None else self._group(group, scope)
        terms = [] if order is None else [self._ordered(term.this, scope) for term in order.expressions]
        if distinct is not None and (on := distinct.args.get("on")) is not None:
            on.set("expressions", [self._tree(one, scope, "DISTINCT ON") for one in on.expressions])
        columns = self._projected(scope, texts)
        for term, tree in zip(order.expressions if order is not None else (), terms, strict=True):
            term.set("this", tree)
        if keys and group is not None:
            group.set("expressions", keys)
        return columns

    def _from(self) -> Scope:
        source = self.select.args.get("from_") or self.select.args.get("from")
        if source is None:
            return Scope((), self.binder.dialect)
        scope, items = self._source(source.this)
        return self._joined(self.select, scope, items)

    def _source(self, table: exp.Expr) -> tuple[Scope, list[SnapshotItem]]:
        """A FROM item; in brackets a join, whose names are those of its parts."""
        inner = join_in_brackets(table)
        if inner is None or table.alias:
            item = self.binder.item(table, self.ctes)
            return self.binder.scope(item), [item]
        joins = inner.args.get("joins")
        inner.set("joins", None)
        scope, items = self._source(inner)
        # The item may be another one now, which stands in the place of the written one.
        first = table.this
        if joins:
            first.set("joins", joins)
        else:
            table.replace(first)
        return self._joined(first, scope, items), items

    def _joined(self, holder: exp.Expr, scope: Scope, items: list[SnapshotItem]) -> Scope:
        for join in tuple(holder.args.get("joins") or ()):
            if is_array_join(join):
                scope = self._array_joined(join, scope, items)
                continue
            refuse_join(join)
            right, beside = self._source(join.this)
            scope.refuse_aliases_of(right, place_of(join, "JOIN"))
            scope = self._join(join, scope, right, items, beside)
            items += beside
        return scope

    def _array_joined(self, join: exp.Join, scope: Scope, items: list[SnapshotItem]) -> Scope:
        """As ``sql.transforms.array_join_step`` has it. What stands before it is one item from here on."""
        found, prefix = joined_arrays(join, scope), self.binder.alias(PREFIX)
        values = [self._typed(one.expression, scope, CLAUSE) for one in found]
        elements = [one.element(prefix, value.type) for one, value in zip(found, values, strict=True)]
        trees = unnested([(self._shown(value.tree), value.type) for value in values], left=join.side == "LEFT")
        names, alias = column_names(scope), f"#{prefix}"
        columns = [exp.alias_(self.binder.shown[one].copy(), name, quoted=True) for one, name in names.items()]
        named = [(element.internal, tree) for element, tree in zip(elements, trees, strict=True)]
        rows_of(self.select, join, [*columns, *(exp.alias_(tree, name, quoted=True) for name, tree in named)], alias)
        for internal, name in (*names.items(), *((name, name) for name, _ in named)):
            self.binder.shown[internal] = column_of(name, alias)
        items[:] = [SnapshotItem(alias, [(name, scope.types[internal]) for internal, name in names.items()])]
        return with_elements(scope, found, elements)

    def _join(
        self, join: exp.Join, left: Scope, right: Scope, items: Sequence[SnapshotItem], beside: Sequence[SnapshotItem]
    ) -> Scope:
        names = using_names(join, left, right)
        if join.method.upper() == "NATURAL":
            join.set("method", None)
        pairs, both = left.halves(right, names), left + right
        if (on := join.args.get("on")) is not None:
            conditions, _ = terms_of(on)
            joined = exp.Paren(this=exp.and_(*conditions))
            within = self._within(joined, both)
            found = typed_on(joined.this, self._outside(both), left, right, within)
            join.set("on", self._shown(found.tree))
        if names:
            join.set(
                "using", [exp.to_identifier(left.find(exp.column(name), "USING").name, quoted=True) for name in names]
            )
        if join.method.upper() == "ASOF":
            known = {name for one in items for name, _ in (*one.columns, *one.hidden)}
            as_duckdb(join, known, _right_of(beside))
        if join.kind.upper() in ("SEMI", "ANTI"):
            return left + right.spent(f"{join.side or 'LEFT'} {join.kind} JOIN".upper())
        for name, (first, second) in zip(names, pairs, strict=True):
            merged = f"{first}|{second}"
            self.binder.shown[merged] = column_of(name)
            both = both.merged(name, first, second, merged, self.binder.dialect.merged_first)
        return both

    def _outside(self, scope: Scope) -> Scope:
        return replace(scope, outer=self.outer)

    # -- expressions --

    def _within(self, expression: exp.Expr, scope: Scope) -> Within:
        """Takes the subqueries out of an expression, in place; the call that stands for one gives it back."""
        for node in list(expression.walk(prune=lambda node: isinstance(node, exp.Query | exp.Exists))):
            if isinstance(node, exp.Exists):
                self._set_apart(node, node.this, scope, pa.bool_())
            elif isinstance(node, exp.Query):
                self._set_apart(node, node, scope, None)
        special = clocks()
        special[_QUERY] = lambda translate, call: self._given_back(translate.environment.ask, call)
        return Within(special, bounded=True)

    def _set_apart(self, node: exp.Expr, query: exp.Expr, scope: Scope, kind: pa.DataType | None) -> None:
        columns = self.binder.query(query, self.ctes, self._outside(scope))
        stands = exp.Anonymous(this=_QUERY, expressions=[exp.Literal.number(len(self.inner))])
        node.replace(stands)
        self.inner.append((node, kind or columns[0][1]))

    def _given_back(self, ask: Callable[[exp.Expr], pa.DataType], call: exp.Expr) -> Typed:
        node, kind = self.inner[int(str(call.expressions[0].this))]
        node.meta[KIND] = kind
        return Typed(node, ask, kind)

    def _typed(self, expression: exp.Expr, scope: Scope, clause: str) -> Typed:
        alone = exp.Paren(this=expression.copy())
        within = self._within(alone, scope)
        return typed(alone.this, self._outside(scope), clause, within)

    def _tree(self, expression: exp.Expr, scope: Scope, clause: str) -> exp.Expr:
        return self._shown(self._typed(expression, scope, clause).tree)

    def _condition(self, expression: exp.Expr, scope: Scope, clause: str) -> exp.Expr:
        alone = exp.Paren(this=expression.copy())
        within = self._within(alone, scope)
        return self._shown(condition(alone.this, self._outside(scope), clause, within))

    def _shown(self, tree: exp.Expr) -> exp.Expr:
        """The tree with columns as the query says them."""

        def replaced(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Column) and not node.table and node.name in self.binder.shown:
                return self.binder.shown[node.name].copy()
            return node

        return tree.copy().transform(replaced)

    def _group(self, group: exp.Expr, scope: Scope) -> list[exp.Expr]:
        if group.args.get("all"):
            return []
        for key in ("rollup", "cube", "grouping_sets"):
            for part in group.args.get(key) or ():
                if isinstance(part, exp.Expr):
                    for column in list(part.find_all(exp.Column)):
                        column.replace(self._tree(column, scope, "GROUP BY"))
        if not group.expressions:
            return []
        plain = self.select.copy()
        plain.set("group", exp.Group(expressions=[one.copy() for one in group.expressions]))
        return [self._tree(key, scope, "GROUP BY") for key in group_keys(plain, scope)]

    def _ordered(self, term: exp.Expr, scope: Scope) -> exp.Expr:
        """A position, a name of the select list, or an expression."""
        if isinstance(term, exp.Literal):
            return term
        names = {item.alias.casefold(): item.alias for item in self.select.expressions if item.alias}
        if isinstance(term, exp.Column) and not term.table and term.name.casefold() in names:
            return column_of(names[term.name.casefold()])
        return self._tree(without_aliases(term, self.select, scope), scope, "ORDER BY")

    def _projected(self, scope: Scope, texts: Sequence[str]) -> Columns:
        """Replaces the select list by one in which every column has its name."""
        listed = self.select.expressions
        found: list[tuple[str, str, Typed]] = []
        for position, projection in enumerate(listed):
            if is_delta(projection) and not scope.has(projection.name):
                continue
            text = texts[position] if len(texts) == len(listed) else ""
            for name, table, expression in selected(projection, self.select, scope, text):
                found.append((name, table, self._typed(expression, scope, "SELECT")))
        names = output_names([(name, table) for name, table, _ in found])
        self.select.set(
            "expressions",
            [
                exp.alias_(self._shown(value.tree), name, quoted=True)
                for name, (_, _, value) in zip(names, found, strict=True)
            ],
        )
        return [(name, value.type) for name, (_, _, value) in zip(names, found, strict=True)]


def _right_of(items: Sequence[SnapshotItem]) -> Right | None:
    """The right side of a join, if it is one item whose rows have an order."""
    if len(items) != 1 or items[0].key is None:
        return None
    return Right(items[0].alias, [name for name, _ in items[0].columns], items[0].key)
