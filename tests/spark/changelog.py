"""Topics of many records: written at once, and read as the changelog that they are."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from tests.spark.kafka import send, values

_AT_ONCE = 50_000
"""Records that a producer holds."""
Row = tuple[object, ...]


def write(brokers: str, topic: str, rows: pa.Table) -> None:
    for start in range(0, rows.num_rows, _AT_ONCE):
        send(brokers, topic, rows.slice(start, _AT_ONCE).to_pylist())


def summed(brokers: str, topic: str) -> Counter[Row]:
    """The rows that a changelog leaves, each with its count, which is never below zero on the way."""
    counts: Counter[Row] = Counter()
    for change in values(brokers, topic):
        if change is None:
            continue  # a heartbeat
        delta = change.pop("_tp_delta", 1)
        assert isinstance(delta, int)
        row = tuple(change.values())
        counts[row] += delta
        assert counts[row] >= 0, f"{row} is taken back before it is there"
        if not counts[row]:
            del counts[row]
    return counts
