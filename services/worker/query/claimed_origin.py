"""The origin of a lookup query, one for all its workers: its checkpoint in the catalog."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.broker import topics
from dovetail.broker.clients import Admin
from dovetail.broker.query_origin import QueryOrigin, refuse_other_topics
from dovetail.broker.start_offsets import resolved_first_offsets
from dovetail.sql.catalog import Catalog, Query
from dovetail.sql.fragments import Fragment


def claimed_origin(
    query: Query,
    fragment: Fragment,
    catalog: Catalog,
    client: Admin,
    snapshot_topics: Mapping[str, str],
    memo: str = "",
) -> QueryOrigin:
    """That of the worker that started ``query`` first.

    Raises CheckpointMismatch if its plan is another now, RecordsGone if one of its topics is, ServiceUnavailable if one
    is not there any more.

    snapshot_topics   static table → its topic
    memo              the topic of its memo; '' for none
    """
    text = query.checkpoint
    if not text:
        made = _made(query, fragment, client, snapshot_topics, memo)
        text = catalog.claim_checkpoint(query.id, made.text)
    origin = QueryOrigin.read(text, where="the catalog")
    origin.expect_plan(query.name, fragment.fingerprint, fragment.explain(), where="the catalog")
    refuse_other_topics(origin.topic_ids, topics.ids_again(client, origin.topic_ids), query.name)
    return origin


def _made(
    query: Query, fragment: Fragment, client: Admin, snapshot_topics: Mapping[str, str], memo: str
) -> QueryOrigin:
    first_offsets = resolved_first_offsets(client, [fragment.lookup_flow.scan])
    ends = topics.end_offsets(client, list(snapshot_topics.values()))
    return QueryOrigin(
        identity=QueryOrigin.new_identity(query.name),
        fingerprint=fragment.fingerprint,
        plan=fragment.explain(),
        first_offsets=tuple(first_offsets),
        snapshots={name: ends[topic] for name, topic in snapshot_topics.items()},
        topic_ids=topics.ids(client, [*fragment.topics, *snapshot_topics.values(), *([memo] if memo else [])]),
    )
