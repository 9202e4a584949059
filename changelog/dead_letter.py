"""The dead-letter record of a record that could not be used: its own key and value, and in headers where and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

SUFFIX = ".dead_letter"
Headers = tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """``key`` and ``value`` are the original bytes."""

    key: bytes | None
    value: bytes | None
    headers: Headers


def topic_of(query: str) -> str:
    """The dead-letter topic of a query."""
    return f"{query}{SUFFIX}"


def dead_letters(rejected: pa.Table, *, topic: str, query: str) -> Iterator[DeadLetter]:
    """One for each row of ``rejected`` (``decode.REJECTED``), records of ``topic`` read by ``query``."""
    for record in rejected.to_pylist():
        headers = {
            "dovetail.topic": topic,
            "dovetail.partition": str(record["partition"]),
            "dovetail.offset": str(record["offset"]),
            "dovetail.reason": record["reason"],
            "dovetail.query": query,
        }
        yield DeadLetter(record["key"], record["value"], tuple((name, text.encode()) for name, text in headers.items()))
