"""Names to columns: a SELECT becomes a tree of plan nodes and a list of output expressions.

Each FROM item names its columns ``<alias>.<column>``; expressions are typed trees over these names from here on. A
subquery, CTE or plain view is bound where it stands, its columns renamed under its own alias. What is not supported is
refused here, with the clause and the nearest thing that works.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.dead_letter import is_dead_letter_topic
from dovetail.changelog.errors import UnknownName, Unsupported
from dovetail.joins.dataflow.lookup import LookupTarget
from dovetail.joins.dataflow.ports import JoinKind
from dovetail.sql.bind.bound import Bound
from dovetail.sql.bind.bounded.bounded_query import snapshot_of
from dovetail.sql.bind.clauses import (
    is_process_time,
    moment_of,
    out_of_brackets,
    past_refused,
    refuse_clauses,
    refuse_join_method,
    refuse_lookup,
)
from dovetail.sql.bind.expressions import StreamExpressions
from dovetail.sql.bind.from_clause.array_join import PREFIX, array_joined, is_array_join
from dovetail.sql.bind.from_clause.comma_joins import in_written_order, linked
from dovetail.sql.bind.from_clause.from_item import FromItem
from dovetail.sql.bind.from_clause.joined import has_equality, joined
from dovetail.sql.bind.from_clause.keyed_changelog import ChangelogCall, is_changelog_by, keyed, keyed_rows
from dovetail.sql.bind.from_clause.laterals import applied, is_lateral, lateral_kind
from dovetail.sql.bind.from_clause.scans import filters_time, scanned
from dovetail.sql.bind.lookup.lookups import Lookups
from dovetail.sql.bind.lookup.subquery_tables import has_one_row, is_over_table, lone_table, refuse_row_around
from dovetail.sql.bind.named_columns import named_as
from dovetail.sql.bind.partitions.first_rows import (
    is_distinct_on,
    limit_by,
    number_first_of_each,
    number_first_rows,
    spell_out_windows,
)
from dovetail.sql.bind.partitions.top_one import top_one
from dovetail.sql.bind.query_binder import QueryBinder, bare
from dovetail.sql.bind.resolve import Expressions
from dovetail.sql.bind.scope import Scope, place_of
from dovetail.sql.bind.select_clauses import SelectClauses
from dovetail.sql.bind.set_operations import combined_rows, name_of, parts_of
from dovetail.sql.bind.static import is_dictionary, is_static
from dovetail.sql.bind.subqueries.subqueries import Subqueries, SubqueryRows, read_around
from dovetail.sql.bind.subqueries.subqueries_in_on import Sides, SubqueriesInOn
from dovetail.sql.expressions.evaluate import quoted
from dovetail.sql.plan.nodes import LookupTable, Map, Scan, Static
from dovetail.sql.relations import HasRows, Stream
from dovetail.sql.syntax.calls import function_name
from dovetail.sql.syntax.statements import CreateDictionary, CreateStream, CreateView
from dovetail.sql.system_tables import DATABASE, SYSTEM_TABLES


@dataclass
class Binder(QueryBinder):
    """Binds a query over streams. What is not supported is refused here, with the clause and the nearest thing that
    works.
    """

    def bind(self, query: exp.Query) -> Bound:
        query = out_of_brackets(query, self.dialect.rules)
        if isinstance(query, exp.SetOperation):
            return self._combined(query)
        assert isinstance(query, exp.Select)
        select = _numbered(top_one(query))
        refuse_clauses(select, self.dialect.rules)
        return self._within(select).of_select(select)

    def _combined(self, query: exp.SetOperation) -> Bound:
        """UNION, INTERSECT or EXCEPT of SELECTs, each of which sees its CTEs."""
        refuse_clauses(query, self.dialect.rules)
        parts = parts_of(query)
        within = self._within(query)
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
        return SelectClauses(select, self._expressions, self.dialect, self._alias).over(item)

    def _subquery_rows(self, query: exp.Query, outer: Scope) -> SubqueryRows:
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
        return SelectClauses(query, self._expressions, self.dialect, self._alias).over(item)

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

    @property
    def _expressions(self) -> StreamExpressions:
        return StreamExpressions(self._lookups, self._subqueries)

    @property
    def _subqueries(self) -> Subqueries:
        return Subqueries(self._subquery_rows, self._alias)

    @property
    def _lookups(self) -> Lookups:
        return Lookups(self.catalog, self.settings, self._stream, self._alias)

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
            f'"{definition.name}" is an index: changelog() takes a stream or a view',
            where=place,
            fix=f"changelog({definition.stream}, k)",
        )

    def derived(self, query: exp.Query, alias: str, outer: Scope | None = None) -> FromItem:
        if is_static(query, self.ctes, self.catalog):
            return self._static(query, alias)
        return super().derived(query, alias, outer)

    def _values(self, table: exp.Expr, values: exp.Values) -> FromItem:
        rows = exp.Values(expressions=[row.copy() for row in values.expressions])
        return self._static(_every(rows), self._alias(table.alias or "values"))

    def _of_system(self, table: exp.Expr) -> FromItem:
        raise Unsupported(
            f'"{DATABASE}.{table.name}" emits no rows',
            where=place_of(table, "FROM"),
            fix="ask it in a query of its own",
        )

    def _dead_letters(self, table: exp.Expr, topic: str, alias: str) -> FromItem:
        raise Unsupported(
            f'"{topic}" is no stream of rows: its records are told by their headers',
            where=place_of(table, "FROM"),
            fix=f"FROM table({topic}) reads those of now, dovetail tail {topic} those to come",
        )

    def _relation(self, table: exp.Expr, definition: HasRows, alias: str, seeks: bool) -> FromItem:
        return self._scan(self._stream(definition, table), alias, seeks=seeks)

    def _function(self, table: exp.Expr, seeks: bool) -> FromItem:
        if function_name(table.this) == "changes":
            raise past_refused("changes()", place_of(table, "FROM"))
        return super()._function(table, seeks)

    def _windowed(self, table: exp.Expr, seeks: bool) -> FromItem:
        call = table.this
        if call.expressions and function_name(call.expressions[0]) == "table":
            source = call.expressions[0].expressions
            alias = table.alias or (source[0].name if source else "")
            return self._static(_every(exp.Table(this=call.copy())), self._alias(alias))
        return super()._windowed(table, seeks)

    def _table(self, table: exp.Expr) -> FromItem:
        alias = table.alias or table.this.expressions[0].name
        return self._static(_every(exp.Table(this=table.this.copy())), self._alias(alias))

    def _static(self, query: exp.Query, alias: str) -> FromItem:
        """A FROM item all of whose relations are ``table(x)``."""
        found = snapshot_of(query, self.catalog, self.view, self.dialect, self.ctes)
        for name in found.relations:
            if is_dead_letter_topic(name):
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
        formed = tuple((f"{alias}.{name}", form) for name, form in found.forms.items())
        node = Static(alias, found.relations, sql, schema, single=has_one_row(query), formed=formed)
        return FromItem.of(node, alias, list(found.columns), self.dialect)

    def _changelog(self, table: exp.Expr, place: str) -> FromItem:
        call = ChangelogCall.of(table.this)
        alias = table.alias or call.name
        if call.of_content:
            return self._static(_every(exp.Table(this=table.this.copy())), self._alias(alias))
        if (item := self._query_named(table.this.expressions[0], alias)) is not None:
            return keyed_rows(item, call, place)
        stream = self._stream(self._definition(table, call.name), table)
        if is_changelog_by(stream.schema, call, place):
            return self._scan(stream, alias, seeks=False)
        item = self._scan(keyed(stream, call, place), alias, seeks=False)
        assert isinstance(item.node, Scan)
        return replace(item, node=replace(item.node, rekeyed=True))

    def _scan(self, stream: Stream, alias: str, *, seeks: bool) -> FromItem:
        return scanned(stream, self._alias(alias), self.settings, self.dialect, seeks=seeks)

    # -- JOIN --

    def _join(self, left: FromItem, join: exp.Join, seeks: bool) -> FromItem:
        if is_array_join(join):
            return array_joined(join, left, self._alias(PREFIX), self._expressions)
        if is_lateral(join):
            return self._lateral(left, join)
        place = place_of(join, "JOIN")
        refuse_join_method(join, place)
        right = self._right(join.this, seeks)
        if isinstance(right.node, LookupTable):
            refuse_lookup(join, place)
        left, right = (replace(side, scope=replace(side.scope, outer=self.outer)) for side in (left, right))
        sides = SubqueriesInOn(self._subqueries, self._filtered, self._read_around).taken_out(join, left, right)
        if (small := _small_table(join, sides, self._expressions)) is not None:
            self.aliases.discard(small.alias)
            sides = replace(sides, right=self._from(bare(join.this), seeks))
        made = joined(sides.join, sides.left, sides.right, self.settings, self._expressions)
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
        clauses = SelectClauses(exp.Select(), self._expressions, self.dialect, self._alias)
        return clauses.where(item, condition)

    def _read_around(self, query: exp.Query, outer: Scope) -> set[str]:
        """The columns of ``outer`` that a subquery reads; bound by a binder of its own: the aliases are not taken."""
        return read_around(replace(self, aliases=set(self.aliases))._subquery_rows(query, outer).node)  # noqa: SLF001

    def _right(self, table: exp.Expr, seeks: bool) -> FromItem:
        """An item of FROM that is looked up, or emits rows."""
        looked_up = self._lookups.table(table, self.ctes)
        if looked_up is None:
            # A time of the left row says how it is joined.
            as_written = is_process_time(table) or moment_of(table) is not None
            return self._from(table if as_written else bare(table), seeks)
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


def _small_table(written: exp.Join, sides: Sides, expressions: Expressions) -> LookupTable | None:
    """The right side, rows of a topic as of PROCTIME(), if it is to be held whole: nothing finds one of them, neither
    in ON nor in WHERE, whose equalities may move there.
    """
    table, select = sides.right.node, written.parent_select
    if not isinstance(table, LookupTable) or table.target is not LookupTarget.STREAM or table.index:
        return None
    where = None if select is None else select.args.get("where")
    if select is None or (where is not None and where.find(exp.EQ, exp.NullSafeEQ) is not None):
        return None
    is_held = is_process_time(sides.join.this) and not has_equality(sides.join, sides.left, sides.right, expressions)
    return table if is_held else None


def _every(rows: exp.Expr) -> exp.Select:
    return exp.Select(expressions=[exp.Star()]).from_(rows)
