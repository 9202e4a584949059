"""A checkpoint beside another one, that goes on where it stands with another number of buckets.

    7-pairs     batch 41, 2 buckets     ─ state, cut anew ─▶     7-pairs.1     its origin is written last

The former one is only read. The new one has an identity of its own at the broker, since its batches, of which the marks
tell, are counted from 0 again. Who is killed in the midst begins again; what counts is which of the two is named by the
catalog, and that is the caller's to change, in one step.
"""

from __future__ import annotations

import itertools
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import SparkSession

from dovetail.broker.address import BrokerAddress
from dovetail.broker.query_origin import QueryOrigin
from dovetail.changelog.errors import EnvironmentFault
from dovetail.changelog.work.supervised_thread import PeriodicThread
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.joins.host.state_limit import check_buffered
from dovetail.runtime.storage.storage import Storage
from dovetail.spark_jobs.fused.state import is_fused
from dovetail.spark_jobs.rescaling.former_state import LevelRepartition, StateLocation, repartition_level
from dovetail.spark_jobs.rescaling.generations import leftovers, next_of
from dovetail.spark_jobs.state.atomic_checkpoint import atomic_checkpoint, complete, copy_snapshots
from dovetail.spark_jobs.state.checkpoint import Checkpoint
from dovetail.spark_jobs.state.removal import discard
from dovetail.spark_jobs.state.seed import Seed

_REPORT_EVERY_S = 1.0


@dataclass(frozen=True)
class Rescaled:
    """``checkpoint`` has ``rows`` in its state, in so many ``bytes``."""

    checkpoint: Storage
    rows: int
    bytes: int


def rescale(
    session: SparkSession,
    dataflow: Dataflow,
    name: str,
    former: Storage,
    bucket_keys: tuple[int, ...],
    buckets: int,
    report: Callable[[int], None],
) -> Rescaled:
    """The checkpoint that goes on from ``former``, of which each batch that has begun is committed.

    bucket_keys   of the former buckets
    report        is called once a second, with the bytes that are written

    Raises OSError, and what Spark says of its tasks; nothing is left of it then.
    """
    checkpoint, made = Checkpoint(former), next_of(former)
    origin = checkpoint.origin()
    assert origin is not None
    with atomic_checkpoint(made):
        copy_snapshots(checkpoint, made)
        with reporting_size(Seed(made), report):
            rows = _repartition(session, dataflow, checkpoint, bucket_keys, buckets, made)
        expect_rows(Seed(made), rows)
        expect_within_limits(dataflow, Seed(made), buckets)
        again = replace(
            origin,
            identity=QueryOrigin.new_identity(name),
            buckets=buckets,
            fused=is_fused(dataflow, buckets),
            resumed_at=checkpoint.planned_end or origin.resumed_at,
        )
        complete(made, again)
    return Rescaled(made, rows, Seed(made).bytes)


def retire_leftovers(checkpoint: Storage, brokers: BrokerAddress, local_copy_dir: Path | None) -> None:
    """What rescalings that were cut short have left beside ``checkpoint``, which counts."""
    for left in leftovers(checkpoint):
        discard(left, brokers, local_copy_dir, outlived=True)


def _repartition(
    session: SparkSession,
    dataflow: Dataflow,
    checkpoint: Checkpoint,
    bucket_keys: tuple[int, ...],
    buckets: int,
    place: Storage,
) -> int:
    rows, fused = 0, checkpoint.expect_origin().fused
    for number in range(1, dataflow.levels + 1):
        taken = StateLocation.of(number, dataflow.levels, fused=fused)
        put_in = StateLocation.of(number, dataflow.levels, fused=is_fused(dataflow, buckets))
        level = LevelRepartition(dataflow, number, bucket_keys, buckets, place, taken=taken, put_in=put_in)
        cut = repartition_level(session, checkpoint, level)
        Seed(place).put_scalars(put_in.stage, cut.scalars)
        rows += cut.rows
    return rows


def expect_rows(seed: Seed, rows: int) -> None:
    """Raises EnvironmentFault where tasks have written elsewhere."""
    if (there := seed.rows) != rows:
        raise EnvironmentFault(
            f"{rows} rows of the state were rewritten, and {there} are there",
            where=f"{seed.storage.location}, on {socket.gethostname()}",
            fix="have DOVETAIL_CHECKPOINT_DIR on storage that every machine mounts under this path",
        )


def expect_within_limits(dataflow: Dataflow, seed: Seed, buckets: int) -> None:
    """Raises StateLimitExceeded where a bucket would hold more than its share, and the first batch fail."""
    limited = [node for node in dataflow.nodes if node.operator.max_buffered_bytes is not None]
    for node, bucket in itertools.product(limited, range(buckets)):
        location = StateLocation.of(node.level, dataflow.levels, fused=is_fused(dataflow, buckets))
        store = seed.store(location.stage, bucket).part(location.prefix)
        for index, other in enumerate(dataflow.nodes):
            if other.level == node.level:
                other.operator.open(store, str(index))
        check_buffered(node.operator, store, buckets)


def reporting_size(seed: Seed, report: Callable[[int], None]) -> PeriodicThread:
    """Tells, in a thread of its own, how large the seed has become."""

    def tell() -> None:
        with suppress(OSError):  # a file may go meanwhile
            report(seed.bytes)

    return PeriodicThread("rescaling", _REPORT_EVERY_S, tell)
