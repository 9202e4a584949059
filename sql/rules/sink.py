"""What leaves the query, as its topic takes it: columns, key, and whether rows of one key meet before."""

from __future__ import annotations

from dataclasses import replace

from dovetail.changelog.encodings.registry import format_kind
from dovetail.changelog.encodings.schema_id_framing.subjects import SCHEMA_ID_FRAMED
from dovetail.changelog.encodings.settings import DEBEZIUM
from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.changelog.formats.record_parts import expect_written
from dovetail.changelog.schema import JSON, Kind, StreamSchema
from dovetail.changelog.wording import type_words
from dovetail.sql.engines import Engine
from dovetail.sql.expressions.evaluate import family
from dovetail.sql.plan.nodes import Output
from dovetail.sql.plan.output import output, together
from dovetail.sql.plan.output_clock import output_clock
from dovetail.sql.plan.query_plan import QueryPlan
from dovetail.sql.relations import Stream


def sink(plan: QueryPlan) -> QueryPlan:
    """Raises SqlError or Unsupported for columns that are not those of the target, and for a key that there is not."""
    topic = plan.name if plan.target is None else plan.target.topic
    made = output(plan.name, topic, plan.rows, plan.columns, plan.marked, plan.settings)
    return replace(plan, output=_timed(made, plan) if plan.target is None else _into(made, plan.target))


def _timed(made: Output, plan: QueryPlan) -> Output:
    """``made`` with the watermark of its rows, if they stay: what can be taken back is never in."""
    stays = not made.updating and not made.marked
    return replace(made, clock=output_clock(made.input, made.columns)) if plan.emits_watermark and stays else made


def _into(made: Output, target: Stream) -> Output:
    """The output as ``target`` takes it: its columns, and the Kafka key is its primary key."""
    schema, names = target.schema, {name for name, _ in made.columns}
    declared = {column.name for column in schema.columns}
    for name in sorted(names):
        expect_written(schema, name, "INTO")
    if not names <= declared:
        raise SqlError(
            f'"{schema.name}" has no column "{min(names - declared)}"',
            where="INTO",
            fix=f"rename it with AS; there are: {', '.join(sorted(declared))}",
        )
    for name, expr in made.columns:
        declared = schema.column(name).type
        if family(expr.type) != family(declared):
            raise SqlError(
                f'"{name}" is {type_words(expr.type)}, and the column of "{schema.name}" is {type_words(declared)}',
                where="INTO",
                fix=f"write CAST({name} AS ..) AS {name}",
            )
    if made.updating and schema.kind == Kind.APPEND:
        raise Unsupported(
            f'the rows of the view can be taken back, and "{schema.name}" is append-only',
            where="INTO",
            fix="INTO a stream with mode = 'changelog', or a mutable stream with the view's key",
        )
    made = _formatted(made, schema)
    if schema.kind not in (Kind.UPSERT, Kind.CHANGELOG_KV) or made.key == schema.primary_key:
        return made
    if not set(schema.primary_key) <= names:
        raise SqlError(
            f'the view does not give the primary key of "{schema.name}"',
            where="INTO",
            fix=f"select {', '.join(schema.primary_key)}",
        )
    if made.input.engine == Engine.FAUST:
        return _into_from_lookup(made, schema)
    # Rows of one primary key must come in order, so they meet before they are written.
    return replace(made, key=schema.primary_key, key_names=schema.primary_key, hidden=(), exchanged=True, unique=False)


def _formatted(made: Output, schema: StreamSchema) -> Output:
    """``made`` in the formats of ``schema``. Where columns are told by their places all of them are written."""
    if made.value_format.envelope and not schema.value.envelope:
        raise Unsupported(
            f'the values of "{schema.name}" are no envelopes of Debezium',
            where="SETTINGS output_format",
            fix="INTO a stream with data_format = 'debezium_json', or leave INTO or output_format out",
        )
    made = replace(made, value_format=schema.value, key_format=schema.key)
    if schema.value.envelope:
        made = replace(made, format=DEBEZIUM)
    for place, form, refused in (
        ("values", schema.value, schema.value.kind != JSON.kind),
        ("keys", schema.key, schema.key.kind in SCHEMA_ID_FRAMED),
    ):
        if refused and made.updating and made.input.engine == Engine.FAUST:
            raise Unsupported(
                f"a lookup whose rows can be taken back keeps what it has written as JSON, and the {place} of "
                f'"{schema.name}" are {form.kind}',
                where="INTO",
                fix="INTO a stream of JSON, or leave INTO out",
            )
    if schema.value == JSON:
        return made
    if format_kind(schema.value.kind).named:
        return made
    if schema.primary_key and format_kind(schema.value.kind).single:
        raise Unsupported(
            f'the values of "{schema.name}" are one column, its key another, and a view writes all of its columns',
            where="INTO",
            fix="INTO a stream of JSON",
        )
    columns = dict(made.columns)
    for column in schema.columns:
        if column.name not in columns:
            raise SqlError(
                f'the values of "{schema.name}" hold all of its columns by their places, and the view gives no '
                f'"{column.name}"',
                where="INTO",
                fix=f"select {column.name} as well",
            )
    ordered = tuple((column.name, columns[column.name]) for column in schema.columns)
    return replace(made, columns=ordered, marked=made.marked and schema.kind is not Kind.APPEND)


def _into_from_lookup(made: Output, schema: StreamSchema) -> Output:
    """Rows that are looked up are written partition by partition of the input: those of one key must lie in one."""
    if made.updating and not together(made, schema.primary_key):
        raise Unsupported(
            f'rows of one primary key of "{schema.name}" ({", ".join(schema.primary_key)}) come from several '
            "partitions of what is looked up, and could overtake one another",
            where="INTO",
            fix="INTO a stream with the primary key of the left side of the lookup",
        )
    return replace(made, key=schema.primary_key, key_names=schema.primary_key, hidden=(), unique=False)
