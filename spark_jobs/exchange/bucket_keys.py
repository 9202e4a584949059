"""The values of the column ``bucket``, by which Spark sends a block to the task of its bucket.

Spark deals out rows by ``pmod(hash(value), partitions)``, whose hash of an int is MurmurHash3 for 32 bits over its four
bytes, with the seed 42 (``org.apache.spark.sql.catalyst.expressions.Murmur3Hash``). It is computed here, since to ask
Spark takes a job.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

_SEED = 42
_TRIED_PER_BUCKET = 64

Words = npt.NDArray[np.uint32]


@lru_cache(maxsize=64)
def bucket_keys(buckets: int) -> tuple[int, ...]:
    """One value per bucket, such that Spark's hash sends the value of bucket n to partition n of ``buckets``."""
    partitions = spark_hash(np.arange(_TRIED_PER_BUCKET * buckets + 1, dtype=np.int32)) % buckets
    return tuple(int(np.argmax(partitions == bucket)) for bucket in range(buckets))


def spark_hash(values: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """What ``hash(value)`` is in Spark's SQL, of each value."""
    mixed = values.view(np.uint32) * np.uint32(0xCC9E2D51)
    state = np.uint32(_SEED) ^ (_rotated(mixed, 15) * np.uint32(0x1B873593))
    state = _rotated(state, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    state ^= np.uint32(values.itemsize)
    state = (state ^ (state >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    state = (state ^ (state >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return (state ^ (state >> np.uint32(16))).view(np.int32)


def _rotated(words: Words, bits: int) -> Words:
    """To the left."""
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))
