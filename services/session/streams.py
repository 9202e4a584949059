"""CREATE STREAM, TABLE and SOURCE; ALTER. A stream is an entry of the catalog and a topic."""

from __future__ import annotations

from dataclasses import replace

from dovetail.broker.address import BrokerAddress
from dovetail.broker.topic_shapes import TopicShape, config_for
from dovetail.changelog.errors import SqlError, UnknownName, Unsupported
from dovetail.changelog.schema import Kind
from dovetail.changelog.suggest import suggestion
from dovetail.changelog.wording import articled
from dovetail.services.session import topics
from dovetail.services.session.alter.readers import expect_read_alike, with_columns_named
from dovetail.services.session.context import Context
from dovetail.services.session.creation_notes import creation_notes
from dovetail.services.session.drop import expect_disposable
from dovetail.services.session.generated import enter
from dovetail.services.session.if_not_exists import exists_already
from dovetail.services.session.result import Done
from dovetail.services.session.schemas.columns_of_schema import with_columns
from dovetail.services.session.schemas.registration import expect_schema
from dovetail.sql.catalog import Relation
from dovetail.sql.catalog.records import RelationDefinition
from dovetail.sql.catalog.stored_topics import topic_of
from dovetail.sql.planner import stream_of
from dovetail.sql.stream_settings import HISTORY, RETENTION, expect_settings, kept_ms
from dovetail.sql.syntax.alterations import altered
from dovetail.sql.syntax.statements import (
    AlterStream,
    CreateIndex,
    CreateSchema,
    CreateStream,
)

_SHORTEST_SEGMENT_MS = 60_000
_GENERATED_MS = 3_600_000
_OF_SETTINGS = ("retention.ms", "segment.ms", "min.compaction.lag.ms")
"""What settings of a stream say of its topic."""


def create_stream(context: Context, statement: CreateStream) -> Done:
    """An own stream gets a topic of its name; an external one finds its topic there. Records that are there stay."""
    existing = context.catalog.find(statement.name)
    if existing is not None and statement.if_not_exists:
        return exists_already(existing, differences(existing.definition, statement))
    context.catalog.expect_free(statement)
    if statement.of_schema:
        statement = with_columns(context, statement)
    expect_settings(statement)
    expect_schema(context, statement)
    return _over_its_topic(context, statement) if statement.external else _over_own_topic(context, statement, existing)


def _over_its_topic(context: Context, statement: CreateStream) -> Done:
    topic = statement.topic or statement.name
    _refuse_other_brokers(context, statement)
    _refuse_to_empty(statement)
    context.topics.expect(topic)
    context.catalog.create(statement, now_ms=context.now_ms)
    return Done(f"created {statement.noun} {statement.name} over topic {topic}{creation_notes(statement)}")


def _over_own_topic(context: Context, statement: CreateStream, existing: Relation | None) -> Done:
    topic = statement.topic or statement.name
    shape = _shape(statement)
    there = topic in context.topics.partitions()
    if there and statement.with_data:
        expect_disposable(context, topic, order="WITH DATA", but=statement.name)
    elif existing is not None:
        _expect_same_policy(statement, existing.definition)

    def place() -> bool:
        if there and statement.with_data:
            topics.delete(context, [topic])
        made = topics.make(context, topic, shape)
        if not made and existing is not None and _keeps_otherwise(statement, existing.definition):
            context.topics.configure(topic, {name: shape.config.get(name) for name in _OF_SETTINGS})
        return made

    made = enter(context, statement, place)
    beside = "" if made else _over_records(statement, topic, existing)
    return Done(f"{_created(statement, existing)}{beside}{creation_notes(statement)}")


def differences(existing: RelationDefinition, wanted: CreateStream) -> str:
    """In which columns a stream is another one than was asked for; '' where the columns come from a schema."""
    if not isinstance(existing, CreateStream) or wanted.of_schema:
        return ""
    there, declared = ({column.name: column.type for column in one.columns} for one in (existing, wanted))
    lacking = ", ".join(name for name in declared if name not in there)
    further = ", ".join(name for name in there if name not in declared)
    differing = ", ".join(name for name in declared if name in there and there[name] != declared[name])
    said = [f"lacks {lacking}"] * bool(lacking) + [f"has {further} as well"] * bool(further)
    said += [f"has {differing} of another type"] * bool(differing)
    return f"; it {' and '.join(said)}" if said else ""


def _created(statement: CreateStream, existing: Relation | None) -> str:
    return f"{'created' if existing is None else 'replaced'} {statement.noun} {statement.name}"


def _over_records(statement: CreateStream, topic: str, existing: Relation | None) -> str:
    if existing is None:
        said = next((setting for setting in (RETENTION, HISTORY) if setting in statement.settings), "")
        return f", over the topic {topic} that was there{f', which keeps its own {said}' if said else ''}"
    return f"; the records stay in the topic {topic}, WITH DATA at the end of the statement would delete them"


def _refuse_to_empty(statement: CreateStream) -> None:
    if statement.with_data:
        raise Unsupported(
            f'the topic of "{statement.name}" is not one that Dovetail has made', where="WITH DATA", fix="leave it out"
        )


