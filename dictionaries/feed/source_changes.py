"""What a feed says of the source, and the layouts that it keeps fresh."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from dovetail.changelog.lookup import Key, Rows


class Change(NamedTuple):
    """The last word on a key: its ``rows``, ``()`` if it was deleted; None: the source has to be asked."""

    offset: int
    rows: Rows | None


@dataclass
class SourceChanges:
    """What the records of a partition from ``start`` to before ``end`` say, the last change of each key.

    is_whole  the table was emptied: nothing that is held can be trusted
    rejected  records of which no key can be known; ``reason``: what is wrong with the first of them
    """

    start: int
    end: int
    records: int = 0
    by_key: dict[Key, Change] = field(default_factory=dict)
    is_whole: bool = False
    rejected: int = 0
    reason: str = ""


@runtime_checkable
class Fed(Protocol):
    """A layout that a feed keeps fresh. ``feed`` names the topic, another one of the same name differently."""

    def feed_positions(self, feed: str) -> Mapping[int, int]:
        """Up to which offsets the feed is in what this process finds at its start; empty: not known, or nothing is."""
        ...

    def begin_feed(self, feed: str, positions: Mapping[int, int]) -> None:
        """Forget all, in every worker: changes before these offsets may have been missed."""
        ...

    def apply_feed(self, feed: str, partition: int, changes: SourceChanges, now_ms: int) -> None:
        """Take changes in, the parts of each partition in order. May raise ServiceUnavailable: apply them again."""
        ...
