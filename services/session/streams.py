"""CREATE STREAM, TABLE and SOURCE; DROP. A stream is an entry of the catalog and a topic."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from broker.names import memo_topic
from broker.topic_shapes import TopicShape, config_for
from changelog.dead_letter import topic_of as dead_letter_topic
from changelog.errors import DovetailError, SqlError
from services.session.context import Context
from services.session.result import Done
from sql.catalog import Query, Relation
from sql.syntax.statements import CreateIndex, CreateStream, CreateView, Drop


def create_stream(context: Context, statement: CreateStream) -> Done:
    """An own stream gets a topic of its name; an external one finds its topic there."""
    existing = context.catalog.find(statement.name)
    if existing is not None and statement.if_not_exists:
        return Done(f"{existing.what} {statement.name} exists already")
    topic = statement.topic or statement.name
    if statement.external:
        _refuse_other_brokers(context, statement)
        context.topics.expect(topic)
        context.catalog.create(statement, now_ms=context.now_ms)
        return Done(f"created {_noun(statement)} {statement.name} over topic {topic}")
    if existing is not None and statement.or_replace:
        drop(context, Drop(existing.what, existing.name), lambda names: None)
    shape = _shape(statement)
    context.catalog.create(statement, now_ms=context.now_ms)
    try:
        made = context.topics.create(topic, shape)
    except DovetailError:
        context.catalog.drop(Drop("stream", statement.name), now_ms=context.now_ms)
        raise
    return Done(
        f"created {_noun(statement)} {statement.name}" + ("" if made else f", over the topic {topic} that was there")
    )


def create_index(context: Context, statement: CreateIndex) -> Done:
    context.catalog.create(statement, now_ms=context.now_ms)
    return Done(f"created index {statement.name}")


def drop(context: Context, statement: Drop, await_end: Callable[[Iterable[str]], None]) -> Done:
    """What goes with a name: its query and checkpoint (the runner sees to these), its topic if Dovetail made it.

    ``await_end`` returns when the queries of the given names have ended, so that nothing writes to a deleted topic.
    """
    running = context.catalog.queries()
    dropped = context.catalog.drop(statement, now_ms=context.now_ms)
    if not dropped:
        return Done(f"there is no {statement.what} {statement.name}")
    names = [relation.name for relation in dropped]
    await_end(names)
    between = topics_of([query for query in running if query.view in names], with_output=False)
    context.topics.delete([*between, *(topic for relation in dropped for topic in _own_topics(relation))])
    return Done(f"dropped {', '.join(f'{relation.what} {relation.name}' for relation in dropped)}")


def topics_of(fragments: Iterable[Query], *, with_output: bool) -> list[str]:
    """The topics of some queries' own: dead letters, memos, those between fragments, and if wanted the output."""
    found: list[str] = []
    for query in fragments:
        found += [dead_letter_topic(query.name), memo_topic(query.name)]
        if with_output or query.name != query.view:
            found.append(query.topic)
    return found


def _own_topics(relation: Relation) -> Iterable[str]:
    definition = relation.definition
    match definition:
        case CreateStream() if not definition.external:
            yield definition.topic or definition.name
        case CreateView() if definition.materialized:
            yield dead_letter_topic(definition.name)
            if definition.into is None:
                yield definition.name


def _shape(statement: CreateStream) -> TopicShape:
    """``shards`` and ``replication_factor`` of SETTINGS; the broker's defaults where they are not given."""
    return TopicShape(
        partitions=_count(statement, "shards"),
        replicas=_count(statement, "replication_factor"),
        config=config_for(statement.kind, by_version=bool(statement.version)),
    )


def _count(statement: CreateStream, setting: str) -> int:
    value = statement.settings.get(setting, -1)
    if setting in statement.settings and (not isinstance(value, int) or value < 1):
        raise SqlError(f"{setting} cannot be {value!r}", where="SETTINGS", fix="give a whole number from 1 on")
    return int(value)


def _refuse_other_brokers(context: Context, statement: CreateStream) -> None:
    """All topics of a query are read from one cluster."""
    if statement.brokers is not None and set(statement.brokers.split(",")).isdisjoint(context.brokers.each):
        raise SqlError(
            f'"{statement.name}" names the brokers {statement.brokers}, and this session works with {context.brokers}',
            where="SETTINGS brokers",
            fix=f"leave brokers out, or start the session with DOVETAIL_BROKERS={statement.brokers}",
        )


def _noun(statement: CreateStream) -> str:
    """As the DDL says it."""
    words = statement.text.split(None, 6)
    upper = [word.upper() for word in words]
    noun = next((word for word in upper if word in ("STREAM", "TABLE", "SOURCE")), "STREAM").lower()
    return f"external {noun}" if statement.external and noun == "stream" else noun
