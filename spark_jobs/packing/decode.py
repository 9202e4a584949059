"""The first stage of a pack: records read once, decoded for each member that wants them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from dovetail.broker.topics import Offsets
from dovetail.joins.dataflow import failed_calls
from dovetail.spark_jobs.exchange.arrow_ipc import pack
from dovetail.spark_jobs.exchange.report import FAILED_CALLS
from dovetail.spark_jobs.exchange.sequence_check import Sender
from dovetail.spark_jobs.exchange.shuffle_block import MEMBER, ShuffleBlock, to_batch
from dovetail.spark_jobs.stages.at_fault import working_for
from dovetail.spark_jobs.stages.decode import ROWS_PER_PARCEL, Decoding, Silence, readings_of
from dovetail.spark_jobs.stages.job import QUERIES_KEPT, Job, opened
from dovetail.spark_jobs.state.checkpoint import parsed_offsets

STAGE = 1
"""Of a pack, which has one."""


def blocks_of_pack(
    shipped: bytes,
    pieces: Iterable[tuple[str, int, pa.Table]],
    silences: Iterable[Silence] = (),
    name: str = "share 0",
    *,
    to_every_bucket: bool = False,
) -> Iterator[pa.RecordBatch]:
    """As ``stages.decode.blocks_of``; a block holds those of a member. ``to_every_bucket``: of every member."""
    failed_calls.taken()  # those of an attempt that did not come to its end
    job, sender = opened(shipped), Sender(name)
    members = _members(shipped)
    decodings = [Decoding(member.job, readings_of(shipped, number)) for number, member in enumerate(members)]
    for silence, decoding in itertools.product(silences, decodings):
        decoding.fall_silent(silence)
    for topic, partition, piece in pieces:
        for member, decoding in zip(members, decodings, strict=True):
            wanted = member.wanted(topic, partition, piece)
            if wanted.num_rows:
                with working_for(member.job.key):
                    decoding.read(topic, partition, wanted)
                decoding.outbox.report.counts[FAILED_CALLS] += failed_calls.taken()
        if sum(decoding.outbox.rows for decoding in decodings) >= ROWS_PER_PARCEL:
            gathered = (decoding.outbox.blocks() for decoding in decodings)
            yield to_batch(sender.numbered(_of_members(members, gathered)), job.bucket_keys)
    last = (
        itertools.chain(one.outbox.blocks(), one.outbox.closing_blocks(to_every_bucket=to_every_bucket))
        for one in decodings
    )
    yield to_batch([*sender.numbered(_of_members(members, last)), *sender.block_counts()], job.bucket_keys)


@dataclass(frozen=True)
class _Member:
    """starts   what it had read when it joined; other members may have been behind, and the pack begins there"""

    job: Job
    topics: frozenset[str]
    starts: Offsets

    def wanted(self, topic: str, partition: int, piece: pa.Table) -> pa.Table:
        """The records that it has not read yet."""
        if topic not in self.topics:
            return piece.slice(0, 0)
        start = self.starts.get(topic, {}).get(partition, 0)
        if not start or not piece.num_rows or piece.column("offset")[0].as_py() >= start:
            return piece
        return piece.filter(pc.field("offset") >= start)


@lru_cache(maxsize=QUERIES_KEPT)
def _members(shipped: bytes) -> tuple[_Member, ...]:
    return tuple(
        _Member(job, frozenset(job.dataflow.topics), parsed_offsets(job.resumed_at)) for job in opened(shipped).members
    )


def _of_members(members: Iterable[_Member], gathered: Iterable[Iterable[ShuffleBlock]]) -> Iterator[ShuffleBlock]:
    for number, (member, blocks) in enumerate(zip(members, gathered, strict=True)):
        with working_for(member.job.key):
            batch = to_batch(blocks, member.job.bucket_keys)
        if batch.num_rows:
            yield ShuffleBlock(0, STAGE, MEMBER, number, pack(pa.Table.from_batches([batch])))
