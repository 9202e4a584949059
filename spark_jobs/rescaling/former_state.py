"""The state of a checkpoint at rest, cut anew: by tasks of Spark that read its own store, or what it began with."""

from __future__ import annotations

import functools
import itertools
import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from dovetail.joins.dataflow.graph import Dataflow
from dovetail.joins.host.one_bucket import part_of_level
from dovetail.joins.host.repartition import Repartition
from dovetail.joins.state.portion import portion_of
from dovetail.joins.state.store import SORT, RunEntry, RunStore
from dovetail.runtime.storage.storage import Storage
from dovetail.spark_jobs.exchange.arrow_ipc import unpack
from dovetail.spark_jobs.fused.state import BUCKET, STAGE
from dovetail.spark_jobs.state.bucket_version import scalars_of
from dovetail.spark_jobs.state.checkpoint import Checkpoint, place
from dovetail.spark_jobs.state.durable_runs import DurableRuns
from dovetail.spark_jobs.state.durable_state import ENTRIES, VERSION
from dovetail.spark_jobs.state.relocation import rewrite_schema_paths
from dovetail.spark_jobs.state.seed import Seed, SeedWriter

_SETTINGS = {
    # An entry may be some MB.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16",
}


@dataclass(frozen=True)
class StateLocation:
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

    @staticmethod
    def of(level: int, levels: int, *, fused: bool) -> StateLocation:
        """That of a query alone."""
        return StateLocation(STAGE, 1, part_of_level(level)) if fused else StateLocation(level, levels)


@dataclass(frozen=True)
class LevelRepartition:
    """The entries of a former bucket, in order, into the seed of ``target``.

    dataflow      None: nothing is cut, the one bucket stays as it is; then it may be of several levels
    bucket_keys   value by number of the former buckets, by which the state store knows them
    buckets       how many there are to be
    taken, put_in where the former checkpoint has the level, and where the new one
    """

    dataflow: Dataflow | None
    level: int
    bucket_keys: tuple[int, ...]
    buckets: int
    target: Storage
    taken: StateLocation
    put_in: StateLocation

    @property
    def seed(self) -> SeedWriter:
        return SeedWriter(Seed(self.target), self.put_in.stage)

    def put(self, writer: SeedWriter, former: int, entry: RunEntry, portion: int = 0) -> int:
        rows = 0
        own = RunEntry(entry.arrangement.removeprefix(self.taken.prefix), entry.table)
        for bucket, piece in (
            [(former, own)] if self._repartition is None else self._repartition.parts(former, own, portion)
        ):
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
        found = self._repartition.scalars(own) if self._repartition is not None else dict(*own)
        return {f"{self.put_in.prefix}{name}": value for name, value in found.items()}

    @cached_property
    def _repartition(self) -> Repartition | None:
        if self.dataflow is None:
            return None
        return Repartition(self.dataflow, self.level, len(self.bucket_keys), self.buckets)


@dataclass(frozen=True)
class StageRepartition:
    """For ``mapInArrow``: the entries of a stage, those of an arrangement after each other, each to the one of
    ``repartitions`` whose prefix it has; the rows there are, by the number of that one.
    """

    repartitions: tuple[LevelRepartition, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = [0] * len(self.repartitions)
        for number, entries in itertools.groupby(self._entries(batches), key=lambda found: found[0]):
            repartition = self.repartitions[number]
            with repartition.seed as writer:
                for _, bucket_key, entry_id, entry in entries:
                    former = repartition.bucket_keys.index(bucket_key)
                    rows[number] += repartition.put(writer, former, entry, portion_of(entry_id))
        yield pa.RecordBatch.from_pydict({"repartition": list(range(len(rows))), "rows": rows})

    def _entries(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, int, int, RunEntry]]:
        """Of which part each is, the value of its bucket, its number, and itself."""
        for batch in batches:
            columns = (batch.column(name) for name in ("bucket", "id", "arrangement", "rows"))
            for key, entry_id, arrangement, blob in zip(*columns, strict=True):
                name = arrangement.as_py()
                if (number := self.wanting(name)) is not None:
                    yield number, key.as_py(), entry_id.as_py(), RunEntry(name, unpack(blob.as_py()))

    def wanting(self, arrangement: str) -> int | None:
        """Which of them it belongs to; None: that of a member which stays where it is, or has left."""
        found = (number for number, one in enumerate(self.repartitions) if arrangement.startswith(one.taken.prefix))
        return next(found, None)


