"""The state of a checkpoint at rest, cut anew: by tasks of Spark that read its own store, or what it began with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from joins.dataflow.graph import Dataflow
from joins.host.recut import Recut
from joins.state.store import RunEntry
from runtime.storage.storage import Storage
from spark_jobs.exchange.blob import unpack
from spark_jobs.state.checkpoint import Checkpoint
from spark_jobs.state.durable_state import ENTRIES, VERSION
from spark_jobs.state.seed import Seed, SeedWriter

_SETTINGS = {
    # An entry may be some MB.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16",
}


@dataclass(frozen=True)
class LevelRecut:
    """For ``mapInArrow``: the entries of a former bucket, in order, into the seed of ``target``; the rows there are.

    bucket_keys   value by number of the former buckets, by which the state store knows them
    buckets       how many there are to be
    """

    dataflow: Dataflow
    level: int
    bucket_keys: tuple[int, ...]
    buckets: int
    target: Storage

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = 0
        with SeedWriter(Seed(self.target), self.level) as writer:
            for batch in batches:
                keys, arrangements, blobs = (batch.column(name) for name in ("bucket", "arrangement", "rows"))
                for key, arrangement, blob in zip(keys, arrangements, blobs, strict=True):
                    entry = RunEntry(arrangement.as_py(), unpack(blob.as_py()))
                    rows += self.put(writer, self.bucket_keys.index(key.as_py()), entry)
        yield pa.RecordBatch.from_pydict({"rows": [rows]})

    def put(self, writer: SeedWriter, former: int, entry: RunEntry) -> int:
        rows = 0
        for bucket, piece in self.recut.parts(former, entry):
            writer.write(former, bucket, piece)
            rows += piece.table.num_rows
        return rows

    @cached_property
    def recut(self) -> Recut:
        return Recut(self.dataflow, self.level, len(self.bucket_keys), self.buckets)


def recut_of_store(session: SparkSession, checkpoint: Checkpoint, level: LevelRecut) -> int:
    """Cut what batches have left of a level in the state store of Spark; the rows."""
    session = session.newSession()
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    numbers = _variable(session, checkpoint, level, VERSION).select("value.scalars").collect()
    Seed(level.target).put_scalars(level.level, level.recut.scalars(json.loads(row.scalars) for row in numbers))
    # A partition has one bucket. Of equal rows that which was held longest is taken back first, so in their order.
    entries = _variable(session, checkpoint, level, ENTRIES).selectExpr(
        "key.bucket AS bucket", "user_map_key.id AS id", "user_map_value.arrangement", "user_map_value.rows"
    )
    counted = entries.sortWithinPartitions("id").mapInArrow(level, "rows long").collect()
    return sum(row.rows for row in counted)


def _variable(session: SparkSession, checkpoint: Checkpoint, level: LevelRecut, name: str) -> DataFrame:
    # Spark numbers the operators of a query from its end.
    operator = level.dataflow.levels - level.level
    reader = session.read.format("statestore").option("operatorId", operator).option("stateVarName", name)
    return reader.load(checkpoint.spark.location)


def recut_of_seed(seed: Seed, level: LevelRecut) -> int:
    """Cut what a checkpoint began with, of which no batch is committed; the rows."""
    Seed(level.target).put_scalars(level.level, level.recut.scalars([seed.scalars(level.level)]))
    rows = 0
    with SeedWriter(Seed(level.target), level.level) as writer:
        for former in range(len(level.bucket_keys)):
            for entry in seed.entries(level.level, former):
                rows += level.put(writer, former, entry)
    return rows
