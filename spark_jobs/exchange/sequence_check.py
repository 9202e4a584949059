"""Numbers on blocks, so that one that is missing, or comes twice, is found instead of computed with.

A sender, which is a task of the source or a bucket of a level, numbers its blocks for each bucket of each level, and
sends a BLOCK_COUNT after them that says how many there are. Who opens them counts:

    share 2 ─▶ bucket 1 of level 1      0  1  2  BLOCK_COUNT 3

Where all that a sender has for a bucket is missing, with its BLOCK_COUNT, nothing tells: who sends to whom is known to
nobody. Spark delivers that as one block, and fails where a block is not whole.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

from dovetail.changelog.errors import EnvironmentFault
from dovetail.spark_jobs.exchange.shuffle_block import BLOCK_COUNT, ShuffleBlock


class Sender:
    """Numbers the blocks of one sender in one batch; ``name`` is its own in the batch, and the same in a replay."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._sent: Counter[tuple[int, int]] = Counter()

    def numbered(self, blocks: Iterable[ShuffleBlock]) -> Iterator[ShuffleBlock]:
        for block in blocks:
            place = block.bucket, block.level
            yield replace(block, sender=self._name, number=self._sent[place])
            self._sent[place] += 1

    def block_counts(self) -> Iterator[ShuffleBlock]:
        """To be sent after the last block."""
        for (bucket, level), count in self._sent.items():
            yield ShuffleBlock(bucket, level, BLOCK_COUNT, 0, b"", self._name, count)


def complete(blocks: Iterable[ShuffleBlock]) -> list[ShuffleBlock]:
    """``blocks``, which are those of a bucket that a level opens, without the counts.

    Raises EnvironmentFault where one is missing, or comes twice.
    """
    numbers: dict[str, list[int]] = defaultdict(list)
    block_counts: dict[str, list[int]] = defaultdict(list)
    opened: list[ShuffleBlock] = []
    for block in blocks:
        if block.edge == BLOCK_COUNT:
            block_counts[block.sender].append(block.number)
        else:
            numbers[block.sender].append(block.number)
            opened.append(block)
    for sender in sorted(numbers.keys() | block_counts.keys()):
        counts, came = block_counts[sender], sorted(numbers[sender])
        if len(counts) != 1 or came != list(range(counts[0])):
            raise EnvironmentFault(
                f"rows of a batch came incompletely, or twice: of {_text(counts)} blocks there are the numbers {came}",
                where=f"sender {sender}",
                fix="the batch is run again by itself; if this goes on, report it",
            )
    return opened


def _text(block_counts: list[int]) -> str:
    return " and ".join(str(count) for count in block_counts) or "an unknown number of"
