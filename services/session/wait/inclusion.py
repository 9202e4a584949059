"""Whether a view includes records of its inputs: it has read them, and what it made of them stands in its topic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from dovetail.broker.topics import PartitionOffsets
from dovetail.services.session.contents import Offsets
from dovetail.services.session.input_progress import InputProgress
from dovetail.services.session.wait.input_chain import ChainedQuery, InputChain


class TopicEnds(Protocol):
    """Where topics end: what is committed, and what is written."""

    def ends(self, topic: str) -> PartitionOffsets: ...

    def written_ends(self, topic: str) -> PartitionOffsets: ...


class Inclusion:
    """Of the records before ``ends`` (topic → partition → offset), by the view at the end of ``chain``.

    Query by query, upstream first. Once one has read what it is to read, its topic is asked where it ends, uncommitted
    records included: with those the answers are there, and up to them the next query is to read.

        orders      .. 123 | 124                 124 is the record
        priced      reads orders to 125, writes its answer as 57; its topic ends at 58
        totals      reads priced to 58, writes; its topic ends at 9, and is committed to there: included
    """

    def __init__(
        self, chain: InputChain, ends: Offsets, topics: TopicEnds, progress: Callable[[ChainedQuery], InputProgress]
    ) -> None:
        self._topics = topics
        self._progress = progress
        self._wanted: dict[str, dict[int, int]] = {topic: dict(offsets) for topic, offsets in ends.items()}
        self._left = list(chain.between(ends))
        self._written: PartitionOffsets | None = None
        self.ends: PartitionOffsets = {}
        """Once it is complete: where the topic of the view ended then."""

    @property
    def waits_for(self) -> ChainedQuery | None:
        """The query that is not so far; None once all are."""
        return self._left[0] if self._left else None

    def is_complete(self) -> bool:
        while self._left:
            query = self._left[0]
            if self._written is None:
                if not self._progress(query).includes(self._wanted_of(query)):
                    return False
                self._written = self._topics.written_ends(query.writes)
            if not _covered(self._written, self._topics.ends(query.writes)):
                return False
            self.ends = self._written
            self._want(query.writes, self._written)
            self._left.pop(0)
            self._written = None
        return True

    def missing(self) -> list[tuple[str, int, int, int]]:
        """Topic, partition, offset reached and offset wanted, of what the query that is waited for has yet to read;
        none where it has read all, and writes.
        """
        query = self.waits_for
        if query is None or self._written is not None:
            return []
        progress = self._progress(query)
        return [
            (topic, partition, reached, end)
            for topic, offsets in sorted(self._wanted_of(query).items())
            for partition, end in sorted(offsets.items())
            if (reached := progress.reached(topic, partition)) < end
        ]

    def _wanted_of(self, query: ChainedQuery) -> Mapping[str, PartitionOffsets]:
        return {topic: offsets for topic, offsets in self._wanted.items() if topic in query.reads}

    def _want(self, topic: str, ends: PartitionOffsets) -> None:
        wanted = self._wanted.setdefault(topic, {})
        for partition, end in ends.items():
            wanted[partition] = max(end, wanted.get(partition, 0))


def _covered(wanted: PartitionOffsets, ends: PartitionOffsets) -> bool:
    return all(ends.get(partition, 0) >= end for partition, end in wanted.items())
