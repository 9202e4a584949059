"""The portions of a bucket inside Spark: durable in its state store, and a local copy of each.

<own folder>/<level>-<bucket>/            the copy of the whole, or of the portion 0
<own folder>/<level>-<bucket>.<number>/   those of the other portions

A portion that is not attached in a batch costs nothing in it: its copy stays as it is, and so do its entries.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

from dovetail.joins.state.portion import WHOLE, Portion
from dovetail.joins.state.store import RunStore
from dovetail.spark_jobs.state.bucket_version import BucketVersion, PortionVersion
from dovetail.spark_jobs.state.durable_state import DurableState
from dovetail.spark_jobs.state.local_copy import LocalCopy, StateVersion


class BucketPortionStore:
    """For one batch of one bucket.

    folder     where its copies are, each of at most ``max_bytes``
    seed       what it begins with
    """

    def __init__(self, state: DurableState, folder: Path, max_bytes: int, seed: Callable[[], RunStore]) -> None:
        self._state, self._folder, self._max_bytes, self._seed = state, folder, max_bytes, seed
        committed = state.version()
        self._portions = {one.portion.number: one for one in committed.portions} if committed else {}
        self._entries = state.reader(len(self._portions))
        self._copies: dict[int, LocalCopy] = {}

    @property
    def portions(self) -> Sequence[Portion]:
        return [one.portion for one in self._portions.values()] or [WHOLE]

    def attach(self, portion: Portion) -> RunStore:
        """By way of its local copy, if that is as of the last commit."""
        if (known := self._portions.get(portion.number)) is None:
            return self._seed()
        store = self._copy(portion).load(known.version)
        if store is not None:
            return store
        return RunStore.restored(self._entries(portion), known.scalars)

    def put(self, portion: Portion, store: RunStore) -> None:
        scalars = self._state.write(store)
        known = self._portions.get(portion.number)
        version = StateVersion(known.version.number + 1 if known else 1, uuid.uuid4().hex)
        self._copy(portion).save(store, version)
        self._portions[portion.number] = PortionVersion(portion, version, scalars)

    def commit(self) -> None:
        """What was put back counts, once Spark commits the batch."""
        self._state.put_version(BucketVersion(tuple(self._portions.values())))

    def _copy(self, portion: Portion) -> LocalCopy:
        """The same one for the whole batch: it knows which runs lie there."""
        if portion.number not in self._copies:
            name = f"{self._folder.name}.{portion.number}" if portion.number else self._folder.name
            self._copies[portion.number] = LocalCopy(self._folder.with_name(name), self._max_bytes)
        return self._copies[portion.number]
