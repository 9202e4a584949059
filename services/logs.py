"""Log lines: structured, UTC, one line each, to standard error."""

from __future__ import annotations

import logging
import sys

import structlog

from services.settings import Settings


def configure_logs(settings: Settings) -> None:
    """Set the process's logging up once, at its start."""
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if settings.log_format == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[settings.log_level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
