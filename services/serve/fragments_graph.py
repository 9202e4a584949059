"""What reads what, down to the fragments of views, and the topics that have another name than what is in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dovetail.runtime.clock import now_ms
from dovetail.services.generators import generator_of
from dovetail.services.liveness import QueryStatus, query_statuses
from dovetail.services.serve.watch.query_sample import offsets_of
from dovetail.services.session import Session
from dovetail.sql.catalog import Catalog, Query, Relation, What
from dovetail.sql.catalog.stored_relations import target
from dovetail.sql.catalog.stored_topics import topic_of
from dovetail.sql.engines import Engine

Edge = tuple[str, str]


def fragments_of(session: Session) -> dict[str, Any]:
    """As the graph of relations, and a node of kind ``fragment`` for each query of a view but its last one, which has
    the view's name; of kind ``topic`` where a stream has one of another name.

    What a query reads is known from its first batch on; until then an edge leads to its view.
    """
    catalog = session.context.catalog
    relations = catalog.relations()
    found = {one.query.name: one for one in query_statuses(catalog, now_ms())}
    by_view: dict[str, list[Query]] = {}
    for one in found.values():
        by_view.setdefault(one.query.view, []).append(one.query)
    names = {relation.name for relation in relations}
    nodes = [_node(relation.name, relation.what.value, found) for relation in relations]
    nodes += [
        _node(name, "fragment", found) for name, one in found.items() if name not in names and one.query.view in names
    ]
    renamed = _renamed_topics(relations)
    nodes += [{"name": topic, "kind": "topic", "topic": topic} for topic in dict.fromkeys(renamed.values())]
    edges = [(topic, name) for name, topic in renamed.items()]
    holders = _holders(relations, found.values())
    for relation in relations:
        edges += _edges(catalog, relation, by_view.get(relation.name, ()), holders)
    return {"nodes": nodes, "edges": [{"from": used, "to": user} for used, user in dict.fromkeys(edges)]}


def _node(name: str, kind: str, found: Mapping[str, QueryStatus]) -> dict[str, Any]:
    one = found.get(name)
    if one is None:
        return {"name": name, "kind": kind}
    members = {"state": one.shown_state, "why": one.why, "topic": one.query.topic, "engine": one.query.engine}
    own = generator_of(one.query) if one.query.generates else {"view": one.query.view}
    return {"name": name, "kind": kind, **own, **members}


def _renamed_topics(relations: Iterable[Relation]) -> dict[str, str]:
    """Stream → its topic, of those that have another name."""
    topics = {one.name: topic_of(one.definition) for one in relations if one.what is What.STREAM}
    return {name: topic for name, topic in topics.items() if topic is not None and topic != name}


def _holders(relations: Iterable[Relation], found: Iterable[QueryStatus]) -> dict[str, str]:
    """Topic → the node that stands for what is in it."""
    queries = {one.query.topic: one.query.name for one in found}
    return queries | {topic_of(one.definition) or one.name: one.name for one in relations if one.what is What.STREAM}


def _edges(catalog: Catalog, relation: Relation, queries: Sequence[Query], holders: Mapping[str, str]) -> list[Edge]:
    """From what is read to what reads it: by their topics, and what is read otherwise (looked up, or as a snapshot)."""
    edges = [(holders.get(topic, topic), query.name) for query in queries for topic in sorted(offsets_of(query))]
    uses = catalog.used(relation.name)
    into = target(relation.definition, uses)
    if into is not None:
        edges.append((relation.name, into))
    read = {used for used, _ in edges}
    lookups = [query.name for query in queries if query.engine == Engine.FAUST]
    for used in sorted(uses):
        if used in read or used == into:
            continue
        looked_up = catalog.get(used).what is What.DICTIONARY and lookups
        edges.append((used, lookups[0] if looked_up else relation.name))
    return edges
