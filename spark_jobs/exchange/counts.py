"""What a batch counts, from any stage to the progress of the query.

Stages send their counts along with the rows (edge COUNTS); the last stage adds its own and gives them to Spark as rows,
whose sums Spark reports with the batch. So a count belongs to a committed batch, and a replay does not count twice.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sf

ROWS_IN = "rows_in"
ROWS_OUT = "rows_out"
REJECTED_RECORDS = "rejected"
LATE_ROWS = "late"
UNFOUNDED = "unfounded"
FAILED_CALLS = "failed"
NAMES = (ROWS_IN, ROWS_OUT, REJECTED_RECORDS, LATE_ROWS, UNFOUNDED, FAILED_CALLS)
OBSERVATION = "dovetail"
SPARK_SCHEMA = "name string, count long"


def packed(counts: Counter[str]) -> bytes:
    return json.dumps({name: count for name, count in counts.items() if count}).encode()


def unpacked(packed_counts: bytes) -> Counter[str]:
    return Counter(json.loads(packed_counts))


def to_batch(counts: Counter[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array(list(counts), pa.string()), pa.array(list(counts.values()), pa.int64())], names=["name", "count"]
    )


def sums(further: Iterable[str] = ()) -> list[Column]:
    """What Spark is to report of the rows of the last stage: NAMES, and ``further`` counts of the query. 0 each for a
    batch that no stage had to work on.
    """
    names = [*NAMES, *further]
    counted = [sf.sum(sf.when(sf.col("name") == name, sf.col("count")).otherwise(0)) for name in names]
    return [sf.coalesce(count, sf.lit(0)).alias(name) for name, count in zip(names, counted, strict=True)]
