"""The settings of a query's host: read once, when the query starts."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from dovetail.runtime.memory import batch_bytes


@dataclass(frozen=True)
class JobSettings:
    """buckets                   buckets of keys = Spark partitions = cores used at once; those of a checkpoint stand
    few_buckets               whether a query that has little to read begins in one bucket all the same
    max_offsets_per_trigger   records read in one batch, all topics together
    max_bytes_per_trigger     about so many bytes have they at most, keys and values together
    output_partitions         partitions of the output topic where it does not exist yet
    broker_wait_s             how long a lost broker is waited for before the query fails
    transaction_timeout_s     how long the broker keeps a transaction open; above the longest batch
    local_copy_dir            where copies of the state for quick attaching lie, on every machine; may be deleted at any
                              time. None: each executor has them in its own working folder
    local_copy_max_bytes      per bucket; above it no copy is kept, and each batch reads its state back
    local_copies_max_bytes    of all queries on one machine; above it the copies go that were not touched for longest
    durable_every_s           of a query in one bucket: so often its state goes to the checkpoint; after a loss of power
                              the batches since are run again
    late_topic                where late rows are written; empty: they are counted
    max_fan_out               a key of more rows on one side of a join is warned of; None: none is
    drain_only                begins no batch: those that have begun come to their end
    """

    buckets: int = field(default_factory=lambda: os.cpu_count() or 1)
    few_buckets: bool = False
    max_offsets_per_trigger: int = 2_000_000
    max_bytes_per_trigger: int = field(default_factory=batch_bytes)
    output_partitions: int = 1
    broker_wait_s: float = 120.0
    transaction_timeout_s: float = 600.0
    local_copy_dir: Path | None = Path(".dovetail/state-copy")
    local_copy_max_bytes: int = 64 << 30
    local_copies_max_bytes: int = 64 << 30
    durable_every_s: float = 30.0
    late_topic: str = ""
    max_fan_out: int | None = None
    drain_only: bool = False
