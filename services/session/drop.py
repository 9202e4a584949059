"""DROP, TERMINATE: a relation goes with its query; its records stay in their topic, unless WITH DATA says otherwise."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence

from dovetail.broker.names import topics_of_query
from dovetail.changelog.dead_letter import SUFFIX as DEAD_LETTERS
from dovetail.changelog.errors import ServiceUnavailable, Unsupported
from dovetail.services.session import topics
from dovetail.services.session.context import Context
from dovetail.services.session.result import Done
from dovetail.sql.catalog import Desired, Query, Relation, What
from dovetail.sql.catalog.stored_topics import topic_of
from dovetail.sql.syntax.statements import CreateView, Drop, Terminate

_POLL_S = 0.1


def drop(context: Context, statement: Drop) -> Done:
    """Queries are ended before the topics are deleted that they write; what more than the named goes is asked for."""
    if statement.what == "topic":
        return _drop_topic(context, statement)
    if statement.what == "schema":
        return _drop_schema(context, statement)
    going = context.catalog.going(statement)
    if not going:
        return Done(f"there is no {statement.noun or statement.what} {statement.name}")
    if not _agreed(context, statement, going):
        return Done("nothing was dropped")
    names = [relation.name for relation in going]
    fragments = [query for query in context.catalog.queries() if query.view in names]
    if fragments or any(topic_of(relation.definition) is not None for relation in going):
        # A broker that does not answer would be met only when the names were gone, and the topics left without them.
        context.topics.partitions()
    dropped = context.catalog.drop(statement, now_ms=context.now_ms, agreed=names)
    await_gone(context, names)
    return Done(f"dropped {_listed(dropped)}{clear(context, dropped, fragments, with_data=statement.with_data)}")


def _agreed(context: Context, statement: Drop, going: Sequence[Relation]) -> bool:
    """Whether the user agrees to what goes beside the named: its indexes are a part of it."""
    named = statement.name.casefold()
    others = [one for one in going if one.name.casefold() != named and one.what is not What.INDEX]
    if not others:
        return True
    order = f"DROP {(statement.noun or statement.what).upper()} {statement.name} CASCADE"
    order += " WITH DATA" if statement.with_data else ""
    rows = ", and the records of their topics" if statement.with_data else ""
    return context.confirm(f"{order} also drops {_listed(others)}{rows}")


def clear(context: Context, dropped: Iterable[Relation], fragments: Sequence[Query], *, with_data: bool) -> str:
    """Delete the state of dropped queries and, ``with_data``, what Dovetail has made of the rest; what stays, in words.

    Dead letters are data: somebody may still mend them. Where there never was one, their topic goes.
    """
    dead_letter_topics = topics.dead_letter_topics(fragments)
    held = [topic for relation in dropped if (topic := topic_of(relation.definition)) is not None]
    if not held and not fragments:
        return ""
    there = context.topics.partitions()
    data = dict.fromkeys(topic for topic in held if topic in there)
    own = topics.own(context, data)
    outside = [topic for topic in data if topic not in own]
    kept = [] if with_data else [topic for topic in data if topic in own]
    gone = [*own] if with_data else []
    for topic in dead_letter_topics:
        (kept if not with_data and context.topics.ever_written(topic) else gone).append(topic)
    topics.delete(context, [*topics.state_topics(fragments), *gone])
    notes = [f"; deleted with all records: {', '.join(sorted(own))}"] if with_data and own else []
    notes += [f"; the records stay in {_topics(kept)}, DROP TOPIC {kept[0]} WITH DATA deletes them"] if kept else []
    notes += [f"; {_topics(outside)} stays, which Dovetail has not made"] if outside else []
    return "".join([*notes, *_into(dropped, with_data=with_data)])


def _into(dropped: Iterable[Relation], *, with_data: bool) -> list[str]:
    definitions = [relation.definition for relation in dropped if with_data]
    targets = [one.into for one in definitions if isinstance(one, CreateView) and one.into is not None]
    return [f"; what was written INTO {', '.join(targets)} stays there"] if targets else []


def _topics(names: Collection[str]) -> str:
    return f"the topic{'s' if len(names) > 1 else ''} {', '.join(names)}"


def _listed(relations: Iterable[Relation]) -> str:
    return ", ".join(f"{relation.noun} {relation.name}" for relation in relations)


def _drop_schema(context: Context, statement: Drop) -> Done:
    """With CASCADE what is in it goes first, the newest before what it may read."""
    name = statement.name
    if statement.if_exists and name not in context.catalog.schemas():
        return Done(f"there is no schema {name}")
    notes = []
    for relation in reversed(context.catalog.inside(name) if statement.cascade else []):
        order = Drop(relation.what.value, relation.name, True, True, statement.with_data)
        if context.catalog.find(relation.name) is not None:
            notes.append(drop(context, order).text)
    # One that nobody has made goes with the last that is in it.
    if not notes or name in context.catalog.schemas():
        context.catalog.drop_schema(name)
    return Done("; ".join([f"dropped schema {name}", *notes]))


def _drop_topic(context: Context, statement: Drop) -> Done:
    """DROP TOPIC t WITH DATA: what a DROP without it has left. Only of Dovetail's making, and of no relation now."""
    name = statement.name
    if statement.if_exists and name not in context.topics.partitions():
        return Done(f"there is no topic {name}")
    context.topics.expect(name)
    expect_disposable(context, name, order="DROP TOPIC")
    topics.delete(context, [name])
    return Done(f"deleted topic {name}")


