"""Bounded queries: a SELECT over ``table(x)``, answered by DuckDB from the content of each topic now.

Anything that DuckDB can do is allowed, aggregates and ORDER BY included. A streaming query can be asked in the same
way: every stream is its content then, and the answer is what a view should hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp

from changelog.errors import SqlError, UnknownName, Unsupported
from changelog.schema import EVENT_TIME_TYPE, SEQUENCE, TIME
from changelog.suggest import suggestion
from sql.bind.clauses import event_time
from sql.bind.join_method import terms_of
from sql.bind.resolve import bounded_on
from sql.bind.scope import place_of
from sql.bind.snapshot_asof import Right, as_duckdb
from sql.bind.windows import END, START, WindowCall
from sql.expressions import evaluate as expressions
from sql.expressions.dict_functions import dict_calls, dict_function
from sql.expressions.functions import WINDOWS, function_name, to_duckdb
from sql.plan.column_names import DELTA_COLUMN, output_names
from sql.relations import Relations, Stream
from sql.syntax.statements import CreateDictionary, CreateStream, CreateView
from sql.system_tables import DATABASE, SYSTEM_TABLES


@dataclass(frozen=True)
class Snapshot:
    """A bounded query: the relations it reads, its DuckDB SQL over tables of their names, its columns and their types.

    A table holds the declared columns of its relation and, where it has one, ``_tp_time``; rows in order of arrival.
    Relations may be dictionaries, external tables, and those of ``sql.system_tables``.
    """

    relations: tuple[str, ...]
    sql: str
    columns: Mapping[str, pa.DataType]

    def run(self, tables: Mapping[str, pa.Table]) -> pa.Table:
        try:
            rows = expressions.run(self.sql, {name: tables[name] for name in self.relations})
        except duckdb.Error as fault:
            raise SqlError(
                str(fault).split("\n")[0], where="a query over table(x)", fix="check the values that it meets"
            ) from None
        return pa.table(
            [column.cast(kind, safe=False) for column, kind in zip(rows.columns, self.columns.values(), strict=True)],
            names=list(self.columns),
        )


def snapshot_of(
    query: exp.Query, catalog: Relations, view: Callable[[CreateView], Stream], texts: Sequence[str] = ()
) -> Snapshot:
    """The query over the content of its relations; ``x`` and ``table(x)`` are the same here."""
    tree = query.copy()
    for call in dict_calls(tree):
        raise Unsupported(
            f"{dict_function(call)} is for streaming queries",
            where=place_of(call, "a query over table(x)"),
            fix="join the dictionary itself: FROM table(x) LEFT JOIN d ON x.key = d.key",
        )
    rewriter = _Rewriter(catalog, view)
    rewriter.query(tree, {}, texts)
    sql = to_duckdb(tree, identify=True)
    tables = {name: schema.empty_table() for name, schema in rewriter.read.items()}
    return Snapshot(tuple(tables), sql, _columns(sql, tables))


def _columns(sql: str, tables: Mapping[str, pa.Table]) -> dict[str, pa.DataType]:
    try:
        schema = expressions.run(sql, tables).schema
    except duckdb.BinderException as fault:
        raise UnknownName(_line(fault), where="a query over table(x)", fix=_candidates(fault)) from None
    except duckdb.Error as fault:
        raise SqlError(_line(fault), where="a query over table(x)", fix="check names and types") from None
    return {column.name: _plain(column.type) for column in schema}


def _line(fault: duckdb.Error) -> str:
    return str(fault).split("\n")[0].split("Error: ", 1)[-1].replace('"', "")


def _candidates(fault: duckdb.Error) -> str:
    _, found, rest = str(fault).partition("Candidate bindings: ")
    return f"there are: {rest.split(chr(10))[0]}".replace('"', "") if found else "check names and types"


def _plain(kind: pa.DataType) -> pa.DataType:
    """Sums of integers are 128 bits wide in DuckDB; a column of ours holds 64."""
    if pa.types.is_decimal(kind) and kind.precision == 38 and kind.scale == 0:
        return pa.int64()
    return pa.int32() if pa.types.is_null(kind) else kind


def _content_schema(stream: Stream) -> pa.Schema:
    fields = [pa.field(column.name, column.type) for column in stream.schema.columns]
    if TIME not in {column.name for column in stream.schema.columns}:
        fields.append(pa.field(TIME, EVENT_TIME_TYPE))
    return pa.schema(fields)


Items = list[tuple[str, list[str]]]
"""FROM items: alias, and its columns in ``*``."""


@dataclass
class _Rewriter:
    """Turns a tree, in place, into one that DuckDB reads: relations by name, ``*`` spelled out, columns named."""

    catalog: Relations
    view: Callable[[CreateView], Stream]
    read: dict[str, pa.Schema] = field(default_factory=dict)
    named: dict[str, str] = field(default_factory=dict)
    """Alias -> the relation that it stands for, where it stands for one."""

    def query(self, query: exp.Expr, around: Mapping[str, list[str]], texts: Sequence[str] = ()) -> list[str]:
        """The names of the columns of a query, rewritten."""
        ctes = dict(around)
        for cte in getattr(query, "ctes", ()):
            ctes[cte.alias] = self.query(cte.this, ctes)
        if isinstance(query, exp.Subquery):
            return self.query(query.this, ctes)
        if isinstance(query, exp.SetOperation):
            names = self.query(query.left, ctes, texts)
            self.query(query.right, ctes)
            return names
        if not isinstance(query, exp.Select):
            raise Unsupported(f"{type(query).__name__} is not supported over table(x)", fix="SELECT .. FROM table(x)")
        query.set("settings", None)
        return self._select(query, ctes, texts)

    def _select(self, select: exp.Select, ctes: Mapping[str, list[str]], texts: Sequence[str]) -> list[str]:
        items: Items = []
        merged: list[str] = []
        source = select.args.get("from_") or select.args.get("from")
        if source is not None:
            items.append(self._item(source.this, ctes))
        for join in select.args.get("joins") or ():
            _refuse_join(join)
            right = self._item(join.this, ctes)
            merged += [name for name in self._join(join, items, right) if name not in merged]
            items += [] if join.kind.upper() in ("SEMI", "ANTI") else [right]
        _check_names(select, items)
        for inner in _inner_queries(select):
            self.query(inner, ctes)
        return _projected(select, items, merged, texts)

    def _item(self, table: exp.Expr, ctes: Mapping[str, list[str]]) -> tuple[str, list[str]]:
        if isinstance(table, exp.Subquery):
            return table.alias, self.query(table.this, ctes)
        if not isinstance(table, exp.Table):
            raise Unsupported(
                f"{type(table).__name__} in FROM is not supported", where=place_of(table, "FROM"), fix="FROM table(x)"
            )
        if table.name in ctes and not isinstance(table.this, exp.Anonymous):
            return table.alias or table.name, ctes[table.name]
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
        definition = self.catalog.get(name).definition
        if isinstance(definition, CreateView) and not definition.materialized:
            inner = definition.query.copy()
            names = _Rewriter(self.catalog, self.view, self.read).query(inner, {})
            table.replace(exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier(alias))))
            return alias, names
        if isinstance(definition, CreateDictionary):
            self.read[name] = pa.schema([pa.field(column.name, column.type) for column in definition.columns])
            _rename(table, name, alias, [])
            return alias, self.read[name].names
        stream = self._stream(definition, table)
        self.read[name] = _content_schema(stream)
        self.named[alias] = name
        _rename(
            table,
            name,
            alias,
            [argument.name for argument in table.this.expressions[1:]] if call == "changelog" else [],
        )
        declared = [column.name for column in stream.schema.columns]
        return alias, [*declared, TIME] if stream.timed and TIME not in declared else declared

    def _windowed(self, table: exp.Table, ctes: Mapping[str, list[str]]) -> tuple[str, list[str]]:
        """TUMBLE and HOP: as ``sql.transforms.window_step`` has them."""
        call = WindowCall.of(table)
        alias = table.alias or call.name
        rows = exp.Select(expressions=[exp.Star()]).from_(call.source.copy())
        _, names = self._item(rows.args["from_"].this, ctes)
        windows = _windows_of(rows, call)
        table.replace(exp.Subquery(this=windows, alias=exp.TableAlias(this=exp.to_identifier(alias))))
        return alias, [*names, START, END]

    def _join(self, join: exp.Join, items: Items, right: tuple[str, list[str]]) -> list[str]:
        """The columns that the join merges; NATURAL is spelled out, since ``_tp_time`` is not part of it."""
        if join.method.upper() == "NATURAL":
            left = [name for _, names in items for name in names]
            common = [name for name in right[1] if name in left and name not in (TIME, SEQUENCE)]
            join.set("method", None)
            join.set("using", [exp.to_identifier(name) for name in common])
        if (on := join.args.get("on")) is not None:
            conditions, _ = terms_of(on)
            times: list[exp.Expr] = [exp.column(TIME, table=items[0][0]), exp.column(TIME, table=right[0])]
            join.set("on", bounded_on(exp.and_(*conditions), times, self._kind, place_of(join, "JOIN .. ON")))
        if join.method.upper() == "ASOF":
            as_duckdb(join, {name for _, names in items for name in names}, self._relation(*right))
        return [identifier.name for identifier in join.args.get("using") or ()]

    def _relation(self, alias: str, names: Sequence[str]) -> Right | None:
        """A FROM item that is a stream or a view, with its primary key."""
        if alias not in self.named:
            return None
        definition = self.catalog.get(self.named[alias]).definition
        schema = definition.schema if isinstance(definition, CreateStream) else None
        return Right(alias, names, schema.primary_key if schema is not None else ())

    def _kind(self, expression: exp.Expr) -> pa.DataType | None:
        """The type of an expression over columns of relations; None where others are among them."""
        fields: dict[str, pa.DataType] = {}

        def known(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Column):
                return node
            schemas = [self.read[name] for alias, name in self.named.items() if node.table in ("", alias)]
            found = [schema.field(node.name).type for schema in schemas if node.name in schema.names]
            internal = node.sql()
            fields.update({internal: found[0]} if found else {})
            return exp.column(exp.to_identifier(internal, quoted=True))

        over_fields = expression.copy().transform(known)
        if any(column.name not in fields for column in over_fields.find_all(exp.Column)):
            return None
        return expressions.types_of(pa.schema(list(fields.items())), [to_duckdb(over_fields)])[0]

    def _system(self, table: exp.Table, alias: str) -> tuple[str, list[str]]:
        name = f"{DATABASE}.{table.name}"
        schema = SYSTEM_TABLES.get(name)
        if schema is None:
            raise UnknownName(
                f'there is no "{name}"', where=place_of(table, "FROM"), fix=suggestion(name, SYSTEM_TABLES)
            )
        self.read[name] = schema
        _rename(table, name, alias, [])
        return alias, schema.names

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


def _refuse_join(join: exp.Join) -> None:
    """What has no meaning for rows that are there all at once."""
    method, side, kind = (str(word).upper() for word in (join.method, join.side, join.kind))
    place = place_of(join, "JOIN")
    if method in ("LATEST", "ANY"):
        raise Unsupported(f"{method} JOIN over table(x) is not supported", where=place, fix="ASOF JOIN")
    if event_time(join.this) is not None:
        raise Unsupported(
            "FOR SYSTEM_TIME AS OF a time is not supported over table(x), which holds no versions of its rows",
            where=place,
            fix="ASOF JOIN with a stream that keeps every version as a row",
        )
    if side == "RIGHT" and (method == "ASOF" or kind in ("SEMI", "ANTI")):
        raise Unsupported(
            f"RIGHT {method or kind} JOIN over table(x) is not supported",
            where=place,
            fix=f"turn the sides: LEFT {method or kind} JOIN",
        )


def _windows_of(rows: exp.Select, call: WindowCall) -> exp.Expr:
    """Each row once for every window: the last that begins at or before its time, and those before that hold it too."""
    size, slide = call.size_ms * 1_000, call.slide_ms * 1_000
    time = f"in_window.{expressions.quoted(call.time.name)}"
    since = f"((epoch_us({time}) % {slide}) + {slide}) % {slide}"
    start = f"{time} - to_microseconds({since} + UNNEST(RANGE({-(-size // slide)})) * {slide})"
    each = f"SELECT in_window.*, {start} AS {START} FROM rows AS in_window WHERE {time} IS NOT NULL"
    end = f"{START} + to_microseconds({size})"
    inside = f"SELECT *, {end} AS {END} FROM ({each}) AS in_window WHERE {end} > {time}"
    windows = sqlglot.parse_one(inside, read="duckdb")
    source = next(table for table in windows.find_all(exp.Table) if table.name == "rows")
    source.replace(exp.Subquery(this=rows, alias=exp.TableAlias(this=exp.to_identifier("in_window"))))
    return windows


def _inner_queries(select: exp.Select) -> list[exp.Query]:
    """The queries in the expressions of ``select``, outermost only."""
    clauses = [select.args.get(name) for name in ("where", "having", "qualify", "order")]
    parts = [*select.expressions, *(clause for clause in clauses if clause is not None)]
    walked = (node for part in parts for node in part.walk(prune=lambda node: isinstance(node, exp.Query)))
    return [node for node in walked if isinstance(node, exp.Query)]


def _check_names(select: exp.Select, items: Items) -> None:
    """Plain columns of the select list must exist: DuckDB would take them for the names that they are given."""
    for projection in select.expressions:
        if not isinstance(projection, exp.Column) or isinstance(projection.this, exp.Star) or projection.table:
            continue
        known = {name for _, names in items for name in names} | {TIME, DELTA_COLUMN}
        if projection.name.casefold() not in {name.casefold() for name in known}:
            raise UnknownName(
                f'there is no column "{projection.name}"',
                where=place_of(projection, "SELECT"),
                fix=suggestion(projection.name, known - {TIME, DELTA_COLUMN}),
            )


def _rename(table: exp.Table, name: str, alias: str, keys: Sequence[str]) -> None:
    """The relation under its alias; of ``changelog(x, k)`` the last row of each key."""
    named = exp.Table(this=exp.to_identifier(name, quoted=True))
    as_alias = exp.TableAlias(this=exp.to_identifier(alias))
    if not keys:
        named.set("alias", as_alias)
        table.replace(named)
        return
    numbered = exp.Select(expressions=[exp.Star(), exp.alias_(_row_number(), "arrived")]).from_(named)
    last = exp.Window(this=exp.RowNumber(), partition_by=[exp.column(key) for key in keys], order=_latest_first())
    rows = exp.Select(expressions=[exp.Star(except_=[exp.to_identifier("arrived")])]).from_(
        numbered.subquery("numbered")
    )
    rows.set("qualify", exp.Qualify(this=exp.EQ(this=last, expression=exp.Literal.number(1))))
    table.replace(exp.Subquery(this=rows, alias=as_alias))


def _row_number() -> exp.Expr:
    return exp.Window(this=exp.RowNumber())


def _latest_first() -> exp.Order:
    return exp.Order(expressions=[exp.Ordered(this=exp.column("arrived"), desc=True)])


def _projected(select: exp.Select, items: Items, merged: Sequence[str], texts: Sequence[str]) -> list[str]:
    """Replaces the select list by one in which every column has its name."""
    found: list[tuple[str, str, exp.Expr]] = []
    for position, projection in enumerate(select.expressions):
        star = projection.this if isinstance(projection, exp.Column) else projection
        if isinstance(star, exp.Star):
            found += _starred(star, projection.table if isinstance(projection, exp.Column) else "", items, merged)
        elif projection.alias:
            found.append((projection.alias, "", projection.unalias()))
        elif isinstance(projection, exp.Column):
            if projection.name != DELTA_COLUMN:
                found.append((projection.name, projection.table, projection))
        else:
            written = texts[position] if len(texts) == len(select.expressions) else projection.sql(dialect="clickhouse")
            found.append((written, "", projection))
    names = output_names([(name, table) for name, table, _ in found])
    select.set(
        "expressions",
        [
            exp.alias_(expression.copy(), name, quoted=True)
            for name, (_, _, expression) in zip(names, found, strict=True)
        ],
    )
    return names


def _starred(star: exp.Star, table: str, items: Items, merged: Sequence[str]) -> list[tuple[str, str, exp.Expr]]:
    excluded = {column.name for column in star.args.get("except_") or star.args.get("except") or ()}
    columns: list[tuple[str, str, exp.Expr]] = []
    if not table:
        columns += [(name, "", exp.column(name)) for name in merged]
    for alias, names in items:
        if table in ("", alias):
            columns += [(name, alias, exp.column(name, table=alias)) for name in names if table or name not in merged]
    return [column for column in columns if column[0] not in excluded]
