"""SHOW, DESCRIBE, SHOW CREATE: what there is, as rows."""

# ruff: noqa: PLC0415 - what only one of them needs, the planner above all, is imported when it is asked for

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from dovetail.changelog.dead_letter import is_dead_letter_topic, topic_of
from dovetail.changelog.errors import Unsupported
from dovetail.changelog.schema import TIME, Column, Included
from dovetail.services.liveness import query_statuses
from dovetail.services.session.context import Context
from dovetail.services.session.live.watermark_texts import watermark_texts
from dovetail.services.session.result import Rows, Text
from dovetail.sql.catalog import Query, Relation, What
from dovetail.sql.catalog.like import matches
from dovetail.sql.catalog.stored_relations import target
from dovetail.sql.query_settings import SETTINGS
from dovetail.sql.syntax.calls import DATABASES
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import (
    CreateDictionary,
    CreateFunction,
    CreateIndex,
    CreateStream,
    CreateView,
    Describe,
    Show,
    ShowCreate,
)
from dovetail.sql.syntax.types import display, type_shown
from dovetail.sql.system_tables import DEAD_LETTERS

INSTANT = pa.timestamp("ms", tz="UTC")
_FROM_RECORD = {TIME: "the time of the record"}
_WIDE = ("columns", "definition", "error")


def show(context: Context, statement: Show) -> Rows:
    match statement.what:
        case "settings":
            return _settings(statement.like)
        case "dead letters":
            from dovetail.services.session.dead_letters.listing import show_dead_letters

            return show_dead_letters(context, statement)
        case "state":
            from dovetail.services.session.live.show_state import show_state

            return show_state(context, statement)
        case "indexes":
            return _named(context, What.INDEX, statement.like)
        case "dictionaries":
            return _named(context, What.DICTIONARY, statement.like)
        case what:
            return _LISTINGS[what](context, statement.like)


def _streams(context: Context, like: str | None) -> Rows:
    partitions = context.topics.partitions()
    lines = []
    for relation in context.catalog.relations(What.STREAM, like):
        statement = relation.definition
        assert isinstance(statement, CreateStream)
        topic = statement.topic or statement.name
        lines.append(
            {
                "name": statement.name,
                "kind": statement.kind.value,
                "primary key": ", ".join(statement.primary_key),
                "topic": topic,
                "partitions": partitions.get(topic),
                "columns": ", ".join(column.name for column in statement.schema.readable),
            }
        )
    return _rows(
        lines,
        name=pa.string(),
        kind=pa.string(),
        **{"primary key": pa.string()},
        topic=pa.string(),
        partitions=pa.int32(),
        columns=pa.string(),
    )


def _schemas(context: Context, like: str | None) -> Rows:
    """``public`` is that of names without one."""
    names = [*DATABASES[1:], *context.catalog.schemas()]
    return _rows([{"name": name} for name in names if like is None or matches(name, like)], name=pa.string())


def _topics(context: Context, like: str | None) -> Rows:
    """Every topic of the broker that a client may see, and what Dovetail knows of it."""
    holds: dict[str, list[str]] = {}
    for relation in context.catalog.relations(What.STREAM):
        assert isinstance(relation.definition, CreateStream)
        holds.setdefault(relation.definition.topic or relation.name, []).append(f"stream {relation.name}")
    for query in [one for one in context.catalog.queries() if not one.generates]:
        holds.setdefault(query.topic, []).append(f"{'view' if query.name == query.view else 'fragment'} {query.name}")
        holds.setdefault(topic_of(query.name), []).append(f"dead letters of {query.name}")
    lines = [
        {"topic": topic, "partitions": count, "holds": ", ".join(holds.get(topic, ()))}
        for topic, count in sorted(context.topics.partitions().items())
        if like is None or matches(topic, like)
    ]
    return _rows(lines, topic=pa.string(), partitions=pa.int32(), holds=pa.string())


