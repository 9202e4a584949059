"""What a query is at the broker, fixed at its first start: by which names, from which offsets, under which plan."""

from __future__ import annotations

import difflib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from broker.topics import Offsets, PartitionOffsets
from changelog.errors import CheckpointMismatch, RecordsGone

_STARTS = "starts"
"""``first_offsets`` in the text that checkpoints keep."""


@dataclass(frozen=True)
class QueryOrigin:
    """What stays the same as long as a query's checkpoint lives.

    identity       names the query at the broker: transactional ids, the group of its offsets or marks
    fingerprint    of the plan
    plan           its text, for the message when it no longer fits
    first_offsets  by scan: partition → offset of the first record that is read
    snapshots      static table → partition → where its topic ended then; empty where the rows themselves are kept
    buckets        of keys; 0 where there are none
    topic_ids      of the inputs; empty where an earlier release has started the query
    history        topic → partition → where it ended then; empty where no rows are answered once
    """

    identity: str
    fingerprint: str
    plan: str
    first_offsets: tuple[PartitionOffsets, ...]
    snapshots: Mapping[str, PartitionOffsets] = field(default_factory=dict)
    buckets: int = 0
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    history: Offsets = field(default_factory=dict)

    @staticmethod
    def new_identity(query: str) -> str:
        """Another one for each life of a query of this name."""
        return f"dovetail.{query}.{uuid.uuid4().hex[:12]}"

    def expect_plan(self, query: str, fingerprint: str, plan: str, *, where: str) -> None:
        """Raises CheckpointMismatch, with the lines that differ, if the plan is another one now."""
        if self.fingerprint == fingerprint:
            return
        former, present = _form(self.fingerprint), _form(fingerprint)
        if former != present:
            raise CheckpointMismatch(
                f'the plan of query "{query}" was written down by another release, in form {former or "none"} instead of'
                f" {present}, so the two cannot be compared",
                where=where,
                fix="go on with that release, or replay: drop the query and create it again",
            )
        difference = _difference(self.plan, plan) or ", in what EXPLAIN does not show"
        raise CheckpointMismatch(
            f'query "{query}" was started with another plan{difference}',
            where=where,
            fix="restore the definition it was made with, or replay: drop the query and create it again",
        )

    @property
    def text(self) -> str:
        members = asdict(self)
        members[_STARTS] = members.pop("first_offsets")
        return json.dumps(members)

    @staticmethod
    def read(text: str) -> QueryOrigin:
        members = json.loads(text)
        # A lookup query has one scan; its text once held the starts of that one, without the list around them.
        starts: Sequence[Mapping[str, int]] = members[_STARTS]
        return QueryOrigin(
            members["identity"],
            members["fingerprint"],
            members["plan"],
            tuple(_numbered(offsets) for offsets in ([starts] if isinstance(starts, dict) else starts)),
            {name: _numbered(ends) for name, ends in members.get("snapshots", {}).items()},
            members.get("buckets", 0),
            members.get("topic_ids", {}),
            {topic: _numbered(ends) for topic, ends in members.get("history", {}).items()},
        )


def refuse_other_topics(known: Mapping[str, str], now: Mapping[str, str], query: str) -> None:
    """Raises RecordsGone for an input that is another topic now: offsets of the former one mean nothing in it.

    known, now  ids by name
    """
    for topic, topic_id in known.items():
        if now[topic] != topic_id:
            raise RecordsGone(
                f'the topic "{topic}" was deleted and made again since query "{query}" began to read it',
                where=f'topic "{topic}", id {now[topic]} instead of {topic_id}',
                fix="drop the query and create it again: it begins with the new topic",
            )


def _numbered(offsets: Mapping[str, int]) -> dict[int, int]:
    """JSON turns the numbers of partitions into texts."""
    return {int(partition): offset for partition, offset in offsets.items()}


def _form(fingerprint: str) -> str:
    """The version of the form of plans that was hashed, ``<version>:<hash>``."""
    return fingerprint.rpartition(":")[0]


def _difference(before: str, now: str) -> str:
    lines = list(difflib.unified_diff(before.splitlines(), now.splitlines(), lineterm="", n=0))
    changed = [line for line in lines[2:] if not line.startswith("@@")]
    return "".join(f"\n    {line}" for line in changed)
