"""A stack for one test run: own folder, free ports, gone when the block ends or the test process dies."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dovetail.runtime.settings import Settings, read_settings
from dovetail.services.stack.stack import Stack


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
    free_ports = {name: 0 for name in Settings.model_fields if name.endswith("_port")}
    remote = dict.fromkeys(("brokers", "redis_url", "catalog_url", "schema_registry_url"))
    apart = {"data_dir": folder, "jar_dir": settings.jars} | remote
    return settings.model_copy(update=apart | free_ports | changed)
