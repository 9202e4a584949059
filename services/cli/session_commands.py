"""The commands on what is in Kafka: sql, run, tail, replay, verify, why."""

# ruff: noqa: PLC0415 - a command imports what it needs when it is run

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer

from dovetail.changelog.wording import counted
from dovetail.services.cli.failures import FAILED, UNDECIDED, reporting_errors, show_error
from dovetail.services.cli.row_format import Format, Mode
from dovetail.services.cli.run import run_script, show_result
from dovetail.services.cli.show import Screen
from dovetail.services.file_format import FileFormat
from dovetail.services.known_stacks import found_settings
from dovetail.services.session import Session, agreed
from dovetail.services.session.context import unasked
from dovetail.sql.syntax.statements import Replay


@contextmanager
def opened(screen: Screen, *, yes: bool = False) -> Iterator[Session]:
    """A session; what goes wrong in it is told on the screen. ``yes`` is the answer to what it asks."""
    with reporting_errors(screen):
        settings = found_settings(say=screen.note)
        with Session.open(settings, say=screen.note, confirm=agreed if yes else confirmed) as session:
            yield session


def confirmed(what: str) -> bool:
    """Whether the person at the terminal agrees; SqlError where there is none."""
    if not sys.stdin.isatty():
        return unasked(what)
    try:
        return typer.confirm(f"{what}. Continue?", err=True)
    except typer.Abort:
        return False


def sql(command: str | None, *, until_idle: bool, yes: bool, output: Format, mode: Mode) -> None:
    screen = Screen(output, mode=mode)
    with opened(screen, yes=yes) as session:
        if command is not None:
            run_script(session, screen, command, until_idle=until_idle, echo=False)
        elif sys.stdin.isatty():
            from dovetail.services.cli.console import Console

            Console(session, screen).run()
        else:
            run_script(session, screen, sys.stdin.read(), until_idle=until_idle, echo=True)


def run(paths: Sequence[Path], *, dry_run: bool, until_idle: bool, yes: bool, output: Format, mode: Mode) -> None:
    from dovetail.services.cli.scripts import check_files, files_of, run_files

    screen = Screen(output, mode=mode)
    with opened(screen, yes=yes) as session:
        files = files_of(paths)
        if not dry_run:
            run_files(session, screen, files, until_idle=until_idle)
        elif not check_files(session, screen, files):
            raise typer.Exit(FAILED)


def tail(name: str, *, from_beginning: bool, limit: int | None, output: Format, mode: Mode) -> None:
    from dovetail.services.cli.tail import tail_rows

    screen = Screen(output, mode=mode)
    with opened(screen) as session:
        tail_rows(session, screen, name, from_beginning=from_beginning, limit=limit)


def insert(stream: str, files: Sequence[Path], *, kind: FileFormat | None, wait: str, output: Format) -> None:
    from dovetail.services.cli.insert import insert_files

    screen = Screen(output)
    with opened(screen) as session:
        insert_files(session, screen, stream, files, kind=kind, wait=wait)


def replay(topic: str, *, reasons: Sequence[str], dry_run: bool, output: Format) -> None:
    screen = Screen(output)
    with opened(screen) as session:
        show_result(screen, session.execute(Replay(topic, tuple(reasons), dry_run)))


def why(view: str, where: str, *, absent: bool, since: str, output: Format) -> None:
    screen = Screen(output)
    with opened(screen) as session:
        name = '"' + view.replace('"', '""') + '"'
        bound = "SINCE '" + since.replace("'", "''") + "' " if since else ""
        statement = f"WHY {'NOT ' if absent else ''}{name} {bound}WHERE {where}"
        run_script(session, screen, statement, until_idle=False, echo=False)


def verify(view: str, output: Format) -> None:
    from dovetail.services.session.verification.batch import Undecidable
    from dovetail.services.session.verification.verify import Verdict

    screen = Screen(output)
    with opened(screen) as session:
        try:
            found = session.verify(view)
        except Undecidable as error:
            show_error(screen, error)
            raise typer.Exit(UNDECIDED) from None
        for doubt in found.doubts:
            screen.note(doubt)
        if found.late or found.dead_letters:
            screen.note(f"{counted(found.late, 'row')} late, {found.dead_letters:,} dead-lettered: not counted")
        if found.verdict is Verdict.HOLDS:
            screen.note(
                f"{view} holds: {counted(found.found, 'row')}, as a batch over its inputs gives them", style="green"
            )
            return
        screen.rows(found.difference)
        counts = f"{counted(found.expected, 'row')} expected, {found.found:,} found"
        screen.note(f"{view} {found.verdict}: {counts}", style="bold red")
        raise typer.Exit(UNDECIDED if found.verdict is Verdict.UNDECIDED else FAILED)
