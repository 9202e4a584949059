"""The durable state of a bucket: the entries of its ``RunStore`` in the state store of Spark.

    entries   entry id → arrangement and packed rows; one value each, some MB at most
    version   number and token of the last commit, and the store's scalars

Both are committed by Spark together with the batch. Values are written once and not read back, save when no local copy
fits the version: then all of them are, and the store is rebuilt.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator

from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from joins.state.store import RunEntry, RunStore
from spark_jobs.exchange.blob import pack, unpack
from spark_jobs.state.local_copy import LocalCopy, StateVersion

ENTRIES, VERSION = "entries", "version"
"""What the variables are called in the state of Spark."""


class DurableState:
    """The state variables of one level; Spark points them at the bucket whose rows it hands over."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._entries = handle.getMapState(ENTRIES, "id long", "arrangement string, rows binary")
        self._version = handle.getValueState(VERSION, "number long, token string, scalars string")

    def attach(self, copy: LocalCopy, seed: Callable[[], RunStore]) -> RunStore:
        """The bucket's store as of its last commit, by way of ``copy`` if that has it; before any commit ``seed``."""
        committed = self._version.get()
        if committed is None:
            return seed()
        number, token, scalars = committed
        store = copy.load(StateVersion(number, token))
        return store if store is not None else RunStore.restored(self._read(), json.loads(scalars))

    def commit(self, store: RunStore, copy: LocalCopy) -> None:
        """Write what changed since ``attach``; Spark makes it durable when the batch commits."""
        committed = self._version.get()
        version = StateVersion((committed[0] if committed else 0) + 1, uuid.uuid4().hex)
        journal = store.flush()
        for entry_id in sorted(journal.dropped):
            self._entries.removeKey((entry_id,))
        for entry_id, entry in journal.written.items():
            self._entries.updateValue((entry_id,), (entry.arrangement, pack(entry.table)))
        self._version.update((version.number, version.token, json.dumps(dict(journal.scalars))))
        copy.save(store, version)

    def _read(self) -> Iterator[tuple[int, RunEntry]]:
        for (entry_id,), (arrangement, rows) in self._entries.iterator():
            yield entry_id, RunEntry(arrangement, unpack(bytes(rows)))
