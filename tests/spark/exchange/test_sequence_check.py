"""A block that is missing, or comes twice, is found by whoever opens it."""

from __future__ import annotations

import pickle
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.changelog.errors import EnvironmentFault
from dovetail.spark_jobs.exchange.sequence_check import Sender, complete
from dovetail.spark_jobs.exchange.shuffle_block import BLOCK_COUNT, ShuffleBlock, from_batch, in_order, to_batch

BUCKET_KEYS = (40, 41)
places = st.lists(st.tuples(st.sampled_from((0, 1)), st.sampled_from((1, 2))), max_size=12)
"""Bucket and level of each block that a sender sends."""


def sent(places: list[tuple[int, int]], name: str = "share 0") -> list[ShuffleBlock]:
    """What a sender sends, in two portions, as it comes out of Spark's rows."""
    sender, half = Sender(name), len(places) // 2
    blocks = [ShuffleBlock(bucket, level, 0, 0, b"%d" % number) for number, (bucket, level) in enumerate(places)]
    portions = [list(sender.numbered(blocks[:half])), [*sender.numbered(blocks[half:]), *sender.block_counts()]]
    return [one for portion in portions for one in from_batch(to_batch(portion, BUCKET_KEYS), BUCKET_KEYS)]


def at(blocks: list[ShuffleBlock], bucket: int, level: int) -> list[ShuffleBlock]:
    return [block for block in blocks if (block.bucket, block.level) == (bucket, level)]


@given(places, places, st.randoms(use_true_random=False))
def test_all_that_came_is_opened_in_whatever_order(
    one: list[tuple[int, int]], other: list[tuple[int, int]], chance: random.Random
) -> None:
    blocks = [*sent(one, "share 0"), *sent(other, "share 1")]
    chance.shuffle(blocks)

    for place in ((0, 1), (0, 2), (1, 1), (1, 2)):
        opened = in_order(complete(at(blocks, *place)))
        assert [block.rows for block in opened] == [
            b"%d" % number for places in (one, other) for number, found in enumerate(places) if found == place
        ]


@given(st.lists(st.just((0, 1)), min_size=1, max_size=6), st.data())
def test_one_that_is_missing_is_found(places: list[tuple[int, int]], data: st.DataObject) -> None:
    """Whichever it is, the one that tells how many there are among them."""
    blocks = sent(places)
    del blocks[data.draw(st.integers(0, len(blocks) - 1))]

    with pytest.raises(EnvironmentFault, match="incompletely, or twice"):
        complete([*blocks, *sent(places, "share 1")])


@given(st.lists(st.just((0, 1)), min_size=1, max_size=6), st.data())
def test_one_that_comes_twice_is_found(places: list[tuple[int, int]], data: st.DataObject) -> None:
    blocks = sent(places)
    blocks.append(blocks[data.draw(st.integers(0, len(blocks) - 1))])

    with pytest.raises(EnvironmentFault, match="incompletely, or twice"):
        complete(blocks)


def test_the_error_names_the_sender_and_passes_by_itself() -> None:
    first, second, count = sent([(0, 1), (0, 1)], "bucket 3 of level 1")
    assert (first.number, second.number, count.edge, count.number) == (0, 1, BLOCK_COUNT, 2)

    with pytest.raises(EnvironmentFault) as found:
        complete([first, count])
    assert pickle.loads(pickle.dumps(found.value)).retry
    assert "of 2 blocks there are the numbers [0]" in str(found.value)
    assert "bucket 3 of level 1" in str(found.value)
