"""The state of a checkpoint at rest, cut anew: by tasks of Spark that read its own store, or what it began with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from joins.dataflow.graph import Dataflow
from joins.host.recut import Recut
from joins.state.portion import portion_of
from joins.state.store import RunEntry
from runtime.storage.storage import Storage
from spark_jobs.exchange.blob import unpack
from spark_jobs.state.bucket_version import scalars_of
from spark_jobs.state.checkpoint import Checkpoint
from spark_jobs.state.durable_state import ENTRIES, VERSION
from spark_jobs.state.relocation import move_in
from spark_jobs.state.seed import Seed, SeedWriter

_SETTINGS = {
    # An entry may be some MB.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16",
}


@dataclass(frozen=True)
class Shelf:
    """Where a checkpoint has the state of a level: in which of its ``stages``, and how its names begin there, '' where
    the stage has nothing else.
    """

    stage: int
    stages: int
    prefix: str = ""

    @property
    def operator(self) -> int:
        """Spark numbers the operators of a query from its end."""
        return self.stages - self.stage


@dataclass(frozen=True)
class LevelRecut:
    """For ``mapInArrow``: the entries of a former bucket, in order, into the seed of ``target``; the rows there are.

    dataflow      None: nothing is cut, the one bucket stays as it is
    bucket_keys   value by number of the former buckets, by which the state store knows them
    buckets       how many there are to be
    taken, put_in where the former checkpoint has the level, and where the new one
    """

    dataflow: Dataflow | None
    level: int
    bucket_keys: tuple[int, ...]
    buckets: int
    target: Storage
    taken: Shelf
    put_in: Shelf

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = 0
        with SeedWriter(Seed(self.target), self.put_in.stage) as writer:
            for batch in batches:
                columns = (batch.column(name) for name in ("bucket", "id", "arrangement", "rows"))
                for key, entry_id, arrangement, blob in zip(*columns, strict=True):
                    entry = RunEntry(arrangement.as_py(), unpack(blob.as_py()))
                    former = self.bucket_keys.index(key.as_py())
                    rows += self.put(writer, former, entry, portion_of(entry_id.as_py()))
        yield pa.RecordBatch.from_pydict({"rows": [rows]})

    def put(self, writer: SeedWriter, former: int, entry: RunEntry, portion: int = 0) -> int:
        rows = 0
        own = RunEntry(entry.arrangement.removeprefix(self.taken.prefix), entry.table)
        for bucket, piece in [(former, own)] if self._recut is None else self._recut.parts(former, own, portion):
            writer.write(former, bucket, RunEntry(f"{self.put_in.prefix}{piece.arrangement}", piece.table))
            rows += piece.table.num_rows
        return rows

    def scalars(self, of_buckets: Iterable[Mapping[str, int]]) -> dict[str, int]:
        """The numbers of each new bucket, under the names that they have there."""
        prefix = self.taken.prefix
        own = [
            {name.removeprefix(prefix): value for name, value in numbers.items() if name.startswith(prefix)}
            for numbers in of_buckets
        ]
        found = self._recut.scalars(own) if self._recut is not None else dict(*own)
        return {f"{self.put_in.prefix}{name}": value for name, value in found.items()}

    @cached_property
    def _recut(self) -> Recut | None:
        if self.dataflow is None:
            return None
        return Recut(self.dataflow, self.level, len(self.bucket_keys), self.buckets)


@dataclass(frozen=True)
class Cut:
    """What was written of a level: so many rows, and the numbers that are yet to be written."""

    rows: int
    scalars: Mapping[str, int]


def recut_level(session: SparkSession, checkpoint: Checkpoint, level: LevelRecut) -> Cut:
    """Cut what ``checkpoint`` has of a level: what its batches have left, or what it begins with."""
    seed = Seed(checkpoint.storage)
    if checkpoint.committed() is not None:
        move_in(checkpoint.spark)
        return _recut_of_store(session, checkpoint, level)
    return _recut_of_seed(seed, level) if seed.there else Cut(0, {})


def _recut_of_store(session: SparkSession, checkpoint: Checkpoint, level: LevelRecut) -> Cut:
    """What batches have left of a level in the state store of Spark."""
    # Whoever opens a state store asks a coordinator, which is there once the session has been asked for its streams.
    _ = session.streams
    session = session.newSession()
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    numbers = _variable(session, checkpoint, level, VERSION).select("value.scalars").collect()
    scalars = level.scalars(scalars_of(row.scalars for row in numbers))
    # A partition has one bucket. Of equal rows that which was held longest is taken back first, so in their order.
    entries = _variable(session, checkpoint, level, ENTRIES).selectExpr(
        "key.bucket AS bucket", "user_map_key.id AS id", "user_map_value.arrangement", "user_map_value.rows"
    )
    own = entries.where(entries.arrangement.startswith(level.taken.prefix))
    counted = own.sortWithinPartitions("id").mapInArrow(level, "rows long").collect()
    return Cut(sum(row.rows for row in counted), scalars)


def _variable(session: SparkSession, checkpoint: Checkpoint, level: LevelRecut, name: str) -> DataFrame:
    reader = session.read.format("statestore").option("stateVarName", name)
    return reader.option("operatorId", level.taken.operator).load(checkpoint.spark.location)


def _recut_of_seed(seed: Seed, level: LevelRecut) -> Cut:
    """What a checkpoint began with, of which no batch is committed."""
    rows = 0
    with SeedWriter(Seed(level.target), level.put_in.stage) as writer:
        for former in range(len(level.bucket_keys)):
            for entry in seed.entries(level.taken.stage, former):
                if entry.arrangement.startswith(level.taken.prefix):
                    rows += level.put(writer, former, entry)
    return Cut(rows, level.scalars([seed.scalars(level.taken.stage)]))
