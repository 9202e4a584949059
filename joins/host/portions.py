"""A portion that holds more than it may is cut in two, unless nearly all of it is of one key."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.changelog.errors import StateLimitExceeded
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.joins.dataflow.state_memory import StateMemory
from dovetail.joins.host.exchange import KEYLESS, bucket_of
from dovetail.joins.host.repartition import partitionings_of
from dovetail.joins.host.weights import Weights, weighed
from dovetail.joins.state.portion import Portion
from dovetail.joins.state.store import SORT, RunEntry, RunStore

DEEPEST = 10
"""So many cuts in a row at most for the sake of bytes: a bucket has no more than 1,024 portions."""
DEEPEST_FOR_KEYS = 5
"""And so many for the sake of keys: each portion has a fixed cost in a batch, however few rows it holds."""
_GROWN = 1.25
"""A portion of one key is weighed again when it has so many times the bytes."""


class Cutting:
    """The cuts of ``bucket`` at a level, of whose state no more than ``memory`` may be in memory."""

    def __init__(self, dataflow: Dataflow, level: int, bucket: int, buckets: int, memory: StateMemory) -> None:
        self._place = f"level {level}, bucket {bucket} of {buckets}"
        self._bucket, self._buckets = bucket, buckets
        self._memory = memory.of_bucket(buckets)
        self._partitioned_by = partitionings_of(dataflow, level)

    def weights(self, portion: Portion, store: RunStore) -> Weights | None:
        """What weighs in ``portion`` if it seems to hold too much; None where it does not."""
        size, keys = store.buffered_bytes, self._memory.keys
        countable = keys is not None and portion.depth < DEEPEST_FOR_KEYS
        many = countable and any(run.weights.keys > (keys or 0) for _, run in store.all_runs())
        if (size <= self._memory.portion_bytes or size <= _GROWN * portion.one_key) and not many:
            return None
        return weighed(store, self._partitioned_by)

    def needs_split(self, portion: Portion, store: RunStore, weights: Weights) -> bool:
        """Raises StateLimitExceeded for what cannot be cut, and is more than the whole bucket may have in memory."""
        most = self._memory.portion_bytes
        # A key that is too heavy for a portion may have others beside it: they are not worth a cut each.
        large = weights.heaviest + weights.others > most and weights.others > (most if weights.heaviest > most else 0)
        many = self._memory.keys is not None and weights.keys > self._memory.keys
        if (large and portion.depth < DEEPEST) or (many and portion.depth < DEEPEST_FOR_KEYS):
            return True
        if store.buffered_bytes > self._memory.bytes:
            raise self._too_large(weights)
        return False

    def _too_large(self, weights: Weights) -> StateLimitExceeded:
        limit, needed = self._memory.bytes * self._buckets, weights.heaviest * self._buckets
        if weights.heaviest > self._memory.bytes:
            return StateLimitExceeded(
                f"the rows of one key are more than a bucket may have in memory: {weights.key} has {weights.heaviest}"
                f" bytes, and join_max_buffered_bytes = {limit} gives each of {self._buckets} buckets"
                f" {self._memory.bytes}",
                where=self._place,
                fix=f"raise join_max_buffered_bytes to {needed} at least, give the join a bound, or leave the key out "
                "by a condition",
            )
        return StateLimitExceeded(
            f"a state that was cut {DEEPEST} times, or that each bucket holds, is more than one may have in memory:"
            f" join_max_buffered_bytes = {limit} gives each of {self._buckets} buckets {self._memory.bytes}",
            where=self._place,
            fix="raise join_max_buffered_bytes, or the number of buckets",
        )

    def cut(self, portion: Portion, store: RunStore, number: int) -> list[tuple[Portion, RunStore]]:
        """The two halves; the new one is called ``number``. ``store`` becomes that of the other."""
        halves = portion.halves(number)
        pieces: tuple[list[RunEntry], list[RunEntry]] = ([], [])
        for arrangement, run in store.all_runs():
            rows = run.table.drop_columns([SORT])
            for at, piece in self._parted(arrangement, rows, portion):
                pieces[at].append(RunEntry(arrangement, piece))
        store.begin_anew(pieces[0])
        return [(halves[0], store), (halves[1], RunStore.seeded(pieces[1], store.scalars, halves[1].first_id))]

    def _parted(self, arrangement: str, rows: pa.Table, portion: Portion) -> Iterator[tuple[int, pa.Table]]:
        """``rows`` by the half that they go to; those that each bucket holds go to both."""
        by = self._partitioned_by[arrangement]
        if by.everywhere:
            yield from ((at, rows) for at in range(2))
            return
        for some, keys in by.parted(rows):
            upper = residues(some, keys, self._buckets, portion.depth + 1) >> portion.depth
            for at in range(2):
                piece = some.take(pa.array(np.flatnonzero(upper == at)))
                if piece.num_rows:
                    yield at, piece


def residues(rows: pa.Table, keys: tuple[str, ...], buckets: int, depth: int) -> npt.NDArray[np.int64]:
    """Of rows of one bucket: which of ``1 << depth`` equal portions each is of."""
    if not keys:
        return np.full(rows.num_rows, KEYLESS)
    return bucket_of(rows, keys, buckets << depth) // buckets