def expect_disposable(context: Context, topic: str, *, order: str, but: str = "") -> None:
    """Raises Unsupported for a topic that Dovetail has not made, or that is in use by another relation than ``but``."""
    for relation in context.catalog.with_topic(topic):
        if relation.name != but:
            raise Unsupported(
                f'the records of the topic "{topic}" are those of the {relation.noun} "{relation.name}"',
                where=order,
                fix=f"DROP {relation.noun.upper()} {relation.name} WITH DATA",
            )
    for query in context.catalog.queries(dropped=True):
        works_with = (query.topic, *topics.state_topics([query]), *topics.dead_letter_topics([query]))
        if query.view != but and topic in works_with:
            raise Unsupported(f'the query "{query.name}" works with the topic "{topic}"', where=order)
    # The runners make dead letter topics, and leave no note in the catalog.
    if not topic.endswith(DEAD_LETTERS) and topic not in topics.own(context, [topic]):
        raise Unsupported(
            f'the topic "{topic}" is not one that Dovetail has made',
            where=order,
            fix="leave WITH DATA out, or use another name or topic; Kafka's own tools delete any topic",
        )


def await_gone(context: Context, names: Iterable[str]) -> None:
    """Wait until all fragments of dropped queries are ended and cleaned up; not where their runner is not there.

    Raises ServiceUnavailable where one has not ended in time: what it writes to must not be deleted.
    """
    left = set(names)
    end = time.monotonic() + context.settings.stop_timeout_s
    while True:
        dropped = [query for query in context.catalog.queries(dropped=True) if query.desired is Desired.DROPPED]
        ending = [query for query in dropped if query.view in left]
        if all(context.runner_fault(engine) for engine in {query.engine for query in ending}):
            return
        if time.monotonic() > end:
            break
        time.sleep(_POLL_S)
    raise ServiceUnavailable(
        f"the query {', '.join(query.name for query in ending)} is dropped, and has not ended within "
        f"{context.settings.stop_timeout_s:g} s; its topics stay",
        where=", ".join(sorted({query.topic for query in ending})),
        fix="it ends when its runner comes to it; DOVETAIL_STOP_TIMEOUT_S is the wait, DROP TOPIC .. WITH DATA deletes",
    )


def terminate(context: Context, statement: Terminate) -> Done:
    """The query ends for good. Its view stays as a name for the rows of its topic; a SELECT's topic goes with it."""
    fragments = context.catalog.fragments(statement.name)
    name = fragments[-1].view
    context.catalog.want(name, Desired.DROPPED, now_ms=context.now_ms)
    await_gone(context, [name])
    if context.catalog.find(name) is not None:
        topics.delete(context, topics.state_topics(fragments))
        return Done(f"terminated {name}; its topic stays, and its view as a name for it")
    topics.delete(context, topics_of_select(fragments))
    return Done(f"terminated {name}")


def topics_of_select(fragments: Sequence[Query]) -> list[str]:
    """All of them: nobody can know their names."""
    return [topic for query in fragments for topic in topics_of_query(query.name, query.topic)]
