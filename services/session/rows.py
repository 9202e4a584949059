"""INSERT, UPDATE, DELETE: statements become records of the stream's topic.

Each is one transaction: who reads committed records sees all of its rows or none.

UPDATE and DELETE look at the content of the topic as of now and write what changes it. Records that other producers
write between the look and the write are not seen: the last record of a key wins, as always in a topic.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa
from sqlglot import exp

from dovetail.broker.registry.client import schemas_of
from dovetail.changelog.changes import Changes
from dovetail.changelog.encode import Encoded, records_of
from dovetail.changelog.encodings.registry import format_kind
from dovetail.changelog.errors import SqlError, UnknownName, Unsupported
from dovetail.changelog.formats import decimal_text
from dovetail.changelog.formats.members import Member
from dovetail.changelog.formats.record_parts import expect_written
from dovetail.changelog.schema import EVENT_TIME_TYPE, TIME, Column, Kind, StreamSchema
from dovetail.changelog.suggest import suggestion
from dovetail.changelog.wording import counted, type_words
from dovetail.services.session.assignment import assigned_rows
from dovetail.services.session.contents import answer
from dovetail.services.session.context import Context
from dovetail.services.session.frames.fitted_columns import fitted
from dovetail.services.session.result import Done, Rows
from dovetail.services.session.typed_rows import changes_of, expect_values, typed_rows, written_columns
from dovetail.sql.bind.bounded.bounded_query import snapshot_of
from dovetail.sql.bind.reading import dialect_of, expression_rules, with_dialect
from dovetail.sql.compile.snapshot import Snapshot
from dovetail.sql.planner import plan_query, plan_snapshot, stream_of
from dovetail.sql.relations import Relations, Stream
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import Computed, CreateStream, CreateView, Delete, Insert, Literal, Select, Update

_Change = TypeVar("_Change", Insert, Update, Delete)
_ColumnCast = Callable[[pa.ChunkedArray, pa.DataType, str], pa.ChunkedArray]


def insert(context: Context, statement: Insert) -> Done | Rows:
    stream = writable(context.catalog, statement.stream)
    schema = stream.schema
    statement = with_columns(schema, statement)
    returning = _returning(context, stream, statement)
    if statement.query is not None:
        snapshot = snapshot_for(context.catalog, schema.name, stream.rules, statement.query)
        rows = _answered(context, stream, statement.columns, snapshot)
    else:
        rows = typed_rows(schema, statement.columns, _values(context, stream, statement))
    done = write_rows(context, stream, rows)
    return done if returning is None else _returned(returning, stream, rows)


def with_columns(schema: StreamSchema, statement: Insert) -> Insert:
    """The statement with the columns that ``* EXCEPT`` leaves. Raises UnknownName for one that there is not."""
    if not statement.left_out:
        return statement
    known = [column.name for column in schema.columns]
    for name in statement.left_out:
        if name not in (*known, TIME):
            raise UnknownName(f'"{schema.name}" has no column "{name}"', where="INSERT", fix=suggestion(name, known))
    others = tuple(name for name in known if name not in statement.left_out)
    if not others:
        raise SqlError(f'no column of "{schema.name}" is left', where="INSERT", fix="leave fewer out")
    return replace(statement, columns=others, left_out=())


def insert_answer(context: Context, name: str, columns: Sequence[str], query: Snapshot) -> Done:
    """The columns of the query, in order, into those named, or else declared."""
    stream = writable(context.catalog, name)
    return write_rows(context, stream, _answered(context, stream, columns, query))


def _answered(context: Context, stream: Stream, columns: Sequence[str], query: Snapshot) -> pa.Table:
    """The rows that ``insert_answer`` writes."""
    names = filled_columns(stream.schema, columns, query)
    found = dict(zip(names, answer(context, query).columns, strict=True))
    rows = Changes.of(_declared(stream.schema, found, _cast)).table
    expect_values(stream.schema, rows)
    return rows


def filled_columns(schema: StreamSchema, columns: Sequence[str], query: Snapshot) -> Sequence[str]:
    """Those that the columns of the query go to. Raises SqlError where they are fewer, or more."""
    names = columns or [column.name for column in schema.columns]
    if len(names) != len(query.columns):
        given, filled = counted(len(query.columns), "column"), counted(len(names), "column")
        raise SqlError(
            f"the query has {given}, but INSERT fills {filled}: {', '.join(names)}",
            where=f'INSERT INTO "{schema.name}"',
            fix=f"select a value for each, or name those that it gives: INSERT INTO {schema.name} (..) SELECT ..",
        )
    return names


def _returning(context: Context, stream: Stream, statement: Insert | Update | Delete) -> Snapshot | None:
    """What RETURNING asks of the rows that are written, before any is; None where it asks nothing."""
    if not statement.returning:
        return None
    name = stream.schema.name
    if stream.rules is Rules.TIMEPLUS:
        raise Unsupported(
            "RETURNING is for tables", where="RETURNING", fix=f"leave it out, and ask SELECT .. FROM table({name})"
        )
    try:
        return _snapshot(context.catalog, _content_query(name, statement.returning, stream.rules), stream.rules)
    except SqlError as fault:
        raise type(fault)(fault.what, where=f"RETURNING {statement.returning}", fix=fault.fix) from None


def _returned(returning: Snapshot, stream: Stream, rows: pa.Table) -> Rows:
    columns = rows.select([column.name for column in stream.schema.columns])
    return Rows(returning.run({stream.schema.name: columns}))


def write_rows(context: Context, stream: Stream, rows: pa.Table) -> Done:
    """``rows``, of its columns and with their deltas, as records of its topic; the next statement reads them."""
    _write(context, stream.topic, records_of(stream.schema, rows, schemas_of(context.brokers)))
    return Done(f"inserted {counted(rows.num_rows, 'row')}")


def insert_table(context: Context, name: str, table: pa.Table) -> int:
    """The rows of ``table``, whose columns are found by name, into a stream; how many they were."""
    stream = writable(context.catalog, name)
    if not table.num_columns:
        return 0
    given: dict[str, pa.ChunkedArray] = {}
    for column, values in zip(table.column_names, table.columns, strict=True):
        if column in given:
            raise SqlError(
                f'the column "{column}" is there twice', where=f'insert into "{name}"', fix="rename or drop one of them"
            )
        given[column] = values
    rows = Changes.of(_declared(stream.schema, given, fitted)).table
    expect_values(stream.schema, rows)
    _write(context, stream.topic, records_of(stream.schema, rows, schemas_of(context.brokers)))
    return int(rows.num_rows)


def _values(context: Context, stream: Stream, statement: Insert) -> Sequence[Sequence[Literal]]:
    """The rows of VALUES; those for a table as PostgreSQL assigns them."""
    if stream.rules is Rules.TIMEPLUS:
        return _computed(context, stream, statement.rows)
    computes = any(isinstance(value, Computed) for row in statement.rows for value in row)
    if (computes or "\\" in statement.text) and not statement.bound:
        # A backslash is a sign like any other in the texts of tables, and ROW(..) is a row.
        statement = in_dialect_of(stream, statement)
    computed = _computed(context, stream, statement.rows)
    return assigned_rows(stream.schema, statement.columns, computed)


def _computed(
    context: Context, stream: Stream, rows: Sequence[Sequence[Literal | Computed]]
) -> Sequence[Sequence[Literal]]:
    """The rows of VALUES with their expressions as values; all are computed at one moment."""
    expressions = [value.text for row in rows for value in row if isinstance(value, Computed)]
    if not expressions:
        return rows
    items = ", ".join(f"({text}) AS c{place}" for place, text in enumerate(expressions))
    statement = parse_one(f"SELECT {items}", stream.rules)
    assert isinstance(statement, Select)
    plan = plan_query("values", replace(statement, settings={"dialect": stream.rules.value}), context.catalog)
    assert plan.snapshot is not None
    answers = iter(column[0].as_py() for column in answer(context, plan.snapshot).columns)
    return [[next(answers) if isinstance(value, Computed) else value for value in row] for row in rows]


def _write(context: Context, topic: str, records: Encoded) -> None:
    """Who has written sees it: the next statement reads the rows of this one."""
    context.topics.await_committed(topic, context.writer.write_whole(topic, records))


def snapshot_for(catalog: Relations, target: str, target_rules: Rules, query: Select) -> Snapshot:
    """A query whose rows go into ``target``: over what its tables hold now, as RisingWave has it; of streams, which
    Timeplus reads without end, only where it says ``table(x)``.
    """
    query = with_dialect(query, catalog, target_rules)
    if expression_rules(query, catalog) is Rules.RISINGWAVE:
        return plan_snapshot(query, catalog)
    plan = plan_query("insert", query, catalog)
    if plan.snapshot is None:
        raise Unsupported(
            "INSERT .. SELECT over a stream would never end",
            where=f'INSERT INTO "{target}"',
            fix=f"CREATE MATERIALIZED VIEW v INTO {target} AS SELECT .., or SELECT .. FROM table(x)",
        )
    return plan.snapshot


def _declared(schema: StreamSchema, found: Mapping[str, pa.ChunkedArray], cast: _ColumnCast) -> pa.Table:
    """The declared columns, from what was found, else from their defaults."""
    known = [column.name for column in schema.columns]
    for name in found:
        expect_written(schema, name, "INSERT")
        if name not in known and (name != TIME or not format_kind(schema.value.kind).named):
            raise UnknownName(f'"{schema.name}" has no column "{name}"', where="INSERT", fix=suggestion(name, known))
    count = len(next(iter(found.values())))
    columns = {}
    for column in schema.columns:
        given = found.get(column.name)
        columns[column.name] = (
            pa.chunked_array([pa.array([Member.of(column).default] * count, column.type)])
            if given is None
            else cast(given, column.type, column.name)
        )
    if TIME in found and TIME not in columns:
        columns[TIME] = cast(found[TIME], EVENT_TIME_TYPE, TIME)
    return pa.table(columns)


def update(context: Context, statement: Update) -> Done | Rows:
    """Each row that WHERE holds for, with the assigned columns computed from the row before."""
    stream = changeable(context.catalog, statement.stream, "UPDATE")
    statement = in_dialect_of(stream, statement)
    returning = _returning(context, stream, statement)
    schema = stream.schema
    known = [column.name for column in schema.columns]
    both = answer(context, matching(context.catalog, stream, statement))
    old = both.select(range(len(known))).rename_columns(known)
    columns = {
        column.name: _cast(both.column(len(known) + place), column.type, column.name)
        for place, column in enumerate(schema.columns)
    }
    after = pa.table(columns)
    expect_values(schema, after)
    _refuse_doubles(schema, after)
    _write(
        context,
        stream.topic,
        records_of(schema, changes_of(old.cast(after.schema), after), schemas_of(context.brokers)),
    )
    done = Done(f"updated {counted(both.num_rows, 'row')}")
    return done if returning is None else _returned(returning, stream, after)


def _assigned(column: Column, value: exp.Expr | None, known: Collection[str]) -> exp.Expr:
    """What a column becomes: itself where nothing is assigned; DEFAULT is the word, unless a column is called so."""
    if value is None:
        return exp.column(column.name, quoted=True)
    default = isinstance(value, exp.Column) and value.sql().upper() == "DEFAULT" and "default" not in known
    if not default:
        return value.copy()
    return exp.Null() if column.default is None else exp.Literal.string(column.default)


def delete(context: Context, statement: Delete) -> Done | Rows:
    stream = changeable(context.catalog, statement.stream, "DELETE")
    statement = in_dialect_of(stream, statement)
    returning = _returning(context, stream, statement)
    rows = answer(context, matching(context.catalog, stream, statement))
    names = written_columns(stream.schema)
    gone = rows.rename_columns(names)
    _write(context, stream.topic, records_of(stream.schema, Changes.of(gone, -1).table, schemas_of(context.brokers)))
    done = Done(f"deleted {counted(rows.num_rows, 'row')}")
    return done if returning is None else _returned(returning, stream, gone)


def matching(catalog: Relations, stream: Stream, statement: Update | Delete) -> Snapshot:
    """The rows that WHERE holds for: their declared columns, then what UPDATE makes of each."""
    name = stream.schema.name
    query = _content_query(name)
    columns = [exp.column(column.name, quoted=True) for column in stream.schema.columns]
    more = _assigned_columns(stream.schema, statement) if isinstance(statement, Update) else []
    query.set("expressions", [exp.alias_(column, f"c{place}") for place, column in enumerate([*columns, *more])])
    if statement.where is not None:
        query.set("where", exp.Where(this=statement.where.copy()))
    return _snapshot(catalog, query, stream.rules)


def _assigned_columns(schema: StreamSchema, statement: Update) -> list[exp.Expr]:
    assigned = dict(statement.assignments)
    known = [column.name for column in schema.columns]
    for name in assigned:
        expect_written(schema, name, "UPDATE .. SET")
        if name not in known:
            raise UnknownName(
                f'"{schema.name}" has no column "{name}"', where="UPDATE .. SET", fix=suggestion(name, known)
            )
    return [_assigned(column, assigned.get(column.name), known) for column in schema.columns]


def _content_query(name: str, items: str = "1", rules: Rules = Rules.TIMEPLUS) -> exp.Select:
    """``items``, a select list, over what a table holds. Raises SqlError where it is none."""
    quoted = '"' + name.replace('"', '""') + '"'
    statement = parse_one(f"SELECT {items} FROM table({quoted}) AS {quoted}", rules)
    query = statement.query if isinstance(statement, Select) else None
    if not isinstance(query, exp.Select):
        raise SqlError("it is no select list", fix="*, or columns and expressions of them")
    return query


def in_dialect_of(stream: Stream, statement: _Change) -> _Change:
    """The statement with its expressions as the dialect of its stream reads them."""
    if not statement.text or stream.rules is Rules.TIMEPLUS:
        return statement
    again = parse_one(statement.text, stream.rules)
    assert isinstance(again, type(statement))
    # Its text ends before it.
    return replace(again, returning=statement.returning)


def _snapshot(catalog: Relations, query: exp.Select, rules: Rules) -> Snapshot:
    def view_stream(view: CreateView) -> Stream:
        return stream_of(catalog, view.name)

    return snapshot_of(query, catalog, view_stream, dialect_of(rules, catalog))


def writable(catalog: Relations, name: str) -> Stream:
    """The stream that takes rows. Raises UnknownName, Unsupported."""
    definition = catalog.get(name).definition
    if not isinstance(definition, CreateStream):
        raise Unsupported(
            f'"{name}" is not a stream: its rows are made by its query', fix="INSERT INTO the streams that it reads"
        )
    if definition.generated:
        raise Unsupported(
            f'the rows of "{name}" are generated', fix=f"PAUSE {name} and RESUME {name}; or CREATE a stream to write to"
        )
    if definition.source:
        raise Unsupported(
            f'"{name}" is a source: its rows come from elsewhere', fix=f"CREATE TABLE {name} .. takes INSERT"
        )
    return Stream.declared(definition)


def changeable(catalog: Relations, name: str, verb: str) -> Stream:
    """The stream whose rows may be updated and deleted. Raises UnknownName, Unsupported."""
    stream = writable(catalog, name)
    if stream.schema.kind is Kind.APPEND:
        raise Unsupported(
            f'"{name}" is append-only: its rows are never changed',
            where=verb,
            fix="CREATE MUTABLE STREAM .. PRIMARY KEY, or CREATE TABLE .. without APPEND ONLY",
        )
    return stream


def _refuse_doubles(schema: StreamSchema, rows: pa.Table) -> None:
    """An UPDATE that gives two rows one primary key would lose one of them."""
    if not schema.primary_key:
        return
    keys = rows.select(schema.primary_key)
    distinct = keys.group_by(list(schema.primary_key)).aggregate([]).num_rows
    if distinct < rows.num_rows:
        raise SqlError(
            f"the UPDATE gives {counted(rows.num_rows, 'row')} only {counted(distinct, 'primary key')} "
            f"({', '.join(schema.primary_key)})",
            where=f'"{schema.name}"',
            fix="narrow WHERE, or leave the primary key as it is",
        )


def _cast(column: pa.ChunkedArray, kind: pa.DataType, name: str) -> pa.ChunkedArray:
    if column.null_count == len(column):
        # NULL alone has a type that not every other has a cast from.
        return pa.chunked_array([pa.nulls(len(column), kind)])
    try:
        return decimal_text.cast(column, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as fault:
        raise SqlError(
            f"a value does not fit column {name}: {str(fault).splitlines()[0]}",
            fix=f"cast it: CAST(.. AS {type_words(kind)})",
        ) from None