@dataclass(frozen=True)
class Cut:
    """What was written of a level: so many rows, and the numbers that are yet to be written."""

    rows: int
    scalars: Mapping[str, int]


def repartition_level(session: SparkSession, checkpoint: Checkpoint, level: LevelRepartition) -> Cut:
    """Cut what ``checkpoint`` has of a level: what its batches have left, or what it begins with."""
    [cut] = repartition_stage(session, checkpoint, [level])
    return cut


def repartition_stage(
    session: SparkSession, checkpoint: Checkpoint, repartitions: Sequence[LevelRepartition]
) -> list[Cut]:
    """As ``repartition_level``, of several parts of one stage: it is read once for all of them."""
    if not repartitions:
        return []
    stage = StageRepartition(tuple(repartitions))
    if (end := checkpoint.committed_end) is not None:
        if checkpoint.expect_origin().fused:
            return _repartition_of_runs(DurableRuns(checkpoint.storage).at(place(end)), stage)
        rewrite_schema_paths(checkpoint.spark)
        return _repartition_of_store(session, checkpoint, stage)
    seed = Seed(checkpoint.storage)
    return _repartition_of_seed(seed, stage) if seed.there else [Cut(0, {})] * len(repartitions)


def _repartition_of_store(session: SparkSession, checkpoint: Checkpoint, stage: StageRepartition) -> list[Cut]:
    """What batches have left of a stage in the state store of Spark."""
    # Whoever opens a state store asks a coordinator, which is there once the session has been asked for its streams.
    _ = session.streams
    session = session.newSession()
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    taken = stage.repartitions[0].taken
    found = _variable(session, checkpoint, taken, VERSION).select("value.scalars").collect()
    numbers = list(scalars_of(row.scalars for row in found))
    # A partition has one bucket. Of equal rows that which was held longest is taken back first, so in their order.
    entries = _variable(session, checkpoint, taken, ENTRIES).selectExpr(
        "key.bucket AS bucket", "user_map_key.id AS id", "user_map_value.arrangement", "user_map_value.rows"
    )
    wanted = [entries.arrangement.startswith(one.taken.prefix) for one in stage.repartitions]
    own = entries.where(functools.reduce(operator.or_, wanted))
    counted = own.sortWithinPartitions("arrangement", "id").mapInArrow(stage, "repartition long, rows long").collect()
    rows = Counter[int]()
    for row in counted:
        rows[row.repartition] += row.rows
    return [Cut(rows[number], one.scalars(numbers)) for number, one in enumerate(stage.repartitions)]


def _variable(session: SparkSession, checkpoint: Checkpoint, taken: StateLocation, name: str) -> DataFrame:
    reader = session.read.format("statestore").option("stateVarName", name)
    return reader.option("operatorId", taken.operator).load(checkpoint.spark.location)


def _repartition_of_runs(store: RunStore, stage: StageRepartition) -> list[Cut]:
    """What batches have left of a fused query, in the order in which it came."""
    entries = (RunEntry(name, run.table.drop_columns([SORT])) for name, run in store.all_runs())
    return _repartition_of_entries(stage, {BUCKET: entries}, store.scalars)


def _repartition_of_seed(seed: Seed, stage: StageRepartition) -> list[Cut]:
    """What a checkpoint began with, of which no batch is committed."""
    taken = stage.repartitions[0].taken
    formers = range(len(stage.repartitions[0].bucket_keys))
    return _repartition_of_entries(
        stage, {former: seed.entries(taken.stage, former) for former in formers}, seed.scalars(taken.stage)
    )


def _repartition_of_entries(
    stage: StageRepartition, by_bucket: Mapping[int, Iterable[RunEntry]], numbers: Mapping[str, int]
) -> list[Cut]:
    rows = Counter[int]()
    with ExitStack() as opened:
        writers = [opened.enter_context(one.seed) for one in stage.repartitions]
        for former, entries in by_bucket.items():
            for entry in entries:
                if (number := stage.wanting(entry.arrangement)) is not None:
                    rows[number] += stage.repartitions[number].put(writers[number], former, entry)
    return [Cut(rows[number], one.scalars([numbers])) for number, one in enumerate(stage.repartitions)]
