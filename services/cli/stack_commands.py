"""The commands on the local stack: up, down, status, logs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing

import typer

from dovetail.changelog.errors import StackError
from dovetail.changelog.suggest import choice
from dovetail.runtime.clock import now_ms
from dovetail.runtime.environment.env_files import tell_files
from dovetail.runtime.environment.unknown_variables import warn_of_unknown
from dovetail.runtime.settings import Settings, read_settings
from dovetail.services.cli.failures import FAILED, reporting_errors
from dovetail.services.cli.row_format import Format
from dovetail.services.cli.show import Screen
from dovetail.services.cli.view_log import view_log
from dovetail.services.known_stacks import forget, found_settings, other_stacks, remember
from dovetail.services.liveness import QueryStatus, account, await_stable, query_statuses
from dovetail.services.stack import Stack
from dovetail.services.stack.components import COMPONENT_NAMES, component
from dovetail.services.stack.state import Phase
from dovetail.sql.catalog import Actual, Catalog
from dovetail.sql.engines import Engine

VIEW = "view"
_POLL_S = 0.1
_SAY_AFTER_S = 5.0


def up(without: Sequence[str]) -> None:
    """Returns when the stack and its queries run, or have failed for good; what does not is named, with the reason."""
    screen = Screen()
    with reporting_errors(screen):
        stack = Stack(read_settings())
        warn_of_unknown(screen.note)
        tell_files(screen.note)
        remember(stack.settings)
        left_out = {component(name).name for name in without}
        stack.up([name for name in COMPONENT_NAMES if name not in left_out], on_progress=screen.note)
        settings = stack.connected_settings()
        unwell = [one for one in _stable(settings, stack, screen) if not one.healthy]
        if unwell:
            screen.note(account(unwell), style="red")
        if any(one.query.actual is not Actual.FAILED for one in unwell):
            raise typer.Exit(FAILED)
        brokers = settings.brokers
        screen.note(f"the stack is up{f': Kafka at {brokers}; next: dovetail sql' if brokers else ''}", style="green")


def _stable(settings: Settings, stack: Stack, screen: Screen) -> list[QueryStatus]:
    """The queries of the engines that the stack runs, when they run or have failed, or the time is over."""
    ready = [line.name for line in stack.status() if line.phase is Phase.READY]
    served = {engine.value for name in ready for engine in Engine.of(name)}
    started_s = said_s = time.monotonic()

    def wait(left: list[QueryStatus]) -> bool:
        nonlocal said_s
        if time.monotonic() - said_s > _SAY_AFTER_S:
            said_s = time.monotonic()
            screen.note(f"waiting for {', '.join(one.query.name for one in left)}")
        time.sleep(_POLL_S)
        return time.monotonic() - started_s < settings.start_timeout_s

    with closing(Catalog.open(settings.catalog_address)) as catalog:
        return await_stable(
            lambda: [one for one in query_statuses(catalog, now_ms()) if one.query.engine in served], wait
        )


def down() -> None:
    screen = Screen()
    with reporting_errors(screen):
        settings = found_settings(say=screen.note, elsewhere=False)
        ended = Stack(settings).down(screen.note)
        forget(settings)
        nothing = f"nothing was running here{other_stacks(settings)}"
        screen.note(f"stopped {', '.join(ended)}" if ended else nothing, style="green")


def status(output: Format) -> None:
    """The components, and the queries that are not as they should be. Exit code 0 only if all is well."""
    screen = Screen(output)
    with reporting_errors(screen):
        stack = Stack(found_settings(say=screen.note))
        lines = stack.status()
        screen.components(lines)
        down = [line for line in lines if line.phase in (Phase.EXITED, Phase.RESTARTING)]
        for line in down:
            screen.note(f"{line.name} {line.reason}; the end of its log:\n{line.log_tail}", style="red")
        stopped = all(line.phase is Phase.STOPPED for line in lines)
        if stopped:
            screen.note(f"no stack is running here; dovetail up starts one{other_stacks(stack.settings)}", style="red")
        unwell = [] if stopped else _unwell(stack)
        if unwell:
            screen.note(account(unwell), style="red")
        if down or unwell or stopped:
            raise typer.Exit(FAILED)


def _unwell(stack: Stack) -> list[QueryStatus]:
    with closing(Catalog.open(stack.connected_settings().catalog_address)) as catalog:
        return [one for one in query_statuses(catalog, now_ms()) if not one.healthy]


def logs(component: str, view: str | None, *, follow: bool, lines: int) -> None:
    """Of a component, or of one view where ``component`` says so."""
    screen = Screen()
    with reporting_errors(screen):
        stack = Stack(found_settings(say=screen.note))
        for line in _logged(stack, component, view, follow=follow, lines=lines):
            screen.raw(line)


def _logged(stack: Stack, component: str, view: str | None, *, follow: bool, lines: int) -> Iterator[str]:
    if component == VIEW and view is not None:
        return view_log(stack.settings, view, follow=follow, lines=lines)
    if component == VIEW or view is not None:
        raise StackError("it is not clear whose log is meant", fix="dovetail logs view NAME; or: dovetail logs spark")
    if component not in (*COMPONENT_NAMES, "supervisor"):
        fix = f"{choice(component, COMPONENT_NAMES)}; of a view: dovetail logs view {component}"
        raise StackError(f"the stack has no component {component!r}", fix=fix)
    return stack.logs(component, follow=follow, lines=lines)
