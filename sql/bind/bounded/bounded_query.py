"""The names of a query over ``table(x)``: looked up and translated as those of a stream, in a tree that DuckDB runs.

Anything that DuckDB can do is allowed around the expressions: ORDER BY, window functions, subqueries, UNION.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from dovetail.changelog.dead_letter import is_letters
from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.changelog.schema import EVENT_TIME_TYPE
from dovetail.sql.bind.aggregates import grouping_sets, without_aliases
from dovetail.sql.bind.bounded.snapshot_expressions import SnapshotExpressions
from dovetail.sql.bind.bounded.snapshot_from import SnapshotFrom
from dovetail.sql.bind.bounded.snapshot_items import (
    Columns,
    SnapshotItem,
    column_of,
    expect_counts,
    hoist_order,
    in_brackets_of_its_own,
    last_of_each_key,
    name_of_cte,
    renamed_relation,
    united,
    windows_of,
)
from dovetail.sql.bind.bounded.snapshot_names import SnapshotNames
from dovetail.sql.bind.bounded.snapshot_relations import SnapshotRelations
from dovetail.sql.bind.bounded.snapshot_sessions import fill_in, sessions_of
from dovetail.sql.bind.clauses import order_by_names
from dovetail.sql.bind.from_clause.brackets import every_column, join_in_brackets, values_of
from dovetail.sql.bind.from_clause.sessions import SessionCall
from dovetail.sql.bind.from_clause.windows import END, START, WindowCall, check_units
from dovetail.sql.bind.groups.grouping_sets import GroupingSets
from dovetail.sql.bind.named_columns import columns_of_alias, named_as, under_alias, without_columns
from dovetail.sql.bind.partitions.first_rows import (
    is_distinct_on,
    limit_by,
    number_first_of_each,
    number_first_rows,
    spell_out_windows,
)
from dovetail.sql.bind.partitions.ties import Shown
from dovetail.sql.bind.projection import expect_columns, is_delta, selected
from dovetail.sql.bind.reading import spelled_out
from dovetail.sql.bind.resolve import typed
from dovetail.sql.bind.scope import Scope, place_of
from dovetail.sql.bind.set_operations import name_of
from dovetail.sql.bind.written.qualifiers import is_cte
from dovetail.sql.functions.translate import in_order_of
from dovetail.sql.functions.typed import Typed
from dovetail.sql.plan.column_names import output_names
from dovetail.sql.relations import Relations
from dovetail.sql.syntax.calls import WINDOWS, dotted_name, function_name
from dovetail.sql.syntax.statements import CreateView
from dovetail.sql.system_tables import DATABASE


@dataclass(frozen=True)
class BoundedBinder:
    """Turns a query, in place, into one that DuckDB reads: relations by name, ``*`` spelled out, columns named."""

    catalog: Relations
    relations: SnapshotRelations
    names: SnapshotNames

    def query(self, query: exp.Expr, around: Mapping[str, Columns], outer: Scope | None = None) -> Columns:
        """The columns of a query, rewritten. ``around``: the CTEs that it can read; ``outer``: the columns."""
        ctes = dict(around)
        for cte in getattr(query, "ctes", ()):
            name = cte.alias
            ctes[name] = under_alias(cte, self.query(cte.this, ctes))
            cte.args["alias"].set("this", exp.to_identifier(name_of_cte(name)))
        if isinstance(query, exp.Subquery):
            expect_counts(query)
            order_by_names(query)
            return self.query(query.this, ctes, outer)
        if isinstance(query, exp.SetOperation):
            hoist_order(query)
            expect_counts(query)
            order_by_names(query)
            left = self.query(query.left, ctes, outer)
            right = self.query(query.right, ctes, outer)
            place = place_of(query, name_of(query))
            pairs = zip(left, right, strict=False)
            return [
                (name, united(kind, other, f"{name} of {name_of(query)}", place)) for (name, kind), (_, other) in pairs
            ]
        if not isinstance(query, exp.Select):
            raise Unsupported(f"{type(query).__name__} is not supported over table(x)", fix="SELECT .. FROM table(x)")
        if (first := query.args.get("prewhere")) is not None:
            query.set("prewhere", None)
            query.where(first.this, copy=False)
        spell_out_windows(query)
        if is_distinct_on(query):
            number_first_of_each(query)
        elif limit_by(query):
            number_first_rows(query)
        expect_counts(query)
        expressions = SnapshotExpressions(self.names, lambda inner, scope: self.query(inner, ctes, scope), outer)
        source = SnapshotFrom(
            query,
            lambda table: self.item(table, ctes, outer),
            lambda table, left: self._lateral(table, ctes, left),
            self.names,
            expressions,
        )
        return _Select(query, source, self.names, expressions).columns()

    def item(self, table: exp.Expr, ctes: Mapping[str, Columns], outer: Scope | None = None) -> SnapshotItem:
        """What stands in FROM, rewritten in place: ``s AS x(p)`` is ``(SELECT x.k AS p FROM s AS x) AS x``. A subquery
        there sees of the columns around what the query does that it is in.
        """
        if not columns_of_alias(table):
            return self._item(table, ctes, outer)
        rows = exp.Select().from_(without_columns(table))
        named = exp.Subquery(this=rows)
        table.replace(named)
        own = self._item(rows.args["from_"].this, ctes, outer)
        item = own.named(table)
        rows.set("expressions", own.under_names_of(item))
        named.set("alias", exp.TableAlias(this=exp.to_identifier(item.alias)))
        return item

    def _lateral(self, table: exp.Lateral, ctes: Mapping[str, Columns], left: Scope) -> SnapshotItem:
        """``LATERAL (q) AS x``, in place."""
        alias = table.alias or "lateral"
        columns = under_alias(table, self.query(table.this, ctes, left))
        names = [exp.to_identifier(name, quoted=True) for name, _ in columns]
        table.set("alias", exp.TableAlias(this=exp.to_identifier(alias), columns=names))
        return SnapshotItem(alias, columns)

    def _item(self, table: exp.Expr, ctes: Mapping[str, Columns], outer: Scope | None) -> SnapshotItem:
        """``table``, its columns by their own names."""
        if isinstance(table, exp.Subquery):
            if (inner := join_in_brackets(table)) is not None:
                table.set("this", every_column(inner))
            alias = table.alias or "subquery"
            table.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))
            return SnapshotItem(alias, self.query(table.this, ctes, outer))
        if (values := values_of(table)) is not None:
            return self._values(table, values)
        if not isinstance(table, exp.Table):
            raise Unsupported(
                f"{type(table).__name__} in FROM is not supported", where=place_of(table, "FROM"), fix="FROM table(x)"
            )
        call = function_name(table.this) if isinstance(table.this, exp.Anonymous) else ""
        if call in WINDOWS:
            return self._windowed(table, ctes)
        if call not in ("table", "changelog", ""):
            raise Unsupported(
                f"{call}() in FROM is not supported over table(x)",
                where=place_of(table, "FROM"),
                fix="FROM table(stream)",
            )
        keys = [argument.name for argument in table.this.expressions[1:]] if call == "changelog" else []
        named = table.this.expressions[0] if call else table
        alias = table.alias or named.name
        if call != "table" and is_cte(named, ctes):
            renamed_relation(table, name_of_cte(named.name), alias, keys)
            return SnapshotItem(alias, ctes[named.name])
        if table.db == DATABASE and not call:
            return self.relations.system(table, alias)
        return self._relation(table, named, alias, keys)

    def _relation(self, table: exp.Table, named: exp.Expr, alias: str, keys: Sequence[str]) -> SnapshotItem:
        """A relation of the catalog, or dead letters; ``keys`` are those of ``changelog(x, k)``."""
        if is_letters(letters := dotted_name(named)):
            return self.relations.letters(table, letters, alias)
        name = named.name
        definition = self.catalog.get(name).definition
        if not isinstance(definition, CreateView) or definition.materialized:
            return self.relations.item(table, definition, name, alias, keys)
        query, dialect = spelled_out(definition, self.catalog)
        inner = query.copy()
        columns = BoundedBinder(self.catalog, self.relations, SnapshotNames(dialect)).query(inner, {})
        columns = named_as(query, columns)
        names = [exp.to_identifier(name, quoted=True) for name, _ in columns]
        as_alias = exp.TableAlias(this=exp.to_identifier(alias), columns=names)
        rows = exp.Subquery(this=inner, alias=as_alias)
        table.replace(last_of_each_key(rows, keys, alias) if keys else rows)
        return SnapshotItem(alias, columns)

    def _values(self, table: exp.Expr, values: exp.Values) -> SnapshotItem:
        """``(VALUES (1, 'a'), ..) AS v(k, name)``"""
        nothing = Scope((), self.names.dialect)
        rows = [[value.unnest() for value in row.expressions] for row in values.expressions]
        rows = [[one.expressions[0] if in_brackets_of_its_own(one) else one for one in row] for row in rows]
        place = place_of(table, "VALUES")
        if len({len(row) for row in rows}) > 1:
            raise SqlError("the rows of VALUES have different lengths", where=place, fix="as many values in each row")
        found = [[typed(value, nothing, "VALUES") for value in row] for row in rows]
        values.set("expressions", [exp.Tuple(expressions=[value.tree for value in row]) for row in found])
        kinds = [value.type for value in found[0]]
        for row in found[1:]:
            kinds = [united(kind, value.type, "VALUES", place) for kind, value in zip(kinds, row, strict=True)]
        names = [f"column{number}" for number in range(1, len(kinds) + 1)]
        columns = [exp.to_identifier(name, quoted=True) for name in names]
        alias = table.alias or "values"
        table.set("alias", exp.TableAlias(this=exp.to_identifier(alias), columns=columns))
        return SnapshotItem(alias, list(zip(names, kinds, strict=True)))

    def _windowed(self, table: exp.Table, ctes: Mapping[str, Columns]) -> SnapshotItem:
        """TUMBLE and HOP: as ``sql.transforms.window_step`` has them; SESSION: as ``joins.aggregates.sessions``."""
        call = SessionCall.of(table) if function_name(table.this) == "session" else WindowCall.of(table)
        alias = table.alias or call.name
        rows = exp.Select(expressions=[exp.Star()]).from_(call.source.copy())
        source = self.item(rows.args["from_"].this, ctes)
        kind = dict((*source.columns, *source.hidden)).get(call.time.name, EVENT_TIME_TYPE)
        if isinstance(call, SessionCall):
            table.replace(sessions_of(rows, call, alias, kind))
        else:
            check_units(call, kind)
            windows = windows_of(rows, call)
            table.replace(exp.Subquery(this=windows, alias=exp.TableAlias(this=exp.to_identifier(alias))))
        return replace(source, alias=alias, columns=[*source.columns, (START, kind), (END, kind)])


@dataclass(frozen=True)
class _Select:
    """One SELECT, rewritten clause by clause."""

    select: exp.Select
    source: SnapshotFrom
    names: SnapshotNames
    expressions: SnapshotExpressions

    def columns(self) -> Columns:
        scope = replace(self.source.scope(), outer=self.expressions.outer)
        select = self.select
        for key in ("where", "having", "qualify"):
            if (clause := select.args.get(key)) is not None:
                clause.set(
                    "this", self.expressions.condition(without_aliases(clause.this, select, scope), scope, key.upper())
                )
        group, order, distinct = (select.args.get(key) for key in ("group", "order", "distinct"))
        grouped = grouping_sets(select.copy(), scope)
        keys = [self.expressions.tree(key, scope, "GROUP BY") for key in grouped.keys]
        fill_in(select, keys, grouped=group is not None)
        parts = [] if group is None else self._group(group, grouped, keys)
        terms = [] if order is None else [made for term in order.expressions for made in self._ordered(term, scope)]
        columns, shown = self._projected(scope)
        if (qualify := select.args.get("qualify")) is not None:
            shown.append(qualify.this.copy())
        telling = Shown.of(shown)
        for item in (*([] if qualify is None else [qualify]), *select.expressions):
            item.set("this", telling.told_apart(item.this))
        if order is not None:
            # What LIMIT cuts off must not hang on the order in which rows are read.
            cut = select.args.get("limit") is not None and distinct is None
            order.set("expressions", [*terms, *(telling.ties(terms) if cut else ())])
        if parts and group is not None:
            group.set("expressions", parts)
        return columns

    def _group(self, group: exp.Expr, grouped: GroupingSets, keys: Sequence[exp.Expr]) -> list[exp.Expr]:
        for clause in ("all", "rollup", "cube"):
            group.set(clause, None)
        if grouped.sets[0] and len(grouped.sets) == 1:
            return [keys[position] for position in grouped.sets[0]]
        sets = [exp.Tuple(expressions=[keys[position].copy() for position in one]) for one in grouped.sets]
        if len(sets) > 1 and () in grouped.sets:
            # As over streams: of several sets the empty one has no row while there are none.
            self.select.having(exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0)), copy=False)
        return [exp.GroupingSets(expressions=sets)]

    def _ordered(self, ordered: exp.Expr, scope: Scope) -> list[exp.Expr]:
        """A position, a name of the select list, or an expression; doubles in the order of the dialect."""
        term, made = ordered.this, ordered.copy()
        if isinstance(term, exp.Literal):
            return [made]
        named = {item.alias.casefold(): item for item in self.select.expressions if item.alias}
        if isinstance(term, exp.Column) and not term.table and term.name.casefold() in named:
            made.set("this", column_of(named[term.name.casefold()].alias))
            return [made]
        value = self.expressions.typed(without_aliases(term, self.select, scope), scope, "ORDER BY")
        terms = [made] if self.select.args.get("distinct") else in_order_of(scope.dialect.rules, value, made)
        made.set("this", value.tree)
        for one in terms:
            one.set("this", self.names.written(one.this))
        return terms

    def _projected(self, scope: Scope) -> tuple[Columns, list[exp.Expr]]:
        """Replaces the select list by one in which every column has its name; its items as they were translated."""
        found: list[tuple[str, str, Typed]] = []
        for projection in self.select.expressions:
            if is_delta(projection) and not scope.has(projection.name):
                continue
            for name, table, expression in selected(projection, self.select, scope):
                found.append((name, table, self.expressions.typed(expression, scope, "SELECT")))
        expect_columns(found, self.select)
        names = output_names([(name, table) for name, table, _ in found])
        shown = [self.names.written(value.tree) for _, _, value in found]
        items = [exp.alias_(tree.copy(), name, quoted=True) for name, tree in zip(names, shown, strict=True)]
        self.select.set("expressions", items)
        return [(name, value.type) for name, (_, _, value) in zip(names, found, strict=True)], shown
