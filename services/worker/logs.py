"""Log lines of the worker and its children: those of Dovetail, and of its libraries what is wrong."""

from __future__ import annotations

import logging

from spark_jobs.logs import configure_logs as configure

_LIBRARIES = ("faust", "mode", "aiokafka", "asyncio", "aiohttp", "services.worker.query.transport")


def configure_logs(level: str, form: str) -> None:
    configure(level, form)
    if level != "DEBUG":
        for name in _LIBRARIES:
            logging.getLogger(name).setLevel(logging.WARNING)
        # It calls an error what it meets in every start: a group that has no coordinator yet.
        logging.getLogger("aiokafka.consumer.group_coordinator").setLevel(logging.CRITICAL)
