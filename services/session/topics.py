"""Topics of Dovetail's own: made, remembered as such, and deleted; those that were there before never are.

A topic is known by its id at the broker, which the catalog keeps: one of the same name that somebody else has made
since, or in another cluster, is not ours.
"""

from __future__ import annotations

from collections.abc import Iterable

from dovetail.broker.names import memo_topic
from dovetail.broker.topic_shapes import TopicShape, config_for
from dovetail.changelog.dead_letter import topic_of as dead_letter_topic
from dovetail.changelog.errors import ServiceUnavailable, UnknownName
from dovetail.changelog.schema import Kind
from dovetail.services.session.context import Context
from dovetail.sql.catalog import Query
from dovetail.sql.planner import Plan
from dovetail.sql.relations import Sizes


def make(context: Context, topic: str, shape: TopicShape) -> bool:
    """Make a topic, and remember that; False if it was there already."""
    made = context.topics.create(topic, shape)
    if made:
        for topic_id in context.topics.ids([topic]).values():
            context.catalog.topic_made(topic_id, topic, now_ms=context.now_ms)
    return made


def own(context: Context, topics: Iterable[str]) -> set[str]:
    """Those of ``topics`` that Dovetail has made."""
    ids = context.topics.ids(topics)
    made = context.catalog.made_topics(ids.values())
    return {name for name, topic_id in ids.items() if topic_id in made}


def delete(context: Context, topics: Iterable[str]) -> None:
    """Delete topics, and forget them; whose they are is the caller's question."""
    ids = context.topics.ids(topics)
    context.topics.delete(ids)
    context.catalog.forget_topics(ids.values())


def state_topics(fragments: Iterable[Query]) -> list[str]:
    """What some queries keep in topics of their own and nobody else reads: memos, and rows between fragments."""
    found: list[str] = []
    for query in fragments:
        found.append(memo_topic(query.name))
        if query.name != query.view:
            found.append(query.topic)
    return found


def dead_letter_topics(fragments: Iterable[Query]) -> list[str]:
    return [dead_letter_topic(query.name) for query in fragments]


def sizes(context: Context) -> Sizes:
    """About how many records topics hold, as far as the broker says; each is asked once, and nothing more of a broker
    that does not answer.
    """
    known: dict[str, int | None] = {}
    silent = False

    def counted(topic: str) -> int | None:
        nonlocal silent
        if topic not in known and not silent:
            try:
                ends, begins = context.topics.ends(topic), context.topics.begins(topic)
                known[topic] = sum(end - begins.get(partition, 0) for partition, end in ends.items())
            except UnknownName:
                known[topic] = None
            except ServiceUnavailable:
                silent = True
        return known.get(topic)

    return counted


def output_shape(plan: Plan, topic: str, partitions: int = -1) -> TopicShape:
    """How the topic of a query is made; one between two of its fragments is a plain changelog."""
    last = plan.output is not None and plan.output.topic == topic
    upsert = last and plan.output is not None and plan.output.format == "upsert"
    return TopicShape(partitions=partitions, config=config_for(Kind.UPSERT if upsert else Kind.CHANGELOG))
