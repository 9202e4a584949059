"""The demo: a stack of its own, three examples, and nothing left running."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager

from dovetail.runtime.settings import Settings
from dovetail.services.cli.demo import clickthrough, lookup, worked_example
from dovetail.services.cli.show import Screen
from dovetail.services.jars import ensure_jars
from dovetail.services.session import Session
from dovetail.services.stack import Stack
from dovetail.services.stack.temporary import temporary_settings

_COMPONENTS = ("kafka", "redis", "spark", "worker")


def run(settings: Settings, screen: Screen, events: int) -> int:
    """All examples, one after the other; 1 if a result is not what it must be, else 0."""
    started = time.monotonic()
    with demo_stack(settings, screen) as stack, Session.open(stack.settings, say=screen.note) as session:
        screen.note(f"the stack is up after {time.monotonic() - started:.1f} s", style="green")
        holds = worked_example.run(session, screen)
        holds = clickthrough.run(session, screen, events) and holds
        holds = lookup.run(session, screen, stack.settings.files) and holds
    screen.note(
        f"done in {time.monotonic() - started:.0f} s; nothing is left running", style="green" if holds else "red"
    )
    return 0 if holds else 1


@contextmanager
def demo_stack(settings: Settings, screen: Screen) -> Iterator[Stack]:
    """All components in a folder of their own, on free ports; gone at the end, and also if this process is killed."""
    ensure_jars(settings, screen.note)
    folder = settings.data_dir / f"demo-{os.getpid()}"
    stack = Stack(temporary_settings(folder, files_dir=folder / "files"), owner_pid=os.getpid())
    try:
        stack.up(_COMPONENTS, screen.note)
        yield stack
    finally:
        stack.down(screen.note)
        shutil.rmtree(folder, ignore_errors=True)
