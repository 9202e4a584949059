"""The log of each query: its lines alone, in a file of its own, whichever process says them.

    2026-01-31T12:00:00.123Z WARNING orders_priced batch 7: late rows, left out: 3 of orders

Whoever speaks of a query does so through a ``QueryLog``; the lines go to the log of the process as well.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from runtime.logs.log_files import LogLimits, append, remove
from runtime.settings import Settings

_SAID_EVERY_S = 10.0
Batch = Callable[[], int | None]
"""The number of the last committed batch; below 0: there is none yet. None: it is not known here."""


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


def unknown() -> None:
    """``Batch`` of whoever does not know it."""


class QueryLog(logging.LoggerAdapter[logging.Logger]):
    """Says what it is given of one query; the message must be a template, as those of ``logging`` are."""

    def __init__(self, log: logging.Logger, query: str, batch: Batch = unknown) -> None:
        super().__init__(log, {"query": query, "batch": batch})

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        super().log(level, f'query "%s": {msg}', self.extra["query"], *args, **kwargs)  # type: ignore[index]


class QueryLines(logging.Formatter):
    """The lines of one query: what the others say of it at the beginning is in a place of its own here."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self._as_json = form == "json"

    def of(self, record: logging.LogRecord, query: str, batch: int | None) -> str:
        said = record.getMessage().removeprefix(f'query "{query}"').lstrip(":, ")
        if record.exc_info:
            said = f"{said}\n{self.formatException(record.exc_info)}"
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if self._as_json:
            line: Mapping[str, Any] = {
                "event": said,
                "level": record.levelname.lower(),
                "timestamp": at,
                "query": query,
                "batch": batch,
            }
            return json.dumps(line, ensure_ascii=False)
        return f"{at} {record.levelname} {query} batch {'-' if batch is None else batch}: {said}"


class QueryLogs(logging.Handler):
    """Writes each line that is of a query to the log of that one.

    query, batch   whose all lines of this process are, where it has one query only
    """

    def __init__(self, folder: Path, limits: LogLimits, form: str, query: str = "", batch: Batch = unknown) -> None:
        super().__init__()
        self._folder = folder
        self._limits = limits
        self._lines = QueryLines(form)
        self._query = query
        self._batch = batch

    def emit(self, record: logging.LogRecord) -> None:
        query: str = getattr(record, "query", self._query)
        if not query:
            return
        batch = getattr(record, "batch", self._batch)()
        line = self._lines.of(record, query, None if batch is None or batch < 0 else batch)
        # The disk may be full. The line is in the log of the process too, and a query must not end for it.
        with suppress(OSError):
            append(log_of(self._folder, query), f"{line}\n", self._limits)


def keep_query_logs(settings: Settings, query: str = "", batch: Batch = unknown) -> None:
    """Let this process write the logs of queries, from its start on. As for ``QueryLogs``."""
    limits = LogLimits(settings.log_max_bytes, settings.log_files)
    logging.getLogger().addHandler(QueryLogs(settings.query_logs, limits, settings.log_format, query, batch))


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