def _expect_same_policy(statement: CreateStream, before: RelationDefinition) -> None:
    """Raises Unsupported where the topic was made for records of another kind: compaction would take rows away."""
    if not isinstance(before, CreateStream) or topic_of(before) != topic_of(statement):
        return
    if _shape(statement).config["cleanup.policy"] != _shape(before).config["cleanup.policy"]:
        raise Unsupported(
            f'the topic of "{statement.name}" was made for records of kind {before.kind.value}, and keeps others '
            f"than those of kind {statement.kind.value}",
            where="CREATE OR REPLACE",
            fix="WITH DATA at the end of the statement begins with an empty topic; or use another name",
        )


def alter_stream(context: Context, statement: AlterStream) -> Done:
    """Another definition of the same records, of which the catalog alone knows. No view may read otherwise by it."""
    if statement.if_exists and context.catalog.named(statement.name) is None:
        return Done(f"there is no stream {statement.name}")
    relation = context.catalog.get(statement.name)
    before = relation.definition
    if not isinstance(before, CreateStream):
        raise SqlError(
            f'"{relation.name}" is {articled(relation.noun)}, not a stream', fix="CREATE OR REPLACE changes it"
        )
    after = altered(before, statement.actions)
    columns = {column.name for column in after.columns}
    proposed, by = replace(relation, ddl=after.text), "by a column that goes, or by *"
    readers = with_columns_named(context.catalog, proposed)
    expect_read_alike(context.catalog, proposed, columns, "ALTER", by, readers)
    expect_schema(context, after)
    # One by one: a view whose text names its columns is the same also where the stream never gets its new one.
    for reader in readers:
        context.catalog.redefine(context.catalog.get(reader.name), reader.ddl)
    context.catalog.redefine(relation, after.text)
    names = ", ".join(column.name for column in after.columns)
    named = f"; {', '.join(one.name for one in readers)} named what * was" if readers else ""
    return Done(f"altered stream {relation.name}, columns {names}; its records stay as they are{named}")


def create_index(context: Context, statement: CreateIndex) -> Done:
    """Raises UnknownName for a relation or a column that is not there, Unsupported for what has no rows of its own."""
    schema = stream_of(context.catalog, context.catalog.get(statement.stream).name).schema
    columns = [column.name for column in schema.readable]
    for name in (*statement.index.columns, *statement.index.storing):
        if name not in columns:
            what = f'"{schema.name}" has no column "{name}"'
            raise UnknownName(what, where="CREATE INDEX", fix=suggestion(name, columns))
    context.catalog.create(statement, now_ms=context.now_ms)
    return Done(f"created index {statement.name}")


def _shape(statement: CreateStream) -> TopicShape:
    """``shards`` and ``replication_factor`` of SETTINGS; the broker's defaults where they are not given."""
    return TopicShape(
        partitions=_count(statement, "shards"),
        replicas=_count(statement, "replication_factor"),
        config=_config(statement),
    )


def _config(statement: CreateStream) -> dict[str, str]:
    config = config_for(statement.kind, by_version=bool(statement.version))
    age_ms = kept_ms(statement, RETENTION)
    if age_ms is None and statement.generated and statement.kind is Kind.APPEND:
        # Rows without end, of which nobody has said how many the disk has room for.
        age_ms = _GENERATED_MS
    if age_ms is not None:
        # Kafka lets go of whole segments: a record stays a tenth longer at the most.
        config |= {"retention.ms": str(age_ms), "segment.ms": str(max(age_ms // 10, _SHORTEST_SEGMENT_MS))}
    if (age_ms := kept_ms(statement, HISTORY)) is not None:
        config["min.compaction.lag.ms"] = str(age_ms)
    return config


def _keeps_otherwise(statement: CreateStream, before: RelationDefinition) -> bool:
    return isinstance(before, CreateStream) and _config(before) != _config(statement)


def _count(statement: CreateStream, setting: str) -> int:
    value = statement.settings.get(setting, -1)
    if setting in statement.settings and (not isinstance(value, int) or value < 1):
        raise SqlError(f"{setting} cannot be {value!r}", where="SETTINGS", fix="give a whole number from 1 on")
    return int(value)


def _refuse_other_brokers(context: Context, statement: CreateStream) -> None:
    """All topics of a query are read from one cluster."""
    if statement.brokers is not None and not context.brokers.meets(BrokerAddress(statement.brokers)):
        raise SqlError(
            f'"{statement.name}" names the brokers {statement.brokers}, and this session works with {context.brokers}',
            where="SETTINGS brokers",
            fix=f"leave brokers out, or start the session with DOVETAIL_BROKERS={statement.brokers}",
        )


def create_schema(context: Context, statement: CreateSchema) -> Done:
    if context.catalog.create_schema(statement.name):
        return Done(f"created schema {statement.name}")
    if statement.if_not_exists:
        return Done(f"schema {statement.name} exists already")
    raise SqlError(f'there is a schema "{statement.name}" already', fix="CREATE SCHEMA IF NOT EXISTS, or another name")
