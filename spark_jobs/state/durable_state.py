"""The durable state of a bucket: the entries of its ``RunStore`` in the state store of Spark.

    entries   entry id → arrangement and packed rows; one value each, some MB at most
    version   number and token of the last commit, and the store's scalars; of each portion where there are several

Both are committed by Spark together with the batch. Values are written once and not read back, save when no local copy
fits the version: then those of the portion are, and its store is rebuilt.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from dovetail.joins.state.portion import Portion, portion_of
from dovetail.joins.state.store import RunEntry, RunStore
from dovetail.spark_jobs.exchange.arrow_ipc import pack, unpack
from dovetail.spark_jobs.state.bucket_version import BucketVersion

ENTRIES, VERSION = "entries", "version"
"""What the variables are called in the state of Spark."""


class DurableState:
    """The state variables of one level; Spark points them at the bucket whose rows it hands over."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._entries = handle.getMapState(ENTRIES, "id long", "arrangement string, rows binary")
        self._version = handle.getValueState(VERSION, "number long, token string, scalars string")

    def version(self) -> BucketVersion | None:
        """As of the last commit; None before any."""
        committed = self._version.get()
        return None if committed is None else BucketVersion.read(*committed)

    def put_version(self, version: BucketVersion) -> None:
        self._version.update(version.written())

    def reader(self, portions: int) -> Callable[[Portion], Iterator[tuple[int, RunEntry]]]:
        """What gives the entries of a portion, of so many that the bucket has; several are not read at once."""
        if portions == 1:
            return lambda _: self._all()
        by_portion: dict[int, list[int]] = defaultdict(list)

        def read(portion: Portion) -> Iterator[tuple[int, RunEntry]]:
            if not by_portion:
                for (entry_id,) in self._entries.keys():  # noqa: SIM118 - the state of Spark is no dict
                    by_portion[portion_of(entry_id)].append(entry_id)
            return map(self._one, by_portion[portion.number])

        return read

    def write(self, store: RunStore) -> dict[str, int]:
        """Write the entries that changed since ``store`` was attached; its scalars. Spark makes it durable when the
        batch commits.
        """
        journal = store.flush()
        for entry_id in sorted(journal.dropped):
            self._entries.removeKey((entry_id,))
        for entry_id, entry in journal.written.items():
            self._entries.updateValue((entry_id,), (entry.arrangement, pack(entry.table)))
        return dict(journal.scalars)

    def _all(self) -> Iterator[tuple[int, RunEntry]]:
        for (entry_id,), (arrangement, rows) in self._entries.iterator():
            yield entry_id, RunEntry(arrangement, unpack(bytes(rows)))

    def _one(self, entry_id: int) -> tuple[int, RunEntry]:
        found = self._entries.getValue((entry_id,))
        assert found is not None
        arrangement, rows = found
        return entry_id, RunEntry(arrangement, unpack(bytes(rows)))