def _views(context: Context, like: str | None) -> Rows:
    from dovetail.services.session.live.view_backlogs import NO_BACKLOG, view_backlogs

    found = {one.query.name: one for one in query_statuses(context.catalog, context.now_ms)}
    behind, note = view_backlogs(context, [one.query for one in found.values()])
    lines = []
    for relation in context.catalog.relations(What.VIEW, like):
        statement, one = relation.definition, found.get(relation.name)
        assert isinstance(statement, CreateView)
        uses = context.catalog.used(statement.name)
        into = target(statement, uses)
        lines.append(
            {
                "name": statement.name,
                "topic": one.query.topic if one is not None else "",
                "state": one.shown_state if one is not None else _without_query(statement),
                **behind.get(relation.name, NO_BACKLOG),
                "reads": ", ".join(used for used in uses if used != into),
                "used by": ", ".join(user.name for user in context.catalog.users(statement.name)),
                "definition": relation.shown,
            }
        )
    columns = ("name", "topic", "state", *NO_BACKLOG, "reads", "used by", "definition")
    rows = _rows(lines, **(dict.fromkeys(columns, pa.string()) | {"backlog": pa.int64()}))
    return replace(rows, note=note)


def _without_query(view: CreateView) -> str:
    """Of a view of constants, or one whose query was terminated, the rows stand."""
    return "no query runs" if view.materialized else "not materialized"


def _queries(context: Context, like: str | None) -> Rows:
    lines = [
        {
            "name": query.name,
            "engine": query.engine,
            "state": one.shown_state,
            "rows in": _count(query, "rows_in"),
            "rows out": _count(query, "rows_out"),
            "rejected": _count(query, "rejected"),
            "failed calls": _count(query, "failed"),
            "late": _late(query),
            "watermark": ", ".join(f"{name} {text}" for name, text in watermark_texts(query).items()),
            "restarts": query.restarts,
            "packed with": ", ".join(query.progress.get("packed_with", ())),
            "topic": query.topic,
            "since": datetime.fromtimestamp(query.created_ms / 1000, UTC),
            "error": one.why,
        }
        for one in query_statuses(context.catalog, context.now_ms)
        for query in [one.query]
        if like is None or matches(query.name, like)
    ]
    counts = {name: pa.int64() for name in ("rows in", "rows out", "rejected", "failed calls")}
    return _rows(
        lines,
        name=pa.string(),
        engine=pa.string(),
        state=pa.string(),
        **counts,
        late=pa.string(),
        watermark=pa.string(),
        restarts=pa.int64(),
        **{"packed with": pa.string()},
        topic=pa.string(),
        since=INSTANT,
        error=pa.string(),
    )


def _count(query: Query, name: str) -> int | None:
    counts = query.progress.get("counts", query.progress)
    value = counts.get(name) if isinstance(counts, Mapping) else None
    return value if isinstance(value, int) else None


def _late(query: Query) -> str:
    """Rows behind the watermark, by input: ``orders 3, payments 1``."""
    late = query.progress.get("late", {})
    return ", ".join(f"{name} {count}" for name, count in sorted(late.items()) if count)


def _settings(like: str | None) -> Rows:
    lines = [
        {
            "name": setting.name,
            "type": setting.type.__name__,
            "unit": setting.unit,
            "default": "" if setting.default is None else str(setting.default),
            "meaning": setting.help,
        }
        for setting in SETTINGS
        if like is None or matches(setting.name, like)
    ]
    return _rows(lines, name=pa.string(), type=pa.string(), unit=pa.string(), default=pa.string(), meaning=pa.string())


def _named(context: Context, what: What, like: str | None) -> Rows:
    lines = [
        {"name": relation.name, "definition": relation.shown} for relation in context.catalog.relations(what, like)
    ]
    return _rows(lines, name=pa.string(), definition=pa.string())


def _functions(context: Context, like: str | None) -> Rows:
    from dovetail.sql.functions.own_functions import usage_of

    lines = [
        {
            "name": definition.name,
            "arguments": usage_of(definition, Rules.TIMEPLUS).partition("(")[2].removesuffix(")"),
            "returns": display(definition.returns, Rules.TIMEPLUS),
            "volatile": "yes" if definition.volatile else "",
            "used by": ", ".join(user.name for user in context.catalog.users(definition.name)),
            "definition": relation.shown,
        }
        for relation in context.catalog.relations(What.FUNCTION, like)
        if isinstance(definition := relation.definition, CreateFunction)
    ]
    columns = ("name", "arguments", "returns", "volatile", "used by", "definition")
    return _rows(lines, **dict.fromkeys(columns, pa.string()))


