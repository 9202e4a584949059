"""What both binders do: names in FROM to the rows of items, with the columns by which expressions know them.

Each FROM item names its columns ``<alias>.<column>``; expressions are typed trees over these names from here on. A
subquery, CTE or plain view is bound where it stands, its columns renamed under its own alias.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from sqlglot import exp

from dovetail.changelog.dead_letter import is_dead_letter_topic
from dovetail.changelog.errors import UnknownName, Unsupported
from dovetail.sql.bind.bound import Bound
from dovetail.sql.bind.clauses import refuse_table
from dovetail.sql.bind.expressions import QueryExpressions
from dovetail.sql.bind.from_clause.brackets import every_column, join_in_brackets, values_of
from dovetail.sql.bind.from_clause.from_item import FromItem
from dovetail.sql.bind.from_clause.gap_fill import GapFillCall, gap_filled
from dovetail.sql.bind.from_clause.sessions import SessionCall, in_sessions
from dovetail.sql.bind.from_clause.windows import WindowCall, windowed, with_time
from dovetail.sql.bind.named_columns import columns_of_alias, named_as, with_names
from dovetail.sql.bind.reading import inlined_index, inlined_reading
from dovetail.sql.bind.scope import Scope, place_of
from dovetail.sql.bind.written.qualifiers import is_cte
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.functions.dialects import TIMEPLUS
from dovetail.sql.functions.translate import Dialect
from dovetail.sql.plan.column_names import unused
from dovetail.sql.plan.nodes import Map, Node
from dovetail.sql.query_settings import QuerySettings
from dovetail.sql.relations import HasRows, Relations, Stream, with_rows
from dovetail.sql.syntax.calls import WINDOWS, dotted_name, function_name
from dovetail.sql.syntax.statements import CreateIndex, CreateView
from dovetail.sql.system_tables import DATABASE

_CALLS: Mapping[str, type[WindowCall | SessionCall | GapFillCall]] = {"session": SessionCall, "gap_fill": GapFillCall}


@dataclass
class QueryBinder(ABC):
    """Binds one query; ``view`` tells the stream that a materialized view writes."""

    catalog: Relations
    settings: QuerySettings
    view: Callable[[CreateView], Stream]
    ctes: Mapping[str, exp.Query] = field(default_factory=dict)
    aliases: set[str] = field(default_factory=set)
    dialect: Dialect = TIMEPLUS
    outer: Scope | None = None
    """Of a subquery: the columns of the query around it."""

    @property
    @abstractmethod
    def _expressions(self) -> QueryExpressions:
        """What binds the expressions of the query."""

    @abstractmethod
    def bind(self, query: exp.Query) -> Bound:
        """The rows and the columns of a query."""

    @abstractmethod
    def _join(self, left: FromItem, join: exp.Join, seeks: bool) -> FromItem: ...

    @abstractmethod
    def _values(self, table: exp.Expr, values: exp.Values) -> FromItem: ...

    @abstractmethod
    def _of_system(self, table: exp.Expr) -> FromItem: ...

    @abstractmethod
    def _dead_letters(self, table: exp.Expr, topic: str, alias: str) -> FromItem: ...

    @abstractmethod
    def _relation(self, table: exp.Expr, definition: HasRows, alias: str, seeks: bool) -> FromItem:
        """A relation of the catalog."""

    @abstractmethod
    def _table(self, table: exp.Expr) -> FromItem:
        """``table(x)``, what a relation holds."""

    @abstractmethod
    def _changelog(self, table: exp.Expr, place: str) -> FromItem: ...

    def _within(self, query: exp.Query) -> Self:
        """Where the parts of ``query`` are bound: they see its CTEs. One that nothing reads is bound all the same, so
        that it is known to be a query.
        """
        within = replace(self, ctes={**self.ctes, **self._own_ctes(query)})
        read = {table.name for table in query.find_all(exp.Table)}
        for cte in query.ctes:
            if cte.alias not in read:
                within._aside()._cte(cte.alias, cte.alias)  # noqa: SLF001 - it is one of these
        return within

    def _own_ctes(self, query: exp.Query) -> dict[str, exp.Query]:
        return {cte.alias: with_names(cte.this, columns_of_alias(cte)) for cte in query.ctes}

    def _aside(self) -> Self:
        """A binder of rows that are not read: it takes no aliases."""
        return replace(self, aliases=set(self.aliases))

    # -- FROM --

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
            return self._values(table, values)
        if table.text("db") == DATABASE and not isinstance(table.this, exp.Anonymous):
            return self._of_system(table)
        if isinstance(table.this, exp.Anonymous):
            return self._function(table, seeks)
        return self.named(table, table, seeks)

    def named(self, table: exp.Expr, named: exp.Expr, seeks: bool) -> FromItem:
        """The relation, CTE or view of the name ``named``."""
        if is_dead_letter_topic(topic := dotted_name(named)):
            return self._dead_letters(table, topic, table.alias or named.name)
        alias = table.alias or named.name
        if (item := self._query_named(named, alias)) is not None:
            return item
        definition = self._definition(table, named.name)
        if isinstance(definition, CreateIndex):
            return replace(self, ctes={}).derived(inlined_index(definition, self.catalog), self._alias(alias))
        return self._relation(table, definition, alias, seeks)

    def _query_named(self, named: exp.Expr, alias: str) -> FromItem | None:
        """What a CTE or a plain view gives; None where the name is that of another relation."""
        if is_cte(named, self.ctes):
            return self._cte(named.name, alias)
        definition = self._definition(named, named.name)
        if not isinstance(definition, CreateView) or definition.materialized:
            return None
        query, dialect = inlined_reading(definition, self.catalog)
        item = replace(self, ctes={}, dialect=dialect).derived(query, self._alias(alias))
        return replace(item, scope=replace(item.scope, dialect=self.dialect))

    def _cte(self, name: str, alias: str) -> FromItem:
        without_itself = {other: query for other, query in self.ctes.items() if other != name}
        return replace(self, ctes=without_itself).derived(self.ctes[name], self._alias(alias))

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

    def _function(self, table: exp.Expr, seeks: bool) -> FromItem:
        call = table.this
        name, place = function_name(call), place_of(table, "FROM")
        if name == "table":
            return self._table(table)
        if name == "changelog":
            return self._changelog(table, place)
        if name in WINDOWS:
            return self._windowed(table, seeks)
        raise Unsupported(
            f"{name}() in FROM is not supported in this release",
            where=place,
            fix="FROM stream, table(stream), changelog(stream, key), or TUMBLE, HOP, SESSION and GAP_FILL",
        )

    def _windowed(self, table: exp.Expr, seeks: bool) -> FromItem:
        call = _CALLS.get(function_name(table.this), WindowCall).of(table)
        source = call.source.copy()
        source.set("alias", exp.TableAlias(this=exp.to_identifier(table.alias or call.name)))
        rows = self._from(source, seeks)
        if isinstance(call, GapFillCall):
            return gap_filled(call, rows)
        name = "SESSION" if isinstance(call, SessionCall) else "TUMBLE"
        rows, time = with_time(rows, call.time, self._expressions.value, name, call.place)
        return windowed(call, rows, time) if isinstance(call, WindowCall) else in_sessions(call, rows, time)

    def derived(self, query: exp.Query, alias: str, outer: Scope | None = None) -> FromItem:
        """A subquery, CTE or plain view under its alias. Of what stands around it only a subquery in FROM sees
        anything: what the query does that it is in.
        """
        bound = replace(self, outer=outer).bind(query)
        return self._renamed(bound.node, named_as(query, bound.columns), alias)

    def _renamed(self, node: Node, columns: Sequence[tuple[str, Expr]], alias: str) -> FromItem:
        renamed = tuple((f"{alias}.{name}", expr) for name, expr in columns)
        return FromItem.of(Map(node, renamed), alias, [name for name, _ in columns], self.dialect)


def bare(table: exp.Expr) -> exp.Expr:
    """The FROM item without FOR SYSTEM_TIME AS OF."""
    if not table.args.get("version"):
        return table
    made = table.copy()
    made.set("version", None)
    return made
