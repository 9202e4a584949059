"""``ShuffleBlock``: the unit that crosses an exchange, and its form as a row of Spark.

A block carries the rows of one edge for one bucket. Five edges belong to no operator and are only forwarded by the
levels, so that what they carry reaches the task that needs it in the same batch:

    REJECTED  records that could not be decoded, or that a budget has refused, to the sink: they are written in the
              transaction of the output
    LATE      rows that came behind the watermark, to the sink, where the query has a topic for them
    PARTITION_TIMES  event times seen per input partition, to every bucket of the level of their edge
    REPORT    what a task or a bucket reports (``spark_jobs.exchange.report``), to the last stage
    BLOCK_COUNT  how many blocks a sender has for a bucket, to who opens them (``spark_jobs.exchange.sequence_check``)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

REJECTED = -1
PARTITION_TIMES = -2
REPORT = -3
LATE = -4
BLOCK_COUNT = -5
TOPIC = "topic"
"""On REJECTED: the column that names the topic of the record, beside those of ``changelog.decode.REJECTED``."""

SPARK_SCHEMA = "bucket int, level int, edge int, origin int, rows binary, sender string, number int"
SCHEMA = pa.schema(
    [
        ("bucket", pa.int32()),
        ("level", pa.int32()),
        ("edge", pa.int32()),
        ("origin", pa.int32()),
        ("rows", pa.binary()),
        ("sender", pa.string()),
        ("number", pa.int32()),
    ]
)


@dataclass(frozen=True, slots=True)
class ShuffleBlock:
    """bucket  number of the receiving bucket
    level   number of the level that opens the block
    edge    the edge its rows travel on
    origin  Kafka partition or bucket that sent it; orders the blocks of an edge, whatever order Spark delivers
    rows    the packed rows
    sender  the task or bucket that sent it
    number  of it among those of its sender for this bucket and level; of a BLOCK_COUNT: how many these are
    """

    bucket: int
    level: int
    edge: int
    origin: int
    rows: bytes
    sender: str = ""
    number: int = 0


def to_batch(blocks: Iterable[ShuffleBlock], bucket_keys: tuple[int, ...]) -> pa.RecordBatch:
    """The blocks as rows of Spark; ``bucket_keys[n]`` is the value that Spark's hash sends to partition n."""
    columns = [(bucket_keys[p.bucket], p.level, p.edge, p.origin, p.rows, p.sender, p.number) for p in blocks]
    return pa.RecordBatch.from_arrays(
        [pa.array(values, field.type) for values, field in zip(zip(*columns, strict=True), SCHEMA, strict=True)]
        if columns
        else [pa.array([], field.type) for field in SCHEMA],
        schema=SCHEMA,
    )


def from_batch(batch: pa.RecordBatch, bucket_keys: tuple[int, ...]) -> Iterator[ShuffleBlock]:
    for row in zip(*(batch.column(name).to_pylist() for name in SCHEMA.names), strict=True):
        yield ShuffleBlock(bucket_keys.index(row[0]), *row[1:])


def in_order(blocks: Iterable[ShuffleBlock]) -> list[ShuffleBlock]:
    """The order in which a level takes its blocks: the same in every replay."""
    return sorted(blocks, key=lambda block: (block.edge, block.origin, block.sender, block.number))
