"""What a query is at the broker, fixed at its first start: by which names, from which offsets, under which plan."""

from __future__ import annotations

import difflib
import json
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from dovetail.broker.topics import Offsets, PartitionOffsets
from dovetail.changelog.errors import CheckpointMismatch, RecordsGone

FORMAT = 4
"""Of the text of an origin and of all state beside it: the arrangements by name, the columns of their rows, the numbers
beside them, the variables in Spark's store, the snapshots. It rises with whatever a former release could not read, or
would read wrongly; ``tests/data/checkpoints`` has those of releases."""
_NEVER_RESCALED = 1
"""The format of before there was ``resumed_at``: what has none is written in it yet, so former releases read it."""
_ALONE = 2
"""The format of before there were packs: what is in none is written in it."""
_STORE_OF_SPARK = 3
"""The format of before queries were fused: what is not is written in it."""
ORIGIN_FILE = "query.json"
"""What the text is called in a folder of a checkpoint."""
_FORMAT = "format"
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
    topic_ids      of all topics that are read, and of the memo where there is one: as they were at the first start
    history        topic → partition → where it ended then; empty where no rows are answered once
    resumed_at     of a checkpoint that was made of another one: the offsets up to which that had read, as Spark logs
                   them, from which this one goes on; '': from ``first_offsets``
    fused          whether its one bucket is run by one task, whose state lies in files of its own beside Spark's
    packed_levels  of a member of a pack: how many levels its part of the pack's state has; None: it is in no pack
    """

    identity: str
    fingerprint: str
    plan: str
    first_offsets: tuple[PartitionOffsets, ...]
    snapshots: Mapping[str, PartitionOffsets] = field(default_factory=dict)
    buckets: int = 0
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    history: Offsets = field(default_factory=dict)
    resumed_at: str = ""
    packed_levels: int | None = None
    fused: bool = False

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
                f'the plan of query "{query}" was written down by another release, in form {former or "none"} instead'
                f" of {present}, so the two cannot be compared",
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
        members = {_FORMAT: self._format, **asdict(self)}
        if not self.resumed_at:
            del members["resumed_at"]
        if self.packed_levels is None:
            del members["packed_levels"]
        if not self.fused:
            del members["fused"]
        members[_STARTS] = members.pop("first_offsets")
        return json.dumps(members)

    @property
    def _format(self) -> int:
        """The least that can say it: a former release that would read it wrongly is to refuse it."""
        if self.fused:
            return FORMAT
        if self.packed_levels is not None:
            return _STORE_OF_SPARK
        return _ALONE if self.resumed_at else _NEVER_RESCALED

    @staticmethod
    def read(text: str, *, where: str) -> QueryOrigin:
        """Raises CheckpointMismatch where another release has written it, in a format of its own."""
        members = json.loads(text)
        _expect_format(members.get(_FORMAT, 0), where)
        return QueryOrigin(
            members["identity"],
            members["fingerprint"],
            members["plan"],
            tuple(numbered(offsets) for offsets in members[_STARTS]),
            {name: numbered(ends) for name, ends in members["snapshots"].items()},
            members["buckets"],
            members["topic_ids"],
            {topic: numbered(ends) for topic, ends in members["history"].items()},
            members.get("resumed_at", ""),
            members.get("packed_levels"),
            members.get("fused", False),
        )

    @staticmethod
    def identity_in(text: str) -> str:
        """The identity alone, which stands there in every format: what a dropped query leaves is found by it."""
        return str(json.loads(text)["identity"])


def _expect_format(written: object, where: str) -> None:
    if written in (_NEVER_RESCALED, _ALONE, _STORE_OF_SPARK, FORMAT):
        return
    newer = isinstance(written, int) and written > FORMAT
    raise CheckpointMismatch(
        f"the checkpoint has format {written or 'none'}, and this release reads format {FORMAT}",
        where=where,
        fix=(
            "go on with the release that wrote it, which is newer" if newer else "go on with the release that wrote it"
        )
        + "; or replay: drop the query and create it again",
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


def numbered(offsets: Mapping[str, int]) -> dict[int, int]:
    """JSON turns the numbers of partitions into texts."""
    return {int(partition): offset for partition, offset in offsets.items()}


def _form(fingerprint: str) -> str:
    """The version of the form of plans that was hashed, ``<version>:<hash>``."""
    return fingerprint.rpartition(":")[0]


def _difference(before: str, now: str) -> str:
    lines = list(difflib.unified_diff(before.splitlines(), now.splitlines(), lineterm="", n=0))
    changed = [line for line in lines[2:] if not line.startswith("@@")]
    return "".join(f"\n    {line}" for line in changed)
