"""What a trace reads: topics, tables that do not change, and what is looked up. A host gives it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from dovetail.changelog.decode import Decoder
from dovetail.changelog.schema import ARRIVAL, EVENT_TIME_TYPE, OFFSET_BITS
from dovetail.sql.plan.nodes import LookupTable, Scan
from dovetail.sql.relations import Stream
from dovetail.sql.trace.demand import Values

PARTITION, OFFSET, WRITTEN_AT, UNUSED = "#partition", "#offset", "#time", "#unused"
PLACED = pa.schema(
    [
        (PARTITION, pa.int32()),
        (OFFSET, pa.int64()),
        (WRITTEN_AT, EVENT_TIME_TYPE),
        (UNUSED, pa.string()),
    ]
)
"""What is known of a record beside its row. ``#unused``: why the view has not counted it; NULL where it has."""


Unused = Callable[[np.ndarray, np.ndarray], pa.Array]
"""Partitions and offsets of records -> why each was not counted, NULL where it was."""


@dataclass(frozen=True)
class Batch:
    """Some records of a topic, in any order.

    rows      declared columns, ``arrival``, ``delta``, PLACED
    rejected  ``changelog.decode.REJECTED``: those that cannot be read
    """

    rows: pa.Table
    rejected: pa.Table

    @staticmethod
    def of(decoder: Decoder, records: pa.Table, unused: Unused) -> Batch:
        """``records`` as a topic gives them, and why some were not counted."""
        decoded = decoder.decode(records)
        places = decoded.rows.column(ARRIVAL).to_numpy()
        of_records = records.column("partition").to_numpy().astype(np.int64) << OFFSET_BITS
        of_records |= records.column("offset").to_numpy()
        order = np.argsort(of_records)
        times = records.column("timestamp").take(pa.array(order[np.searchsorted(of_records[order], places)]))
        partitions, offsets = places >> OFFSET_BITS, places & ((1 << OFFSET_BITS) - 1)
        columns = [
            pa.array(partitions).cast(pa.int32()),
            pa.array(offsets),
            times.cast(EVENT_TIME_TYPE),
            unused(partitions, offsets),
        ]
        rows = decoded.rows
        for field, column in zip(PLACED, columns, strict=True):
            rows = rows.append_column(field, column)
        return Batch(rows, decoded.rejected)


class Inputs(Protocol):
    def batches(self, scan: Scan) -> Iterator[Batch]:
        """All records of the topic of a scan; asked for again, from the first one on."""
        ...

    def late(self, scan: Scan) -> pa.Table | None:
        """The rows, in declared columns, that were late; None: there are none that are known one by one."""
        ...

    def relation(self, name: str) -> pa.Table:
        """What ``table(name)`` holds now."""
        ...

    def stream(self, name: str) -> Stream:
        """The topic behind a stream or view that is looked up in."""
        ...

    def looked_up(self, table: LookupTable, by: Sequence[str], keys: Sequence[Values]) -> pa.Table:
        """The rows, in declared columns, that a dictionary or external table has under some keys now."""
        ...
