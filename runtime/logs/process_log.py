"""Log lines: one each, to standard error, as text or as JSON, whichever library writes them.

A JSON line has ``event``, ``level`` and ``timestamp``; ``logger``, where it has a name; ``exception``, where there is
one. Times are in UTC there.
"""

from __future__ import annotations

import json
import logging
import sys
from contextlib import suppress
from datetime import UTC, datetime
from typing import TextIO, cast

import structlog

from runtime.logs.repeated_lines import FirstOfMany

_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_LIBRARIES = ("faust", "mode", "aiokafka", "asyncio", "aiohttp", "services.worker.query.transport")
"""They say much that is of no use to whoever runs a query; DEBUG shows it."""

_TIRELESS = ("aiokafka",)
"""They say many times a second that the broker is away."""

_TELLING_SECRETS = ("httpx", "httpcore")
"""They write whole addresses and headers, with the keys and passwords in them, whatever the level."""


class Unfailing:
    """A stream that leaves out what it cannot write: a full disk under a log must end nobody who has a line for it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()


class JsonLines(logging.Formatter):
    """The lines of ``logging`` in the form in which structlog writes its own."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "event": record.getMessage(),
            "level": record.levelname.lower(),
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "logger": record.name,
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def configure_logs(level: str, form: str) -> None:
    """Set the process's logging up once, at its start; ``form``: ``console`` or ``json``."""
    lines = logging.StreamHandler(Unfailing(sys.stderr))
    lines.setFormatter(JsonLines() if form == "json" else logging.Formatter(_TEXT))
    lines.addFilter(FirstOfMany(*_TIRELESS))
    logging.basicConfig(level=level, handlers=[lines])
    logging.getLogger("py4j").setLevel(logging.ERROR)
    for name in _TELLING_SECRETS:
        logging.getLogger(name).setLevel(logging.WARNING)
    if level != "DEBUG":
        for name in _LIBRARIES:
            logging.getLogger(name).setLevel(logging.WARNING)
        # It calls an error what it meets in every start: a group that has no coordinator yet.
        logging.getLogger("aiokafka.consumer.group_coordinator").setLevel(logging.CRITICAL)
    _configure_structlog(level, form)


def _configure_structlog(level: str, form: str) -> None:
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if form == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level]),
        logger_factory=structlog.PrintLoggerFactory(cast("TextIO", Unfailing(sys.stderr))),
    )
