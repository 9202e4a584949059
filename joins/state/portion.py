"""A portion: the part of a bucket's keys whose state is in memory at one time.

A bucket has one, the whole, until that holds more than may be in memory; then it is cut in two by the next bit of the
hash that chose the bucket, and each of the two again when it is too large (extendible hashing; the partitions of a
hybrid hash join, found as the state grows):

    whole ─▶ 0, 1 ─▶ 0, 10, 11        of 2 buckets bucket 1 has   1 of 2 ─▶ 1, 3 of 4 ─▶ 1 of 4, 3, 7 of 8

So a portion is the bucket that there would be if there were so many more of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from dovetail.joins.state.store import RunStore

_ENTRY_BITS = 40
"""Of the number of an entry: those above say which portion it is of."""


@dataclass(frozen=True)
class Portion:
    """number    by which its entries know it: no other portion of the bucket is ever called so, and 0 has what no key
                 has cut
    depth     how many cuts lead to it
    residue   the lower ``depth`` bits of its keys
    one_key   so many bytes it had when nearly all of them were found to be of one key: it is not cut; 0: never
    """

    number: int = 0
    depth: int = 0
    residue: int = 0
    one_key: int = 0

    def halves(self, number: int) -> tuple[Portion, Portion]:
        """What it is cut into; the new one is called ``number``."""
        depth = self.depth + 1
        return replace(self, depth=depth, one_key=0), Portion(number, depth, self.residue + (1 << self.depth))

    def bucket(self, bucket: int, buckets: int) -> int:
        """Which of ``buckets << depth`` buckets it is, as a portion of ``bucket`` of ``buckets``."""
        return bucket + buckets * self.residue

    @property
    def first_id(self) -> int:
        """The least number of its entries."""
        return self.number << _ENTRY_BITS


WHOLE = Portion()


def portion_of(entry_id: int) -> int:
    """The number of the portion that an entry is of."""
    return entry_id >> _ENTRY_BITS


class PortionStore(Protocol):
    """Where the portions of a bucket lie between their turns."""

    @property
    def portions(self) -> Sequence[Portion]:
        """All there are; the whole before the first batch."""
        ...

    def attach(self, portion: Portion) -> RunStore:
        """The state of ``portion``, as it was put back last."""
        ...

    def put(self, portion: Portion, store: RunStore) -> None:
        """Put ``portion`` back with what ``store`` holds; one of its number takes the place of the one that was."""
        ...
