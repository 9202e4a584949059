"""What the first query of a session would wait for, done before there is one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues


def warm_up(session: SparkSession) -> None:
    """Load Spark's planner, and the parents of the Python workers."""
    session.range(session.sparkContext.defaultParallelism).mapInArrow(_same, "id long").collect()


def warm_up_state(session: SparkSession) -> None:
    """Load what a query of several buckets needs besides: an exchange, its sort, a state store, and who serves it to
    Python. It takes a second of a core.
    """
    # A session of its own, since the number of partitions is a setting of the session.
    apart = session.newSession()
    apart.conf.set("spark.sql.shuffle.partitions", "1")
    # Who manages streaming queries makes the coordinator of state stores, which a stateful batch asks for.
    _ = apart.streams
    rows = apart.range(1).selectExpr("CAST(id AS int) AS bucket").mapInArrow(_same, "bucket int")
    rows.groupBy("bucket").transformWithStateInPandas(_Counting(), "bucket int", "Append", "None").collect()


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches


class _Counting(StatefulProcessor):
    """Reads and writes a state, and gives its rows back."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._count = handle.getValueState("count", "count int")

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        self._count.get()
        self._count.update((1,))
        yield from rows

    def close(self) -> None:
        """Nothing is held."""
