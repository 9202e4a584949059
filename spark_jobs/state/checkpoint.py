"""What lies beside Spark's own checkpoint: what a query is, fixed at its first start.

<checkpoint>/query.json   identity, fingerprint, buckets, where the inputs begin: written last, so that a first
                          start that did not get this far is a first start again
<checkpoint>/snapshots/   the static tables, as they were at the first start
<checkpoint>/spark/       offsets, commits and state, written by Spark
<checkpoint>/state/       the state of a query that is fused (``DurableRuns``)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import pyarrow as pa

from dovetail.broker.query_origin import ORIGIN_FILE, QueryOrigin, refuse_other_topics
from dovetail.broker.start_offsets import Beginning
from dovetail.broker.topics import Offsets
from dovetail.changelog.errors import CheckpointMismatch
from dovetail.runtime.storage.storage import Storage
from dovetail.spark_jobs.state.arrow_files import write_arrow
from dovetail.spark_jobs.state.durable_runs import DurableRuns

JsonOffsets = dict[str, dict[str, int]]
"""Topic → partition, as text → offset: what Spark keeps in its log; and IDLE → topic/partition → ms of silence."""
IDLE = "#idle"
"""Among the topics of the offsets that Spark logs; no topic can have this name. See ``spark_jobs.source.idle``."""


def place(offsets: JsonOffsets) -> str:
    """Equal for equal offsets."""
    return json.dumps(offsets, sort_keys=True)


class Checkpoint:
    """A query's checkpoint in the place it is kept in."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.spark = storage.inside("spark")
        self.snapshots = storage.inside("snapshots")

    def open(
        self,
        name: str,
        fingerprint: str,
        plan: str,
        buckets: int,
        beginning: Callable[[], Beginning],
        snapshots: Callable[[], Mapping[str, pa.Table]],
        topic_ids: Mapping[str, str],
        *,
        fused: bool = False,
    ) -> QueryOrigin:
        """The origin of the query: as written at the first start, or written now.

        ``beginning`` and ``snapshots`` are asked at the first start only. CheckpointMismatch if the plan is another
        now.
        """
        existing = self.origin()
        if existing is not None:
            existing.expect_plan(name, fingerprint, plan, where=self.storage.location)
            refuse_other_topics(existing.topic_ids, topic_ids, name)
            return existing
        if self.last_planned >= 0:
            raise self._damaged(
                f"is gone, and batch {self.last_planned} has begun: to start afresh would write its rows a second time"
            )
        self.storage.clear()
        for table_name, rows in snapshots().items():
            write_arrow(self.snapshots, f"{table_name}.arrow", rows)
        begun = beginning()
        origin = QueryOrigin(
            QueryOrigin.new_identity(name),
            fingerprint,
            plan,
            tuple(begun.first_offsets),
            buckets=buckets,
            topic_ids=topic_ids,
            history=begun.history,
            fused=fused,
        )
        self.storage.sync()
        self.storage.put(ORIGIN_FILE, origin.text.encode())
        return origin

    def origin(self) -> QueryOrigin | None:
        """None before the first start. Raises CheckpointMismatch where the file is damaged, or of another release."""
        try:
            text = self.storage.read(ORIGIN_FILE)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            return QueryOrigin.read(text.decode(), where=self._where)
        except (ValueError, KeyError, TypeError, AttributeError) as fault:
            raise self._damaged(f"cannot be read ({type(fault).__name__}: {fault})") from fault

    def expect_origin(self) -> QueryOrigin:
        """Raises CheckpointMismatch where there is none."""
        if (origin := self.origin()) is None:
            raise self._damaged("is gone")
        return origin

    def _damaged(self, reason: str) -> CheckpointMismatch:
        return CheckpointMismatch(
            f"the checkpoint is damaged: {ORIGIN_FILE} {reason}",
            where=self._where,
            fix="restore the checkpoint from a backup, or drop the query and create it again",
        )

    @property
    def _where(self) -> str:
        return self.storage.inside(ORIGIN_FILE).location

    @property
    def identity(self) -> str:
        """'' where no first start got so far, or where nobody can tell any more.

        Raises ServiceUnavailable, StorageRefused where an object store does not say.
        """
        try:
            return QueryOrigin.identity_in(self.storage.read(ORIGIN_FILE).decode())
        except (OSError, ValueError, KeyError, TypeError):
            return ""

    def committed(self) -> tuple[int, Offsets] | None:
        """Number and end offsets of the last committed batch; None before the first."""
        batch = self._last_committed
        return None if batch is None else (batch, self._ends(batch))

    @property
    def committed_end(self) -> JsonOffsets | None:
        """Where the last committed batch ends, as Spark has logged it; None before the first."""
        batch = self._last_committed
        return None if batch is None else json.loads(self._logged_end(batch))

    @property
    def _last_committed(self) -> int | None:
        return max(logged_batches(self.spark, "commits"), default=None)

    @property
    def has_state(self) -> bool:
        """Whether the state of the last committed batch is in it."""
        if (end := self.committed_end) is None or not self.expect_origin().fused:
            return True
        return DurableRuns(self.storage).has(place(end))

    @property
    def last_planned(self) -> int:
        """The number of the last batch that Spark has begun, -1 before the first."""
        return max(logged_batches(self.spark, "offsets"), default=-1)

    @property
    def planned_end(self) -> str:
        """Where the last batch ends that Spark has begun, as it is logged; '' before the first."""
        batch = self.last_planned
        return "" if batch < 0 else self._logged_end(batch)

    def planned(self) -> list[Offsets]:
        """The end offsets of all batches that Spark's log still holds, the one under way among them."""
        return [self._ends(batch) for batch in sorted(logged_batches(self.spark, "offsets"))]

    def _ends(self, batch: int) -> Offsets:
        return parsed_offsets(self._logged_end(batch))

    def _logged_end(self, batch: int) -> str:
        # A line each: version, metadata, and the one source.
        return self.spark.read(f"offsets/{batch}").decode().splitlines()[2]


def parsed_offsets(text: str) -> Offsets:
    """Offsets as Spark writes them; which partitions are idle is left out."""
    return {
        topic: {int(partition): offset for partition, offset in ends.items()}
        for topic, ends in json.loads(text).items()
        if topic != IDLE
    }


def logged_batches(spark: Storage, log: str) -> list[int]:
    """The numbers of the batches that one of Spark's logs has, ``offsets`` or ``commits``."""
    return [int(name) for name in spark.names(log) if name.isdigit()]
