"""The events that the tests have in common."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from benchmarks.nexmark import Nexmark, side_input
from dovetail.changelog.changes import Changes
from dovetail.changelog.encode import encode

EVENTS = 4_000
# Forty seconds, which begin on one day and end on the next.
STREAM = Nexmark(rate=100, base_ms=1_436_918_380_000, out_of_order=100)
STREAMS = STREAM.events(0, EVENTS)
INPUTS = STREAMS | {"side_input": side_input(10_000, absent_share=0.5)}


def records(rows: pa.Table, key: str | None = None) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Keys and values."""
    encoded = encode(Changes.of(rows).table, tuple(rows.column_names), ((key, key),) if key else (), updating=False)
    return zip(encoded.keys, encoded.values, strict=True)