def describe(context: Context, statement: Describe) -> Rows:
    """The columns of a stream, a view or a dictionary, the arguments of a function and what it returns; of a topic that
    is none of these, what PRINT shows of its records.
    """
    if is_dead_letter_topic(statement.name):
        from dovetail.services.session.dead_letters.dead_letter_topic import expect_dead_letter_topic

        expect_dead_letter_topic(context, statement.name, "DESCRIBE")
        return _columns([(field.name, field.type, None) for field in DEAD_LETTERS], (), Rules.TIMEPLUS)
    from dovetail.services.session.tail.topic_views import relation_of, topic_view

    relation = relation_of(context, statement.name)
    if relation is None:
        _, view = topic_view(context, statement.name, relation)
        return _columns([(field.name, field.type, None) for field in view.schema], (), Rules.TIMEPLUS)
    definition = relation.definition
    if isinstance(definition, CreateIndex):
        raise Unsupported(f'"{relation.name}" is an index of {definition.stream}', fix=f"DESCRIBE {definition.stream}")
    if isinstance(definition, CreateFunction):
        return _signature(definition)
    if isinstance(definition, CreateDictionary):
        return _columns(
            [(column.name, column.type, column) for column in definition.columns],
            definition.primary_key,
            Rules.TIMEPLUS,
        )
    from dovetail.sql.planner import stream_of

    stream = stream_of(context.catalog, statement.name)
    columns: list[tuple[str, pa.DataType, Column | None]] = []
    columns += [(column.name, column.type, column) for column in stream.schema.columns]
    columns += [(one.name, one.type, None) for one in stream.schema.included]
    if stream.timed and TIME not in [name for name, _, _ in columns]:
        columns.append((TIME, INSTANT, None))
    parts = {one.name: _part(one) for one in stream.schema.included}
    return _columns(columns, stream.schema.primary_key, stream.rules, _FROM_RECORD | parts)


def _signature(function: CreateFunction) -> Rows:
    lines = [(name, kind, "argument") for name, kind in function.arguments]
    lines.append((function.name, function.returns, "volatile result" if function.volatile else "result"))
    return _rows(
        [{"name": name, "type": display(kind, Rules.TIMEPLUS), "is": what} for name, kind, what in lines],
        **dict.fromkeys(("name", "type", "is"), pa.string()),
    )


def _part(included: Included) -> str:
    """What the column is of the record."""
    return f"the {included.part.value} {included.header}".strip() + " of the record"


def _columns(
    columns: Iterable[tuple[str, pa.DataType, Column | None]],
    primary_key: Sequence[str],
    rules: Rules,
    from_record: Mapping[str, str] = _FROM_RECORD,
) -> Rows:
    lines = [
        {
            "column": name,
            "type": type_shown(column, rules) if column is not None else display(kind, rules),
            "null": "" if name in primary_key or (column is not None and not column.nullable) else "yes",
            "default": (column.default or "") if column is not None else from_record.get(name, ""),
            "key": "primary key" if name in primary_key else "",
        }
        for name, kind, column in columns
    ]
    return _rows(lines, column=pa.string(), type=pa.string(), null=pa.string(), default=pa.string(), key=pa.string())


def show_create(context: Context, statement: ShowCreate) -> Text:
    """The user's own text, its passwords masked."""
    relation: Relation = context.catalog.get(statement.name)
    return Text(relation.shown)


def _rows(lines: Sequence[Mapping[str, Any]], **columns: pa.DataType) -> Rows:
    arrays = [pa.array([line[name] for line in lines], kind) for name, kind in columns.items()]
    return Rows(pa.table(arrays, names=list(columns)), wide=tuple(name for name in columns if name in _WIDE))


_LISTINGS: Mapping[str, Callable[[Context, str | None], Rows]] = {
    "streams": _streams,
    "views": _views,
    "queries": _queries,
    "topics": _topics,
    "schemas": _schemas,
    "functions": _functions,
}
