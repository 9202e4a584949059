"""A stack for one test run: own folder, free ports, gone when the block ends or the test process dies."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from runtime.settings import Settings, read_settings
from services.stack.stack import Stack


@contextmanager
def temporary_stack(folder: Path, components: Sequence[str] = ("kafka",), **changed: object) -> Iterator[Stack]:
    """A running stack under ``folder``; ``changed`` overrides settings. Its jars are those of the checkout."""
    stack = Stack(temporary_settings(folder, **changed), owner_pid=os.getpid())
    try:
        stack.up(components)
        yield stack
    finally:
        stack.down()


def temporary_settings(folder: Path, **changed: object) -> Settings:
    """The settings of a stack that meets no other one."""
    settings = read_settings()
    ports = ("kafka_port", "kafka_controller_port", "redis_port", "runner_port", "worker_port", "serve_port")
    free_ports = dict.fromkeys(ports, 0)
    apart = {"data_dir": folder, "jar_dir": settings.jars, "brokers": None, "redis_url": None, "catalog_url": None}
    return settings.model_copy(update=apart | free_ports | changed)
