"""What a line of a log is made of, whichever library has written it.

    timestamp  in UTC, with milliseconds
    level      debug, info, warning, error
    event      what is said; of a query, without its name in front
    logger     who says it
    query      where it is of one; ``batch``: the number of its last committed batch, where that is known; ``bucket``:
               where it is of one bucket
    exception  the trace, where there is one

What structlog is given by name stands beside them, under its own names.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

MEMBERS = "members"
"""The attribute of a record with what structlog was given."""
Batch = Callable[[], int | None]
"""The number of the last committed batch; below 0: there is none yet. None: it is not known here."""


def unknown() -> None:
    """``Batch`` of whoever does not know it."""


class OfQuery(logging.Filter):
    """Lets every line pass, as one of ``query`` where it is of no other: for a process that has one query only."""

    def __init__(self, query: str, batch: Batch) -> None:
        super().__init__()
        self._query, self._batch = query, batch

    def filter(self, record: logging.LogRecord) -> bool:
        if not hasattr(record, "query"):
            record.query, record.batch = self._query, self._batch
        return True


def timestamp_of(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def query_of(record: logging.LogRecord) -> str:
    """'' where it is of none."""
    query: str = getattr(record, "query", "")
    return query


def batch_of(record: logging.LogRecord) -> int | None:
    read: Batch = getattr(record, "batch", unknown)
    batch = read()
    return None if batch is None or batch < 0 else batch


def bucket_of(record: logging.LogRecord) -> int | None:
    bucket: int | None = getattr(record, "bucket", None)
    return bucket


def further_of(record: logging.LogRecord) -> Mapping[str, object]:
    further: Mapping[str, object] = getattr(record, MEMBERS, {})
    return further


def event_of(record: logging.LogRecord) -> str:
    query = query_of(record)
    return record.getMessage().removeprefix(f'query "{query}"').lstrip(":, ") if query else record.getMessage()


def members_of(record: logging.LogRecord) -> dict[str, object]:
    line: dict[str, object] = {
        "timestamp": timestamp_of(record),
        "level": record.levelname.lower(),
        "event": event_of(record),
        "logger": record.name,
    }
    if query := query_of(record):
        line |= {"query": query, "batch": batch_of(record)}
    if (bucket := bucket_of(record)) is not None:
        line["bucket"] = bucket
    if record.exc_info:
        line["exception"] = logging.Formatter().formatException(record.exc_info)
    return {**further_of(record), **line}
