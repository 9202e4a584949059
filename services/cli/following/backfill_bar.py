"""How far a view that was created a moment ago has read what there was."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from dovetail.changelog.errors import DovetailError
from dovetail.changelog.wording import counted
from dovetail.services.cli.failures import show_error
from dovetail.services.cli.show import Screen
from dovetail.services.session import Session
from dovetail.services.session.live.backfill import Backfill
from dovetail.services.session.live.backlog import Backlog, duration_text
from dovetail.sql.planner import plan_query

_LOOK_S = 0.25


class _RecordsPerSecond(ProgressColumn):
    """The rate of the last seconds; nothing before there is one."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f}/s", style="progress.data.speed")


def show_backfill(session: Session, screen: Screen, view: str) -> None:
    """On a terminal a bar until the view has caught up; Ctrl-C ends the bar alone. Elsewhere a line.

    Nothing where there is nothing to read. What goes wrong with the view is told, and is no fault of the statement that
    has created it.
    """
    definition = session.context.catalog.get(view).materialized_view
    if definition is None:
        return
    try:
        backfill = Backfill.begun(session.context, plan_query(view, definition, session.context.catalog))
        follow_backfill(screen, view, backfill.look, lambda: backfill.goes_on)
    except DovetailError as error:
        show_error(screen, error)


def follow_backfill(screen: Screen, view: str, look: Callable[[], Backlog], goes_on: Callable[[], bool]) -> None:
    """As ``show_backfill``, of what ``look`` gives as long as ``goes_on``."""
    first = look()
    if not first.left:
        return
    if not screen.notes.is_terminal or screen.notes.is_dumb_terminal:
        screen.note(f"{view} has {counted(first.left, 'record')} to read; SHOW VIEWS says how far it is")
        return
    started = time.monotonic()
    try:
        caught_up = _drawn(screen, first, look, goes_on)
    except KeyboardInterrupt:
        screen.note(f"{view} goes on; SHOW VIEWS says how far it is")
        return
    if caught_up:
        screen.note(f"{view} has caught up, in {duration_text(time.monotonic() - started)}")
    else:
        screen.note(f"{view} is not to run; RESUME {view} lets it go on")


def _drawn(screen: Screen, first: Backlog, look: Callable[[], Backlog], goes_on: Callable[[], bool]) -> bool:
    """Whether it has caught up; False where it is not to run any more."""
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("records"), _RecordsPerSecond(), TimeRemainingColumn())
    with Progress(*columns, console=screen.notes, transient=True) as bar:
        task = bar.add_task("", total=first.total, completed=first.read)
        now = first
        while now.left:
            if not goes_on():
                return False
            time.sleep(_LOOK_S)
            now = look()
            bar.update(task, total=now.total, completed=now.read)
    return True
