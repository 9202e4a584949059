"""The log of each query: its lines alone, in a file of its own, whichever process says them.

    2026-01-31T12:00:00.123Z WARNING orders_priced batch 7: late rows, left out: 3 of orders

Whoever speaks of a query does so through a ``QueryLog``; the lines go to the log of the process as well.
"""

from __future__ import annotations

import json
import logging
from collections.abc import MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dovetail.runtime.logs.line_members import (
    Batch,
    OfQuery,
    batch_of,
    bucket_of,
    event_of,
    further_of,
    members_of,
    query_of,
    timestamp_of,
    unknown,
)
from dovetail.runtime.logs.log_files import LogLimits, append, remove
from dovetail.runtime.settings import Settings

_SAID_EVERY_S = 10.0


def log_of(folder: Path, query: str) -> Path:
    """Where the log of a query is."""
    return folder / f"{quote(query, safe='')}.log"


@dataclass(frozen=True)
class QueryLogFiles:
    """Where the logs of queries are, and of how many files each is."""

    folder: Path
    files: int

    @staticmethod
    def of(settings: Settings) -> QueryLogFiles:
        return QueryLogFiles(settings.query_logs, settings.log_files)

    def remove(self, query: str) -> None:
        remove(log_of(self.folder, query), self.files)


class QueryLog(logging.LoggerAdapter[logging.Logger]):
    """Says what it is given of one query; the message must be a template, as those of ``logging`` are. What is of one
    bucket is said with ``extra={"bucket": n}``.
    """

    def __init__(self, log: logging.Logger, query: str, batch: Batch = unknown) -> None:
        super().__init__(log, {"query": query, "batch": batch})

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        super().log(level, f'query "%s": {msg}', self.extra["query"], *args, **kwargs)  # type: ignore[index]

    def process(self, msg: object, kwargs: MutableMapping[str, Any]) -> tuple[object, MutableMapping[str, Any]]:
        return msg, {**kwargs, "extra": {**(self.extra or {}), **kwargs.get("extra", {})}}


class QueryLines(logging.Formatter):
    """The lines of one query: what the others say of it at the beginning is in a place of its own here."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self._as_json = form == "json"

    def format(self, record: logging.LogRecord) -> str:
        batch, bucket = batch_of(record), bucket_of(record)
        if self._as_json:
            return json.dumps({**members_of(record), "batch": batch}, ensure_ascii=False, default=str)
        said = " ".join([event_of(record), *(f"{name}={value}" for name, value in further_of(record).items())])
        if record.exc_info:
            said = f"{said}\n{self.formatException(record.exc_info)}"
        place = f"batch {'-' if batch is None else batch}{'' if bucket is None else f' bucket {bucket}'}"
        return f"{timestamp_of(record)} {record.levelname} {query_of(record)} {place}: {said}"


class QueryLogs(logging.Handler):
    """Writes each line that is of a query to the log of that one."""

    def __init__(self, folder: Path, limits: LogLimits, form: str) -> None:
        super().__init__()
        self._folder = folder
        self._limits = limits
        self._lines = QueryLines(form)

    def emit(self, record: logging.LogRecord) -> None:
        if not (query := query_of(record)):
            return
        line = self._lines.format(record)
        # The disk may be full. The line is in the log of the process too, and a query must not end for it.
        with suppress(OSError):
            append(log_of(self._folder, query), f"{line}\n", self._limits)


def keep_query_logs(settings: Settings, query: str = "", batch: Batch = unknown) -> None:
    """Let this process write the logs of queries, from its start on.

    query, batch   whose all lines of this process are, where it has one query only
    """
    limits = LogLimits(settings.log_max_bytes, settings.log_files)
    root = logging.getLogger()
    root.addHandler(QueryLogs(settings.query_logs, limits, settings.log_format))
    if query:
        for handler in root.handlers:
            handler.addFilter(OfQuery(query, batch))


class BatchTotals:
    """What the batches of a query have done, said every so often; the clock is handed in."""

    def __init__(self, log: QueryLog) -> None:
        self._log = log
        self._said_s: float | None = None
        self._rows_in = 0
        self._rows_out = 0

    def note(self, rows_in: int, rows_out: int, batch_ms: int, now_s: float) -> None:
        """Of one batch, or of a few."""
        self._rows_in += rows_in
        self._rows_out += rows_out
        if self._said_s is not None and now_s - self._said_s < _SAID_EVERY_S:
            return
        self._log.info(
            "%d records read, %d written; the last batch took %d ms", self._rows_in, self._rows_out, batch_ms
        )
        self._said_s, self._rows_in, self._rows_out = now_s, 0, 0
