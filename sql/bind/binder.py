"""Names to columns: a SELECT becomes a tree of plan nodes and a list of output expressions.

Each FROM item names its columns ``<alias>.<column>``; expressions are typed trees over these names from here on. A
subquery, CTE or plain view is bound where it stands, its columns renamed under its own alias. What is not supported is
refused here, with the clause and the nearest thing that works.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.dead_letter import is_letters
from dovetail.changelog.errors import UnknownName, Unsupported
from dovetail.joins.dataflow.lookup import LookupTarget
from dovetail.joins.dataflow.ports import JoinKind
from dovetail.sql.bind.asked.subqueries import Subqueries, SubqueryRows, read_around
from dovetail.sql.bind.asked.subqueries_in_on import Sides, SubqueriesInOn
from dovetail.sql.bind.bounded.snapshot import snapshot_of
from dovetail.sql.bind.clauses import (
    is_process_time,
    out_of_brackets,
    refuse_clauses,
    refuse_join_method,
    refuse_lookup,
    refuse_table,
)
from dovetail.sql.bind.from_clause.array_join import PREFIX, array_joined, is_array_join
from dovetail.sql.bind.from_clause.brackets import every_column, join_in_brackets, values_of
from dovetail.sql.bind.from_clause.comma_joins import in_written_order, linked
from dovetail.sql.bind.from_clause.from_item import FromItem
from dovetail.sql.bind.from_clause.joined import has_equality, joined
from dovetail.sql.bind.from_clause.keyed_changelog import keyed, keyed_rows
from dovetail.sql.bind.from_clause.laterals import applied, is_lateral, lateral_kind
from dovetail.sql.bind.from_clause.scans import filters_time, scanned
from dovetail.sql.bind.from_clause.sessions import SessionCall, in_sessions
from dovetail.sql.bind.from_clause.windows import WindowCall, windowed
from dovetail.sql.bind.lookup.asked_tables import has_one_row, is_over_table, lone_table, refuse_row_around
from dovetail.sql.bind.lookup.lookups import Lookups
from dovetail.sql.bind.named_columns import as_cte, columns_of_alias, named_as, with_names
from dovetail.sql.bind.partitions.first_rows import (
    is_distinct_on,
    limit_by,
    number_first_of_each,
    number_first_rows,
    spell_out_windows,
)
from dovetail.sql.bind.partitions.top_one import top_one
from dovetail.sql.bind.reading import spelled_out
from dovetail.sql.bind.scope import Scope, place_of
from dovetail.sql.bind.select_clauses import Bound, SelectClauses
from dovetail.sql.bind.set_operations import combined_rows, name_of, parts_of
from dovetail.sql.bind.static import is_dictionary, is_static
from dovetail.sql.bind.written.qualifiers import is_cte
from dovetail.sql.expressions.evaluate import quoted
from dovetail.sql.functions.dialects import TIMEPLUS
from dovetail.sql.functions.translate import Dialect
from dovetail.sql.plan.column_names import unused
from dovetail.sql.plan.nodes import LookupTable, Map, Static
from dovetail.sql.query_settings import QuerySettings
from dovetail.sql.relations import HasRows, Relations, Stream, with_rows
from dovetail.sql.syntax.calls import WINDOWS, dotted_name, function_name
from dovetail.sql.syntax.statements import CreateDictionary, CreateStream, CreateView
from dovetail.sql.system_tables import DATABASE, SYSTEM_TABLES


@dataclass
class Binder:
    """Binds one query; ``view`` tells the stream that a materialized view writes."""

    catalog: Relations
    settings: QuerySettings
    view: Callable[[CreateView], Stream]
    ctes: Mapping[str, exp.Query] = field(default_factory=dict)
    aliases: set[str] = field(default_factory=set)
    dialect: Dialect = TIMEPLUS
    outer: Scope | None = None
    """Of a subquery in a condition: the columns of the query around it."""

    def bind(self, query: exp.Query) -> Bound:
        query = out_of_brackets(query, self.dialect.rules)
        if isinstance(query, exp.SetOperation):
            return self._combined(query)
        assert isinstance(query, exp.Select)
        select = _numbered(top_one(query))
        refuse_clauses(select, self.dialect.rules)
        own = {cte.alias: with_names(cte.this, columns_of_alias(cte)) for cte in select.ctes}
        ctes = {**self.ctes, **own}
        return replace(self, ctes=ctes).of_select(select)

    def _combined(self, query: exp.SetOperation) -> Bound:
        """UNION, INTERSECT or EXCEPT of SELECTs, each of which sees its CTEs."""
        refuse_clauses(query, self.dialect.rules)
        parts = parts_of(query)
        own = {cte.alias: with_names(cte.this, columns_of_alias(cte)) for cte in query.ctes}
        within = replace(self, ctes={**self.ctes, **own})
        bound = [within.bind(part) for part in parts]
        return combined_rows(query, bound, self._alias(name_of(query).lower()), self.dialect.rules)

    def of_select(self, select: exp.Select) -> Bound:
        """``select``, its own CTEs apart."""
        source = select.args.get("from_") or select.args.get("from")
        if source is None:
            raise Unsupported(
                "a query without FROM has no stream to read", fix="SELECT .. FROM a stream, or FROM table(x)"
            )
        item = self._joined_items(select)
        item = replace(item, scope=replace(item.scope, outer=self.outer))
        return SelectClauses(select, self._lookups, self._subqueries, self.dialect).over(item)

    def _asked(self, query: exp.Query, outer: Scope) -> SubqueryRows:
        """The rows of a subquery in a condition."""
        over_table = is_over_table(query, self.ctes, self.catalog)
        bound = self._over_table(query, outer) if over_table else replace(self, outer=outer).bind(query)
        alias = self._alias("subquery")
        columns = tuple((f"{alias}.{name}", expr) for name, expr in named_as(query, bound.columns))
        return SubqueryRows(Map(bound.node, columns), tuple(name for name, _ in columns))

    def _over_table(self, query: exp.Query, outer: Scope) -> Bound:
        """A subquery over a dictionary, or over ``table(x)``."""
        table = lone_table(query)
        if table is None:
            try:
                item = self.derived(query, self._alias("subquery"))
            except UnknownName as fault:
                refuse_row_around(query, outer, fault)
                raise
            columns = [(column.name, item.node.column(column.internal)) for column in item.scope.columns]
            return Bound(item.node, tuple(columns), marked=False)
        assert isinstance(query, exp.Select)
        item = self._right(table, seeks=False)
        item = replace(item, scope=replace(item.scope, outer=outer))
        return SelectClauses(query, self._lookups, self._subqueries, self.dialect).over(item)

    # -- FROM --

    def _joined_items(self, written: exp.Select) -> FromItem:
        """FROM with its joins."""
        select, seeks = linked(written, self._shown), filters_time(written)
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
            return self.derived(table.this, self._alias(table.alias or "subquery"), self.outer)
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
        if is_letters(letters := dotted_name(table)):
            raise Unsupported(
                f'"{letters}" is no stream of rows: its records are told by their headers',
                where=place_of(table, "FROM"),
                fix=f"FROM table({letters}) reads those of now, dovetail tail {letters} those to come",
            )
        alias = table.alias or name
        if (item := self._query_named(table, alias)) is not None:
            return item
        return self._scan(self._stream(self._definition(table, name), table), alias, seeks=seeks)

    def _query_named(self, named: exp.Expr, alias: str) -> FromItem | None:
        """What a CTE or a plain view gives; None where the name is that of another relation."""
        name = named.name
        if is_cte(named, self.ctes):
            without_itself = {other: query for other, query in self.ctes.items() if other != name}
            return replace(self, ctes=without_itself).derived(self.ctes[name], self._alias(alias))
        definition = self._definition(named, name)
        if not isinstance(definition, CreateView) or definition.materialized:
            return None
        query, dialect = spelled_out(definition, self.catalog)
        item = replace(self, ctes={}, dialect=dialect).derived(query, self._alias(alias))
        return replace(item, scope=replace(item.scope, dialect=self.dialect))

    @property
    def _subqueries(self) -> Subqueries:
        return Subqueries(self._asked, self._alias)

    @property
    def _lookups(self) -> Lookups:
        return Lookups(self.catalog, self.settings, self._stream, self._alias)

    def _alias(self, alias: str) -> str:
        """The alias, made unique over the whole query: internal names begin with it."""
        taken = unused(alias, self.aliases)
        self.aliases.add(taken)
        return taken

    def _definition(self, table: exp.Expr, name: str) -> HasRows:
        try:
            return with_rows(self.catalog.get(name).definition, place_of(table, "FROM"))
        except UnknownName as fault:
            raise UnknownName(fault.what, where=place_of(table, "FROM"), fix=fault.fix) from None

    def _stream(self, definition: HasRows, table: exp.Expr) -> Stream:
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
            fix="FROM stream, table(stream), changelog(stream, key), or TUMBLE, HOP and SESSION",
        )

    def _windowed(self, table: exp.Expr, seeks: bool) -> FromItem:
        call = SessionCall.of(table) if function_name(table.this) == "session" else WindowCall.of(table)
        alias = table.alias or call.name
        if function_name(call.source.this) == "table":
            query = exp.Select(expressions=[exp.Star()]).from_(exp.Table(this=table.this.copy()))
            return self._static(query, self._alias(alias))
        source = call.source.copy()
        source.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))
        rows = self._from(source, seeks)
        return windowed(call, rows) if isinstance(call, WindowCall) else in_sessions(call, rows)

    def _table(self, table: exp.Expr, place: str) -> FromItem:
        alias = self._alias(table.alias or table.this.expressions[0].name)
        bare = exp.Table(this=table.this.copy())
        query = exp.Select(expressions=[exp.Star()]).from_(bare)
        return self._static(query, alias)

    def _static(self, query: exp.Query, alias: str) -> FromItem:
        """A FROM item all of whose relations are ``table(x)``."""
        found = snapshot_of(query, self.catalog, self.view, self.dialect)
        for name in found.relations:
            if is_letters(name):
                raise Unsupported(
                    f'"{name}" cannot be read in a streaming query', where="in FROM", fix="ask it in a query of its own"
                )
            if name in SYSTEM_TABLES or is_dictionary(name, self.catalog):
                raise Unsupported(
                    f'"{name}" cannot be read as a whole in a streaming query',
                    where="in FROM",
                    fix=f"JOIN {name} itself: ON stream.x = {name}.key; further conditions may follow",
                )
        select = ", ".join(f"{quoted(name)} AS {quoted(f'{alias}.{name}')}" for name in found.columns)
        schema = pa.schema([pa.field(f"{alias}.{name}", kind) for name, kind in found.columns.items()])
        sql = f"SELECT {select} FROM ({found.sql})"
        node = Static(alias, found.relations, sql, schema, single=has_one_row(query))
        return FromItem.of(node, alias, list(found.columns), self.dialect)

    def _changelog(self, table: exp.Expr, place: str) -> FromItem:
        name, *keys = [argument.name for argument in table.this.expressions]
        alias = table.alias or name
        if (item := self._query_named(table.this.expressions[0], alias)) is not None:
            return keyed_rows(item, name, keys, place)
        definition = self._definition(table, name)
        stream = self._stream(definition, table)
        return self._scan(keyed(stream, keys, place), alias, seeks=False)

    def _scan(self, stream: Stream, alias: str, *, seeks: bool) -> FromItem:
        return scanned(stream, self._alias(alias), self.settings, self.dialect, seeks=seeks)

    def derived(self, query: exp.Query, alias: str, outer: Scope | None = None) -> FromItem:
        """A subquery, CTE or plain view under its alias. Of what stands around it only a subquery in FROM sees
        anything: what the query does that it is in.
        """
        if is_static(query, self.ctes, self.catalog):
            return self._static(_with_ctes(query, self.ctes), alias)
        bound = replace(self, outer=outer).bind(query)
        columns = named_as(query, bound.columns)
        renamed = tuple((f"{alias}.{name}", expr) for name, expr in columns)
        return FromItem.of(Map(bound.node, renamed), alias, [name for name, _ in columns], self.dialect)

    # -- JOIN --

    def _join(self, left: FromItem, join: exp.Join, seeks: bool) -> FromItem:
        if is_array_join(join):
            return array_joined(join, left, self._alias(PREFIX))
        if is_lateral(join):
            return self._lateral(left, join)
        place = place_of(join, "JOIN")
        refuse_join_method(join, place)
        right = self._right(join.this, seeks)
        if isinstance(right.node, LookupTable):
            refuse_lookup(join, place)
        left, right = (replace(side, scope=replace(side.scope, outer=self.outer)) for side in (left, right))
        sides = SubqueriesInOn(self._subqueries, self._filtered, self._read_around).taken_out(join, left, right)
        if (small := _small_table(join, sides)) is not None:
            self.aliases.discard(small.alias)
            sides = replace(sides, right=self._from(_bare(join.this), seeks))
        made = joined(sides.join, sides.left, sides.right, self.settings)
        return self._filtered(made, exp.and_(*sides.above)) if sides.above else made

    def _lateral(self, left: FromItem, join: exp.Join) -> FromItem:
        kind, item, query = lateral_kind(join), join.this, join.this.this.this
        if is_over_table(query, self.ctes, self.catalog):
            raise Unsupported(
                "LATERAL over table(x), or over what is looked up, is not supported",
                where=place_of(query, "LATERAL"),
                fix="join it by an equality: JOIN table(r) AS r ON l.k = r.k",
            )
        around = replace(left, scope=replace(left.scope, outer=self.outer))
        right = self.derived(query, self._alias(item.alias or "lateral"), around.scope).named(item)
        made = applied(kind, join, around, right)
        on = join.args.get("on")
        return made if on is None or kind is JoinKind.LEFT else self._filtered(made, on)

    def _filtered(self, item: FromItem, condition: exp.Expr) -> FromItem:
        clauses = SelectClauses(exp.Select(), self._lookups, self._subqueries, self.dialect)
        return clauses.where(item, condition)

    def _read_around(self, query: exp.Query, outer: Scope) -> set[str]:
        """The columns of ``outer`` that a subquery reads; bound by a binder of its own: the aliases are not taken."""
        return read_around(replace(self, aliases=set(self.aliases))._asked(query, outer).node)  # noqa: SLF001

    def _right(self, table: exp.Expr, seeks: bool) -> FromItem:
        """An item of FROM that is looked up, or emits rows."""
        looked_up = self._lookups.table(table, self.ctes)
        if looked_up is None:
            # A time of the left row says how it is joined.
            return self._from(table if is_process_time(table) else _bare(table), seeks)
        return FromItem.of_table(looked_up, self.dialect).named(table)


def _numbered(select: exp.Select) -> exp.Select:
    """The first rows of an order as a condition on the row number; what else LIMIT asks for stays as it is."""
    limited = select.args.get("limit") and (limit_by(select) or select.args.get("order"))
    distinct = is_distinct_on(select)
    if not limited and not distinct and select.find(exp.Window) is None:
        return select
    made = select.copy()
    spell_out_windows(made)
    if limited:
        number_first_rows(made)
    elif distinct:
        number_first_of_each(made)
    if distinct or limited:
        made.set("order", None)
    return made


def _with_ctes(query: exp.Query, ctes: Mapping[str, exp.Query]) -> exp.Query:
    """The query with the CTEs around it as its own."""
    own = {cte.alias for cte in query.ctes}
    around = [as_cte(name, other) for name, other in ctes.items() if name not in own]
    if not around:
        return query
    result = query.copy()
    result.set("with_", exp.With(expressions=[*around, *(cte.copy() for cte in query.ctes)]))
    return result


def _small_table(written: exp.Join, sides: Sides) -> LookupTable | None:
    """The right side, rows of a topic as of PROCTIME(), if it is to be held whole: nothing finds one of them, neither
    in ON nor in WHERE, whose equalities may move there.
    """
    table, select = sides.right.node, written.parent_select
    if not isinstance(table, LookupTable) or table.target is not LookupTarget.STREAM or table.index:
        return None
    where = None if select is None else select.args.get("where")
    if select is None or (where is not None and where.find(exp.EQ, exp.NullSafeEQ) is not None):
        return None
    asked = is_process_time(sides.join.this) and not has_equality(sides.join, sides.left, sides.right)
    return table if asked else None


def _bare(table: exp.Expr) -> exp.Expr:
    """The FROM item without FOR SYSTEM_TIME AS OF."""
    if not table.args.get("version"):
        return table
    bare = table.copy()
    bare.set("version", None)
    return bare
