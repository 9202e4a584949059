"""Topics in the catalog: which Dovetail has made, and which relations have one for their rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from dovetail.changelog.errors import Unsupported
from dovetail.sql.catalog.metadata_tables import MADE_TOPICS
from dovetail.sql.catalog.records import Relation, RelationDefinition
from dovetail.sql.catalog.stored_relations import listed
from dovetail.sql.syntax.statements import CreateStream, CreateView


def topic_of(definition: RelationDefinition) -> str | None:
    """The topic that holds the rows of a relation and nothing else; None where it has none of its own."""
    match definition:
        case CreateStream():
            return definition.topic or definition.name
        case CreateView() if definition.materialized and definition.into is None:
            return definition.name
    return None


def add(connection: Connection, topic_id: str, name: str, now_ms: int) -> None:
    remove(connection, [topic_id])
    connection.execute(MADE_TOPICS.insert().values(id=topic_id, name=name, made_ms=now_ms))


def made(connection: Connection, topic_ids: Collection[str]) -> set[str]:
    known = sa.select(MADE_TOPICS.c.id).where(MADE_TOPICS.c.id.in_(list(topic_ids)))
    return set(connection.execute(known).scalars())


def remove(connection: Connection, topic_ids: Collection[str]) -> None:
    connection.execute(MADE_TOPICS.delete().where(MADE_TOPICS.c.id.in_(list(topic_ids))))


def relations_with(connection: Connection, topics: Collection[str]) -> list[Relation]:
    return [relation for relation in listed(connection) if topic_of(relation.definition) in topics]


def refuse_while_shared(connection: Connection, going: Iterable[Relation]) -> None:
    """Raises where a relation that stays has the topic of one that goes with its data."""
    relations = list(going)
    names = {relation.name for relation in relations}
    topics = {topic for relation in relations if (topic := topic_of(relation.definition)) is not None}
    for other in relations_with(connection, topics):
        if other.name not in names:
            raise Unsupported(
                f'the {other.noun} "{other.name}" has the same records, of the topic "{topic_of(other.definition)}"',
                where="WITH DATA",
                fix=f"leave WITH DATA out, or drop {other.name} first",
            )
