"""The source of a fused query: one task, which gives Spark what the batch reports once it is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from dovetail.spark_jobs.exchange import report
from dovetail.spark_jobs.fused.stage import run_batch
from dovetail.spark_jobs.source.kafka_source import KafkaReader, KafkaSource
from dovetail.spark_jobs.state.checkpoint import JsonOffsets

FORMAT = "dovetail-fused"


@dataclass
class WholeBatch(InputPartition):
    """What the one task runs."""

    start: JsonOffsets
    end: JsonOffsets


class FusedReader(KafkaReader):
    """Plans batches as any other; there is one task for each, also where there is no record to read."""

    def dealt(self, start: JsonOffsets, end: JsonOffsets) -> Sequence[InputPartition]:
        return [WholeBatch(start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, WholeBatch)
        return run_batch(self._shipped, partition.start, partition.end)


class FusedSource(KafkaSource):
    """Its rows are reports."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return report.SPARK_SCHEMA

    def streamReader(self, schema: StructType) -> FusedReader:  # noqa: N802
        return FusedReader(*self._of_reader)
