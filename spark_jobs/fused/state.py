"""The state of a fused query, between its batches.

It is named by the place in the inputs up to which it has read, and looked for where that costs least:

    in the worker, as the batch before has left it
    in the local copy                           files of this machine, of every batch
    in the checkpoint                           files that are there after a loss of power, of every half minute or so
    in the checkpoint, and the batches since    run again, over the records that ``source.batch_log`` says they had

A state is a function of the records and of the batches in which they came. So whichever of these is found gives the
same rows, and a batch that is run again begins where it began before.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dovetail.changelog.errors import CheckpointMismatch
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.joins.state.store import RunStore
from dovetail.spark_jobs.source.batch_log import batches_after
from dovetail.spark_jobs.source.batch_ranges import begins_at
from dovetail.spark_jobs.stages.job import Job, own_folder
from dovetail.spark_jobs.state.checkpoint import JsonOffsets, place
from dovetail.spark_jobs.state.durable_runs import DurableRuns
from dovetail.spark_jobs.state.local_copy import LocalCopy, StateVersion
from dovetail.spark_jobs.state.seed import Seed

STAGE = 1
_OVERLAP_S = 5.0
"""The logs of a moment before a version may not have been synced with it."""
BUCKET = 0
"""Of a fused query, which has one of each."""

Batches = list[tuple[JsonOffsets, JsonOffsets]]
"""Where each starts and ends."""
Replay = Callable[[RunStore, Batches], None]
"""Runs batches over a store once more, and writes nothing."""


@dataclass
class AttachedState:
    """store       as of a place
    copy        that knows the files of its runs
    number      of the batches that it has had
    durable_s   when it was made durable last, by the clock of the wall
    """

    store: RunStore
    copy: LocalCopy
    number: int = 0
    durable_s: float = 0.0


class FusedState:
    """That of ``job``."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._durable = DurableRuns(job.checkpoint)

    def attach(self, start: JsonOffsets, replay: Replay) -> AttachedState:
        """As of ``start``. Raises CheckpointMismatch where nothing leads there."""
        return self._copied(start) or self._restored(start, replay)

    def put(self, state: AttachedState, end: JsonOffsets) -> None:
        """What a batch has made of it. Raises as ``Storage`` where it has to be durable, and cannot be."""
        state.store.flush()
        state.number += 1
        due = not 0 <= time.time() - state.durable_s < self._job.durable_every_s
        copied = state.copy.save(state.store, StateVersion(state.number, _token(end)))
        if due or not copied:
            self._make_durable(state, end)

    def settle(self, end: JsonOffsets, replay: Replay | None = None) -> bool:
        """Have the state of a query at rest in the checkpoint; False where it is not to be had without ``replay``."""
        if self._durable.has(place(end)):
            return True
        state = self._copied(end)
        if state is None and replay is not None:
            state = self._restored(end, replay)
        if state is None:
            return False
        self._make_durable(state, end)
        return True

    def _copied(self, at: JsonOffsets) -> AttachedState | None:
        copy = LocalCopy(own_folder(self._job) / f"{STAGE}-{BUCKET}", self._job.local_copy_max_bytes)
        if (version := copy.newest(_token(at))) is None or (store := copy.load(version)) is None:
            return None
        return AttachedState(store, copy, version.number, self._durable.saved_s)

    def _restored(self, at: JsonOffsets, replay: Replay) -> AttachedState:
        """From the newest of what is durable that leads to ``at``."""
        for state, batches in self._leading_to(at):
            replay(state.store, batches)
            state.number += len(batches)
            return state
        raise CheckpointMismatch(
            "the state of the query is gone: neither a version of it nor the batches since are known any more",
            where=self._job.checkpoint.location,
            fix="restore the newest backup of the checkpoint; or drop the query and create it again, which starts over",
        )

    def _leading_to(self, at: JsonOffsets) -> Iterator[tuple[AttachedState, Batches]]:
        copy = LocalCopy(own_folder(self._job) / f"{STAGE}-{BUCKET}", self._job.local_copy_max_bytes)
        for version in self._durable.versions():
            batches = self._batches(json.loads(version.place), at)
            if batches is not None and (store := self._durable.load(version, copy.names)) is not None:
                yield AttachedState(store, copy, version.number, self._durable.saved_s), batches
        batches = self._batches(begins_at(self._job.dataflow, self._job.scan_starts, self._job.resumed_at), at)
        seed = Seed(self._job.checkpoint)
        # Once a version is durable the seed goes; without it such a checkpoint has no beginning.
        if batches is not None and (seed.there or not self._job.resumed_at):
            yield AttachedState(seed.store(STAGE, BUCKET), copy), batches

    def _batches(self, known: JsonOffsets, wanted: JsonOffsets) -> Batches | None:
        """Those that lead from one place to another; None where they are not known."""
        if place(known) == place(wanted):
            return []
        target = self._job.target
        found: Batches = []
        for start, end in batches_after(target.brokers, target.identity, known):
            found.append((start, end))
            if place(end) == place(wanted):
                return found
        return None

    def _make_durable(self, state: AttachedState, at: JsonOffsets) -> None:
        # Of the two versions that are kept one is then no newer than the logs after a loss of power.
        for log in ("offsets", "commits"):
            self._job.checkpoint.inside(f"spark/{log}").sync(self._durable.saved_s - _OVERLAP_S)
        self._durable.save(state.store, state.copy.names, state.number, place(at))
        state.durable_s = time.time()


def _token(at: JsonOffsets) -> str:
    return hashlib.sha256(place(at).encode()).hexdigest()[:32]


def is_fused(dataflow: Dataflow, buckets: int) -> bool:
    """Whether a query that begins in so many buckets is: one of a state larger than memory has it in portions, which
    lie in the store of Spark.
    """
    return buckets == 1 and all(node.memory is None for node in dataflow.nodes)
