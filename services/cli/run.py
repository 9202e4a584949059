"""Statements from a script, a pipe or the console: executed one by one, each result shown as it comes."""

from __future__ import annotations

import time
from collections.abc import Sequence

from dovetail.changelog.wording import counted
from dovetail.services.cli.show import Screen
from dovetail.services.session import Done, Live, Result, Rows, Session, Text
from dovetail.sql.syntax.parse import as_shown, parse
from dovetail.sql.syntax.statements import CreateView, Statement

_ECHOED = 100


def run_script(session: Session, screen: Screen, script: str, *, until_idle: bool, echo: bool) -> None:
    """All statements of ``script``. It is read as a whole first: a syntax error at its end is told before it begins."""
    run_statements(session, screen, parse(script), until_idle=until_idle, echo=echo)


def run_statements(
    session: Session, screen: Screen, statements: Sequence[Statement], *, until_idle: bool, echo: bool
) -> None:
    for statement in statements:
        if echo:
            screen.note(f"> {shortened(statement.text)}")
        execute(session, screen, statement, until_idle=until_idle)


def execute(session: Session, screen: Screen, statement: Statement, *, until_idle: bool = False) -> None:
    """Run a statement and show its result; of a view that is created also how far it has read."""
    show_result(screen, session.execute(statement), until_idle=until_idle)
    if isinstance(statement, CreateView) and statement.materialized:
        from dovetail.services.cli.following.backfill_bar import show_backfill  # noqa: PLC0415 - it brings the planner

        show_backfill(session, screen, statement.name)


def show_result(screen: Screen, result: Result, *, until_idle: bool = False) -> None:
    match result:
        case Done():
            screen.note(result.text, style="")
        case Text():
            screen.line(result.text)
        case Rows():
            screen.rows(result.table, result.note, result.wide)
        case Live():
            show_changelog(screen, result, until_idle=until_idle)


def show_changelog(screen: Screen, live: Live, *, until_idle: bool) -> None:
    """The rows as they come. Ctrl-C ends the query, not the session."""
    from dovetail.services.cli.following.followed_rows import followed  # noqa: PLC0415 - most statements have no rows to come

    started = time.monotonic()
    if live.query:
        screen.note("starting the query ..")
    for note in live.notes:
        screen.note(note)
    try:
        with live.changelog as changelog:
            running = "running; " if live.query else ""
            screen.note(f"{running}all input so far is read" if until_idle else f"{running}Ctrl-C ends it")
            cancelled = False
            with followed(screen, changelog) as shown:
                try:
                    for rows in changelog.batches(until_idle=until_idle):
                        shown.add(rows)
                except KeyboardInterrupt:
                    cancelled = True
            # Said below the rows: while they are drawn in place, the screen is theirs.
            if cancelled:
                screen.note("cancelled")
            screen.note(f"{counted(shown.count, 'row')} in {time.monotonic() - started:.1f} s")
    except KeyboardInterrupt:
        screen.note("cancelled")


def shortened(text: str) -> str:
    line = " ".join(as_shown(text).split())
    return line if len(line) <= _ECHOED else line[: _ECHOED - 2] + ".."
