"""What stays the same of a lookup query as long as it lives, on every worker: its checkpoint in the catalog."""

from __future__ import annotations

import difflib
import json
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from confluent_kafka.admin import AdminClient

from broker import topics
from broker.start_offsets import resolved_starts
from changelog.errors import CheckpointMismatch
from sql.catalog import Catalog, Query
from sql.fragments import Fragment


@dataclass(frozen=True)
class Origin:
    """identity     names the query at the broker: consumer group, transactional ids
    fingerprint  of the plan
    plan         its text, for the message when it no longer fits
    starts       partition of the input → first offset, resolved at the first start of all
    snapshots    static table → partition → where its topic ended then
    """

    identity: str
    fingerprint: str
    plan: str
    starts: Mapping[int, int]
    snapshots: Mapping[str, Mapping[int, int]]

    @property
    def text(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def read(text: str) -> Origin:
        fields = json.loads(text)
        return Origin(
            fields["identity"],
            fields["fingerprint"],
            fields["plan"],
            _numbered(fields["starts"]),
            {name: _numbered(ends) for name, ends in fields["snapshots"].items()},
        )


def _numbered(offsets: Mapping[str, int]) -> dict[int, int]:
    return {int(partition): offset for partition, offset in offsets.items()}


def origin_of(
    query: Query, fragment: Fragment, catalog: Catalog, client: AdminClient, snapshot_topics: Mapping[str, str]
) -> Origin:
    """The origin of ``query``: that of the worker that started it first. CheckpointMismatch if its plan is another now.

    snapshot_topics   static table → its topic
    """
    text = query.checkpoint
    if not text:
        made = _made(query, fragment, client, snapshot_topics)
        text = catalog.claim_checkpoint(query.id, made.text)
    origin = Origin.read(text)
    if origin.fingerprint != fragment.fingerprint:
        lines = list(difflib.unified_diff(origin.plan.splitlines(), fragment.explain().splitlines(), lineterm="", n=0))
        changed = [line for line in lines[2:] if not line.startswith("@@")]
        raise CheckpointMismatch(
            f'query "{query.name}" was started with another plan' + "".join(f"\n    {line}" for line in changed),
            where="the catalog",
            fix="restore the definition it was made with, or replay: drop the query and create it again",
        )
    return origin


def _made(query: Query, fragment: Fragment, client: AdminClient, snapshot_topics: Mapping[str, str]) -> Origin:
    [starts] = resolved_starts(client, [fragment.lookup_flow.scan])
    ends = topics.end_offsets(client, list(snapshot_topics.values()))
    return Origin(
        identity=f"dovetail.{query.name}.{uuid.uuid4().hex[:12]}",
        fingerprint=fragment.fingerprint,
        plan=fragment.explain(),
        starts=starts,
        snapshots={name: ends[topic] for name, topic in snapshot_topics.items()},
    )
