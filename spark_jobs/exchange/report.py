"""What a batch reports, from any stage to the progress of the query.

Each task and each bucket has a report, which goes along with its rows (edge REPORT). The last stage gives them all to
Spark, as rows, which Spark lists with the batch. So a report belongs to a committed batch, and a replay does not count
twice.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sf

from dovetail.joins.host.activity import Activity

ROWS_IN = "rows_in"
ROWS_OUT = "rows_out"
REJECTED_RECORDS = "rejected"
LATE_ROWS = "late"
DANGLING = "dangling"
FAILED_CALLS = "failed"
NAMES = (ROWS_IN, ROWS_OUT, REJECTED_RECORDS, LATE_ROWS, DANGLING, FAILED_CALLS)
OBSERVATION = "dovetail"
REPORTS = "reports"
"""The member of OBSERVATION: reports as texts."""
SPARK_SCHEMA = "report string"


@dataclass
class BatchReport:
    """What one author tells of a batch; or several, put together.

    counts      what adds up: NAMES, and late rows by input
    state       level → bucket → rows and bytes that it holds after the batch; one that was passed by says nothing new
    watermarks  by edge, after the batch; all buckets of a level have the same
    held_by     the partition that holds the watermark of an edge back
    output_watermark  the watermark that heartbeats are to tell, once all is written
    activity    of the nodes
    member      of a pack, whose it is; '' outside of one
    """

    counts: Counter[str] = field(default_factory=Counter)
    state: dict[int, dict[int, tuple[int, int]]] = field(default_factory=dict)
    watermarks: dict[int, int] = field(default_factory=dict)
    held_by: dict[int, int] = field(default_factory=dict)
    output_watermark: int | None = None
    activity: Activity = field(default_factory=Activity)
    member: str = ""

    @property
    def is_empty(self) -> bool:
        return replace(self, member="") == BatchReport()

    @property
    def text(self) -> str:
        return json.dumps({**vars(self), "activity": self.activity.document()}, separators=(",", ":"))

    @property
    def packed(self) -> bytes:
        """As the rows of a block."""
        return self.text.encode()

    @staticmethod
    def read(text: str) -> BatchReport:
        parts: dict[str, Any] = json.loads(text)
        return BatchReport(
            Counter(parts["counts"]),
            {
                int(level): {int(bucket): (rows, size) for bucket, (rows, size) in buckets.items()}
                for level, buckets in parts["state"].items()
            },
            {int(edge): watermark for edge, watermark in parts["watermarks"].items()},
            {int(edge): partition for edge, partition in parts["held_by"].items()},
            parts["output_watermark"],
            Activity.read(parts["activity"]),
            parts["member"],
        )

    @staticmethod
    def together(reports: Iterable[BatchReport], member: str = "") -> BatchReport:
        """What those of a batch say of one query; ``output_watermark`` is for heartbeats alone."""
        whole, activities = BatchReport(member=member), []
        for report in reports:
            whole.counts.update(report.counts)
            for level, buckets in report.state.items():
                whole.state.setdefault(level, {}).update(buckets)
            whole.watermarks.update(report.watermarks)
            whole.held_by.update(report.held_by)
            activities.append(report.activity)
        whole.activity = Activity.of_batch(activities)
        return whole


def to_batch(reports: Iterable[str]) -> pa.RecordBatch:
    """Rows of the last stage."""
    return pa.RecordBatch.from_arrays([pa.array(reports, pa.string())], names=["report"])


def observed() -> Column:
    """What Spark is to tell of these rows: REPORTS."""
    return sf.collect_list("report").alias(REPORTS)
