"""The commands on the local stack: up, down, status, logs."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from runtime.settings import read_settings
from services.cli.failures import FAILED, told
from services.cli.row_format import Format
from services.cli.show import Screen
from services.stack import Stack
from services.stack.components import COMPONENT_NAMES, component
from services.stack.state import Phase


def up(without: Sequence[str]) -> None:
    screen = Screen()
    with told(screen):
        stack = Stack(read_settings())
        left_out = {component(name).name for name in without}
        stack.up([name for name in COMPONENT_NAMES if name not in left_out], on_progress=screen.note)
        brokers = stack.connected_settings().brokers
        screen.note(f"the stack is up{f': Kafka at {brokers}; next: dovetail sql' if brokers else ''}", style="green")


def down() -> None:
    screen = Screen()
    with told(screen):
        ended = Stack(read_settings()).down(screen.note)
        screen.note(f"stopped {', '.join(ended)}" if ended else "nothing was running", style="green")


def status(output: Format) -> None:
    screen = Screen(output)
    with told(screen):
        lines = Stack(read_settings()).status()
        screen.components(lines)
        failed = [line for line in lines if line.phase is Phase.EXITED]
        for line in failed:
            screen.note(f"{line.name} {line.reason}; the end of its log:\n{line.log_tail}", style="red")
        if failed:
            raise typer.Exit(FAILED)


def logs(component: str, *, follow: bool, lines: int) -> None:
    screen = Screen()
    with told(screen):
        for line in Stack(read_settings()).logs(component, follow=follow, lines=lines):
            screen.raw(line)
