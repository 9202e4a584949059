"""Log lines of the runner: text, or a JSON object each."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class JsonLines(logging.Formatter):
    """``event``, ``level``, ``timestamp`` and ``logger``; ``exception`` where there is one."""

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
    lines = logging.StreamHandler()
    lines.setFormatter(JsonLines() if form == "json" else logging.Formatter(_TEXT))
    logging.basicConfig(level=level, handlers=[lines])
    logging.getLogger("py4j").setLevel(logging.ERROR)
