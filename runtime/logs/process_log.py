"""Log lines: one each, to standard error, as text or as JSON, whichever library writes them.

A JSON line has the members of ``runtime.logs.line_members``.
"""

from __future__ import annotations

import json
import logging
import sys
from contextlib import suppress
from typing import Any, TextIO

import structlog

from dovetail.runtime.logs.line_members import MEMBERS, further_of, members_of
from dovetail.runtime.logs.repeated_lines import FirstOfMany

_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_LIBRARIES = ("faust", "mode", "aiokafka", "asyncio", "aiohttp", "dovetail.services.worker.query.transport")
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
    """An object for each line."""

    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(members_of(record), ensure_ascii=False, default=str)


class TextLines(logging.Formatter):
    """What structlog was given by name stands behind the message."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is that of logging
        return " ".join(
            [super().formatMessage(record), *(f"{name}={value}" for name, value in further_of(record).items())]
        )


def configure_logs(level: str, form: str) -> None:
    """Set the process's logging up once, at its start; ``form``: ``text`` or ``json``."""
    lines = logging.StreamHandler(Unfailing(sys.stderr))
    lines.setFormatter(JsonLines() if form == "json" else TextLines(_TEXT))
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
    _configure_structlog(level)


def _configure_structlog(level: str) -> None:
    """Its lines become those of ``logging``: one form, one file for a query whoever speaks of it."""
    structlog.configure(
        processors=[_as_record],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level]),
        logger_factory=structlog.stdlib.LoggerFactory(),
    )


def _as_record(_logger: object, _method: str, given: structlog.typing.EventDict) -> dict[str, Any]:
    exc_info, event = given.pop("exc_info", None), given.pop("event")
    return {"msg": event, "exc_info": exc_info, "extra": {MEMBERS: dict(given)}}
