"""What a batch counts, from any stage to the progress of the query.

Stages send their counts along with the rows (edge COUNTS); the last stage adds its own and gives them to Spark as rows,
whose sums Spark reports with the batch. So a count belongs to a committed batch, and a replay does not count twice.

A **reading** is no sum: it says how much there is, or how far time has come, after the batch. Each has one author in a
batch, so its name holds the bucket where several could have it, and a batch that passes a bucket by says nothing new.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

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
READINGS = "readings"
STATE_ROWS = "state_rows"
STATE_BYTES = "state_bytes"
WATERMARK = "watermark"
_READING = "="
"""The first letter of a reading's name, which no count has."""
TOLD = f"{_READING}told"
"""The watermark that heartbeats are to tell: the last stage takes it, so Spark does not report it."""
SPARK_SCHEMA = "name string, count long"


def packed(counts: Counter[str]) -> bytes:
    return json.dumps({name: count for name, count in counts.items() if count or name.startswith(_READING)}).encode()


def unpacked(packed_counts: bytes) -> Counter[str]:
    return Counter(json.loads(packed_counts))


def to_batch(counts: Counter[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array(list(counts), pa.string()), pa.array(list(counts.values()), pa.int64())], names=["name", "count"]
    )


def observed(further: Iterable[str] = ()) -> list[Column]:
    """What Spark is to report of the rows of the last stage: NAMES, and ``further`` counts of the query. 0 each for a
    batch that no stage had to work on. And READINGS, a list.
    """
    names = [*NAMES, *further]
    counted = [sf.sum(sf.when(sf.col("name") == name, sf.col("count")).otherwise(0)) for name in names]
    read = sf.when(sf.col("name").startswith(_READING), sf.struct("name", "count"))
    return [
        *(sf.coalesce(count, sf.lit(0)).alias(name) for name, count in zip(names, counted, strict=True)),
        sf.collect_list(read).alias(READINGS),
    ]


def state_readings(level: int, bucket: int, rows: int, size: int) -> Counter[str]:
    """What a bucket holds at a level: rows, and bytes."""
    place = f"{level}.{bucket}"
    return Counter({f"{_READING}{STATE_ROWS}.{place}": rows, f"{_READING}{STATE_BYTES}.{place}": size})


def watermark_readings(watermarks: Mapping[int, int]) -> Counter[str]:
    """Those of edges. All buckets of a level have the same: one of them says it."""
    return Counter({f"{_READING}{WATERMARK}.{edge}": value for edge, value in watermarks.items()})


def of_member(key: str, counts: Mapping[str, int]) -> Counter[str]:
    """Of a member of a pack: counts are readings there, too, since the one task of a pack is their only author."""
    return Counter({f"{_READING}{key}:{name}": count for name, count in counts.items()})


def by_member(listed: Iterable[Mapping[str, Any]]) -> dict[str, Counter[str]]:
    """READINGS of a pack as Spark reports them: what ``of_member`` was given, by key."""
    found: dict[str, Counter[str]] = {}
    for reading in listed:
        key, _, name = reading["name"].removeprefix(_READING).partition(":")
        found.setdefault(key, Counter())[name] = reading["count"]
    return found


def parted(counted: Mapping[str, int]) -> tuple[Counter[str], dict[str, dict[str, int]]]:
    """Counts, and readings (as ``readings`` gives them)."""
    listed = [{"name": name, "count": count} for name, count in counted.items() if name.startswith(_READING)]
    return Counter({name: count for name, count in counted.items() if not name.startswith(_READING)}), readings(listed)


def readings(listed: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """READINGS as Spark reports them: STATE_ROWS, STATE_BYTES or WATERMARK → place → value."""
    found: dict[str, dict[str, int]] = {STATE_ROWS: {}, STATE_BYTES: {}, WATERMARK: {}}
    for reading in listed:
        kind, _, place = reading["name"].removeprefix(_READING).partition(".")
        found[kind][place] = reading["count"]
    return found
