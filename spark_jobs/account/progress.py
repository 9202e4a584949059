"""What a query has come to: of a pack, each member has an account of its own."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field

import pyarrow as pa

from dovetail.broker.topics import Offsets
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.joins.dataflow.ports import Port
from dovetail.joins.host.activity import Activity
from dovetail.runtime.logs.query_logs import BatchTotals, QueryLog
from dovetail.spark_jobs.account.complaints import Complaints
from dovetail.spark_jobs.account.skew import SkewWatch
from dovetail.spark_jobs.exchange import report
from dovetail.spark_jobs.exchange.report import BatchReport
from dovetail.spark_jobs.stages import late
from dovetail.spark_jobs.stages.job import Job
from dovetail.sql.catalog import WORKED_MS, WORKED_ROWS

_LOG = logging.getLogger("dovetail.runner")


@dataclass
class Progress:
    """offsets   topic → partition → end of what committed batches have read
    batch     number of the last committed batch, -1 before the first
    batch_ms  how long it took
    counts    sums over the batches since this start (``report.NAMES``, WORKED_MS and WORKED_ROWS)
    late      those of late rows, by the name of their input
    state     rows and bytes by level and bucket, of those that batches since this start have touched
    watermarks  by the name of an input whose event time is a time
    held_by     the partition of such an input that holds its watermark back
    activity    of the nodes, over the batches since this start
    """

    offsets: Offsets = field(default_factory=dict)
    batch: int = -1
    batch_ms: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
    state: dict[str, tuple[int, int]] = field(default_factory=dict)
    watermarks: dict[str, int] = field(default_factory=dict)
    held_by: dict[str, int] = field(default_factory=dict)
    activity: Activity = field(default_factory=Activity)


@dataclass(frozen=True)
class CommittedBatch:
    """A committed batch, as Spark tells of it; ``report`` is that of one job."""

    number: int
    took_ms: int
    offsets: Offsets
    report: BatchReport


class Account:
    """Of one job."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.progress = Progress()
        log = QueryLog(_LOG, job.name, lambda: self.progress.batch)
        self._complaints = Complaints(log)
        self._batch_totals = BatchTotals(log)
        self._skew = SkewWatch(job.dataflow, job.max_fan_out, log)
        self._late_counters = late.counters(job.dataflow)
        self._timed_inputs = timed_inputs(job.dataflow)

    def note(self, batch: CommittedBatch, now_s: float) -> None:
        self.progress.batch = batch.number
        self.progress.batch_ms = batch.took_ms
        self.progress.offsets = batch.offsets
        counts, activity = batch.report.counts, batch.report.activity
        self._read(batch.report)
        self.progress.activity.add(activity)
        self._skew.note(activity)
        self.progress.counts.update({name: counts[name] for name in report.NAMES})
        self.progress.counts[WORKED_MS] += batch.took_ms if counts[report.ROWS_IN] else 0
        self.progress.counts[WORKED_ROWS] += counts[report.ROWS_IN]
        late_rows: Counter[str] = Counter()
        for counter, name in self._late_counters.items():
            late_rows[name] += counts[counter]
        self.progress.late.update(late_rows)
        untold = {} if self._job.late_topic else late_rows
        self._complaints.note(counts[report.DANGLING], untold, now_s)
        self._batch_totals.note(counts[report.ROWS_IN], counts[report.ROWS_OUT], batch.took_ms, now_s)

    def _read(self, said: BatchReport) -> None:
        """Take note of how much state there is, and how far time has come."""
        for level, buckets in said.state.items():
            self.progress.state |= {f"{level}.{bucket}": held for bucket, held in buckets.items()}
        reached: dict[str, int] = {}
        for edge, watermark in said.watermarks.items():
            if name := self._timed_inputs.get(edge):
                reached[name] = min(watermark, reached.get(name, watermark))
        self.progress.watermarks |= reached
        named = self._timed_inputs.items()
        self.progress.held_by |= {name: said.held_by[edge] for edge, name in named if edge in said.held_by}


def timed_inputs(dataflow: Dataflow) -> dict[int, str]:
    """What the query calls the input behind each edge that has a watermark which is a time of day: those that a lag can
    be told of.

    An edge behind a join is left out: it has its time from the join's inputs. So is one that counts in whole numbers.
    """
    ports = dataflow.ports
    return {
        edge: scan.name
        for scan in dataflow.scans
        for edge in dataflow.beyond(scan.edge)
        if edge in ports and _tells_time(ports[edge])
    }


def _tells_time(port: Port) -> bool:
    return port.watermark is not None and not pa.types.is_integer(port.schema.field(port.watermark.column).type)
